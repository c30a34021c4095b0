//! What can be wrong with a module's files, as values that print as one lowercase fragment, with a hint.
//!
//! It decides nothing: who finds a problem says which. A problem is an answer and not an error: resolving goes
//! on with what is left.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use crate::printable::printable;

/// Why the frames of one module are missing or less than they could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleProblem {
    /// Index of the module, as in [`Resolver::new`](super::Resolver::new).
    pub module: usize,
    /// The file that the problem is about.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: Problem,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The recorded path names no file that could be opened; the reason.
    BadPath(&'static str),
    /// There is no such file.
    Missing,
    /// A directory, FIFO, socket or device. It was not opened.
    NotRegularFile,
    /// No ELF file of the kinds that are read; the reason.
    NotElf(&'static str),
    /// Another build than the recorded one.
    WrongBuildId {
        /// The build id to which it had to be equal.
        expected: Vec<u8>,
        /// The file's own; empty where it has none.
        found: Vec<u8>,
    },
    /// There is no build id, and length or time of modification are not as recorded.
    FileChanged {
        /// Recorded length, bytes; 0 when unknown.
        expected_len_bytes: u64,
        /// Length now, bytes.
        found_len_bytes: u64,
    },
    /// The ring has neither build id, length nor time of modification of this module.
    Unverifiable,
    /// A separate debug file is not the one that the module's debug link means.
    WrongChecksum {
        /// CRC-32 that the link says.
        expected: u32,
        /// CRC-32 of the file.
        found: u32,
    },
    /// No DWARF was found, in the file or separately.
    NoDebugInfo {
        /// Whether there is a symbol table, so that there are functions without lines.
        functions_from_symbols: bool,
    },
    /// A `.dwo` file was not found, nor a `.dwp` file that holds it: functions come from the symbol table, and inlined
    /// callers are missing. The first of possibly many.
    MissingSplit,
    /// Debug information that contradicts itself; the reason.
    Damaged(String),
    /// The system refused to read it; the reason.
    Unreadable(String),
    /// Too large to be believed or read.
    TooLarge {
        /// What it says it has, bytes.
        len_bytes: u64,
        /// What is accepted, bytes.
        limit_bytes: u64,
    },
}

impl ModuleProblem {
    /// What to do about it, as one lowercase sentence without a full stop.
    pub fn hint(&self) -> &'static str {
        match &self.what {
            Problem::BadPath(_) | Problem::Unverifiable => {
                "give the program with -e; a library's debug file can be found with --debug-dir if it has a build id"
            }
            Problem::Missing => {
                "the file was moved or removed, or is in a container: give the program with -e, or debug files with --debug-dir"
            }
            Problem::NotRegularFile | Problem::NotElf(_) => {
                "the path does not lead to a program or library any more: give the recorded one with -e"
            }
            Problem::WrongBuildId { .. } | Problem::FileChanged { .. } => {
                "the file was replaced: give the recorded one with -e, or its debug file with --debug-dir"
            }
            Problem::WrongChecksum { .. } => {
                "the debug file belongs to another build: install the one of this build, or give its directory with --debug-dir"
            }
            Problem::NoDebugInfo { functions_from_symbols: true } => {
                "for lines and inlined callers build with debug information (-g), or give its debug file with --debug-dir"
            }
            Problem::NoDebugInfo { functions_from_symbols: false } => {
                "the file was stripped: give an unstripped copy with -e, or its debug file with --debug-dir"
            }
            Problem::MissingSplit => {
                "keep the .dwo files where the compiler wrote them, or put a .dwp file beside the program"
            }
            Problem::Damaged(_) | Problem::TooLarge { .. } => "compare the file with the one that was built",
            Problem::Unreadable(_) => "read it as a user who may, or give a copy with -e",
        }
    }
}

impl Display for ModuleProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", printable(&self.path.to_string_lossy()), self.what)
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
                write!(f, "expected build id {}, found none", Hex(expected))
            }
            Self::WrongBuildId { expected, found } => {
                write!(f, "expected build id {}, found {}", Hex(expected), Hex(found))
            }
            Self::FileChanged { expected_len_bytes: expected, found_len_bytes: found }
                if expected == found =>
            {
                write!(f, "modified since it was recorded, and it has no build id to compare")
            }
            Self::FileChanged { expected_len_bytes, found_len_bytes } => write!(
                f,
                "expected {expected_len_bytes} bytes, found {found_len_bytes}, and it has no build id to compare"
            ),
            Self::Unverifiable => write!(f, "the ring does not say how to recognise the recorded file"),
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
        }
    }
}

/// A build id as it is written everywhere.
struct Hex<'a>(&'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_a_path_never_reach_the_terminal() {
        let problem = ModuleProblem { module: 0, path: "/a\x1b[31m\n".into(), what: Problem::Missing };
        assert_eq!(problem.to_string(), "/a\\u{1b}[31m\\n: no such file");
    }
}
