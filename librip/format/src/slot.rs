//! Slots: one thread's or one task's part of the ring.
//!
//! ```text
//!             claim: a thread's first mark               exit: the thread's last destructor
//!   FREE ---------------------------------> LIVE -------------------------------------------> EXITED
//!                                            ^                                                  |
//!                                            +------------- CLAIMING <--------------------------+
//!                                               reuse: oldest exit first, only when no FREE slot is left
//! ```
//!
//! A slot that is LIVE in the file but whose thread or process is gone is *abandoned*. The reader concludes that; it is
//! not a state in the file. On reuse the count goes on, and [`SlotHeader::first_sequence`] says where the new owner's
//! words begin. So a reader never takes a predecessor's words for the owner's.

use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

use crate::{
    HELD_MAX, HeldLock, OPEN_SPAN_LEN_BYTES, SAMPLED_TIMES_LEN_BYTES, SEQUENCE_BITS, TASK_LEN_BYTES,
};

/// The fewest words that a slot can have.
pub const SLOT_WORDS_MIN: u32 = 16;
/// The most words that a slot can have: half of what a 15-bit sequence can tell apart.
pub const SLOT_WORDS_MAX: u32 = 1 << 14;
/// The words of a slot unless the environment or the program says otherwise. A slot then takes 1 KiB.
pub const SLOT_WORDS_DEFAULT: u32 = 64;

/// Names of threads are cut to this length, bytes.
pub const THREAD_NAME_LEN_BYTES: usize = 40;

/// The part of a slot before its words.
#[repr(C)]
#[derive(Debug)]
pub struct SlotHeader {
    /// `SLOT_*`.
    pub state: AtomicU32,
    /// `SLOT_KIND_*`.
    pub kind: AtomicU32,
    /// The number of owners that the slot has had.
    pub generation: AtomicU32,
    /// The owner's process, in its own PID namespace.
    pub pid: AtomicU32,
    /// The owner's thread, in its own PID namespace.
    pub tid: AtomicU32,
    /// Who created the owner: one more than the index of the creator's slot; 0 when unknown. See
    /// [`SlotHeader::creator_count`].
    pub creator_slot: AtomicU32,
    /// `CLOCK_BOOTTIME` of the claim, ns. A thread with this tid that started later is another thread.
    pub claimed_boottime_ns: AtomicU64,
    /// `CLOCK_BOOTTIME` of the exit, ns; 0 before.
    pub exited_boottime_ns: AtomicU64,
    /// The owner's first sequence. Earlier words are a predecessor's.
    pub first_sequence: AtomicU64,
    /// Inode of the owner's PID namespace: the kernel's inodes of namespaces have 32 bits. Pids and tids are valid in
    /// that namespace only.
    pub pid_namespace: AtomicU32,
    /// Who joined the owner after its exit: one more than the index of the joiner's slot; 0 when unknown. See
    /// [`SlotHeader::joiner_count`]. The joiner writes both, the slot last.
    pub joiner_slot: AtomicU32,
    /// The number of locks that the owner holds and that are not in [`SlotHeader::held`], because it was full.
    pub held_overflowed: AtomicU32,
    /// `SLOT_FLAG_*`.
    pub flags: AtomicU16,
    /// The number of entries of [`SlotHeader::held`] that the owner searches, from the first one. A value below 2 means
    /// 2. The entries that follow are free, except that the last one may be in use. A reader looks at all entries.
    pub held_end: AtomicU16,
    /// The thread's name, padded with zeros: the one that it had when it claimed the slot, unless the program gave it
    /// another one ([`SLOT_FLAG_NAMED`]).
    pub name: [AtomicU64; THREAD_NAME_LEN_BYTES / 8],
    /// The count of the joiner's slot when the join had returned: what the joiner did from then on, it did after all
    /// that the owner did.
    pub joiner_count: AtomicU64,
    /// The locks that the owner holds or waits for: see [`held`](crate::held).
    pub held: [HeldLock; HELD_MAX],
    /// The count of the creator's slot at the creation: what the creator did before it, it did before all that the
    /// owner did. If the creator is unknown, the count of the ring's first slot when the owner claimed this one: what
    /// that slot's owner did before it, it did before this owner's first mark.
    pub creator_count: AtomicU64,
    /// The number of words that the slot has ever taken: the sequence of the next word. A mark advances it before it
    /// writes the word.
    pub count: AtomicU64,
}

