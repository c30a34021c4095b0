//! [`Waiters`]: the threads that wait on a condition variable. It knows no trait.
//!
//! A notified thread moves from the queue of the condition variable to that of the mutex, if the mutex is held: so it
//! does not wake up only to wait again.

#![allow(unsafe_code, reason = "the queues of `parking_lot_core` are unsafe")]

use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use parking_lot_core::{ParkResult, RequeueOp, UnparkResult};

use crate::word::{HANDED_OVER, Mode, TRY_AGAIN, Word};

/// A condition variable. It does not wake up spuriously.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// The word of the mutex with which threads wait; null if there are none. Changed under the lock of the queue.
    mutex: AtomicPtr<Word>,
}

/// Another thread waits with another mutex.
pub(crate) struct OtherMutex;

/// Whether the time was up. The mutex is held either way.
///
/// # Panics
///
/// If another thread waits with another mutex.
#[track_caller]
pub(crate) fn checked(result: Result<bool, OtherMutex>) -> bool {
    let Ok(is_timed_out) = result else {
        panic!("attempted to use a condition variable with more than one mutex");
    };
    is_timed_out
}

impl Waiters {
    pub(crate) const fn new() -> Waiters {
        Waiters { mutex: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Wakes one waiting thread. Returns whether there was one.
    #[inline]
    pub(crate) fn notify_one(&self) -> bool {
        // ORDERING: relaxed: the mutex, or nothing, orders this with the threads that begin to wait.
        let mutex = self.mutex.load(Relaxed);
        !mutex.is_null() && self.notify(mutex, RequeueOp::RequeueOne, RequeueOp::UnparkOne) > 0
    }

    /// Wakes all waiting threads. Returns how many there were.
    #[inline]
    pub(crate) fn notify_all(&self) -> usize {
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

    /// Releases the mutex, waits, and locks the mutex again. Returns whether the time was up.
    pub(crate) fn wait(&self, mutex: &Word, until: Option<Instant>) -> Result<bool, OtherMutex> {
        let own = core::ptr::from_ref(mutex).cast_mut();
        let (mut is_other, mut is_moved) = (false, false);
        let enter = || {
            let present = self.mutex.load(Relaxed);
            is_other = !present.is_null() && present != own;
            if present.is_null() {
                self.mutex.store(own, Relaxed);
            }
            !is_other
        };
        let release = || mutex.unlock(Mode::Exclusive, None, false);
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
            ParkResult::Unparked(HANDED_OVER) => mutex.own_exclusive(),
            ParkResult::Unparked(_) | ParkResult::TimedOut => {
                mutex.lock(Mode::Exclusive, None);
            }
        }
        Ok(result == ParkResult::TimedOut && !is_moved)
    }

    fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}
