//! A turn of a task as a value, which ends however it ends; by the instance of librip that owns the ring, or by any.

use core::mem::ManuallyDrop;

use crate::process::task_slot::{TaskSlot, Turn};
use crate::process::{instance, task};
use librip_format::WAKERS_UNKNOWN;

/// Begins a turn of a task, in any instance: see [`task::begin_turn`].
///
/// # Safety
///
/// The slot exists.
#[inline]
pub(super) unsafe fn begin_turn(slot: &TaskSlot) -> Turn {
    if instance::is_owner() {
        // SAFETY: the caller's promise.
        unsafe { task::begin_turn(slot) }
    } else {
        // SAFETY: the caller's promise.
        instance::owner().map_or(Turn::NONE, |owner| unsafe { (owner.tasks.begin_turn)(slot) })
    }
}

/// Ends a turn of a task, in any instance: see [`task::end_turn`].
///
/// # Safety
///
/// The slot exists.
#[inline]
pub(super) unsafe fn end_turn(slot: &TaskSlot, turn: Turn, wakers: u32) {
    if instance::is_owner() {
        // SAFETY: the caller's promise.
        unsafe { task::end_turn(slot, turn, wakers) };
    } else if let Some(owner) = instance::owner() {
        // SAFETY: the caller's promise.
        unsafe { (owner.tasks.end_turn)(slot, turn, wakers) };
    }
}

/// A poll of a task, or something like one. If it is dropped, how many can wake the task is not known then.
pub(super) struct Polling<'a> {
    slot: &'a TaskSlot,
    turn: Turn,
}

impl<'a> Polling<'a> {
    /// `None` if the task has no slot.
    pub(super) fn begin(slot: &'a TaskSlot) -> Option<Polling<'a>> {
        // SAFETY: it exists.
        let begin = || unsafe { begin_turn(slot) };
        slot.exists().then(|| Polling { slot, turn: begin() })
    }

    /// The poll has returned, and so many can wake the task: see [`task::end_turn`].
    pub(super) fn end(self, wakers: u32) {
        let this = ManuallyDrop::new(self);
        // SAFETY: `begin` has seen that it exists.
        unsafe { end_turn(this.slot, this.turn, wakers) };
    }
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        // SAFETY: as in `end`.
        unsafe { end_turn(self.slot, self.turn, WAKERS_UNKNOWN) };
    }
}

/// The same in the instance that owns the ring. There a poll takes less long with this type as with [`Polling`]: it
/// passes the turn to no function that is not inlined, so the turn stays in registers.
pub(super) struct PollingHere<'a> {
    slot: &'a TaskSlot,
    turn: Turn,
}

impl<'a> PollingHere<'a> {
    /// # Safety
    ///
    /// The slot exists, and this instance owns the ring.
    #[inline(always)]
    pub(super) unsafe fn begin(slot: &'a TaskSlot) -> PollingHere<'a> {
        // SAFETY: the caller's promise.
        PollingHere { slot, turn: unsafe { task::begin_turn(slot) } }
    }

    /// See [`Polling::end`].
    #[inline(always)]
    pub(super) fn end(self, wakers: u32) {
        let this = ManuallyDrop::new(self);
        // SAFETY: as promised to `begin`.
        unsafe { task::end_turn(this.slot, this.turn, wakers) };
    }
}

impl Drop for PollingHere<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as promised to `begin`.
        unsafe { abandon(self.slot, self.turn) };
    }
}

/// A poll has panicked.
///
/// # Safety
///
/// The slot exists, and this instance owns the ring.
#[cold]
#[inline(never)]
unsafe fn abandon(slot: &TaskSlot, turn: Turn) {
    // SAFETY: the caller's promise.
    unsafe { task::end_turn(slot, turn, WAKERS_UNKNOWN) };
}
