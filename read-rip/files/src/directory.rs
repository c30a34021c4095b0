//! A directory that is held open, and its files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat, unlinkat};
use rustix::io::retry_on_intr;

use super::{Links, OpenError, Opened, TMPFS, again, magic, opened, reached};

/// A directory that is held open: its files are those of this very directory, whatever has its name by now.
#[derive(Debug)]
pub struct Directory {
    folder: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory. A path below `/proc/PID/root` is resolved as [`open`](super::open) does it, and may have no
    /// links.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let reached = reached(path, Links::Refused, OFlags::DIRECTORY)?;
        let folder = again(&reached, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        Ok(Directory { folder, path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device and the inode, which tell it from other directories.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn id(&self) -> io::Result<(u64, u64)> {
        let found = fstat(&self.folder)?;
        Ok((found.st_dev, found.st_ino))
    }

    /// Whether it is on a tmpfs.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn is_in_memory(&self) -> io::Result<bool> {
        Ok(magic(&self.folder)? == TMPFS)
    }

    /// The names of its regular files, in no order.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn files(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            let is_file = match entry.file_type() {
                FileType::RegularFile => true,
                FileType::Unknown => self.is_file(&name),
                _ => false,
            };
            if is_file {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn is_file(&self, name: &OsStr) -> bool {
        self.stat(name).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
    }

    /// Opens one of its regular files for reading. A link is none.
    ///
    /// # Errors
    ///
    /// See [`open`](super::open).
    pub fn file(&self, name: &OsStr) -> Result<Opened, OpenError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        opened(&retry_on_intr(|| openat(&self.folder, name, flags, Mode::empty()))?)
    }

    /// What is known of one of its files, links not followed.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)?)
    }

    /// Removes one of its files.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
    }
}
