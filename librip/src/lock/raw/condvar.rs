//! [`Condvar`] for the mutexes of `lock_api` 0.4, whose own condition variables accept their own mutexes only.
//!
//! It parks no thread itself: the standard library's condition variable does. The gate, a mutex, is held from before
//! the release of the program's mutex until the thread sleeps, so no notification gets lost in between.

#![allow(unsafe_code, reason = "the raw mutex of a guard is unlocked and locked again")]

use core::panic::Location;
use core::time::Duration;
use std::sync;
use std::time::Instant;

use lock_api::{MutexGuard, RawMutex};

use super::Recorded;
use super::record::MUTEX;
use crate::lock::record;
use crate::lock::site::{Sites, define_sites};
use librip_format::SITE_TRY;

define_sites!(CondvarSites);

/// A condition variable like that of `parking_lot`, for any mutex that is [`Recorded`].
///
/// The ring says that a thread waits here for a condition and not for a lock. Unlike `parking_lot`'s, it may wake up
/// spuriously, and does not return the number of threads that it woke. A notification costs an uncontended lock and
/// unlock even if no thread waits.
///
/// # Examples
///
/// ```
/// use librip::raw::{Condvar, Recorded};
///
/// type Mutex<T> = lock_api::Mutex<Recorded<parking_lot::RawMutex>, T>;
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
#[derive(Debug, Default)]
pub struct Condvar {
    gate: sync::Mutex<()>,
    inner: sync::Condvar,
}

/// The result of a wait with a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns whether the wait ended because its time was up.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { gate: sync::Mutex::new(()), inner: sync::Condvar::new() }
    }

    /// Releases the mutex, waits for a notification, and locks the mutex again.
    #[inline(always)]
    #[track_caller]
    pub fn wait<R: RawMutex, T: ?Sized>(&self, guard: &mut MutexGuard<'_, Recorded<R>, T>) {
        self.wait_behind_gate(guard, CondvarSites::<MUTEX>(Location::caller()), |gate| {
            drop(self.inner.wait(gate))
        });
    }

    /// Waits as long as `condition` is true.
    #[inline(always)]
    #[track_caller]
    pub fn wait_while<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(&mut **guard) {
            self.wait(guard);
        }
    }

    /// Like [`wait`](Condvar::wait), for at most this time.
    #[inline(always)]
    #[track_caller]
    pub fn wait_for<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        let sites = CondvarSites::<{ MUTEX | SITE_TRY }>(Location::caller());
        self.wait_behind_gate(guard, sites, |gate| {
            let result = self.inner.wait_timeout(gate, timeout);
            WaitTimeoutResult(result.unwrap_or_else(sync::PoisonError::into_inner).1.timed_out())
        })
    }

    /// Like [`wait`](Condvar::wait), at most until then.
    #[inline(always)]
    #[track_caller]
    pub fn wait_until<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_for(guard, timeout.saturating_duration_since(Instant::now()))
    }

    /// Wakes one waiting thread, if there is one.
    pub fn notify_one(&self) {
        let _gate = self.gate();
        self.inner.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        let _gate = self.gate();
        self.inner.notify_all();
    }

    fn gate(&self) -> sync::MutexGuard<'_, ()> {
        // Nothing panics while the gate is held, and it protects no data.
        self.gate.lock().unwrap_or_else(sync::PoisonError::into_inner)
    }

    /// Releases the mutex, calls `wait`, and locks the mutex again.
    #[inline(always)]
    fn wait_behind_gate<S: Sites, R: RawMutex, T: ?Sized, U>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        sites: S,
        wait: impl FnOnce(sync::MutexGuard<'_, ()>) -> U,
    ) -> U {
        // SAFETY: unlocked below, and locked again before the guard can be used.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        let condition = core::ptr::from_ref(self).addr() as u64;
        record::wait(sites, raw.identity.address(), condition, || {
            let gate = self.gate();
            // SAFETY: there is a guard, so this thread holds the mutex. The guard is borrowed, so nobody uses it
            // meanwhile.
            unsafe { raw.inner.unlock() };
            let relock = Relock(&raw.inner);
            let result = wait(gate);
            drop(relock);
            result
        })
    }
}

/// Locks when it goes out of scope, also after a panic: the program's guard still exists and will unlock.
struct Relock<'a, R: RawMutex>(&'a R);

impl<R: RawMutex> Drop for Relock<'_, R> {
    fn drop(&mut self) {
        self.0.lock();
    }
}
