//! What `read-rip check` finds in programs with certain cycles and misuse, and in healthy ones that look like them.

use crate::{compile, plan, preload, read_rip};

/// Runs a story until it is told, and kills it. Returns what `check` says of the living and of the dead process.
fn told(story: &str) -> [String; 2] {
    let mut victim = plan(&compile("order", &[]), &[story], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    let alive = read_rip(&["check", "--threshold", "1h"], &victim.ring_path());
    [alive, read_rip(&["check", "--threshold", "1h"], &victim.killed().ring_path())]
}

#[test]
fn a_thread_that_waits_on_a_condition_cannot_return_without_the_mutex() {
    for found in told("cycle through a condition") {
        assert!(found.contains("proven deadlock: 2 threads wait for one another"), "{found}");
        assert!(found.contains("waits on a condition at waits order.c:"), "{found}");
        assert!(found.contains(" and needs inner"), "{found}");
    }
}

#[test]
fn a_thread_with_more_locks_than_its_table_has_entries_still_waits() {
    for found in told("cycle with forty") {
        assert!(found.contains("proven deadlock: 2 threads wait for one another"), "{found}");
        assert!(found.contains("waits for outer"), "{found}");
    }
}

/// The misuse in a story: these sentences, and no other.
#[track_caller]
fn finds_misuse(story: &str, all: &[&str]) {
    for found in told(story) {
        let misuse: Vec<&str> = found.lines().filter(|line| line.contains("misuse: ")).collect();
        assert_eq!(misuse.len(), all.len(), "{found}");
        for (line, part) in misuse.iter().zip(all) {
            assert!(line.starts_with("proven misuse: ") && line.contains(part), "{part}: {found}");
        }
        assert!(misuse.is_empty() || found.contains(" order.c:"), "{found}");
    }
}

#[test]
fn a_refused_lock_is_misuse_and_how_often_it_was_refused_is_counted() {
    finds_misuse("relock", &["may not lock made"]);
    let [alive, _] = told("relock");
    assert!(
        alive.contains("(EDEADLK)\n    at relock order.c:") && alive.contains(", 3 times, first "),
        "{alive}"
    );
}

#[test]
fn a_refused_unlock_is_misuse() {
    finds_misuse("unlock of another's", &["may not unlock made"]);
}

#[test]
fn a_mutex_that_is_not_destroyed_because_it_is_in_use_is_misuse() {
    finds_misuse("destroy in use", &["may not destroy outer"]);
}

#[test]
fn the_end_of_a_robust_mutexs_owner_is_told_and_that_nobody_repaired_the_mutex() {
    finds_misuse("owner dies", &["got made", "cannot lock made"]);
}

#[test]
fn a_mutex_that_is_initialised_while_it_is_held_is_destroyed() {
    for found in told("initialised while held") {
        assert_eq!(found.matches("proven destroyed-lock: ").count(), 2, "{found}");
        assert!(found.contains("outer") && found.contains("inner"), "{found}");
        assert_eq!(found.matches(" was initialised while ").count(), 2, "{found}");
    }
}

#[test]
fn each_readers_writer_lock_that_is_destroyed_while_it_is_held_is_found() {
    for found in told("rwlocks destroyed while held") {
        assert_eq!(found.matches("proven destroyed-lock: ").count(), 8, "{found}");
        assert_eq!(found.matches(" was destroyed while ").count(), 8, "{found}");
    }
}

#[test]
fn the_use_of_a_destroyed_mutex_is_misuse() {
    finds_misuse("use after destroy", &["used gone", "used gone"]);
}

#[test]
fn a_semaphore_with_too_many_units_is_misuse() {
    finds_misuse("too many units", &["cannot post units"]);
}

#[test]
fn a_wait_on_a_condition_without_the_mutex_is_misuse() {
    finds_misuse("wait without mutex", &["waited on a condition with outer"]);
}

#[test]
fn errors_that_say_nothing_of_a_lock_are_no_misuse() {
    finds_misuse("no misuse", &[]);
}

#[test]
fn a_mutex_that_processes_share_is_one_lock_and_may_be_in_a_cycle() {
    for found in told("cycle of processes") {
        assert!(found.contains("proven deadlock: 2 threads wait for one another"), "{found}");
        assert!(found.contains(" of process "), "{found}");
    }
}

#[test]
fn a_shared_mutex_whose_owner_has_ended_with_its_process_is_not_released() {
    let [alive, _] = told("child dies");
    assert!(alive.contains("proven unreleased: ") && alive.contains("1 thread waits for it"), "{alive}");
    let next = "    next: only ending the process frees these threads; check every exit of the function that acquired it: \
                a return, an exception, a cancellation of the thread, a longjmp\n";
    assert!(alive.contains(next), "{alive}");
}

#[test]
fn a_robust_mutex_that_was_repaired_after_the_end_of_a_process_has_one_holder() {
    for found in told("child dies with robust") {
        assert!(found.contains("\nno findings in "), "{found}");
    }
}

#[test]
fn a_writer_that_readers_starve_is_found_without_times_of_the_readers() {
    let [alive, _] = told("starved writer");
    assert!(alive.contains("suspected starvation: 1 thread waits for table"), "{alive}");
    assert!(alive.contains("at writes order.c:"), "{alive}");
}

#[test]
fn a_mutex_that_is_initialised_while_a_thread_waits_for_it_is_misuse() {
    finds_misuse("initialised in use", &["initialised outer"]);
}

#[test]
fn what_a_thread_did_before_it_created_another_one_has_no_order_with_that() {
    for story in ["order before create", "order before create of creator"] {
        for found in told(story) {
            assert!(!found.contains("lock-order"), "{story}: {found}");
        }
    }
}

#[test]
fn what_a_thread_does_after_it_has_joined_another_one_has_no_order_with_that() {
    for story in ["order after join", "order around c11"] {
        for found in told(story) {
            assert!(!found.contains("lock-order"), "{story}: {found}");
        }
    }
}

#[test]
fn what_a_thread_does_while_another_one_runs_has_an_order() {
    for found in told("order after create") {
        assert!(found.contains("potential lock-order: "), "{found}");
    }
}

#[test]
fn threads_begin_and_end_as_without_the_interposer() {
    told("beginnings and ends");
}
