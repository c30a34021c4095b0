//! `json-schema.json` describes every line that `--json` writes, and nothing else. A test of read-rip-report compares it
//! with the types that are written. The tests of each command check what its lines say.

#[path = "../support/schema.rs"]
mod valid;

use std::collections::BTreeSet;

use read_rip_model::findings::Kind;
use serde_json::{Value, json};

use self::valid::{CLOSED, PUBLISHED, assert_valid, schema, type_of};
use crate::support::fixture::{Fixture, Scratch, lock_sites, pile_up};
use crate::support::run::read_rip;
use crate::support::synth::{BIAS, Held, Ring, Site, Slot};
use crate::support::unprepared::{Stuck, deadlocks};

const A: u64 = 0x7f00_0000_1000;
const B: u64 = 0x7f00_0000_2000;
const TAKES: u64 = 0x1000;
const WAIT: u64 = 0x1100;
const WAITING: u64 = 2;
const HELD: u64 = 3;

/// Two threads in a deadlock, and a third thread that waits for one of their locks.
fn deadlock() -> Ring {
    let mutex = 1 << 8 | 4 | 64;
    let mut ring = Ring::new().with_sites(&[]).with_clock(3);
    ring.sites = vec![
        Site::new(TAKES, "src/bank.rs", 35).within("bank").of(6, mutex, &[4, 3]),
        Site::new(WAIT, "src/bank.rs", 37).within("bank").of(2, mutex, &[4, 3]),
    ];
    let transfer = |name, tid, holds, waits_for| {
        Slot::thread(name, tid)
            .event(TAKES, &[2000, holds])
            .event(TAKES, &[3000, waits_for])
            .event(WAIT, &[3000, waits_for])
            .has(Held { sequence: 2, ..Held::new(HELD, holds, TAKES).since(2000) })
            .has(Held { sequence: 8, ..Held::new(WAITING, waits_for, WAIT).since(3000) })
    };
    let behind = Slot::thread("behind", 12).has(Held::new(WAITING, A, WAIT));
    let ring = ring.with_slots([transfer("saver", 10, A, B), transfer("spender", 11, B, A), behind]);
    Ring { lock_names: vec![(ring.pid, A, "SAVINGS".into())], ..ring }
}

/// A thread that said something, with a span that has ended and one that is open.
fn said() -> Ring {
    let (event, begin, end) = (0x1000, 0x1100, 0x1200);
    let mut ring = Ring { span_entries: 16, ..Ring::new().with_sites(&[]).with_clock(3) };
    let site = |pc, line, kind, flags, operands: &[u8], label: &str| Site {
        label: label.into(),
        ..Site::new(pc, "src/said.rs", line).of(kind, flags, operands)
    };
    ring.sites = vec![
        site(event, 7, 14, 4, &[10], "{} and {}"),
        site(begin, 8, 15, 0, &[10], "parse\0{} bytes"),
        site(end, 8, 16, 0, &[4, 5], "parse\0"),
    ];
    // A time, an unsigned value and the text "no".
    let text = [2 | 2 << 8, u64::from(b'n') | u64::from(b'o') << 8];
    let shape = |types: u64, words: u64| types | words << 40 | 1 << 46;
    let begin_word = librip_test_kit::format::pack(9, false, begin + BIAS);
    let slot = Slot::thread("speaker", 9)
        .event(event, &[2000, 7, text[0], text[1], shape(0xc1, 4)])
        .event(begin, &[3000, 512, shape(1, 2)])
        .event(end, &[4000, 3000]);
    let since = librip_format::span_since(begin_word, 3000, 1, 512);
    ring.with_slots([Slot { open: vec![[begin_word, since, 512]], ..slot }])
}

/// The lines of `read-rip --json OPTIONS RING`, all of which fit the schema.
#[track_caller]
fn valid(options: &[&str], ring: &Ring) -> Vec<Value> {
    let fixture = Fixture::of(ring);
    let path = fixture.path.to_str().unwrap();
    let outcome = read_rip(options.iter().copied().chain(["--json", path]));
    all_valid(outcome.json())
}

#[track_caller]
fn all_valid(lines: Vec<Value>) -> Vec<Value> {
    assert!(!lines.is_empty());
    lines.iter().for_each(assert_valid);
    lines
}

