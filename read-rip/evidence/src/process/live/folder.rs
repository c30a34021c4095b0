//! A directory of `/proc`, held open, and its files.
//!
//! The directory belongs to one process or thread. Once that has ended, every access fails, even if another one has
//! got the same id.

use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Dir, Mode, OFlags, openat, readlinkat};
use rustix::io::{Errno, read, retry_on_intr};

use super::text::{self, Status};

/// There is always room for this much. The kernel gives less at once of most files.
const READ_BYTES: usize = 64 << 10;

/// Why a file of `/proc` cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The process or thread has ended, or was never there.
    Gone,
    /// The kernel refuses it to this reader.
    Refused,
    /// Something else.
    Other(Errno),
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        match errno {
            Errno::NOENT | Errno::SRCH => Failure::Gone,
            Errno::ACCESS | Errno::PERM => Failure::Refused,
            other => Failure::Other(other),
        }
    }
}

#[derive(Debug)]
pub(super) struct Folder(OwnedFd);

impl Folder {
    pub(super) fn open(path: &str) -> Result<Folder, Failure> {
        Folder::open_at(CWD, path)
    }

    /// Opens a directory in this one.
    pub(super) fn folder(&self, name: &str) -> Result<Folder, Failure> {
        Folder::open_at(&self.0, name)
    }

    fn open_at(parent: impl AsFd, path: &str) -> Result<Folder, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Folder(retry_on_intr(|| openat(&parent, path, flags, Mode::empty()))?))
    }

    /// Opens a file for reading.
    pub(super) fn file(&self, path: &str) -> Result<OwnedFd, Failure> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(retry_on_intr(|| openat(&self.0, path, flags, Mode::empty()))?)
    }

    /// Reads a short file with one call. A longer one is cut at the buffer's length.
    pub(super) fn read_into<'a>(&self, path: &str, buffer: &'a mut [u8]) -> Result<&'a [u8], Failure> {
        let file = self.file(path)?;
        let len = retry_on_intr(|| read(&file, &mut *buffer))?;
        Ok(&buffer[..len])
    }

    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let file = self.file(path)?;
        let mut bytes = Vec::new();
        loop {
            bytes.reserve(READ_BYTES);
            let more = retry_on_intr(|| read(&file, spare_capacity(&mut bytes)))?;
            if more == 0 {
                return Ok(bytes);
            }
        }
    }

    /// The ids, the user and the tracer, if it is the folder of a process or a thread.
    pub(super) fn status(&self) -> Result<Status, Failure> {
        text::status(&self.read("status")?).ok_or(Failure::Gone)
    }

    /// The target of a symbolic link, as the kernel writes it.
    pub(super) fn link(&self, path: &str) -> Result<Vec<u8>, Failure> {
        Ok(readlinkat(&self.0, path, Vec::new())?.into_bytes())
    }

    /// The names of its entries that are numbers, in ascending order.
    pub(super) fn numbers(&self) -> Result<Vec<u32>, Failure> {
        let mut numbers = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?;
            numbers.extend(name.file_name().to_str().ok().and_then(|name| name.parse::<u32>().ok()));
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
