//! Slots change owners here: claimed, given back, taken from the dead.
//!
//! It works on the ring alone and knows no thread-local state (`thread` does). Everything is safe in a signal
//! handler: atomics, and the few system calls of `sys`.
//!
//! # Invariants
//!
//! * A slot's words are written by one owner at a time. Fresh indices are handed out by one exchange each;
//!   a used slot passes through the exit queue, which gives it to one taker.
//! * Memory is reserved before the index is handed out, so an owner's plain stores cannot fault.
//! * An exited slot is reused only when no fresh one is left, and then the oldest exit first.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU64, fence};

use crate::clock;
use crate::ring::{Extent, Ring};
use crate::sys::{self, NoMemory};
use librip_format::{
    MAGIC, NAME_LEN_BYTES, SLOT_CLAIMING, SLOT_EXITED, SLOT_FREE, SLOT_KIND_THREAD, SLOT_LIVE, SlotHeader,
};

/// Who claims a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) pid_namespace: u64,
}

/// Why a thread gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// All slots have owners.
    Full,
    /// The kernel has no memory for another one, or the file is damaged.
    Memory,
}

/// While the ring is full, dead owners are looked for this often at most.
const RECLAIM_INTERVAL_NS: u64 = 1_000_000_000;

/// Gives `owner` a slot and returns its index.
pub(crate) fn claim(ring: &Ring, owner: Owner) -> Result<u64, Refusal> {
    let (index, expected) = match fresh(ring) {
        Ok(Some(index)) => (index, SLOT_FREE),
        no_fresh => {
            let refusal = if no_fresh.is_err() { Refusal::Memory } else { Refusal::Full };
            (used(ring, owner).ok_or(refusal)?, SLOT_EXITED)
        }
    };
    let slot = ring.slot(index);
    // The file may have been damaged, and the index come from a counter that was set back: then the slot can be
    // somebody else's. Two witnesses: the slot's own state, and the magic where the counters are.
    // ORDERING: relaxed: the exchange only has to be single; what the last owner wrote came with the index.
    let is_ours = slot.state.compare_exchange(expected, SLOT_CLAIMING, Relaxed, Relaxed).is_ok();
    let is_whole = ring.header().magic.load(Relaxed) == u64::from_ne_bytes(MAGIC);
    // ORDERING: acquire, pairs with the guard's release: it says so before it replaces part of the mapping.
    if !is_ours || !is_whole || ring.is_damaged.load(Acquire) {
        ring.is_damaged.store(true, Release);
        return Err(Refusal::Memory);
    }
    if expected == SLOT_EXITED {
        // ORDERING: relaxed, a statistic.
        ring.header().slots_reused.fetch_add(1, Relaxed);
    }
    settle(slot, owner, ring);
    Ok(index)
}

/// Counts a refusal where the reader finds it.
pub(crate) fn count_refusal(ring: &Ring, refusal: Refusal) {
    // The header itself may be what is gone.
    if ring.has_header() {
        let counter = match refusal {
            Refusal::Full => &ring.header().threads_refused_full,
            Refusal::Memory => &ring.header().threads_refused_memory,
        };
        // ORDERING: relaxed, a statistic.
        counter.fetch_add(1, Relaxed);
    }
}

/// Ends the ownership of a slot whose owner will not write any more.
pub(crate) fn release(ring: &Ring, index: u64) {
    let slot = ring.slot(index);
    // ORDERING: relaxed, ordered by the state's release below.
    slot.exited_boottime_ns.store(sys::boottime_ns(), Relaxed);
    // ORDERING: release, pairs with the reader's second look at the state. The next owner synchronises
    // through the exit queue.
    slot.state.store(SLOT_EXITED, Release);
    // Without memory for its cell the slot is not reused; nothing else is lost.
    ring.exit_queue().put(index, |cell| reserve_cell(ring, cell).is_ok());
}

