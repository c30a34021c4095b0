//! The directory in which the processes of `read-rip run --check` make their rings. It reads no rings.
//!
//! It never removes the ring of a process that may be alive.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::mkdtemp;
use read_rip_evidence::process::{Found, Liveness, MappedFiles, remove, rings_in, rings_of_process};

use super::super::error::AppError;

pub(super) struct RingDirectory {
    path: PathBuf,
    /// Whether it is the user's: then all rings stay.
    is_named: bool,
    /// Rings that have been checked, or that were there before.
    known: HashSet<PathBuf>,
    /// Rings that were checked.
    checked: usize,
    /// Rings without findings.
    unneeded: HashSet<PathBuf>,
    /// Rings with findings.
    found: HashSet<PathBuf>,
}

impl RingDirectory {
    /// The directory that the user named, or a new one in `parent`.
    pub(super) fn make(named: Option<&Path>, parent: &Path) -> Result<RingDirectory, AppError> {
        let made = match named {
            Some(path) => fs::create_dir_all(path).and_then(|()| fs::canonicalize(path)),
            None => new_in(parent).or_else(|_| new_in(&std::env::temp_dir())),
        };
        let asked = named.unwrap_or(parent).to_owned();
        let path = made.map_err(|source| AppError::RingDirectory { path: asked, source })?;
        let is_named = named.is_some();
        let mut directory = RingDirectory {
            path,
            is_named,
            known: HashSet::new(),
            checked: 0,
            unneeded: HashSet::new(),
            found: HashSet::new(),
        };
        // These are of other runs.
        directory.known = directory.rings()?.into_iter().collect();
        Ok(directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory as a value of `RIP_RING`: the slash says that it is one.
    pub(super) fn name(&self) -> OsString {
        self.path.join("").into_os_string()
    }

    /// The rings that nobody has looked at.
    pub(super) fn take_new(&mut self) -> Result<Vec<PathBuf>, AppError> {
        let mut rings = self.rings()?;
        rings.retain(|ring| self.known.insert(ring.clone()));
        Ok(rings)
    }

    /// Whether a process records in one of them, and if so, whether one of its rings has findings.
    pub(super) fn findings_of(&self, pid: u32) -> Option<bool> {
        let rings = rings_of_process(pid, std::slice::from_ref(&self.path));
        (!rings.is_empty()).then(|| rings.iter().any(|ring| self.found.contains(&ring.path)))
    }

    /// Says what came of a ring: whether it has findings, and whether it is sound. A sound one is not needed any more.
    pub(super) fn checked(&mut self, ring: &Path, has_findings: bool, is_sound: bool) {
        self.checked += 1;
        if has_findings {
            self.found.insert(ring.to_owned());
        }
        if is_sound && !self.is_named {
            self.unneeded.insert(ring.to_owned());
        }
    }

    /// Removes the rings that are not needed, and the directory if none is left. Returns whether rings stay.
    pub(super) fn clear(self) -> Result<bool, AppError> {
        let mapped = LazyCell::new(MappedFiles::search as fn() -> MappedFiles);
        let mut stay = false;
        for ring in self.found()? {
            let (path, file) = (ring.path.clone(), ring.header.read_from);
            let is_unneeded =
                self.unneeded.contains(&path) && ring.with_children(&mapped, true).liveness == Liveness::Dead;
            let is_removed = || file.is_some_and(|file| remove(&path, file.id).is_ok());
            stay |= !(is_unneeded && is_removed());
        }
        Ok(stay)
    }

    /// Whether no process has made a ring.
    pub(super) fn is_unused(&self) -> bool {
        self.checked == 0
    }

    fn rings(&self) -> Result<Vec<PathBuf>, AppError> {
        // The oldest first: the order in which the processes started.
        Ok(self.found()?.into_iter().rev().map(|ring| ring.path).collect())
    }

    fn found(&self) -> Result<Vec<Found>, AppError> {
        rings_in(&self.path).map_err(|source| AppError::Directory { path: self.path.clone(), source })
    }
}

impl Drop for RingDirectory {
    fn drop(&mut self) {
        if !self.is_named {
            // Fails if a ring stays.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn new_in(parent: &Path) -> io::Result<PathBuf> {
    Ok(mkdtemp(&parent.join("rip-run.XXXXXX"))?)
}
