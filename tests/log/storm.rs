//! Events at full speed: none is invented, none is torn, and what was stored before SIGKILL is read back.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use librip_test_kit::progress;
use librip_test_kit::reader;
use librip_test_kit::victim::torture;
use serde_json::Value;

use crate::{json, plan};

const THREADS: usize = 3;

/// Checks each event of the victim's `storm` by itself. Returns the steps of each thread, in order.
pub(crate) fn steps(ring: &Path) -> HashMap<String, Vec<u64>> {
    let mut steps: HashMap<String, Vec<u64>> = HashMap::new();
    let mut last_ns = 0;
    for entry in json(&["log"], "event", ring) {
        let thread = entry["thread"]["name"].as_str().unwrap();
        let index: u64 = thread.strip_prefix('w').unwrap().parse().unwrap();
        let ns: u64 = entry["boottime_ns"].as_str().unwrap().parse().unwrap();
        assert!(ns >= last_ns, "in the order of their times: {entry}");
        last_ns = ns;
        let number = |at: usize| match &entry["values"][at] {
            Value::Number(number) => number.as_u64().unwrap(),
            text => text.as_str().unwrap().parse::<u64>().unwrap(),
        };
        let mixed = |step: u64| step.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index;
        match (entry["kind"].as_str().unwrap(), entry["span"].as_str()) {
            ("event", _) => {
                let step = number(0);
                assert_eq!(number(1), mixed(step), "{entry}");
                let letter = char::from(b'a' + (step % 26) as u8).to_string();
                let (len, text) = (step as usize % 60, entry["values"][2].as_str().unwrap());
                let whole = if len <= 48 { letter.repeat(len) } else { letter.repeat(48) + "..." };
                assert_eq!(text, whole, "{entry}");
                steps.entry(thread.to_owned()).or_default().push(step);
            }
            ("begin", Some("outer")) => drop(number(0)),
            ("begin", Some("inner")) => drop(number(0)),
            ("end", Some(_)) => assert!(entry["took_ns"].is_u64(), "{entry}"),
            other => panic!("{other:?}: {entry}"),
        }
    }
    steps
}

#[test]
fn events_of_running_threads_are_never_invented_or_torn() {
    let mut victim = plan(&["storm", "3"]).env("RIP_WORDS", "256").start();
    victim.until("ready");
    let mut read = 0;
    for _ in 0..10 * torture() {
        for steps in steps(&victim.ring_path()).into_values() {
            assert!(steps.is_sorted_by(|one, next| one < next), "{steps:?}");
            read += steps.len();
        }
    }
    assert!(read > 0, "some events of running threads are read");
    let stored: u64 =
        progress::read(&victim.killed().dir().join("progress")).iter().map(|cell| cell[2]).sum();
    eprintln!("{stored} events stored, and twice as many spans; {read} of the events read meanwhile");
}

#[test]
fn following_shows_each_event_once_and_ends_with_the_process() {
    let mut victim = plan(&["crowded"]).start();
    victim.until("open");
    let mut reader = Command::new(reader::program())
        .args(["log", "--follow"])
        .arg(victim.ring_path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines().map(Result::unwrap);
    let opened = lines.by_ref().filter(|line| line.contains(" nested: ")).take(20).count();
    assert_eq!(opened, 20);
    // The reader has shown all that there is. The rest is recorded while it follows.
    victim.go_on();
    let remains = victim.wait();
    let rest: Vec<String> = lines.collect();
    assert_eq!(rest.iter().filter(|line| line.contains(" end ")).count(), 20, "{rest:#?}");
    assert_eq!(rest.iter().filter(|line| line.contains(" 0 1 2 3 4 5 6 7  ")).count(), 1, "{rest:#?}");
    assert_eq!(rest.len(), 21, "{rest:#?}");
    assert!(reader.wait().unwrap().success());
    drop(remains);
}

#[test]
fn handlers_may_record_at_any_instruction() {
    let remains = plan(&["handlers"]).env("RIP_WORDS", "2048").run();
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    let (_, errors) = crate::read(&["log"], &remains.ring_path());
    // Only the oldest event may have lost words.
    let lost = errors.lines().filter(|line| line.contains("not shown")).collect::<Vec<_>>();
    assert!(lost.iter().all(|line| line.starts_with("1 event ") || line.contains("operand")), "{errors}");
    let entries = json(&["log"], "event", &remains.ring_path());
    let (mut outside, mut inside) = (Vec::new(), 0);
    for entry in entries.iter().filter(|entry| entry["kind"] == "event") {
        let text = entry["text"].as_str().unwrap();
        match text.strip_suffix(" outside also by value") {
            Some(step) => outside.push(step.parse::<u64>().unwrap()),
            None => {
                assert_eq!(text, "11 in the handler by value");
                inside += 1;
            }
        }
    }
    assert!(outside.windows(2).all(|pair| pair[1] == pair[0] + 1), "{outside:?}");
    assert!(outside.last() >= Some(&20_000), "{outside:?}");
    assert!(inside > 0, "some handlers ran among the last events");
    let spans = json(&["spans"], "span", &remains.ring_path());
    assert!(spans.iter().all(|span| span["open"] == Value::Array(Vec::new())), "{spans:#?}");
}

#[test]
fn an_event_that_handlers_overtake_leaves_no_damage_and_no_wrong_event() {
    let mut micros = 100;
    for _ in 0..20 * torture() {
        let mut victim = plan(&["overtaken"]).env("RIP_WORDS", "1024").start();
        victim.until("ready");
        let check = |ring: &Path| {
            // The status says whether anything was damaged.
            for entry in json(&["log"], "event", ring) {
                let number = |at: usize| match &entry["values"][at] {
                    Value::Number(number) => number.as_u64().unwrap(),
                    text => text.as_str().unwrap().parse::<u64>().unwrap(),
                };
                assert_eq!(number(1), number(0).wrapping_mul(0x9e37_79b9_7f4a_7c15), "{entry}");
            }
        };
        check(&victim.ring_path());
        victim.kill_after(micros);
        check(&victim.wait().ring_path());
        micros = micros * 7 % 20_011;
    }
}

#[test]
fn what_a_killed_program_has_stored_is_read_back() {
    let mut micros = 1;
    for _ in 0..8 * torture() {
        let mut victim = plan(&["storm", "3"]).env("RIP_WORDS", "256").start();
        victim.until("ready");
        victim.kill_after(micros);
        let remains = victim.wait();
        let cells = progress::read(&remains.dir().join("progress"));
        let all = steps(&remains.ring_path());
        for (index, &[_, _, stored, _]) in cells.iter().enumerate().take(THREADS) {
            let none = Vec::new();
            let steps = all.get(&format!("w{index}")).unwrap_or(&none);
            // It counts an event after it has stored it: one more may be there.
            let last = steps.last().map_or(0, |&last| last + 1);
            assert!(last == stored || last == stored + 1, "w{index}: {stored} stored, read up to {last}");
            assert!(steps.windows(2).all(|pair| pair[1] == pair[0] + 1), "{steps:?}");
            let spans = json(&["spans"], "span", &remains.ring_path());
            let open = spans.iter().flat_map(|span| span["open"].as_array().unwrap());
            let of_thread = open.filter(|open| open["thread"]["name"] == format!("w{index}")).count();
            assert!(of_thread <= 2, "{spans:#?}");
        }
        micros = micros * 7 % 20_011;
    }
}
