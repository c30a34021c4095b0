//! Who has pipes, sockets, eventfds and FIFOs open: one search through the descriptors of all processes.
//!
//! Descriptors that are on their way in a message between sockets, and those that the kernel keeps for io_uring, are
//! not found.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use rustix::fs::{AtFlags, statat};

use super::super::folder::{Failure, Folder};
use super::super::resources_of;
use super::super::text::{self, decimal};
use super::EVENTFD;
use super::many::event_number;

/// A search looks at this many descriptors at most.
const SEARCHED_MAX: usize = 1_000_000;

/// No longer line of parents is followed.
const ANCESTORS_MAX: usize = 64;

/// What more descriptors or processes can bring, somebody will bring: they are not followed. One of so many that can
/// help is hardly ever stuck.
pub(super) const PARTIES_MAX: usize = 64;

/// A descriptor of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    pub(super) descriptor: u32,
}

/// Which kind of file it is that several processes may have open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Pipe,
    Socket,
    /// An eventfd, by its number.
    Event,
}

/// Who has which pipes and sockets open.
#[derive(Debug, Default)]
pub(super) struct Ends {
    holders: HashMap<(Kind, u64), Vec<Holder>>,
    /// The descriptors of files with paths, by the hashes of the paths: which of them are FIFOs is not asked.
    of_paths: HashMap<u64, Vec<Holder>>,
    pub(super) hidden: Hidden,
}

/// The processes whose descriptors this reader may not see. 0 stands for some that were not searched.
#[derive(Debug, Default)]
pub(super) struct Hidden(pub(super) BTreeSet<u32>);

impl Hidden {
    /// How many of them are related to one of these processes, and whether there are others. Only relatives inherit
    /// what is open: a child of a process, or one of its session. To anybody else it must have been handed over.
    pub(super) fn relatives_of(&self, pids: &BTreeSet<u32>) -> (usize, bool) {
        if self.0.is_empty() {
            return (0, false);
        }
        let stat = |pid: u32| {
            let folder = Folder::open(&format!("/proc/{pid}")).ok()?;
            text::stat(&folder.read("stat").ok()?)
        };
        let own: Vec<text::Stat> = pids.iter().filter_map(|&pid| stat(pid)).collect();
        let is_related = |&&pid: &&u32| {
            let Some(of) = stat(pid) else { return pid == 0 };
            let mut ancestors = vec![of.parent];
            while let Some(parent) = ancestors.last().copied().filter(|&parent| parent > 1) {
                match stat(parent) {
                    Some(of) if ancestors.len() < ANCESTORS_MAX => ancestors.push(of.parent),
                    _ => break,
                }
            }
            // The first process adopts orphans, who have nothing of it.
            let is_parent = pid != 1 && own.iter().any(|own| own.parent == pid);
            let is_child = ancestors.iter().any(|parent| pids.contains(parent));
            is_parent || is_child || own.iter().any(|own| own.session == of.session)
        };
        let related = self.0.iter().filter(is_related).count();
        (related, related < self.0.len())
    }
}

impl Ends {
    pub(super) fn search() -> Ends {
        let mut ends = Ends::default();
        let mut searched = 0;
        each_descriptor(&mut ends.hidden.0, |holder, link, process| {
            searched += 1;
            if searched > SEARCHED_MAX {
                return;
            }
            let key = key_of(link).or_else(|| {
                (link == EVENTFD).then_some(())?;
                let information = process.read(&format!("fdinfo/{}", holder.descriptor)).ok()?;
                Some((Kind::Event, event_number(&information)?))
            });
            match key {
                Some(key) => ends.holders.entry(key).or_default().push(holder),
                None if link.starts_with(b"/") => {
                    ends.of_paths.entry(hash_of(link)).or_default().push(holder)
                }
                None => {}
            }
        });
        if searched > SEARCHED_MAX {
            // What was not stored is not known.
            ends.hidden.0.insert(0);
        }
        ends
    }

    pub(super) fn of_socket(&self, inode: u64) -> &[Holder] {
        self.holders.get(&(Kind::Socket, inode)).map_or(&[], Vec::as_slice)
    }

    /// The eventfds that a process alone has, by their numbers. None if this reader may not see all its relatives.
    pub(super) fn own_events(&self, pid: u32) -> HashSet<u64> {
        if self.hidden.relatives_of(&BTreeSet::from([pid])).0 > 0 {
            return HashSet::new();
        }
        let is_own = |of: &[Holder]| of.iter().all(|holder| holder.pid == pid);
        let own = self.holders.iter().filter(|((kind, _), of)| *kind == Kind::Event && is_own(of));
        own.map(|(&(_, number), _)| number).collect()
    }

