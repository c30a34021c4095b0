//! Captures: what a thread had recorded when the program kept it, however much it has recorded since.

use std::collections::BTreeMap;
use std::path::Path;

use librip_test_kit::oracle::Ring;
use librip_test_kit::victim::{Plan, Remains, Victim, torture};
use serde_json::Value;

use crate::{json, plan_of, read};

/// A ring has at most so many captures.
const CAPTURES_MAX: usize = 64;

fn plan(arguments: &[&str]) -> Plan {
    plan_of("captures", arguments)
}

fn captures(ring: &Path) -> Vec<Value> {
    json(&["captures"], "capture", ring)
}

/// What is kept of a victim that is killed. A copy that is saved before has the same captures.
#[track_caller]
fn saved_and_killed(victim: Victim) -> (Remains, Vec<Value>) {
    let saved = victim.dir().join("saved.gz");
    read(&["save", "-o", saved.to_str().unwrap()], &victim.ring_path());
    let remains = victim.killed();
    let kept = captures(&remains.ring_path());
    assert_eq!(captures(&saved), kept, "a saved copy has them too");
    (remains, kept)
}

/// What the events of a capture say, without marks.
fn texts(capture: &Value) -> Vec<&str> {
    capture["events"].as_array().unwrap().iter().filter_map(|event| event["text"].as_str()).collect()
}

#[test]
fn exactly_the_slow_cycles_are_kept_each_from_its_beginning_on() {
    let mut victim = plan(&["cycles"]).start();
    let (mut slow, mut perhaps) = (Vec::new(), Vec::new());
    loop {
        let line = victim.line();
        match line.split_once(' ') {
            Some(("slow", cycle)) => slow.push(cycle.to_owned()),
            Some(("perhaps", cycle)) => perhaps.push(cycle.to_owned()),
            _ => break assert_eq!(line, "done"),
        }
    }
    assert_eq!(slow, ["7", "107", "207", "307"]);
    let live = captures(&victim.ring_path());
    let remains = victim.killed();
    let kept = captures(&remains.ring_path());
    assert_eq!(live, kept, "the same alive and dead");
    let mut found = Vec::new();
    let mut last_ns = 0;
    for capture in &kept {
        let [cycle, took] = texts(capture)[..] else { panic!("{capture:#}") };
        found.push(cycle.strip_prefix("cycle ").unwrap().to_owned());
        let took = took.strip_prefix("work: a cycle took ").unwrap();
        let (took, limit) = took.split_once(" us, more than ").unwrap();
        assert!(took.parse::<u64>().unwrap() >= 20_000 && limit == "20000 us", "{capture:#}");
        // The two events and the mark between them.
        assert_eq!(capture["events"].as_array().unwrap().len(), 3, "{capture:#}");
        let at_ns: u64 = capture["kept_boottime_ns"].as_str().unwrap().parse().unwrap();
        assert!(at_ns > last_ns, "in their order: {kept:#?}");
        last_ns = at_ns;
    }
    assert!(slow.iter().all(|cycle| found.contains(cycle)), "{found:?}");
    found.retain(|cycle| !slow.contains(cycle));
    assert!(found.iter().all(|cycle| perhaps.contains(cycle)), "{found:?}, of {perhaps:?}");
    // Threads that exist are not mixed with captures.
    assert_eq!(json(&["-t"], "thread", &remains.ring_path()).len(), 1);
}

#[test]
fn the_example_keeps_the_cycles_that_are_slow_by_its_own_clock_and_no_others() {
    let remains = Plan::new(env!("CARGO_BIN_EXE_example-spikes"), &["2"]).env("RIP_SLOTS", "1024").run();
    // The time of its items.
    let slow: BTreeMap<u64, u64> = remains
        .stdout
        .lines()
        .filter_map(|line| {
            let (cycle, times) = line.strip_prefix("cycle ")?.split_once(" took ")?;
            let (_, items_us) = times.strip_suffix(" us of them in its items")?.split_once(" us, ")?;
            Some((cycle.parse().unwrap(), items_us.parse().unwrap()))
        })
        .collect();
    let kept: Vec<u64> = captures(&remains.ring_path())
        .iter()
        .map(|capture| {
            let texts = texts(capture);
            assert!(texts.last().unwrap().starts_with("work: a cycle took "), "{capture:#}");
            texts[0].strip_prefix("cycle ").unwrap().parse().unwrap()
        })
        .collect();
    assert!(!kept.is_empty(), "{remains:?}");
    // It says the last ones only.
    let (&first, _) = slow.first_key_value().unwrap();
    let is_said = |cycle: &u64| *cycle < first || slow.contains_key(cycle);
    assert!(kept.iter().all(is_said), "{kept:?}, of {slow:?}");
    // A cycle takes longer than its items. The two clocks may differ a little.
    let certain = slow.iter().filter(|&(_, &items_us)| items_us > 6000).map(|(cycle, _)| cycle);
    assert!(certain.clone().count() > 0, "{slow:?}");
    assert!(certain.into_iter().all(|cycle| kept.contains(cycle)), "{kept:?}, of {slow:?}");
}

