//! Paths that come from a ring or from debug information, and so cannot be trusted.
//!
//! It opens regular files only, and reads nothing.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use read_rip_files::{Content, OpenError};

use super::problem::Problem;

/// The kernel refuses longer paths.
const PATH_MAX_BYTES: usize = 4096;

/// Opens a regular file; never a FIFO, device, socket or directory, nor a file that the kernel makes up. Below
/// `/proc/PID/root`, `..` and links are followed as that process would follow them.
pub(super) fn open_regular(path: &Path) -> Result<Content, Problem> {
    Content::open(path).map_err(|error| match error {
        OpenError::NotRegular(_) => Problem::NotRegularFile,
        OpenError::Io(error) => from_io(&error),
    })
}

pub(super) fn from_io(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Problem::Missing,
        _ => Problem::Unreadable(error.to_string()),
    }
}

/// The path of a recorded process's file as this process sees it: below `root`, if there is one.
pub(super) fn find(root: Option<&Path>, path: &Path) -> Result<PathBuf, Problem> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err(Problem::BadPath("it is empty"));
    }
    if bytes.len() >= PATH_MAX_BYTES {
        return Err(Problem::BadPath("it is too long"));
    }
    if bytes.contains(&0) {
        return Err(Problem::BadPath("it has a zero byte"));
    }
    let Ok(within) = path.strip_prefix("/") else { return Err(Problem::BadPath("it is not absolute")) };
    Ok(root.map_or_else(|| path.to_owned(), |root| root.join(within)))
}

/// A path with a suffix after its last name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
