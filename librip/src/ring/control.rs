//! The control block: the recorder's own counters and owners, in memory that only the processes of the ring share.
//!
//! A ring is recorded by the process that made it and by the children that this process forks. They hand out slots and
//! entries together, so they must share counters. The counters cannot be in the file, because every process that may
//! open the file can change it. So they are in an anonymous `MAP_SHARED` mapping, which only forked children inherit.
//! The file has copies of what the reader needs.
//!
//! The mapping has room for all slots of the ring, 32 bytes each, 72 more if the recorder asks the kernel about cycles,
//! and 24 more if it counts how long polls take. It takes memory only where it is used.
//!
//! FOLKLORE: the kernel keeps such a mapping in a tmpfs of its own, which has no size limit. With
//! `vm.overcommit_memory=2` the kernel ignores `MAP_NORESERVE`, and `mmap` fails if there is not enough memory. In the
//! other modes it refuses no page. So a store to the mapping never raises SIGBUS, unlike a store to the file.
//!
//! # Invariants
//!
//! * The mapping is never unmapped, like the ring's, once the ring is used.
//! * All fields are atomics. Zero is their first value.

#![allow(unsafe_code, reason = "a mapping is raw memory")]

use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, fence};

use librip_format::{
    CAPTURES_MAX, CHANNELS_MAX, HANDED_OVER_MAX, INCIDENTS_MAX, LONG_POLLS, SLOT_CLAIMING, SLOT_EXITED,
    SLOT_LIVE,
};

use super::exit_queue::ExitQueue;
use super::geometry::{Geometry, Table};
use crate::sys::file::{self, Errno};

/// The ring remembers this many forked children, the last ones.
pub(crate) const CHILDREN_MAX: usize = librip_format::RECENT_CHILDREN;

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Counters {
    /// For each table, the number of entries that were handed out.
    pub(crate) used: [AtomicU64; Table::COUNT],
    /// Slots whose memory in the file is reserved: those below this index.
    pub(crate) slots_reserved: AtomicU64,
    /// See [`ExitQueue`].
    exit_head: AtomicU64,
    /// See [`ExitQueue`].
    exit_tail: AtomicU64,
    /// When to look for slots of dead threads again, `CLOCK_BOOTTIME` ns.
    pub(crate) reclaim_after_ns: AtomicU64,
    /// The first process that was found dead with slots: some of them stay as they are. 0: none yet.
    pub(crate) first_dead: AtomicU32,
    /// The number of children that the creator and its children have forked.
    pub(crate) forks: AtomicU32,
    /// Process ids of the last of these children; the n-th is at index n modulo [`CHILDREN_MAX`].
    pub(crate) recent_children: [AtomicU32; CHILDREN_MAX],
    /// The callers that have an entry for an incident: see [`incidents`](super::incidents).
    pub(crate) incidents: [AtomicU64; INCIDENTS_MAX],
    /// Not 0: the creator has ended, and the last child removes the ring.
    pub(super) removal_is_left: AtomicU32,
    pub(super) handed_over_places: [AtomicU64; HANDED_OVER_MAX],
    pub(super) handed_over_locks: [AtomicU64; HANDED_OVER_MAX],
    /// How many captures were begun.
    pub(super) captures: AtomicU64,
    pub(super) capture_places: [AtomicU32; CAPTURES_MAX],
    /// How many captures of cycles that were not slow were begun.
    pub(super) usual_captures: AtomicU64,
    /// See `histories`.
    pub(super) channel_keys: [AtomicU64; CHANNELS_MAX],
    /// How many tasks there were.
    pub(super) tasks: AtomicU32,
    /// How many slots were handed out to tasks for the first time.
    pub(super) task_slots: AtomicU32,
    /// The queue of tasks' slots: see [`ExitQueue`].
    task_head: AtomicU64,
    /// See [`ExitQueue`].
    task_tail: AtomicU64,
}

/// Who owns a slot. The slot's header in the file has a copy.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct SlotOwner {
    /// A [`Life`]. State and generation are one word: an exchange that expects a state also expects its owner.
    life: AtomicU64,
    pub(crate) pid: AtomicU32,
    pub(crate) tid: AtomicU32,
    pub(crate) pid_namespace: AtomicU64,
}

