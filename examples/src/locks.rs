//! The three-snap pattern around `std::sync::Mutex`: waits, has it, released it.
//!
//! It names no lock and keeps no account of holders: that is worked out from the marks. The two marks of an
//! acquisition are on one source line and have different addresses, and the mark of the release is on another
//! line; `scripts/lock-holders` and `scripts/lock-waiters` go by that. Everything is inlined, so that each
//! caller's marks have addresses of their own.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use librip::rip_snap;

/// A lock whose owner panicked is a lock: these programs are about waiting.
macro_rules! lock_between_marks {
    ($mutex:expr, $waits:expr) => {{
        rip_snap!("waits for a lock");
        $waits();
        let guard = $mutex.lock().unwrap_or_else(PoisonError::into_inner);
        rip_snap!("has a lock");
        guard
    }};
}

/// Locks. The last mark of a thread that is stuck here is the first of the two.
///
/// `waits` is called once the waiting is on record, for programs that must know who is stuck; others pass
/// [`unwatched`]. There is one function for both, because where a lock is taken is learned by its line, from
/// those who got through.
#[inline(always)]
pub fn lock<T>(mutex: &Mutex<T>, waits: impl FnOnce()) -> MutexGuard<'_, T> {
    lock_between_marks!(mutex, waits)
}

/// Tells nobody that the thread waits.
pub fn unwatched() {}

/// Locks unless somebody else has the lock.
#[inline(always)]
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => {
            rip_snap!("has a lock, tried");
            Some(guard)
        }
        Err(TryLockError::Poisoned(poisoned)) => {
            rip_snap!("has a lock, tried");
            Some(poisoned.into_inner())
        }
        Err(TryLockError::WouldBlock) => {
            rip_snap!("tried a lock in vain");
            None
        }
    }
}

/// Unlocks.
#[inline(always)]
pub fn unlock<T>(guard: MutexGuard<'_, T>) {
    drop(guard);
    rip_snap!("released a lock");
}
