//! Which processes have memory that they share: one search through the mappings of all processes.
//!
//! Who has a file of memory open, and has not mapped it, is not found.

use std::collections::{BTreeSet, HashMap};

use super::super::folder::Failure;
use super::super::{maps, processes, resources_of};
use super::ends::Hidden;
use crate::patience::{each, patiently};
use crate::target::Mapping;

/// The device and the inode of memory, as the kernel writes them.
type File = (u64, u64);

/// Who has memory that may be shared.
#[derive(Debug, Default)]
pub(super) struct SharedMemory {
    processes: HashMap<File, Vec<u32>>,
    pub(super) hidden: Hidden,
}

impl SharedMemory {
    /// Searches all processes. One that does not answer is hidden.
    pub(super) fn search() -> SharedMemory {
        let pids = processes();
        let found = each(pids.clone(), |&pid| pid, |&pid| shared_files_of(pid));
        let mut memory = SharedMemory::default();
        for (pid, files) in pids.into_iter().zip(found) {
            match files {
                Some(Ok(files)) => {
                    files.into_iter().for_each(|file| memory.processes.entry(file).or_default().push(pid));
                }
                Some(Err(Failure::Gone)) => {}
                Some(Err(_)) | None => {
                    memory.hidden.0.insert(pid);
                }
            }
        }
        memory
    }

    /// The processes that have a file of memory.
    pub(super) fn of(&self, file: File) -> &[u32] {
        self.processes.get(&file).map_or(&[], Vec::as_slice)
    }
}

/// The range of a process's memory at an address, if processes can share it.
pub(super) fn shared_at(pid: u32, address: u64) -> Option<Mapping> {
    let mappings = patiently(pid, move || mappings_of(pid))?.ok()?;
    let is_it = |mapping: &Mapping| (mapping.begin..mapping.end).contains(&address);
    mappings.into_iter().find(is_it).filter(|mapping| mapping.is_shared)
}

fn shared_files_of(pid: u32) -> Result<BTreeSet<File>, Failure> {
    let shared = mappings_of(pid)?.into_iter().filter(|mapping| mapping.is_shared && mapping.is_writable);
    Ok(shared.filter_map(|mapping| mapping.file).collect())
}

/// The ranges of a process's memory. A process that has ended has none.
fn mappings_of(pid: u32) -> Result<Vec<Mapping>, Failure> {
    Ok(maps::mappings(&resources_of(pid)?.read("maps")?))
}
