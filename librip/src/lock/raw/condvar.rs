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
use super::v04::stays_on_its_thread;
use crate::lock::record;
use crate::lock::site::{Flags, define_sites};
use librip_format::{SITE_OWNED_BY_RULE, SITE_TRY};

define_sites!(CondvarSites);

/// A condition variable like that of `parking_lot`, for any mutex that is [`Recorded`].
///
/// The ring says that a thread waits here for a condition and not for a lock. Unlike `parking_lot`'s, it may wake up
/// spuriously. A notification costs an uncontended lock and unlock even if no thread waits.
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
    gate: sync::Mutex<Waiters>,
    inner: sync::Condvar,
}

/// The threads that wait.
#[derive(Debug, Default)]
struct Waiters {
    /// Those that nobody has notified.
    waiting: usize,
    /// Those that were notified and have not left yet.
    notified: usize,
    /// The address of their mutex, if there are any.
    mutex: usize,
}

impl Waiters {
    fn is_free_for(&self, mutex: usize) -> bool {
        self.waiting + self.notified == 0 || self.mutex == mutex
    }

    /// A thread waits no longer. One of two threads may leave in place of the other: only the numbers matter.
    fn leave(&mut self, is_timed_out: bool) {
        if self.notified > 0 && (!is_timed_out || self.waiting == 0) {
            self.notified -= 1;
        } else {
            self.waiting -= 1;
        }
    }
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
        let waiters = Waiters { waiting: 0, notified: 0, mutex: 0 };
        Condvar { gate: sync::Mutex::new(waiters), inner: sync::Condvar::new() }
    }

    /// Releases the mutex, waits for a notification, and locks the mutex again.
    ///
    /// # Panics
    ///
    /// If another thread waits with another mutex. This holds for all functions that wait.
    #[inline(always)]
    #[track_caller]
    pub fn wait<R: RawMutex, T: ?Sized>(&self, guard: &mut MutexGuard<'_, Recorded<R>, T>) {
        let mutex = self.raw(guard);
        mutex.wait_for_condition(self, |inner| {
            self.wait_behind_gate(mutex, inner, |gate| {
                (self.inner.wait(gate).unwrap_or_else(sync::PoisonError::into_inner), false)
            })
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
        let mutex = self.raw(guard);
        WaitTimeoutResult(mutex.wait_for_condition_in_time(self, |inner| {
            self.wait_behind_gate(mutex, inner, |gate| {
                let result = self.inner.wait_timeout(gate, timeout);
                let (gate, result) = result.unwrap_or_else(sync::PoisonError::into_inner);
                (gate, result.timed_out())
            })
        }))
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

    /// Waits as long as `condition` is true, for at most this time.
    #[inline(always)]
    #[track_caller]
    pub fn wait_while_for<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        match Instant::now().checked_add(timeout) {
            Some(until) => self.wait_while_until(guard, condition, until),
            None => {
                self.wait_while(guard, condition);
                WaitTimeoutResult(false)
            }
        }
    }

    /// Waits as long as `condition` is true, at most until then.
    #[inline(always)]
    #[track_caller]
    pub fn wait_while_until<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while !result.timed_out() && condition(&mut **guard) {
            result = self.wait_until(guard, timeout);
        }
        result
    }

    /// Wakes one waiting thread. Returns whether there was one.
    pub fn notify_one(&self) -> bool {
        let mut gate = self.gate();
        let is_any = gate.waiting > 0;
        if is_any {
            gate.waiting -= 1;
            gate.notified += 1;
            self.inner.notify_one();
        }
        is_any
    }

    /// Wakes all waiting threads. Returns how many there were.
    pub fn notify_all(&self) -> usize {
        let mut gate = self.gate();
        let count = core::mem::take(&mut gate.waiting);
        gate.notified += count;
        self.inner.notify_all();
        count
    }

    fn gate(&self) -> sync::MutexGuard<'_, Waiters> {
        // Nothing panics while the gate is held.
        self.gate.lock().unwrap_or_else(sync::PoisonError::into_inner)
    }

    fn raw<'a, R: RawMutex, T: ?Sized>(&self, guard: &MutexGuard<'a, Recorded<R>, T>) -> &'a Recorded<R> {
        // SAFETY: the caller unlocks it and locks it again while it has the only reference to the guard.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        assert!(
            self.gate().is_free_for(address(raw)),
            "attempted to use a condition variable with more than one mutex"
        );
        raw
    }

    /// Releases the mutex, calls `wait`, and locks the mutex again. Returns what `wait` says: whether its time was up.
    fn wait_behind_gate<R: RawMutex>(
        &self,
        mutex: &Recorded<R>,
        inner: &R,
        wait: impl FnOnce(sync::MutexGuard<'_, Waiters>) -> (sync::MutexGuard<'_, Waiters>, bool),
    ) -> bool {
        let mut gate = self.gate();
        gate.waiting += 1;
        gate.mutex = address(mutex);
        // SAFETY: there is a guard, so this thread holds the mutex. The guard is borrowed, so nobody uses it meanwhile.
        unsafe { inner.unlock() };
        let relock = Relock(inner);
        let (mut gate, is_timed_out) = wait(gate);
        gate.leave(is_timed_out);
        drop(gate);
        drop(relock);
        is_timed_out
    }
}

fn address<R>(mutex: &Recorded<R>) -> usize {
    core::ptr::from_ref(mutex).addr()
}

impl<R: RawMutex> Recorded<R> {
    /// Records a wait on a condition variable that librip does not know: `wait` releases the raw mutex, waits, and
    /// locks the raw mutex again.
    ///
    /// It only records. The calling thread holds the mutex, or the record is wrong. The address of `condition` stands
    /// for the condition variable.
    #[inline(always)]
    #[track_caller]
    pub fn wait_for_condition<C, W>(&self, condition: &C, wait: impl FnOnce(&R) -> W) -> W {
        self.record_wait::<MUTEX, { MUTEX | SITE_OWNED_BY_RULE }, C, W>(condition, wait)
    }

    /// Like [`wait_for_condition`](Recorded::wait_for_condition), for a wait that ends by itself.
    #[inline(always)]
    #[track_caller]
    pub fn wait_for_condition_in_time<C, W>(&self, condition: &C, wait: impl FnOnce(&R) -> W) -> W {
        self.record_wait::<{ MUTEX | SITE_TRY }, { MUTEX | SITE_TRY | SITE_OWNED_BY_RULE }, C, W>(
            condition, wait,
        )
    }

    /// Records a wait with the flags `SENT` if the mutex's guards can be sent to other threads, and `STAYS` if not.
    #[inline(always)]
    #[track_caller]
    fn record_wait<const SENT: Flags, const STAYS: Flags, C, W>(
        &self,
        condition: &C,
        wait: impl FnOnce(&R) -> W,
    ) -> W {
        let (lock, caller) = (self.identity.address(), Location::caller());
        let condition = core::ptr::from_ref(condition).addr() as u64;
        if const { stays_on_its_thread::<R::GuardMarker>() } {
            record::wait(CondvarSites::<STAYS>(caller), lock, condition, || wait(&self.inner))
        } else {
            record::wait(CondvarSites::<SENT>(caller), lock, condition, || wait(&self.inner))
        }
    }
}

/// Locks when it goes out of scope, also after a panic: the program's guard still exists and will unlock.
struct Relock<'a, R: RawMutex>(&'a R);

impl<R: RawMutex> Drop for Relock<'_, R> {
    fn drop(&mut self) {
        self.0.lock();
    }
}
