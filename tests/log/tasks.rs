//! What a task said over its awaits, while one thread after the other polled it: see `src/bin/carried.rs`.

use std::path::Path;
use std::process::Command;

use librip_test_kit::oracle::Ring;
use librip_test_kit::reader;
use librip_test_kit::victim::{Plan, Remains, Victim};
use serde_json::Value;

use crate::recordings::Recorder;
use crate::{json, read};

/// What the task says in each of its polls.
const STEPS: [&str; 4] = ["step 1", "step 2", "step 3", "step 4"];

/// The task is suspended for good.
fn started(arguments: &[&str]) -> Victim {
    let mut victim = Plan::new(env!("CARGO_BIN_EXE_carried"), arguments).start();
    victim.until("ready");
    victim
}

/// Looks at the ring of the living program, and of the killed one.
fn look(judge: impl Fn(&Path)) -> Remains {
    let victim = started(&[]);
    judge(&victim.ring_path());
    let remains = victim.killed();
    judge(&remains.ring_path());
    remains
}

/// Whether what the reader says of a thread is about the task of this name.
fn is_task(data: &Value, name: &str) -> bool {
    data["tid"].as_u64().is_some_and(|tid| tid >= 1 << 31) && data["name"] == name
}

#[test]
fn the_marks_of_a_task_are_in_its_slot_in_order_whichever_thread_polled_it() {
    let remains = look(|ring| {
        let threads = json(&["-t"], "thread", ring);
        let labels = |thread: &Value| -> Vec<String> {
            let events = thread["events"].as_array().unwrap().iter();
            events.filter_map(|event| event["location"]["label"].as_str().map(str::to_owned)).collect()
        };
        for thread in &threads {
            let mut steps = labels(thread);
            steps.retain(|label| label.starts_with("step "));
            let expected = if is_task(thread, "traveller") { &STEPS[..] } else { &[] };
            assert_eq!(steps, expected, "{thread:#}");
        }
        let (out, _) = read(&["-t"], ring);
        assert!(out.lines().any(|line| line.starts_with("traveller[task 1]: {0}carried.rs:")), "{out}");
        let task = &json(&["tasks", "-m", "traveller"], "task", ring)[0];
        assert_eq!(task["polls"], 4, "{task:#}");
        let by = threads.iter().find(|thread| thread["tid"] == task["polled_by"]).expect("it is recorded");
        assert_eq!(by["name"], "tokio-rt-worker", "{by:#}");
    });
    let ring: Ring = remains.ring();
    for name in ["first", "second", "first again"] {
        assert_eq!(ring.labels(ring.slot_named(name)), ["before the poll", "after the poll"], "{name}");
    }
    let mut labels = ring.labels(ring.slot_named("traveller"));
    labels.retain(|label| label.starts_with("step "));
    assert_eq!(labels, STEPS);
}

#[test]
fn the_events_and_spans_of_a_task_are_in_the_log_with_its_name() {
    look(|ring| {
        let mut entries = json(&["log"], "event", ring);
        entries.retain(|entry| is_task(&entry["thread"], "traveller"));
        let said: Vec<&str> = entries
            .iter()
            .filter(|entry| entry["channel"].is_null())
            .map(|entry| entry["text"].as_str().unwrap())
            .collect();
        let expected =
            ["begins with 1", "goes on with 2", "kept in step 2", "short: 3", "short", "stays after 4"];
        assert_eq!(said, expected);
        // All in the order of the polls.
        let times: Vec<u64> =
            entries.iter().map(|entry| entry["boottime_ns"].as_str().unwrap().parse().unwrap()).collect();
        assert!(times.is_sorted(), "{times:?}");
        let steps = json(&["log", "--channel", "STEPS"], "event", ring);
        let steps: Vec<&str> = steps.iter().map(|entry| entry["text"].as_str().unwrap()).collect();
        assert_eq!(steps, STEPS);
        let (out, _) = read(&["log"], ring);
        assert!(out.contains(" traveller[task 1] goes on with 2  carried.rs:"), "{out}");
        assert!(out.contains(" traveller[task 1] STEPS: step 2  carried.rs:"), "{out}");
    });
}

