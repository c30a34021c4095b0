//! Marks by hand around `std::sync::Mutex`: waits, has it, released it. A recipe for any lock interface that a program
//! has of its own; where it uses the standard library's directly, `librip::sync` does it without marks.
//!
//! It keeps no account of holders: the ring does. The two marks of an acquisition are on one source line and have
//! different addresses, and the mark of the release is on another line, so that `scripts/lock-holders` and
//! `scripts/lock-waiters` can tell them apart as well. Everything is inlined, so that each caller's marks have
//! addresses of their own.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use librip::{rip_lock_acquired, rip_lock_released, rip_lock_try_failed, rip_lock_wait};

/// A lock whose owner panicked is a lock: these programs are about waiting.
macro_rules! lock_between_marks {
    ($mutex:expr, $waits:expr) => {{
        rip_lock_wait!($mutex);
        $waits();
        let guard = $mutex.lock().unwrap_or_else(PoisonError::into_inner);
        rip_lock_acquired!($mutex);
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
            rip_lock_acquired!(mutex, try_for);
            Some(guard)
        }
        Err(TryLockError::Poisoned(poisoned)) => {
            rip_lock_acquired!(mutex, try_for);
            Some(poisoned.into_inner())
        }
        Err(TryLockError::WouldBlock) => {
            rip_lock_try_failed!(mutex);
            None
        }
    }
}

/// Unlocks `mutex`, whose guard this is.
#[inline(always)]
pub fn unlock<T>(mutex: &Mutex<T>, guard: MutexGuard<'_, T>) {
    drop(guard);
    rip_lock_released!(mutex);
}
