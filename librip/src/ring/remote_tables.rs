//! Changes to other threads' held-lock tables: a lock was released by a thread that does not hold it, or was destroyed.
//!
//! The calling thread searches the tables of its process for the lock and corrects the holder's entry. A search takes
//! some hundred nanoseconds with a few threads, and milliseconds with very many, so searches may use only a small part
//! of the time. The header counts releases without a search, and the reader trusts marks by hand less if there are any.
//!
//! # Invariants
//!
//! * Either the owner's release or this search changes an entry in HELD, and for one acquisition only one of them does:
//!   a lock is released once.
//! * A search looks at each slot once, and at each of its 16 entries once, whatever is in them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use librip_format::{
    HELD_COND_WAIT, HELD_DESTROYED, HELD_HELD, HELD_STATE_SHIFT, HeldLock, PAYLOAD_MASK, held_state, payload,
};

use super::{Ring, slots};
use crate::sys;

/// After a search of length *t*, none runs for 63 *t*.
const REST: u64 = 63;
/// The longest rest: if the searching thread lost its processor, or the machine slept, the search took no time.
const REST_MAX_NS: u64 = 50_000_000;
/// The count of releases without a search stops here. The reader only asks whether there are any.
const UNMATCHED_MAX: u64 = 1000;

/// The calling thread has released a lock that it did not hold: frees the holder's entry.
pub(crate) fn released(ring: &Ring, lock: u64) {
    if !search(ring, lock, |meta| (held_state(meta) == HELD_HELD).then_some(0)) {
        let unmatched = &ring.header().releases_unmatched;
        // ORDERING: relaxed, a statistic.
        if unmatched.load(Relaxed) < UNMATCHED_MAX {
            unmatched.fetch_add(1, Relaxed);
        }
    }
}

/// A lock was destroyed that a thread may hold: the holder's entry says so from now on.
pub(crate) fn destroyed(ring: &Ring, lock: u64) {
    search(ring, lock, |meta| {
        let is_held = matches!(held_state(meta), HELD_HELD | HELD_COND_WAIT);
        is_held.then_some(meta & !(7 << HELD_STATE_SHIFT) | HELD_DESTROYED << HELD_STATE_SHIFT)
    });
}

/// Replaces the meta word of the lock's first entry for which `change` gives another. Returns whether it searched.
fn search(ring: &Ring, lock: u64, change: impl Fn(u64) -> Option<u64>) -> bool {
    let begin_ns = sys::boottime_ns();
    // ORDERING: relaxed throughout: hints.
    if begin_ns < ring.search_rest_until_ns.load(Relaxed) {
        return false;
    }
    // It begins with the last holder: locks that are handed over often have the same few holders.
    let first = ring.search_from.load(Relaxed);
    let pid = sys::pid();
    let found = slots::handed_out_from(ring, first)
        .filter(|(_, _, owner)| owner.pid.load(Relaxed) == pid)
        .find(|(_, slot, _)| slot.held.iter().any(|held| has_changed(held, lock & PAYLOAD_MASK, &change)));
    if let Some((index, ..)) = found {
        ring.search_from.store(index, Relaxed);
    }
    let end_ns = sys::boottime_ns();
    let rest_ns = (end_ns - begin_ns).saturating_mul(REST).min(REST_MAX_NS);
    ring.search_rest_until_ns.store(end_ns + rest_ns, Relaxed);
    true
}

fn has_changed(held: &HeldLock, lock: u64, change: impl Fn(u64) -> Option<u64>) -> bool {
    // ORDERING: acquire, pairs with the releases in `lock::table`: the lock belongs to the meta word.
    let meta = held.meta.load(Acquire);
    let Some(changed) = change(meta) else { return false };
    payload(held.lock.load(Relaxed)) == lock
        // ORDERING: release, so that a reader sees it no earlier than what led to it.
        && held.meta.compare_exchange(meta, changed, Release, Relaxed).is_ok()
}
