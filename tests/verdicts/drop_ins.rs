//! What `check` says of programs that wait for the ends of threads of `librip::thread`, and for initialisations.

use super::ask::{printed, start};
use super::verdicts::{finds, finds_nothing};

/// Each edge says where it is, in the lines of the program.
#[track_caller]
fn says(scenario: &str, parts: &[&str]) {
    let victim = start(scenario);
    let text = |ring: &std::path::Path| printed(&["check"], ring);
    let live = text(&victim.ring_path());
    for found in [live, text(&victim.killed().ring_path())] {
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

#[test]
fn an_initialiser_that_needs_what_it_initialises_is_a_proven_deadlock() {
    finds("once-lock-that-needs-itself", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["loader"]);
    });
    says("once-lock-that-needs-itself", &["waits for an initialisation that it runs itself", "CONFIG"]);
    finds("once-lock-that-joins-its-user", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["loader", "user"]);
    });
    says(
        "once-lock-that-joins-its-user",
        &["    loader[", "] runs scenario::drop_ins::CONFIG", "] waits for the end of user["],
    );
}

#[test]
fn an_initialiser_that_needs_a_lock_of_a_thread_that_waits_for_it_is_a_proven_deadlock() {
    let scenario = "lazy-lock-that-needs-a-lock-of-its-user";
    finds(scenario, &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["loader", "user"]);
    });
    says(
        scenario,
        &["waits for scenario::drop_ins::ROUTES", "] runs scenario::drop_ins::ROUTES", ", begun at "],
    );
}

#[test]
fn initialisations_that_have_ended_are_no_finding() {
    finds_nothing("initialised-by-many");
}
