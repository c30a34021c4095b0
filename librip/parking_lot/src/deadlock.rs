//! Finding deadlocks within the process, with the feature `deadlock_detection`: as in `parking_lot`.
//!
//! `read-rip check` finds them without this feature, and in a dead process too.

#![allow(unsafe_code, reason = "`parking_lot_core` trusts its callers")]

#[cfg(feature = "deadlock_detection")]
pub use parking_lot_core::deadlock::check_deadlock;

/// The thread holds what others wait for under this key.
///
/// Without the feature it does nothing, also if another crate turns on that of `parking_lot_core`: the guards may be
/// sent to another thread then, which would not find what it releases.
#[inline]
pub(crate) fn acquire_resource(key: usize) {
    if cfg!(feature = "deadlock_detection") {
        // SAFETY: the thread holds the lock to which the key belongs, and calls `release_resource` when it releases it.
        unsafe { parking_lot_core::deadlock::acquire_resource(key) };
    }
}

/// The opposite of [`acquire_resource`].
#[inline]
pub(crate) fn release_resource(key: usize) {
    if cfg!(feature = "deadlock_detection") {
        // SAFETY: as above.
        unsafe { parking_lot_core::deadlock::release_resource(key) };
    }
}
