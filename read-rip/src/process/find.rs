//! Finds rings: in a directory, or mapped by a process.
//!
//! It decides by the header alone whether a file is a ring, and does not choose among rings.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use procfs::process::{MMapPath, Process};

use super::children::liveness_of_children;
use super::liveness::{Liveness, liveness};
use super::mapped::MappedFiles;
use crate::ring::{self, Header};

/// A ring that was found.
#[derive(Debug)]
pub struct Found {
    /// Its file.
    pub path: PathBuf,
    /// Its header.
    pub header: Header,
    /// Whether the process that made it is alive.
    pub liveness: Liveness,
    /// The memory that it occupies, bytes.
    pub memory_bytes: u64,
}

impl Found {
    fn at(path: PathBuf) -> Option<Found> {
        let header = ring::read_header(&path).ok()?;
        let liveness = liveness(&header);
        let memory_bytes = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).ok()?) * 512;
        Some(Found { path, header, liveness, memory_bytes })
    }

    /// Looks for living forked children if the process itself does not record any more. See `liveness_of_children`.
    ///
    /// This reads the whole ring, so only callers that show or remove the ring do it.
    pub fn with_children(mut self, mapped: &LazyCell<MappedFiles>, is_thorough: bool) -> Found {
        if self.liveness.is_final() {
            let slots = ring::read(&self.path).map(|snapshot| snapshot.slots).unwrap_or_default();
            let children = liveness_of_children(&self.header, &slots, mapped, is_thorough);
            if children != Liveness::Dead {
                self.liveness = children;
            }
        }
        self
    }
}

/// All rings of a directory, the newest first. Other files are skipped.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn rings_in(directory: &Path) -> std::io::Result<Vec<Found>> {
    let mut found: Vec<Found> = std::fs::read_dir(directory)?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| Found::at(entry.path()))
        .collect();
    found.sort_by(|a, b| {
        b.header.created_realtime_ns.cmp(&a.header.created_realtime_ns).then_with(|| a.path.cmp(&b.path))
    });
    Ok(found)
}

/// The rings of a process: those that it has mapped, in any directory, and those in `directory` that it made.
pub fn rings_of_process(pid: u32, directory: &Path) -> Vec<Found> {
    let mut found = rings_in(directory).unwrap_or_default();
    found.retain(|ring| {
        ring.header.pid == pid
            || matches!(ring.liveness, Liveness::Alive { pid: alive, .. } if alive == pid as i32)
    });
    let Ok(process) = Process::new(pid as i32) else { return found };
    let Ok(maps) = process.maps() else { return found };
    let mut known: HashSet<_> =
        found.iter().filter_map(|ring| ring.header.read_from).map(|file| file.id).collect();
    for map in maps.into_iter().filter(|map| map.offset == 0) {
        let MMapPath::Path(path) = &map.pathname else { continue };
        // In a container, the process sees another root directory. `map_files` leads to removed files too.
        let within = path.strip_prefix("/").unwrap_or(path);
        let candidates = [
            Path::new("/proc").join(pid.to_string()).join("root").join(within),
            PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", map.address.0, map.address.1)),
        ];
        let shown = candidates.into_iter().find_map(|candidate| {
            let found = Found::at(candidate)?;
            // The path may lead to another file by now.
            let file = found.header.read_from?;
            (file.id == found.header.file && file.id.inode == map.inode && known.insert(file.id))
                .then_some(found)
        });
        found.extend(shown);
    }
    found
}
