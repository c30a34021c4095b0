//! An initialisation that is done once, as `pthread_once` does it: one thread runs the initialiser, others wait for it.
//!
//! The thread that runs the initialiser holds the initialisation as a lock, from before the initialiser begins until it
//! has returned. A thread that waits for it acquires nothing: when its wait has ended, it records that it has released
//! the lock. So a wait for an initialisation takes part in deadlocks and in orders of locks like any other.
//!
//! It initialises nothing, and knows neither the C library nor the standard library. A call that finds the
//! initialisation done records nothing, and does not come here.
//!
//! # A wait that cannot be seen
//!
//! Two threads may find that nobody has begun. One of them runs the initialiser, and the other one waits. So a thread
//! is in the state WAITING before the call, and whoever runs the initialiser changes that.

use crate::lock::protocol::{Acquisition, Release};
use crate::lock::site::Origin;
use crate::lock::table::Slot;

/// A call that runs an initialiser, or waits for the thread that runs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    acquisition: Acquisition,
    /// What the initialiser's return, or its end without a return, has left to do.
    release: Option<Release>,
    is_run_here: bool,
}

impl Run {
    /// Before the call. The acquisition has begun, and waits if a thread seems to run the initialiser.
    pub(crate) fn begin(mut acquisition: Acquisition, is_running: bool) -> Run {
        if !is_running {
            acquisition.may_wait();
        }
        Run { acquisition, release: None, is_run_here: false }
    }

    /// The calling thread is about to run the initialiser.
    pub(crate) fn runs(&mut self) {
        self.is_run_here = true;
        self.acquisition.acquired_after_wait();
    }

    /// The initialiser has returned, or was left without a return. Other threads do not know that yet.
    pub(crate) fn has_run(&mut self, lock: u64) {
        self.release = Some(Release::begin(lock, false));
    }

    /// The call is over, or was left. `pc` and `pc_timed` are as in [`Release::done`].
    #[inline(never)]
    pub(crate) fn end<O: Origin>(self, origin: O, lock: u64, pc: u64, pc_timed: u64) {
        if let Some(release) = self.release {
            release.forget_overflowed();
            release.done(origin, lock, pc, pc_timed);
        } else if !self.is_run_here {
            self.acquisition.forget();
            if let Some(slot) = Slot::existing() {
                origin.event(slot, [], [lock], pc);
            }
        }
    }
}
