//! The slot of a task, a turn, and a future, as values that instances of librip pass to one another.
//!
//! It does nothing with them: `task` and `futures` do.

#![allow(unsafe_code, reason = "slots are reached through cursors, raw pointers into the mapping")]

use core::ptr;

use librip_format::{AWAITS_MAX, TaskPart};

use super::state;

/// The slot of a task, in the process that made it. Null if the task has none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskSlot {
    /// The cursor of the thread that polls the task.
    pub(super) words: *mut u64,
    pub(super) part: *const TaskPart,
    /// [`state::forks`] of the process.
    pub(super) forks: u32,
    /// The task's number, as [`SlotHeader::tid`](librip_format::SlotHeader::tid) has it.
    pub(super) number: u32,
    pub(super) index: u32,
    /// One more than the index of the task's place, if its polls are counted: see `polls`.
    pub(super) place: u32,
}

// SAFETY: it points into the mapping of a ring, which is never unmapped. `task` says who writes there.
unsafe impl Send for TaskSlot {}
// SAFETY: as for Send.
unsafe impl Sync for TaskSlot {}

impl TaskSlot {
    pub(crate) const NONE: TaskSlot =
        TaskSlot { words: ptr::null_mut(), part: ptr::null(), forks: 0, number: 0, index: 0, place: 0 };

    /// Whether there is a slot.
    #[inline(always)]
    pub(crate) fn exists(&self) -> bool {
        !self.words.is_null()
    }

    pub(super) fn address(&self) -> usize {
        self.words.addr()
    }

    /// The task's number; `None` if there is no slot.
    pub(crate) fn number(&self) -> Option<u32> {
        self.exists().then_some(self.number)
    }

    /// Whether this process may write to the slot, which exists.
    #[inline(always)]
    pub(super) fn is_own(&self) -> bool {
        self.forks == state::forks()
    }

    /// Whether a cursor leads to this slot.
    #[inline(always)]
    pub(super) fn is_at(&self, cursor: *mut u64) -> bool {
        ptr::eq(self.words, cursor)
    }

    /// What the slot says besides.
    ///
    /// # Safety
    ///
    /// The slot exists.
    #[inline(always)]
    pub(super) unsafe fn part(&self) -> &'static TaskPart {
        // SAFETY: the part of a slot in a mapping that stays. All fields are atomics.
        unsafe { &*self.part }
    }
}

/// A turn that has begun, and what the thread was doing before.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// The thread's cursor; null if the turn was not begun.
    pub(super) cursor: *mut u64,
    /// [`TaskPart::turn`], and [`IS_TIMED`].
    number: u64,
}

impl Turn {
    /// No turn: nothing happens when it ends.
    pub(crate) const NONE: Turn = Turn { cursor: ptr::null_mut(), number: 0 };

    /// `is_timed`: the clock was read. Then it is read at the end of the turn too.
    #[inline(always)]
    pub(super) fn new(cursor: *mut u64, number: u64, is_timed: bool) -> Turn {
        Turn { cursor, number: number | if is_timed { IS_TIMED } else { 0 } }
    }

    /// [`TaskPart::turn`] while it lasts.
    #[inline(always)]
    pub(super) fn number(&self) -> u64 {
        self.number & !IS_TIMED
    }

    #[inline(always)]
    pub(super) fn is_timed(&self) -> bool {
        self.number & IS_TIMED != 0
    }
}

/// A bit of [`Turn::number`]. So a turn is two words, which a function gets in registers.
const IS_TIMED: u64 = 1 << 63;

/// A future of a task that the program has named: its entry in [`TaskPart::awaits`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FuturePlace {
    /// That of the task. Null if the future is in no task.
    pub(super) part: *const TaskPart,
    /// [`librip_format::AwaitEntry::place`].
    pub(super) place: u64,
    /// [`AWAITS_MAX`]: it found no room, and is counted.
    pub(super) index: u32,
    /// The slot of the task, and how many owners it had had.
    pub(super) slot: u32,
    pub(super) generation: u32,
}

// SAFETY: as for `TaskSlot`.
unsafe impl Send for FuturePlace {}
// SAFETY: as for `TaskSlot`.
unsafe impl Sync for FuturePlace {}

impl FuturePlace {
    /// No entry.
    pub(crate) const NONE: FuturePlace =
        FuturePlace { part: ptr::null(), place: 0, index: AWAITS_MAX as u32, slot: 0, generation: 0 };

    /// Whether there is an entry, or the future is counted as one that has none.
    #[inline(always)]
    pub(crate) fn exists(&self) -> bool {
        !self.part.is_null()
    }
}
