//! Removes the file of a ring that was judged: that very file, and no other one that has got its name since.
//!
//! It judges nothing itself.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use read_rip_files::{Directory, OpenError, Opened};
use read_rip_ring::{FileId, OpenedFile};

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
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
/// changes hands only if somebody renames files by hand. The directory is held open meanwhile: who exchanges it leads
/// the removal nowhere else.
///
/// # Errors
///
/// Those of opening and removing. A file that is gone is none.
pub fn remove(path: &Path, judged: FileId) -> io::Result<Removal> {
    match Held::open(path)? {
        Some(held) if held.id()? == judged => held.lock()?.map_or_else(Ok, Locked::remove),
        _ => Ok(Removal::Gone),
    }
}

/// A file, and the directory that has its name. Both are held open.
pub(super) struct Held {
    directory: Directory,
    name: OsString,
    file: File,
}

impl Held {
    /// Opens a file; `None` if no regular file has the name.
    pub(super) fn open(path: &Path) -> io::Result<Option<Held>> {
        let Some(name) = path.file_name() else { return Ok(None) };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let opened = Directory::open(folder.unwrap_or(Path::new("."))).map_err(OpenError::Io);
        let opened = opened.and_then(|directory| Ok((directory.file(name)?, directory)));
        match opened {
            Ok((Opened { file, .. }, directory)) => Ok(Some(Held { directory, name: name.to_owned(), file })),
            Err(OpenError::NotRegular(_)) => Ok(None),
            Err(OpenError::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(OpenError::Io(error)) => Err(error),
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    fn id(&self) -> io::Result<FileId> {
        Ok(OpenedFile::from(&self.file.metadata()?).id)
    }

    /// Locks the file. `Err` within: it cannot be removed, and why.
    pub(super) fn lock(&self) -> io::Result<Result<Locked<'_>, Removal>> {
        match self.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Err(Removal::Busy)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(match self.directory.stat(&self.name) {
            Ok(found) if (FileId { device: found.st_dev, inode: found.st_ino }) == self.id()? => {
                Ok(Locked(self))
            }
            Ok(_) => Err(Removal::Gone),
            Err(error) => Err(gone(error)?),
        })
    }
}

/// A locked file that has a name.
pub(super) struct Locked<'h>(&'h Held);

impl Locked<'_> {
    pub(super) fn remove(self) -> io::Result<Removal> {
        self.0.directory.remove(&self.0.name).map(|()| Removal::Removed).or_else(gone)
    }
}

/// The removal, if an error says that the file is gone.
fn gone(error: io::Error) -> io::Result<Removal> {
    match error.kind() {
        io::ErrorKind::NotFound => Ok(Removal::Gone),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_the_judged_file_is_removed_and_only_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring");
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

    #[test]
    fn a_removal_stays_in_the_directory_in_which_the_file_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let [judged, other] = ["judged", "other"].map(|name| folder.path().join(name));
        for directory in [&judged, &other] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("ring"), "").unwrap();
        }
        let held = Held::open(&judged.join("ring")).unwrap().unwrap();
        let locked = held.lock().unwrap().unwrap();
        // Somebody exchanges the directory for a link to another one.
        fs::rename(&judged, folder.path().join("away")).unwrap();
        symlink(&other, &judged).unwrap();
        assert_eq!(locked.remove().unwrap(), Removal::Removed);
        assert!(other.join("ring").exists());
        assert!(!folder.path().join("away/ring").exists());
    }

    #[test]
    fn a_link_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        let judged = OpenedFile::from(&File::create_new(&file).unwrap().metadata().unwrap()).id;
        symlink(&file, &link).unwrap();
        assert_eq!(remove(&link, judged).unwrap(), Removal::Gone);
        assert!(file.exists() && link.symlink_metadata().is_ok());
    }
}