/// The victim's slow cycles, each with why it was slow by its own account.
fn causes(captures: &[Value]) -> BTreeMap<&str, &Value> {
    let slow = captures.iter().filter(|capture| capture.get("slow_cycle").is_some());
    slow.map(|capture| (texts(capture)[0], capture)).collect()
}

#[test]
fn the_kernel_says_why_cycles_were_slow_alive_dead_and_in_a_copy() {
    let mut victim = plan(&["causes"]).env("RIP_USAGE", "delays").env("RIP_CLOCK", "all").start();
    victim.until("done");
    let (remains, kept) = saved_and_killed(victim);
    let slow = causes(&kept);
    for (why, cause) in [
        ("computes", "computed"),
        ("faults", "page_faults"),
        ("sleeps", "blocked"),
        ("locks", "lock"),
        ("preempted", "preempted"),
    ] {
        let cycle = &slow[why]["slow_cycle"];
        // On a busy machine others may have the processor for as long.
        assert!(cycle["causes"].as_array().unwrap().contains(&cause.into()), "{why}: {:#}", slow[why]);
        let usage = &slow[why]["usage"];
        let number = |name: &str| usage[name].as_u64().unwrap_or_else(|| panic!("{name}: {usage:#}"));
        assert!(number("took_ns") > 50_000_000 && number("around_ns") < number("took_ns"), "{usage:#}");
        assert!(why != "computes" || number("on_cpu_ns") >= 50_000_000, "{usage:#}");
        assert!(why != "faults" || number("minor_faults") > 1000, "{usage:#}");
        assert!(why != "preempted" || number("ready_ns") >= 40_000_000, "{usage:#}");
        assert!(why != "sleeps" || number("voluntary_switches") > 0, "{usage:#}");
    }
    assert_eq!(slow["locks"]["slow_cycle"]["holder"]["name"], "keeper", "{:#}", slow["locks"]);
    let usual: Vec<&Value> = kept.iter().filter(|capture| capture["usual_cycle"] == "work").collect();
    assert!(!usual.is_empty() && usual.iter().all(|capture| texts(capture)[0] == "nothing"), "{usual:#?}");
    let (out, _) = read(&["captures"], &remains.ring_path());
    for words in
        ["merely computed longer", "off the processor without waiting (preempted)", "in a blocking call"]
    {
        assert!(out.contains(words), "{words}: {out}");
    }
}

#[test]
fn without_the_time_of_being_ready_nothing_wrong_is_said() {
    let mut victim = plan(&["causes"]).env("RIP_USAGE", "counts").start();
    victim.until("done");
    let kept = captures(&victim.ring_path());
    victim.killed();
    let slow = causes(&kept);
    for (why, possible) in [
        ("computes", &["computed"][..]),
        ("faults", &["page_faults"]),
        ("sleeps", &["not_running"]),
        ("locks", &["lock"]),
        ("preempted", &["preempted", "not_running"]),
    ] {
        let causes = slow[why]["slow_cycle"]["causes"].as_array().unwrap();
        let is_named = causes.iter().any(|cause| possible.contains(&cause.as_str().unwrap()));
        assert!(is_named, "{why}: {:#}", slow[why]);
        assert!(slow[why]["usage"].get("ready_ns").is_none(), "{why}: {:#}", slow[why]);
    }
}

#[test]
fn a_program_that_avoids_system_calls_is_not_measured() {
    let mut victim = plan(&["avoids"]).env("RIP_USAGE", "delays").start();
    victim.until("done");
    let kept = captures(&victim.ring_path());
    victim.killed();
    let [capture] = &kept[..] else { panic!("{kept:#?}") };
    assert!(capture.get("usage").is_none() && capture["slow_cycle"].get("causes").is_none(), "{capture:#}");
}

