//! Tasks: `read-rip tasks`, and what `check` says of them.

use crate::support::exports::OF_FUTURE;
use crate::support::fixture::run;
use crate::support::synth::{BIAS, Held, Ring, Site, Slot, Task};

const LOCK: u64 = 0x7f00_0000_1000;
const AT_SITE: u64 = 0x1000;
const WAIT: u64 = 0x1100;
const JOIN: u64 = 0x1200;
const SPAWN: u64 = 0x1300;
const WAITING: u64 = 2;

/// A living process with a worker and three tasks: one in a futurelock, one that waits behind it, one that has ended.
///
/// The first task has two futures. It polled `save` in its first poll only. In its second one, it polled the other
/// future, which waits for the same lock.
pub(crate) fn futurelock() -> Ring {
    let mutex = 1 << 8 | 4 | 64;
    let sites = vec![
        Site::new(AT_SITE, "src/save.rs", 7).within("save"),
        Site::new(WAIT, "src/save.rs", 8).within("save").of(2, mutex, &[4, 3]),
        Site::new(JOIN, "src/main.rs", 20).within("serve"),
        Site::new(SPAWN, "src/main.rs", 9).within("main"),
    ];
    let waits = |since| Held { recursion: OF_FUTURE, ..Held::new(WAITING, LOCK, WAIT).since(since) };
    let task = Task::of_executor(BIAS + SPAWN);
    let locked = Task {
        turn: 4,
        since: Some((4000, true)),
        poller: Some(-1),
        awaits: vec![(BIAS + AT_SITE, None, 1), (BIAS + JOIN, None, 3)],
        entry_turns: vec![(1, true, Some(0)), (3, true, Some(1))],
        ..task.clone()
    };
    let behind = Task {
        turn: 2,
        since: Some((5000, true)),
        poller: Some(-2),
        entry_turns: vec![(1, true, None)],
        ..task.clone()
    };
    let slots = [
        Slot::thread("worker", 10),
        Slot::task("server", 7, locked).has(waits(2000)).has(waits(4000)),
        Slot::task("", 8, behind).has(waits(5000)),
        Slot::task("done", 6, Task { turn: 2, ..task }).exited(),
    ];
    Ring { sites, has_tasks: true, ..Ring::new().with_sites(&[]).with_clock(3) }.with_slots(slots)
}

const LOCK_NAME: &str = "lock of save::? save.rs:8<0x1100>";

#[test]
fn tasks_are_shown_in_groups() {
    let outcome = run(&futurelock(), &["tasks"]);
    let head =
        "server[4321], dead (killed, crashed or _exit): 1 thread; 2 tasks, and the last 1 that have ended";
    assert_eq!(outcome.heading(), head);
    let wait = format!("suspended, waiting for {LOCK_NAME} at save::? save.rs:8<0x1100>");
    let groups = format!("{wait} : 2 tasks, the longest for at least ");
    assert!(outcome.stdout.lines().nth(1).unwrap().starts_with(&groups), "{}", outcome.stdout);
    let verbose = run(&futurelock(), &["tasks", "-va"]).stdout;
    assert!(verbose.contains("\n    server[task 7], task 8 of main.rs:9\n"), "{verbose}");
    assert!(verbose.contains("\nended, made at main::? main.rs:9 : 1 task"), "{verbose}");
    let matching = run(&futurelock(), &["tasks", "-v", "-m", "server"]).stdout;
    assert!(matching.contains("\n    server[task 7]\n"), "{matching}");
}

#[test]
fn a_task_is_shown_with_its_futures_and_what_each_waits_for() {
    let text = run(&futurelock(), &["tasks", "-t"]).stdout;
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    let wait = format!("waits for {LOCK_NAME} at save::? save.rs:8<0x1100>");
    assert!(lines[0].starts_with("server[task 7]: suspended for at least "), "{text}");
    assert!(lines[0].ends_with(", made at main.rs:9, 2 polls"), "{text}");
    assert_eq!(
        lines[1..5],
        [
            "    save::? save.rs:7 (skipped by the last poll of the task)".to_owned(),
            format!("        {wait} (skipped by the last poll of the task)"),
            "    serve::? main.rs:20".to_owned(),
            format!("        {wait}"),
        ]
    );
    assert!(lines[5].starts_with("task 8 of main.rs:9: suspended"), "{text}");
    assert_eq!(lines.len(), 6, "{text}");
}

