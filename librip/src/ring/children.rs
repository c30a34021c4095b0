//! Forked children, which record in their parent's ring: whether any is left when the ring's first process ends.
//!
//! A child that has marked has a slot. A child that has not marked yet is noted when it is forked: the first process of
//! a daemon ends before its child has done anything. A child that has called `exec` does not have the ring mapped any
//! more.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::fence;
use std::fs::File;
use std::io::{Read, Write};

use librip_format::{CHILD_ANNOUNCED, SLOT_LIVE};

use super::control::CHILDREN_MAX;
use super::{Ring, Table};
use crate::sys;

/// Announces a child before the fork, because its parent may end before the child has done anything. Returns the
/// child's number.
///
/// If the fork fails, the announcement stays. The ring is then kept at the end, unless 15 more forks follow.
pub(crate) fn announce(ring: &Ring) -> u32 {
    // ORDERING: relaxed: at its end, a process sees all children that it has announced itself. It may miss one that
    // another process announces at that moment.
    let number = ring.control.counters().forks.fetch_add(1, Relaxed);
    ring.header().forks.fetch_max(number.wrapping_add(1), Relaxed);
    store(ring, number, CHILD_ANNOUNCED);
    number
}

/// Notes the calling process as the child with this number. Safe in a signal handler, where programs may fork.
pub(crate) fn note(ring: &Ring, number: u32) {
    store(ring, number, sys::pid());
}

fn store(ring: &Ring, number: u32, pid: u32) {
    let index = number as usize % CHILDREN_MAX;
    // ORDERING: relaxed: as in `announce`. The second store is the reader's copy.
    ring.control.counters().recent_children[index].store(pid, Relaxed);
    ring.header().recent_children[index].store(pid, Relaxed);
}

/// The creator ends, and would remove the ring: the last child shall do it.
pub(crate) fn leave_removal(ring: &Ring) {
    ring.control.counters().removal_is_left.store(1, Relaxed);
    // ORDERING: the fence pairs with the one of a child that ends.
    fence(SeqCst);
}

/// The creator has not ended after [`leave_removal`], and removes the ring when it does.
#[cfg(feature = "interpose")]
pub(crate) fn keep_removal(ring: &Ring) {
    // ORDERING: relaxed: the children that ended before have found the one that was announced.
    ring.control.counters().removal_is_left.store(0, Relaxed);
}

/// Whether the creator has left the removal of the ring to the last child.
#[inline(always)]
pub(crate) fn is_removal_left(ring: &Ring) -> bool {
    // ORDERING: relaxed: the caller's fence orders it.
    ring.control.counters().removal_is_left.load(Relaxed) != 0
}

/// The calling child ends: it does not count as left any more. The reader's copy stays: a reader sees that the process
/// is gone.
#[inline(always)]
pub(crate) fn forget_own(ring: &Ring) {
    let own = sys::pid_by_call();
    for noted in &ring.control.counters().recent_children {
        // ORDERING: relaxed: the caller's fence orders it.
        if noted.load(Relaxed) == own {
            noted.store(0, Relaxed);
        }
    }
}

/// Whether another process than the calling one and the ring's creator records in the ring, or may still do so. `inode`
/// is that of the ring's file. Allocates nothing.
pub(crate) fn are_left(ring: &Ring, inode: u64, creator: u32) -> bool {
    let own = sys::pid_by_call();
    let is_other = |pid: u32| pid != 0 && pid != own && pid != creator && sys::process_exists(pid);
    // ORDERING: acquire, pairs with the release in `slots::fresh`. Relaxed for the noted children: see `announce`.
    let used = ring.used(Table::Slots).load(Acquire) as usize;
    let mut owners = ring.control.owners()[..used].iter();
    let has_slot = owners.any(|owner| owner.life().state == SLOT_LIVE && is_other(owner.pid.load(Relaxed)));
    let mut noted = ring.control.counters().recent_children.iter().map(|pid| pid.load(Relaxed));
    has_slot || noted.any(|pid| pid == CHILD_ANNOUNCED || is_other(pid) && maps(pid, inode))
}

/// Whether a process has a file mapped, by the file's inode; true if that cannot be known.
fn maps(pid: u32, inode: u64) -> bool {
    maps_on(pid, None, inode)
}

/// Whether a process has a file mapped, by the file's device and inode; true if that cannot be known.
///
/// FOLKLORE: on btrfs and overlayfs, `stat` and `/proc/PID/maps` have different devices for one file. `device` is
/// `None` then.
pub(crate) fn maps_on(pid: u32, device: Option<u64>, inode: u64) -> bool {
    let mut path = [0u8; 32];
    let mut word = [0u8; 64];
    let word = match device {
        None => formatted(&mut word, format_args!(" {inode} ")),
        Some(device) => {
            let (major, minor) = (libc::major(device), libc::minor(device));
            formatted(&mut word, format_args!(" {major:02x}:{minor:02x} {inode} "))
        }
    };
    let (Some(path), Some(word)) = (formatted(&mut path, format_args!("/proc/{pid}/maps")), word) else {
        return true;
    };
    let Ok(mut file) = File::open(path) else { return sys::process_exists(pid) };
    let mut bytes = [0u8; 4096];
    let mut kept = 0;
    loop {
        let len = match file.read(&mut bytes[kept..]) {
            Ok(len) => len,
            // It has ended since.
            Err(error) => return error.raw_os_error() != Some(libc::ESRCH),
        };
        if len == 0 {
            return false;
        }
        let end = kept + len;
        if bytes[..end].windows(word.len()).any(|part| part == word.as_bytes()) {
            return true;
        }
        // The border between two reads may cut the word.
        kept = end.min(word.len() - 1);
        bytes.copy_within(end - kept..end, 0);
    }
}

/// Formats a text into a buffer; `None` if it does not fit.
fn formatted<'b>(buffer: &'b mut [u8], text: core::fmt::Arguments<'_>) -> Option<&'b str> {
    let mut rest = &mut *buffer;
    rest.write_fmt(text).ok()?;
    let left = rest.len();
    let len = buffer.len() - left;
    core::str::from_utf8(&buffer[..len]).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_mapped_file_is_found_by_its_inode() {
        let path = std::env::temp_dir().join(format!("librip-mapped.{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(4096).unwrap();
        let inode = file.metadata().unwrap().ino();
        assert!(!maps(std::process::id(), inode));
        let map = memmap2::MmapOptions::new().map_raw(&file).unwrap();
        assert!(maps(std::process::id(), inode));
        drop(map);
        assert!(!maps(std::process::id(), inode));
    }
}
