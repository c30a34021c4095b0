//! What the calling thread has used so far, as the kernel counts it: processor time, switches, page faults, and the
//! time for which it was ready and had no processor.
//!
//! It asks and remembers. `event::capture` says when, and what becomes of the answers. In the instance that owns the
//! ring, except for the settings.
//!
//! # What it costs
//!
//! To ask takes two system calls, or five with [`Usage::Delays`]: see `scripts/bench events`. A cycle that may become
//! slow must have asked before. So that quick cycles stay cheap, the thread's last answers stand for those at a
//! cycle's beginning if they are not too old. Then the answers at the end also count what the thread did in between:
//! the event of the cycle says how long that was.
//!
//! FOLKLORE: the times that `getrusage` gives are those of the thread's last tick or switch. They may be 4 ms too
//! early. So the processor time comes from the thread's clock, which is exact.

use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::compiler_fence;

use librip_format::{USAGE_LEVEL_COUNTS, USAGE_LEVEL_DELAYS, USAGE_LEVEL_OFF, usage_age_max_ns};

use crate::arch;
use crate::ring::Ring;
use crate::ring::control::{USAGE_ANSWERS, UsageCell};
use crate::sys;

/// What the recorder asks the kernel about cycles of [`rip_slow_cycle!`](crate::rip_slow_cycle): why a slow one was
/// slow; and about spans of [`rip_span!(usage, ...)`](crate::rip_span), at both ends of each.
///
/// # Examples
///
/// ```
/// use librip::{Builder, Keep, Usage};
///
/// let made = Builder::new().usage(Usage::Counts).keep(Keep::Never).create();
/// # let _ = made;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// Nothing.
    #[default]
    Off,
    /// How long the thread ran, how often it gave up its processor and how often that was taken from it, and its page
    /// faults. That takes two system calls, `getrusage` and `clock_gettime`: at the beginning of a cycle, but at most
    /// once in a sixteenth of the cycle's limit, or in 100 microseconds; and at the end of a slow cycle.
    Counts,
    /// How long it was ready and had no processor, too. Without this, a thread that was woken and did not get a
    /// processor looks like one that still waited. It reads `/proc/thread-self/schedstat`, so each of these moments
    /// takes three more system calls, and a descriptor that is closed at once. At the beginning of a cycle that is at
    /// most once in a quarter of the cycle's limit, or in 500 microseconds.
    Delays,
}

impl Usage {
    /// The `USAGE_LEVEL_*`.
    pub(crate) fn level(self) -> u32 {
        match self {
            Usage::Off => USAGE_LEVEL_OFF,
            Usage::Counts => USAGE_LEVEL_COUNTS,
            Usage::Delays => USAGE_LEVEL_DELAYS,
        }
    }
}

/// Whether the recorder asks the kernel about cycles and spans.
#[inline(always)]
pub(crate) fn is_asked() -> bool {
    arch::module().usage_level() != USAGE_LEVEL_OFF
}

/// How old answers may be that stand for those at the beginning of a cycle with this limit, ns.
#[inline(always)]
pub(crate) fn age_max_ns(limit_ns: u64) -> u64 {
    usage_age_max_ns(arch::module().usage_level(), limit_ns)
}

/// What a thread has used up to some moment. All zeros: not known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// The thread's id; 0 if nothing is known.
    tid: u64,
    /// The moment, on the system's monotonic clock. The answers are a little later.
    at_ns: u64,
    answers: [u64; USAGE_ANSWERS],
}

/// [`Measured::answers`]: the time on a processor, ns.
const ON_CPU: usize = 0;
/// [`Measured::answers`]: the part of it in the kernel, us.
const SYSTEM: usize = 1;
/// [`Measured::answers`]: the time of being ready, ns, or [`NOT_ASKED`].
const READY: usize = 2;
/// The first of the four counts: voluntary and involuntary switches, minor and major page faults.
const COUNTS: usize = 3;