/// The state of a slot, and which of its owners it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// How many owners the slot has had.
    pub(crate) generation: u32,
    /// `SLOT_*`.
    pub(crate) state: u32,
}

impl Life {
    fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.state)
    }
}

impl SlotOwner {
    /// The present state. If it is LIVE, the ids are at least as new as this owner.
    pub(crate) fn life(&self) -> Life {
        // ORDERING: acquire, pairs with the release in `end_claim`: the ids are this owner's or a later one's.
        let word = self.life.load(Acquire);
        Life { generation: (word >> 32) as u32, state: word as u32 }
    }

    /// The calling thread has got the slot for itself, and is about to write its ids. Returns its generation.
    pub(crate) fn begin_claim(&self) -> u32 {
        let generation = self.life().generation.wrapping_add(1);
        // ORDERING: relaxed. The fence keeps the ids that follow after it: see `end_of_dead`.
        self.life.store(Life { generation, state: SLOT_CLAIMING }.pack(), Relaxed);
        fence(Release);
        generation
    }

    /// The ids are the calling thread's.
    pub(crate) fn end_claim(&self) {
        let generation = self.life().generation;
        // ORDERING: release, pairs with the acquire in `life`.
        self.life.store(Life { generation, state: SLOT_LIVE }.pack(), Release);
    }

    /// The owner leaves the slot.
    pub(crate) fn end(&self) {
        let generation = self.life().generation;
        // ORDERING: release: as in `end_claim`.
        self.life.store(Life { generation, state: SLOT_EXITED }.pack(), Release);
    }

    /// Ends the life of an owner that was LIVE when `seen` was read and has turned out to be dead. Returns whether the
    /// caller has got the slot, to put it into the exit queue. A slot that has changed since is left alone, however
    /// late the caller is.
    pub(crate) fn end_of_dead(&self, seen: Life) -> bool {
        // If the ids that the caller read after `seen` are a later owner's, the exchange fails.
        // ORDERING: the fence pairs with the one in `begin_claim`: with a later owner's ids comes that owner's life.
        fence(Acquire);
        let ended = Life { state: SLOT_EXITED, ..seen };
        // ORDERING: relaxed: the exit queue hands the slot over.
        seen.state == SLOT_LIVE
            && self.life.compare_exchange(seen.pack(), ended.pack(), Relaxed, Relaxed).is_ok()
    }
}

/// Which lock a name belongs to, at the place that `lock_names` computes from the lock. The file has the name.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct NameKey {
    /// The lock's address.
    pub(crate) lock: AtomicU64,
    /// A `NAME_*` and the process: see `lock_names`.
    pub(crate) owner: AtomicU32,
    /// One more than the index of its entry in the file; 0 before it has one. It keeps the entry for good.
    pub(crate) entry: AtomicU32,
}

/// A module that is registered in the ring. The entry in the file has a copy, and more.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ModuleKey {
    /// 1 if the key is complete, written last.
    pub(crate) state: AtomicU32,
    pub(crate) load_bias: AtomicU64,
    /// The first actual address.
    pub(crate) begin: AtomicU64,
    /// The actual address after the last one.
    pub(crate) end: AtomicU64,
    /// A hash of the build id.
    pub(crate) build_id: AtomicU64,
}

/// What the owner of a slot had used when the kernel was asked last: see `process::usage`.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct UsageCell {
    /// The thread that asked; 0 if nobody has, or while the answers change.
    pub(crate) tid: AtomicU64,
    /// A moment before it asked, on the system's monotonic clock.
    pub(crate) at_ns: AtomicU64,
    pub(crate) answers: [AtomicU64; USAGE_ANSWERS],
}

/// How many numbers the kernel answers.
pub(crate) const USAGE_ANSWERS: usize = 7;

/// A place of polls: see `polls`. The file has the counts.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PollKey {
    /// What stands for the place, and how far its entry is; 0: free.
    pub(super) key: AtomicU64,
    /// No poll of this length, or a shorter one, is kept.
    pub(super) floor: AtomicU64,
    /// The lengths of the longest polls, ticks, each with a bit.
    pub(super) longest: [AtomicU64; LONG_POLLS],
}

