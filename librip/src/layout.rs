//! The ring's format, version 1.1: the one definition that recorder and reader share.
//!
//! This file defines bytes and their meaning. It does not map, read or write anything, needs no `std`,
//! and knows no policy.
//!
//! # The file
//!
//! A ring is one file, normally on tmpfs, that the recorded process maps `MAP_SHARED`. It is sparse: only
//! the parts in use occupy memory. All integers have the byte order that [`Header::byte_order`] names (the
//! recorder's own); all offsets are bytes from the start of the file.
//!
//! ```text
//! +------------------+ 0
//! | Header           |  identity, geometry, counters, how it ended        4096 bytes
//! +------------------+ <- found through Header::regions from here on; every region begins on a 4 KiB border
//! | Module ...       |  one executable or shared library: path, build id, load bias
//! +------------------+
//! | Site ...         |  one mark in the source: module-relative PC, file:line, kind, operand types
//! +------------------+
//! | texts            |  bytes that modules and sites refer to by offset and length
//! +------------------+
//! | exit queue       |  one u64 a slot: exited slots in the order of their exits
//! +------------------+
//! | Slot ...         |  512 bytes of SlotHeader, then the words; Header::slot_len_bytes each
//! +------------------+ Header::file_len_bytes
//! ```
//!
//! # A word
//!
//! ```text
//!  63        49 48 47                                   0
//! +------------+--+--------------------------------------+
//! | sequence   |op| payload: a PC, or an operand         |
//! +------------+--+--------------------------------------+
//! ```
//!
//! The word with sequence *s* of a slot with *N* words lies at index *s* mod *N*; its top 15 bits are
//! *s* mod 2^15. All zero means: never written. Bit 48 is clear for a PC and set for an operand. An *event*
//! is a PC word with the operand words directly before it: the site says how many. A word is written by one
//! 64-bit store, so it is never half written in memory.
//!
//! # Lock events
//!
//! What an event means is its site's [`Site::kind`]; the operands' meanings are its `operand_types`, written in
//! this order in front of the PC word:
//!
//! | kind | operands | says |
//! |---|---|---|
//! | [`KIND_LOCK_WAIT`] | time, lock | is about to block until it gets the lock |
//! | [`KIND_LOCK_ACQUIRED`] | (time,) lock | has the lock |
//! | [`KIND_LOCK_RELEASED`] | (time, since,) lock | has let go of it |
//! | [`KIND_LOCK_TRY_FAILED`] | lock | tried, or waited for a limited time, and has not got it |
//! | [`KIND_LOCK_TAKES`] | (time,) lock | a wrapper tries; it has the lock unless a `TRY_FAILED` of it follows |
//! | [`KIND_CONDITION_WAIT`] | time, lock, condition | lets go of the lock until the condition is signalled |
//! | [`KIND_CONDITION_WOKEN`] | time, lock, condition | has the lock again |
//! | [`KIND_LOCK_DESTROYED`] | lock | the lock ends; another one may come to lie there |
//!
//! Between `TAKES` and `TRY_FAILED` or a release there may be a `WAIT` by the same wrapper: then the lock was not
//! free at once. A wrapper records no `ACQUIRED`, so that nothing but one word of the held-lock table is written
//! between taking a lock that is free and the program's own work.
//!
//! # The held-lock table
//!
//! [`SlotHeader::held`] says which locks the owner holds or waits for, however long ago it took them. An entry
//! is in use when its state, in [`HeldLock::place`], is not [`HELD_NONE`]:
//!
//! ```text
//!                      /--> HELD_WAITING --\
//!   NONE --> HELD_TAKING -------------------> HELD_HELD --> HELD_RELEASING --> NONE
//!               ^   |   try failed              |    ^ \
//!               |   +------------------> NONE   v    |  +--> HELD_DESTROYED
//!               |                        HELD_CONDITION
//!   entered before the lock is touched          left after the lock has been given up
//! ```
//!
//! * `HELD` is exact: stored after the lock was got, replaced before it is given up. In `TAKING` and `RELEASING`,
//!   some instructions each, the owner may have the lock or not.
//! * Locks in `WAITING` are not held. In `CONDITION` the lock is given up, or is being waited for after the signal.
//! * In `UNIT`, which only NONE leads to and back, the owner blocks on a semaphore. Nobody holds that.
//! * The lower 8 bits of the sequence in `place` must be those in `lock`; otherwise the entry was being
//!   written, and means nothing.
//! * Marks by hand enter `HELD` without `TAKING`, and may leave `RELEASING` out.
//! * A lock that finds no entry free is counted in [`SlotHeader::held_beyond`].
//!
//! # A slot's life
//!
//! ```text
//!             claim: a thread's first mark               exit: the thread's last destructor
//!   FREE ---------------------------------> LIVE -------------------------------------------> EXITED
//!                                            ^                                                  |
//!                                            +------------- CLAIMING <--------------------------+
//!                                               reuse: oldest exit first, only when no FREE slot is left
//! ```
//!
//! A slot that is LIVE in the file but whose thread or process is gone is *abandoned*: that is a judgement
//! of the reader and not a state in the file. On reuse the count goes on and [`SlotHeader::first_sequence`]
//! says where the new owner's words begin, so a predecessor's words are never taken for its own.
//!
//! # Who writes what
//!
//! | part | written by | when |
//! |---|---|---|
//! | header, identity and geometry | the creator | before [`Header::magic`], which is written last |
//! | header, counters | any thread, atomically | on claims, refusals, exits |
//! | modules, sites, texts | the creator; a library that is loaded later | entry first, its `state` last |
//! | a slot's header | the claiming or exiting thread | `state` last |
//! | a slot's count and words | the slot's owner only | on each mark |
//!
//! # Compatibility
//!
//! A reader refuses another [`VERSION_MAJOR`]. A higher minor version only adds: new regions, new fields in
//! bytes that were reserved and zero, longer entries ([`Region::entry_len_bytes`] says how long), new kinds, and for
//! a slot a trailer behind its words ([`Header::slot_len_bytes`] says how long it is in all). Everything from
//! [`Header::header_len_bytes`] to the first region is zero. A reader ignores what it does not know.
//!
//! 1.1 has added to 1.0: the kinds of lock events and their operand types, [`Site::flags`], the held-lock table,
//! [`SlotHeader::clock`], [`SlotHeader::held_beyond`], the header's fields from [`Header::clock_level`] on, and lock
//! names ([`REGION_LOCK_NAMES`]). All of that is zero in rings of 1.0.

