//! Locks that concern another thread's table: given up by a thread that does not have them, or destroyed.
//!
//! It searches the tables of this process for the lock and puts the holder's entry right. That takes some hundred
//! nanoseconds with a few threads and milliseconds with very many, so it may take a small part of the time only;
//! what is left undone is counted in the header, and the reader trusts marks by hand less.
//!
//! # Invariants
//!
//! * An entry in HELD is changed by its owner's release or by this search, and for one acquisition only one of the two
//!   happens: a lock is given up once.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::clock;
use crate::copies;
use crate::ring::Ring;
use crate::slot;
use crate::sys;
use librip_format::{
    HELD_COND_WAIT, HELD_DESTROYED, HELD_HELD, HELD_STATE_SHIFT, HeldLock, PAYLOAD_MASK, held_state, payload,
};

/// A search that took so long is followed by none for this many times as long.
const REST: u64 = 63;
/// But not for longer than this: a thread that was kept from running, or a machine that slept, took no time.
const REST_MAX_NS: u64 = 50_000_000;
/// More than this many releases without a holder are not counted: the reader only asks whether there are any.
const UNMATCHED_MAX: u64 = 1000;

/// What a copy of librip tells the one that owns the ring.
pub(crate) const TOLD_RELEASED: u32 = 1;
/// See [`TOLD_RELEASED`].
pub(crate) const TOLD_DESTROYED: u32 = 2;
/// See [`TOLD_RELEASED`].
pub(crate) const TOLD_OVERFLOW: u32 = 3;
/// See [`TOLD_RELEASED`].
pub(crate) const TOLD_CLOCK: u32 = 4;

/// The calling thread has given up a lock that it did not have.
pub(crate) fn released(lock: u64) {
    copies::tell(TOLD_RELEASED, lock);
}

/// A lock has been destroyed that may be held.
pub(crate) fn destroyed(lock: u64) {
    copies::tell(TOLD_DESTROYED, lock);
}

/// A lock found no room in its thread's table.
pub(crate) fn count_overflow() {
    copies::tell(TOLD_OVERFLOW, 0);
}

/// It is time to measure the clock again.
#[cold]
pub(crate) fn measure_clock() {
    copies::tell(TOLD_CLOCK, 0);
}

/// Runs in the copy that owns the ring.
pub(crate) fn told(ring: &Ring, what: u32, lock: u64) {
    match what {
        TOLD_RELEASED => {
            let has_looked = search(ring, lock, |place| (held_state(place) == HELD_HELD).then_some(0));
            if !has_looked {
                count_unmatched(ring);
            }
        }
        TOLD_DESTROYED => {
            search(ring, lock, |place| {
                let is_held = matches!(held_state(place), HELD_HELD | HELD_COND_WAIT);
                is_held.then_some(place & !(7 << HELD_STATE_SHIFT) | HELD_DESTROYED << HELD_STATE_SHIFT)
            });
        }
        // ORDERING: relaxed, a statistic.
        TOLD_OVERFLOW => drop(ring.header().held_overflows.fetch_add(1, Relaxed)),
        TOLD_CLOCK => clock::improve(ring.header()),
        _ => {}
    }
}

/// When to search again, `CLOCK_BOOTTIME` ns.
static REST_UNTIL_NS: AtomicU64 = AtomicU64::new(0);
/// Where a holder was found last: locks that are handed over go the same ways again and again.
static FOUND_LAST: AtomicU64 = AtomicU64::new(0);

/// A release whose holder was not looked for.
fn count_unmatched(ring: &Ring) {
    let unmatched = &ring.header().releases_unmatched;
    // ORDERING: relaxed, a statistic.
    if unmatched.load(Relaxed) < UNMATCHED_MAX {
        unmatched.fetch_add(1, Relaxed);
    }
}

/// Replaces the place of the lock's first entry for which `change` gives another; says whether it has looked.
fn search(ring: &Ring, lock: u64, change: impl Fn(u64) -> Option<u64>) -> bool {
    let begin_ns = sys::boottime_ns();
    // ORDERING: relaxed throughout: hints.
    if begin_ns < REST_UNTIL_NS.load(Relaxed) {
        return false;
    }
    let first = FOUND_LAST.load(Relaxed);
    let pid = sys::pid();
    let found = slot::handed_out_from(ring, first)
        .filter(|(_, slot)| slot.pid.load(Relaxed) == pid)
        .find(|(_, slot)| slot.held.iter().any(|held| is_changed(held, lock & PAYLOAD_MASK, &change)));
    if let Some((index, _)) = found {
        FOUND_LAST.store(index, Relaxed);
    }
    let end_ns = sys::boottime_ns();
    REST_UNTIL_NS.store(end_ns + (REST * (end_ns - begin_ns)).min(REST_MAX_NS), Relaxed);
    true
}

fn is_changed(held: &HeldLock, lock: u64, change: impl Fn(u64) -> Option<u64>) -> bool {
    // ORDERING: acquire, pairs with the releases in `table`: the lock is the place's.
    let place = held.meta.load(Acquire);
    let Some(changed) = change(place) else { return false };
    payload(held.lock.load(Relaxed)) == lock
        // ORDERING: release, so that a reader sees it no earlier than what led to it.
        && held.meta.compare_exchange(place, changed, Release, Relaxed).is_ok()
}