#[test]
fn a_span_over_awaits_is_open_in_the_task() {
    look(|ring| {
        let spans = json(&["spans"], "span", ring);
        let of = |name: &str| spans.iter().find(|span| span["name"] == name).expect("it has begun");
        let open = of("request")["open"].as_array().unwrap();
        let [open] = open.as_slice() else { panic!("{open:#?}") };
        assert!(is_task(&open["thread"], "homebody"), "{open:#}");
        assert_eq!(open["value"], 4711);
        let short = of("short");
        assert_eq!(
            (&short["ended"], short["open"].as_array().map(Vec::len)),
            (&1.into(), Some(0)),
            "{short:#}"
        );
        let (out, _) = read(&["spans"], ring);
        let request = out.lines().skip_while(|line| !line.starts_with("request  carried.rs:")).nth(1);
        let is_open =
            |line: &str| line.starts_with("  open: homebody[task 2]") && line.ends_with(", with 4711");
        assert!(request.is_some_and(is_open), "{out}");
    });
}

#[test]
fn a_capture_in_a_task_has_what_the_task_did_on_other_threads_before() {
    look(|ring| {
        let captures = json(&["captures"], "capture", ring);
        let [capture] = captures.as_slice() else { panic!("{captures:#?}") };
        assert!(is_task(capture, "traveller"), "{capture:#}");
        let events = capture["events"].as_array().unwrap();
        let texts: Vec<&str> = events.iter().filter_map(|event| event["text"].as_str()).collect();
        assert_eq!(texts, ["begins with 1", "goes on with 2", "kept in step 2"]);
        let (out, _) = read(&["captures"], ring);
        assert!(out.lines().any(|line| line.starts_with("traveller[task 1], kept 20")), "{out}");
    });
}

#[test]
fn a_recording_knows_the_tasks_that_have_ended_and_whose_slots_others_have() {
    let mut victim = started(&["ends"]);
    let target = victim.dir().join("recording");
    let recorder = Recorder::of(&victim.ring_path(), &target);
    victim.go_on();
    victim.until("ended");
    // Until they are in the recording, nobody gets their slots. It may have no complete image yet.
    let mut reader = Command::new(reader::program());
    reader.args(["log", "-m", "^said by"]).arg(&target);
    let has_both = |text: &[u8]| String::from_utf8_lossy(text).matches(" said by ").count() == 2;
    while !has_both(&reader.output().expect("the reader").stdout) {
        librip_test_kit::pause();
    }
    victim.go_on();
    victim.until("replaced");
    let in_ring = json(&["log", "-m", "^said by"], "event", &victim.ring_path());
    assert_eq!(in_ring, [Value::Null; 0], "other tasks have their slots");
    victim.kill();
    recorder.end();
    let _remains = victim.wait();
    let said = json(&["log", "-m", "^said by"], "event", &target);
    let [early, unnamed] = &said[..] else { panic!("{said:#?}") };
    assert!(is_task(&early["thread"], "early") && is_task(&unnamed["thread"], ""), "{early:#} {unnamed:#}");
    let (out, _) = read(&["log"], &target);
    for line in [" early[task 3] said by \"early\"  carried.rs:", " task 4 said by \"\"  carried.rs:"] {
        assert!(out.contains(line), "{line}\n{out}");
    }
    let tasks = json(&["tasks"], "task", &target);
    assert!(tasks.iter().any(|task| task["name"] == "traveller" && task["polls"] == 4), "{tasks:#?}");
    for view in ["-t", "tasks", "spans", "locks", "captures", "info"] {
        let (out, _) = read(&[view], &target);
        assert!(!out.is_empty(), "{view}");
    }
}

#[test]
fn with_ticks_the_times_of_polls_lie_between_the_plain_marks_of_their_task() {
    /// A time that lies between two words.
    const BETWEEN: u64 = 1 << 63;
    let plan = |clock| Plan::new(env!("CARGO_BIN_EXE_carried"), &[]).env("RIP_CLOCK", clock).start();
    for clock in ["ticks", "contended"] {
        let mut victim = plan(clock);
        victim.until("ready");
        let ring = victim.killed().ring();
        let slot = ring.slot_named("traveller");
        let events = slot.events().events;
        let step = |label: &str| events.iter().find(|event| ring.label(event.pc) == label).unwrap().sequence;
        for pair in STEPS.windows(2) {
            let (earlier, later) = (step(pair[0]), step(pair[1]));
            let is_between = |&&(sequence, _): &&(u64, u64)| {
                sequence & BETWEEN != 0 && (earlier + 1..=later).contains(&(sequence & !BETWEEN))
            };
            let times = slot.sampled.iter().filter(is_between).count();
            assert_eq!(times > 0, clock == "ticks", "{clock} {pair:?}: {:?}", slot.sampled);
        }
    }
}
