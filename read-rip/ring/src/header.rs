//! The header of a ring, as values: identity, geometry and counters.
//!
//! It reads nothing: `parse` does.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;

use librip_format::SlotParts;

use super::{Clock, Incident, Region};

#[derive(Clone, Debug)]
pub struct Header {
    /// Major and minor version of the format.
    pub version: (u16, u16),
    /// The processor architecture that the process ran on.
    pub machine: Machine,
    /// The user that the process ran as.
    pub uid: u32,
    /// The boot in which the process ran.
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
    /// The type of the file system on which the ring was made.
    pub file_system: FileSystem,
    pub host: String,
    /// Settings that the recorder did not follow.
    pub settings_ignored: IgnoredSettings,
    pub slot_words: u32,
    /// Open spans that a slot has room for.
    pub span_entries: u32,
    pub slot_len_bytes: u64,
    /// Bytes of the file when it was made.
    pub file_len_bytes: u64,
    /// Threads that do not record because no slot was free.
    pub threads_refused_full: u64,
    /// Threads that do not record because no memory was available.
    pub threads_refused_memory: u64,
    /// Threads that record nowhere because of a filter of system calls (seccomp).
    pub threads_refused_filter: u64,
    /// Threads whose exit the recorder cannot notice.
    pub threads_without_exit: u64,
    /// Slots that were given to another thread.
    pub slots_reused: u64,
    /// Modules, sites and texts that did not fit in the ring.
    pub metadata_refused: u64,
    /// Names of locks that did not fit in the ring.
    pub lock_names_refused: u64,
    /// Captures that found no room.
    pub captures_refused: u64,
    pub channel_entries: u32,
    /// Times that a slot keeps of when its owner recorded words.
    pub sampled_times: u32,
    /// How many bytes a slot has for tasks: 0 or [`librip_format::TASK_LEN_BYTES`].
    pub task_len_bytes: u32,
    /// What the recorder asks the kernel about cycles.
    pub usage_level: UsageLevel,
    /// How long a page fault takes that gives the process a new page, ns; `None` if that was not measured.
    pub fault_ns: Option<u64>,
    /// Tasks that have no slot.
    pub tasks_refused: u64,
    /// Channels, and histories of threads in channels, that found no room.
    pub channels_refused: u64,
    /// What the ticks of times mean; `None` if no times are recorded.
    pub clock: Option<Clock>,
    /// Acquisitions that found no free entry in their thread's held-lock table.
    pub held_overflows: u64,
    /// Spans that found no free entry in their thread's table.
    pub span_overflows: u64,
    /// Releases by threads other than the holder that could not be recorded in the holder's table.
    pub releases_unmatched: u64,
    /// Calls on locks that failed, or that are forbidden.
    pub incidents: Vec<Incident>,
    /// Places and locks of which the recorder remembers that a lock was handed over.
    pub handed_over: HandedOver,
    /// How the process ended, as far as it recorded that.
    pub ending: Ending,
    /// How many children were forked, by the process and by its children.
    pub forks: u32,
    /// The process ids of the last of these children; `None` for one that was announced before the fork and has not
    /// noted its id.
    pub recent_children: Vec<Option<u32>>,
    /// Inode of the time namespace in which the process ran; 0 when unknown, or if the kernel has none.
    pub time_namespace: u64,
    /// What that namespace adds to times since boot, ns; `None` when unknown.
    pub boottime_offset_ns: Option<i64>,
    /// The file that the recorder made.
    pub file: FileId,
    /// The file that was read; `None` for a compressed copy.
    pub read_from: Option<OpenedFile>,
    pub modules: Region,
    pub sites: Region,
    /// Where the texts of modules and sites are.
    pub texts: Region,
    pub slots: Region,
    pub lock_names: Region,
    /// The locations of calls of wrapped locks.
    pub calls: Region,
    /// Where the texts to which events refer are.
    pub strings: Region,
    pub channels: Region,
    pub histories: Region,
    /// How long polls took; empty if the program did not count that.
    pub polls: Region,
}

impl Header {
    /// Threads that record nowhere, for whatever reason.
    pub fn threads_refused(&self) -> u64 {
        let counts = [self.threads_refused_full, self.threads_refused_memory, self.threads_refused_filter];
        counts.into_iter().fold(0, u64::saturating_add)
    }

    /// The exit status of the process; `None` if it did not record its exit.
    pub fn exit_status(&self) -> Option<i32> {
        match self.ending {
            Ending::Exit { status, .. } => Some(status),
            Ending::Unrecorded => None,
        }
    }

    pub(crate) fn slot_parts(&self) -> SlotParts {
        SlotParts {
            words: self.slot_words,
            spans: self.span_entries,
            channels: self.channel_entries,
            has_times: self.sampled_times > 0,
            has_task: self.task_len_bytes > 0,
        }
    }

    /// When the machine was started, ns since 1970; `None` if the ring does not say it.
    pub fn boot_realtime_ns(&self) -> Option<u64> {
        self.created_realtime_ns.checked_sub(self.created_boottime_ns)
    }

    /// A length of slots, words, that keeps more history; `None`: no ring has longer slots.
    pub fn longer_slot_words(&self) -> Option<u32> {
        let words = self.slot_words.saturating_mul(4).min(librip_format::SLOT_WORDS_MAX);
        (words > self.slot_words).then_some(words)
    }

    /// The header is that of a forked child of the process that made the ring. How a child ended is not recorded.
    pub fn treat_as_child(&mut self, pid: u32) {
        self.pid = pid;
        self.ending = Ending::Unrecorded;
    }

    /// Whether the file that was read is a copy: another file than the recorder made.
    pub fn is_copy(&self) -> bool {
        self.read_from.is_none_or(|opened| opened.id != self.file)
    }

