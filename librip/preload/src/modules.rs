//! Notices libraries that the program loads later, so that the ring has the modules of all return addresses.
//!
//! `dlopen` itself cannot be wrapped: where it searches depends on its caller, so we jump to it and it does not come
//! back here. But a program that loads a library looks up its symbols: the next `dlsym` registers the library in the
//! ring.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr};

use crate::real;

/// Whether a library may have been loaded that is not registered in the ring.
static HAS_LOADED: AtomicBool = AtomicBool::new(false);
/// The thread that registers libraries at the moment, identified by the address of its `errno`. The registration itself
/// calls `dlopen`, to keep the libraries in memory.
static REFRESHING: AtomicPtr<i32> = AtomicPtr::new(ptr::null_mut());

/// In a forked child, no other thread registers libraries.
pub(crate) fn watch_forks() {
    #[unsafe(link_section = ".text_of_forks")]
    unsafe extern "C" fn forked() {
        // ORDERING: relaxed: the child has one thread. A store would copy the page: look first.
        if !REFRESHING.load(Relaxed).is_null() {
            REFRESHING.store(ptr::null_mut(), Relaxed);
        }
    }
    // SAFETY: the handler stores a word. Failure (no memory) means that such a child registers no more libraries.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// Runs before `dlopen` and `dlmopen`.
pub(crate) extern "C" fn before_loading() {
    real::find_once();
    refresh();
    // ORDERING: relaxed, here and below: hints, above all to this thread.
    if REFRESHING.load(Relaxed) != errno() {
        HAS_LOADED.store(true, Relaxed);
    }
}

/// Runs before `dlsym` and `dlvsym`.
pub(crate) extern "C" fn before_looking_up() {
    real::find_once();
    refresh();
}

fn refresh() {
    if !HAS_LOADED.load(Relaxed) {
        return;
    }
    let errno_at = errno();
    if REFRESHING.compare_exchange(ptr::null_mut(), errno_at, Relaxed, Relaxed).is_err() {
        // This thread does it already, or another thread does, and our libraries wait for the next occasion.
        return;
    }
    HAS_LOADED.store(false, Relaxed);
    // SAFETY: the C library's own location, valid for this thread.
    let errno = unsafe { *errno_at };
    librip::refresh_modules();
    // SAFETY: as above.
    unsafe { *errno_at = errno };
    REFRESHING.store(ptr::null_mut(), Relaxed);
}

fn errno() -> *mut i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::__errno_location() }
}
