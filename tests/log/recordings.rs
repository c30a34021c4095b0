//! Recordings: what a ring's threads recorded while `read-rip record` followed it, however short the histories are.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;

use librip_test_kit::progress::{self, Cell};
use librip_test_kit::reader;
use librip_test_kit::victim::{Plan, Victim, is_root, torture};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::{json, plan, read};

/// Threads of a victim.
pub(crate) const THREADS: usize = 3;

/// A victim whose histories have room for some hundred events.
pub(crate) fn victim() -> (Victim, &'static [Cell]) {
    let mut victim = plan(&["paced", "3"]).env("RIP_SLOTS", "64").start();
    victim.until("ready");
    let cells = progress::map(&victim.dir().join("progress"));
    (victim, &cells[..THREADS])
}

/// A recorder that records already.
pub(crate) struct Recorder {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Recorder {
    pub(crate) fn start(arguments: &[&OsStr]) -> Recorder {
        let mut recorder = Recorder::start_early(arguments);
        let line = recorder.line();
        assert!(line.starts_with("Recording "), "{line}");
        recorder
    }

    /// One that may have nothing to record yet.
    pub(crate) fn start_early(arguments: &[&OsStr]) -> Recorder {
        let mut child = Command::new(reader::program())
            .args(["record", "--interval", "2ms"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the reader");
        let said = BufReader::new(child.stderr.take().expect("a pipe"));
        Recorder { child, said }
    }

    pub(crate) fn of(ring: &Path, target: &Path) -> Recorder {
        Recorder::start(&["-o".as_ref(), target.as_ref(), ring.as_ref()])
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("UTF-8");
        line
    }

    /// Ends it as a user does.
    pub(crate) fn interrupt(&self) {
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
    }

    /// Waits for its end. Returns what it says then.
    pub(crate) fn end(mut self) -> String {
        let mut said = String::new();
        self.said.read_to_string(&mut said).expect("UTF-8");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        said
    }
}

/// Waits until each thread has recorded so many events more.
pub(crate) fn advance(cells: &[Cell], steps: u64) {
    let begun: Vec<u64> = cells.iter().map(|cell| cell.marks.load(Relaxed)).collect();
    for (cell, begun) in cells.iter().zip(begun) {
        while cell.marks.load(Relaxed) < begun + steps {
            std::thread::yield_now();
        }
    }
}

/// The steps of each thread, in order, each checked by itself.
pub(crate) fn steps(ring: &Path) -> BTreeMap<u64, Vec<u64>> {
    let mut steps: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for entry in json(&["log"], "event", ring) {
        let text = entry["text"].as_str().unwrap();
        let (step, rest) = text.split_once(" of ").unwrap();
        let (thread, check) = rest.split_once(": ").unwrap();
        let [step, thread, check] = [step, thread, check].map(|number| number.parse::<u64>().unwrap());
        assert_eq!(check, step ^ thread << 32, "{entry:#}");
        assert_eq!(entry["thread"]["name"], format!("w{thread}"), "{entry:#}");
        steps.entry(thread).or_default().push(step);
    }
    steps
}

pub(crate) fn has_gap(steps: &[u64]) -> bool {
    assert!(steps.is_sorted_by(|one, next| one < next), "each event once, and in order: {steps:?}");
    steps.windows(2).any(|pair| pair[1] != pair[0] + 1)
}

#[test]
fn a_recording_has_all_events_of_a_process_that_is_killed_or_counts_what_it_could_not_see() {
    let (mut victim, cells) = victim();
    let target = victim.dir().join("recording");
    let recorder = Recorder::of(&victim.ring_path(), &target);
    advance(cells, 2000);
    victim.kill();
    let said = recorder.end();
    // The directory goes with it.
    let _remains = victim.wait();
    let is_whole = !said.contains(" overwritten before they were read");
    let certain: Vec<u64> = cells.iter().map(|cell| cell.marks.load(Relaxed)).collect();
    let found = steps(&target);
    assert_eq!(found.len(), THREADS, "{said}");
    for (thread, steps) in found {
        assert!(*steps.last().unwrap() + 1 >= certain[thread as usize], "{said}");
        assert!(!(is_whole && has_gap(&steps)), "{said}");
        // A history of 1024 words has some 200 events.
        assert!(!is_whole || steps.len() >= 2000, "{said}");
    }
    let (_, errors) = read(&["log"], &target);
    assert_eq!(errors.contains(" overwritten before they were read"), !is_whole, "{errors}");
    // Other views have the threads, with as much of their histories as there is without a gap.
    let threads = json(&["-t"], "thread", &target);
    assert_eq!(
        threads.iter().filter(|thread| thread["name"].as_str().unwrap().starts_with('w')).count(),
        THREADS
    );
    let (out, _) = read(&["-t", "--color", "never"], &target);
    assert!(!is_whole || out.lines().any(|line| line.len() > 20_000), "{said}");
}

#[test]
fn a_recording_has_the_last_event_of_a_process_that_is_killed_at_any_instant() {
    for round in 0..2 * u64::from(torture()) {
        let (mut victim, cells) = victim();
        let target = victim.dir().join("recording");
        let recorder = Recorder::of(&victim.ring_path(), &target);
        advance(cells, 10 + 37 * (round % 16));
        victim.kill_after(617 * (round % 16));
        let said = recorder.end();
        // The directory goes with it.
        let _remains = victim.wait();
        let is_whole = !said.contains(" overwritten before they were read");
        let found = steps(&target);
        for (thread, cell) in (0..).zip(cells) {
            let steps = &found[&thread];
            assert!(*steps.last().unwrap() + 1 >= cell.marks.load(Relaxed), "{said}");
            assert!(!(is_whole && has_gap(steps)), "{said}");
        }
    }
}

#[test]
fn what_was_recorded_survives_a_kill_of_the_recorder_at_any_moment() {
    for round in 0..8 * u64::from(torture()) {
        let (victim, cells) = victim();
        let target = victim.dir().join("recording");
        let mut recorder = Recorder::of(&victim.ring_path(), &target);
        advance(cells, 20 + 31 * (round % 8));
        recorder.child.kill().unwrap();
        recorder.child.wait().unwrap();
        let run = Command::new(reader::program()).arg("log").arg(&target).output().expect("the reader");
        let errors = String::from_utf8(run.stderr).expect("UTF-8");
        if !run.status.success() {
            assert!(errors.contains("no image of the ring in it is complete"), "{errors}");
            continue;
        }
        let is_whole = !errors.contains(" overwritten before they were read");
        for (thread, steps) in steps(&target) {
            assert!(!(has_gap(&steps) && is_whole), "thread {thread}: {steps:?}\n{errors}");
        }
        victim.killed();
    }
}

#[test]
fn a_recording_ends_when_it_is_interrupted_and_replaces_no_file() {
    let (victim, cells) = victim();
    let target = victim.dir().join("recording");
    let recorder = Recorder::of(&victim.ring_path(), &target);
    advance(cells, 300);
    recorder.interrupt();
    let said = recorder.end();
    assert!(said.starts_with("Recorded ") && said.contains(" KiB."), "{said}");
    let recorded = std::fs::read(&target).unwrap();
    let again = Command::new(reader::program())
        .args(["record", "--for", "1ms", "-o"])
        .args([&target, &victim.ring_path()])
        .output()
        .expect("the reader");
    let errors = String::from_utf8(again.stderr).expect("UTF-8");
    assert_eq!(again.status.code(), Some(2), "{errors}");
    assert!(errors.contains(" exists already\n"), "{errors}");
    assert_eq!(std::fs::read(&target).unwrap(), recorded);
    // A recording is no ring that can be followed.
    let of_recording = Command::new(reader::program())
        .args(["record", "-o"])
        .args([&victim.dir().join("other"), &target])
        .output()
        .expect("the reader");
    assert_eq!(of_recording.status.code(), Some(2));
    let live: Vec<Value> = json(&["log"], "event", &target);
    assert!(!live.is_empty());
    victim.killed();
}

#[test]
fn a_recording_ends_when_its_disk_is_full_and_has_what_was_recorded_before() {
    if !is_root("a_recording_ends_when_its_disk_is_full_and_has_what_was_recorded_before") {
        return;
    }
    let (victim, cells) = victim();
    let ring = victim.ring_path();
    // The disk is there for this script alone.
    let script = "
        cd \"$VICTIM_DIR\"
        \"$READER\" record --interval 2ms -o mount/recording \"$RING\" 2>errors; echo status $?
        \"$READER\" log mount/recording
    ";
    let plan = Plan::new("sh", &["-c", script]).env("READER", reader::program()).env("RING", &ring);
    let remains = plan.tmpfs("size=256k").run();
    let errors = std::fs::read_to_string(remains.dir().join("errors")).unwrap();
    assert!(remains.stdout.starts_with("status 2\n"), "{}", remains.stdout);
    assert!(
        errors.contains("Error: could not record into mount/recording\nCaused by: No space left"),
        "{errors}"
    );
    assert!(errors.contains("the file keeps what was recorded before"), "{errors}");
    assert!(remains.stdout.lines().filter(|line| line.contains(" of ")).count() > 1000, "{}", remains.stdout);
    advance(cells, 10);
    victim.killed();
}