/// When the polls of the task with a slot begin, ticks: see `process::polls`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PollCell {
    /// When the last poll began; 0 before the first one.
    pub(crate) began: AtomicU64,
    /// The slot's count then.
    pub(crate) count: AtomicU64,
    /// When the task was woken for the first time since then, or was made; 0 if it was not.
    pub(crate) woken: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct Control {
    base: NonNull<u8>,
    len_bytes: usize,
    slots: usize,
    names: usize,
    modules: usize,
    /// Histories that a slot may have.
    channels: usize,
    /// The slots that tasks may have: all or none.
    task_slots: usize,
    /// The slots that have a [`UsageCell`]: all or none.
    usage_slots: usize,
    /// Where these cells begin.
    usage_at: usize,
    poll_places: usize,
    /// Where they begin. The [`PollCell`]s of all slots follow, if there are places.
    polls_at: usize,
}

// SAFETY: threads share the memory at `base`, and access all of it through atomics.
unsafe impl Send for Control {}
// SAFETY: as for Send.
unsafe impl Sync for Control {}

/// The arrays start after the counters, at this distance.
const ARRAYS_AT: usize = 2048;
const _: () = assert!(size_of::<Counters>() <= ARRAYS_AT);

impl Control {
    /// Maps a control block for a ring with this geometry.
    ///
    /// # Errors
    ///
    /// Those of `mmap`.
    pub(crate) fn new(geometry: &Geometry, has_usage: bool) -> Result<Control, Errno> {
        let [slots, names, modules] =
            [Table::Slots, Table::LockNames, Table::Modules].map(|table| geometry.capacity(table) as usize);
        let channels = geometry.slot.channels as usize;
        let len_bytes = ARRAYS_AT
            + slots * (size_of::<SlotOwner>() + size_of::<AtomicU64>())
            + names * size_of::<NameKey>()
            + modules * size_of::<ModuleKey>()
            + slots * channels * size_of::<AtomicU32>();
        let task_slots = if geometry.slot.has_task { slots } else { 0 };
        let usage_at = len_bytes.next_multiple_of(8);
        let usage_slots = if has_usage { slots } else { 0 };
        let polls_at = usage_at + usage_slots * size_of::<UsageCell>();
        let poll_places = geometry.capacity(Table::Polls) as usize;
        let poll_cells = if poll_places > 0 { slots } else { 0 };
        let len_bytes = polls_at
            + poll_places * size_of::<PollKey>()
            + poll_cells * size_of::<PollCell>()
            + task_slots * size_of::<AtomicU64>();
        let base = file::map_shared(len_bytes)?;
        Ok(Control {
            base,
            len_bytes,
            slots,
            names,
            modules,
            channels,
            task_slots,
            usage_slots,
            usage_at,
            poll_places,
            polls_at,
        })
    }

    /// Unmaps it: nobody uses the ring.
    pub(super) fn discard(self) {
        // SAFETY: this value owns the mapping, and all references into it borrow this value.
        unsafe { file::unmap(self.base, self.len_bytes) };
    }

    pub(crate) fn counters(&self) -> &Counters {
        // SAFETY: the mapping starts with the counters. It is aligned to a page, and zero at first. All fields are
        // atomics.
        unsafe { self.base.cast::<Counters>().as_ref() }
    }

    /// The owners of all slots, by their index.
    pub(crate) fn owners(&self) -> &[SlotOwner] {
        // SAFETY: `new` made room for the owners here.
        unsafe { self.array(ARRAYS_AT, self.slots) }
    }

