//! Why a ring cannot be read, or not all of it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::RegionKind;

/// Nothing of the file can be read as a ring.
#[derive(Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are the path and what was found there")]
pub enum Error {
    /// The system said no.
    Open { path: PathBuf, source: io::Error },
    /// A directory, FIFO, device or socket.
    NotRegular { path: PathBuf, found: &'static str },
    /// No bytes at all.
    Empty { path: PathBuf },
    /// The compressed data is damaged from the start.
    Decompress { path: PathBuf, format: &'static str, source: io::Error },
    /// It starts neither like a ring nor like a compressed one.
    NotARing { path: PathBuf },
    /// A ring whose header is not there in full.
    Short { path: PathBuf, found_bytes: u64, expected_bytes: u64 },
    /// The process died while it made the ring, or is making it just now.
    Unfinished { path: PathBuf },
    /// A format that is newer than this program.
    Version { path: PathBuf, found: (u16, u16) },
    /// Recorded on a machine with the other byte order.
    ByteOrder { path: PathBuf },
    /// Recorded on an architecture that librip does not know.
    Machine { path: PathBuf, found: u32 },
    /// The header's own numbers contradict one another.
    Header { path: PathBuf, what: &'static str, found: u64 },
}

impl Error {
    /// The file that it is about.
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

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Open { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "`read-rip list` shows the rings there are"
            }
            Error::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "rings belong to the user of the recorded program: read it as that user or as root"
            }
            Error::Open { .. } => "check the path",
            Error::NotRegular { .. } => "name a ring file; `read-rip list` shows those there are",
            Error::Empty { .. } => "the copy did not succeed, or the file is no ring: copy it again",
            Error::Decompress { .. } => "make the compressed copy again",
            Error::NotARing { .. } => {
                "name a ring made by librip; one of its C ancestor is a multiple of 320 bytes long"
            }
            Error::Short { .. } => "the file was cut: copy it again",
            Error::Unfinished { .. } => {
                "try again if the process is just starting; otherwise there is nothing in it"
            }
            Error::Version { .. } => "read it with the read-rip that belongs to the program's librip",
            Error::ByteOrder { .. } => "read it with a read-rip on the kind of machine it comes from",
            Error::Machine { .. } => "read it with a read-rip that knows this architecture",
            Error::Header { .. } => "the header is damaged: if this is a copy, copy it again",
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
            Error::NotARing { .. } => write!(f, "{path} is no ring"),
            Error::Short { found_bytes, expected_bytes, .. } => {
                write!(f, "{path} has {found_bytes} bytes, but a ring's header alone takes {expected_bytes}")
            }
            Error::Unfinished { .. } => write!(f, "{path} is a ring that was never finished"),
            Error::Version { found: (major, minor), .. } => write!(
                f,
                "{path} has format version {major}.{minor}, and this read-rip knows {}",
                librip_format::VERSION_MAJOR
            ),
            Error::ByteOrder { .. } => write!(f, "{path} was recorded with the other byte order"),
            Error::Machine { found, .. } => {
                write!(f, "{path} was recorded on an unknown architecture (ELF machine {found})")
            }
            Error::Header { what, found, .. } => {
                write!(f, "the header of {path} makes no sense: {what} is {found}")
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

/// A part of a ring that could not be read; everything else was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are where, what was expected and what was found")]
pub enum Defect {
    /// The file is shorter than it was made: somebody truncated it, or a copy was cut.
    Truncated { found_bytes: u64, expected_bytes: u64 },
    /// The end of compressed data is missing or damaged, or there is too much of it.
    DecompressedPart { format: &'static str, why: &'static str, bytes: u64 },
    /// A region's place or size is impossible.
    Region { kind: RegionKind, what: &'static str, found: u64 },
    /// A region that every ring has is missing.
    RegionMissing { kind: RegionKind },
    /// Entries of a region that contradict themselves or point outside.
    Entries { kind: RegionKind, count: u64, what: &'static str },
    /// The header's clock cannot be one: there are no times.
    Clock { what: &'static str, found: u64 },
    /// Slots whose own numbers make no sense.
    Slots { count: u64, first: u64, what: &'static str },
    /// Reading failed in the middle.
    Io { offset: u64, what: String },
}

impl Defect {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Defect::Truncated { .. } => {
                "if it is a copy, copy the ring again; otherwise somebody truncated it"
            }
            Defect::DecompressedPart { .. } => "make the compressed copy again",
            Defect::Region { .. }
            | Defect::RegionMissing { .. }
            | Defect::Entries { .. }
            | Defect::Clock { .. }
            | Defect::Slots { .. } => {
                "if it is a copy, copy the ring again; otherwise its process, or somebody else, has overwritten it"
            }
            Defect::Io { .. } => "check the file system that it is on, or read a copy",
        }
    }
}

fn region_name(kind: RegionKind) -> &'static str {
    match kind {
        RegionKind::Modules => "module table",
        RegionKind::Sites => "site table",
        RegionKind::Texts => "texts",
        RegionKind::Slots => "slots",
        RegionKind::LockNames => "names of locks",
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::Truncated { found_bytes, expected_bytes } => write!(
                f,
                "the file was cut: {found_bytes} of {expected_bytes} bytes are there, and what lay behind is lost"
            ),
            Defect::DecompressedPart { format, why, bytes } => {
                write!(f, "the {format} data {why}: only the first {bytes} bytes were read")
            }
            Defect::Region { kind, what, found } => {
                write!(f, "the {} cannot be used as the header has it: {what} is {found}", region_name(*kind))
            }
            Defect::RegionMissing { kind } => write!(f, "the header lists no {}", region_name(*kind)),
            Defect::Entries { kind, count, what } => {
                let entries = if *count == 1 { "entry" } else { "entries" };
                write!(f, "{count} damaged {entries} in the {}: {what}", region_name(*kind))
            }
            Defect::Clock { what, found } => write!(f, "times cannot be known: {what} is {found}"),
            Defect::Slots { count, first, what } => {
                let slots = if *count == 1 { "slot" } else { "slots" };
                write!(f, "{count} damaged {slots}, the first is number {first}: {what}")
            }
            Defect::Io { offset, what } => write!(f, "reading failed at byte {offset}: {what}"),
        }
    }
}
