//! [`Condvar`] for the mutexes of `lock_api` 0.4, whose own condition variables accept their own mutexes only.
//!
//! It parks nobody itself: the standard library's condition variable does, behind a mutex that is held from before
//! the program's one is given up until the thread sleeps. So no notification gets lost in between.

#![allow(unsafe_code, reason = "the raw mutex of a guard is unlocked and locked again")]

use core::panic::Location;
use core::time::Duration;
use std::sync;
use std::time::Instant;

use lock_api::{MutexGuard, RawMutex};

use super::{Recorded, record};
use librip_format::SITE_TRY;

/// A condition variable as `parking_lot` has it, for any mutex that is [`Recorded`]. The ring knows that a thread here
/// waits for a condition and for no lock.
///
/// Unlike `parking_lot`'s it may wake for no reason, and does not say how many it has woken; to notify takes an
/// uncontended lock and unlock even if nobody waits.
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

/// Whether a wait ended because its time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it did.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Nobody waits.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { gate: sync::Mutex::new(()), inner: sync::Condvar::new() }
    }

    /// Gives the mutex up until somebody notifies, and takes it again.
    #[inline(always)]
    #[track_caller]
    pub fn wait<R: RawMutex, T: ?Sized>(&self, guard: &mut MutexGuard<'_, Recorded<R>, T>) {
        self.lend::<0, _, _, _>(guard, Location::caller(), |gate| drop(self.inner.wait(gate)));
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

    /// Waits for so long at most.
    #[inline(always)]
    #[track_caller]
    pub fn wait_for<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.lend::<SITE_TRY, _, _, _>(guard, Location::caller(), |gate| {
            let result = self.inner.wait_timeout(gate, timeout);
            WaitTimeoutResult(result.unwrap_or_else(sync::PoisonError::into_inner).1.timed_out())
        })
    }

    /// Waits until then at most.
    #[inline(always)]
    #[track_caller]
    pub fn wait_until<R: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        timeout: Instant,
    ) -> WaitTimeoutResult {
        self.wait_for(guard, timeout.saturating_duration_since(Instant::now()))
    }

    /// Wakes one of those who wait, if any do.
    pub fn notify_one(&self) {
        let _gate = self.gate();
        self.inner.notify_one();
    }

    /// Wakes all that wait.
    pub fn notify_all(&self) {
        let _gate = self.gate();
        self.inner.notify_all();
    }

    fn gate(&self) -> sync::MutexGuard<'_, ()> {
        // Nothing panics behind the gate, and there is nothing that could be half done.
        self.gate.lock().unwrap_or_else(sync::PoisonError::into_inner)
    }

    #[inline(always)]
    fn lend<const FLAGS: u16, R: RawMutex, T: ?Sized, U>(
        &self,
        guard: &mut MutexGuard<'_, Recorded<R>, T>,
        here: &'static Location<'static>,
        wait: impl FnOnce(sync::MutexGuard<'_, ()>) -> U,
    ) -> U {
        // SAFETY: unlocked below, and locked again before the guard can be used.
        let raw = unsafe { MutexGuard::mutex(guard).raw() };
        let condition = core::ptr::from_ref(self).addr() as u64;
        record::lend::<FLAGS, _>(raw.identity.address(), condition, here, || {
            let gate = self.gate();
            // SAFETY: there is a guard, so this thread has the mutex, and nobody uses the guard meanwhile.
            unsafe { raw.inner.unlock() };
            let relock = Relock(&raw.inner);
            let result = wait(gate);
            drop(relock);
            result
        })
    }
}

/// Locks when it goes out of scope, a panic included: the program's guard is still there, and will unlock.
struct Relock<'a, R: RawMutex>(&'a R);

impl<R: RawMutex> Drop for Relock<'_, R> {
    fn drop(&mut self) {
        self.0.lock();
    }
}
