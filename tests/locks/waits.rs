//! Waits: for a lock, for a limited time, on a condition variable.

use librip_test_kit::oracle::{Holding, LockEvent, Ring};
use librip_test_kit::victim::Victim;

use crate::{
    CONDITION_WAIT, CONDITION_WOKEN, MUTEX, OWNED, OWNED_BY_RULE, RELEASED, RWLOCK, SHARED, TAKES, TRY, WAIT,
    WRAPPER, at_pause, end, main_slot, next, plan, site_of, start, state,
};

/// Reads the ring until all of these threads are in that state with those locks.
pub(crate) fn until(victim: &mut Victim, wanted: Holding, threads: &[(&str, u64)]) -> Ring {
    at_pause(victim);
    // Bounded by the harness: a victim that hangs is killed, and then there is no ring to read.
    loop {
        let ring = victim.ring_now(&victim.ring_path());
        let is_there = |ring: &Ring| {
            threads.iter().all(|(name, lock)| {
                let slot = ring.slots_named(name).next();
                state(slot.and_then(|slot| slot.held_of(*lock))) == Some(wanted)
            })
        };
        match ring {
            Ok(ring) if is_there(&ring) => return ring,
            _ => librip_test_kit::pause(),
        }
    }
}

fn events(ring: &Ring, name: &str) -> Vec<LockEvent> {
    ring.lock_events(ring.slot_named(name))
}

fn kinds(events: &[LockEvent]) -> Vec<u8> {
    events.iter().map(|event| event.kind).collect()
}

#[test]
fn the_table_shows_where_and_since_when_threads_wait_for_a_lock() {
    let (mut victim, locks) = start(plan(&["waits"]), 3);
    let waiters = [("mutex", locks[0]), ("lot", locks[1]), ("reader", locks[2])];
    let ring = until(&mut victim, Holding::Waiting, &waiters);
    for ((name, lock), flags) in waiters.into_iter().zip([
        MUTEX | WRAPPER | OWNED,
        MUTEX | WRAPPER | TRY | OWNED_BY_RULE,
        RWLOCK | WRAPPER | SHARED | OWNED,
    ]) {
        let held = ring.slot_named(name).held_of(lock).unwrap();
        assert_eq!(site_of(&ring, held), (WAIT, flags), "{name}");
        assert_eq!(held.shared, name == "reader");
        let events = events(&ring, name);
        assert_eq!(kinds(&events), [TAKES, WAIT], "{name}");
        let time = events[1].time;
        assert!(time > Some(0) && held.since == time, "{name}: {held:?}");
        let owner = main_slot(&ring).held_of(lock).unwrap();
        assert_eq!((owner.state, owner.since), (Holding::Held, None), "the owner did not wait");
    }
    let ring = next(&mut victim);
    for (name, lock) in waiters {
        let events = events(&ring, name);
        assert_eq!(kinds(&events), [TAKES, WAIT, RELEASED], "{name}");
        // After a wait, the entry has the time of the acquisition.
        let [waited, released] = &events[1..] else { panic!() };
        assert!(waited.time <= released.since && released.since <= released.time, "{name}: {events:?}");
        assert_eq!(ring.slot_named(name).held_of(lock), None);
    }
    end(victim);
}

#[test]
fn a_condition_wait_releases_the_lock_and_acquires_it_again() {
    let (mut victim, addresses) = start(plan(&["condition"]), 4);
    let [mutex, changed, lot, lot_changed] = addresses[..] else { panic!() };
    let sleepers = [("sleeper", mutex, changed), ("lot sleeper", lot, lot_changed)];
    let ring = until(&mut victim, Holding::CondWait, &sleepers.map(|(name, lock, _)| (name, lock)));
    for (name, lock, condition) in sleepers {
        let held = ring.slot_named(name).held_of(lock).unwrap();
        let owned = if lock == mutex { OWNED } else { OWNED_BY_RULE };
        assert_eq!(site_of(&ring, held), (CONDITION_WAIT, MUTEX | WRAPPER | owned));
        let events = events(&ring, name);
        let last = events.last().unwrap();
        assert_eq!((last.kind, last.lock, last.condition), (CONDITION_WAIT, lock, Some(condition)));
        assert_eq!(held.since, last.time);
    }
    let ring = next(&mut victim);
    for (name, lock, condition) in sleepers {
        let slot = ring.slot_named(name);
        assert_eq!(state(slot.held_of(lock)), Some(Holding::Held), "{name}");
        let events = events(&ring, name);
        let last = events.last().unwrap();
        assert_eq!((last.kind, last.lock, last.condition), (CONDITION_WOKEN, lock, Some(condition)));
    }
    let ring = next(&mut victim);
    for (name, lock, _) in sleepers {
        let events = events(&ring, name);
        let last = events.last().unwrap();
        assert_eq!((last.kind, ring.slot_named(name).held_of(lock)), (RELEASED, None));
        assert!(last.since > Some(0), "since it was had again: {last:?}");
    }
    end(victim);
}
