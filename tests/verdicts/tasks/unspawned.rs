//! Futures that no recorded task polls: tokio's own `spawn` runs them.

use std::path::Path;

use librip_test_kit::reader;
use librip_test_kit::run::of_type;

use super::{plan, started};
use crate::ask::{check, printed};

/// What of a task or thread cannot be true of a future that any thread may poll.
const WRONG: [&str; 6] =
    ["deadlock", "double-lock", "nested-read", "unlock-without-lock", "lock-order", "convoy"];

#[test]
fn guards_that_go_from_worker_to_worker_leave_nothing_behind() {
    let victim = started(plan("unspawned-healthy"));
    nothing_is_held(&victim.ring_path());
    nothing_is_held(&victim.killed().ring_path());
}

#[track_caller]
fn nothing_is_held(ring: &Path) {
    let lines = reader::ask(&["locks", "--json"], ring).json();
    let unlisted: Vec<_> = lines.iter().filter_map(|line| line["data"]["held_unlisted"].as_u64()).collect();
    assert_eq!(unlisted, [0], "{lines:#?}");
    for lock in of_type(&lines, "lock") {
        for list in ["holders", "waiters"] {
            let is_empty = lock[list].as_array().is_none_or(Vec::is_empty);
            assert!(is_empty, "{list}: {lock}");
        }
    }
}

/// Asserts that nothing is found and nothing is judged, while the process lives and after it was killed.
#[track_caller]
fn is_not_judged(scenario: &str) {
    let victim = started(plan(scenario));
    for _ in 0..3 {
        says_not_judged(&victim.ring_path());
    }
    says_not_judged(&victim.killed().ring_path());
}

#[track_caller]
fn says_not_judged(ring: &Path) {
    let answer = check(ring, &[]);
    assert_eq!((answer.findings.as_slice(), answer.status), (&[][..], 3), "{answer:#?}");
    let text = printed(&["check"], ring);
    let sentence = "not judged: futures hold or wait for locks, and belong to no recorded task";
    let next = "next: record all tasks: build the program with --cfg tokio_unstable";
    assert!(text.contains(sentence) && text.contains(next) && text.contains("librip_tokio::spawn"), "{text}");
    let count = text.lines().find(|line| line.contains(" of futures which belong to no recorded task"));
    let events: u64 = count.unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let of_tasks = reader::ask(&["tasks"], ring).stderr;
    assert!(events > 0 && of_tasks.contains(next), "{text}{of_tasks}");
}

#[test]
fn busy_futures_whose_guards_go_from_worker_to_worker_are_accused_of_nothing() {
    is_not_judged("unspawned-busy");
}

#[test]
fn opposite_orders_of_futures_are_no_wait_of_a_worker_for_itself() {
    is_not_judged("unspawned-opposite-orders");
    let victim = started(plan("unspawned-opposite-orders"));
    let text = printed(&["locks"], &victim.ring_path());
    assert_eq!(text.matches("held by a future polled by tokio-rt-worker[").count(), 2, "{text}");
}

#[test]
fn a_task_that_waits_for_a_future_is_told_who_polled_it() {
    let victim = started(plan("unspawned-keeps-what-a-task-needs"));
    let is_right = |answer: &super::Answer| {
        assert!(!answer.accuses(&WRONG), "{answer:#?}");
        assert_ne!(answer.status, 0, "{answer:#?}");
    };
    is_right(&check(&victim.ring_path(), &["--threshold", "1ms"]));
    let text = printed(&["check", "--threshold", "1ms"], &victim.ring_path());
    assert!(text.contains("a future polled by tokio-rt-worker["), "{text}");
    is_right(&check(&victim.ring_path(), &[]));
    is_right(&check(&victim.killed().ring_path(), &[]));
}
