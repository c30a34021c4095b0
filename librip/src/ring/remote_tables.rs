//! Changes to other threads' held-lock tables: a lock was released by a thread that does not hold it, or was destroyed.
//!
//! The calling thread searches the tables of its process for the lock and corrects the holder's entry. A search takes
//! some hundred nanoseconds with a few threads, and milliseconds with very many, so searches may use only a small part
//! of the time. What was released in this way is remembered (`handed_over`), with or without a search. A lock that is
//! released in this way for the first time is always searched for, as long as there is room to remember it.
//!
//! # Invariants
//!
//! * Either the owner's release or this search changes an entry in HELD, and for one acquisition only one of them does:
//!   a lock is released once.
//! * A search looks at each slot once, and at each of its 16 entries once, whatever is in them.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use librip_format::{
    HELD_COND_WAIT, HELD_DESTROYED, HELD_HELD, HELD_PROCESS_SHARED, HELD_STATE_SHIFT, HeldLock, PAYLOAD_MASK,
    held_change, held_pc, held_state, payload,
};

use super::handed_over::{self, Noted};
use super::{Ring, slots};
use crate::sys;

/// After a search of length *t*, none runs for 63 *t*.
const REST: u64 = 63;
/// The longest rest: if the searching thread lost its processor, or the machine slept, the search took no time.
const REST_MAX_NS: u64 = 50_000_000;
/// The count of releases without a search stops here. The reader only asks whether there are any.
const UNMATCHED_MAX: u64 = 1000;

/// The calling thread has released a lock that it did not hold: frees the holder's entry, and remembers the lock and
/// where the holder had acquired it.
pub(crate) fn released(ring: &Ring, lock: u64) {
    let noted = handed_over::note_lock(ring, lock & PAYLOAD_MASK);
    if noted != Noted::New && is_resting(ring) {
        if noted == Noted::NoRoom {
            count_unmatched(ring);
        }
        return;
    }
    let found = search(ring, lock, freed);
    if let Some(meta) = found
        && handed_over::note_place(ring, held_pc(meta)) == Noted::NoRoom
    {
        count_unmatched(ring);
    }
}

/// A lock is used that any thread may release: remembers it as if that had happened.
pub(crate) fn without_guard(ring: &Ring, lock: u64) {
    if handed_over::note_lock(ring, lock & PAYLOAD_MASK) == Noted::NoRoom {
        count_unmatched(ring);
    }
}

/// The calling thread has got a lock that its holder did not release and never will: frees the holder's entry.
///
/// The holder may be a thread of another process, if processes share the lock.
pub(crate) fn abandoned(ring: &Ring, lock: u64) {
    if search(ring, lock, freed).is_none() {
        // Captures belong to no process.
        search_in(ring, lock, |pid| pid != 0, |meta| freed(meta).filter(|_| meta & HELD_PROCESS_SHARED != 0));
    }
}

/// A lock was initialised: if a thread still seems to hold an earlier lock at this address, frees its entry.
pub(crate) fn initialised(ring: &Ring, lock: u64) {
    if !is_resting(ring) {
        search(ring, lock, freed);
    }
}

/// Marks the entry of a lock as destroyed, in the table of the thread that holds it. `is_held` says that a thread holds
/// it for certain. Then the tables are always searched: this is an error of the program, and rare.
pub(crate) fn destroyed(ring: &Ring, lock: u64, is_held: bool) {
    if !is_held && is_resting(ring) {
        return;
    }
    search(ring, lock, |meta| {
        let is_held = matches!(held_state(meta), HELD_HELD | HELD_COND_WAIT);
        is_held.then_some(meta ^ held_change((held_state(meta) ^ HELD_DESTROYED) << HELD_STATE_SHIFT))
    });
}

/// The meta word of a free entry, in place of that of a held lock.
fn freed(meta: u64) -> Option<u64> {
    (held_state(meta) == HELD_HELD).then_some(0)
}

fn count_unmatched(ring: &Ring) {
    let unmatched = &ring.header().releases_unmatched;
    // ORDERING: relaxed, a statistic.
    if unmatched.load(Relaxed) < UNMATCHED_MAX {
        unmatched.fetch_add(1, Relaxed);
    }
}

/// Whether the last search was so short a time ago that there should be no other one yet.
fn is_resting(ring: &Ring) -> bool {
    // ORDERING: relaxed, a hint.
    sys::boottime_ns() < ring.search_rest_until_ns.load(Relaxed)
}

/// Replaces the meta word of the lock's first entry for which `change` gives another. Returns the word that was
/// replaced.
fn search(ring: &Ring, lock: u64, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    let own = sys::pid();
    search_in(ring, lock, |pid| pid == own, change)
}

/// Like [`search`], in the processes that are wanted.
fn search_in(
    ring: &Ring,
    lock: u64,
    is_wanted: impl Fn(u32) -> bool,
    change: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    sys::with_room(|| search_here(ring, lock, is_wanted, change))
}

/// See [`search_in`]. Not inlined, so that its frame is on the stack that the caller has chosen.
#[inline(never)]
fn search_here(
    ring: &Ring,
    lock: u64,
    is_wanted: impl Fn(u32) -> bool,
    change: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    let begin_ns = sys::boottime_ns();
    // ORDERING: relaxed throughout: hints.
    // It begins with the last holder: locks that are handed over often have the same few holders.
    let first = ring.search_from.load(Relaxed);
    let lock = lock & PAYLOAD_MASK;
    let found = slots::handed_out_from(ring, first)
        .filter(|(_, _, owner)| is_wanted(owner.pid.load(Relaxed)))
        .find_map(|(index, slot, _)| {
            let replaced = slot.held.iter().find_map(|held| replace(held, lock, &change))?;
            Some((index, replaced))
        });
    if let Some((index, _)) = found {
        ring.search_from.store(index, Relaxed);
    }
    let end_ns = sys::boottime_ns();
    let rest_ns = (end_ns - begin_ns).saturating_mul(REST).min(REST_MAX_NS);
    ring.search_rest_until_ns.store(end_ns + rest_ns, Relaxed);
    found.map(|(_, replaced)| replaced)
}

fn replace(held: &HeldLock, lock: u64, change: impl Fn(u64) -> Option<u64>) -> Option<u64> {
    // ORDERING: acquire, pairs with the releases in `lock::table`: the lock belongs to the meta word.
    let meta = held.meta.load(Acquire);
    let changed = change(meta)?;
    let is_replaced = payload(held.lock.load(Relaxed)) == lock
        // ORDERING: release, so that a reader sees it no earlier than what led to it.
        && held.meta.compare_exchange(meta, changed, Release, Relaxed).is_ok();
    is_replaced.then_some(meta)
}
