//! Captures: what a thread has recorded is kept when something was wrong, and otherwise it is not.
//!
//! It decides when, and from where on. `ring::captures` copies. `process::usage` asks the kernel what the thread used
//! in a cycle, if that is wanted, and `used` records it.
//!
//! # Invariants
//!
//! * A program in C has [`Begun`] as plain data. Nothing in it is an address that is followed. A program may overwrite
//!   it, or end a cycle in another thread: that decides what an event says.

use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use super::record;
use super::used;
use super::values::Values;
use crate::process::instance::{self, Request};
use crate::process::slot::Slot;
use crate::process::usage::{self, Measured};
use crate::sys;

/// What [`rip_capture!`](crate::rip_capture) calls.
#[inline(always)]
pub fn capture<V: Values>(pc: u64, values: V) {
    record::event(pc, values);
    keep(Request::CAPTURE, 0);
}

/// Keeps what the calling thread has recorded from this sequence on.
#[cold]
#[inline(never)]
fn keep(why: Request, first_sequence: u64) {
    instance::request(why, first_sequence);
}

/// A cycle that may take too long: [`rip_slow_cycle!`](crate::rip_slow_cycle) returns it. The cycle ends when it is
/// dropped.
///
/// It stays in its thread. A future that holds one over an `await` cannot be sent to another thread.
#[must_use = "the cycle ends when this is dropped"]
#[derive(Debug)]
pub struct Cycle {
    begun: Begun,
    /// It is neither `Send` nor `Sync`.
    _of_this_thread: PhantomData<*const ()>,
}

/// What [`rip_slow_cycle!`](crate::rip_slow_cycle) calls. `pc` is the site of the event that says how long it took, and
/// `pc_usage` that of the event that says what the thread used.
#[inline(always)]
pub fn cycle(pc: u64, pc_usage: u64, limit: Duration) -> Cycle {
    let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    Cycle { begun: Begun::begin(pc, pc_usage, limit_ns), _of_this_thread: PhantomData }
}

impl Drop for Cycle {
    #[inline(always)]
    fn drop(&mut self) {
        self.begun.end();
    }
}

/// A cycle that has begun. All zeros: none.
#[allow(unreachable_pub, reason = "`capi` passes it on")]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Begun {
    /// The site of the event that says how long it took; 0 if there is no cycle.
    pc: u64,
    /// The site of the event that says what the thread used.
    pc_usage: u64,
    begun_ns: u64,
    limit_ns: u64,
    /// The address of the words of the thread's slot.
    cursor: u64,
    /// The sequence of the cycle's first word.
    first: u64,
    /// What the thread had used before, if that is wanted.
    used: Measured,
}

const _: () = assert!(size_of::<Begun>() == 120, "the header in C says 120");

#[allow(unreachable_pub, reason = "`capi` passes it on")]
impl Begun {
    /// Begins a cycle.
    #[inline(always)]
    pub fn begin(pc: u64, pc_usage: u64, limit_ns: u64) -> Begun {
        let Some(slot) = Slot::current() else { return Begun::default() };
        let used = if usage::is_asked() { used_before(limit_ns) } else { Measured::default() };
        // ORDERING: relaxed: this thread's own stores.
        let first = slot.header().count.load(Relaxed);
        Begun { pc, pc_usage, begun_ns: now_ns(), limit_ns, cursor: address(slot), first, used }
    }

    /// Ends the cycle. If it was slow, an event says so, and what the thread has recorded meanwhile is kept.
    #[inline(always)]
    pub fn end(&self) {
        if self.pc == 0 {
            return;
        }
        let ended_ns = now_ns();
        let took_ns = ended_ns.saturating_sub(self.begun_ns);
        if took_ns > self.limit_ns {
            self.was_slow(took_ns / 1000);
        } else if usage::is_asked() && ended_ns >= usual_due(self.pc).load(Relaxed) {
            self.was_usual(ended_ns, took_ns / 1000);
        }
    }

    #[cold]
    #[inline(never)]
    fn was_slow(&self, took_us: u64) {
        self.record_usage(took_us);
        record::event(self.pc, (took_us, self.limit_ns / 1000));
        self.keep(Request::CAPTURE);
    }

    /// Keeps a cycle that was not slow, so that slow ones can be compared with it.
    #[cold]
    #[inline(never)]
    fn was_usual(&self, ended_ns: u64, took_us: u64) {
        // ORDERING: relaxed, here and below: the word alone matters. The thread that changes it keeps its cycle.
        let due = usual_due(self.pc);
        let was_due = due.load(Relaxed);
        let is_first = was_due == 0;
        // The first cycle of all is seldom a usual one.
        let next = ended_ns + if is_first { USUAL_FIRST_NS } else { USUAL_EACH_NS };
        if due.compare_exchange(was_due, next, Relaxed, Relaxed).is_ok()
            && !is_first
            && self.record_usage(took_us)
        {
            self.keep(Request::CAPTURE_USUAL);
        }
    }

    fn keep(&self, why: Request) {
        // A forked child has another slot, and all of it belongs to the cycle.
        let is_current = Slot::current().is_some_and(|slot| address(slot) == self.cursor);
        keep(why, if is_current { self.first } else { 0 });
    }

    /// Records what the thread has used in the cycle, if that is wanted and known.
    fn record_usage(&self, took_us: u64) -> bool {
        Slot::current().is_some_and(|slot| used::record(slot, self.pc_usage, &self.used, took_us))
    }
}

#[cold]
#[inline(never)]
fn used_before(limit_ns: u64) -> Measured {
    instance::measure(usage::age_max_ns(limit_ns))
}

/// The first cycle that is kept for comparison is one that ends this long after the first one of its kind.
const USUAL_FIRST_NS: u64 = 10_000_000;
/// One is kept so often after that.
const USUAL_EACH_NS: u64 = 250_000_000;

/// Cycles of so many places keep cycles for comparison at times of their own. Others share these.
const USUAL_KINDS: usize = 16;

/// When the next cycle of this kind is due to be kept for comparison, on the system's monotonic clock; 0 before the
/// first one.
fn usual_due(pc: u64) -> &'static AtomicU64 {
    static DUE: [AtomicU64; USUAL_KINDS] = [const { AtomicU64::new(0) }; USUAL_KINDS];
    &DUE[(pc.wrapping_mul(librip_format::FACTOR) >> 60) as usize]
}

fn address(slot: Slot) -> u64 {
    slot.cursor().addr() as u64
}

#[inline(always)]
fn now_ns() -> u64 {
    sys::clock_ns(libc::CLOCK_MONOTONIC)
}
