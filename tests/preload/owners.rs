//! Who can release a lock, when a lock begins and ends, and what keeps threads from running at the same time: what
//! `check` concludes from each.

use librip_test_kit::victim::Remains;

use crate::{compile, plan, preload, read_rip};

/// On a busy machine, a wait that began just before the death looks long when the ring is read.
const CHECK: [&str; 3] = ["check", "--threshold", "1h"];

/// Runs a story until it prints its last line. Returns the output of `check` while the program lives and after its
/// death.
fn told(story: &str) -> [String; 2] {
    let (live, remains) = run(story);
    [live, read_rip(&CHECK, &remains.ring_path())].map(|told| findings(&told).to_owned())
}

/// What `check` printed after the heading.
fn findings(told: &str) -> &str {
    told.split_once('\n').unwrap_or_default().1
}

fn run(story: &str) -> (String, Remains) {
    let mut victim = plan(&compile("owners", &[]), &[story], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    let live = read_rip(&CHECK, &victim.ring_path());
    (live, victim.killed())
}

#[track_caller]
fn finds_nothing(story: &str) {
    for found in told(story) {
        assert!(found.starts_with("no findings"), "{story}: {found}");
    }
}

#[track_caller]
fn finds(story: &str, beginning: &str) -> [String; 2] {
    let told = told(story);
    for found in &told {
        assert!(found.starts_with(beginning), "{story}: {found}");
    }
    told
}

const PREMISE: &str = "    assumed: no other thread releases";

#[test]
fn a_cycle_of_mutexes_that_only_their_owners_can_release_is_proven() {
    for story in ["recursive circle", "checking circle", "robust circle"] {
        for found in finds(story, "proven deadlock: 2 threads wait for one another") {
            assert!(!found.contains(PREMISE), "{story}: {found}");
        }
    }
}

#[test]
fn a_cycle_of_normal_mutexes_is_proven_on_a_premise_that_the_finding_names() {
    for found in finds("normal circle", "proven deadlock: 2 threads wait for one another") {
        assert!(found.contains(PREMISE), "{found}");
    }
}

#[test]
fn a_mutex_that_was_handed_over_before_proves_nothing() {
    for story in ["handed over, then a circle", "another handed over, then a circle"] {
        finds(story, "suspected deadlock: 2 threads wait for one another");
    }
}

#[test]
fn mutexes_that_are_acquired_elsewhere_than_those_handed_over_are_trusted() {
    for story in ["handed over, then a circle elsewhere", "handed over often, then a circle elsewhere"] {
        finds(story, "proven deadlock: 2 threads wait for one another");
    }
}

#[test]
fn a_mutex_that_its_owner_kept_is_unreleased() {
    for found in finds("leaks", "proven unreleased: first") {
        assert!(found.contains(PREMISE), "{found}");
    }
}

#[test]
fn a_mutex_that_is_initialised_again_has_no_holder() {
    finds_nothing("begins again");
    finds_nothing("begins again in the child");
}

#[test]
fn a_mutex_that_begins_again_without_a_call_is_not_proven_unreleased() {
    for found in told("begins again by hand") {
        assert!(!found.contains("proven"), "{found}");
    }
}

#[test]
fn two_mutexes_at_one_address_have_no_order() {
    finds_nothing("one address");
    finds_nothing("one address, destroyed");
}

#[test]
fn a_semaphore_of_one_unit_is_a_gate() {
    finds_nothing("gate");
    finds("wide gate", "potential lock-order");
}

#[test]
fn a_mutex_that_is_handed_on_is_a_gate() {
    for found in told("handed on") {
        assert!(!found.contains("lock-order"), "{found}");
    }
}

#[test]
fn what_a_thread_did_before_another_one_began_is_suspected_only() {
    for story in ["one after the other", "one after the other, C11"] {
        for found in finds(story, "suspected lock-order: ") {
            assert!(found.contains("before another one began"), "{story}: {found}");
        }
    }
    finds_nothing("before the threads");
    finds("side by side", "potential lock-order");
}
