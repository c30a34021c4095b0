//! The ring format as one table of literal numbers, typed from the description of the format.
//!
//! The [oracle](crate::oracle) reads rings by this table and the [builder](crate::builder) writes them by it. Nothing
//! here comes from `librip_format`: if recorder and reader share a mistake, the table disagrees with both. Its tests
//! compare it with the types of that crate.

/// A field of a structure in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name that the table gives it.
    pub name: &'static str,
    /// Bytes from the start of the structure.
    pub at: usize,
    /// Its length, bytes.
    pub len: usize,
}

/// Declares a structure: a constant for the offset of each field, `FIELDS` with all of them, and `LEN`.
macro_rules! structure {
    ($(#[$doc:meta])* $name:ident, $len:literal bytes: $($field:ident $at:literal + $field_len:literal,)+) => {
        $(#[$doc])*
        pub mod $name {
            $(pub const $field: usize = $at;)+
            /// All fields, in the order of their offsets.
            pub const FIELDS: &[super::Field] =
                &[$(super::Field { name: stringify!($field), at: $at, len: $field_len },)+];
            /// The length of the structure, bytes.
            pub const LEN: usize = $len;
        }
    };
}

structure! {
    /// The header, at the start of the file.
    header_at, 2936 bytes:
    MAGIC 0 + 8,
    BYTE_ORDER 8 + 4,
    VERSION_MAJOR 12 + 2,
    VERSION_MINOR 14 + 2,
    HEADER_LEN 16 + 4,
    MACHINE 20 + 4,
    PAGE_LEN 24 + 4,
    UID 28 + 4,
    BOOT_ID 32 + 16,
    PID 48 + 4,
    TICKS_PER_SECOND 52 + 4,
    START_TIME 56 + 8,
    PID_NAMESPACE 64 + 8,
    CREATED_REALTIME 72 + 8,
    CREATED_BOOTTIME 80 + 8,
    FILE_SYSTEM 88 + 8,
    HOST 96 + 64,
    SETTINGS_IGNORED 160 + 4,
    SLOT_WORDS 164 + 4,
    SLOT_LEN 168 + 8,
    FILE_LEN 176 + 8,
    CHECKSUM 184 + 8,
    REGIONS 192 + 512,
    CLOCK_LEVEL 704 + 4,
    CLOCK_SOURCE 708 + 4,
    CLOCK_SHIFT 712 + 4,
    SPAN_ENTRIES 716 + 4,
    CLOCK_BASE_TICKS 720 + 8,
    CLOCK_BASE_BOOTTIME 728 + 8,
    CLOCK_TICKS_PER_KILOSECOND 736 + 8,
    REFUSED_FULL 744 + 8,
    REFUSED_MEMORY 752 + 8,
    WITHOUT_EXIT 760 + 8,
    SLOTS_REUSED 768 + 8,
    METADATA_REFUSED 776 + 8,
    HELD_OVERFLOWS 784 + 8,
    RELEASES_UNMATCHED 792 + 8,
    EXIT_STATE 800 + 4,
    EXIT_STATUS 804 + 4,
    EXITED_BOOTTIME 808 + 8,
    FORKS 816 + 4,
    RECENT_CHILDREN 820 + 60,
    LOCK_NAMES_REFUSED 880 + 8,
    TIME_NAMESPACE 888 + 8,
    BOOTTIME_OFFSET 896 + 8,
    FILE_DEVICE 904 + 8,
    FILE_INODE 912 + 8,
    INCIDENTS 920 + 1440,
    HANDED_OVER_PLACES 2360 + 256,
    HANDED_OVER_LOCKS 2616 + 256,
    REFUSED_FILTER 2872 + 8,
    SPAN_OVERFLOWS 2880 + 8,
    CAPTURES_REFUSED 2888 + 8,
    CHANNEL_ENTRIES 2896 + 4,
    SAMPLED_TIMES 2900 + 4,
    TASK_LEN 2904 + 4,
    USAGE_LEVEL 2908 + 4,
    CHANNELS_REFUSED 2912 + 8,
    TASKS_REFUSED 2920 + 8,
    FAULT_NS 2928 + 8,
}

structure! {
    /// What an entry of the table of channels has that is written once.
    channel_at, 16 bytes:
    STATE 0 + 4,
    WORDS 4 + 4,
    NAME 8 + 8,
}

structure! {
    /// An entry of the table of channels.
    channel_entry_at, 32 bytes:
    CHANNEL 0 + 16,
    LEVEL 16 + 4,
    RESERVED 20 + 12,
}

structure! {
    /// The header of a history, before its words.
    history_at, 64 bytes:
    SLOT 0 + 4,
    CHANNEL 4 + 4,
    WORDS 8 + 4,
    GENERATION 12 + 4,
    FIRST_SEQUENCE 16 + 8,
    RESERVED 24 + 32,
    COUNT 56 + 8,
}

structure! {
    /// An entry of the header's table of incidents.
    incident_at, 40 bytes:
    KIND 0 + 4,
    COUNT 4 + 4,
    PID 8 + 4,
    TID 12 + 4,
    LOCK 16 + 8,
    CALLER 24 + 8,
    BOOTTIME 32 + 8,
}

structure! {
    /// An entry of the header's list of regions.
    region_at, 32 bytes:
    KIND 0 + 4,
    ENTRY_LEN 4 + 4,
    OFFSET 8 + 8,
    CAPACITY 16 + 8,
    USED 24 + 8,
}

structure! {
    /// An entry of the module table.
    module_at, 128 bytes:
    STATE 0 + 4,
    PID 4 + 4,
    LOAD_BIAS 8 + 8,
    BEGIN 16 + 8,
    END 24 + 8,
    PATH 32 + 8,
    BUILD_ID_LEN 40 + 4,
    IS_EXECUTABLE 44 + 4,
    BUILD_ID 48 + 32,
    FILE_LEN 80 + 8,
    MODIFIED 88 + 8,
    CODE_BEGIN 96 + 8,
    CODE_END 104 + 8,
    RESERVED 112 + 16,
}

structure! {
    /// An entry of the site table.
    site_at, 48 bytes:
    STATE 0 + 4,
    MODULE 4 + 4,
    PC 8 + 8,
    TEXT 16 + 8,
    LINE 24 + 4,
    COLUMN 28 + 4,
    KIND 32 + 1,
    OPERAND_COUNT 33 + 1,
    FLAGS 34 + 2,
    OPERAND_TYPES 36 + 12,
}

structure! {
    /// The part of a slot that is there for tasks, at its end.
    task_at, 256 bytes:
    TURN 0 + 8,
    SINCE 8 + 8,
    POLLER 16 + 8,
    WAKES 24 + 8,
    WAKES_POLLED 32 + 4,
    WAKERS 36 + 4,
    WOKEN 40 + 8,
    LOCATION 48 + 8,
    ORIGIN 56 + 8,
    AWAITS 64 + 128,
    ENTRY_TURNS 192 + 64,
}

structure! {
    /// A future within a task.
    await_at, 16 bytes:
    PLACE 0 + 8,
    TURN 8 + 8,
}

structure! {
    /// The part of a slot before its words.
    slot_at, 512 bytes:
    STATE 0 + 4,
    KIND 4 + 4,
    GENERATION 8 + 4,
    PID 12 + 4,
    TID 16 + 4,
    CREATOR_SLOT 20 + 4,
    CLAIMED 24 + 8,
    EXITED 32 + 8,
    FIRST_SEQUENCE 40 + 8,
    PID_NAMESPACE 48 + 4,
    JOINER_SLOT 52 + 4,
    HELD_OVERFLOWED 56 + 4,
    FLAGS 60 + 2, HELD_END 62 + 2,
    NAME 64 + 40,
    JOINER_COUNT 104 + 8,
    HELD 112 + 384,
    CREATOR_COUNT 496 + 8,
    COUNT 504 + 8,
}

structure! {
    /// An entry of a slot's held-lock table.
    held_at, 24 bytes:
    LOCK 0 + 8,
    META 8 + 8,
    SINCE 16 + 8,
}

structure! {
    /// An entry of a slot's table of open spans.
    span_at, 24 bytes:
    BEGIN 0 + 8,
    SINCE 8 + 8,
    VALUE 16 + 8,
}

structure! {
    /// An entry of the table of texts to which events refer.
    static_text_at, 32 bytes:
    STATE 0 + 4,
    PID 4 + 4,
    ADDRESS 8 + 8,
    TEXT 16 + 8,
    LEN_BYTES 24 + 8,
}

structure! {
    /// An entry of the table of lock names.
    lock_name_at, 64 bytes:
    STATE 0 + 4,
    PID 4 + 4,
    LOCK 8 + 8,
    NAME 16 + 48,
}

structure! {
    /// An entry of the table of calls' locations.
    call_at, 128 bytes:
    STATE 0 + 4,
    PID 4 + 4,
    ADDRESS 8 + 8,
    LINE 16 + 4,
    COLUMN 20 + 4,
    FILE_LEN 24 + 4,
    RESERVED 28 + 4,
    FILE 32 + 96,
}

structure! {
    /// An entry of the table of polls.
    poll_place_at, 17088 bytes:
    STATE 0 + 4,
    PID 4 + 4,
    LOCATION 8 + 8,
    NAME 16 + 40,
    RESERVED 56 + 8,
    LONGEST 64 + 640,
    LANES 704 + 16384,
}

structure! {
    /// One of the longest polls of a place.
    long_poll_at, 80 bytes:
    STATE 0 + 4,
    PID 4 + 4,
    TASK 8 + 4,
    TID 12 + 4,
    BEGAN 16 + 8,
    TOOK 24 + 8,
    LAST 32 + 8,
    NAME 40 + 40,
}

structure! {
    /// What some threads have counted of the polls of a place.
    poll_lane_at, 2048 bytes:
    POLLS 0 + 1024,
    DELAYS 1024 + 1024,
}

structure! {
    /// How often a length was seen.
    poll_lengths_at, 1024 bytes:
    COUNTS 0 + 1016,
    GREATEST 1016 + 8,
}

/// A place of polls has this many lanes, and counts of so many lengths in each.
pub const POLL_LANES: usize = 8;
/// See [`POLL_LANES`].
pub const POLL_COUNTS: usize = 127;

/// The header lists this many regions.
pub const REGIONS: usize = 16;
/// A held-lock table has this many entries.
pub const HELD_ENTRIES: usize = 16;
/// The first bytes of a ring.
pub const MAGIC: [u8; 8] = *b"\x7fRIPRING";
/// The byte-order field of a little-endian ring.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// The ELF machine numbers of x86-64 and of aarch64.
pub const MACHINES: [u32; 2] = [62, 183];
/// Each region starts at a multiple of this.
pub const REGION_ALIGN: usize = 4096;

/// Kinds of regions.
pub mod region {
    pub const MODULES: u32 = 1;
    pub const SITES: u32 = 2;
    pub const TEXTS: u32 = 3;
    pub const SLOTS: u32 = 4;
    pub const LOCK_NAMES: u32 = 5;
    pub const CALLS: u32 = 6;
    pub const STRINGS: u32 = 7;
    pub const CHANNELS: u32 = 8;
    pub const HISTORIES: u32 = 9;
    pub const POLLS: u32 = 10;
}

pub mod slot_state {
    pub const FREE: u32 = 0;
    pub const LIVE: u32 = 1;
    pub const EXITED: u32 = 2;
    pub const CLAIMING: u32 = 3;
}

/// Kinds of sites.
pub mod kind {
    pub const SNAP: u8 = 0;
    pub const PROGRESS: u8 = 1;
    pub const LOCK_WAIT: u8 = 2;
    pub const LOCK_ACQUIRED: u8 = 3;
    pub const LOCK_RELEASED: u8 = 4;
    pub const LOCK_TRY_FAILED: u8 = 5;
    pub const LOCK_ACQUIRE_BEGIN: u8 = 6;
    pub const CONDITION_WAIT: u8 = 7;
    pub const CONDITION_WOKEN: u8 = 8;
    pub const LOCK_DESTROYED: u8 = 9;
    pub const LOCK_INITIALISED: u8 = 10;
    pub const CONDITION_SIGNALLED: u8 = 11;
    pub const CONDITION_UNHEARD: u8 = 12;
    pub const CONDITION_DESTROYED: u8 = 13;
    pub const EVENT: u8 = 14;
    pub const SPAN_BEGIN: u8 = 15;
    pub const SPAN_END: u8 = 16;
    pub const CHANNEL_PEER: u8 = 18;
}

/// Types of operands.
pub mod operand {
    pub const WORD: u8 = 1;
    pub const DOUBLE: u8 = 2;
    pub const LOCK: u8 = 3;
    pub const TIME: u8 = 4;
    pub const SINCE: u8 = 5;
    pub const CONDITION: u8 = 6;
    pub const CALLER: u8 = 7;
    pub const LOCATION: u8 = 8;
    pub const STACK: u8 = 9;
    pub const SHAPE: u8 = 10;
    pub const PEER: u8 = 11;
}

/// Types of locks, and of what else threads wait for: the upper byte of a site's flags, but for its first bit.
pub mod lock_type {
    pub const SHIFT: u32 = 8;
    pub const BITS: u16 = 0x7f00;
    /// The first bit: a future does it.
    pub const OF_FUTURE: u16 = 0x8000;
    pub const UNKNOWN: u16 = 0;
    pub const MUTEX: u16 = 1;
    pub const RWLOCK: u16 = 2;
    pub const SPIN: u16 = 3;
    pub const SEMAPHORE: u16 = 4;
    pub const THREAD: u16 = 5;
    pub const BARRIER: u16 = 6;
    pub const MESSAGE: u16 = 7;
    pub const ONCE: u16 = 8;
    pub const WAKE: u16 = 9;
}

/// The states, and the bits, of an entry of the held-lock table.
pub mod held {
    pub const ACQUIRING: u64 = 1;
    pub const WAITING: u64 = 2;
    pub const HELD: u64 = 3;
    pub const RELEASING: u64 = 4;
    pub const COND_WAIT: u64 = 5;
    pub const DESTROYED: u64 = 6;
    pub const SEM_WAIT: u64 = 7;
    pub const SHARED_BIT: u32 = 56;
    pub const CALLER_BIT: u32 = 57;
    pub const TRY_BIT: u32 = 58;
    pub const PROCESS_SHARED_BIT: u32 = 59;
    pub const STATE_SHIFT: u32 = 60;
    pub const SINCE_BIT: u32 = 63;
    pub const PC_SHIFT: u32 = 8;
    pub const RECURSION_SHIFT: u32 = 48;
    pub const RECURSION_MAX: u64 = 4095;
    /// In the state SEM_WAIT, what the thread waits for.
    pub const FOR_UNIT: u64 = 0;
    pub const FOR_BARRIER: u64 = 1 << SHARED_BIT;
    pub const FOR_THREAD: u64 = 1 << PROCESS_SHARED_BIT;
    pub const FOR_MESSAGE: u64 = FOR_BARRIER | FOR_THREAD;
}

/// The bits of a call, and of the operand before it, that are no address.
pub mod call {
    pub const BITS: u64 = 7;
    pub const LOCK_BITS: u64 = 3;
    pub const LOCK_SHARED: u64 = 1;
    pub const LOCK_OWNED: u64 = 2;
    /// In an entry of the held-lock table.
    pub const HELD_OWNED_BIT: u32 = 58;

    /// The flags of a site that a call stands for.
    pub fn flags(call: u64, is_shared: bool, is_owned: bool) -> u16 {
        const MUTEX: u16 = 1 << 8;
        const RWLOCK: u16 = 2 << 8;
        const OWNED: u16 = 1 << 6;
        const BY_RULE: u16 = 1 << 7;
        const ONCE: u16 = 8 << 8;
        let (how, owned) = match (is_shared, call >> 1 & 3) {
            (false, 0) => (MUTEX, OWNED),
            (false, 1) => (RWLOCK, OWNED),
            (false, 2) if !is_owned => (ONCE | OWNED, 0),
            (false, 2) => (MUTEX, BY_RULE),
            (false, _) => (RWLOCK, BY_RULE),
            (true, 0) if is_owned => (1 | RWLOCK, BY_RULE),
            (true, 0) => (1, 0),
            (true, 1) => (1 | RWLOCK, OWNED),
            (true, 2) => (1 | 16 | RWLOCK, BY_RULE),
            (true, _) => (1 | 32 | RWLOCK, BY_RULE),
        };
        how | 4 | (call as u16 & 1) << 1 | if is_owned { owned } else { 0 }
    }
}

/// States of a lock's name.
pub mod name_state {
    pub const FREE: u32 = 0;
    pub const CLAIMED: u32 = 2;
}

/// Bits of a word.
pub mod word {
    pub const SEQUENCE_SHIFT: u32 = 49;
    pub const OPERAND_BIT: u32 = 48;
    pub const PAYLOAD: u64 = 0xffff_ffff_ffff;
}

/// Packs a word: 15 bits of sequence, the operand flag, 48 bits of payload.
pub fn pack(sequence: u64, operand: bool, payload: u64) -> u64 {
    (sequence % 32_768) << word::SEQUENCE_SHIFT
        | u64::from(operand) << word::OPERAND_BIT
        | payload & word::PAYLOAD
}

#[cfg(test)]
mod tests;
