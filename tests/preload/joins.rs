//! Threads that wait for the ends of threads, and at barriers: what `read-rip` reports, live and after a kill.

use std::path::Path;

use librip_test_kit::oracle::{Holding, Ring};

use crate::{compile, plan, preload, read_rip};

/// Runs a story until it prints its last line. Returns what `check` says of it while it lives and when it was killed,
/// and its ring.
fn told(story: &str) -> ([String; 2], Ring) {
    let mut victim = plan(&compile("joins", &["-pthread"]), &[story], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    let check = |ring: &Path| read_rip(&["check", "--threshold", "1h"], ring);
    let live = check(&victim.ring_path());
    let remains = victim.killed();
    let dead = check(&remains.ring_path());
    ([live, dead], remains.ring())
}

#[track_caller]
fn is_proven(story: &str, join_in: &str) {
    for found in told(story).0 {
        assert!(found.contains("\nproven deadlock: 2 threads wait for one another"), "{story}: {found}");
        for part in [
            " waits for the end of ",
            &format!(" at {join_in} joins.c:"),
            " waits for ledger",
            "acquired at closes",
            "hold no lock that a thread needs while waiting for the end of that thread",
        ] {
            assert!(found.contains(part), "{story}: {part}: {found}");
        }
    }
}

#[test]
fn a_lock_held_over_a_join_whose_thread_wants_it_is_a_proven_deadlock() {
    is_proven("joined", "plainly");
    is_proven("joined, C11", "closes_c11");
}

#[test]
fn a_join_with_a_time_limit_makes_the_deadlock_potential() {
    for story in ["joined in time", "joined by a clock"] {
        for found in told(story).0 {
            assert!(found.contains("\npotential deadlock: 2 threads"), "{story}: {found}");
            assert!(
                found.contains(" waits for the end of ") && found.contains("time limit"),
                "{story}: {found}"
            );
        }
    }
}

#[test]
fn the_end_of_a_thread_without_marks_is_waited_for_too() {
    let (answers, ring) = told("joined without marks");
    assert!(answers.iter().all(|found| !found.contains("deadlock")), "{answers:#?}");
    let [_, dead] = answers;
    assert!(
        dead.contains("1 waits for a lock") && dead.contains("1 waits for the end of a thread"),
        "{dead}"
    );
    assert_eq!(ring.slots.len(), 2, "the thread that joins, and the one that wants its lock");
}

#[test]
fn a_thread_at_a_barrier_is_counted_as_such() {
    let ([live, dead], _) = told("barrier");
    assert!(dead.contains("1 waits at a barrier"), "{dead}");
    for found in [&live, &dead] {
        assert!(found.contains("    barrier three"), "{found}");
        assert!(found.contains(": 1 of the 3 threads that it takes waits there\n"), "{found}");
    }
    assert!(!live.contains("deadlock") && !dead.contains("deadlock"), "{live}{dead}");
}

#[test]
fn a_join_that_has_ended_leaves_nothing_behind() {
    let (answers, ring) = told("ended");
    for found in &answers {
        assert!(!found.contains("deadlock"), "{found}");
        assert!(!found.contains("the end of a thread"), "{found}");
    }
    let left: Vec<&str> = ring
        .slots
        .iter()
        .filter(|slot| slot.held.iter().any(|held| held.state == Holding::ThreadWait))
        .map(|slot| &*slot.name)
        .collect();
    assert!(left.is_empty(), "they wait for threads: {left:?}");
}

/// The program's own wrapper and the interposer both record such a join.
#[test]
fn a_join_that_two_record_is_one_wait() {
    let mut victim =
        plan(Path::new(env!("CARGO_BIN_EXE_scenario")), &["recorded-join-under-a-lock"], &[preload()])
            .start();
    victim.until("ready");
    let live = read_rip(&["check"], &victim.ring_path());
    let remains = victim.killed();
    let entries = |slot: &librip_test_kit::oracle::Slot| slot.held.len();
    assert!(remains.ring().slots.iter().any(|slot| entries(slot) == 3), "the lock, and the join twice");
    let dead = read_rip(&["check"], &remains.ring_path());
    for found in [live, dead] {
        assert!(found.contains("\nproven deadlock: 2 threads wait for one another"), "{found}");
        let joins: Vec<&str> =
            found.lines().filter(|line| line.contains("] waits for the end of closer[")).collect();
        assert_eq!(joins.len(), 1, "{found}");
        assert!(joins[0].contains(" drop_ins.rs:"), "{found}");
    }
}