/// Whether any thread has recorded anything.
pub(crate) fn has_events(ring: &Ring) -> bool {
    // ORDERING: relaxed: a thread that records just now is as late as one that would in a moment.
    handed_out(ring).any(|(_, slot)| slot.count.load(Relaxed) > 0)
}

/// Writes the owner's name; longer names are cut.
pub(crate) fn set_name(slot: &SlotHeader, name: &[u8]) {
    let mut bytes = [0u8; NAME_LEN_BYTES];
    let len = name.len().min(NAME_LEN_BYTES);
    bytes[..len].copy_from_slice(&name[..len]);
    for (field, chunk) in slot.name.iter().zip(bytes.chunks_exact(8)) {
        let mut word = [0u8; 8];
        word.copy_from_slice(chunk);
        // ORDERING: relaxed; a reader may see half of a new name, which is cosmetic.
        field.store(u64::from_ne_bytes(word), Relaxed);
    }
}

/// An index nobody had before; `None` when they have run out.
fn fresh(ring: &Ring) -> Result<Option<u64>, Refusal> {
    let slots = ring.geometry.slots;
    let used = &ring.region(slots).used;
    loop {
        // ORDERING: relaxed: the exchange decides who gets the index, and its memory holds nothing yet.
        let next = used.load(Relaxed);
        if next >= slots.capacity {
            return Ok(None);
        }
        reserve_through(ring, next).map_err(|NoMemory| Refusal::Memory)?;
        if used.compare_exchange(next, next + 1, Relaxed, Relaxed).is_ok() {
            return Ok(Some(next));
        }
    }
}

/// Makes slot `index` safe to write to, and those that share its page.
fn reserve_through(ring: &Ring, index: u64) -> Result<(), NoMemory> {
    let geometry = &ring.geometry;
    reserve_entries(ring, &ring.header().slots_reserved, geometry.slots, geometry.slot_len_bytes, index)
}

/// Makes a cell of the exit queue safe to touch. Cells are used from the first, whichever slots exit.
fn reserve_cell(ring: &Ring, cell: u64) -> Result<(), NoMemory> {
    reserve_entries(ring, &ring.header().cells_reserved, ring.geometry.exits, 8, cell)
}

/// Makes entry `index` of a region safe to write to, with all before it and those that share its page.
/// `reserved` counts those that are.
fn reserve_entries(
    ring: &Ring,
    reserved: &AtomicU64,
    extent: Extent,
    len_bytes: u64,
    index: u64,
) -> Result<(), NoMemory> {
    // ORDERING: relaxed on both accesses: reserving again does no harm, and the kernel's work on the page
    // tables of the process is visible to all of its threads.
    let from = reserved.load(Relaxed);
    if index < from {
        return Ok(());
    }
    let entries_a_page = (ring.geometry.page_len_bytes as u64 / len_bytes).max(1);
    let to = (index + 1).next_multiple_of(entries_a_page).min(extent.capacity);
    ring.reserve(extent, len_bytes, from, to)?;
    reserved.fetch_max(to, Relaxed);
    Ok(())
}

/// An exited slot, or else one whose owner has died without saying so.
fn used(ring: &Ring, owner: Owner) -> Option<u64> {
    let queue = ring.exit_queue();
    // ORDERING: relaxed, see `reserve_entries`. A cell without memory has never held anything.
    let is_reserved = |cell| cell < ring.header().cells_reserved.load(Relaxed);
    let index = queue.take(is_reserved).or_else(|| {
        reclaim(ring, owner);
        queue.take(is_reserved)
    })?;
    (index < ring.geometry.slots.capacity).then_some(index)
}

/// The slots that have been handed out so far, with their indices.
pub(crate) fn handed_out(ring: &Ring) -> impl Iterator<Item = (u64, &SlotHeader)> {
    handed_out_from(ring, 0)
}

