//! Which processes have a ring mapped: only those can record in it.
//!
//! It reads `/proc/PID/maps`, and nothing of what is mapped.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use procfs::ProcResult;
use procfs::process::{MemoryMap, Process, all_processes};
use read_rip_ring::{FileId, FileSystem, Header};

use crate::patience::{each, patiently};

/// What is mapped, as `/proc/PID/maps` names it.
///
/// FOLKLORE: on btrfs and overlayfs, `stat` and `/proc/PID/maps` have different devices for one file. On tmpfs they
/// agree.
type Key = (Option<u64>, u64);

fn key(header: &Header, file: FileId) -> Key {
    match header.file_system {
        FileSystem::Tmpfs => (Some(file.device), file.inode),
        FileSystem::Other(_) => (None, file.inode),
    }
}

/// Whether a process has the file of a ring mapped, which is not a copy; `None` if that is not known.
pub(super) fn maps(pid: i32, header: &Header) -> Option<bool> {
    let (device, inode) = key(header, header.file);
    let maps = maps_of(pid)?;
    let mut maps = maps.into_iter().peekable();
    // A process that is about to end has nothing mapped any more.
    maps.peek()?;
    let is_mapped =
        maps.any(|map| map.inode == inode && device.is_none_or(|device| device == number_of(map.dev)));
    // Other file systems may name the file in yet another way.
    (is_mapped || device.is_some()).then_some(is_mapped)
}

/// What a process has mapped; `None` if that is not known.
pub(super) fn maps_of(pid: i32) -> Option<Vec<MemoryMap>> {
    patiently(u32::try_from(pid).ok()?, move || maps_here(&Process::new(pid).ok()?))?
}

fn maps_here(process: &Process) -> Option<Vec<MemoryMap>> {
    Some(process.maps().ok()?.into_iter().collect())
}

/// Does work that looks at a process, for each process that `/proc` shows: see [`each`].
pub(super) fn of_each_process<R: Send + 'static>(
    work: impl Fn(&Process) -> R + Send + Sync + 'static,
) -> ProcResult<Vec<(Arc<Process>, Option<R>)>> {
    let processes: Vec<Arc<Process>> = all_processes()?.flatten().map(Arc::new).collect();
    let results = each(processes.clone(), |process| process.pid as u32, move |process| work(process));
    Ok(processes.into_iter().zip(results).collect())
}

/// The number of a device in `stat`.
fn number_of((major, minor): (i32, i32)) -> u64 {
    nix::sys::stat::makedev(major as u64, minor as u64)
}

/// All files that processes have mapped, at the time of the search.
#[derive(Debug)]
pub struct MappedFiles {
    by_file: HashMap<Key, i32>,
    /// When those processes started that could not be looked at, clock ticks since boot, and their users.
    unseen: Vec<Unseen>,
}

/// A process whose mappings this reader may not see.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    start_ticks: u64,
    uid: Option<u32>,
}

/// Whether any process may record in a ring whose first process is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorder {
    /// This one has the ring mapped.
    Found(i32),
    /// None has it mapped.
    None,
    /// It is not known.
    Unknown,
}

impl MappedFiles {
    /// Searches all processes.
    ///
    /// A process that is forked meanwhile may be missed, if its parent ends before it is looked at. So this searches
    /// twice.
    pub fn search() -> MappedFiles {
        let mut found = MappedFiles { by_file: HashMap::new(), unseen: Vec::new() };
        for _ in 0..2 {
            found.unseen.clear();
            found.search_once();
        }
        found
    }

    fn search_once(&mut self) {
        let Ok(processes) = of_each_process(maps_here) else {
            self.unseen.push(Unseen { start_ticks: u64::MAX, uid: None });
            return;
        };
        for (process, maps) in processes {
            let Some(maps) = maps.flatten() else {
                if let Ok(stat) = process.stat()
                    && !matches!(stat.state, 'Z' | 'X' | 'x')
                {
                    let uid = process.status().ok().map(|status| status.ruid);
                    self.unseen.push(Unseen { start_ticks: stat.starttime, uid });
                }
                continue;
            };
            let files: HashSet<(u64, u64)> =
                maps.into_iter().map(|map| (number_of(map.dev), map.inode)).collect();
            for (device, inode) in files {
                self.by_file.insert((Some(device), inode), process.pid);
                self.by_file.insert((None, inode), process.pid);
            }
        }
    }

    /// Whether a process has this ring mapped. `is_shared`: children were forked that may record in it.
    /// `made_at_ticks` is when the ring was made, clock ticks since boot.
    pub(super) fn recorder(&self, header: &Header, is_shared: bool, made_at_ticks: Option<u64>) -> Recorder {
        if let Some(&pid) = self.by_file.get(&key(header, header.file)) {
            return Recorder::Found(pid);
        }
        // A child has its parent's rights, or has given some up. It can only have got others by `exec`, and does not
        // have the ring mapped then.
        let owner = header.read_from.map(|file| file.owner);
        let may_be_child = |unseen: &&Unseen| {
            let is_later = made_at_ticks.is_none_or(|made_at| unseen.start_ticks >= made_at);
            let may_have_user = owner == Some(0) || unseen.uid.is_none() || unseen.uid == owner;
            is_later && may_have_user
        };
        match is_shared && self.unseen.iter().any(|unseen| may_be_child(&unseen)) {
            true => Recorder::Unknown,
            false => Recorder::None,
        }
    }
}
