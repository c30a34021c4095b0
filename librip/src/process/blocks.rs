//! The calling thread's blocks, and the slot that they lead to.
//!
//! It changes nothing: `thread` and `task` do. All is inlined: see `release_slot_with_process`.

#![allow(unsafe_code, reason = "thread-local blocks and slots are raw memory")]

use librip_format::SlotHeader;

use crate::arch::ThreadBlock;

/// The slot that a block of the calling thread points at.
#[inline(always)]
pub(super) fn slot_of(block: &ThreadBlock) -> Option<&'static SlotHeader> {
    slot_at(block.cursor.get())
}

#[inline(always)]
pub(super) fn slot_at(cursor: *mut u64) -> Option<&'static SlotHeader> {
    if cursor.is_null() {
        return None;
    }
    let header = cursor.wrapping_byte_sub(size_of::<SlotHeader>());
    // SAFETY: a cursor points at the words of a slot, directly after its header, in a ring that is never unmapped. All
    // fields are atomics.
    Some(unsafe { &*header.cast::<SlotHeader>() })
}

/// This thread's blocks: the owner's, then those of the instances and modules that have joined.
#[inline(always)]
pub(super) fn blocks(own: &ThreadBlock) -> impl Iterator<Item = &ThreadBlock> {
    core::iter::successors(Some(own), |block| {
        // SAFETY: null, or a block that `attach` linked: this thread's, of a library that is pinned in memory.
        unsafe { block.next.get().as_ref() }
    })
}