use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// The first eight bytes of a ring. Written last when a ring is made: a file without it was never finished.
pub const MAGIC: [u8; 8] = *b"\x7fRIPRING";
/// A reader refuses a ring with another major version.
pub const VERSION_MAJOR: u16 = 1;
/// A higher minor version adds, and changes nothing that is there.
pub const VERSION_MINOR: u16 = 1;
/// [`Header::byte_order`] as its own writer sees it.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Regions begin at multiples of this.
pub const REGION_ALIGN_BYTES: u64 = 4096;

/// Where rings are made, and looked for, unless told otherwise: tmpfs on every Linux.
pub const DEFAULT_DIRECTORY: &str = "/dev/shm";

/// The fewest words a slot can have.
pub const SLOT_WORDS_MIN: u32 = 16;
/// The most words a slot can have: half of what a 15-bit sequence can tell apart.
pub const SLOT_WORDS_MAX: u32 = 1 << 14;
/// The words of a slot unless the environment or the program says otherwise: a slot is then 1 KiB.
pub const SLOT_WORDS_DEFAULT: u32 = 64;

/// A word's sequence begins at this bit.
pub const SEQUENCE_SHIFT: u32 = 49;
/// This many bits of the sequence are kept in a word.
pub const SEQUENCE_BITS: u32 = 15;
/// Set in an operand word, clear in a PC word.
pub const OPERAND_FLAG: u64 = 1 << 48;
/// The bits of a word that hold a PC or an operand.
pub const PAYLOAD_MASK: u64 = OPERAND_FLAG - 1;

/// Packs a word. `sequence` may be a full count: its upper bits fall off.
///
/// ```
/// use librip::layout::{pack, payload, sequence_bits};
/// let word = pack(1_000_003, 0x5555_0000_1234, false);
/// assert_eq!(payload(word), 0x5555_0000_1234);
/// assert_eq!(sequence_bits(word), 1_000_003 % (1 << 15));
/// ```
pub const fn pack(sequence: u64, payload: u64, operand: bool) -> u64 {
    (sequence << SEQUENCE_SHIFT) | if operand { OPERAND_FLAG } else { 0 } | (payload & PAYLOAD_MASK)
}

