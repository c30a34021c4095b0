//! How a subject is read.

use std::path::PathBuf;
use std::time::Duration;

use read_rip_evidence::process::live::root_of;
use read_rip_ring::UnpackLimit;
use read_rip_symbols::{self as symbols, OpenedFiles};

/// How a subject is read, and where the files of its program are.
#[derive(Clone)]
pub struct Options {
    /// The program that was recorded, if it is not at its recorded path. Its build id must match.
    pub executable: Option<PathBuf>,
    /// Directories of separate debug files that contain `.build-id/`. They are searched before the system's.
    pub debug_dirs: Vec<PathBuf>,
    /// With a core file: the ring of the same process, if it is not where the process had it.
    pub core_ring: Option<PathBuf>,
    /// How much memory a compressed file may take.
    pub unpack_limit: UnpackLimit,
    /// Whether each thread of a living process is stopped for a moment, to read its exact stack. Otherwise no thread is.
    pub stops_threads: bool,
    /// The time between the two readings of a living process.
    pub window: Duration,
    /// Whether a process without a ring is read a third time if its threads have waited for locks for less than a
    /// second, and any process if its tasks have awaited an object of a pool for less: they may be about to go on. It
    /// takes up to a second more.
    pub settles: bool,
    /// Files of modules, kept open for subjects that have the same.
    pub opened: OpenedFiles,
}

impl Default for Options {
    /// 200 ms between two readings; no thread is stopped.
    fn default() -> Options {
        Options {
            executable: None,
            debug_dirs: Vec::new(),
            core_ring: None,
            unpack_limit: UnpackLimit::default(),
            stops_threads: false,
            window: Duration::from_millis(200),
            settles: true,
            opened: OpenedFiles::default(),
        }
    }
}

impl Options {
    /// How the files are found that the subject names by their recorded paths.
    pub(crate) fn of_files(&self) -> symbols::Options {
        files(self.executable.clone(), &self.debug_dirs)
    }

    /// How the files of a living process are found.
    pub(crate) fn of_files_of(&self, pid: u32) -> symbols::Options {
        files_of(pid, self.executable.clone(), &self.debug_dirs)
    }
}

fn files(executable: Option<PathBuf>, debug_dirs: &[PathBuf]) -> symbols::Options {
    let mut options = symbols::Options { executable, ..Default::default() };
    options.debug_dirs.splice(0..0, debug_dirs.iter().cloned());
    options
}

/// How the files of a living process are found.
pub(crate) fn files_of(pid: u32, executable: Option<PathBuf>, debug_dirs: &[PathBuf]) -> symbols::Options {
    symbols::Options {
        root: Some(root_of(pid)),
        live_executable: Some(PathBuf::from(format!("/proc/{pid}/exe"))),
        ..files(executable, debug_dirs)
    }
}
