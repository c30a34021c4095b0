//! Threads of `librip::thread`: what `check` says of a program that joins them, and ends scopes, under a lock.

use super::ask::{read_rip, start};
use super::verdicts::{finds, finds_nothing};

/// Each edge says where it is, in the lines of the program.
#[track_caller]
fn says(scenario: &str, parts: &[&str]) {
    let mut victim = start(scenario);
    let text = |ring: &std::path::Path| String::from_utf8(read_rip(&["check"], ring).stdout).unwrap();
    let live = text(&victim.ring_path());
    victim.kill();
    for found in [live, text(&victim.wait().ring_path())] {
        for part in parts {
            assert!(found.contains(part), "{scenario}: {part}: {found}");
        }
    }
}

#[test]
fn a_lock_held_over_a_recorded_join_whose_thread_wants_it_is_a_proven_deadlock() {
    finds("recorded-join-under-a-lock", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["closer", "joiner"]);
    });
    says(
        "recorded-join-under-a-lock",
        &[
            "] waits for the end of closer[",
            " drop_ins.rs:",
            "hold no lock that a thread needs while waiting",
        ],
    );
}

#[test]
fn a_lock_held_over_the_end_of_a_scope_whose_thread_wants_it_is_a_proven_deadlock() {
    for scenario in ["scope-under-a-lock", "scope-of-scopes"] {
        finds(scenario, &["proven deadlock"], |answer| {
            assert_eq!(answer.threads(0), ["closer", "owner"]);
        });
        says(scenario, &["owner[", "] waits for the end of closer[", " drop_ins.rs:"]);
    }
}

#[test]
fn a_join_of_a_thread_that_waits_to_be_woken_is_counted_as_such() {
    says("recorded-join-of-an-idle-thread", &["1 waits for a message"]);
}

#[test]
fn what_is_ordered_by_recorded_joins_is_no_lock_order() {
    finds_nothing("opposite-orders-around-a-join");
}