/// The low 15 bits of the sequence that a word carries.
pub const fn sequence_bits(word: u64) -> u64 {
    word >> SEQUENCE_SHIFT
}

/// The PC or operand that a word carries.
pub const fn payload(word: u64) -> u64 {
    word & PAYLOAD_MASK
}

/// Whether a word is an operand rather than a PC.
pub const fn is_operand(word: u64) -> bool {
    word & OPERAND_FLAG != 0
}

/// The start of the file.
///
/// Fields are plain where only the creator writes them, before [`Header::magic`], and atomic where threads
/// or processes go on writing them. The reader never maps this type: it takes [`offset_of!`] of its fields.
#[repr(C)]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`]; zero while the ring is being made.
    pub magic: AtomicU64,
    /// [`BYTE_ORDER`] in the recorder's byte order.
    pub byte_order: u32,
    /// [`VERSION_MAJOR`].
    pub version_major: u16,
    /// [`VERSION_MINOR`].
    pub version_minor: u16,
    /// `size_of::<Header>()` of the writer.
    pub header_len_bytes: u32,
    /// The ELF machine number: 62 for x86-64, 183 for aarch64.
    pub machine: u32,
    /// The recorded machine's page size.
    pub page_len_bytes: u32,
    /// The creator's real user id.
    pub uid: u32,
    /// `/proc/sys/kernel/random/boot_id` as 16 bytes: the ring of another boot has no living process.
    pub boot_id: [u8; 16],
    /// The creator's process id in its own PID namespace.
    pub pid: u32,
    /// Clock ticks a second of [`Header::start_time_ticks`].
    pub ticks_per_second: u32,
    /// The creator's start time (field 22 of `/proc/PID/stat`), clock ticks since boot.
    pub start_time_ticks: u64,
    /// Inode of the creator's PID namespace (`/proc/self/ns/pid`): tells equal pids of two containers apart.
    pub pid_namespace: u64,
    /// `CLOCK_REALTIME` when the ring was made, ns since 1970.
    pub created_realtime_ns: u64,
    /// `CLOCK_BOOTTIME` at the same moment, ns since boot; slots use this clock.
    pub created_boottime_ns: u64,
    /// `statfs` type of the file system that holds the ring (tmpfs is 0x01021994).
    pub file_system: u64,
    /// The machine's host name, padded with zeros.
    pub host: [u8; 64],
    /// Settings that were not understood, a set of `SETTING_*`.
    pub settings_ignored: u32,
    /// Words of a slot, a power of two.
    pub slot_words: u32,
    /// Bytes from one slot to the next.
    pub slot_len_bytes: u64,
    /// Length of the file when it was made; a shorter file was truncated by somebody.
    pub file_len_bytes: u64,
    /// Zero.
    pub reserved: u64,
    /// Where everything else is; entries with kind 0 are unused.
    pub regions: [Region; REGIONS_MAX],
    /// Slots whose memory is reserved: those below this index.
    pub slots_reserved: AtomicU64,
    /// Exit queue: no ticket below this is still to be taken out.
    pub exit_head: AtomicU64,
    /// Exit queue: no ticket below this is still to be put in.
    pub exit_tail: AtomicU64,
    /// Threads that record nowhere because all slots were in use.
    pub threads_refused_full: AtomicU64,
    /// Threads that record nowhere because no memory could be had (full tmpfs), or the file was damaged.
    pub threads_refused_memory: AtomicU64,
    /// Threads whose exit cannot be observed: the C library had no thread-specific key to give.
    pub threads_without_exit: AtomicU64,
    /// Slots given to another thread after their owner had exited.
    pub slots_reused: AtomicU64,
    /// Modules, sites or texts that found no room.
    pub metadata_refused: AtomicU64,
    /// When to look for slots of dead threads again, `CLOCK_BOOTTIME` ns: bounds the cost of a full ring.
    pub reclaim_after_ns: AtomicU64,
    /// `EXIT_*`: how the creator ended, as far as it could say so itself.
    pub exit_state: AtomicU32,
    /// The creator's exit status when `exit_state` is [`EXIT_STATUS`].
    pub exit_status: AtomicI32,
    /// `CLOCK_BOOTTIME` of the creator's exit, ns.
    pub exited_boottime_ns: AtomicU64,
    /// Exit-queue cells whose memory is reserved: those below this index.
    pub cells_reserved: AtomicU64,
    /// `CLOCK_LEVEL_*`: which events carry times.
    pub clock_level: u32,
    /// `CLOCK_SOURCE_*`: what their ticks are.
    pub clock_source: u32,
    /// The source's reading is shifted right by this to make ticks of 8 ns or more.
    pub clock_shift: u32,
    /// Zero.
    pub reserved_clock: u32,
    /// The clock in ticks, all 64 bits, at [`Header::clock_base_boottime_ns`]; operands keep the lower 48.
    pub clock_base_ticks: u64,
    /// `CLOCK_BOOTTIME` at the same moment, ns.
    pub clock_base_boottime_ns: u64,
    /// Ticks in 1000 s, as measured over the longest time so far: improved when slots are claimed.
    pub clock_ticks_a_kilosecond: AtomicU64,
    /// Acquisitions that found no free entry in their thread's held-lock table.
    pub held_overflows: AtomicU64,
    /// Releases of locks that the releasing thread did not hold, whose holder was not looked for because such a
    /// search had taken time just before. With any, a by-hand lock that appears held may not be.
    pub releases_unmatched: AtomicU64,
    /// How many children were forked, by the creator and by its children.
    pub forks: AtomicU32,
    /// Process ids of the last of these, the n-th at n modulo their number: for the creator, which asks at its end whether
    /// any is left.
    pub recent_children: [AtomicU32; 15],
}

