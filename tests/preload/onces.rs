//! Initialisations that are done once: who runs the initialiser, and who waits for it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use librip_test_kit::format::lock_type;
use librip_test_kit::oracle::{LockEvent, Ring, Slot};

use crate::{compile_cpp, plan, preload, read_rip};

const KINDS: [&str; 3] = ["pthread", "c11", "cpp"];

fn program() -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| compile_cpp("onces", "onces", &["-O1", "-g"]))
}

/// Runs a story until it is told. Returns what `check` says of it while it lives and when it was killed, and its ring.
fn told(kind: &str, story: &str) -> ([String; 2], Ring) {
    let mut victim = plan(program(), &[kind, story], &[preload()]).start();
    let mut line = victim.line();
    while line != "ready" {
        assert_eq!(line, "runs 5", "as without the interposer");
        line = victim.line();
    }
    let check = |ring: &Path| read_rip(&["check", "--threshold", "1h"], ring);
    let live = check(&victim.ring_path());
    let remains = victim.killed();
    ([live, check(&remains.ring_path())], remains.ring())
}

#[track_caller]
fn is_proven(kind: &str, story: &str, parts: &[&str]) {
    for found in told(kind, story).0 {
        let advice = "do in the initialiser nothing that waits for the initialisation";
        for part in ["\nproven deadlock: ", advice].iter().chain(parts) {
            assert!(found.contains(part), "{kind}, {story}: {part}: {found}");
        }
    }
}

#[test]
fn an_initialiser_that_waits_for_a_lock_of_a_thread_that_waits_for_it_is_a_proven_deadlock() {
    for (kind, name) in KINDS.into_iter().zip(["opening", "opening_c11", "opening_cpp"]) {
        let (waits, wants) = (format!(" waits for {name}"), " waits for ledger");
        is_proven(kind, "circle", &["2 threads wait for one another", &waits, "] runs ", "begun at ", wants]);
    }
}

#[test]
fn an_initialiser_that_needs_its_own_initialisation_waits_for_itself() {
    for kind in KINDS {
        is_proven(kind, "again", &[" waits for an initialisation that it runs itself", "] runs "]);
    }
}

#[test]
fn an_initialiser_that_joins_a_thread_that_needs_it_is_a_proven_deadlock() {
    is_proven("pthread", "join", &[" waits for the end of ", " waits for opening", "] runs "]);
}

/// How many events of initialisations each thread has that has any, most first.
fn events(ring: &Ring) -> Vec<usize> {
    let is_once = |event: &&LockEvent| event.lock_type() == lock_type::ONCE;
    let of = |slot: &Slot| ring.lock_events(slot).iter().filter(is_once).count();
    let mut counts: Vec<usize> = ring.slots.iter().map(of).filter(|&count| count > 0).collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts
}

#[test]
fn an_initialiser_that_is_left_by_an_exception_or_the_end_of_its_thread_holds_nothing() {
    for kind in KINDS {
        let ([live, dead], ring) = told(kind, "left");
        assert!(live.contains("\nno findings") && dead.contains("\nno findings"), "{kind}: {live}{dead}");
        for slot in &ring.slots {
            assert_eq!((slot.held_overflowed, &slot.held[..]), (0, &[][..]), "{kind}: {}", slot.name);
        }
        // Begin and end of each run. The unwinder has initialisations of its own, which count for the first thread.
        let [first, others @ ..] = &events(&ring)[..] else { panic!("{kind}: no events") };
        assert!((6..12).contains(first), "{kind}: {first}: the 100 calls after the last run record nothing");
        assert_eq!(others, [2, 2], "{kind}: a thread that ends, and one that is cancelled");
    }
}

#[test]
fn threads_that_waited_for_an_initialisation_hold_nothing_afterwards() {
    let ([live, dead], ring) = told("pthread", "waited");
    assert!(live.contains("\nno findings") && dead.contains("\nno findings"), "{live}{dead}");
    assert!(ring.slots.iter().all(|slot| slot.held.is_empty()));
    assert_eq!(events(&ring).len(), 3, "each of the threads came before the initialiser had returned");
}
