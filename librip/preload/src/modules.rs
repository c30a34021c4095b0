//! Notices libraries that the program loads later, so that the ring knows whose the return addresses are.
//!
//! `dlopen` itself cannot be wrapped: where it searches depends on who calls it, so it must be jumped to and does not
//! come back here. Who loads a library wants something from it, though: the next `dlsym` enters it in the ring.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicPtr};

use crate::real;

/// Whether a library may have been loaded that is not in the ring.
static HAS_LOADED: AtomicBool = AtomicBool::new(false);
/// Who enters libraries in the ring just now, known by its `errno`: this calls `dlopen` itself, to keep them in memory.
static REFRESHES: AtomicPtr<i32> = AtomicPtr::new(ptr::null_mut());

/// In a forked child no other thread is at it.
pub(crate) fn watch_forks() {
    unsafe extern "C" fn forked() {
        REFRESHES.store(ptr::null_mut(), Relaxed);
    }
    // SAFETY: the handler stores a word. Failure (no memory) means that such a child enters no more libraries.
    unsafe { libc::pthread_atfork(None, None, Some(forked)) };
}

/// Runs before `dlopen` and `dlmopen`.
pub(crate) extern "C" fn before_loading() {
    real::find_once();
    refresh();
    // ORDERING: relaxed: hints, to this thread above all.
    if REFRESHES.load(Relaxed) != errno() {
        HAS_LOADED.store(true, Relaxed);
    }
}

/// Runs before `dlsym` and `dlvsym`.
pub(crate) extern "C" fn before_looking_up() {
    real::find_once();
    refresh();
}

fn refresh() {
    // ORDERING: relaxed, as above.
    if !HAS_LOADED.load(Relaxed) {
        return;
    }
    let errno_at = errno();
    if REFRESHES.compare_exchange(ptr::null_mut(), errno_at, Relaxed, Relaxed).is_err() {
        // This thread does it already, or another does, and this one's libraries wait for the next occasion.
        return;
    }
    HAS_LOADED.store(false, Relaxed);
    // SAFETY: the C library's own location, valid for this thread.
    let errno = unsafe { *errno_at };
    librip::refresh_modules();
    // SAFETY: as above.
    unsafe { *errno_at = errno };
    REFRESHES.store(ptr::null_mut(), Relaxed);
}

fn errno() -> *mut i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::__errno_location() }
}