/// [`Header::clock_level`]: no times.
pub const CLOCK_LEVEL_OFF: u32 = 0;
/// [`Header::clock_level`]: times where a thread waits, and of what it then held.
pub const CLOCK_LEVEL_CONTENDED: u32 = 1;
/// [`Header::clock_level`]: times of all lock events.
pub const CLOCK_LEVEL_ALL: u32 = 2;

/// [`Header::clock_source`]: the processor's counter (TSC, CNTVCT).
pub const CLOCK_SOURCE_COUNTER: u32 = 1;
/// [`Header::clock_source`]: `CLOCK_MONOTONIC`, ns.
pub const CLOCK_SOURCE_MONOTONIC: u32 = 2;

/// [`Header::exit_state`]: the creator has not ended, or had no chance to say so (a signal, `exec`, and `_exit` without the
/// interposer).
pub const EXIT_NONE: u32 = 0;
/// [`Header::exit_state`]: the creator called `exit` or returned from `main`, or called `_exit` under the interposer.
pub const EXIT_STATUS: u32 = 1;

/// [`Header::settings_ignored`]: `RIP_WORDS` was no number from 16 to 16384.
pub const SETTING_WORDS: u32 = 1;
/// [`Header::settings_ignored`]: `RIP_SLOTS` was no number from 1 to 16777216.
pub const SETTING_SLOTS: u32 = 2;
/// [`Header::settings_ignored`]: `RIP_KEEP` was none of `always`, `failure`, `never`.
pub const SETTING_KEEP: u32 = 4;
/// [`Header::settings_ignored`]: there are fewer slots than asked for, because of a limit on file size or address
/// space, or the size of the file system.
pub const SETTING_SLOTS_LIMITED: u32 = 8;

/// [`Header::settings_ignored`]: `RIP_CLOCK` was none of `off`, `contended`, `all`.
pub const SETTING_CLOCK: u32 = 16;

/// The header lists at most this many regions.
pub const REGIONS_MAX: usize = 16;

/// A table in the file.
#[repr(C)]
#[derive(Debug)]
pub struct Region {
    /// `REGION_*`; a reader skips kinds it does not know.
    pub kind: u32,
    /// Bytes from one entry to the next; 1 for texts.
    pub entry_len_bytes: u32,
    /// Where the first entry is, bytes from the start of the file.
    pub offset: u64,
    /// Entries there is room for.
    pub capacity: u64,
    /// Entries handed out, never more than `capacity`. An entry counts once its own `state` says so.
    pub used: AtomicU64,
}

