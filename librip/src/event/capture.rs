//! Captures: what a thread has recorded is kept when something was wrong, and otherwise it is not.
//!
//! It decides when, and from where on. `ring::captures` copies.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;
use std::time::Instant;

use super::record;
use super::values::Values;
use crate::process::instance::{self, Request};
use crate::process::slot::Slot;

/// What [`rip_capture!`](crate::rip_capture) calls.
#[inline(always)]
pub fn capture<V: Values>(pc: u64, values: V) {
    record::event(pc, values);
    keep(0);
}

/// Keeps what the calling thread has recorded from this sequence on.
#[cold]
#[inline(never)]
pub(super) fn keep(first_sequence: u64) {
    instance::request(Request::CAPTURE, first_sequence);
}

/// A cycle that may take too long: [`rip_slow_cycle!`](crate::rip_slow_cycle) returns it. The cycle ends when it is
/// dropped.
///
/// It stays in its thread. A future that holds one over an `await` cannot be sent to another thread.
#[must_use = "the cycle ends when this is dropped"]
#[derive(Debug)]
pub struct Cycle {
    begun: Instant,
    limit: Duration,
    /// The thread's slot, and the sequence of the cycle's first word.
    begin: Option<(Slot, u64)>,
    pc: u64,
    /// It is neither `Send` nor `Sync`.
    _of_this_thread: PhantomData<*const ()>,
}

/// What [`rip_slow_cycle!`](crate::rip_slow_cycle) calls. `pc` is the site of the event that says how long it took.
#[inline(always)]
pub fn cycle(pc: u64, limit: Duration) -> Cycle {
    // ORDERING: relaxed: this thread's own stores.
    let begin = Slot::current().map(|slot| (slot, slot.header().count.load(Relaxed)));
    Cycle { begun: Instant::now(), limit, begin, pc, _of_this_thread: PhantomData }
}

impl Drop for Cycle {
    #[inline(always)]
    fn drop(&mut self) {
        let took = self.begun.elapsed();
        if took > self.limit {
            self.was_slow(took);
        }
    }
}

impl Cycle {
    #[cold]
    #[inline(never)]
    fn was_slow(&self, took: Duration) {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        record::event(self.pc, (us(took), us(self.limit)));
        // A forked child has another slot, and all of it belongs to the cycle.
        keep(self.begin.filter(|(slot, _)| slot.is_current()).map_or(0, |(_, first)| first));
    }
}
