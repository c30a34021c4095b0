//! The held-lock table: after the ring has wrapped, when the table is full, and in each mode of a lock.

use librip_test_kit::oracle::{Holding, Ring};

use crate::waits::until;
use crate::{
    ACQUIRED, MUTEX, OWNED, OWNED_BY_RULE, READERS_FIRST, RELEASED, RWLOCK, SHARED, TAKES, TRY, TRY_FAILED,
    UPGRADABLE, WAIT, WRAPPER, at_pause, end, main_entry, main_slot, next, plan, site_of, start, state,
};

#[test]
fn a_lock_that_was_acquired_a_million_words_ago_is_held() {
    let (mut victim, locks) = start(plan(&["wrapped"]), 1);
    let ring = at_pause(&mut victim);
    let slot = main_slot(&ring);
    assert!(slot.count > 1_000_000, "{}", slot.count);
    assert_eq!(slot.held.len(), 1, "{:?}", slot.held);
    let held = main_entry(&ring, locks[0]).unwrap();
    assert_eq!((held.state, held.shared, held.since), (Holding::Held, false, None));
    assert_eq!(site_of(&ring, held), (TAKES, MUTEX | WRAPPER | OWNED));
    assert!(
        ring.lock_events(slot).iter().all(|event| event.lock != locks[0]),
        "the events of the lock are overwritten"
    );
    let ring = next(&mut victim);
    assert_eq!(main_slot(&ring).held, []);
    end(victim);
}

#[test]
fn locks_without_an_entry_are_counted_and_their_releases_change_no_other_entry() {
    let (mut victim, locks) = start(plan(&["overflow"]), 20);
    let ring = at_pause(&mut victim);
    assert_eq!((main_slot(&ring).held_overflowed, ring.held_overflows), (5, 5));
    for &lock in &locks[..15] {
        assert_eq!(state(main_entry(&ring, lock)), Some(Holding::Held));
    }
    let ring = next(&mut victim);
    assert_eq!((main_slot(&ring).held_overflowed, main_slot(&ring).held.len()), (0, 14));
    assert_eq!(main_entry(&ring, locks[3]), None);
    let ring = next(&mut victim);
    assert_eq!(state(main_entry(&ring, locks[18])), Some(Holding::Held), "the table had a free entry");
    let ring = next(&mut victim);
    assert_eq!((main_slot(&ring).held_overflowed, main_slot(&ring).held.len()), (0, 0));
    assert_eq!((ring.held_overflows, ring.releases_unmatched), (5, 0));
    end(victim);
}

#[test]
fn a_thread_that_holds_many_locks_still_shows_what_it_waits_for() {
    let (mut victim, locks) = start(plan(&["full table"]), 23);
    let [mutex, by_hand, condition] = locks[20..] else { panic!("{locks:x?}") };
    for (lock, wanted) in
        [(mutex, Holding::Waiting), (condition, Holding::CondWait), (by_hand, Holding::Waiting)]
    {
        let ring = until(&mut victim, wanted, &[("full", lock)]);
        let slot = ring.slot_named("full");
        assert_eq!(slot.held.len(), 16, "{:x?}", slot.held);
        assert!(slot.held[..15].iter().all(|held| held.state == Holding::Held), "{:x?}", slot.held);
        victim.go_on();
    }
    let ring = at_pause(&mut victim);
    let slot = ring.slot_named("full");
    assert_eq!((slot.held.len(), slot.held_overflowed), (0, 0), "{:x?}", slot.held);
    assert_eq!(ring.releases_unmatched, 0);
    end(victim);
}

/// Checks the events that the victim's operations in each mode recorded.
fn check_mode_events(ring: &Ring, lock: u64) {
    let events = ring.lock_events(main_slot(ring));
    let of_lock = events.iter().filter(|event| event.lock == lock);
    let of_lock: Vec<(u8, u16)> =
        of_lock.map(|event| (event.kind, event.flags & !(RWLOCK | WRAPPER | OWNED_BY_RULE))).collect();
    assert_eq!(
        of_lock,
        [
            (TAKES, SHARED),
            (RELEASED, SHARED),
            (TAKES, SHARED | READERS_FIRST),
            (RELEASED, SHARED),
            (TAKES, 0),
            // A change of mode without a release records no event.
            (TAKES, TRY),
            (WAIT, TRY),
            (TRY_FAILED, TRY),
            (TAKES, TRY),
            (TRY_FAILED, TRY),
            (RELEASED, SHARED),
            (TAKES, SHARED | UPGRADABLE),
            (WAIT, TRY),
            (RELEASED, SHARED | UPGRADABLE),
        ]
    );
}

