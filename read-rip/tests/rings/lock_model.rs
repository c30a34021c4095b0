//! The model of threads and locks that the analyses read: the steps of a thread, its locks, and what is steady.
//!
//! Not tested here: how it is shown (`locks.rs`), and what `check` makes of it.

use std::collections::HashSet;

use read_rip_model::locations::Locations;
use read_rip_model::locks::{Input, Lock, LockModel, StepKind, build};
use read_rip_symbols::{Options, Resolver};

use crate::support::fixture::Fixture;
use crate::support::locks::*;
use crate::support::synth::{EXITED, Held, Ring, Slot};

/// The model of a ring, and of an earlier reading of it if there is one.
fn model(earlier: Option<&Ring>, ring: &Ring) -> LockModel {
    let read = |ring: &Ring| read_rip_ring::read(&Fixture::of(ring).path).unwrap();
    let (snapshot, earlier) = (read(ring), earlier.map(read));
    let mut locations = Locations::new(&snapshot, Resolver::new(&snapshot.modules, Options::default()));
    let input = Input {
        snapshot: &snapshot,
        earlier: earlier.as_ref(),
        window_ns: earlier.as_ref().map(|_| 200_000_000),
        is_final: earlier.is_none(),
        now_ns: Some(10_000_000_000),
        latest_end_ns: None,
        alive_ns: None,
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

fn rates(earlier: &Ring, ring: &Ring) -> (Vec<(u64, u64, u64)>, bool) {
    let model = model(Some(earlier), ring);
    let of = |lock: &Lock| (lock.address, lock.record.acquired_between, lock.record.contended_between);
    let mut locks: Vec<_> = model.locks.iter().map(of).collect();
    locks.sort_unstable();
    (locks, model.has_lost_between)
}

#[test]
fn acquisitions_are_new_if_they_succeeded_after_the_earlier_reading() {
    let used = |slot: Slot, lock| slot.event(TAKES, &[0, lock]).event(RELEASED, &[0, 0, lock]);
    let before = || used(Slot::thread("a", 1), A).event(TAKES, &[0, A]).event(WAIT, &[0, A]);
    let waits = Held { sequence: before().count - 1, ..Held::new(WAITING, A, WAIT) };
    let holds = Held { sequence: before().count - 1, ..Held::new(HELD, A, TAKES) };
    let after = || before().event(RELEASED, &[0, 0, A]);
    let earlier = ring().with_slots([before().has(waits)]);
    // The wait is over, and B was acquired twice; the last attempt waits.
    let later = used(used(after(), B), B).event(TAKES, &[0, B]).event(WAIT, &[0, B]);
    let last = Held { sequence: later.count - 1, ..Held::new(WAITING, B, WAIT) };
    let later = ring().with_slots([later.has(last)]);
    assert_eq!(rates(&earlier, &later), (vec![(A, 1, 1), (B, 2, 0)], false));
    // It was acquired before the earlier reading, and released after it.
    let earlier = ring().with_slots([before().has(holds)]);
    assert_eq!(rates(&earlier, &ring().with_slots([after()])), (vec![(A, 0, 0)], false));
    // By a mark by hand, an acquisition is known itself.
    let by_hand = || Slot::thread("a", 1).event(HAND_WAIT, &[0, A]);
    let waits = Held { sequence: 2, ..Held::new(WAITING, A, HAND_WAIT) };
    let earlier = ring().with_slots([by_hand().has(waits)]);
    let later = by_hand().event(HAND_ACQUIRED, &[0, A]).has(Held::new(HELD, A, HAND_ACQUIRED));
    assert_eq!(rates(&earlier, &ring().with_slots([later])), (vec![(A, 1, 1)], false));
    assert_eq!(model(None, &ring().with_slots([after()])).locks[0].record.acquired_between, 0);
}

#[test]
fn a_failed_try_between_two_readings_is_no_acquisition() {
    let earlier = ring().with_slots([Slot::thread("a", 1)]);
    let later = Slot::thread("a", 1).event(TRY_TAKES, &[A]).event(TRY_FAILED, &[A]);
    assert_eq!(rates(&earlier, &ring().with_slots([later])), (vec![(A, 0, 0)], false));
}

#[test]
fn all_words_of_a_new_thread_are_new_and_those_of_a_replaced_one_are_lost() {
    let used = |slot: Slot| slot.event(TAKES, &[0, A]).event(RELEASED, &[0, 0, A]);
    let old = || Slot::thread("a", 1);
    let earlier = ring().with_slots([old()]);
    let later = ring().with_slots([old(), used(Slot::thread("b", 2))]);
    assert_eq!(rates(&earlier, &later), (vec![(A, 1, 0)], false));
    // The first owner may have recorded more before it exited.
    let reused = Slot { generation: 2, ..used(Slot::thread("b", 2)) };
    let later = ring().with_slots([reused.clone()]);
    assert_eq!(rates(&earlier, &later), (vec![(A, 1, 0)], true));
    let exited = ring().with_slots([Slot { state: EXITED, ..old() }]);
    assert_eq!(rates(&exited, &later), (vec![(A, 1, 0)], false));
    let later = ring().with_slots([Slot { generation: 3, ..reused }]);
    assert_eq!(rates(&exited, &later), (vec![(A, 1, 0)], true), "there was an owner in between");
}

#[test]
fn words_that_were_replaced_between_two_readings_are_known_to_be_lost() {
    let used = |slot: Slot| slot.event(TAKES, &[0, A]).event(RELEASED, &[0, 0, A]);
    let earlier = ring().with_slots([used(Slot::thread("a", 1))]);
    let later = used(used(used(Slot::thread("a", 1))));
    let without = |first: u64| {
        let mut slot = later.clone();
        slot.words.retain(|&(sequence, ..)| sequence >= first);
        ring().with_slots([slot])
    };
    assert_eq!(rates(&earlier, &without(0)), (vec![(A, 2, 0)], false));
    assert_eq!(rates(&earlier, &without(7)), (vec![(A, 2, 0)], false), "what was known before is not missed");
    assert_eq!(rates(&earlier, &without(14)), (vec![(A, 1, 0)], true));
    // Half of the new words are known, so there were probably twice as many.
    assert_eq!(model(Some(&earlier), &without(14)).locks[0].record.probably_between, (2.0, 0.0));
    assert_eq!(model(Some(&earlier), &without(7)).locks[0].record.probably_between, (2.0, 0.0));
}
