//! Children of forks, which record in their parent's ring: whether any is left when the ring's first process ends.
//!
//! A child that has marked has a slot. One that has not is noted in the header when it is forked: a daemon's first
//! process ends before its child has done anything. Children that have called `exec` have the ring mapped no more.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use std::fs::File;
use std::io::{Read, Write};

use crate::ring::Ring;
use crate::{slot, sys};
use librip_format::SLOT_LIVE;

/// In the place of a child that has been announced and has not noted its process id yet.
const ANNOUNCED: u32 = u32::MAX;

/// Announces a child, before the fork: its parent may end before it has done anything. Returns its number.
///
/// If the fork fails, a child stays announced, and the ring is kept at the end unless there are more forks: this is not told.
pub(crate) fn announce(ring: &Ring) -> u32 {
    let header = ring.header();
    // ORDERING: relaxed: what a process has announced it sees at its end; another's child it may not see yet.
    let number = header.forks.fetch_add(1, Relaxed);
    place(ring, number).store(ANNOUNCED, Relaxed);
    number
}

/// Notes the calling process, the child of this number. Safe in a signal handler, where there may be forks.
pub(crate) fn note(ring: &Ring, number: u32) {
    // ORDERING: relaxed: as above.
    place(ring, number).store(sys::pid(), Relaxed);
}

fn place(ring: &Ring, number: u32) -> &AtomicU32 {
    let children = &ring.header().recent_children;
    &children[number as usize % children.len()]
}

/// Whether a process other than this one records in the ring, or still may. `inode` is that of the ring's file. Allocates
/// nothing.
pub(crate) fn are_left(ring: &Ring, inode: u64) -> bool {
    let is_other = |pid: u32| pid != 0 && pid != sys::pid() && sys::process_is_there(pid);
    let has_slot = || {
        slot::handed_out(ring).any(|(_, slot)| {
            // ORDERING: acquire for the state, as in `slot::reclaim`.
            slot.state.load(Acquire) == SLOT_LIVE && is_other(slot.pid.load(Relaxed))
        })
    };
    // ORDERING: relaxed: see `announce`.
    let mut noted = ring.header().recent_children.iter().map(|pid| pid.load(Relaxed));
    has_slot() || noted.any(|pid| pid == ANNOUNCED || is_other(pid) && maps(pid, inode))
}

/// Whether a process has a file mapped, by the file's inode; yes where that may not be known.
fn maps(pid: u32, inode: u64) -> bool {
    let mut path = [0u8; 32];
    let mut word = [0u8; 32];
    let (Some(path), Some(word)) = (
        formatted(&mut path, format_args!("/proc/{pid}/maps")),
        formatted(&mut word, format_args!(" {inode} ")),
    ) else {
        return true;
    };
    let Ok(mut file) = File::open(path) else { return sys::process_is_there(pid) };
    let mut bytes = [0u8; 4096];
    let mut kept = 0;
    loop {
        let Ok(len) = file.read(&mut bytes[kept..]) else { return true };
        if len == 0 {
            return false;
        }
        let end = kept + len;
        if bytes[..end].windows(word.len()).any(|part| part == word.as_bytes()) {
            return true;
        }
        // The word may be cut in two.
        kept = end.min(word.len() - 1);
        bytes.copy_within(end - kept..end, 0);
    }
}

/// Writes a text, if there is room for it.
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
