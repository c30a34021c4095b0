//! Counts the threads that reach a point, and wakes one thread when all have reached it.
//!
//! It does not block the threads that arrive, and it does not sleep.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::thread::{self, Thread};

/// A point in the program that a fixed number of threads reach.
#[derive(Debug)]
pub struct Arrivals {
    expected: usize,
    present: AtomicUsize,
    watcher: Thread,
}

impl Arrivals {
    /// Expects `expected` threads. Only the calling thread may call [`wait`](Arrivals::wait).
    pub fn new(expected: usize) -> Arrivals {
        Arrivals { expected, present: AtomicUsize::new(0), watcher: thread::current() }
    }

    /// The calling thread has reached the point.
    pub fn arrive(&self) {
        // ORDERING: the release pairs with the acquire in `wait`, which then sees what this thread did before.
        if self.present.fetch_add(1, AcqRel) + 1 == self.expected {
            self.watcher.unpark();
        }
    }

    /// The calling thread is no longer at the point.
    pub fn leave(&self) {
        self.present.fetch_sub(1, AcqRel);
    }

    /// Waits until all threads are at the point at the same time.
    pub fn wait(&self) {
        // ORDERING: the acquire pairs with `arrive`. `unpark` leaves a token, so `park` misses no call.
        while self.present.load(Acquire) != self.expected {
            thread::park();
        }
    }
}