#[test]
fn a_capture_by_hand_is_shown_with_its_events_after_the_history_is_gone() {
    let mut victim = plan(&["by-hand"]).start();
    victim.until("kept");
    let (remains, kept) = saved_and_killed(victim);
    let [first, second] = &kept[..] else { panic!("{kept:#?}") };
    assert_eq!(texts(first), ["before 1", "kept a text"]);
    assert_eq!(texts(second), ["kept again"], "the rest was marks");
    let (out, _) = read(&["captures", "--color", "never"], &remains.ring_path());
    let lines: Vec<&str> = out.lines().skip(1).collect();
    assert!(
        lines[0].starts_with("victim[") && lines[0].contains(", kept 20") && lines[0].ends_with(" UTC"),
        "{out}"
    );
    assert!(lines[1].contains(" captures.rs:") && lines[1].ends_with(" \"before 1\""), "{out}");
    assert!(lines[2].ends_with(" \"kept a text\""), "{out}");
    let (out, _) = read(&["captures", "-m", "again"], &remains.ring_path());
    assert_eq!(out.matches(", kept 20").count(), 1, "{out}");
    let (info, _) = read(&["info"], &remains.ring_path());
    assert!(info.contains("\ncaptures    2 kept, 0 dropped\n"), "{info}");
    let none = plan_of("events", &["values"]).env("RIP_KEEP", "always").start().wait();
    let (_, errors) = read(&["captures"], &none.ring_path());
    assert!(errors.contains("Nothing was kept: rip_capture! and rip_slow_cycle! keep "), "{errors}");
}

#[test]
fn signal_handlers_may_capture() {
    let mut victim = plan(&["handler"]).env("RIP_SLOTS", "1024").start();
    victim.until("done");
    let kept = captures(&victim.ring_path());
    assert_eq!(kept.len(), CAPTURES_MAX);
    for capture in &kept {
        let last = *texts(capture).last().unwrap();
        assert!(last.starts_with("outside ") || last.starts_with("handled "), "{last}");
    }
    assert!(kept.iter().any(|capture| texts(capture).last().unwrap().starts_with("handled ")));
    victim.kill();
    // As nothing is in the way of another thread, none was dropped.
    assert_eq!(victim.wait().ring().captures_refused, 0);
}

#[test]
fn a_child_keeps_its_captures_in_the_ring_of_its_parent() {
    let mut victim = plan(&["forked"]).start();
    victim.until("kept");
    let kept = captures(&victim.ring_path());
    victim.killed();
    let [child, parent] = &kept[..] else { panic!("{kept:#?}") };
    assert_ne!(child["pid"], parent["pid"]);
    assert_eq!(texts(child), ["in the child", "kept by the child"]);
    assert_eq!(texts(parent), ["in the parent", "kept by the parent"]);
}

#[test]
fn a_ring_with_few_slots_keeps_few_captures_or_none_and_counts_those() {
    for (slots, kept) in [("3", 0), ("4", 1), ("8", 2)] {
        let mut victim = plan(&["by-hand"]).env("RIP_SLOTS", slots).start();
        victim.until("kept");
        assert_eq!(captures(&victim.ring_path()).len(), kept, "{slots}");
        let (_, errors) = read(&["captures"], &victim.ring_path());
        let dropped = "2 captures were dropped: there was no room";
        assert_eq!(errors.contains(dropped), kept == 0, "{slots}: {errors}");
        victim.killed();
    }
}

/// Checks each capture of the victim's `storm` by itself: it has all steps of its thread up to the one that was kept,
/// as far as its words reach.
fn check_storm(captures: &[Value]) {
    for capture in captures {
        let name = capture["name"].as_str().unwrap();
        let texts = texts(capture);
        let last = texts.last().unwrap().strip_suffix(" kept").unwrap_or_else(|| panic!("{capture:#}"));
        let steps: Vec<u64> = texts
            .iter()
            .filter(|text| !text.ends_with(" kept"))
            .map(|text| {
                let (step, thread) = text.split_once(" of ").unwrap();
                assert_eq!(format!("w{thread}"), name, "{capture:#}");
                step.parse().unwrap()
            })
            .collect();
        assert!(steps.windows(2).all(|pair| pair[1] == pair[0] + 1), "{capture:#}");
        assert_eq!(format!("{} of {}", steps.last().unwrap(), &name[1..]), last, "{capture:#}");
    }
}

#[test]
fn captures_at_full_speed_are_whole_alive_and_after_a_kill_at_any_moment() {
    for round in 0..4 * torture() {
        let mut victim = plan(&["storm", "3"]).env("RIP_WORDS", "64").start();
        victim.until("ready");
        let mut seen = 0;
        while seen == 0 {
            let live = captures(&victim.ring_path());
            seen = live.len();
            check_storm(&live);
        }
        victim.kill_after(1000 + 700 * u64::from(round));
        let remains = victim.wait();
        let kept = captures(&remains.ring_path());
        assert!((1..=CAPTURES_MAX).contains(&kept.len()), "{}", kept.len());
        check_storm(&kept);
        // The rest is as in any ring.
        let ring: Ring = remains.ring();
        assert!(ring.captures.len() <= CAPTURES_MAX && ring.slots.len() <= 4 + 1, "{}", ring.slots.len());
    }
}