/// [`READY`] is not known.
const NOT_ASKED: u64 = u64::MAX;

/// What a thread has used between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    /// How long that was, ns.
    pub(crate) time_ns: u64,
    pub(crate) on_cpu_ns: u64,
    pub(crate) system_us: u64,
    pub(crate) ready_ns: Option<u64>,
    /// Voluntary and involuntary switches, minor and major page faults.
    pub(crate) counts: [u64; 4],
}

impl Measured {
    /// What this thread has used from then until now; `None` if the kernel did not answer both times, or if it was
    /// another thread then.
    pub(crate) fn until(&self, end: &Measured) -> Option<Used> {
        if self.tid == 0 || self.tid != end.tid {
            return None;
        }
        let difference = |index: usize| end.answers[index].saturating_sub(self.answers[index]);
        let is_ready_known = self.answers[READY] != NOT_ASKED && end.answers[READY] != NOT_ASKED;
        Some(Used {
            // The end's moment is before its answers too. What the caller reads after this is nearer.
            time_ns: sys::clock_ns(libc::CLOCK_MONOTONIC).saturating_sub(self.at_ns),
            on_cpu_ns: difference(ON_CPU),
            system_us: difference(SYSTEM),
            ready_ns: is_ready_known.then(|| difference(READY)),
            counts: core::array::from_fn(|index| difference(COUNTS + index)),
        })
    }
}

/// What the calling thread has used. If the kernel answered less than `age_max_ns` ago, it is not asked again. Safe in
/// a signal handler.
pub(crate) fn measure(ring: &Ring, age_max_ns: u64) -> Measured {
    let index = ring.slot_of(arch::thread_block().cursor.get());
    let Some(cell) = index.and_then(|index| ring.control.usage(index)) else { return Measured::default() };
    let (tid, now_ns) = (u64::from(sys::tid()), sys::clock_ns(libc::CLOCK_MONOTONIC));
    // ORDERING: relaxed: the thread's own stores. A handler that comes between stores later answers, all of them or
    // none: the fence in `remember` is for it.
    let at_ns = cell.at_ns.load(Relaxed);
    if cell.tid.load(Relaxed) == tid && now_ns.wrapping_sub(at_ns) < age_max_ns {
        let answers = core::array::from_fn(|index| cell.answers[index].load(Relaxed));
        let last = Measured { tid, at_ns, answers };
        // A handler that has asked meanwhile has changed the moment.
        if cell.at_ns.load(Relaxed) == at_ns {
            return last;
        }
    }
    // A program that restricts its system calls is asked for none.
    if sys::avoids_calls() {
        return Measured::default();
    }
    let Some(answers) = ask() else { return Measured::default() };
    let measured = Measured { tid, at_ns: now_ns, answers };
    remember(cell, &measured);
    measured
}

fn remember(cell: &UsageCell, measured: &Measured) {
    // ORDERING: relaxed, and fences of the compiler: only this thread and its signal handlers use the cell. A handler
    // that comes between finds no answers, and asks.
    cell.tid.store(0, Relaxed);
    compiler_fence(Release);
    cell.at_ns.store(measured.at_ns, Relaxed);
    for (into, &answer) in cell.answers.iter().zip(&measured.answers) {
        into.store(answer, Relaxed);
    }
    compiler_fence(Release);
    cell.tid.store(measured.tid, Relaxed);
}

#[cold]
#[inline(never)]
fn ask() -> Option<[u64; USAGE_ANSWERS]> {
    let ready =
        if arch::module().usage_level() == USAGE_LEVEL_DELAYS { sys::ready_ns_of_thread() } else { None };
    let on_cpu = sys::cpu_ns_of_thread()?;
    let used = sys::usage_of_thread()?;
    let [system_us, voluntary, involuntary, minor, major] = used;
    Some([on_cpu, system_us, ready.unwrap_or(NOT_ASKED), voluntary, involuntary, minor, major])
}