/// [`Region::kind`]: [`Module`] entries.
pub const REGION_MODULES: u32 = 1;
/// [`Region::kind`]: [`Site`] entries.
pub const REGION_SITES: u32 = 2;
/// [`Region::kind`]: bytes that [`Text`] refers to.
pub const REGION_TEXTS: u32 = 3;
/// [`Region::kind`]: the exit queue; see [`EXIT_LAP_SHIFT`].
pub const REGION_EXITS: u32 = 4;
/// [`Region::kind`]: slots.
pub const REGION_SLOTS: u32 = 5;
/// [`Region::kind`]: [`LockName`] entries; `used` is how many may be in use, holes included.
pub const REGION_LOCK_NAMES: u32 = 6;

/// An exit-queue cell has a lap of the queue above this bit; below it 0 for an empty cell, or a slot's index
/// plus one.
pub const EXIT_LAP_SHIFT: u32 = 32;

/// A string in the text region.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Text {
    /// Bytes from the start of the text region.
    pub offset: u32,
    /// Length in bytes; there is no terminator.
    pub len_bytes: u32,
}

/// [`Module::state`] and [`Site::state`]: the entry is complete.
pub const ENTRY_COMPLETE: u32 = 1;

/// An executable or shared library of the recorded process.
#[repr(C)]
#[derive(Debug)]
pub struct Module {
    /// [`ENTRY_COMPLETE`], written last.
    pub state: AtomicU32,
    /// The process that has it loaded: a forked child may load other libraries at the same place.
    pub pid: u32,
    /// Actual address minus module-relative address.
    pub load_bias: u64,
    /// First module-relative address that is mapped.
    pub begin: u64,
    /// Module-relative address behind the last that is mapped.
    pub end: u64,
    /// Path as the dynamic linker, or `/proc/self/exe`, gave it.
    pub path: Text,
    /// Length of `build_id`; 0 where the module has none.
    pub build_id_len_bytes: u32,
    /// 1 for the program itself, 0 for libraries.
    pub is_executable: u32,
    /// The GNU build id, padded with zeros.
    pub build_id: [u8; 32],
    /// The file's length when it was registered, bytes; with `modified_ns` it recognises a replaced file
    /// that has no build id. 0: the file could not be looked at.
    pub file_len_bytes: u64,
    /// The file's modification time when it was registered, ns since 1970.
    pub modified_ns: u64,
    /// Zero.
    pub reserved: [u64; 4],
}

/// The name that a program has given to a lock.
#[repr(C)]
#[derive(Debug)]
pub struct LockName {
    /// `NAME_*`. What is behind it changes only in [`NAME_CLAIMED`].
    pub state: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// The lock's address.
    pub lock: AtomicU64,
    /// The name, padded with zeros.
    pub name: [AtomicU64; NAME_LEN_BYTES / 8],
}

/// [`LockName::state`]: free, or forgotten because the lock was destroyed.
pub const NAME_FREE: u32 = 0;
/// [`LockName::state`]: complete.
pub const NAME_COMPLETE: u32 = 1;
/// [`LockName::state`]: somebody writes it.
pub const NAME_CLAIMED: u32 = 2;

/// One mark in the source, as its ELF note describes it.
#[repr(C)]
#[derive(Debug)]
pub struct Site {
    /// [`ENTRY_COMPLETE`], written last.
    pub state: AtomicU32,
    /// Index of its module.
    pub module: u32,
    /// Module-relative address of the mark's first instruction: the payload of its words minus the load bias.
    pub pc: u64,
    /// File, module path and label, separated by zero bytes.
    pub text: Text,
    /// Line in the source, from 1.
    pub line: u32,
    /// Column in the source, from 1; 0 where the language has none to give.
    pub column: u32,
    /// `KIND_*`.
    pub kind: u8,
    /// How many operand values an event of this site has.
    pub operand_count: u8,
    /// A set of `SITE_*`, and a `LOCK_TYPE_*` above [`SITE_LOCK_TYPE_SHIFT`].
    pub flags: u16,
    /// `OPERAND_*` of each operand.
    pub operand_types: [u8; OPERANDS_MAX],
}

/// An event has at most this many operands.
pub const OPERANDS_MAX: usize = 12;

