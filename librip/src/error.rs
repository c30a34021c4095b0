//! Why there is no ring.

use std::io;
use std::path::PathBuf;

/// Why there is no ring. The program runs on, and marks record nowhere.
#[derive(Debug)]
#[non_exhaustive]
pub enum InitError {
    /// The environment says `RIP_RING=off`.
    Disabled,
    /// This process records already, in the ring named here if its name is known, or another thread is making a ring.
    AlreadyRecording(Option<PathBuf>),
    /// The file could not be made.
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could be made but not mapped.
    Map {
        /// The file, removed again.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system, or a limit of the process, has no room for the smallest ring.
    NoRoom {
        /// The file, removed again.
        path: PathBuf,
        /// How much the smallest ring takes, bytes.
        needed_bytes: u64,
    },
    /// The process has no memory left.
    OutOfMemory,
}

impl core::fmt::Display for InitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            InitError::Disabled => write!(f, "recording is switched off by RIP_RING=off"),
            InitError::AlreadyRecording(Some(path)) => {
                write!(f, "this process records in {} already", path.display())
            }
            InitError::AlreadyRecording(None) => write!(f, "this process records already"),
            InitError::Create { path, .. } => write!(f, "could not create the ring {}", path.display()),
            InitError::Map { path, .. } => write!(f, "could not map the ring {}", path.display()),
            InitError::NoRoom { path, needed_bytes } => {
                write!(f, "no room for the ring {}: it needs {needed_bytes} bytes", path.display())
            }
            InitError::OutOfMemory => write!(f, "the process has no memory left"),
        }
    }
}

impl std::error::Error for InitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            InitError::Create { source, .. } | InitError::Map { source, .. } => Some(source),
            _ => None,
        }
    }
}