/// The same, from index `first` on and around.
pub(crate) fn handed_out_from(ring: &Ring, first: u64) -> impl Iterator<Item = (u64, &SlotHeader)> {
    let slots = ring.geometry.slots;
    // ORDERING: relaxed: slots that are being handed out just now are not the ones that are looked for.
    let used = ring.region(slots).used.load(Relaxed).min(slots.capacity);
    let reserved = ring.header().slots_reserved.load(Relaxed);
    let end = used.min(reserved);
    let first = first.min(end);
    (first..end).chain(0..first).map(|index| (index, ring.slot(index)))
}

/// Puts slots of dead threads into the exit queue: forked children that were killed, threads that the C
/// library did not see end. Only in the owner's PID namespace, where ids can be asked about.
fn reclaim(ring: &Ring, owner: Owner) {
    if owner.pid_namespace == 0 {
        return;
    }
    let after = &ring.header().reclaim_after_ns;
    let now = sys::boottime_ns();
    // ORDERING: relaxed, the exchange only elects one thread to do the work.
    let due = after.load(Relaxed);
    if now < due || after.compare_exchange(due, now + RECLAIM_INTERVAL_NS, Relaxed, Relaxed).is_err() {
        return;
    }
    for (index, slot) in handed_out(ring) {
        // ORDERING: acquire, pairs with the release in `settle`: the ids are this owner's.
        if slot.state.load(Acquire) != SLOT_LIVE || slot.pid_namespace.load(Relaxed) != owner.pid_namespace {
            continue;
        }
        let generation = slot.generation.load(Relaxed);
        if !sys::thread_is_gone(slot.pid.load(Relaxed), slot.tid.load(Relaxed)) {
            continue;
        }
        // ORDERING: acquire, as above.
        if slot.state.compare_exchange(SLOT_LIVE, SLOT_CLAIMING, Acquire, Relaxed).is_err() {
            continue;
        }
        // The thread that we asked about may have exited by itself meanwhile, and the slot have a new owner, who
        // was LIVE when we exchanged. The acquire shows us its generation, which it stored before that.
        if slot.generation.load(Relaxed) == generation {
            release(ring, index);
        } else {
            // Given back, unless it has exited by now. It never stopped writing: words do not look at the state.
            let _ = slot.state.compare_exchange(SLOT_CLAIMING, SLOT_LIVE, Release, Relaxed);
        }
    }
}

/// Writes who the owner is, into a slot that is being claimed. The count goes on from the predecessor's.
fn settle(slot: &SlotHeader, owner: Owner, ring: &Ring) {
    // ORDERING: relaxed throughout: a reader accepts these fields only when state and generation are the same
    // before and behind its copy. The fence keeps both of them ahead of the fields, for a reader that sees a
    // new field; the state that ends the claim is stored last, with release.
    slot.generation.fetch_add(1, Relaxed);
    fence(Release);
    slot.kind.store(SLOT_KIND_THREAD, Relaxed);
    slot.pid.store(owner.pid, Relaxed);
    slot.tid.store(owner.tid, Relaxed);
    slot.pid_namespace.store(owner.pid_namespace, Relaxed);
    let now_ns = sys::boottime_ns();
    slot.claimed_boottime_ns.store(now_ns, Relaxed);
    slot.exited_boottime_ns.store(0, Relaxed);
    slot.first_sequence.store(slot.count.load(Relaxed), Relaxed);
    slot.mask.store(u64::from(ring.geometry.slot_words) - 1, Relaxed);
    slot.clock.store(ring.slot_clock, Relaxed);
    slot.held_overflowed.store(0, Relaxed);
    for entry in &slot.held {
        // The place first: without a state the rest means nothing.
        entry.meta.store(0, Relaxed);
        entry.lock.store(0, Relaxed);
    }
    clock::improve(ring.header());
    set_name(slot, &sys::thread_name());
    // ORDERING: release, pairs with the acquire in `reclaim`.
    slot.state.store(SLOT_LIVE, Release);
}
