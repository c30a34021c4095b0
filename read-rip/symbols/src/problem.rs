//! What can be wrong with a module's files, as values that print as one lowercase fragment, with a hint.
//!
//! It finds no problems itself. A problem is an answer and not an error: resolving continues with what is left.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

/// Why the frames of one module are missing or incomplete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleProblem {
    /// Index of the module, as in [`Resolver::new`](super::Resolver::new).
    pub module: usize,
    pub path: PathBuf,
    pub what: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The recorded path names no file that could be opened; the reason.
    BadPath(&'static str),
    /// The file does not exist.
    Missing,
    /// It is a directory, FIFO, socket or device, and was not opened.
    NotRegularFile,
    /// It is not an ELF file of the kinds that are read; the reason.
    NotElf(&'static str),
    /// It is another build than the recorded one.
    WrongBuildId {
        /// The recorded build id.
        expected: Vec<u8>,
        /// The file's build id; empty if it has none.
        found: Vec<u8>,
    },
    /// It has no build id, and its length or modification time is not the recorded one.
    FileChanged {
        /// Recorded length, bytes; 0 when unknown.
        expected_len_bytes: u64,
        /// Length now, bytes.
        found_len_bytes: u64,
    },
    /// The ring has neither build id, length nor modification time of this module.
    Unverifiable,
    /// The separate debug file does not have the checksum of the module's debug link.
    WrongChecksum {
        /// CRC-32 in the link.
        expected: u32,
        /// CRC-32 of the file.
        found: u32,
    },
    /// No DWARF was found, in the file or separately.
    NoDebugInfo {
        /// Whether there is a symbol table. Then functions are known, and lines are not.
        functions_from_symbols: bool,
    },
    /// Neither a `.dwo` file nor a `.dwp` file with its content was found. Functions come from the symbol table,
    /// and inlined callers are missing. Only the first such file is reported.
    MissingSplit,
    /// The debug information contradicts itself; the reason.
    Damaged(String),
    /// The system refused to read it; the reason.
    Unreadable(String),
    TooLarge {
        /// The claimed length, bytes.
        len_bytes: u64,
        /// The limit, bytes.
        limit_bytes: u64,
    },
    /// Its line tables would take too much memory. Functions come from the symbol table.
    LineTables {
        /// The limit, bytes.
        limit_bytes: u64,
    },
}

impl ModuleProblem {
    /// Whether the file is the right one, and was only built without debug information, or separated from it.
    pub fn is_about_debug_info(&self) -> bool {
        matches!(self.what, Problem::NoDebugInfo { .. } | Problem::MissingSplit)
    }

    /// What to do about it, as one lowercase sentence without a full stop.
    pub fn hint(&self) -> &'static str {
        match &self.what {
            Problem::BadPath(_) | Problem::Unverifiable => {
                "name the program with -e; --debug-dir finds the debug file of a library that has a build id"
            }
            Problem::Missing => {
                "the file was moved or removed, or is in a container: name the program with -e, or the directory of \
                 its debug files with --debug-dir"
            }
            Problem::NotRegularFile | Problem::NotElf(_) => {
                "the path no longer leads to a program or library: name the recorded file with -e"
            }
            Problem::WrongBuildId { .. } | Problem::FileChanged { .. } => {
                "it is not the recorded build: name the recorded file with -e, or the directory of its debug file \
                 with --debug-dir"
            }
            Problem::WrongChecksum { .. } => {
                "the debug file is of another build: install the one of this build, or name its directory \
                 with --debug-dir"
            }
            Problem::NoDebugInfo { functions_from_symbols: true } => {
                "for lines and inlined callers, build with debug information (-g), or name the directory of the debug \
                 file with --debug-dir"
            }
            Problem::NoDebugInfo { functions_from_symbols: false } => {
                "the file was stripped: name an unstripped copy with -e, or the directory of its debug file \
                 with --debug-dir"
            }
            Problem::MissingSplit => {
                "keep the .dwo files where the compiler wrote them, or put a .dwp file beside the program"
            }
            Problem::Damaged(_) | Problem::TooLarge { .. } | Problem::LineTables { .. } => {
                "the file may be damaged: compare it with the one that was built"
            }
            Problem::Unreadable(_) => "read it as a user with permission, or name a copy with -e",
        }
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadPath(reason) => write!(f, "the recorded path is not used: {reason}"),
            Self::Missing => write!(f, "no such file"),
            Self::NotRegularFile => write!(f, "not a regular file"),
            Self::NotElf(reason) => write!(f, "not a program or library: {reason}"),
            Self::WrongBuildId { expected, found } if found.is_empty() => {
                write!(f, "expected build id {}, found no build id", Hex(expected))
            }
            Self::WrongBuildId { expected, found } => {
                write!(f, "expected build id {}, found {}", Hex(expected), Hex(found))
            }
            Self::FileChanged { expected_len_bytes: expected, found_len_bytes: found }
                if expected == found =>
            {
                write!(f, "it was modified since it was recorded, and has no build id to compare")
            }
            Self::FileChanged { expected_len_bytes, found_len_bytes } => write!(
                f,
                "expected {expected_len_bytes} bytes, found {found_len_bytes}, and no build id to compare"
            ),
            Self::Unverifiable => {
                write!(f, "it has no build id, and may not be the file that was mapped")
            }
            Self::WrongChecksum { expected, found } => {
                write!(f, "expected checksum {expected:08x}, found {found:08x}")
            }
            Self::NoDebugInfo { functions_from_symbols: true } => {
                write!(f, "no debug information: functions only, from the symbol table")
            }
            Self::NoDebugInfo { functions_from_symbols: false } => {
                write!(f, "no debug information and no symbol table")
            }
            Self::MissingSplit => write!(f, "split debug information is missing"),
            Self::Damaged(reason) => write!(f, "damaged debug information: {reason}"),
            Self::Unreadable(reason) => write!(f, "cannot be read: {reason}"),
            Self::TooLarge { len_bytes, limit_bytes } => {
                write!(f, "expected at most {limit_bytes} bytes, found {len_bytes}")
            }
            Self::LineTables { limit_bytes } => write!(
                f,
                "its line tables would take more than {} MiB of memory: functions only, from the symbol table",
                limit_bytes >> 20
            ),
        }
    }
}

/// A build id in the usual notation.
struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
