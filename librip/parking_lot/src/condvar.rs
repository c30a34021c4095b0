//! [`Condvar`]: waits for a condition, recorded as such.

#![allow(unsafe_code, reason = "the raw mutex of a guard is unlocked and locked again")]

use core::fmt;
use core::time::Duration;
use std::time::Instant;

use crate::MutexGuard;
use crate::raw::until;
use crate::waiters::{Waiters, checked};

/// A condition variable, as in `parking_lot`: it takes the size of a pointer and does not wake up spuriously.
///
/// # Examples
///
/// ```
/// use parking_lot::{Condvar, Mutex};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *ready.lock() = true;
///         changed.notify_one();
///     });
///     changed.wait_while(&mut ready.lock(), |ready| !*ready);
/// });
/// ```
#[derive(Default)]
pub struct Condvar {
    waiters: Waiters,
}

/// The result of a wait with a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns whether the wait ended because its time was up.
    #[inline]
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable.
    #[inline]
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { waiters: Waiters::new() }
    }

    /// Releases the mutex, waits for a notification, and locks the mutex again.
    ///
    /// # Panics
    ///
    /// If another thread waits with another mutex. This holds for all functions that wait.
    #[inline]
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        let result = raw(guard).wait_for_condition(self, |mutex| self.waiters.wait(mutex.word(), None));
        checked(result);
    }

    /// Like [`wait`](Condvar::wait), at most until then.
    #[inline]
    #[track_caller]
    pub fn wait_until<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_in_time(guard, Some(timeout))
    }

    /// Like [`wait`](Condvar::wait), for at most this time.
    #[inline]
    #[track_caller]
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        self.wait_in_time(guard, until(timeout))
    }

    /// Waits as long as `condition` is true.
    #[inline]
    #[track_caller]
    pub fn wait_while<T, F>(&self, guard: &mut MutexGuard<'_, T>, mut condition: F)
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }

    /// Waits as long as `condition` is true, at most until then.
    #[inline]
    #[track_caller]
    pub fn wait_while_until<T, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Instant,
    ) -> WaitTimeoutResult
    where
        T: ?Sized,
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_in_time(guard, condition, Some(timeout))
    }

    /// Waits as long as `condition` is true, for at most this time.
    #[inline]
    #[track_caller]
    pub fn wait_while_for<T: ?Sized, F>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        condition: F,
        timeout: Duration,
    ) -> WaitTimeoutResult
    where
        F: FnMut(&mut T) -> bool,
    {
        self.wait_while_in_time(guard, condition, until(timeout))
    }

    /// Wakes one waiting thread. Returns whether there was one.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.waiters.notify_one()
    }

    /// Wakes all waiting threads. Returns how many there were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.waiters.notify_all()
    }

    #[inline]
    #[track_caller]
    fn wait_in_time<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        until: Option<Instant>,
    ) -> WaitTimeoutResult {
        let result =
            raw(guard).wait_for_condition_in_time(self, |mutex| self.waiters.wait(mutex.word(), until));
        WaitTimeoutResult(checked(result))
    }

    #[inline]
    #[track_caller]
    fn wait_while_in_time<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        until: Option<Instant>,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(&mut **guard) {
            result = self.wait_in_time(guard, until);
        }
        result
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}

fn raw<'a, T: ?Sized>(guard: &MutexGuard<'a, T>) -> &'a crate::RawMutex {
    // SAFETY: it is unlocked and locked again while the guard is borrowed, so nobody uses the data meanwhile.
    unsafe { MutexGuard::mutex(guard).raw() }
}
