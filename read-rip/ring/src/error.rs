//! Why a ring, or a part of it, cannot be read.
//!
//! It formats one lowercase fragment and a hint for each reason, and decides nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::RegionKind;

/// Nothing of the file can be read as a ring.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the path and what was found there")]
pub enum Error {
    /// The system refused to open or read it.
    Open {
        path: PathBuf,
        source: io::Error,
    },
    /// A directory, FIFO, device or socket.
    NotRegular {
        path: PathBuf,
        found: &'static str,
    },
    /// The file has no bytes.
    Empty {
        path: PathBuf,
    },
    /// The compressed data is damaged from the start.
    Decompress {
        path: PathBuf,
        format: &'static str,
        source: io::Error,
    },
    /// It does not begin as a ring or a compressed ring does.
    NotARing {
        path: PathBuf,
    },
    Short {
        path: PathBuf,
        found_bytes: u64,
        expected_bytes: u64,
    },
    /// The process died while it made the ring, or is still making it.
    Unfinished {
        path: PathBuf,
    },
    /// The format is newer than this program.
    Version {
        path: PathBuf,
        found: (u16, u16),
    },
    /// Recorded on a machine with the other byte order.
    ByteOrder {
        path: PathBuf,
    },
    /// Recorded on an architecture that this version does not know.
    Machine {
        path: PathBuf,
        found: u32,
    },
    Header {
        path: PathBuf,
        what: &'static str,
        found: u64,
    },
}

