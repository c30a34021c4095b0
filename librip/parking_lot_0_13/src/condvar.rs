//! [`Condvar`]: that of `lock_api`, with a recorded raw condition variable.

#![allow(unsafe_code, reason = "the traits are unsafe")]

use core::time::Duration;
use std::time::Instant;

use librip::raw::Recorded;

use crate::raw::{Guard, OfLot, PlainMutex, until};
use crate::waiters::{Waiters, checked};

/// A condition variable. It does not wake up spuriously.
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
pub type Condvar = lock_api::Condvar<RawCondvar>;
/// A raw condition variable, recorded.
pub type RawCondvar = Recorded<PlainCondvar, OfLot>;

/// A raw condition variable that nobody records.
///
/// It does not wake up spuriously, and says exactly how many threads it notified. A wait panics if another thread waits
/// with another mutex.
#[derive(Debug)]
pub struct PlainCondvar(Waiters);

// SAFETY: a thread enters the queue before the mutex is unlocked, and has locked it again when the wait ends. With two
// mutexes it panics, and the mutex is still locked then.
unsafe impl lock_api::RawCondvar for PlainCondvar {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: PlainCondvar = PlainCondvar(Waiters::new());

    type RawMutex = PlainMutex;

    #[inline]
    unsafe fn wait(&self, mutex: &PlainMutex, _: &mut Guard) {
        checked(self.0.wait(mutex.word(), None));
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawCondvarTimed for PlainCondvar {
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        until(*timeout)
    }

    #[inline]
    unsafe fn wait_until(&self, mutex: &PlainMutex, _: &mut Guard, timeout: &Instant) -> bool {
        checked(self.0.wait(mutex.word(), Some(*timeout)))
    }
}
