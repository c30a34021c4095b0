//! Locks over awaits, and what of them is shown.

use std::path::Path;

use serde_json::Value;

use super::{finds, plan, started};
use crate::ask::{check, printed};

/// What each view and format says that the task `both` waits for.
fn awaited_by_both(ring: &Path) -> Vec<(&'static str, String)> {
    let line = |arguments: &[&str], part: &str| {
        let text = printed(arguments, ring);
        let found = text.lines().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("{arguments:?}: {text}")).to_owned()
    };
    // No other thread or task waits for what is recorded.
    let in_brackets = |format: &str| {
        let text = printed(&["export", "-f", format], ring);
        let (_, waits) = text.split_once("[waits ").unwrap_or_else(|| panic!("{format}: {text}"));
        waits.split(']').next().unwrap_or_default().to_owned()
    };
    let of_table = |table: &str, column: &str| {
        let rows = printed(&["export", "-f", "ndjson"], ring);
        let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let row = rows.into_iter().find(|row| row["table"] == table && row["task"] == "both").unwrap();
        row[column].to_string()
    };
    vec![
        ("tasks -t", line(&["tasks", "-t"], "both[task ")),
        ("tasks", line(&["tasks"], ", waiting for ")),
        ("folded stacks", in_brackets("folded")),
        ("profile of Firefox", in_brackets("firefox")),
        ("table of tasks", of_table("tasks", "object")),
    ]
}

verdicts! {
    proves_the_futurelock_of_rfd_609:
        "futurelock" => ["proven futurelock"] threads ["stuck"] locks ["the lock"];
    a_futurelock_with_a_time_limit_is_potential:
        "futurelock-in-time" => ["potential futurelock"] threads ["stuck"] locks ["the lock"];
    proves_a_futurelock_whose_lock_is_held_by_a_future_that_is_not_polled:
        "held-and-left-out" => ["proven futurelock"] threads ["stuck"] locks ["the lock"];
    a_futurelock_of_guards_that_may_be_sent_is_potential:
        "owned-futurelock" => ["potential futurelock"] threads ["stuck"] locks ["the lock"];
    proves_that_an_initialiser_waits_for_a_task_that_waits_for_it:
        "cell-and-lock" => ["proven deadlock"] threads ["holder", "initialiser"] locks ["settings", "the lock"];
    proves_that_two_tasks_wait_for_one_another:
        "opposite-orders" => ["proven deadlock"] threads ["saver", "spender"] locks ["current account", "savings"];
    suspects_a_task_that_nobody_can_wake_and_whose_lock_others_need:
        "lost-waker" => ["suspected never-woken"] threads ["sleeper"] locks ["the lock"];
}

#[test]
fn a_task_that_waits_for_a_lock_or_the_end_of_a_task_waits_for_the_lock_in_every_view() {
    let mut victim = started(plan("lock-or-end"));
    for (view, said) in awaited_by_both(&victim.ring_path()) {
        assert!(said.contains("the lock"), "{view}: {said}");
        assert!(!said.contains("the end of"), "{view}: {said}");
    }
    victim.kill();
}

#[test]
fn says_of_a_lock_that_is_for_the_first_in_line_that_nobody_holds_it() {
    let victim = started(plan("futurelock"));
    let remains = victim.killed();
    let text = printed(&["locks"], &remains.ring_path());
    assert!(
        text.contains("\n  nobody holds it: the first in line can have it") && !text.contains("not known"),
        "{text}"
    );
}

#[test]
fn calls_a_semaphore_one_while_tasks_hold_permits_of_it() {
    let victim = started(plan("buffered-permits"));
    let text = printed(&["locks"], &victim.ring_path());
    assert!(text.contains("\npermits  semaphore at 0x"), "{text}");
}

#[test]
fn shows_the_functions_in_which_a_task_waits() {
    let victim = started(plan("futurelock"));
    let remains = victim.killed();
    let text = printed(&["tasks", "-t"], &remains.ring_path());
    let lines: Vec<&str> = text.lines().skip(1).take(4).collect();
    let is_not_polled = |line: &&str| line.ends_with(" (skipped by the last poll of the task)");
    assert!(lines[..2].iter().all(is_not_polled) && !lines[2..].iter().any(is_not_polled), "{text}");
    // The function, and in it the wait.
    for of in lines.chunks(2) {
        assert!(of[0].starts_with("    locks.rs:"), "{text}");
        assert!(of[1].starts_with("        waits for the lock at locks.rs:"), "{text}");
    }
}

#[test]
fn says_how_many_awaits_of_a_task_have_no_room() {
    let victim = started(plan("many-awaits"));
    let text = printed(&["tasks", "-t"], &victim.killed().ring_path());
    for (name, missing) in [("eight", 0), ("nine", 1), ("eight again", 0)] {
        let lines = text.lines().skip_while(|line| !line.starts_with(&format!("{name}[task ")));
        let below: Vec<&str> = lines.skip(1).take_while(|line| line.starts_with("    ")).collect();
        let awaits = below.iter().filter(|line| line.starts_with("    crowds.rs:")).count();
        let said = below.iter().filter(|line| line.contains(" 1 more await is not shown: ")).count();
        assert_eq!((awaits, said, below.len()), (8, missing, 8 + missing), "{name}: {text}");
    }
}

#[test]
fn says_at_which_await_a_task_holds_a_lock_for_long() {
    let victim = started(plan("lock-over-sleep"));
    let text = printed(&["check", "--threshold", "1ms"], &victim.ring_path());
    let line = text.lines().find(|line| line.starts_with("    meanwhile it is suspended at locks.rs:"));
    assert!(line.is_some_and(|line| line.ends_with(", and holds the lock over that await")), "{text}");
}

#[test]
fn a_wait_that_goes_on_in_another_future_is_no_acquisition() {
    let victim = started(plan("futurelock"));
    let text = printed(&["diff", "--window", "200ms"], &victim.ring_path());
    assert!(!text.contains("acquisition"), "{text}");
    let text = printed(&["locks", "--json"], &victim.ring_path());
    let lock = text.lines().find(|line| line.contains("\"the lock\"")).expect("it is listed");
    let lock: Value = serde_json::from_str(lock).unwrap();
    // The main thread has acquired it once.
    assert_eq!(lock["data"]["acquisitions"], 1, "{lock}");
}

#[test]
fn a_task_with_the_shortest_history_has_all_that_a_verdict_needs() {
    let victim = started(plan("opposite-orders").env("RIP_WORDS", "16"));
    assert_eq!(victim.ring_now(&victim.ring_path()).unwrap().slots[0].words.len(), 16);
    let answer = check(&victim.ring_path(), &[]);
    assert_eq!(answer.findings, ["proven deadlock"], "{answer:#?}");
    assert_eq!(answer.threads(0), ["saver", "spender"]);
    assert_eq!(answer.locks(0), ["current account", "savings"]);
    let text = printed(&["tasks", "-t"], &victim.ring_path());
    assert!(text.contains("    holds savings, acquired at locks.rs:"), "{text}");
}
