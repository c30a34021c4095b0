//! What `read-rip` reports about programs that are stuck, or only seem to be.

use librip_test_kit::oracle::{Holding, Ring};

use crate::{compile, plan, preload, read_rip};

/// Runs a story until it prints its last line, and kills it. Returns the output of `locks` and `check`.
fn run_story(story: &str) -> (String, String) {
    let (locks, found, _) = told_with_ring(story);
    (locks, found)
}

/// The same, with the ring.
fn told_with_ring(story: &str) -> (String, String, Ring) {
    let mut victim = plan(&compile("stories", &[]), &[story], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    let remains = victim.killed();
    let ring = remains.ring_path();
    // On a busy machine, a wait that began just before the death looks long when the ring is read.
    let found = read_rip(&["check", "--threshold", "1h"], &ring);
    (read_rip(&["locks", "-v"], &ring), found, remains.ring())
}

#[test]
fn a_cycle_is_proven_unless_a_wait_ends_by_itself() {
    let (_, found) = run_story("circle");
    assert!(found.contains("\nproven deadlock: 2 threads wait for one another"), "{found}");
    for part in ["waits for second", "at forth stories.c:", "acquired at back stories.c:"] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let (_, found) = run_story("timed circle");
    assert!(found.contains("\npotential deadlock: 2 threads wait for one another"), "{found}");
    assert!(found.contains("has a time limit") && !found.contains("only ending"), "{found}");
}

#[test]
fn a_thread_that_waits_for_its_own_normal_mutex_is_stuck_unless_another_thread_breaks_the_rules() {
    let (_, found) = run_story("again");
    assert!(found.contains("\nproven deadlock: "), "{found}");
    assert!(
        found.contains("waits for a lock that it holds itself") && found.contains("assumed: "),
        "{found}"
    );
}

#[test]
fn a_thread_that_waits_for_a_semaphore_releases_nothing() {
    let (locks, found) = run_story("unit");
    assert!(locks.contains("units  semaphore at 0x") && locks.contains(" waits for a unit at "), "{locks}");
    assert!(locks.contains("held by ") && locks.contains("at consumes stories.c:"), "{locks}");
    assert!(!found.contains("deadlock"), "{found}");
}

#[test]
fn a_mutex_acquired_twice_is_held_during_a_condition_wait() {
    let (locks, _) = run_story("two levels");
    assert!(locks.contains("held by ") && locks.contains("at waits_with_two stories.c:"), "{locks}");
    assert!(!locks.contains("condition variable"), "{locks}");
}

#[test]
fn a_child_does_not_hold_process_shared_locks_of_its_parent() {
    let (locks, found) = run_story("shared");
    assert!(locks.contains("held by ") && locks.contains(" waits at wants stories.c:"), "{locks}");
    assert!(found.contains("\nsuspected long-wait: 1 thread waits for lock of share stories.c:"), "{found}");
    assert!(found.contains(": the wait may have been short"), "{found}");
}

#[test]
fn locks_without_an_entry_are_released_like_others() {
    let (locks, _, ring) = told_with_ring("many");
    assert!(!locks.contains("held by"), "{locks}");
    assert!(ring.held_overflows > 0, "the table was full");
    for slot in &ring.slots {
        assert_eq!((slot.held_overflowed, &slot.held[..]), (0, &[][..]), "{}", slot.name);
    }
}

#[test]
fn a_mutex_released_by_another_thread_is_not_held_twice() {
    let (locks, found, ring) = told_with_ring("handed over");
    assert!(!locks.contains("by 3 threads"), "{locks}");
    assert!(!found.contains("proven"), "{found}");
    // The search does not always find the holder. But a thread that acquires the mutex again starts a new hold.
    assert_eq!(ring.held_overflows, 0, "former acquisitions do not fill the tables");
    for slot in &ring.slots {
        assert!(slot.held.len() <= 4, "two mutexes: {:x?}", slot.held);
        assert_eq!(slot.held_overflowed, 0);
    }
}

#[test]
fn a_mutex_that_a_wait_returns_after_its_owner_died_no_longer_belongs_to_that_owner() {
    let (locks, found, ring) = told_with_ring("dead owner");
    let holders = ring.slots.iter().flat_map(|slot| &slot.held).filter(|held| held.state == Holding::Held);
    assert_eq!(holders.count(), 1, "{locks}");
    assert!(locks.contains("held by ") && locks.contains("at waits_for_heir stories.c:"), "{locks}");
    assert!(!found.contains("has exited"), "{found}");
}
