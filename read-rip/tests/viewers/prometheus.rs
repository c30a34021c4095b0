//! Numbers, read by Prometheus's own parser of OpenMetrics.

use std::path::Path;

use serde_json::{Value, json};

use super::tools;
use crate::support::exports::crew;
use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::run::read_rip;
use crate::support::synth::{Held, Ring, Slot};

const NASTY: &str = "a\"b\\\n;x\u{202e}</'";

/// Reads a file of OpenMetrics, and prints its samples as lines of JSON.
const PARSE: &str = "import json, sys\n\
    from prometheus_client.openmetrics.parser import text_string_to_metric_families\n\
    for family in text_string_to_metric_families(open(sys.argv[1]).read()):\n\
    \x20   for sample in family.samples:\n\
    \x20       print(json.dumps([sample.name, sample.labels, sample.value]))";

/// The samples of `read-rip export -f openmetrics OPTIONS`, as name, labels and value.
fn samples(ring: &Ring, options: &[&str]) -> Option<Vec<(String, Value, f64)>> {
    let mut python = tools::python("prometheus_client")?;
    let (fixture, scratch) = (Fixture::of(ring), Scratch::new());
    let target = scratch.path("metrics.prom");
    let args = ["export", "-f", "openmetrics", "-o", target.to_str().unwrap()];
    let args = args.iter().chain(options).map(Path::new).chain([fixture.path.as_path()]);
    read_rip(args).sound();
    let out = python.args(["-c", PARSE]).arg(&target).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let lines = String::from_utf8(out.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Threads of which one holds B since 8 s, and the others wait for it since 9 s.
fn queue(waiters: u32) -> Ring {
    let holder = Slot::thread("holder", 1)
        .event(TAKES, &[at(3.0), A])
        .event(RELEASED, &[at(6.0), at(3.0), A])
        .event(TAKES, &[at(8.0), B])
        .has(Held::new(HELD, B, TAKES).since(at(8.0)));
    let waiter = |tid| {
        Slot::thread("waiter", tid).event(WAIT, &[at(9.0), B]).has(Held::new(WAITING, B, WAIT).since(at(9.0)))
    };
    let names = vec![(4321, A, "idle".to_owned()), (4321, B, NASTY.to_owned())];
    let slots = std::iter::once(holder).chain((2..2 + waiters).map(waiter));
    Ring { exit_status: Some(3), lock_names: names, ..ring().with_slots(slots) }
}

#[test]
fn the_parser_reads_what_hurts_with_a_hostile_name_in_a_label() {
    let Some(samples) = samples(&queue(3), &[]) else { return };
    let value = |name: &str, label: &str, of: &str| {
        let has = |(is, labels, _): &&(String, Value, f64)| is == name && labels[label] == json!(of);
        samples.iter().find(has).unwrap_or_else(|| panic!("{name} of {of}: {samples:?}")).2
    };
    let shown = r#"a"b\\n;x\u{202e}</'"#;
    assert_eq!(value("rip_threads", "state", "waiting"), 3.0);
    assert_eq!(value("rip_threads", "state", "other"), 1.0);
    assert_eq!(value("rip_lock_waiters", "lock", shown), 3.0);
    assert_eq!(value("rip_lock_holders", "lock", shown), 1.0);
    assert_eq!(value("rip_lock_longest_wait_seconds", "lock", shown), 57.0);
    assert_eq!(value("rip_lock_hold_seconds", "lock", "idle"), 3.0);
    assert!(samples.iter().all(|(_, labels, _)| labels["lock"] != ""), "{samples:?}");
    assert!(value("rip_findings", "kind", "long-wait") >= 1.0);
}

#[test]
fn the_parser_reads_numbers_of_tasks_by_what_they_do() {
    let Some(samples) = samples(&crew(), &[]) else { return };
    let of = |name: &str| {
        let of = samples.iter().filter(|sample| sample.0 == name);
        of.map(|(_, labels, value)| (labels["state"].as_str(), *value)).collect::<Vec<_>>()
    };
    assert_eq!(of("rip_threads"), [(Some("waiting"), 0.0), (Some("other"), 1.0)]);
    let tasks = [(Some("running"), 1.0), (Some("ready"), 2.0), (Some("suspended"), 1.0)];
    assert_eq!(of("rip_tasks"), tasks);
    assert_eq!(of("rip_tasks_refused_total"), [(None, 1.0)]);
    assert!(of("rip_words_total")[0].1 > 0.0);
}

#[test]
fn locks_beyond_the_limit_are_added_up() {
    let Some(samples) = samples(&queue(2), &["--locks", "1"]) else { return };
    let of = |name: &str| {
        let mut of: Vec<_> = samples.iter().filter(|sample| sample.0 == name).collect();
        of.sort_by_key(|(_, labels, _)| labels["lock"] != "other locks");
        of.iter().map(|(_, labels, value)| (labels["lock"] == "other locks", *value)).collect::<Vec<_>>()
    };
    assert_eq!(of("rip_lock_waiters"), [(true, 0.0), (false, 2.0)]);
    assert_eq!(of("rip_lock_hold_seconds"), [(true, 3.0), (false, 0.0)]);
}