impl Error {
    /// Whether the system denied access.
    pub fn is_denied(&self) -> bool {
        matches!(self, Error::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    pub fn path(&self) -> &Path {
        match self {
            Error::Open { path, .. }
            | Error::NotRegular { path, .. }
            | Error::Empty { path }
            | Error::Decompress { path, .. }
            | Error::NotARing { path }
            | Error::Short { path, .. }
            | Error::Unfinished { path }
            | Error::Version { path, .. }
            | Error::ByteOrder { path }
            | Error::Machine { path, .. }
            | Error::Header { path, .. } => path,
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Error::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "`read-rip list` shows the rings"
            }
            Error::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "a ring belongs to the user who ran the program: read it as that user or as root"
            }
            Error::Open { .. } => "check the path",
            Error::NotRegular { .. } => "name a ring file; `read-rip list` shows them",
            Error::Empty { .. } => "the copy failed, or the file is not a ring: copy it again",
            Error::Decompress { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => UNPACK_HINT,
            Error::Decompress { .. } => "make the compressed copy again",
            Error::NotARing { .. } => {
                "name a ring made by librip; a ring in the legacy format has a multiple of 320 bytes"
            }
            Error::Short { .. } => "the file was truncated: copy it again",
            Error::Unfinished { .. } => {
                "if the process is still starting, try again; if it died while it made the ring, nothing was recorded"
            }
            Error::Version { .. } => "use a read-rip of the same version as the librip of the program",
            Error::ByteOrder { .. } => "run read-rip on a machine with the byte order of the recorded one",
            Error::Machine { .. } => "use a version of read-rip that knows this architecture",
            Error::Header { .. } => "if this is a copy, copy it again",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().display();
        match self {
            Error::Open { .. } => write!(f, "could not open {path}"),
            Error::NotRegular { found, .. } => write!(f, "{path} is {found}, not a ring"),
            Error::Empty { .. } => write!(f, "{path} is empty"),
            Error::Decompress { format, .. } => write!(f, "could not decompress {path} as {format}"),
            Error::NotARing { .. } => write!(f, "{path} is not a ring"),
            Error::Short { found_bytes, expected_bytes, .. } => {
                write!(
                    f,
                    "{path} has {found_bytes} bytes, fewer than the {expected_bytes} of a ring's header"
                )
            }
            Error::Unfinished { .. } => write!(f, "{path} is an unfinished ring"),
            Error::Version { found: (major, minor), .. } => write!(
                f,
                "{path} has format version {major}.{minor}, and this read-rip reads version {} only",
                librip_format::VERSION_MAJOR
            ),
            Error::ByteOrder { .. } => write!(f, "{path} was recorded with the other byte order"),
            Error::Machine { found, .. } => {
                write!(f, "{path} was recorded on an unknown architecture (ELF machine {found})")
            }
            Error::Header { what, found, .. } => {
                write!(f, "the header of {path} is damaged: {what} is {found}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Open { source, .. } | Error::Decompress { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Why not all of a compressed file could be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its end is missing or damaged.
    Damaged,
    /// It takes more memory than it may.
    TooLong {
        /// The limit, bytes.
        limit_bytes: u64,
    },
}

/// What to do about data that takes more memory than it may.
pub(super) const UNPACK_HINT: &str = "if you trust the file, let it take more memory: --unpack-limit SIZE";

/// Says that data takes more memory than it may.
pub(super) fn too_long(limit_bytes: u64) -> String {
    match limit_bytes >> 20 {
        0 => format!("unpacks to more than {} KiB", limit_bytes >> 10),
        mib => format!("unpacks to more than {mib} MiB"),
    }
}

/// A part of a ring that could not be read. The rest was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are where, what was expected and what was found")]
pub enum Defect {
    /// The file is shorter than it was made: it was truncated, or a copy is incomplete.
    Truncated {
        found_bytes: u64,
        expected_bytes: u64,
    },
    /// The end of compressed data is missing or damaged, or there is too much of it.
    DecompressedPart {
        format: &'static str,
        cut: Cut,
        bytes: u64,
    },
    Recording {
        blocks: u64,
    },
    /// The offset or size of a region is impossible.
    Region {
        kind: RegionKind,
        what: &'static str,
        found: u64,
    },
    /// The header's identity, geometry or clock does not have its checksum.
    HeaderChecksum,
    /// The header does not list a region that every ring has.
    RegionMissing {
        kind: RegionKind,
    },
    /// Entries of a region contradict themselves, or refer to something that does not exist.
    Entries {
        kind: RegionKind,
        count: u64,
        what: &'static str,
    },
    /// The header's clock is impossible, so no times are known.
    Clock {
        what: &'static str,
        found: u64,
    },
    Slots {
        count: u64,
        first: u64,
        what: &'static str,
    },
    /// Reading failed at an offset.
    Io {
        offset: u64,
        what: String,
    },
}

impl Defect {
    pub fn hint(&self) -> &'static str {
        match self {
            Defect::Truncated { .. } => {
                "if it is a copy, copy the ring again; otherwise another program truncated it"
            }
            Defect::DecompressedPart { cut: Cut::Damaged, .. } => "make the compressed copy again",
            Defect::DecompressedPart { cut: Cut::TooLong { .. }, .. } => UNPACK_HINT,
            Defect::Recording { .. } => "if it is a copy, copy the recording again",
            Defect::Region { .. }
            | Defect::HeaderChecksum
            | Defect::RegionMissing { .. }
            | Defect::Entries { .. }
            | Defect::Clock { .. }
            | Defect::Slots { .. } => {
                "if it is a copy, copy the ring again; otherwise its process, or another one, has overwritten it"
            }
            Defect::Io { .. } => "check its file system, or read a copy",
        }
    }
}

fn region_name(kind: RegionKind) -> &'static str {
    match kind {
        RegionKind::Modules => "module table",
        RegionKind::Sites => "site table",
        RegionKind::Texts => "text table",
        RegionKind::Slots => "slot table",
        RegionKind::LockNames => "table of lock names",
        RegionKind::Calls => "table of callers",
        RegionKind::Strings => "table of texts of events",
        RegionKind::Channels => "table of channels",
        RegionKind::Histories => "table of histories of channels",
        RegionKind::Polls => "table of polls",
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::Truncated { found_bytes, expected_bytes } => write!(
                f,
                "the file was truncated: it has {found_bytes} of {expected_bytes} bytes, and the rest is lost"
            ),
            Defect::DecompressedPart { format, cut, bytes } => {
                let why = match cut {
                    Cut::Damaged => "is damaged or was cut".to_owned(),
                    Cut::TooLong { limit_bytes } => too_long(*limit_bytes),
                };
                write!(f, "the {format} data {why}: only the first {bytes} bytes were read")
            }
            Defect::Recording { blocks } => {
                let what =
                    if *blocks == 1 { "block of the recording is" } else { "blocks of the recording are" };
                write!(f, "{blocks} {what} damaged, and what was recorded there is missing")
            }
            Defect::Region { kind, what, found } => {
                write!(f, "the header has an impossible {}: {what} is {found}", region_name(*kind))
            }
            Defect::HeaderChecksum => {
                write!(
                    f,
                    "the checksum of the header is wrong: what it says of the process, the tables and the clock may \
                     be wrong"
                )
            }
            Defect::RegionMissing { kind } => write!(f, "the header lists no {}", region_name(*kind)),
            Defect::Entries { kind, count, what } => {
                let entries = if *count == 1 { "entry" } else { "entries" };
                write!(f, "{count} damaged {entries} in the {}: {what}", region_name(*kind))
            }
            Defect::Clock { what, found } => {
                write!(f, "the header has an impossible clock: {what} is {found}, so no times are known")
            }
            Defect::Slots { count, first, what } => {
                let slots = if *count == 1 { "slot" } else { "slots" };
                write!(f, "{count} damaged {slots}, the first is number {first}: {what}")
            }
            Defect::Io { offset, what } => write!(f, "reading failed at byte {offset}: {what}"),
        }
    }
}