#[test]
fn every_command_writes_lines_that_fit_the_schema() {
    let mut lines = valid(&[], &pile_up());
    lines.extend(valid(&["-tv"], &deadlock()));
    lines.extend(valid(&["locks"], &deadlock()));
    lines.extend(valid(&["check"], &deadlock()));
    lines.extend(valid(&["tasks", "--all"], &crate::tasks::futurelock()));
    lines.extend(valid(&["check"], &crate::tasks::futurelock()));
    lines.extend(valid(&["tasks", "--polls"], &crate::polls::polled()));
    lines.extend(valid(&["tasks", "--slow"], &crate::polls::polled()));
    lines.extend(valid(&["log"], &said()));
    let spans = valid(&["spans"], &said());
    assert_eq!(spans[1]["data"]["open"][0]["value"], 512, "{spans:#?}");
    lines.extend(spans);
    let fixture = Fixture::of(&pile_up());
    let ring = fixture.path.to_str().unwrap();
    lines.extend(all_valid(read_rip(["--json", "diff", ring, ring]).sound().json()));
    let mut kept = said();
    let slot = kept.slots[0].clone();
    kept.slots.push(Slot { is_capture: true, ..slot.exited() });
    let captures = valid(&["captures"], &kept);
    assert_eq!(captures[1]["data"]["events"][0]["text"], "7 and no", "{captures:#?}");
    lines.extend(captures);
    lines.extend(valid(&["check"], &deadlock().of_this_process()));
    let unjudged = Stuck::start(deadlocks(), &["nobody-left"], 2);
    lines.extend(all_valid(read_rip(["check", "--all", "--json", "--min-confidence", "proven"]).json()));
    drop(unjudged);
    let damaged = Ring { settings_ignored: 127, reused: 6, exit_status: Some(3), ..pile_up() };
    lines.extend(valid(&["info"], &damaged));
    let fixture = Fixture::of(&pile_up().of_a_dead_process());
    let directory = fixture.directory.path().to_str().unwrap();
    for command in [&["list"][..], &["gc", "--dry-run"], &["gc"]] {
        let arguments = command.iter().copied().chain(["--json", "--dir", directory]);
        lines.extend(all_valid(read_rip(arguments).sound().json()));
    }
    // This program has no ring.
    let own = std::process::id().to_string();
    lines.extend(all_valid(read_rip(["--json", "--dir", directory, &own]).sound().json()));
    lines.extend(all_valid(read_rip(["stacks", "--json", "--dir", directory, &own]).sound().json()));
    let stuck = Stuck::start(deadlocks(), &["normal"], 2);
    let core = fixture.directory.path().join("core");
    librip_test_kit::core::write(stuck.0.pid(), 6, &core);
    for command in [&["--json"][..], &["stacks", "--json"], &["locks", "--json"], &["check", "--json"]] {
        let core = core.to_str().unwrap();
        lines.extend(all_valid(read_rip(command.iter().copied().chain([core])).json()));
    }
    let mut types: BTreeSet<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    // Tasks that nobody recorded, and workers that say when they sleep, need a program of tokio: the tests of verdicts
    // have one.
    types.extend(["seen_task", "seen_tasks", "worker"]);
    let schema = schema();
    let described = schema["oneOf"].as_array().unwrap().iter();
    let described: BTreeSet<&str> = described.map(|line| type_of(line).as_str().unwrap()).collect();
    assert_eq!(types, described, "all types of lines, and no other");
}

#[test]
fn lines_that_do_not_fit_the_schema_are_rejected() {
    let lines = valid(&["check"], &deadlock());
    let finding = lines.iter().find(|line| line["type"] == "finding").unwrap();
    let changes: [fn(&mut Value); 7] = [
        |line| line["type"] = json!("opinion"),
        |line| drop(line.as_object_mut().unwrap().remove("type")),
        |line| line["data"]["kind"] = json!("bad-luck"),
        |line| line["data"]["for_ns"] = json!("long"),
        |line| line["data"]["undocumented"] = json!(1),
        |line| line["data"]["locks"][0]["address"] = json!(4096),
        |line| line["data"]["evidence"]["edges"][0]["wait"]["thread"] = json!("saver"),
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut line = finding.clone();
        change(&mut line);
        assert!(!CLOSED.is_valid(&line), "change {at}");
    }
}

#[test]
fn a_later_version_may_add_fields() {
    assert!(PUBLISHED.is_valid(&json!({"type": "checked", "data": {"findings": 0, "new": true}})));
    assert!(PUBLISHED.is_valid(&json!({"type": "checked"})), "all fields but the type are optional");
}

#[test]
fn evidence_of_every_kind_has_a_schema() {
    for &kind in Kind::ALL {
        let line = json!({"type": "finding", "data": {"kind": kind, "evidence": {"undocumented": 1}}});
        assert!(!CLOSED.is_valid(&line), "{kind:?}");
    }
}

#[test]
fn a_ring_without_locks_fits_the_schema() {
    let scratch = Scratch::new();
    let path = scratch.path("ring");
    lock_sites()
        .with_slots([Slot::thread("a", 1).marks([crate::support::fixture::WAITS]).exited()])
        .build()
        .write(&path);
    for options in [&["-tv"][..], &["locks", "--all"], &["check"], &["info"], &[]] {
        let arguments = options.iter().copied().chain(["--json", path.to_str().unwrap()]);
        all_valid(read_rip(arguments).json());
    }
}