/// [`Site::kind`]: a plain snapshot.
pub const KIND_SNAP: u8 = 0;
/// [`Site::kind`]: useful work was done.
pub const KIND_PROGRESS: u8 = 1;
/// [`Site::kind`]: see "Lock events" above, here and below.
pub const KIND_LOCK_WAIT: u8 = 2;
/// [`Site::kind`]: see "Lock events".
pub const KIND_LOCK_ACQUIRED: u8 = 3;
/// [`Site::kind`]: see "Lock events".
pub const KIND_LOCK_RELEASED: u8 = 4;
/// [`Site::kind`]: see "Lock events".
pub const KIND_LOCK_TRY_FAILED: u8 = 5;
/// [`Site::kind`]: see "Lock events".
pub const KIND_LOCK_TAKES: u8 = 6;
/// [`Site::kind`]: see "Lock events".
pub const KIND_CONDITION_WAIT: u8 = 7;
/// [`Site::kind`]: see "Lock events".
pub const KIND_CONDITION_WOKEN: u8 = 8;
/// [`Site::kind`]: see "Lock events".
pub const KIND_LOCK_DESTROYED: u8 = 9;

/// [`Site::flags`]: the lock is taken in shared mode.
pub const SITE_SHARED: u16 = 1;
/// [`Site::flags`]: an attempt that does not block.
pub const SITE_TRY: u16 = 2;
/// [`Site::flags`]: within a wrapper, which records all that is done with its locks. The place to show is
/// where the wrapper was called.
pub const SITE_WRAPPER: u16 = 4;
/// [`Site::flags`]: the lock may be taken again by the thread that has it.
pub const SITE_REENTRANT: u16 = 8;
/// [`Site::flags`]: a shared acquisition that passes writers who wait already.
pub const SITE_READERS_FIRST: u16 = 16;
/// [`Site::flags`]: a shared acquisition that may become an exclusive one, of which a lock grants one at a time.
pub const SITE_UPGRADABLE: u16 = 32;
/// [`Site::flags`]: only the thread that took the lock can give it up: its guard cannot be sent to another.
pub const SITE_OWNED: u16 = 64;
/// [`Site::flags`]: a `LOCK_TYPE_*` begins at this bit.
pub const SITE_LOCK_TYPE_SHIFT: u32 = 8;
/// The type of a lock that is marked by hand.
pub const LOCK_TYPE_UNKNOWN: u16 = 0;
/// A mutex.
pub const LOCK_TYPE_MUTEX: u16 = 1;
/// A readers-writer lock.
pub const LOCK_TYPE_RWLOCK: u16 = 2;
/// A spin lock.
pub const LOCK_TYPE_SPIN: u16 = 3;
/// A semaphore: nobody holds it.
pub const LOCK_TYPE_SEMAPHORE: u16 = 4;

/// [`Site::operand_types`]: 48 bits in one operand word.
pub const OPERAND_WORD: u8 = 1;
/// [`Site::operand_types`]: 64 bits in two operand words, the low 32 first.
pub const OPERAND_DOUBLE: u8 = 2;

/// [`Site::operand_types`]: the address of a lock, in one word.
pub const OPERAND_LOCK: u8 = 3;
/// [`Site::operand_types`]: when it happened, ticks, in one word; 0: not known.
pub const OPERAND_TIME: u8 = 4;
/// [`Site::operand_types`]: when what ends here began, ticks, in one word; 0: not known.
pub const OPERAND_SINCE: u8 = 5;
/// [`Site::operand_types`]: the address of a condition variable, in one word.
pub const OPERAND_CONDITION: u8 = 6;
/// [`Site::operand_types`]: a return address, in one word: the event is shown at the call before it, because the site
/// is in a function that stands in for another (an interposed `pthread_mutex_lock`).
pub const OPERAND_CALLER: u8 = 7;

/// How many operand words a value of an `OPERAND_*` type takes; `None` for a type this version does not know.
pub const fn operand_words(operand_type: u8) -> Option<u32> {
    match operand_type {
        OPERAND_WORD | OPERAND_LOCK | OPERAND_TIME | OPERAND_SINCE | OPERAND_CONDITION | OPERAND_CALLER => {
            Some(1)
        }
        OPERAND_DOUBLE => Some(2),
        _ => None,
    }
}

