//! Why a subject cannot be read.

use std::error;
use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use read_rip_evidence::{core, process};
use read_rip_ring as ring;

/// Why a subject cannot be read.
#[derive(Debug)]
pub enum Error {
    /// A ring, or a copy of one.
    Ring(ring::Error),
    /// A living process.
    Process(process::live::Error),
    /// A core file.
    Core(core::Error),
    /// The ring that the user named is not of the core's process.
    OtherRing {
        /// The ring.
        path: PathBuf,
        /// The process of the core file.
        pid: u32,
    },
    /// A saved ring whose context is damaged.
    SavedContext {
        /// The saved ring.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl From<ring::Error> for Error {
    fn from(error: ring::Error) -> Error {
        Error::Ring(error)
    }
}

impl Error {
    /// What to do about it; empty if nothing helps.
    pub fn hint(&self) -> &str {
        match self {
            Error::Ring(error) => error.hint(),
            Error::Process(error) => error.remedy().unwrap_or_default(),
            Error::Core(error) => error.hint(),
            Error::OtherRing { .. } => "name the ring of that process with --ring, or leave it out",
            Error::SavedContext { .. } => "copy the file again",
        }
    }
}

impl Display for Error {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Error::Ring(error) => error.fmt(out),
            Error::Process(error) => error.fmt(out),
            Error::Core(error) => error.fmt(out),
            Error::OtherRing { path, pid } => {
                write!(out, "the core file is of process {pid}, and {} is not its ring", path.display())
            }
            Error::SavedContext { path, .. } => {
                write!(
                    out,
                    "{} is a saved ring, and what was saved beside the ring is damaged",
                    path.display()
                )
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Error::Ring(error) => error.source(),
            Error::Core(error) => error.source(),
            Error::SavedContext { source, .. } => Some(source),
            Error::Process(_) | Error::OtherRing { .. } => None,
        }
    }
}
