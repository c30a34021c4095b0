//! The model of threads and locks that the analyses read: the steps of a thread, its locks, and what is steady.
//!
//! Not tested here: how it is shown (`locks.rs`), and what `check` makes of it.

use std::collections::HashSet;

use crate::support::fixture::Fixture;
use crate::support::locks::*;
use crate::support::synth::{Held, Ring, Slot};
use read_rip::locations::Locations;
use read_rip::locks::{Input, LockModel, StepKind, build};
use read_rip::symbols::{Options, Resolver};

/// The model of a ring, and of an earlier reading of it if there is one.
fn model(earlier: Option<&Ring>, ring: &Ring) -> LockModel {
    let read = |ring: &Ring| read_rip::ring::read(&Fixture::of(ring).path).unwrap();
    let (snapshot, earlier) = (read(ring), earlier.map(read));
    let mut locations = Locations::new(&snapshot, Resolver::new(&snapshot.modules, Options::default()));
    let input = Input {
        snapshot: &snapshot,
        earlier: earlier.as_ref(),
        window_ns: earlier.as_ref().map(|_| 200_000_000),
        is_final: earlier.is_none(),
        now_ns: Some(10_000_000_000),
        latest_end_ns: None,
        living: &HashSet::new(),
        ended: &HashSet::new(),
        wants_steps: true,
        limits: Default::default(),
    };
    build(&input, &mut locations)
}

#[test]
fn the_steps_of_a_thread_are_its_events_in_order() {
    let ring = ring().with_slots([Slot::thread("a", 1)
        .event(TAKES, &[at(3.0), A])
        .event(TRY_TAKES, &[B])
        .event(TRY_FAILED, &[B])
        .event(READ_WAIT, &[at(4.0), B])
        .marks([SNAP])
        .event(RELEASED, &[at(5.0), at(3.0), A])]);
    let model = model(None, &ring);
    let steps: Vec<_> = model.threads[0]
        .steps
        .iter()
        .map(|step| (step.sequence, step.kind, step.lock.map(|lock| model.locks[lock].address)))
        .collect();
    assert_eq!(
        steps,
        [
            (2, StepKind::AcquireBegin, Some(A)),
            (6, StepKind::TryFailed, Some(B)),
            (9, StepKind::Wait, Some(B)),
            (10, StepKind::Snap, None),
            (14, StepKind::Released, Some(A)),
        ]
    );
    let steps: Vec<_> = model.threads[0].steps.iter().collect();
    let [takes, failed, wait, _, released] = &steps[..] else { unreachable!() };
    assert_eq!((takes.time_ns, takes.since_ns), (Some(3_000_000_000), None));
    assert_eq!((released.time_ns, released.since_ns), (Some(5_000_000_000), Some(3_000_000_000)));
    assert!(failed.is_try && !takes.is_try && wait.is_shared && !takes.is_shared);
    assert_eq!(model.threads[0].overwritten, 0);
}

#[test]
fn steps_before_missing_words_are_dropped() {
    let mut slot = Slot::thread("a", 1).event(TAKES, &[0, A]).event(TAKES, &[0, B]).marks([SNAP]);
    slot.words.retain(|&(sequence, ..)| sequence != 4);
    let model = model(None, &ring().with_slots([slot]));
    let kinds: Vec<StepKind> = model.threads[0].steps.iter().map(|step| step.kind).collect();
    assert_eq!(kinds, [StepKind::Snap], "the missing words may contain a release of the first lock");
    assert_eq!(model.threads[0].overwritten, 6);
}

#[test]
fn the_locks_of_a_thread_are_in_the_order_of_their_acquisition() {
    // The entries are in another order: the first entry was free again when the thread acquired the last lock.
    let entry = |lock, sequence| Held { sequence, ..Held::new(HELD, lock, TAKES) };
    let slot = Slot::thread("a", 1).at(40_000).marks([SNAP; 40]);
    let slot = slot.has(entry(3, 40_020)).has(entry(1, 7).since(at(3.0))).has(entry(2, 40_010));
    let model = model(None, &ring().with_slots([slot]));
    let order: Vec<u64> = model.threads[0].holds.iter().map(|hold| model.locks[hold.lock].address).collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn only_a_state_seen_in_both_readings_is_steady() {
    let held = |sequence| Held { sequence, ..Held::new(HELD, A, TAKES) };
    let waits = |lock| Held { sequence: 9, ..Held::new(WAITING, lock, WAIT) };
    let thread = |tid| Slot::thread("a", tid).at(100);
    let other_owner = |slot: Slot| slot.reused_by("b", 77);
    let earlier = ring().with_slots([
        thread(1).has(held(5)),
        thread(2).has(held(5)),
        thread(3).has(waits(A)),
        thread(4).has(waits(A)),
        thread(5).has(waits(A)),
    ]);
    let later = ring().with_slots([
        thread(1).has(held(5)).marks([SNAP; 3]),
        thread(2).has(held(6)),
        thread(3).has(waits(A)),
        thread(4).has(waits(B)),
        other_owner(thread(5)).has(waits(A)),
    ]);
    let model = model(Some(&earlier), &later);
    let steady: Vec<(u32, bool, Option<u64>)> = model
        .threads
        .iter()
        .map(|thread| {
            let is_steady = match thread.wait {
                Some(wait) => wait.is_steady,
                None => thread.holds[0].is_steady,
            };
            (thread.tid, is_steady, thread.advanced)
        })
        .collect();
    assert_eq!(
        steady,
        [(1, true, Some(3)), (2, false, Some(0)), (3, true, Some(0)), (4, false, Some(0)), (77, false, None)]
    );
    assert_eq!(model.window_ns, Some(200_000_000));
}
