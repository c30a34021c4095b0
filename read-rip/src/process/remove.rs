//! Removes the file of a ring that was judged: that very file, and no other one that has got its name since.
//!
//! It judges nothing itself.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::ring::{FileId, OpenedFile};

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It was removed.
    Removed,
    /// Its name is free, or leads to another file: somebody else has removed it.
    Gone,
    /// Somebody else is about to remove it.
    Busy,
}

/// Removes `path` if it still leads to this file.
///
/// Between a look at a name and its removal, another file may get the name: another `gc` removes the ring that was
/// judged, and a new process makes its own. So whoever removes a ring locks the file first. The name of a locked file
/// changes hands only if somebody renames files by hand.
///
/// # Errors
///
/// Those of opening and removing. A file that is gone is none.
pub fn remove(path: &Path, judged: FileId) -> io::Result<Removal> {
    match open(path) {
        Ok(file) if OpenedFile::from(&file.metadata()?).id == judged => {
            Locked::of(&file, path)?.map_or_else(Ok, |locked| locked.remove(path))
        }
        Ok(_) => Ok(Removal::Gone),
        Err(error) => gone(error),
    }
}

/// Opens a file to lock it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags).open(path)
}

/// The removal, if an error says that the file is gone.
pub(super) fn gone(error: io::Error) -> io::Result<Removal> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(Removal::Gone),
        _ => Err(error),
    }
}

/// A locked file that has a name.
pub(super) struct Locked;

impl Locked {
    /// Locks a file. `Err` within: it cannot be removed, and why.
    pub(super) fn of(file: &File, path: &Path) -> io::Result<Result<Locked, Removal>> {
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(Err(Removal::Busy)),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let id = OpenedFile::from(&file.metadata()?).id;
        Ok(match fs::symlink_metadata(path) {
            Ok(found) if OpenedFile::from(&found).id == id => Ok(Locked),
            Ok(_) => Err(Removal::Gone),
            Err(error) => Err(gone(error)?),
        })
    }

    /// Removes the file.
    pub(super) fn remove(self, path: &Path) -> io::Result<Removal> {
        fs::remove_file(path).map(|()| Removal::Removed).or_else(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_judged_file_is_removed_and_only_once() {
        let path = std::env::temp_dir().join(format!("read-rip-remove.{}", std::process::id()));
        let make = || OpenedFile::from(&File::create_new(&path).unwrap().metadata().unwrap()).id;
        // A file that is kept open keeps its inode from being used again.
        let judged = make();
        let kept = File::open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(remove(&path, judged).unwrap(), Removal::Gone);
        let successor = make();
        assert_eq!(remove(&path, judged).unwrap(), Removal::Gone);
        assert!(path.exists(), "the successor stays");
        drop(kept);
        let other = File::open(&path).unwrap();
        other.lock().unwrap();
        assert_eq!(remove(&path, successor).unwrap(), Removal::Busy);
        other.unlock().unwrap();
        assert_eq!(remove(&path, successor).unwrap(), Removal::Removed);
        assert!(!path.exists());
    }
}
