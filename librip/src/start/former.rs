//! Former rings of this process: those of programs that it ran before it called `exec`. They describe programs that are
//! gone, and are removed.
//!
//! Anybody may have put a file under such a name, and may replace it at any time. So the file is judged while it is
//! open, and its name must still lead to it when it is removed. Whoever removes rings (`read-rip gc` does so too) locks
//! the file before. So nobody else removes it in between, and lets a new ring get its name.

use core::mem::offset_of;
use std::fs::{File, symlink_metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use librip_format::{CHILD_ANNOUNCED, Header, MAGIC, RECENT_CHILDREN};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use super::identity::{boot_id, start_time_ticks};
use crate::ring::children;
use crate::sys;
use crate::sys::file::FileId;

/// Removes a file if it is a ring that this process made, in which nobody records any more. Returns whether it did. A
/// file that cannot be read or removed stays. It does no harm.
pub(super) fn remove_if_former(path: &Path) -> bool {
    // Look first: opening a device may do something.
    if !symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    // NONBLOCK: somebody may have put a FIFO there since.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let Ok(file) = open(path, flags, Mode::empty()).map(File::from) else { return false };
    let Ok(opened) = file.metadata() else { return false };
    let id = FileId { device: opened.dev(), inode: opened.ino() };
    let is_unchanged =
        || symlink_metadata(path).is_ok_and(|now| now.dev() == id.device && now.ino() == id.inode);
    is_of_this_process(&file, id)
        && file.try_lock().is_ok()
        && is_unchanged()
        && std::fs::remove_file(path).is_ok()
}

/// Whether a file is a ring that this process made, and that no child records in: by its boot, PID namespace, id, start
/// and owner.
fn is_of_this_process(mut file: &File, id: FileId) -> bool {
    let mut bytes = [0; size_of::<Header>()];
    let is_owned = file.metadata().is_ok_and(|found| found.uid() == nix::unistd::geteuid().as_raw());
    if !is_owned || file.read_exact(&mut bytes).is_err() {
        return false;
    }
    let is_same = |at: usize, value: &[u8]| bytes.get(at..at + value.len()) == Some(value);
    let (Some(start), Some(boot)) = (start_time_ticks(sys::pid()), boot_id()) else { return false };
    is_same(offset_of!(Header, magic), &MAGIC)
        && is_same(offset_of!(Header, pid), &sys::pid().to_ne_bytes())
        && is_same(offset_of!(Header, start_time_ticks), &start.to_ne_bytes())
        && is_same(offset_of!(Header, boot_id), &boot)
        // Two containers may have processes of equal ids that started at the same tick.
        && is_same(offset_of!(Header, pid_namespace), &sys::pid_namespace().to_ne_bytes())
        && is_same(offset_of!(Header, file_device), &id.device.to_ne_bytes())
        && is_same(offset_of!(Header, file_inode), &id.inode.to_ne_bytes())
        && !is_recorded_by_child(&bytes, id)
}

/// Whether a child that the former program forked may still record.
fn is_recorded_by_child(header: &[u8; size_of::<Header>()], id: FileId) -> bool {
    let number = |at: usize| {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&header[at..at + 4]);
        u32::from_ne_bytes(bytes)
    };
    let forks = number(offset_of!(Header, forks));
    let mut file_system = [0; 8];
    file_system.copy_from_slice(&header[offset_of!(Header, file_system)..][..8]);
    // Only tmpfs has the device that the mappings show: see `maps_on`.
    let device = (u64::from_ne_bytes(file_system) == libc::TMPFS_MAGIC as u64).then_some(id.device);
    let is_mapped_by = |pid| children::maps_on(pid, device, id.inode);
    if forks as usize > RECENT_CHILDREN {
        return is_any_other(is_mapped_by);
    }
    (0..RECENT_CHILDREN).map(|index| number(offset_of!(Header, recent_children) + 4 * index)).any(|pid| {
        // A fork that failed was announced too, so look for a child.
        pid == CHILD_ANNOUNCED && is_any_other(is_mapped_by)
            || pid != 0 && pid != CHILD_ANNOUNCED && is_mapped_by(pid)
    })
}

/// Whether any process is such that this process may have forked: one of the same user that started later.
fn is_any_other(is_such: impl Fn(u32) -> bool) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    let began = start_time_ticks(sys::pid());
    let Ok(entries) = std::fs::read_dir("/proc") else { return true };
    entries.flatten().any(|entry| {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { return false };
        pid != sys::pid()
            && entry.metadata().is_ok_and(|found| found.uid() == own)
            && start_time_ticks(pid) >= began
            && is_such(pid)
    })
}
