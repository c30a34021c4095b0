//! What a forked child inherits of its parent's held-lock table.
//!
//! The child's image of the forking thread holds the locks that the thread held. The child has a slot of its own, so
//! the entries are copied before the fork and entered when the child claims its slot.

use core::sync::atomic::Ordering::{Relaxed, Release};

use librip_format::{
    HELD_FLAGS, HELD_HELD, HELD_MAX, HELD_PROCESS_SHARED, HELD_SINCE, SlotHeader, held_meta, held_pc,
    held_state, is_operand, pack, payload,
};

/// A copy of a held-lock table: lock, meta and since of each entry. An entry of zeros stands for no lock.
pub(crate) type HeldCopy = [[u64; 3]; HELD_MAX];

pub(crate) const NONE_HELD: HeldCopy = [[0; 3]; HELD_MAX];

/// Copies the entries of locks that the calling thread holds for certain, and that its image in a forked child will
/// hold too.
pub(crate) fn copy(slot: &SlotHeader) -> HeldCopy {
    core::array::from_fn(|index| {
        let entry = &slot.held[index];
        // ORDERING: relaxed: this thread's own stores.
        let [lock, meta, since] = [&entry.lock, &entry.meta, &entry.since].map(|word| word.load(Relaxed));
        let is_inherited = held_state(meta) == HELD_HELD && meta & HELD_PROCESS_SHARED == 0;
        if is_inherited { [lock, meta, since] } else { [0; 3] }
    })
}

/// Enters the locks of the forking thread into the slot of its image in the child.
pub(crate) fn enter(slot: &SlotHeader, locks: &HeldCopy) {
    // ORDERING: relaxed: this thread's own.
    let sequence = slot.count.load(Relaxed);
    let held = locks.iter().filter(|entry| **entry != [0; 3]);
    // ORDERING: relaxed: only this thread reads it.
    slot.held_end.store(held.clone().count() as u16, Relaxed);
    for (entry, &[lock, meta, since]) in slot.held.iter().zip(held) {
        // The entry had a sequence of the parent's slot, and gets one of this slot.
        let lock = pack(sequence, payload(lock), is_operand(lock));
        let meta = held_meta(lock, held_pc(meta), HELD_HELD, meta & (HELD_FLAGS | HELD_SINCE));
        // ORDERING: release: the state comes last, because it is not ACQUIRING. The slot is fresh, and its entries are
        // free.
        entry.since.store(since, Release);
        entry.lock.store(lock, Release);
        entry.meta.store(meta, Release);
    }
}

/// Clears the table of a thread whose process ends: the locks that it holds end with the process.
pub(crate) fn clear(slot: &SlotHeader) {
    for entry in &slot.held {
        // ORDERING: release, as in `lock::table`.
        entry.meta.store(0, Release);
    }
}