    pub(crate) fn exit_queue(&self) -> ExitQueue<'_> {
        let counters = self.counters();
        // SAFETY: `new` made room for the cells after the owners.
        let cells = unsafe { self.array(ARRAYS_AT + size_of_val(self.owners()), self.slots) };
        ExitQueue { head: &counters.exit_head, tail: &counters.exit_tail, cells }
    }

    /// The queue of slots whose tasks have ended. It has no cells if the ring has no room for tasks.
    pub(crate) fn task_queue(&self) -> ExitQueue<'_> {
        let counters = self.counters();
        let at = self.len_bytes - self.task_slots * size_of::<AtomicU64>();
        // SAFETY: `new` made room for the cells at the end.
        let cells = unsafe { self.array(at, self.task_slots) };
        ExitQueue { head: &counters.task_head, tail: &counters.task_tail, cells }
    }

    /// What the owner of a slot had used; `None` if the ring has no room for it.
    pub(crate) fn usage(&self, slot: u64) -> Option<&UsageCell> {
        // SAFETY: `new` made room for these cells there.
        let cells: &[UsageCell] = unsafe { self.array(self.usage_at, self.usage_slots) };
        cells.get(slot as usize)
    }

    /// The places of polls, by their index; empty if the ring has none.
    pub(crate) fn poll_keys(&self) -> &[PollKey] {
        // SAFETY: `new` made room for them there.
        unsafe { self.array(self.polls_at, self.poll_places) }
    }

    /// When the polls of the task with this slot begin; `None` if the ring has no room for it.
    pub(crate) fn poll_cell(&self, slot: u64) -> Option<&PollCell> {
        let cells = if self.poll_places > 0 { self.slots } else { 0 };
        let at = self.polls_at + self.poll_places * size_of::<PollKey>();
        // SAFETY: `new` made room for those of all slots after the places.
        let cells: &[PollCell] = unsafe { self.array(at, cells) };
        cells.get(slot as usize)
    }

    pub(crate) fn name_keys(&self) -> &[NameKey] {
        let at = ARRAYS_AT + self.slots * (size_of::<SlotOwner>() + size_of::<AtomicU64>());
        // SAFETY: `new` made room for the names after the cells of the queue.
        unsafe { self.array(at, self.names) }
    }

    pub(crate) fn module_keys(&self) -> &[ModuleKey] {
        let at = ARRAYS_AT
            + self.slots * (size_of::<SlotOwner>() + size_of::<AtomicU64>())
            + size_of_val(self.name_keys());
        // SAFETY: `new` made room for the modules after the names.
        unsafe { self.array(at, self.modules) }
    }

    /// Where the histories of a slot are, by channel: one more than their places; 0 where there is none.
    pub(super) fn histories(&self, slot: u64) -> &[AtomicU32] {
        let at = ARRAYS_AT
            + self.slots * (size_of::<SlotOwner>() + size_of::<AtomicU64>())
            + size_of_val(self.name_keys())
            + size_of_val(self.module_keys());
        // SAFETY: `new` made room for those of all slots after the modules.
        let all: &[AtomicU32] = unsafe { self.array(at, self.slots * self.channels) };
        &all[slot as usize * self.channels..][..self.channels]
    }

    /// Returns `count` values of `T` from the offset `at` on.
    ///
    /// # Safety
    ///
    /// They are within the mapping, and nothing else is there. `at` is a multiple of 8. All fields of `T` are atomics
    /// of at most 8 bytes.
    unsafe fn array<T>(&self, at: usize, count: usize) -> &[T] {
        let first = self.base.as_ptr().wrapping_add(at).cast::<T>();
        // SAFETY: the caller promises place, alignment and type. Zeros are valid atomics. The mapping is never
        // unmapped.
        unsafe { slice::from_raw_parts(first, count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reclaim_takes_no_slot_from_a_later_owner() {
        let owner = SlotOwner::default();
        assert_eq!(owner.begin_claim(), 1);
        owner.end_claim();
        let seen = owner.life();
        owner.end();
        assert!(!owner.end_of_dead(seen), "the owner has exited by itself");
        assert_eq!(owner.begin_claim(), 2);
        assert!(!owner.end_of_dead(seen), "the next owner writes its ids");
        owner.end_claim();
        assert!(!owner.end_of_dead(seen), "the next owner lives");
        assert_eq!(owner.life(), Life { generation: 2, state: SLOT_LIVE });
        assert!(owner.end_of_dead(owner.life()));
        assert!(!owner.end_of_dead(owner.life()), "once");
        assert_eq!(owner.life(), Life { generation: 2, state: SLOT_EXITED });
    }
}
