//! Unfinished rings: where a file has its name before the ring is complete, a process that is killed meanwhile leaves
//! it.
//!
//! They have no evidence, and may not say whose they are. So this does not ask whether a process lives. The maker keeps
//! the file locked until it is complete, and the kernel ends the lock with the maker: what is unfinished and not locked
//! has no maker any more.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use read_rip_files::{Directory, Opened};
use read_rip_ring::is_unfinished;

use super::remove::{Held, Removal};

/// A file that looks like an unfinished ring.
#[derive(Debug)]
pub struct Unfinished {
    pub path: PathBuf,
    /// The user that it belongs to.
    owner: u32,
}

/// The files of a directory that look like unfinished rings, those included that a process makes at this moment.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn unfinished_in(directory: &Path) -> io::Result<Vec<Unfinished>> {
    let directory = Directory::open(directory)?;
    let found = directory.files()?.into_iter().filter_map(|name| {
        let Opened { file, metadata } = directory.file(&name).ok()?;
        let path = directory.path().join(name);
        is_unfinished(&file, &path).ok()?.then_some(Unfinished { path, owner: metadata.uid() })
    });
    let mut found: Vec<Unfinished> = found.collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

impl Unfinished {
    /// Whether it belongs to the user of this reader.
    pub fn is_own(&self) -> bool {
        self.owner == nix::unistd::geteuid().as_raw()
    }

    /// Removes the file if its maker is dead. `dry_run`: only says what it would do.
    ///
    /// # Errors
    ///
    /// Those of opening, locking and removing. A file that is gone is none.
    pub fn remove(&self, dry_run: bool) -> io::Result<Removal> {
        let Some(held) = Held::open(&self.path)? else { return Ok(Removal::Gone) };
        match held.lock()? {
            // The maker may have finished it since it was found.
            Ok(_) if !is_unfinished(held.file(), &self.path)? => Ok(Removal::Gone),
            Ok(_) if dry_run => Ok(Removal::Removed),
            Ok(locked) => locked.remove(),
            Err(removal) => Ok(removal),
        }
    }
}
