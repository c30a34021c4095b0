//! Counts threads that have got to a place, and wakes one thread when all have: a handshake without sleeping.
//!
//! It holds nobody up: those who arrive go on at once, to block wherever they please.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::thread::{self, Thread};

/// A place that threads get to, watched by the thread that made it.
#[derive(Debug)]
pub struct Arrivals {
    expected: usize,
    present: AtomicUsize,
    watcher: Thread,
}

impl Arrivals {
    /// Expects `expected` threads; the calling thread is the one that may [`wait`](Arrivals::wait).
    pub fn new(expected: usize) -> Arrivals {
        Arrivals { expected, present: AtomicUsize::new(0), watcher: thread::current() }
    }

    /// The calling thread is there.
    pub fn arrive(&self) {
        // ORDERING: release, pairs with the acquire in `wait`: what this thread did before is visible there.
        if self.present.fetch_add(1, AcqRel) + 1 == self.expected {
            self.watcher.unpark();
        }
    }

    /// The calling thread has left again.
    pub fn leave(&self) {
        self.present.fetch_sub(1, AcqRel);
    }

    /// Waits until all are there at the same time.
    pub fn wait(&self) {
        // ORDERING: acquire, pairs with `arrive`. `unpark` leaves a token, so none is missed in between.
        while self.present.load(Acquire) != self.expected {
            thread::park();
        }
    }
}
