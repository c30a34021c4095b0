//! Channels: events with words of their own, which frequent events do not replace.

use std::path::Path;
use std::process::Command;

use librip_test_kit::reader;
use librip_test_kit::victim::{Plan, Victim, torture};
use serde_json::Value;

use crate::{json, plan_of, read};

fn plan(arguments: &[&str]) -> Plan {
    plan_of("channels", arguments)
}

/// What the events of a channel say, in order.
fn texts(ring: &Path, channel: &str) -> Vec<String> {
    let text = |entry: &Value| entry["text"].as_str().unwrap().to_owned();
    json(&["log", "--channel", channel], "event", ring).iter().map(text).collect()
}

#[test]
fn rare_events_are_there_after_ten_million_frequent_ones_and_a_kill() {
    let mut victim = plan(&["rare"]).env("RIP_WORDS", "64").start();
    victim.until("done");
    let saved = victim.dir().join("saved.gz");
    read(&["save", "-o", saved.to_str().unwrap()], &victim.ring_path());
    let live = texts(&victim.ring_path(), "RARE");
    let remains = victim.killed();
    let rare: Vec<String> = (0..20).map(|number| format!("rare {number}")).collect();
    let expected =
        [&["serving: port 8080".to_owned()][..], &rare, &["short".into(), "short".into()]].concat();
    assert_eq!(live, expected);
    assert_eq!(texts(&remains.ring_path(), "RARE"), expected, "the same alive and dead");
    assert_eq!(texts(&saved, "RARE"), expected, "and in a saved copy");
    // Sixteen words hold four events of four words.
    assert_eq!(texts(&remains.ring_path(), "SMALL"), ["small 16", "small 17", "small 18", "small 19"]);
    let all = json(&["log"], "event", &remains.ring_path());
    let others: Vec<&str> = all
        .iter()
        .filter(|entry| entry["channel"].is_null())
        .map(|entry| entry["text"].as_str().unwrap())
        .collect();
    assert_eq!(others, ["the last"], "the marks have replaced the others");
    // All channels are in one order.
    let times: Vec<u64> =
        all.iter().map(|entry| entry["boottime_ns"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let spans = json(&["spans"], "span", &remains.ring_path());
    let of =
        |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{spans:#?}"));
    assert_eq!((&of("serving")["open"][0]["value"], &of("short")["ended"]), (&8080.into(), &1.into()));
    let (out, _) = read(&["log", "--level", "warn", "--no-spans"], &remains.ring_path());
    assert!(out.contains(" warn   victim[") && out.contains("] RARE: rare 7  channels.rs:"), "{out}");
    let (out, _) = read(&["info"], &remains.ring_path());
    assert!(out.contains("\nchannel     RARE, 256 words for each thread, records: all\n"), "{out}");
}

/// Runs `read-rip set`. Returns its status, its output and its errors.
fn set(ring: &Path, settings: &[&str]) -> (i32, String, String) {
    let run = Command::new(reader::program()).arg("set").arg(ring).args(settings).output();
    let run = run.expect("the reader");
    let [out, errors] = [run.stdout, run.stderr].map(|text| String::from_utf8(text).expect("UTF-8"));
    (run.status.code().expect("it exits"), out, errors)
}

#[test]
fn channels_are_switched_in_a_running_process() {
    let mut victim = plan(&["switched"]).start();
    let ring = victim.ring_path();
    let mut rounds = 0;
    let mut round = |victim: &mut Victim, evaluated: u32| {
        assert_eq!(victim.line(), format!("round {rounds} evaluated {evaluated}"));
        victim.until("paused");
        rounds += 1;
    };
    round(&mut victim, 2);
    let (status, out, errors) = set(&ring, &["RARE=off"]);
    assert_eq!((status, &*errors), (0, ""), "{out}");
    assert!(out.ends_with(" RARE: off (before: all)\n  SMALL: all\n"), "{out}");
    victim.go_on();
    round(&mut victim, 0);
    let (_, out, _) = set(&ring, &["RARE=error", "SMALL=off"]);
    assert!(out.ends_with(" RARE: from error on (before: off)\n  SMALL: off (before: all)\n"), "{out}");
    victim.go_on();
    round(&mut victim, 1);
    set(&ring, &["SMALL=all", "RARE=trace", "RARE=info"]);
    victim.go_on();
    round(&mut victim, 1);
    set(&ring, &["RARE=all"]);
    victim.go_on();
    round(&mut victim, 2);
    assert_eq!(
        texts(&ring, "RARE"),
        [
            "debug 0", "error 0", "span", "span", "error 2", "error 3", "span", "span", "debug 4", "error 4",
            "span", "span"
        ]
    );
    assert_eq!(texts(&ring, "SMALL"), ["small 0", "small 1", "small 3", "small 4"]);
    let (status, _, errors) = set(&ring, &["OTHER=off"]);
    assert_eq!(status, 2, "{errors}");
    assert!(errors.contains(" has no channel OTHER\nHint: it has RARE, SMALL\n"), "{errors}");
    let (status, _, errors) = set(&ring, &["RARE=loud"]);
    assert_eq!(status, 2, "{errors}");
    assert!(errors.contains("the level is one of trace, debug, info, warn, error, all, off"), "{errors}");
    let remains = victim.killed();
    let (status, _, errors) = set(&remains.ring_path(), &["RARE=off"]);
    assert_eq!(status, 2, "{errors}");
    assert!(errors.contains(" has ended, or it is a copy: no process reads the levels\n"), "{errors}");
}

#[test]
fn the_words_of_a_thread_that_has_ended_are_not_those_of_the_next_one() {
    let mut victim = plan(&["threads"]).env("RIP_SLOTS", "1").start();
    victim.until("started");
    // The last thread has the slot of all before it, and has recorded nothing in the channel yet.
    assert_eq!(texts(&victim.ring_path(), "SMALL"), [""; 0]);
    victim.go_on();
    victim.until("recorded");
    let entries = json(&["log", "--channel", "SMALL"], "event", &victim.ring_path());
    let [entry] = &entries[..] else { panic!("{entries:#?}") };
    assert_eq!((&entry["text"], &entry["thread"]["name"]), (&"from the last".into(), &"last".into()));
    // The history's sequences go on where those of the threads before ended: each recorded three events of four words.
    assert!(entry["sequence"].as_u64().unwrap() > 50 * 3 * 4, "{entry:#}");
    let info = &json(&["info"], "info", &victim.ring_path())[0];
    assert_eq!(info["channels_refused"], 0, "{info:#}");
    victim.killed();
}

#[test]
fn slots_that_change_owners_while_they_are_read_are_no_defect() {
    let mut victim = plan(&["churn"]).env("RIP_SLOTS", "4").start();
    victim.until("ready");
    let mut seen = 0;
    for _ in 0..60 {
        // The status says whether anything was damaged.
        let said = texts(&victim.ring_path(), "SMALL");
        assert!(said.iter().all(|text| text.starts_with("thread ")), "{said:?}");
        seen += said.len();
    }
    assert!(seen > 0);
    victim.killed();
}

#[test]
fn a_thread_without_room_records_nothing_in_its_channel_and_is_counted_once() {
    let mut victim = plan(&["many"]).start();
    victim.until("done");
    let ring = victim.ring_path();
    for channel in ["A", "H"] {
        assert!(!texts(&ring, channel).is_empty(), "{channel}");
    }
    let said = json(&["log"], "event", &ring);
    let beyond = |entry: &&Value| matches!(entry["text"].as_str(), Some("in I" | "in J"));
    assert_eq!(said.iter().filter(beyond).count(), 0);
    let run = Command::new(reader::program()).args(["log", "--channel", "I"]).arg(&ring).output();
    let run = run.expect("the reader");
    let errors = String::from_utf8(run.stderr).expect("UTF-8");
    assert_eq!(run.status.code(), Some(2), "{errors}");
    assert!(errors.contains(" has no channel I\nHint: it has A, B, C, D, E, F, G, H\n"), "{errors}");
    let (_, errors) = read(&["log"], &ring);
    assert!(errors.contains("2 times there was no room for a channel"), "{errors}");
    victim.killed();
}

#[test]
fn signal_handlers_and_forked_children_may_use_channels() {
    let mut victim = plan(&["handler"]).start();
    victim.until("done");
    let said = texts(&victim.ring_path(), "RARE");
    assert!(said.iter().any(|text| text.starts_with("handled ")), "{said:?}");
    for kind in ["handled ", "outside "] {
        let numbers: Vec<u64> =
            said.iter().filter_map(|text| text.strip_prefix(kind)?.parse().ok()).collect();
        // A thread that many handlers interrupt within an event writes its words later, and over newer ones.
        assert!(numbers.is_sorted_by(|one, next| one < next), "{said:?}");
    }
    victim.killed();
    let mut victim = plan(&["forked"]).start();
    victim.until("done");
    assert_eq!(texts(&victim.ring_path(), "RARE"), ["in the parent", "in the child", "in the parent again"]);
    victim.killed();
}

/// Checks each event of the victim's `storm` by itself. Returns their number.
fn check_storm(ring: &Path) -> usize {
    let entries = json(&["log", "--channel", "RARE"], "event", ring);
    for entry in &entries {
        let text = entry["text"].as_str().unwrap();
        let (step, rest) = text.split_once(" of ").unwrap();
        let (thread, check) = rest.split_once(": ").unwrap();
        let [step, thread, check] = [step, thread, check].map(|number| number.parse::<u64>().unwrap());
        assert_eq!(check, step ^ thread << 32, "{entry:#}");
        assert_eq!(entry["thread"]["name"], format!("w{thread}"), "{entry:#}");
    }
    entries.len()
}

#[test]
fn events_of_channels_are_whole_at_full_speed_and_after_a_kill_at_any_moment() {
    for round in 0..2 * torture() {
        let mut victim = plan(&["storm", "3"]).env("RIP_SLOTS", "16").start();
        victim.until("ready");
        let mut seen = 0;
        while seen == 0 {
            seen = check_storm(&victim.ring_path());
        }
        let saved = victim.dir().join("saved.gz");
        read(&["save", "-o", saved.to_str().unwrap()], &victim.ring_path());
        victim.kill_after(1000 + 700 * u64::from(round));
        let remains = victim.wait();
        assert!(check_storm(&remains.ring_path()) > 0);
        check_storm(&saved);
    }
}
