//! The end of a process that calls `exit`: writes the status into the header, and keeps or removes the file.
//!
//! A process that dies in any other way does not come here. Its ring has no exit status, and that is the evidence.

#![allow(unsafe_code, reason = "the C library calls back")]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use librip_format::EXIT_STATUS;

use super::{state, thread};
use crate::ring::{Ring, children, slots};
use crate::sys;

/// What becomes of the ring when the process calls `exit` or returns from `main`.
///
/// A process that ends in any other way (a signal, `abort`, `_exit`, out of memory) always leaves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// It stays.
    Always,
    /// It is removed if the exit status is 0 or nothing was marked, and stays otherwise.
    #[default]
    OnFailure,
    /// It is removed.
    Never,
}

/// The ring's file, with what identifies it at exit.
#[derive(Debug)]
pub(crate) struct RingFile {
    pub(crate) path: PathBuf,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

struct AtExit {
    ring: &'static Ring,
    file: RingFile,
    keep: Keep,
    /// The process that made the ring.
    pid: u32,
}

/// What to do at the end; null if this instance has no ring.
static AT_EXIT: AtomicPtr<AtExit> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" {
    /// glibc's `atexit` that also passes the status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Arranges that `exit`, and a return from `main`, are recorded.
pub(crate) fn install(ring: &'static Ring, file: RingFile, keep: Keep) {
    let at_exit = Box::leak(Box::new(AtExit { ring, file, keep, pid: sys::pid() }));
    // ORDERING: release, pairs with the acquire in `process_ends`.
    AT_EXIT.store(at_exit, Release);
    // SAFETY: the function has the required signature, and its module is pinned or is the executable. If there is no
    // memory for the registration, an exit looks like a crash.
    unsafe { on_exit(exits, ptr::null_mut()) };
}

extern "C" fn exits(status: c_int, _argument: *mut c_void) {
    process_ends(status);
}

/// The process ends with this status. Safe in a signal handler, and in a child of `vfork`.
pub(crate) fn process_ends(status: c_int) {
    // ORDERING: acquire: see `install`.
    let at_exit = AT_EXIT.load(Acquire);
    // SAFETY: null, or leaked by `install`.
    let Some(at_exit) = (unsafe { at_exit.as_ref() }) else { return };
    // A forked child inherits the registration, but must not remove its parent's ring.
    if state::is_forked_child() {
        thread::release_slot_with_process();
        return;
    }
    let ring = at_exit.ring;
    // If somebody has truncated the file, nothing can be recorded. The SIGBUS handler may be switched off.
    if !ring.has_header() {
        return;
    }
    let may_call = !state::avoids_system_calls();
    if may_call && sys::pid() != at_exit.pid {
        // A child of `vfork`, in its parent's memory.
        return;
    }
    let header = ring.header();
    header.exit_status.store(status & 0xff, Relaxed);
    header.exited_boottime_ns.store(sys::boottime_ns(), Relaxed);
    // ORDERING: release: a reader that sees the state sees status and time.
    header.exit_state.store(EXIT_STATUS, Release);
    let keeps = match at_exit.keep {
        Keep::Always => true,
        // A ring without a single mark explains no failure.
        Keep::OnFailure => status & 0xff != 0 && slots::has_events(ring),
        Keep::Never => false,
    };
    // The first process of a daemon ends at once, and its child continues to record.
    if may_call && !keeps && !children::are_left(ring, at_exit.file.inode) {
        at_exit.file.remove();
    }
}

impl RingFile {
    /// Removes the file, unless another file has its name now.
    fn remove(&self) {
        let is_ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| found.dev() == self.device && found.ino() == self.inode);
        if is_ours {
            // Somebody else may have removed it, or the directory may have become read-only. Nothing can be done here.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
