//! [`Condvar`]: waits for a condition, recorded as such.
//!
//! A notified thread moves from the queue of the condition variable to that of the mutex, if the mutex is held: so it
//! does not wake up only to wait again.

#![allow(unsafe_code, reason = "the queues of `parking_lot_core` are unsafe")]

use core::fmt;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::time::Instant;

use parking_lot_core::{ParkResult, RequeueOp, UnparkResult};

use crate::MutexGuard;
use crate::raw::{PlainMutex, until};
use crate::word::{HANDED_OVER, Mode, TRY_AGAIN, Word};

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
    /// The word of the mutex with which threads wait; null if there are none. Changed under the lock of the queue.
    mutex: AtomicPtr<Word>,
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

/// Another thread waits with another mutex.
struct OtherMutex;

impl Condvar {
    /// Creates a condition variable.
    #[inline]
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { mutex: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Releases the mutex, waits for a notification, and locks the mutex again.
    ///
    /// # Panics
    ///
    /// If another thread waits with another mutex. This holds for all functions that wait.
    #[inline]
    #[track_caller]
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        let result = raw(guard).wait_for_condition(self, |mutex| self.park(mutex, None));
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
        // ORDERING: relaxed: the mutex, or nothing, orders this with the threads that begin to wait.
        let mutex = self.mutex.load(Relaxed);
        !mutex.is_null() && self.notify(mutex, RequeueOp::RequeueOne, RequeueOp::UnparkOne) > 0
    }

    /// Wakes all waiting threads. Returns how many there were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        // ORDERING: relaxed, as above.
        let mutex = self.mutex.load(Relaxed);
        if mutex.is_null() {
            return 0;
        }
        self.notify(mutex, RequeueOp::RequeueAll, RequeueOp::UnparkOneRequeueRest)
    }

    /// Moves threads to the mutex if it is held, or wakes one if it is free. Returns how many.
    #[cold]
    fn notify(&self, mutex: *mut Word, if_held: RequeueOp, if_free: RequeueOp) -> usize {
        let choose = || {
            if self.mutex.load(Relaxed) != mutex {
                return RequeueOp::Abort;
            }
            // SAFETY: a thread waits with this mutex, so it exists. The lock of the queue keeps the thread there.
            let mutex = unsafe { &*mutex };
            if mutex.announce_if_locked() { if_held } else { if_free }
        };
        let finish = |op, result: UnparkResult| {
            if !result.have_more_threads {
                self.mutex.store(core::ptr::null_mut(), Relaxed);
            }
            if op == RequeueOp::UnparkOneRequeueRest && result.requeued_threads > 0 {
                // SAFETY: as above: the threads that were moved still wait.
                unsafe { &*mutex }.announce();
            }
            TRY_AGAIN
        };
        // SAFETY: both keys are addresses of objects of this crate, and none of the closures panics or uses a queue.
        let result = unsafe { parking_lot_core::unpark_requeue(self.key(), mutex.addr(), choose, finish) };
        result.unparked_threads + result.requeued_threads
    }

    #[inline]
    #[track_caller]
    fn wait_in_time<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        until: Option<Instant>,
    ) -> WaitTimeoutResult {
        let result = raw(guard).wait_for_condition_in_time(self, |mutex| self.park(mutex, until));
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

    /// Releases the mutex, waits, and locks the mutex again. Returns whether the time was up.
    fn park(&self, mutex: &PlainMutex, until: Option<Instant>) -> Result<bool, OtherMutex> {
        let word = mutex.word();
        let own = core::ptr::from_ref(word).cast_mut();
        let (mut is_other, mut is_moved) = (false, false);
        let enter = || {
            let present = self.mutex.load(Relaxed);
            is_other = !present.is_null() && present != own;
            if present.is_null() {
                self.mutex.store(own, Relaxed);
            }
            !is_other
        };
        let release = || word.unlock(Mode::Exclusive, None, false);
        let time_is_up = |key, is_last| {
            // The thread may be in the queue of the mutex by now: then it was notified.
            is_moved = key != self.key();
            if !is_moved && is_last {
                self.mutex.store(core::ptr::null_mut(), Relaxed);
            }
        };
        let token = Mode::Exclusive.token();
        // SAFETY: the key is an address of this object. `enter` and `time_is_up` neither panic nor use a queue, and
        // `release` is called outside of it. A thread that was moved has the token that the mutex expects.
        let result = unsafe { parking_lot_core::park(self.key(), enter, release, time_is_up, token, until) };
        match result {
            ParkResult::Invalid => return Err(OtherMutex),
            ParkResult::Unparked(HANDED_OVER) => word.own_exclusive(),
            ParkResult::Unparked(_) | ParkResult::TimedOut => {
                word.lock(Mode::Exclusive, None);
            }
        }
        Ok(result == ParkResult::TimedOut && !is_moved)
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("Condvar { .. }")
    }
}

/// The raw mutex of a guard.
fn raw<'a, T: ?Sized>(guard: &MutexGuard<'a, T>) -> &'a crate::RawMutex {
    // SAFETY: it is unlocked and locked again while the guard is borrowed, so nobody uses the data meanwhile.
    unsafe { MutexGuard::mutex(guard).raw() }
}

/// Whether the time was up. The mutex is held either way.
#[track_caller]
fn checked(result: Result<bool, OtherMutex>) -> bool {
    let Ok(is_timed_out) = result else {
        panic!("attempted to use a condition variable with more than one mutex");
    };
    is_timed_out
}
