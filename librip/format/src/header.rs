//! The header: the start of the file.

use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

use crate::{INCIDENTS_MAX, Incident, REGION_ALIGN_BYTES, REGIONS_MAX, Region};

/// The first eight bytes of a ring. The recorder writes them last: a file without them was never finished.
pub const MAGIC: [u8; 8] = *b"\x7fRIPRING";
/// A reader refuses a ring with another major version.
pub const VERSION_MAJOR: u16 = 1;
/// A higher minor version adds to the format and changes nothing in it.
pub const VERSION_MINOR: u16 = 0;
/// [`Header::byte_order`] as its own writer sees it.
pub const BYTE_ORDER: u32 = 0x0102_0304;

/// The recorder makes rings here, and the reader looks for them here, unless told otherwise: tmpfs on every Linux.
pub const DEFAULT_DIRECTORY: &str = "/dev/shm";

/// The default name of a ring's file is `rip.PROGRAM.PID.START`. It has at most this many letters of the program's
/// name.
pub const PROGRAM_LETTERS_MAX: usize = 64;

/// What stands for a letter of the program's name in the name of a ring's file.
pub fn letter_in_file_name(letter: char) -> char {
    if letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-') { letter } else { '_' }
}

/// The start of the file.
///
/// Fields are plain if only the creator writes them, before [`Header::magic`]. They are atomic if threads or processes
/// go on writing them. The reader never maps this type: it takes [`offset_of!`] of its fields.
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
    /// `/proc/sys/kernel/random/boot_id` as 16 bytes. The ring of another boot has no living process.
    pub boot_id: [u8; 16],
    /// The creator's process id in its own PID namespace.
    pub pid: u32,
    /// Clock ticks a second of [`Header::start_time_ticks`].
    pub ticks_per_second: u32,
    /// The creator's start time (field 22 of `/proc/PID/stat`), clock ticks since boot, as its own time namespace
    /// counts. A reader in another time namespace is shown another number: see [`Header::boottime_offset_ns`].
    pub start_time_ticks: u64,
    /// Inode of the creator's PID namespace (`/proc/self/ns/pid`). It tells equal pids of two containers apart.
    pub pid_namespace: u64,
    /// `CLOCK_REALTIME` when the ring was made, ns since 1970.
    pub created_realtime_ns: u64,
    /// `CLOCK_BOOTTIME` at the same moment, ns since boot. Slots use this clock.
    pub created_boottime_ns: u64,
    /// `statfs` type of the file system that holds the ring (tmpfs is 0x01021994).
    pub file_system: u64,
    /// The machine's host name, padded with zeros.
    pub host: [u8; 64],
    /// A set of `SETTING_*`: settings that the recorder did not obey.
    pub settings_ignored: u32,
    /// Words of a slot, a power of two.
    pub slot_words: u32,
    /// Bytes from one slot to the next.
    pub slot_len_bytes: u64,
    /// Length of the file when it was made, bytes. A shorter file was truncated.
    pub file_len_bytes: u64,
    /// [`header_checksum`](crate::header_checksum) of the fields that are written once.
    pub checksum: u64,
    /// Where everything else is. Entries with kind 0 are unused.
    pub regions: [Region; REGIONS_MAX],
    /// `CLOCK_LEVEL_*`: which events have times.
    pub clock_level: u32,
    /// `CLOCK_SOURCE_*`: which clock ticks.
    pub clock_source: u32,
    /// The source's reading is shifted right by this, which makes ticks of 8 ns or more.
    pub clock_shift: u32,
    /// How many open spans a slot has room for, after its words; 0 if none of the program's modules had spans when the
    /// ring was made. See [`span`](crate::span).
    pub span_entries: u32,
    /// The clock in ticks, all 64 bits, at [`Header::clock_base_boottime_ns`]. Operands keep the lower 48 bits.
    pub clock_base_ticks: u64,
    /// `CLOCK_BOOTTIME` at the same moment, ns.
    pub clock_base_boottime_ns: u64,
    /// Ticks in 1000 s, as measured over the longest time so far. Threads improve it as they claim slots and take
    /// times.
    pub clock_ticks_per_kilosecond: AtomicU64,
    /// Threads that record nowhere because all slots were in use.
    pub threads_refused_full: AtomicU64,
    /// Threads that record nowhere because there was no memory (full tmpfs), or the file was damaged.
    pub threads_refused_memory: AtomicU64,
    /// Threads whose exit goes unnoticed: the C library had no thread-specific key left.
    pub threads_without_exit: AtomicU64,
    /// Slots that were given to another thread after their owner had exited.
    pub slots_reused: AtomicU64,
    /// Modules with their sites and texts, sites of processes, texts of events, and calls, that found no room.
    pub metadata_refused: AtomicU64,
    /// Acquisitions that found no free entry in their thread's held-lock table.
    pub held_overflows: AtomicU64,
    /// Releases of locks that the releasing thread did not hold, if the recorder did not search for the holder because
    /// such a search had taken time just before, and [`Header::handed_over_locks`] has no room for the lock; and places
    /// that found no room in [`Header::handed_over_places`]. If there are any, a lock that any thread can release and
    /// that appears held may not be held.
    pub releases_unmatched: AtomicU64,
    /// `EXIT_*`: how the creator ended, if it could record that.
    pub exit_state: AtomicU32,
    /// The creator's exit status when `exit_state` is [`EXIT_STATUS`].
    pub exit_status: AtomicI32,
    /// `CLOCK_BOOTTIME` of the creator's exit, ns.
    pub exited_boottime_ns: AtomicU64,
    /// How many children were forked, by the creator and by its children.
    pub forks: AtomicU32,
    /// Process ids of the last of these children; the n-th is at index n modulo [`RECENT_CHILDREN`].
    /// [`CHILD_ANNOUNCED`]: the child has not noted its id yet.
    pub recent_children: [AtomicU32; RECENT_CHILDREN],
    /// Names of locks that found no room.
    pub lock_names_refused: AtomicU64,
    /// Inode of the creator's time namespace (`/proc/self/ns/time`); 0 if the kernel has none, or it is not known.
    pub time_namespace: u64,
    /// What that namespace adds to `CLOCK_BOOTTIME`, ns: all times of the ring, but `CLOCK_REALTIME`, contain it.
    /// [`OFFSET_UNKNOWN`] if it is not known.
    pub boottime_offset_ns: i64,
    /// Device of the ring's file (`st_dev`). Together with the inode it tells the ring from a copy.
    pub file_device: u64,
    /// Inode of the ring's file.
    pub file_inode: u64,
    /// Calls on locks that failed, or that are forbidden: see [`incident`](crate::incident).
    pub incidents: [Incident; INCIDENTS_MAX],
    /// Places at which locks were acquired that other threads than their holders released: the PCs of their entries in
    /// held-lock tables. 0 where there is none.
    pub handed_over_places: [AtomicU64; HANDED_OVER_MAX],
    /// Addresses of locks that other threads than their holders released, the first ones. 0 where there is none.
    pub handed_over_locks: [AtomicU64; HANDED_OVER_MAX],
    /// Threads that record nowhere because the program restricts its system calls, or the kernel refused one (seccomp).
    pub threads_refused_filter: AtomicU64,
    /// Spans that found no free entry in their thread's table of open spans.
    pub span_overflows: AtomicU64,
    /// Copies of slots that the program wanted to keep and that found no room: see
    /// [`SLOT_KIND_CAPTURE`](crate::SLOT_KIND_CAPTURE).
    pub captures_refused: AtomicU64,
    /// How many entries for channels a slot has, after its open spans; 0 if none of the program's modules had channels
    /// when the ring was made. See [`channel`](crate::channel).
    pub channel_entries: u32,
    /// How many sampled times a slot keeps, after its entries for channels: 0 or
    /// [`SAMPLED_TIMES`](crate::SAMPLED_TIMES).
    pub sampled_times: u32,
    /// How many bytes a slot has for [tasks](crate::task), at its end: [`TASK_LEN_BYTES`](crate::TASK_LEN_BYTES), or 0
    /// if none of the program's modules had tasks when the ring was made.
    pub task_len_bytes: u32,
    /// `USAGE_LEVEL_*`: what the recorder asks the kernel about cycles and spans. See [`usage`](crate::usage).
    pub usage_level: u32,
    /// Channels, and histories of threads in channels, that found no room.
    pub channels_refused: AtomicU64,
    /// Tasks that have no slot: there was no room, or the ring has none for tasks.
    pub tasks_refused: AtomicU64,
    /// How long a page fault takes that gives the process a new page, ns, as measured when the ring was made; 0 if it
    /// was not measured, because of [`Header::usage_level`].
    pub fault_ns: AtomicU64,
}

