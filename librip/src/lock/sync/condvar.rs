//! [`Condvar`]: the standard library's, with a record. A thread that waits here lends its mutex.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::fmt;
use core::panic::Location;
use core::time::Duration;
use std::sync;
use std::time::Instant;

use super::locking::MUTEX;
use super::{LockResult, MutexGuard, mapped};
use crate::lock::wrap::{Lending, wrapper_site};
use librip_format::SITE_TRY;

/// [`std::sync::Condvar`], for [`super::Mutex`]. The ring knows that a thread here waits for a condition and for no
/// lock: a pool of idle threads is no pile-up.
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
}

/// See [`std::sync::WaitTimeoutResult`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait ended because its time was up.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// Records a wait around `$wait`, in the caller's function: what it is given is the standard library's guard.
macro_rules! lending {
    ($self:ident, $guard:ident, $flags:expr, $wait:expr) => {{
        let (lock, inner) = $guard.into_parts();
        let here = Location::caller();
        let condition = core::ptr::from_ref($self).addr() as u64;
        let pc =
            wrapper_site!(KIND_CONDITION_WAIT, $flags, [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION], here);
        let lending = Lending::begin(lock, condition, pc);
        let result = $wait(inner);
        lending.ends(wrapper_site!(
            KIND_CONDITION_WOKEN,
            $flags,
            [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION]
        ));
        (lock, result)
    }};
}

impl Condvar {
    /// See [`std::sync::Condvar::new`].
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { inner: sync::Condvar::new() }
    }

    /// See [`std::sync::Condvar::wait`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    #[inline(always)]
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (lock, result) = lending!(self, guard, MUTEX, |inner| self.inner.wait(inner));
        mapped(result, |inner| MutexGuard::new(lock, inner))
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
        let (lock, result) =
            lending!(self, guard, MUTEX | SITE_TRY, |inner| self.inner.wait_timeout(inner, timeout));
        mapped(result, |(inner, result)| {
            (MutexGuard::new(lock, inner), WaitTimeoutResult(result.timed_out()))
        })
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
                return Ok((guard, WaitTimeoutResult(false)));
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else {
                return Ok((guard, WaitTimeoutResult(true)));
            };
            guard = self.wait_timeout(guard, left)?.0;
        }
    }

    /// See [`std::sync::Condvar::notify_one`].
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// See [`std::sync::Condvar::notify_all`].
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
