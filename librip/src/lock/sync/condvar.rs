//! [`Condvar`]: the standard library's condition variable, recorded.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::fmt;
use core::panic::Location;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::sync;
use std::time::Instant;

use super::locking::MUTEX;
use super::{LockResult, MutexGuard, WaitTimeoutResult};
use crate::lock::record;
use crate::lock::site::define_sites;
use librip_format::SITE_TRY;

define_sites!(Sites);

/// [`std::sync::Condvar`], for [`super::Mutex`].
///
/// The ring says that a thread waits here for a condition and not for a lock: a pool of idle threads is no pile-up.
/// Each signal is recorded, and whether a thread may have waited then.
///
/// # Examples
///
/// ```
/// use librip::sync::{Condvar, Mutex};
///
/// let (ready, changed) = (Mutex::new(false), Condvar::new());
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *ready.lock().unwrap() = true;
///         changed.notify_one();
///     });
///     let ready = changed.wait_while(ready.lock().unwrap(), |ready| !*ready).unwrap();
///     assert!(*ready);
/// });
/// ```
#[derive(Default)]
pub struct Condvar {
    inner: sync::Condvar,
    /// How many threads wait, or are about to.
    waiting: AtomicU32,
}

impl Condvar {
    /// See [`std::sync::Condvar::new`].
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { inner: sync::Condvar::new(), waiting: AtomicU32::new(0) }
    }

    /// See [`std::sync::Condvar::wait`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    #[inline(always)]
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (lock, inner) = guard.into_parts();
        let sites = Sites::<MUTEX>(Location::caller());
        let result = record::wait(sites, lock, self.address(), self.counted(|| self.inner.wait(inner)));
        record::mapped(result, |inner| MutexGuard::new(lock, inner))
    }

    /// See [`std::sync::Condvar::wait_while`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    #[inline(always)]
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut *guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// See [`std::sync::Condvar::wait_timeout`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    #[inline(always)]
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (lock, inner) = guard.into_parts();
        let sites = Sites::<{ MUTEX | SITE_TRY }>(Location::caller());
        let wait = self.counted(|| self.inner.wait_timeout(inner, timeout));
        let result = record::wait(sites, lock, self.address(), wait);
        record::mapped(result, |(inner, result)| (MutexGuard::new(lock, inner), result))
    }

    /// See [`std::sync::Condvar::wait_timeout_ms`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    #[deprecated(note = "replaced by `wait_timeout`, as in the standard library")]
    #[inline(always)]
    #[track_caller]
    pub fn wait_timeout_ms<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        ms: u32,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        let result = self.wait_timeout(guard, Duration::from_millis(u64::from(ms)));
        record::mapped(result, |(guard, result)| (guard, !result.timed_out()))
    }

    /// See [`std::sync::Condvar::wait_timeout_while`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    #[inline(always)]
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let start = Instant::now();
        loop {
            if !condition(&mut *guard) {
                return Ok((guard, timed_out(false)));
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else {
                return Ok((guard, timed_out(true)));
            };
            guard = self.wait_timeout(guard, left)?.0;
        }
    }

    /// Counts the thread while it waits.
    #[inline(always)]
    fn counted<T>(&self, wait: impl FnOnce() -> T) -> impl FnOnce() -> T {
        move || {
            // ORDERING: relaxed, here and below: whoever signals with the mutex locked sees what a thread did before it
            // unlocked the mutex to wait. Without the mutex a signal and a wait that begins have no order, for the
            // standard library either.
            self.waiting.fetch_add(1, Relaxed);
            let result = wait();
            self.waiting.fetch_sub(1, Relaxed);
            result
        }
    }

    #[inline(always)]
    fn signals(&self, caller: &'static Location<'static>) {
        record::signals(Sites::<MUTEX>(caller), self.address(), self.waiting.load(Relaxed) > 0);
    }

    fn address(&self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }

    /// See [`std::sync::Condvar::notify_one`].
    #[inline(always)]
    #[track_caller]
    pub fn notify_one(&self) {
        self.signals(Location::caller());
        self.inner.notify_one();
    }

    /// See [`std::sync::Condvar::notify_all`].
    #[inline(always)]
    #[track_caller]
    pub fn notify_all(&self) {
        self.signals(Location::caller());
        self.inner.notify_all();
    }
}

/// The standard library's result, which only a wait gives. This one waits for nobody.
fn timed_out(is_timed_out: bool) -> WaitTimeoutResult {
    let mutex = sync::Mutex::new(());
    let guard = mutex.lock().unwrap_or_else(sync::PoisonError::into_inner);
    let waited = sync::Condvar::new().wait_timeout_while(guard, Duration::ZERO, |()| is_timed_out);
    waited.unwrap_or_else(sync::PoisonError::into_inner).1
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