/// How many children [`Header::recent_children`] has room for.
pub const RECENT_CHILDREN: usize = 15;

/// [`Header::recent_children`]: the parent is about to fork, or the child has not noted its id yet.
pub const CHILD_ANNOUNCED: u32 = u32::MAX;

/// [`Header::boottime_offset_ns`]: not known.
pub const OFFSET_UNKNOWN: i64 = i64::MIN;

/// The header has room for this many places and locks that were handed over.
pub const HANDED_OVER_MAX: usize = 32;

/// [`Header::exit_state`]: the creator has not ended, or could not record it (a signal, `exec`, and `_exit` without the
/// interposer).
pub const EXIT_NONE: u32 = 0;
/// [`Header::exit_state`]: the creator called `exit` or returned from `main`, or called `_exit` under the interposer.
pub const EXIT_STATUS: u32 = 1;

/// [`Header::settings_ignored`]: `RIP_WORDS` was not a number from 16 to 16384.
pub const SETTING_WORDS: u32 = 1;
/// [`Header::settings_ignored`]: `RIP_SLOTS` was not a number from 1 to 16777216.
pub const SETTING_SLOTS: u32 = 2;
/// [`Header::settings_ignored`]: `RIP_KEEP` was not `always`, `failure` or `never`.
pub const SETTING_KEEP: u32 = 4;
/// [`Header::settings_ignored`]: there are fewer slots than asked for, because of a limit on file size or address
/// space, or because of the size of the file system.
pub const SETTING_SLOTS_LIMITED: u32 = 8;
/// [`Header::settings_ignored`]: `RIP_CLOCK` was not `off`, `contended`, `ticks` or `all`.
pub const SETTING_CLOCK: u32 = 16;
/// [`Header::settings_ignored`]: `RIP_USAGE` was not `off`, `counts` or `delays`.
pub const SETTING_USAGE: u32 = 32;
/// [`Header::settings_ignored`]: `RIP_POLLS` was not `off` or `times`.
pub const SETTING_POLLS: u32 = 64;

