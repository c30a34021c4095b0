//! Notices forks: a child has no thread that registers libraries, and the process that calls `daemon` ends.
//!
//! `daemon` forks and ends its first process within the C library, by a call that does not come here. So the handler
//! that runs in the parent after that fork records the end.
//!
//! On the section, see `librip::process::fork`.

#![allow(unsafe_code, reason = "the functions of the C library, by their own names")]

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;

use crate::real;

/// What a thread does at the moment; a thread is identified by the address of its `errno`. In a forked child, no other
/// thread does anything. All is in one page, because a child copies each page that it writes to.
#[repr(align(16))]
pub(crate) struct Doing {
    /// Registers libraries: see `modules`.
    pub(crate) refreshes: AtomicPtr<i32>,
    /// Is in `daemon`, and has not forked yet, or is the parent.
    becomes_daemon: AtomicPtr<i32>,
}

#[unsafe(link_section = ".data_of_forks")]
pub(crate) static DOING: Doing =
    Doing { refreshes: AtomicPtr::new(ptr::null_mut()), becomes_daemon: AtomicPtr::new(ptr::null_mut()) };

/// Registers the handlers.
pub(crate) fn watch() {
    // SAFETY: the handlers have the required signature, and this library is never unloaded. Failure (no memory) means
    // that a child registers no more libraries, and that the ring of a daemon says that its first process was killed.
    unsafe { libc::pthread_atfork(None, Some(in_parent), Some(in_child)) };
}

unsafe extern "C" fn in_parent() {
    // ORDERING: relaxed, here and below: this thread's own store.
    if DOING.becomes_daemon.load(Relaxed) == errno() {
        // The C library calls its own `_exit(0)` now, if the fork has succeeded.
        librip::interpose::process_ends(0);
    }
}

#[unsafe(link_section = ".text_of_forks")]
unsafe extern "C" fn in_child() {
    for doing in [&DOING.refreshes, &DOING.becomes_daemon] {
        // A store would copy the page: look first.
        if !doing.load(Relaxed).is_null() {
            doing.store(ptr::null_mut(), Relaxed);
        }
    }
}

/// Replaces the C library's function.
#[unsafe(no_mangle)]
extern "C-unwind" fn daemon(stays_in_directory: c_int, keeps_files: c_int) -> c_int {
    let errno_at = errno();
    DOING.becomes_daemon.store(errno_at, Relaxed);
    let result = real::daemon(stays_in_directory, keeps_files);
    // In the child it is null.
    if DOING.becomes_daemon.swap(ptr::null_mut(), Relaxed) == errno_at {
        librip::interpose::process_goes_on();
    }
    result
}

/// Identifies the calling thread.
pub(crate) fn errno() -> *mut i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::__errno_location() }
}