    /// The file that was read was saved from the file that the recorder made, with all that was known then. That file
    /// belonged to the user `owner`.
    pub fn treat_as_original(&mut self, owner: u32) {
        self.read_from = Some(OpenedFile { id: self.file, owner });
    }

    /// The user whose process says what is in the ring: the owner of its file. If a copy was not saved with its
    /// owner, this is the user that the ring names.
    pub fn owner(&self) -> u32 {
        self.read_from.filter(|opened| opened.id == self.file).map_or(self.uid, |opened| opened.owner)
    }
}

/// A file, whatever its name: its device and its inode there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device, `st_dev`.
    pub device: u64,
    /// The inode, `st_ino`.
    pub inode: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedFile {
    pub id: FileId,
    /// The user that it belongs to.
    pub owner: u32,
}

impl From<&std::fs::Metadata> for OpenedFile {
    fn from(metadata: &std::fs::Metadata) -> OpenedFile {
        let id = FileId { device: metadata.dev(), inode: metadata.ino() };
        OpenedFile { id, owner: metadata.uid() }
    }
}

/// A processor architecture that librip records on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    /// Little-endian aarch64.
    Aarch64,
}

impl Machine {
    pub(super) fn from_elf(number: u32) -> Option<Machine> {
        match object::elf::Machine(u16::try_from(number).ok()?) {
            object::elf::EM_X86_64 => Some(Machine::X86_64),
            object::elf::EM_AARCH64 => Some(Machine::Aarch64),
            _ => None,
        }
    }
}

/// What the recorder remembers of locks that a thread other than their holder released.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandedOver {
    /// The PCs or return addresses of entries of held-lock tables: where such locks had been acquired.
    pub places: HashSet<u64>,
    /// The addresses of such locks.
    pub locks: HashSet<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// tmpfs: a file in memory.
    Tmpfs,
    /// Another one, by its number in `statfs(2)`.
    Other(u64),
}

impl From<u64> for FileSystem {
    /// Decodes the type that `statfs(2)` reports.
    fn from(raw: u64) -> FileSystem {
        if raw == libc::TMPFS_MAGIC as u64 { FileSystem::Tmpfs } else { FileSystem::Other(raw) }
    }
}

/// What the recorder asks the kernel about cycles that may be slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UsageLevel {
    /// Nothing, or something that this version does not know.
    #[default]
    Off,
    /// Processor time, switches and page faults.
    Counts,
    /// How long the thread was ready and had no processor, too.
    Delays,
}

impl From<u32> for UsageLevel {
    /// Decodes the `USAGE_LEVEL_*` of the format.
    fn from(raw: u32) -> UsageLevel {
        match raw {
            librip_format::USAGE_LEVEL_COUNTS => UsageLevel::Counts,
            librip_format::USAGE_LEVEL_DELAYS => UsageLevel::Delays,
            _ => UsageLevel::Off,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// `RIP_WORDS` was not a number from 16 to 16384.
    Words,
    /// `RIP_SLOTS` was not a number from 1 to 16777216.
    Slots,
    /// `RIP_KEEP` was none of `always`, `failure`, `never`.
    Keep,
    /// `RIP_CLOCK` was none of `off`, `contended`, `all`.
    Clock,
    /// `RIP_USAGE` was none of `off`, `counts`, `delays`.
    Usage,
    /// `RIP_POLLS` was neither `off` nor `times`.
    Polls,
    /// There are fewer slots than asked for, because of a limit on file size or address space, or the size of the file
    /// system.
    SlotsLimited,
}

/// The settings that the recorder did not follow. Bits that this version does not know are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IgnoredSettings(u32);

impl IgnoredSettings {
    const KNOWN: [(Setting, u32); 7] = [
        (Setting::Words, librip_format::SETTING_WORDS),
        (Setting::Slots, librip_format::SETTING_SLOTS),
        (Setting::Keep, librip_format::SETTING_KEEP),
        (Setting::Clock, librip_format::SETTING_CLOCK),
        (Setting::Usage, librip_format::SETTING_USAGE),
        (Setting::Polls, librip_format::SETTING_POLLS),
        (Setting::SlotsLimited, librip_format::SETTING_SLOTS_LIMITED),
    ];

    /// Decodes the set of the format.
    pub const fn from_bits(bits: u32) -> IgnoredSettings {
        IgnoredSettings(bits)
    }

    /// The set as the format has it.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The settings of the set that this version knows.
    pub fn iter(self) -> impl Iterator<Item = Setting> {
        Self::KNOWN.into_iter().filter(move |(_, bit)| self.0 & bit != 0).map(|(setting, _)| setting)
    }
}

/// How a process ended, as far as the ring records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process runs, or it had no chance to record its end: a signal, `_exit` or `exec`.
    Unrecorded,
    /// The process called `exit`, or returned from `main`.
    Exit {
        /// The exit status.
        status: i32,
        /// When, ns since boot.
        boottime_ns: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_settings_are_listed_and_unknown_bits_kept() {
        let settings = IgnoredSettings::from_bits(2 | 16 | 1 << 31);
        assert_eq!(settings.iter().collect::<Vec<_>>(), [Setting::Slots, Setting::Clock]);
        assert_eq!(settings.bits(), 1 << 31 | 18);
        assert!(IgnoredSettings::default().is_empty());
    }

    #[test]
    fn tmpfs_has_the_number_of_the_kernel() {
        assert_eq!(FileSystem::from(0x0102_1994), FileSystem::Tmpfs);
        assert_eq!(FileSystem::from(0xef53), FileSystem::Other(0xef53));
    }
}