/// What precedes the words of a slot.
#[repr(C)]
#[derive(Debug)]
pub struct SlotHeader {
    /// `SLOT_*`.
    pub state: AtomicU32,
    /// `SLOT_KIND_*`.
    pub kind: AtomicU32,
    /// How many owners the slot has had.
    pub generation: AtomicU32,
    /// The owner's process, in its own PID namespace.
    pub pid: AtomicU32,
    /// The owner's thread, in its own PID namespace.
    pub tid: AtomicU32,
    /// Zero.
    pub reserved_running_tid: AtomicU32,
    /// `CLOCK_BOOTTIME` of the claim, ns. A thread with this tid that started later is another thread.
    pub claimed_boottime_ns: AtomicU64,
    /// `CLOCK_BOOTTIME` of the exit, ns; 0 before.
    pub exited_boottime_ns: AtomicU64,
    /// The owner's first sequence: words before it are a predecessor's.
    pub first_sequence: AtomicU64,
    /// Inode of the owner's PID namespace: pids and tids mean something in there only.
    pub pid_namespace: AtomicU64,
    /// How this thread's times are taken: see [`slot_clock`].
    pub clock: AtomicU32,
    /// Locks that the owner holds and that are not in [`SlotHeader::held`], which was full.
    pub held_beyond: AtomicU32,
    /// The thread's name, padded with zeros.
    pub name: [AtomicU64; NAME_LEN_BYTES / 8],
    /// The locks that the owner holds or waits for. See "The held-lock table" above.
    pub held: [HeldLock; HELD_MAX],
    /// How many words the slot has ever taken: index and sequence of the next word. Advanced before the
    /// words are written.
    pub count: AtomicU64,
    /// Number of words minus one, in the slot itself so that a mark needs one pointer only.
    pub mask: AtomicU64,
}

/// A slot's held-lock table has this many entries.
pub const HELD_MAX: usize = 16;

/// An entry of the held-lock table.
#[repr(C)]
#[derive(Debug)]
pub struct HeldLock {
    /// The lock's address, packed as an operand word with the sequence of the event that entered it.
    pub lock: AtomicU64,
    /// The PC of the acquisition, the state, and more: see [`held_place`].
    pub place: AtomicU64,
    /// Means something where `place` says [`HELD_SINCE`]: in the lower 48 bits when waiting or holding began, ticks, 0
    /// for not known; above them how often the lock was taken again.
    pub since: AtomicU64,
}

/// [`HeldLock::place`]: the state begins at this bit and has three.
pub const HELD_STATE_SHIFT: u32 = 48;
/// State: the entry is free.
pub const HELD_NONE: u64 = 0;
/// State: tries to get the lock, and may have got it already.
pub const HELD_TAKING: u64 = 1;
/// State: waits for the lock.
pub const HELD_WAITING: u64 = 2;
/// State: has the lock.
pub const HELD_HELD: u64 = 3;
/// State: gives the lock up, and may have done so.
pub const HELD_RELEASING: u64 = 4;
/// State: waits for a condition, without the lock, or to get it back.
pub const HELD_CONDITION: u64 = 5;
/// State: the lock was destroyed while it was held.
pub const HELD_DESTROYED: u64 = 6;
/// State: blocks on a semaphore until there is a unit to take.
pub const HELD_UNIT: u64 = 7;
/// [`HeldLock::place`]: in shared mode.
pub const HELD_SHARED: u64 = 1 << 51;
/// [`HeldLock::place`]: [`HeldLock::since`] is this entry's. Without it the time is not known, and the lock was
/// taken once.
pub const HELD_SINCE: u64 = 1 << 52;
/// [`HeldLock::place`]: the PC is a return address, as with [`OPERAND_CALLER`], and the entry that of a wrapper. Without it
/// the PC is a site.
pub const HELD_CALLER: u64 = 1 << 53;
/// [`HeldLock::place`], with [`HELD_CALLER`]: as [`SITE_TRY`].
pub const HELD_TRY: u64 = 1 << 54;
/// [`HeldLock::place`]: the lock lies in memory that processes share. A forked child does not get it with its copy of the
/// memory.
pub const HELD_PROCESS_SHARED: u64 = 1 << 55;
/// The bits of [`HeldLock::place`] that stay as they are while an entry is in use, but for a downgrade.
pub const HELD_FLAGS: u64 = HELD_SHARED | HELD_CALLER | HELD_TRY | HELD_PROCESS_SHARED;
/// [`HeldLock::place`]: the lower bits of the sequence begin here.
pub const HELD_SEQUENCE_SHIFT: u32 = 56;
/// [`HeldLock::since`]: how often the lock was taken again begins at this bit.
pub const HELD_AGAIN_SHIFT: u32 = 48;

