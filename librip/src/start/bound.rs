//! What a crash loop keeps: of the rings that a program of one user has left in a directory, the first and the last.
//!
//! A service that crashes and starts again would fill the memory with its rings. The first ones tell how it began, the
//! last ones how it is. A ring is removed only if its processes are known to be dead: whatever is in doubt stays.
//!
//! It runs at a start, in ordinary code, and touches nothing unless there are more rings than are kept.

use core::ffi::CStr;
use core::mem::offset_of;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use librip_format::{CHILD_ANNOUNCED, Header, MAGIC, RECENT_CHILDREN};

use super::identity::boot_id;
use crate::sys;
use crate::sys::file::{self, File};

/// The number of rings that stay, of the first ones.
const FIRST: usize = 4;
/// The number of rings that stay, of the last ones. It counts this process's ring.
const LAST: usize = 12;

/// Removes rings of dead processes, if there are too many. These are rings of one program, or under one path.
pub(super) fn remove_surplus(paths: Vec<PathBuf>) {
    // This process's ring comes to them.
    if paths.len() < FIRST + LAST {
        return;
    }
    let mut rings: Vec<Dead> = paths.into_iter().filter_map(Dead::at).collect();
    rings.sort_by_key(|ring| ring.created_ns);
    let surplus = (rings.len() + 1).saturating_sub(FIRST + LAST);
    for ring in rings.iter().skip(FIRST).take(surplus) {
        // What was judged is what is removed: another process may have made a ring of this name since. Whoever removes
        // a ring locks it, so that nobody else removes it and lets a new ring get its name: see `former`.
        if ring.file.try_lock() && file::id_at(&ring.path, false) == ring.file.id() {
            file::unlink(&ring.path);
        }
    }
}

/// A ring of this user whose processes are dead.
struct Dead {
    path: CString,
    file: File,
    created_ns: u64,
}

impl Dead {
    /// `None` if that is not known.
    fn at(path: PathBuf) -> Option<Dead> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        let file = open(&path)?;
        let mut bytes = [0; size_of::<Header>()];
        let header = (file.read(&mut bytes) == Ok(bytes.len())).then_some(Bytes(&bytes))?;
        let is_ours = header.at(offset_of!(Header, magic)) == Some(MAGIC)
            && header.u32(offset_of!(Header, uid)) == sys::uid()
            && file.owner() == Ok(sys::effective_uid());
        let dead = Dead { path, file, created_ns: header.u64(offset_of!(Header, created_realtime_ns)) };
        (is_ours && header.all_are_dead()).then_some(dead)
    }
}

fn open(path: &CStr) -> Option<File> {
    // Look first: opening a device may do something.
    if !file::is_regular_file(path) {
        return None;
    }
    File::open(path, libc::O_RDONLY).ok()
}

/// The bytes of a header.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.get(offset..offset + N)?.try_into().ok()
    }

    fn u32(&self, offset: usize) -> u32 {
        self.at(offset).map_or(0, u32::from_ne_bytes)
    }

    fn u64(&self, offset: usize) -> u64 {
        self.at(offset).map_or(0, u64::from_ne_bytes)
    }

    /// Whether the process that made the ring and all children that may record in it are known to be dead.
    fn all_are_dead(&self) -> bool {
        let boot: Option<[u8; 16]> = self.at(offset_of!(Header, boot_id));
        let namespace = self.u64(offset_of!(Header, pid_namespace));
        let forks = self.u32(offset_of!(Header, forks)) as usize;
        if boot.is_none() || boot != boot_id() || namespace == 0 || namespace != sys::pid_namespace() {
            return false;
        }
        // The ring knows its last children only.
        if forks > RECENT_CHILDREN {
            return false;
        }
        let children = (0..RECENT_CHILDREN).map(|n| self.u32(offset_of!(Header, recent_children) + 4 * n));
        let mut pids = children.chain([self.u32(offset_of!(Header, pid))]).filter(|&pid| pid != 0);
        pids.all(|pid| pid != CHILD_ANNOUNCED && !sys::process_exists(pid))
    }
}