#[test]
fn each_mode_of_a_readers_writer_lock_is_recorded() {
    let (mut victim, locks) = start(plan(&["modes"]).env("RIP_WORDS", "256"), 2);
    let lock = locks[0];
    let mut ring = at_pause(&mut victim);
    let wrapped = RWLOCK | WRAPPER | OWNED_BY_RULE;
    for (step, (shared, site)) in [
        (true, (TAKES, wrapped | SHARED)),
        (true, (TAKES, wrapped | SHARED | READERS_FIRST)),
        (false, (TAKES, wrapped)),
        (true, (TAKES, wrapped | SHARED | UPGRADABLE)),
        (false, (TAKES, wrapped)),
        (true, (TAKES, wrapped | SHARED)),
        (true, (TAKES, wrapped | SHARED | UPGRADABLE)),
        // After an upgrade that took too long.
        (true, (TAKES, wrapped | SHARED | UPGRADABLE)),
    ]
    .into_iter()
    .enumerate()
    {
        let held = main_entry(&ring, lock).unwrap();
        assert_eq!((held.state, held.shared), (Holding::Held, shared), "step {step}");
        assert_eq!(site_of(&ring, held), site, "step {step}");
        ring = next(&mut victim);
    }
    assert_eq!(main_entry(&ring, lock), None);
    let downgraded = main_entry(&ring, locks[1]).unwrap();
    assert_eq!((downgraded.state, downgraded.shared), (Holding::Held, true));
    check_mode_events(&ring, lock);
    let ring = next(&mut victim);
    let reentrant = &main_slot(&ring).held;
    assert_eq!(reentrant.len(), 1, "the inner release does not unlock it: {reentrant:?}");
    assert_eq!(site_of(&ring, reentrant[0]), (TAKES, MUTEX | WRAPPER | OWNED_BY_RULE));
    let ring = next(&mut victim);
    assert_eq!(main_slot(&ring).held, []);
    end(victim);
}

#[test]
fn events_have_the_times_that_the_clock_setting_asks_for() {
    for (clock, level) in [("off", 0), ("contended", 1), ("ticks", 2), ("all", 3)] {
        let (mut victim, locks) = start(plan(&["timed"]).env("RIP_CLOCK", clock), 3);
        let ring = at_pause(&mut victim);
        assert_eq!(ring.clock_level, level);
        let is_timed = clock == "all";
        let events = ring.lock_events(main_slot(&ring));
        let kinds: Vec<(u8, u64)> = events.iter().map(|event| (event.kind, event.lock)).collect();
        assert_eq!(
            kinds,
            [
                (TAKES, locks[0]),
                (RELEASED, locks[0]),
                (ACQUIRED, locks[1]),
                (RELEASED, locks[1]),
                (TAKES, locks[2]),
                (RELEASED, locks[2]),
                (TAKES, locks[0]),
            ]
        );
        for event in &events {
            assert_eq!(event.time.is_some_and(|time| time > 0), is_timed, "{clock}: {event:?}");
            let has_since = event.since.is_some_and(|since| since > 0 && Some(since) <= event.time);
            assert_eq!(has_since, is_timed && event.kind == RELEASED, "{clock}: {event:?}");
        }
        let times: Vec<_> = events.iter().map(|event| event.time).collect();
        assert!(times.is_sorted(), "{times:?}");
        let held = main_entry(&ring, locks[0]).unwrap();
        assert_eq!(held.since.is_some(), is_timed);
        end(victim);
    }
}

#[test]
fn two_calls_that_acquire_one_lock_have_two_locations() {
    let (mut victim, locks) = start(plan(&["pairs"]), 2);
    let ring = at_pause(&mut victim);
    let first = (main_entry(&ring, locks[0]).unwrap(), main_entry(&ring, locks[1]).unwrap());
    let ring = next(&mut victim);
    let second = (main_entry(&ring, locks[0]).unwrap(), main_entry(&ring, locks[1]).unwrap());
    assert_ne!(first.0.pc, second.0.pc);
    // In an unoptimised build, all calls of a raw lock are in one generic function of lock_api.
    assert!(cfg!(debug_assertions) || first.1.pc != second.1.pc);
    end(victim);
}