/// Packs [`HeldLock::place`]. `flags` are of [`HELD_FLAGS`] and [`HELD_SINCE`]; of `sequence` 8 bits remain.
pub const fn held_place(sequence: u64, pc: u64, state: u64, flags: u64) -> u64 {
    (sequence << HELD_SEQUENCE_SHIFT) | (state << HELD_STATE_SHIFT) | flags | (pc & PAYLOAD_MASK)
}

/// The state in a [`HeldLock::place`].
pub const fn held_state(place: u64) -> u64 {
    (place >> HELD_STATE_SHIFT) & 7
}

/// Packs [`SlotHeader::clock`]: a `CLOCK_LEVEL_*`, a `CLOCK_SOURCE_*` and [`Header::clock_shift`], a byte each.
pub const fn slot_clock(level: u32, source: u32, shift: u32) -> u32 {
    level | source << 8 | shift << 16
}

/// A slot's name, and a lock's, is cut to this length, bytes.
pub const NAME_LEN_BYTES: usize = 48;

/// [`SlotHeader::state`]: never used.
pub const SLOT_FREE: u32 = 0;
/// [`SlotHeader::state`]: its owner may write.
pub const SLOT_LIVE: u32 = 1;
/// [`SlotHeader::state`]: its owner said that it ends.
pub const SLOT_EXITED: u32 = 2;
/// [`SlotHeader::state`]: it changes owners just now.
pub const SLOT_CLAIMING: u32 = 3;

/// [`SlotHeader::kind`]: the slot of a thread.
pub const SLOT_KIND_THREAD: u32 = 1;

/// Bytes of a slot before its words.
pub const SLOT_HEADER_LEN_BYTES: u64 = size_of::<SlotHeader>() as u64;

/// Bytes of a slot with that many words.
pub const fn slot_len_bytes(words: u32) -> u64 {
    SLOT_HEADER_LEN_BYTES + 8 * words as u64
}

/// A cursor points at a slot's words; the count lies this far before it.
pub const CURSOR_TO_COUNT_BYTES: usize = size_of::<SlotHeader>() - offset_of!(SlotHeader, count);
/// A cursor points at a slot's words; the mask lies this far before it.
pub const CURSOR_TO_MASK_BYTES: usize = size_of::<SlotHeader>() - offset_of!(SlotHeader, mask);

// The format's sizes and places. A change here is a change of the format: see "Compatibility".
const _: () = {
    assert!(size_of::<Header>() == 920);
    assert!(offset_of!(Header, clock_level) == 800);
    assert!(offset_of!(Header, clock_base_ticks) == 816);
    assert!(offset_of!(Header, held_overflows) == 840);
    assert!(size_of::<Header>() <= REGION_ALIGN_BYTES as usize);
    assert!(offset_of!(Header, byte_order) == 8);
    assert!(offset_of!(Header, version_major) == 12);
    assert!(offset_of!(Header, boot_id) == 32);
    assert!(offset_of!(Header, start_time_ticks) == 56);
    assert!(offset_of!(Header, host) == 96);
    assert!(offset_of!(Header, regions) == 192);
    assert!(offset_of!(Header, slots_reserved) == 192 + 32 * REGIONS_MAX);
    assert!(size_of::<Region>() == 32);
    assert!(size_of::<Module>() == 128);
    assert!(size_of::<Site>() == 48);
    assert!(size_of::<LockName>() == 64);
    assert!(offset_of!(Site, flags) == 34);
    assert!(size_of::<SlotHeader>() == 512);
    assert!(offset_of!(SlotHeader, clock) == 56);
    assert!(offset_of!(SlotHeader, held_beyond) == 60);
    assert!(size_of::<HeldLock>() == 24);
    assert!(offset_of!(SlotHeader, name) == 64);
    assert!(offset_of!(SlotHeader, held) == 112);
    assert!(offset_of!(SlotHeader, count) == 496);
    assert!(offset_of!(SlotHeader, mask) == 504);
    assert!(align_of::<Header>() == 8 && align_of::<SlotHeader>() == 8);
    assert!(slot_len_bytes(SLOT_WORDS_DEFAULT) == 1024);
    assert!(SLOT_WORDS_MAX as u64 * 2 == 1 << SEQUENCE_BITS);
    assert!(CURSOR_TO_COUNT_BYTES == 16 && CURSOR_TO_MASK_BYTES == 8);
};
