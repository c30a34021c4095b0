//! Notices libraries that the program loads later, so that the ring has the modules of all return addresses.
//!
//! `dlopen` itself cannot be wrapped: where it searches depends on its caller, so we jump to it and it does not come
//! back here. But a program that loads a library looks up its symbols: the next `dlsym` registers the library in the
//! ring.

use core::ptr;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::forks::{DOING, errno};
use crate::real;

/// Whether a library may have been loaded that is not registered in the ring.
static HAS_LOADED: AtomicBool = AtomicBool::new(false);
/// Runs before `dlopen` and `dlmopen`.
pub(crate) extern "C" fn before_loading() {
    real::find_once();
    refresh();
    // ORDERING: relaxed, here and below: hints, above all to this thread.
    if DOING.refreshes.load(Relaxed) != errno() {
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
    // The registration itself calls `dlopen`, to keep the libraries in memory.
    if DOING.refreshes.compare_exchange(ptr::null_mut(), errno_at, Relaxed, Relaxed).is_err() {
        // This thread does it already, or another thread does, and our libraries wait for the next occasion.
        return;
    }
    HAS_LOADED.store(false, Relaxed);
    // SAFETY: the C library's own location, valid for this thread.
    let errno = unsafe { *errno_at };
    librip::refresh_modules();
    // SAFETY: as above.
    unsafe { *errno_at = errno };
    DOING.refreshes.store(ptr::null_mut(), Relaxed);
}
