//! Bugs that others have published, and programs that look like them.

use super::{finds, plan, started};
use crate::ask::check;

#[test]
fn explains_bugs_that_were_published() {
    let about_one_lock = [
        ("two-writes", "proven futurelock", "the lock"),
        ("two-writes-of-async-lock", "proven futurelock", "the lock"),
        ("two-locks-of-async-lock", "proven futurelock", "the lock"),
        ("relocked-mutex-of-futures", "proven deadlock", "the lock"),
        // The guard could be elsewhere.
        ("relocked-owned-mutex-of-futures", "suspected deadlock", "the lock"),
        ("thread-lock-in-two-futures", "proven deadlock", "a lock of threads"),
        ("lock-of-a-current-thread", "proven deadlock", "a lock of threads"),
        ("queued-writer", "proven deadlock", "the lock"),
        ("buffered-permits", "potential deadlock", "permits"),
    ];
    for (scenario, found, lock) in about_one_lock {
        finds(scenario, &[found], |answer| assert_eq!(answer.locks(0), [lock], "{scenario}"));
    }
    finds("opposite-mutexes-of-futures", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["saver", "spender"]);
        assert_eq!(answer.locks(0), ["current account", "savings"]);
    });
    finds("philosophers", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["philosopher"; 5]);
    });
    for scenario in ["joins", "joins-after-others-could-wake"] {
        finds(scenario, &["proven deadlock"], |answer| {
            assert_eq!(answer.threads(0), ["first", "second"], "{scenario}");
        });
    }
}

#[test]
fn suspects_what_has_other_explanations_too() {
    let suspected = [("pool-of-one", "starved-runtime"), ("forgotten-permits", "long-wait")];
    for (scenario, kind) in suspected {
        let victim = started(plan(scenario));
        let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
        assert_eq!(answer.findings, [format!("suspected {kind}")], "{scenario}: {answer:#?}");
    }
}

#[test]
fn a_task_that_yields_until_something_changes_is_a_livelock_unless_it_works_meanwhile() {
    finds("yields-for-ever", &["suspected livelock"], |answer| assert_eq!(answer.threads(0), ["yields"]));
    finds("yields-and-works", &[], |_| ());
}

#[test]
fn accuses_nothing_that_looks_like_a_published_bug_and_goes_on() {
    for round in 0..2 * librip_test_kit::victim::torture() {
        let mut victim = started(plan("healthy-twins"));
        for _ in 0..5 {
            let answer = check(&victim.ring_path(), &["--window", "20ms"]);
            let is_sure = |found: &String| !found.starts_with("suspected");
            assert!(!answer.findings.iter().any(is_sure), "{answer:#?}");
        }
        victim.kill_after(u64::from(round * 617 % 5000));
        let answer = check(&victim.wait().ring_path(), &[]);
        assert!(!answer.findings.iter().any(|found| found.starts_with("proven")), "{answer:#?}");
    }
}