const _: () = {
    assert!(size_of::<Header>() == 1496 + 40 * INCIDENTS_MAX);
    assert!(size_of::<Header>() <= REGION_ALIGN_BYTES as usize);
    assert!(align_of::<Header>() == 8);
    assert!(offset_of!(Header, byte_order) == 8);
    assert!(offset_of!(Header, version_major) == 12);
    assert!(offset_of!(Header, boot_id) == 32);
    assert!(offset_of!(Header, start_time_ticks) == 56);
    assert!(offset_of!(Header, host) == 96);
    assert!(offset_of!(Header, regions) == 192);
    assert!(offset_of!(Header, clock_level) == 704);
    assert!(offset_of!(Header, clock_base_ticks) == 720);
    assert!(offset_of!(Header, threads_refused_full) == 744);
    assert!(offset_of!(Header, exit_state) == 800);
    assert!(offset_of!(Header, forks) == 816);
    assert!(offset_of!(Header, lock_names_refused) == 880);
    assert!(offset_of!(Header, time_namespace) == 888);
    assert!(offset_of!(Header, incidents) == 920);
    assert!(offset_of!(Header, handed_over_places) == 920 + 40 * INCIDENTS_MAX);
    assert!(offset_of!(Header, threads_refused_filter) == 1432 + 40 * INCIDENTS_MAX);
    assert!(offset_of!(Header, span_overflows) == 1440 + 40 * INCIDENTS_MAX);
    assert!(offset_of!(Header, captures_refused) == 1448 + 40 * INCIDENTS_MAX);
    assert!(offset_of!(Header, channel_entries) == 1456 + 40 * INCIDENTS_MAX);
};