    /// Who has an eventfd.
    pub(super) fn of_event(&self, number: u64) -> &[Holder] {
        self.holders.get(&(Kind::Event, number)).map_or(&[], Vec::as_slice)
    }

    /// Who has a pipe open for reading, or for writing; `None` if these are too many to follow.
    pub(super) fn of_pipe(&self, inode: u64, for_writing: bool) -> Option<Vec<Holder>> {
        let all = self.holders.get(&(Kind::Pipe, inode)).map_or(&[][..], Vec::as_slice);
        let is_end = |holder: &Holder| is_open_for(*holder, for_writing);
        (all.len() <= 2 * PARTIES_MAX).then(|| all.iter().copied().filter(is_end).collect())
    }

    /// Who has a file of this path open for reading, or for writing; `None` if these are too many to follow.
    pub(super) fn of_path(&self, path: &[u8], for_writing: bool) -> Option<Vec<Holder>> {
        let all = self.of_paths.get(&hash_of(path)).map_or(&[][..], Vec::as_slice);
        let is_end = |holder: &Holder| leads_to(holder, path) && is_open_for(*holder, for_writing);
        (all.len() <= 2 * PARTIES_MAX).then(|| all.iter().copied().filter(is_end).collect())
    }
}

fn hash_of(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

/// Whether a descriptor leads to this path.
fn leads_to(holder: &Holder, path: &[u8]) -> bool {
    let link =
        resources_of(holder.pid).and_then(|process| process.link(&format!("fd/{}", holder.descriptor)));
    link.is_ok_and(|link| link == path)
}

/// What is behind a descriptor, by its link in `/proc`.
pub(super) fn key_of(link: &[u8]) -> Option<(Kind, u64)> {
    let inode = |name: &[u8]| decimal(link.strip_prefix(name)?.strip_prefix(b":[")?.strip_suffix(b"]")?);
    let pipe = inode(b"pipe").map(|inode| (Kind::Pipe, inode));
    pipe.or_else(|| Some((Kind::Socket, inode(b"socket")?)))
}

/// Whether a descriptor is open for reading or for writing: the kernel says so by the rights of its link.
pub(super) fn is_open_for(holder: Holder, for_writing: bool) -> bool {
    let right = if for_writing { 0o200 } else { 0o400 };
    let link = resources_of(holder.pid).and_then(|process| {
        Ok(statat(&process, format!("fd/{}", holder.descriptor), AtFlags::SYMLINK_NOFOLLOW)?)
    });
    match link {
        Ok(link) => link.st_mode & right != 0,
        // It was closed meanwhile, or the process has ended: a later search tells.
        Err(_) => true,
    }
}

/// The FUSE connection for which a descriptor of `/dev/fuse` answers, if the kernel says it.
pub(super) fn fuse_connection(holder: Holder) -> Option<u64> {
    let process = resources_of(holder.pid).ok()?;
    let information = process.read(&format!("fdinfo/{}", holder.descriptor)).ok()?;
    let mut lines = information.split(|&byte| byte == b'\n');
    decimal(lines.find_map(|line| line.strip_prefix(b"fuse_connection:"))?.trim_ascii())
}

/// Calls `each` with each descriptor of all processes, its link, and the directory that has its `fdinfo`. Adds the
/// processes whose descriptors this reader may not see to `hidden`.
pub(super) fn each_descriptor(hidden: &mut BTreeSet<u32>, mut each: impl FnMut(Holder, &[u8], &Folder)) {
    let Ok(processes) = Folder::open("/proc") else { return };
    for pid in processes.numbers().unwrap_or_default() {
        // The reader itself has nothing of others.
        if pid == std::process::id() {
            continue;
        }
        let numbered = resources_of(pid).and_then(|process| {
            let folder = process.folder("fd")?;
            Ok((folder.numbers()?, folder, process))
        });
        let (numbers, folder, process) = match numbered {
            Ok(numbered) => numbered,
            Err(Failure::Gone) => continue,
            Err(_) => {
                hidden.insert(pid);
                continue;
            }
        };
        for number in numbers {
            match folder.link(&number.to_string()) {
                Ok(link) => each(Holder { pid, descriptor: number }, &link, &process),
                Err(Failure::Gone) => {}
                Err(_) => {
                    hidden.insert(pid);
                }
            }
        }
    }
}
