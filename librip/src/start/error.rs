//! [`InitError`]: why there is no ring.

use std::io;
use std::path::PathBuf;

/// Why there is no ring. The program runs on, and marks record nowhere.
#[derive(Debug)]
#[non_exhaustive]
pub enum InitError {
    /// The environment says `RIP_RING=off`.
    Disabled,
    /// This process records already, in this ring if its path is known; or another thread is making a ring.
    AlreadyRecording(Option<PathBuf>),
    /// The file could not be created.
    Create {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file could be created but not mapped.
    Map {
        /// The file; it was removed again.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file system, or a limit of the process, has no room for the smallest ring.
    NoRoom {
        /// The file; it was removed again.
        path: PathBuf,
        /// The length of the smallest ring, bytes.
        needed_bytes: u64,
    },
    /// The process has no memory left.
    OutOfMemory,
}

impl core::fmt::Display for InitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            InitError::Disabled => write!(f, "RIP_RING=off switches recording off"),
            InitError::AlreadyRecording(Some(path)) => {
                write!(f, "this process already records in {}", path.display())
            }
            InitError::AlreadyRecording(None) => write!(f, "this process already records"),
            InitError::Create { path, source } => {
                write!(f, "could not create the ring {}: {source}", path.display())
            }
            InitError::Map { path, source } => {
                write!(f, "could not map the ring {}: {source}", path.display())
            }
            InitError::NoRoom { path, needed_bytes } => {
                write!(f, "no room for the ring {}: it needs {needed_bytes} bytes", path.display())
            }
            InitError::OutOfMemory => write!(f, "the process has no memory left"),
        }
    }
}

/// The text names the cause already, so there is no further source.
impl std::error::Error for InitError {}
