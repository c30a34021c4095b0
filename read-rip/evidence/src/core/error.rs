//! Why a core file cannot be used, and what is missing in one that can.

use std::fmt;
use std::path::PathBuf;

use read_rip_ring as ring;

/// Why a core file cannot be used.
#[derive(Debug)]
pub enum Error {
    /// It cannot be opened or unpacked.
    Open(ring::Error),
    /// It is no ELF core file, or its headers make no sense.
    Damaged { path: PathBuf, what: &'static str },
    /// It is of a processor that this program does not know.
    OtherArchitecture { path: PathBuf, found: String },
    /// It has no notes about threads.
    NoThreads { path: PathBuf },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Open(error) => error.hint(),
            Error::Damaged { .. } | Error::NoThreads { .. } => {
                "copy the file again; was the limit on the length of core files too low? (ulimit -c)"
            }
            Error::OtherArchitecture { .. } => {
                "read-rip reads core files of x86-64 and aarch64; use a debugger that knows this processor"
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Open(error) => error.fmt(out),
            Error::Damaged { path, what } => {
                write!(out, "{} is not a usable core file: {what}", path.display())
            }
            Error::OtherArchitecture { path, found } => {
                write!(
                    out,
                    "{} is the core of a {found} process, which this program does not understand",
                    path.display()
                )
            }
            Error::NoThreads { path } => {
                write!(out, "the core file {} has no notes about threads", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Open(error) => error.source(),
            _ => None,
        }
    }
}

/// What is missing in a core file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Not all of it could be unpacked: why.
    Unpacked(String),
    /// The file ends before the memory does.
    Cut {
        /// Its length, bytes.
        found_bytes: u64,
        /// The length that its headers say, bytes.
        expected_bytes: u64,
    },
    /// The notes end before they should, or contradict themselves.
    Notes,
    /// It does not say which files were mapped.
    NoFiles,
}

impl Gap {
    /// Whether parts are missing that the kernel meant to be there.
    pub fn is_damage(&self) -> bool {
        *self != Gap::NoFiles
    }

    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Gap::Unpacked(_) => "unpack the file with the program that made it, and name the unpacked one",
            Gap::Cut { .. } | Gap::Notes => {
                "raise the limit on the length of core files (ulimit -c), or copy the file again"
            }
            Gap::NoFiles => "name the program with --exe",
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gap::Unpacked(why) => write!(out, "the core file is incomplete: {why}"),
            Gap::Cut { found_bytes, expected_bytes } => write!(
                out,
                "the core file was cut: it has {found_bytes} of {expected_bytes} bytes; what is missing is not known"
            ),
            Gap::Notes => out.write_str("the notes of the core file are damaged: threads may be missing"),
            Gap::NoFiles => out
                .write_str("the core file does not say which files were mapped: functions may have no names"),
        }
    }
}
