//! The end of the process, as far as it can say so itself: status into the header, the file kept or removed.
//!
//! A process that dies in any other way does not come here; that its ring has no exit status says just that.

#![allow(unsafe_code, reason = "the C library calls back")]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::config::Keep;
use crate::ring::Ring;
use crate::{children, slot, sys, thread};
use librip_format::EXIT_STATUS;

/// The ring's file as it was made, to be recognised at exit.
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

/// What is to be done at the end; null where there is no ring of this copy.
static AT_EXIT: AtomicPtr<AtExit> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" {
    /// glibc's `atexit` that also tells the status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Sees to it that `exit`, and a return from `main`, are recorded.
pub(crate) fn install(ring: &'static Ring, file: RingFile, keep: Keep) {
    let at_exit = Box::leak(Box::new(AtExit { ring, file, keep, pid: sys::pid() }));
    // ORDERING: release: who finds it finds it whole.
    AT_EXIT.store(at_exit, Release);
    // SAFETY: the function has the required signature. Failure (no memory) means that an exit looks like a death, which
    // is what the ring is for.
    unsafe { on_exit(exits, ptr::null_mut()) };
}

extern "C" fn exits(status: c_int, _argument: *mut c_void) {
    ends(status);
}

/// The process ends with this status. Safe in a signal handler, and in a child of `vfork`.
pub(crate) fn ends(status: c_int) {
    // ORDERING: acquire: see `install`.
    let at_exit = AT_EXIT.load(Acquire);
    // SAFETY: null, or what `install` has left there for good.
    let Some(at_exit) = (unsafe { at_exit.as_ref() }) else { return };
    // A forked child inherits the registration, but the ring is not its to remove.
    if thread::is_forked_child() {
        thread::leave_with_process();
        return;
    }
    let ring = at_exit.ring;
    // Somebody may have truncated the file, and the guard be switched off: nothing can be said then.
    if !ring.has_header() {
        return;
    }
    let may_ask = !thread::avoids_system_calls();
    if may_ask && sys::pid() != at_exit.pid {
        // A child of `vfork`, in its parent's memory.
        return;
    }
    let header = ring.header();
    header.exit_status.store(status & 0xff, Relaxed);
    header.exited_boottime_ns.store(sys::boottime_ns(), Relaxed);
    // ORDERING: release: who sees the state sees status and time.
    header.exit_state.store(EXIT_STATUS, Release);
    let keeps = match at_exit.keep {
        Keep::Always => true,
        // A ring without a single mark explains no failure.
        Keep::OnFailure => status & 0xff != 0 && slot::has_events(ring),
        Keep::Never => false,
    };
    // A daemon's first process ends at once, and its child goes on recording.
    if may_ask && !keeps && !children::are_left(ring, at_exit.file.inode) {
        at_exit.file.remove();
    }
}

impl RingFile {
    /// Removes the file, unless the name has come to mean another one.
    fn remove(&self) {
        let is_ours = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|found| found.dev() == self.device && found.ino() == self.inode);
        if is_ours {
            // Somebody else may have been quicker; a directory may have become read-only. Nobody to tell.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