/// [`SlotHeader::state`]: never used.
pub const SLOT_FREE: u32 = 0;
/// [`SlotHeader::state`]: the owner may write.
pub const SLOT_LIVE: u32 = 1;
/// [`SlotHeader::state`]: the owner has announced its exit.
pub const SLOT_EXITED: u32 = 2;
/// [`SlotHeader::state`]: the slot is changing owners.
pub const SLOT_CLAIMING: u32 = 3;

/// [`SlotHeader::kind`]: the slot of a thread.
pub const SLOT_KIND_THREAD: u32 = 1;
/// [`SlotHeader::kind`]: a copy of a thread's slot, which the program has kept. Its state is [`SLOT_EXITED`], and
/// [`SlotHeader::exited_boottime_ns`] says when it was made. Words before [`SlotHeader::first_sequence`] are not part
/// of it. Its generation is the number of copies that the slot has had. A later copy may replace it, the oldest first.
pub const SLOT_KIND_CAPTURE: u32 = 2;

/// [`SlotHeader::kind`]: the slot of a [task](crate::task). [`SlotHeader::tid`] is the task's number with
/// [`TASK_ID`](crate::TASK_ID), and the creator is the thread or task that made it. [`SlotHeader::name`] may be empty.
pub const SLOT_KIND_TASK: u32 = 3;

/// A ring has at most this many slots with copies, and at most a quarter of its slots.
pub const CAPTURES_MAX: usize = 64;

/// [`SlotHeader::flags`]: the program named the thread in the ring. The kernel may have another name for it.
pub const SLOT_FLAG_NAMED: u16 = 1;

/// Bytes of a slot before its words.
pub const SLOT_HEADER_LEN_BYTES: u64 = size_of::<SlotHeader>() as u64;

/// What a slot has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotParts {
    /// Words, a power of two.
    pub words: u32,
    /// Open spans.
    pub spans: u32,
    /// Entries for channels.
    pub channels: u32,
    /// Whether it has [`SampledTimes`](crate::SampledTimes).
    pub has_times: bool,
    /// Whether it has [`TaskPart`](crate::TaskPart).
    pub has_task: bool,
}

impl SlotParts {
    /// Where the open spans begin, bytes from the start of the slot. The words end here.
    pub const fn spans_at_bytes(&self) -> u64 {
        SLOT_HEADER_LEN_BYTES + 8 * self.words as u64
    }

    /// Where the entries for channels begin.
    pub const fn channels_at_bytes(&self) -> u64 {
        self.spans_at_bytes() + OPEN_SPAN_LEN_BYTES * self.spans as u64
    }

    /// Where the sampled times begin, if there are any.
    pub const fn times_at_bytes(&self) -> u64 {
        self.channels_at_bytes() + 8 * self.channels as u64
    }

    /// Where the part for tasks begins, if there is one.
    pub const fn task_at_bytes(&self) -> u64 {
        self.times_at_bytes() + if self.has_times { SAMPLED_TIMES_LEN_BYTES } else { 0 }
    }

    /// The length of the slot.
    pub const fn len_bytes(&self) -> u64 {
        self.task_at_bytes() + if self.has_task { TASK_LEN_BYTES } else { 0 }
    }
}

/// A thread's cursor points at the words of its slot. The count is this many bytes before it.
pub const CURSOR_TO_COUNT_BYTES: usize = size_of::<SlotHeader>() - offset_of!(SlotHeader, count);

const _: () = {
    assert!(size_of::<SlotHeader>() == 512);
    assert!(offset_of!(SlotHeader, held_overflowed) == 56);
    assert!(offset_of!(SlotHeader, name) == 64);
    assert!(offset_of!(SlotHeader, joiner_count) == 104);
    assert!(offset_of!(SlotHeader, held) == 112);
    assert!(offset_of!(SlotHeader, count) == 504);
    assert!(align_of::<SlotHeader>() == 8);
    let default =
        SlotParts { words: SLOT_WORDS_DEFAULT, spans: 0, channels: 0, has_times: false, has_task: false };
    assert!(default.len_bytes() == 1024);
    assert!(SLOT_WORDS_MAX as u64 * 2 == 1 << SEQUENCE_BITS);
    assert!(CURSOR_TO_COUNT_BYTES == 8);
};
