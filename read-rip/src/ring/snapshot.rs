//! What was read: a ring as values, with nothing left to check.

use std::collections::HashMap;

use super::{Clock, Defect, HeldLock, Module};

/// One reading of a ring.
#[derive(Debug)]
pub struct Snapshot {
    /// Identity, geometry and counters; a ring of the C ancestor has none.
    pub header: Option<Header>,
    /// Executable and libraries.
    pub modules: Vec<Module>,
    /// The marks in the source that the process had.
    pub sites: Vec<Site>,
    /// All slots that were ever used.
    pub slots: Vec<Slot>,
    /// The names that processes gave to their locks, by pid and address; may contain anything.
    pub lock_names: HashMap<(u32, u64), String>,
    /// What could not be read.
    pub defects: Vec<Defect>,
    /// How much of a sequence was recorded: all of it, or 8 bits by the C ancestor.
    pub sequence_mask: u64,
}

impl Snapshot {
    /// The program that was recorded, if the ring names it.
    pub fn program(&self) -> Option<&Module> {
        self.modules.iter().find(|module| module.is_executable)
    }
}

/// The header of a ring.
#[derive(Clone, Debug)]
pub struct Header {
    /// Major and minor version of the format.
    pub version: (u16, u16),
    /// ELF machine number.
    pub machine: u32,
    /// The user that the process ran as.
    pub uid: u32,
    /// The boot that it ran in.
    pub boot_id: [u8; 16],
    /// The process that made the ring, as its own PID namespace numbers it.
    pub pid: u32,
    /// Inode of that PID namespace; 0 when unknown.
    pub pid_namespace: u64,
    /// When that process started, clock ticks since boot; 0 when unknown.
    pub start_time_ticks: u64,
    /// Clock ticks a second.
    pub ticks_per_second: u32,
    /// When the ring was made, ns since 1970.
    pub created_realtime_ns: u64,
    /// The same moment, ns since boot.
    pub created_boottime_ns: u64,
    /// The type of the file system it was made on.
    pub file_system: u64,
    /// Host name.
    pub host: String,
    /// Settings that were not understood: `librip_format::SETTING_*`.
    pub settings_ignored: u32,
    /// Words of a slot.
    pub slot_words: u32,
    /// Bytes of a slot.
    pub slot_len_bytes: u64,
    /// Bytes of the file when it was made.
    pub file_len_bytes: u64,
    /// Threads that record nowhere for want of a slot.
    pub threads_refused_full: u64,
    /// Threads that record nowhere for want of memory.
    pub threads_refused_memory: u64,
    /// Threads whose exit goes unnoticed.
    pub threads_without_exit: u64,
    /// Slots that have been given to another thread.
    pub slots_reused: u64,
    /// Modules that found no room in the ring.
    pub metadata_refused: u64,
    /// What the ticks of times mean; `None` where no times are recorded.
    pub clock: Option<Clock>,
    /// Acquisitions that found no room in their thread's held-lock table.
    pub held_overflows: u64,
    /// Releases by others than the holder that could not be told to the holder's table.
    pub releases_unmatched: u64,
    /// How the process ended, as far as it said so itself.
    pub ending: Ending,
    /// Where the modules are.
    pub modules: Room,
    /// Where the sites are.
    pub sites: Room,
    /// Where their texts are.
    pub texts: Room,
    /// Where the slots are.
    pub slots: Room,
    /// Where the names of locks are; rings of 1.0 have none.
    pub lock_names: Room,
}

/// A region of the file, checked: all that is used of it lies within the file as it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Where it begins.
    pub offset: u64,
    /// Bytes an entry.
    pub entry_len_bytes: u64,
    /// Entries there is room for.
    pub capacity: u64,
    /// Entries handed out.
    pub used: u64,
}

impl Room {
    /// Bytes that it takes.
    pub(super) fn len_bytes(&self) -> u64 {
        self.capacity * self.entry_len_bytes
    }
}

/// How a process ended, as far as the ring knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It runs, or it was killed, crashed, called `_exit` or `exec`: it had no chance to say.
    Unsaid,
    /// It called `exit`, or returned from `main`.
    Exit {
        /// The exit status.
        status: i32,
        /// When, ns since boot.
        boottime_ns: u64,
    },
}

/// A mark in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index of its module.
    pub module: usize,
    /// Module-relative address.
    pub pc: u64,
    /// Source file, as the compiler was given it.
    pub file: String,
    /// The module path of the source (Rust), or empty.
    pub module_path: String,
    /// The mark's label, or empty.
    pub label: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
    /// `librip_format::KIND_*`.
    pub kind: u8,
    /// `librip_format::SITE_*` and `LOCK_TYPE_*`.
    pub flags: u16,
    /// `librip_format::OPERAND_*` of each operand; none where there are impossibly many.
    pub operand_types: Vec<u8>,
    /// Operand words before the PC word of an event; `None` for types this version does not know.
    pub operand_words: Option<u32>,
}

/// What the ring says of a slot's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Its owner may write.
    Live,
    /// Its owner has said that it ends.
    Exited,
    /// It was changing owners.
    Claiming,
}

/// A thread's history.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Its place in the ring.
    pub index: u64,
    /// What the ring says of its owner.
    pub state: SlotState,
    /// `librip_format::SLOT_KIND_*`.
    pub kind: u32,
    /// How many owners the slot has had.
    pub generation: u32,
    /// The owner's process.
    pub pid: u32,
    /// The owner's thread.
    pub tid: u32,
    /// The PID namespace in which pid and tid count; 0 when unknown.
    pub pid_namespace: u64,
    /// When the owner claimed it, ns since boot; 0 when unknown.
    pub claimed_boottime_ns: u64,
    /// When the owner exited, ns since boot; 0 otherwise.
    pub exited_boottime_ns: u64,
    /// The owner's name; may contain anything.
    pub name: String,
    /// The owner's first sequence.
    pub first_sequence: u64,
    /// The locks that the owner holds or waits for, in the order of their entries.
    pub held: Vec<HeldLock>,
    /// Locks that it holds besides: its table was full.
    pub held_beyond: u32,
    /// Entries of its table that were being written.
    pub held_unclear: u32,
    /// How many words the slot had taken when it was read.
    pub count: u64,
    /// The sequence of `words[0]`.
    pub words_from: u64,
    /// The owner's last words in order, sequence by sequence; 0 stands for one that is not known.
    pub words: Vec<u64>,
    /// Of those not known: reserved, but not written. A live writer was just about to, or a crash came between.
    pub unwritten: u32,
    /// Of those not known: changed while they were read.
    pub torn: u32,
    /// Of those not known: contradict their place. Memory was damaged.
    pub damaged: u32,
}

impl Slot {
    /// The owner's words that later ones have replaced.
    pub fn overwritten(&self) -> u64 {
        self.words_from.saturating_sub(self.first_sequence)
    }
}
