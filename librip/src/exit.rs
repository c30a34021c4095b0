//! The end of the process, as far as it can say so itself: status into the header, the file kept or removed.
//!
//! A process that dies in any other way does not come here; that its ring has no exit status says just that.

#![allow(unsafe_code, reason = "the C library calls back")]

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::{Relaxed, Release};
use std::os::unix::fs::MetadataExt;

use crate::config::Keep;
use crate::create::RingFile;
use crate::layout::EXIT_STATUS;
use crate::ring::Ring;
use crate::{slot, sys, thread};

struct AtExit {
    ring: &'static Ring,
    file: RingFile,
    keep: Keep,
}

unsafe extern "C" {
    /// glibc's `atexit` that also tells the status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Sees to it that `exit`, and a return from `main`, are recorded.
pub(crate) fn install(ring: &'static Ring, file: RingFile, keep: Keep) {
    let at_exit = Box::leak(Box::new(AtExit { ring, file, keep }));
    // SAFETY: the function has the required signature, and the argument lives for good. Failure (no memory)
    // means that an exit looks like a death, which is what the ring is for.
    unsafe { on_exit(exits, core::ptr::from_mut(at_exit).cast()) };
}

extern "C" fn exits(status: c_int, argument: *mut c_void) {
    // SAFETY: the argument that `install` registered, never changed since.
    let at_exit = unsafe { &*argument.cast::<AtExit>() };
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
    let header = ring.header();
    header.exit_status.store(status & 0xff, Relaxed);
    header.exited_boottime_ns.store(sys::boottime_ns(), Relaxed);
    // ORDERING: release: who sees the state sees status and time.
    header.exit_state.store(EXIT_STATUS, Release);
    let keeps = match at_exit.keep {
        Keep::Always => true,
        Keep::OnFailure => status & 0xff != 0,
        Keep::Never => false,
    };
    if thread::avoids_system_calls() {
        return;
    }
    // A daemon's first process ends at once, and its child goes on recording.
    if !keeps && !slot::has_living_child(ring) {
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
