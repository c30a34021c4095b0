//! What the recorder remembers of this process, and each forked child writes anew.

#![allow(unsafe_code, reason = "a system call, and a section for a static")]

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::raw;

/// A child copies each page that it writes to. So this is in a section, `.data_of_forks`, with all that forks touch.
#[repr(align(32))]
pub(crate) struct OfProcess {
    /// How often this process and its parents were forked since the ring was made.
    pub(crate) forks: AtomicU32,
    /// This process's id; 0 before the start.
    pid: AtomicU32,
    /// Inode of this process's PID namespace, or a value of whoever looks for it; 0 if nobody has looked.
    pub(crate) pid_namespace: AtomicU64,
    /// Whether the C library has the id of a thread where [`tid_of`](super::tid_of) looks for it.
    pub(crate) has_tid: AtomicBool,
    /// Whether the program may be killed for system calls that are not its own.
    avoids_calls: AtomicBool,
}

#[unsafe(link_section = ".data_of_forks")]
pub(crate) static OF_PROCESS: OfProcess = OfProcess {
    forks: AtomicU32::new(0),
    pid: AtomicU32::new(0),
    pid_namespace: AtomicU64::new(0),
    has_tid: AtomicBool::new(false),
    avoids_calls: AtomicBool::new(false),
};

/// From now on the recorder makes no system call that a program with threads does not make anyway. Threads without a
/// slot get none. Of use in the instance that owns the ring.
pub(crate) fn avoid_calls() {
    // ORDERING: relaxed: threads that begin later see it, and others have made their calls.
    OF_PROCESS.avoids_calls.store(true, Relaxed);
}

/// See [`avoid_calls`]. Inlined, because another page of code costs a forked child a page fault.
#[inline(always)]
pub(crate) fn avoids_calls() -> bool {
    // ORDERING: relaxed, as above.
    OF_PROCESS.avoids_calls.load(Relaxed)
}

/// This process's id, as its own PID namespace numbers it. It takes no system call after the start, and in a child of
/// `vfork` it is the parent's, whose memory that is. Inlined, because another page of code costs a forked child a page
/// fault.
#[inline(always)]
pub(crate) fn pid() -> u32 {
    // ORDERING: relaxed: a process stores it before it has a ring, or as a forked child with one thread.
    match OF_PROCESS.pid.load(Relaxed) {
        0 => pid_by_call(),
        pid => pid,
    }
}

/// Notes this process's id, at the start.
pub(crate) fn note_pid() {
    // ORDERING: relaxed, as above.
    OF_PROCESS.pid.store(pid_by_call(), Relaxed);
}

/// Notes the id of this process, which is a child that was just forked. It has one thread, whose id is that of the
/// process, and the C library knows the id of a thread. Inlined, as above.
#[inline(always)]
pub(crate) fn note_pid_of_child() {
    // ORDERING: relaxed, as above.
    OF_PROCESS.pid.store(super::tid(), Relaxed);
}

/// The id of the process that executes this, a child of `vfork` for example. Inlined, as above.
#[inline(always)]
pub(crate) fn pid_by_call() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { raw::call(libc::SYS_getpid, []) as u32 }
}