#[test]
fn awaits_without_room_are_counted() {
    for (left_out, said) in [
        (1, "    1 more await is not shown: a task has room for 8"),
        (2, "    2 more awaits are not shown: a task has room for 8"),
        (65_535, "    at least 65535 more awaits are not shown: a task has room for 8"),
    ] {
        let mut ring = futurelock();
        ring.slots[1].task.as_mut().unwrap().left_out = left_out;
        let text = run(&ring, &["tasks", "-t"]).stdout;
        assert_eq!(text.lines().nth(5), Some(said), "{text}");
        // Where the task was made is known as before.
        assert!(text.lines().next().unwrap().contains(", made at main.rs:9, "), "{text}");
        let tasks = run(&ring, &["tasks", "--json"]).data("task");
        let counts: Vec<_> = tasks.iter().map(|task| task["futures_left_out"].as_u64()).collect();
        assert_eq!(counts, [Some(left_out), None], "{tasks:#?}");
    }
}

#[test]
fn a_futurelock_of_a_dead_process_is_proven() {
    let outcome = run(&futurelock(), &["check"]);
    assert!(outcome.stderr.contains("1 finding in 1 thread, 3 tasks and 1 lock.\n"), "{}", outcome.stderr);
    let text = outcome.stdout;
    let found =
        "proven futurelock: server[task 7] waits for a lock that is promised to another of its futures";
    assert!(text.contains(found), "{text}");
    assert!(text.contains("\n    1 more thread or task is blocked by it\n"), "{text}");
    assert!(text.contains("\n    of 2 tasks: 2 wait for locks"), "{text}");
}

#[test]
fn a_task_that_waits_for_one_lock_in_two_futures_is_one_waiter() {
    let text = run(&futurelock(), &["locks"]).stdout;
    assert!(text.contains("\n  2 tasks wait at save::? save.rs:8<0x1100>, the longest for "), "{text}");
}

#[test]
fn a_futurelock_is_not_proven_if_somebody_else_may_wake_the_task() {
    let mut ring = futurelock();
    ring.slots[1].task.as_mut().unwrap().wakers = Some(3);
    let text = run(&ring, &["check"]).stdout;
    assert!(!text.contains("proven"), "{text}");
    assert!(text.contains("potential futurelock: "), "{text}");
}

#[test]
fn a_task_that_was_woken_is_in_no_futurelock() {
    let mut ring = futurelock();
    ring.slots[1].task.as_mut().unwrap().wakes = 1;
    let text = run(&ring, &["check"]).stdout;
    assert!(!text.contains("futurelock"), "{text}");
}

#[test]
fn info_counts_tasks_apart_from_threads() {
    let text = run(&futurelock(), &["info"]).stdout;
    let expected = "threads     1 in the ring, 0 of them exited; 0 slots were reused\n\
                    tasks       3 in the ring, 1 of them ended\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn refused_tasks_are_mentioned() {
    let ring = Ring { tasks_refused: 5, ..futurelock() };
    for command in ["tasks", "check", "locks"] {
        let outcome = run(&ring, &[command]);
        assert!(outcome.stderr.contains("5 tasks were not recorded"), "{command}: {}", outcome.stderr);
    }
}

#[test]
fn a_ring_without_tasks_says_how_tasks_get_into_it() {
    let outcome = run(&Ring { slots: vec![Slot::thread("worker", 10)], ..Ring::new() }, &["tasks"]);
    let all = outcome.stdout + &outcome.stderr;
    assert!(all.contains("librip::task"), "{all}");
}

#[test]
fn workers_of_an_executor_without_tasks_are_mentioned() {
    let worker = |tid| Slot::thread("tokio-rt-worker", tid);
    let outcome = run(&Ring { slots: vec![worker(10), worker(11)], ..Ring::new() }, &["check"]);
    let remark = "2 threads run async tasks (tokio), and nothing has recorded which";
    assert!(outcome.stderr.contains(remark), "{}", outcome.stderr);
}
