//! Marks by hand around `std::sync::Mutex`: waits, acquired, released. This is how to mark a lock type of your own.
//! For the locks of the standard library, `librip::sync` records without marks.
//!
//! It does not keep track of holders: the ring does. The two marks of an acquisition are on one source line and have
//! different addresses, and the mark of the release is on another line. This is the pattern that
//! `scripts/lock-holders` and `scripts/lock-waiters` look for. All functions are inlined, so that the marks of each
//! caller have their own addresses.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use librip::{rip_lock_acquired, rip_lock_released, rip_lock_try_failed, rip_lock_wait};

/// Ignores poisoning: these programs are about waiting.
macro_rules! lock_between_marks {
    ($mutex:expr, $waits:expr) => {{
        rip_lock_wait!($mutex);
        $waits();
        let guard = $mutex.lock().unwrap_or_else(PoisonError::into_inner);
        rip_lock_acquired!($mutex);
        guard
    }};
}

/// Locks `mutex`. The last mark of a thread that waits here is `rip_lock_wait!`.
///
/// Calls `waits` after that mark, for programs that must know when a thread waits. Other programs pass [`unwatched`].
/// Both use the same source line, because the scripts learn from the threads that got the lock which line takes it.
#[inline(always)]
pub fn lock<T>(mutex: &Mutex<T>, waits: impl FnOnce()) -> MutexGuard<'_, T> {
    lock_between_marks!(mutex, waits)
}

/// Does nothing: for [`lock`], if the program does not need to know that the thread waits.
pub fn unwatched() {}

/// Locks `mutex` if it is free.
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

/// Unlocks `mutex`. `guard` must be its guard.
#[inline(always)]
pub fn unlock<T>(mutex: &Mutex<T>, guard: MutexGuard<'_, T>) {
    drop(guard);
    rip_lock_released!(mutex);
}
