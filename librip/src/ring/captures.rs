//! Captures: copies of a thread's slot, which stay when the thread goes on.
//!
//! A copy is in a slot of its own, of the kind [`SLOT_KIND_CAPTURE`]. The ring hands out such slots until it has enough
//! of them; then each capture replaces the oldest one. Only the thread itself copies its slot, so nothing changes
//! meanwhile. Safe in a signal handler.
//!
//! # Invariants
//!
//! * One thread at a time writes a place's slot: it has swapped [`BUSY`] in. A capture that finds a place busy is
//!   counted and dropped, so nobody waits. If a forked child is killed while it captures, its place stays busy.
//! * Slots are found by the control block's numbers. What is copied from a slot in the file is data, and decides
//!   nothing.

#![allow(unsafe_code, reason = "words are copied through the mapping")]

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, fence};

use librip_format::{CAPTURES_MAX, SLOT_CLAIMING, SLOT_EXITED, SLOT_KIND_CAPTURE};

use super::{Ring, Table, slots};
use crate::sys;

/// A place of [`Counters::capture_places`](super::control::Counters::capture_places): it has no slot yet.
const NONE: u32 = 0;
/// A thread copies there. Other numbers are one more than the index of the place's slot.
const BUSY: u32 = u32::MAX;

/// Why something is kept. Each kind has places of its own, so that it replaces only its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The program asks for it, or a cycle was slow.
    Slow,
    /// A cycle was not slow: slow ones are compared with it.
    Usual,
}

/// One place in this many is for cycles that were not slow.
const USUAL_PART: u64 = 8;

/// Keeps what the slot `index` has from a sequence on. The slot is the calling thread's. The header counts it if there
/// is no room.
pub(crate) fn keep(ring: &Ring, index: u64, first_sequence: u64, kept: Kept) {
    if try_keep(ring, index, first_sequence, kept).is_none() {
        // ORDERING: relaxed, a statistic.
        ring.header().captures_refused.fetch_add(1, Relaxed);
    }
}

fn try_keep(ring: &Ring, index: u64, first_sequence: u64, kept: Kept) -> Option<()> {
    let counters = ring.control.counters();
    let room = (ring.geometry.capacity(Table::Slots) / 4).min(CAPTURES_MAX as u64);
    // Cycles that were not slow are kept only if the recorder asks the kernel about cycles.
    let usual_room = if ring.control.usage(index).is_some() { room / USUAL_PART } else { 0 };
    let (begun, first, room) = match kept {
        Kept::Slow => (&counters.captures, 0, room - usual_room),
        Kept::Usual => (&counters.usual_captures, room - usual_room, usual_room),
    };
    // ORDERING: relaxed: each number is handed out once, and the place decides who writes.
    let number = first + begun.fetch_add(1, Relaxed).checked_rem(room)?;
    let place = &counters.capture_places[number as usize];
    // ORDERING: acquire, pairs with the release below: the copy that is replaced is finished.
    let target = match place.swap(BUSY, Acquire) {
        BUSY => return None,
        NONE => slots::fresh(ring).ok().flatten(),
        known => Some(u64::from(known - 1)),
    };
    if let Some(target) = target {
        copy(ring, index, target, first_sequence);
    }
    // Indices of slots are below 2^24.
    place.store(target.map_or(NONE, |target| target as u32 + 1), Release);
    target.map(drop)
}

/// Copies a slot. The orderings are those of `slots::init`.
fn copy(ring: &Ring, from: u64, to: u64, first_sequence: u64) {
    let generation = ring.control.owners()[to as usize].begin_claim();
    let (slot, kept) = (ring.slot(from), ring.slot(to));
    kept.state.store(SLOT_CLAIMING, Relaxed);
    kept.generation.store(generation, Relaxed);
    fence(Release);
    kept.kind.store(SLOT_KIND_CAPTURE, Relaxed);
    // ORDERING: relaxed: this thread's own stores.
    for (field, copy) in [
        (&slot.pid, &kept.pid),
        (&slot.tid, &kept.tid),
        (&slot.pid_namespace, &kept.pid_namespace),
        (&slot.held_overflowed, &kept.held_overflowed),
    ] {
        copy.store(field.load(Relaxed), Relaxed);
    }
    kept.flags.store(slot.flags.load(Relaxed), Relaxed);
    copy_all(&slot.name, &kept.name);
    for (entry, copy) in slot.held.iter().zip(&kept.held) {
        copy_all([&entry.lock, &entry.meta, &entry.since], [&copy.lock, &copy.meta, &copy.since]);
    }
    for (span, copy) in ring.spans(from).iter().zip(ring.spans(to)) {
        copy_all([&span.begin, &span.since, &span.value], [&copy.begin, &copy.since, &copy.value]);
    }
    copy_all(words(ring, from), words(ring, to));
    let first = slot.first_sequence.load(Relaxed).max(first_sequence);
    copy_all(
        [&slot.claimed_boottime_ns, &AtomicU64::new(sys::boottime_ns()), &AtomicU64::new(first), &slot.count],
        [&kept.claimed_boottime_ns, &kept.exited_boottime_ns, &kept.first_sequence, &kept.count],
    );
    kept.state.store(SLOT_EXITED, Release);
}

fn copy_all<'a>(from: impl IntoIterator<Item = &'a AtomicU64>, to: impl IntoIterator<Item = &'a AtomicU64>) {
    for (from, to) in from.into_iter().zip(to) {
        to.store(from.load(Relaxed), Relaxed);
    }
}

fn words(ring: &Ring, index: u64) -> &[AtomicU64] {
    // SAFETY: a slot has this many words, within the mapping and aligned to 8 bytes.
    unsafe { core::slice::from_raw_parts(ring.words(index).cast(), ring.geometry.slot.words as usize) }
}
