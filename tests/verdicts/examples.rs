//! The examples of async programs: `read-rip` says of them what their first comments promise.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use librip_test_kit::reader;
use librip_test_kit::tmux::Tmux;
use librip_test_kit::victim::{DEADLINE, Plan, Victim};

use super::ask::{check, printed};

fn stuck(program: &str) -> Victim {
    let mut victim = Plan::new(program, &[]).start();
    victim.until("stuck");
    victim
}

/// `FILE:LINE` of the line with this text in an example.
fn place(file: &str, source: &str, text: &str) -> String {
    let line = source.lines().position(|line| line.contains(text)).unwrap();
    format!("{file}:{}", line + 1)
}

#[test]
fn the_futurelock_is_proven_and_both_futures_are_shown_live_and_after_a_kill() {
    let source = include_str!("../../examples/src/bin/futurelock.rs");
    let lines =
        [r#"save(&store, "data")"#, r#"save(&store, "a request takes long")"#, "store.lock().await.push"];
    let [left_out, awaited, lock] = lines.map(|line| place("futurelock.rs", source, line));
    let victim = stuck(env!("CARGO_BIN_EXE_example-futurelock"));
    // The task that gets the lock may not have been polled since.
    let start = Instant::now();
    let name = loop {
        let answer = check(&victim.ring_path(), &[]);
        if answer.findings == ["proven futurelock"] {
            assert_eq!((answer.locks(0), answer.status), (vec!["store".into()], 1));
            break answer.threads(0).remove(0);
        }
        assert!(start.elapsed() < DEADLINE, "{answer:#?}");
    };
    let shows = |ring: &Path| {
        let tasks = printed(&["tasks", "-t"], ring);
        let of_it: Vec<&str> =
            tasks.lines().skip_while(|line| !line.starts_with(&format!("{name}[task "))).take(5).collect();
        assert!(
            of_it[0].contains("]: suspended for ") && of_it[0].contains(", waiting for store at "),
            "{tasks}"
        );
        let not_polled = " (skipped by the last poll of the task)";
        let expected = [
            format!("    {left_out}{not_polled}"),
            format!("        waits for store at {lock}{not_polled}"),
            format!("    {awaited}"),
            format!("        waits for store at {lock}"),
        ];
        assert_eq!(of_it[1..], expected, "{tasks}");
    };
    shows(&victim.ring_path());
    let remains = victim.killed();
    let ring = remains.ring_path();
    shows(&ring);
    let said = printed(&["check"], &ring);
    let expected = [
        format!("\nproven futurelock: {name}[task "),
        "] waits for a lock that is promised to another of its futures".to_owned(),
        "] waits for store".to_owned(),
        format!(
            " at {lock}, which nobody holds: the first in line is another future of it, which waits at {lock}"
        ),
        "\n    2 more threads or tasks are blocked by it\n".to_owned(),
    ];
    for part in &expected {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}

#[test]
fn the_starved_runtime_is_proven_while_it_lives_and_its_requests_are_ready() {
    let source = include_str!("../../examples/src/bin/starved.rs");
    let [computes, asks] = ["rip_snap!(", "for number in"].map(|line| place("starved.rs", source, line));
    let victim = stuck(env!("CARGO_BIN_EXE_example-starved"));
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert_eq!(answer.findings, ["proven starved-runtime"], "{answer:#?}");
    let busy = answer.threads(0);
    assert_eq!(busy.iter().filter(|name| *name == "report").count(), 2, "{answer:#?}");
    let tasks = printed(&["tasks", "-t"], &victim.ring_path());
    let all = |begin: &str, state: &str| {
        let is_so = |line: &&str| line.starts_with(begin) && line.contains(state);
        tasks.lines().filter(is_so).count()
    };
    assert_eq!(all("report[task ", "]: polled by tokio-rt-worker["), 2, "{tasks}");
    assert_eq!(all("report[task ", &format!(" {computes}, made at starved.rs:")), 2, "{tasks}");
    assert_eq!(all("request ", "]: ready and not polled for "), 5, "{tasks}");
    let groups = printed(&["tasks"], &victim.ring_path());
    let (file, line) = asks.split_once(':').unwrap();
    let made = format!("ready and not polled, made at {file}:{} : 5 tasks", line.parse::<u32>().unwrap() + 1);
    assert!(groups.contains(&made), "no {made:?} in {groups}");
}

/// A server of so many threads, all of which wait for the janitor.
fn stuck_server(threads: &str) -> Victim {
    let mut victim = Plan::new(env!("CARGO_BIN_EXE_example-server"), &["--threads", threads]).start();
    victim.until("stuck: all workers wait");
    victim
}

#[test]
fn a_stuck_server_that_was_killed_is_a_long_wait_however_few_threads_it_has() {
    for threads in ["1", "2", "5", "12", "40"] {
        let victim = stuck_server(threads);
        let remains = victim.killed();
        let answer = check(&remains.ring_path(), &[]);
        assert_eq!(answer.findings, ["suspected long-wait"], "{threads} threads: {answer:#?}");
        let text = printed(&["check"], &remains.ring_path());
        assert!(text.contains("which janitor["), "{threads} threads: {text}");
        assert!(text.contains(" from sessions.rs:"), "{threads} threads: {text}");
        assert!(text.contains(" passed ") || text.contains("did not pass "), "{threads} threads: {text}");
    }
}

/// For how long the first of the threads has waited at least, by a finding.
fn longest_wait(ring: &Path) -> Duration {
    let answer = check(ring, &[]);
    Duration::from_nanos(answer.finding()["evidence"]["longest_wait_ns"].as_u64().expect("a time"))
}

#[test]
fn a_recording_knows_how_long_threads_waited_that_recorded_nothing_more() {
    let victim = stuck_server("5");
    let waited = Instant::now();
    // The threads wait meanwhile.
    let alive = longest_wait(&victim.ring_path());
    let waited = waited.elapsed();
    let target = victim.dir().join("recording");
    let mut record = Command::new(reader::program());
    record.args([OsStr::new("record"), OsStr::new("-o"), target.as_os_str(), victim.ring_path().as_os_str()]);
    let mut recorder = record.stderr(Stdio::null()).spawn().expect("the reader");
    let start = Instant::now();
    // It asks whether the process lives, and then copies the ring.
    while !target.metadata().is_ok_and(|metadata| metadata.len() > 4096) {
        assert!(start.elapsed() < DEADLINE, "nothing is recorded");
        librip_test_kit::pause();
    }
    let remains = victim.killed();
    assert!(recorder.wait().expect("the recorder").success());
    let (recorded, left) = (longest_wait(&target), longest_wait(&remains.ring_path()));
    assert!(recorded >= waited && recorded > left, "{recorded:?}, {left:?}, {waited:?}, alive {alive:?}");
}

#[test]
fn the_live_screen_keeps_how_long_threads_had_waited_when_the_process_died() {
    let victim = stuck_server("5");
    let line = format!("{} top {}", reader::program().display(), victim.ring_path().display());
    let Some(tmux) = Tmux::start("kept", (200, 40), &line) else { return };
    let longest = |screen: &str| {
        let (_, longest) = screen.split_once("the longest for ").unwrap_or_else(|| panic!("{screen}"));
        longest.lines().next().unwrap_or_default().trim().to_owned()
    };
    // The first answer is after a window of 200 ms.
    let alive = longest(&tmux.shows("which janitor["));
    let remains = victim.killed();
    let dead = longest(&tmux.shows("DEAD"));
    assert!(alive.ends_with("ms") || alive.ends_with(" s"), "{alive}");
    assert!(dead.starts_with("at least ") && !dead.ends_with("us"), "alive: {alive}, dead: {dead}");
    assert!(longest_wait(&remains.ring_path()) < Duration::from_millis(100), "the ring does not have it");
}
