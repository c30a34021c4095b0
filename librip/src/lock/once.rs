//! An initialisation that is done once, as `pthread_once` does it: one thread runs the initialiser, others wait for it.
//!
//! The thread that runs the initialiser holds the initialisation as a lock, from before the initialiser begins until it
//! has returned. A thread that waits for it acquires nothing: when its wait has ended, it records that it has released
//! the lock. So a wait for an initialisation takes part in deadlocks and in orders of locks like any other.
//!
//! It knows nothing of the C library. A call that finds the initialisation done records nothing, and does not come here.
//!
//! # A wait that cannot be seen
//!
//! Two threads may find that nobody has begun. One of them runs the initialiser, and the other one waits within the C
//! library. So a thread is in the state WAITING before the call, and whoever runs the initialiser changes that.

use crate::lock::interposed::{
    Acquisition, Caller, ONCE, Release, Sites, StackPointer, begin_acquire, begin_wait,
};
use crate::lock::site::Origin as _;
use crate::lock::table::Slot;

/// A call that runs an initialiser, or waits for the thread that runs it.
#[derive(Clone, Copy, Debug)]
pub struct Initialisation {
    lock: u64,
    caller: Caller,
    acquisition: Acquisition,
    /// What the initialiser's return, or its end without a return, has left to do.
    release: Option<Release>,
    is_run_here: bool,
}

impl Initialisation {
    /// Before the call. `lock` is the address of what controls the initialisation. `is_running`: whether a thread
    /// seems to run the initialiser. `stack` is as in [`begin_wait`].
    #[inline(never)]
    pub fn begin(lock: u64, caller: Caller, is_running: bool, stack: StackPointer) -> Initialisation {
        let mut acquisition = begin_acquire::<ONCE>(lock, caller, false);
        if is_running {
            acquisition = begin_wait::<ONCE>(acquisition, lock, caller, false, stack);
        } else {
            acquisition.may_wait();
        }
        Initialisation { lock, caller, acquisition, release: None, is_run_here: false }
    }

    /// The calling thread is about to run the initialiser.
    pub fn runs(&mut self) {
        self.is_run_here = true;
        self.acquisition.acquired_after_wait();
    }

    /// The initialiser has returned, or an exception or the end of the thread has left it. The C library does not know
    /// that yet.
    pub fn has_run(&mut self) {
        self.release = Some(Release::begin(self.lock, false));
    }

    /// The call is over, or has been left.
    #[inline(never)]
    pub fn end(self) {
        let Initialisation { lock, caller, .. } = self;
        if let Some(release) = self.release {
            release.forget_overflowed();
            release.done(caller, lock, Sites::<ONCE>::released(), Sites::<ONCE>::released_timed());
        } else if !self.is_run_here {
            self.acquisition.forget();
            if let Some(slot) = Slot::existing() {
                caller.event(slot, [], [lock], Sites::<ONCE>::released());
            }
        }
    }
}
