//! What is recorded of locks: events, and the held-lock table.
//!
//! It locks nothing itself. `marks` is for locks that are marked by hand, `wrap` for wrappers (`sync`, `raw`),
//! `elsewhere` for what concerns other threads' tables, `names` for names; all write through `table`.

pub(crate) mod elsewhere;
pub(crate) mod marks;
pub(crate) mod names;
pub(crate) mod table;
pub(crate) mod wrap;

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::layout::{HELD_CONDITION, HELD_DESTROYED, HELD_HELD};
use table::Slot;

/// What a wrapper has besides the lock: its address says which lock it is.
///
/// Dropped with the lock, it says so if the lock is held by this thread, and takes the name away: another lock
/// may come to lie there.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    is_named: AtomicBool,
}

impl Identity {
    pub(crate) const fn new() -> Identity {
        Identity { is_named: AtomicBool::new(false) }
    }

    /// The lock's address.
    #[inline(always)]
    pub(crate) fn address(&self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }

    pub(crate) fn set_name(&self, name: &str) {
        // ORDERING: relaxed: who drops the lock has it for himself, by means of its own.
        self.is_named.store(true, Relaxed);
        names::set(self.address(), name.as_bytes());
    }
}

impl Drop for Identity {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: as above.
        if self.is_named.load(Relaxed) {
            names::forget(self.address());
        }
        let is_held: fn(u64) -> bool = |state| state == HELD_HELD || state == HELD_CONDITION;
        if let Some(slot) = Slot::existing()
            && let Some(mut entry) = slot.find(self.address(), is_held)
        {
            entry.set_state(HELD_DESTROYED);
            marks::destroyed_here(slot, self.address());
        }
    }
}
