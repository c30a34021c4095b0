//! A file whose bytes are read at any offset, also one on a file system that may never answer.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, FileType, OFlags, Stat, fstat};

use super::helper::{Found, Remote, is_enabled, is_silence, reach};
use super::mounts::{Mounts, suspect};
use super::{Links, OpenError, Opened, kind, opened, reached_here};

/// A regular file, opened for reading.
#[derive(Debug)]
pub struct Content {
    source: Source,
    path: PathBuf,
    facts: FileFacts,
}

#[derive(Debug)]
enum Source {
    /// This process reads it.
    Here(File),
    /// The helper reads it.
    Remote(Remote),
}

impl Content {
    /// Opens a regular file, as [`open`](super::open) does with links. If its file system may never answer, each read
    /// waits for a limited time: see [`PATIENCE`](super::PATIENCE).
    ///
    /// # Errors
    ///
    /// Those of [`open`](super::open), and [`is_silence`](super::is_silence) if the file system has not answered.
    pub fn open(path: &Path) -> Result<Content, OpenError> {
        let (source, facts) = match find(path)? {
            Found::Local(reached) => {
                let Opened { file, .. } = opened(&reached)?;
                let facts = FileFacts::of_stat(&fstat(&file)?);
                (Source::Here(file), facts)
            }
            Found::Remote(remote, facts) => match FileType::from_raw_mode(facts.mode) {
                FileType::RegularFile => (Source::Remote(remote), facts),
                other => return Err(OpenError::NotRegular(kind(other))),
            },
        };
        Ok(Content { source, path: path.to_owned(), facts })
    }

    /// Its length when it was opened, bytes.
    pub fn len_bytes(&self) -> u64 {
        self.facts.len_bytes
    }

    /// When it was changed, ns since 1970.
    pub fn modified_ns(&self) -> u64 {
        self.facts.modified_ns
    }

    /// Reads once from an offset on, as `pread` does.
    ///
    /// # Errors
    ///
    /// Those of the system, and [`is_silence`](super::is_silence).
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        match &self.source {
            Source::Here(file) => file.read_at(into, offset),
            Source::Remote(remote) => remote.read_at(into, offset, &self.path),
        }
    }

    /// Its bytes from an offset on, as a stream.
    pub fn from(&self, offset: u64) -> impl Read + use<'_> {
        Stream { content: self, offset }
    }
}

struct Stream<'c> {
    content: &'c Content,
    offset: u64,
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.content.read_at(into, self.offset)?;
        self.offset += got as u64;
        Ok(got)
    }
}

/// What is known of a file that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Its type and permissions.
    pub(crate) mode: u32,
    pub inode: u64,
    /// Its length, bytes.
    pub len_bytes: u64,
    /// When it was changed, ns since 1970.
    pub modified_ns: u64,
}

impl FileFacts {
    /// Those of what a path leads to, as [`Content::open`] finds it. It need not be readable.
    ///
    /// # Errors
    ///
    /// Those of the system, and [`is_silence`](super::is_silence).
    pub fn of(path: &Path) -> io::Result<FileFacts> {
        Ok(match find(path)? {
            Found::Local(reached) => FileFacts::of_stat(&fstat(&reached)?),
            Found::Remote(_, facts) => facts,
        })
    }

    pub(crate) fn of_stat(stat: &Stat) -> FileFacts {
        let seconds_ns = (stat.st_mtime as u64).wrapping_mul(1_000_000_000);
        FileFacts {
            mode: stat.st_mode,
            inode: stat.st_ino,
            len_bytes: stat.st_size as u64,
            modified_ns: seconds_ns.wrapping_add(stat.st_mtime_nsec),
        }
    }
}

/// What a path leads to, links followed.
fn find(path: &Path) -> io::Result<Found> {
    match suspect(path).filter(|_| is_enabled()) {
        None => Ok(Found::Local(reached_here(path, Links::Followed, OFlags::empty())?)),
        Some(device) => reach(path, Links::Followed, OFlags::empty(), device),
    }
}

/// Whether a process's mapping of a file with this device is on a file system that answers. `link` is the mapping's
/// link in `/proc/PID/map_files`, which is asked if the device is not among those that the process has mounted.
pub fn answers(process: u32, device: Dev, link: &Path) -> bool {
    let mounts = Mounts::of(&Path::new("/proc").join(process.to_string()));
    if let Some(answers) = mounts.answers(device) {
        return answers;
    }
    if !is_enabled() {
        return true;
    }
    match reach(link, Links::Followed, OFlags::empty(), Some(device)) {
        Ok(Found::Local(_)) => true,
        Ok(Found::Remote(..)) => false,
        // This reader may not be allowed to ask: then it looks into a process of its own user.
        Err(error) => !is_silence(&error),
    }
}
