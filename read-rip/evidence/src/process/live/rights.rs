//! Why the kernel refuses this reader a part of a process.

use nix::unistd::geteuid;
use rustix::fs::{AtFlags, statat};

use super::folder::Folder;
use crate::target::Hidden;

/// The reason, as far as it can be known. `uid` is the process's user.
pub(super) fn why(thread: &Folder, uid: u32) -> Hidden {
    let own = geteuid().as_raw();
    // The files of a process that is not dumpable belong to root, and not to its user.
    let is_dumpable = statat(thread, "mem", AtFlags::empty()).is_ok_and(|file| file.st_uid == uid);
    match scope() {
        _ if own != 0 && own != uid => Hidden::OtherUser(uid),
        _ if own != 0 && !is_dumpable => Hidden::NotDumpable,
        Some(scope) if scope > 0 => Hidden::PtraceScope(scope),
        _ => Hidden::Refused,
    }
}

/// `kernel.yama.ptrace_scope`; `None` if the kernel has no Yama.
fn scope() -> Option<u8> {
    std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?.trim().parse().ok()
}
