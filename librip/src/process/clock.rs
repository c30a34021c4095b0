//! The clock of timed events: the processor's counter if it can be relied upon, else `CLOCK_MONOTONIC`.
//!
//! It reads clocks and measures how fast they are. The places that write events decide which events are timed.
//!
//! # Ticks
//!
//! Operands keep 48 bits. The counter is shifted right until a tick is 8 ns or more, so that 48 bits last for at least
//! 26 days. A time longer ago than that is shown as too recent by a multiple of 26 days. Reading the counter takes a
//! few nanoseconds; reading a system clock takes five times as long.
//!
//! # The rate
//!
//! The reader gets the rate from the header. It is first measured at the start, which takes 20 microseconds and has an
//! error of less than one in a hundred. Threads that take times or claim slots measure it again whenever the time since
//! then has doubled. Each time the error halves. So a time is wrong by some tens of nanoseconds, and no more.
//!
//! # What is trusted
//!
//! Source, shift and base are kept in private memory. The header has copies for the reader.

#![allow(unsafe_code, reason = "the counter is read by an instruction")]

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicU32, AtomicU64, compiler_fence};

use librip_format::{
    CLOCK_LEVEL_ALL, CLOCK_LEVEL_CONTENDED, CLOCK_LEVEL_OFF, CLOCK_LEVEL_TICKS, CLOCK_SOURCE_COUNTER,
    CLOCK_SOURCE_MONOTONIC, Header, PAYLOAD_MASK,
};

use super::instance::{self, Request};
use crate::{arch, sys};

/// Which events have times. Each level has those of the one before.
///
/// # Examples
///
/// ```
/// use librip::{Builder, Clock, Keep};
///
/// let made = Builder::new().clock(Clock::All).keep(Keep::Never).create();
/// # let _ = made;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// None.
    Off,
    /// Waits for a lock or a condition, and releases of locks that a thread has waited for: a thread that waits anyway
    /// does not notice the cost. And events of [`rip_event!`](crate::rip_event) and [`rip_span!`](crate::rip_span).
    #[default]
    Contended,
    /// About once a millisecond, an event of each thread too: of a lock, a span, [`rip_event!`](crate::rip_event), or
    /// [`rip_progress!`](crate::rip_progress). So `read-rip` can say about when each of the others was. A plain mark
    /// takes no time, and takes no longer: a thread that makes nothing else has the time of its first mark only. A slot
    /// takes 264 bytes more.
    Ticks,
    /// Every acquisition and release of a lock too.
    All,
}

/// No tick is shorter.
const TICK_MIN_NS: u64 = 8;
/// At the start the counter is compared with the system's clock for this time.
const FIRST_MEASUREMENT_NS: u64 = 20_000;
/// To sample both clocks at one moment, they are read this many times. The reading that took the least time counts.
const READINGS: u32 = 8;

/// How a ring's times are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calibration {
    /// `CLOCK_LEVEL_*`.
    pub(crate) level: u32,
    /// `CLOCK_SOURCE_*`.
    pub(crate) source: u32,
    pub(crate) shift: u32,
    /// Ticks in 1000 s.
    pub(crate) rate: u64,
    /// One moment on both clocks.
    pub(crate) base: Moment,
}

/// One moment, on the system's clock and on the clock of times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// `CLOCK_BOOTTIME`, ns.
    pub(crate) boottime_ns: u64,
    /// All 64 bits.
    pub(crate) ticks: u64,
}

impl Calibration {
    /// Chooses the source and measures its rate. Takes [`FIRST_MEASUREMENT_NS`].
    pub(crate) fn measure(level: Clock) -> Calibration {
        let level = match level {
            Clock::Off => CLOCK_LEVEL_OFF,
            Clock::Contended => CLOCK_LEVEL_CONTENDED,
            Clock::Ticks => CLOCK_LEVEL_TICKS,
            Clock::All => CLOCK_LEVEL_ALL,
        };
        let source = if counter_is_steady() { CLOCK_SOURCE_COUNTER } else { CLOCK_SOURCE_MONOTONIC };
        let begin = sample(source, 0);
        // A clock that cannot be read is 0 for ever (a seccomp filter can cause that).
        while begin.boottime_ns != 0 && sys::boottime_ns() < begin.boottime_ns + FIRST_MEASUREMENT_NS {
            core::hint::spin_loop();
        }
        let end = sample(source, 0);
        let rate = rate(end.ticks.wrapping_sub(begin.ticks), end.boottime_ns - begin.boottime_ns);
        // Ticks a second are at most 10^9 / TICK_MIN_NS.
        let mut shift = 0;
        while (rate >> shift) / 1000 > 1_000_000_000 / TICK_MIN_NS {
            shift += 1;
        }
        Calibration { level, source, shift, rate: rate >> shift, base: sample(source, shift) }
    }

    /// Packs the part that a module's state keeps: level, source and shift, a byte each.
    pub(crate) fn packed(&self) -> u32 {
        self.level | self.source << 8 | self.shift << 16
    }
}

/// The base of the ring's clock, in the instance that owns the ring.
static BASE_NS: AtomicU64 = AtomicU64::new(0);
static BASE_TICKS: AtomicU64 = AtomicU64::new(0);
/// [`Calibration::packed`], in the instance that owns the ring.
static PACKED: AtomicU32 = AtomicU32::new(0);
/// When to measure the rate again, ticks.
static MEASURE_NEXT: AtomicU64 = AtomicU64::new(0);

/// How many ns a tick has, times 2^[`NS_SHIFT`].
static NS_A_TICK: AtomicU64 = AtomicU64::new(0);
const NS_SHIFT: u32 = 24;

/// Stores what [`recalibrate`] needs. Runs before the ring is published.
pub(crate) fn install(calibration: &Calibration) {
    // ORDERING: relaxed: the ring is published after this, with release.
    BASE_NS.store(calibration.base.boottime_ns, Relaxed);
    BASE_TICKS.store(calibration.base.ticks, Relaxed);
    PACKED.store(calibration.packed(), Relaxed);
    note_rate(calibration.rate);
}

/// `rate`: ticks in 1000 s.
fn note_rate(rate: u64) {
    const NS: u128 = 1_000_000_000_000 << NS_SHIFT;
    NS_A_TICK.store((NS / u128::from(rate.max(1))) as u64, Relaxed);
}

/// The time of `CLOCK_BOOTTIME`, ns, for the begin and the end of tasks: a program may have a million a second.
///
/// To read the system's clock takes forty nanoseconds. So a thread reads it about once a millisecond, and the counter
/// says how much later it is. The error is that of the rate over a millisecond. In the instance that owns the ring.
#[inline]
pub(crate) fn boottime_ns_of_task() -> u64 {
    // ORDERING: relaxed, as in `recalibrate`.
    let packed = PACKED.load(Relaxed);
    if source_of(packed) != CLOCK_SOURCE_COUNTER {
        return sys::boottime_ns();
    }
    let shift = shift_of(packed);
    let (block, ticks) = (arch::task_block(), counter() >> shift);
    let later = ticks.wrapping_sub(block.moment_ticks.get());
    if later > MOMENT_TICKS_MAX {
        return new_moment(ticks, shift);
    }
    block.moment_ns.get() + ((later * NS_A_TICK.load(Relaxed)) >> NS_SHIFT)
}

/// A length of time in ticks, about. In the instance that owns the ring.
pub(crate) fn ticks_of(length_ns: u64) -> u64 {
    // ORDERING: relaxed, as in `recalibrate`.
    let ns_a_tick = u128::from(NS_A_TICK.load(Relaxed).max(1));
    u64::try_from((u128::from(length_ns) << NS_SHIFT) / ns_a_tick).unwrap_or(u64::MAX)
}

/// A thread uses a moment for this many ticks: 0.5 to 1 ms, because a tick is 8 to 16 ns.
const MOMENT_TICKS_MAX: u64 = 1 << 16;

/// A thread keeps a moment only if it read the system's clock within this many ticks: 1 to 2 us. If a longer pause
/// interrupts the reading, the moment is wrong by that pause.
const MOMENT_READ_TICKS_MAX: u64 = 1 << 7;

#[cold]
#[inline(never)]
fn new_moment(ticks: u64, shift: u32) -> u64 {
    let (block, now_ns) = (arch::task_block(), sys::boottime_ns());
    if (counter() >> shift).wrapping_sub(ticks) <= MOMENT_READ_TICKS_MAX {
        // A handler that comes between finds a moment that is long ago.
        block.moment_ticks.set(0);
        compiler_fence(SeqCst);
        block.moment_ns.set(now_ns);
        compiler_fence(SeqCst);
        block.moment_ticks.set(ticks);
    }
    now_ns
}

/// Measures the rate of the ring's clock again, over the whole time since the ring was made, and stores it in the
/// header.
pub(crate) fn recalibrate(header: &Header) {
    // ORDERING: relaxed, here and below: `install` ran before the ring was published. The other words are independent
    // of each other, and any value that was stored is a good one.
    let now = now(PACKED.load(Relaxed));
    let Some(elapsed_ns) = now.boottime_ns.checked_sub(BASE_NS.load(Relaxed)) else { return };
    let ticks = now.ticks.wrapping_sub(BASE_TICKS.load(Relaxed));
    MEASURE_NEXT.store((now.ticks & PAYLOAD_MASK).saturating_add(ticks), Relaxed);
    // A shorter time than the first measurement would make the rate worse.
    if elapsed_ns > 2 * FIRST_MEASUREMENT_NS {
        let rate = rate(ticks, elapsed_ns);
        header.clock_ticks_per_kilosecond.store(rate, Relaxed);
        note_rate(rate);
    }
}

/// Measures the rate again, if the time since it was first measured has doubled. In the instance that owns the ring.
pub(crate) fn recalibrate_if_due(header: &Header) {
    // ORDERING: relaxed, as above.
    let packed = PACKED.load(Relaxed);
    if read(source_of(packed), shift_of(packed)) & PAYLOAD_MASK > MEASURE_NEXT.load(Relaxed) {
        recalibrate(header);
    }
}

fn now(packed: u32) -> Moment {
    sample(source_of(packed), shift_of(packed))
}

fn source_of(packed: u32) -> u32 {
    packed >> 8 & 0xff
}

fn shift_of(packed: u32) -> u32 {
    packed >> 16 & 0x3f
}

/// Reads both clocks at one moment.
fn sample(source: u32, shift: u32) -> Moment {
    let mut best = Moment { boottime_ns: 0, ticks: 0 };
    let mut least = u64::MAX;
    for _ in 0..READINGS {
        let (before, boottime_ns, after) = (read(source, 0), sys::boottime_ns(), read(source, 0));
        let took = after.wrapping_sub(before);
        if took < least {
            least = took;
            best = Moment { boottime_ns, ticks: before.wrapping_add(took / 2) >> shift };
        }
    }
    best
}

/// Whether every lock event has a time.
#[inline(always)]
pub(crate) fn times_all() -> bool {
    level() == CLOCK_LEVEL_ALL
}

/// Whether threads sample times.
#[inline(always)]
pub(crate) fn samples() -> bool {
    level() >= CLOCK_LEVEL_TICKS
}

/// `CLOCK_LEVEL_*`.
#[inline(always)]
fn level() -> u32 {
    // ORDERING: relaxed: written once, before the module's marks may enter.
    arch::module().clock.load(Relaxed) & 0xff
}

/// The present time as an operand, 0 if times are off. For events that are rare or slow anyway.
#[cold]
#[inline(never)]
pub(crate) fn operand() -> u64 {
    if level() == CLOCK_LEVEL_OFF {
        return 0;
    }
    if level() == CLOCK_LEVEL_TICKS {
        // The thread may wait now. Its next event says when it went on.
        arch::thread_block().due.set(arch::DUE_AFTER_THIS);
    }
    // ORDERING: relaxed, as in `level`.
    let packed = arch::module().clock.load(Relaxed);
    let ticks = read(source_of(packed), shift_of(packed)) & PAYLOAD_MASK;
    if ticks > MEASURE_NEXT.load(Relaxed) {
        // In about a second. In the instance that owns the ring, `recalibrate` replaces this by a better time.
        MEASURE_NEXT.store(ticks.saturating_add(1 << 27), Relaxed);
        match instance::own_ring() {
            // A handler that measures too does no harm.
            Some(ring) => recalibrate(ring.header()),
            None => instance::request(Request::RECALIBRATE_CLOCK, 0),
        }
    }
    // 0 means that the time is not known.
    ticks.max(1)
}

/// Whether events with values have times.
#[inline(always)]
pub(crate) fn times_events() -> bool {
    level() != CLOCK_LEVEL_OFF
}

/// The present time as an operand, for events with values: fast, and only if events have times.
#[inline(always)]
pub(crate) fn of_event() -> u64 {
    // ORDERING: relaxed, as in `level`.
    let packed = arch::module().clock.load(Relaxed);
    if source_of(packed) != CLOCK_SOURCE_COUNTER {
        return operand();
    }
    let ticks = counter() >> shift_of(packed) & PAYLOAD_MASK;
    if ticks > MEASURE_NEXT.load(Relaxed) {
        return operand();
    }
    ticks
}

/// Ticks in 1000 s.
fn rate(ticks: u64, elapsed_ns: u64) -> u64 {
    let rate = u128::from(ticks) * 1_000_000_000_000 / u128::from(elapsed_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn read(source: u32, shift: u32) -> u64 {
    let reading =
        if source == CLOCK_SOURCE_COUNTER { counter() } else { sys::clock_ns(libc::CLOCK_MONOTONIC) };
    reading >> shift
}

/// The time-stamp counter. The processor may read it some instructions early or late: a few nanoseconds do not matter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction. If the kernel forbids it (PR_SET_TSC), programs get SIGSEGV;
    // `counter_is_steady` asks before the first use.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns whether programs may read the counter, and it runs at one speed in all states of the processor.
#[cfg(target_arch = "x86_64")]
fn counter_is_steady() -> bool {
    const PR_TSC_ENABLE: i32 = 1;
    let mut allowed: i32 = PR_TSC_ENABLE;
    // SAFETY: PR_GET_TSC writes an int to this address, or fails.
    unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut allowed) };
    // CPUID 8000_0007H: EDX bit 8 is the invariant TSC (Intel SDM volume 3, section 17.17.1; AMD APM volume 3).
    let leaf = |leaf| core::arch::x86_64::__cpuid(leaf);
    allowed == PR_TSC_ENABLE && leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & 1 << 8 != 0
}

/// The virtual counter, which all Linux programs may read.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register that Linux lets programs read.
    unsafe {
        core::arch::asm!("mrs {ticks}, cntvct_el0", ticks = out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// The architecture says that it counts at one speed.
#[cfg(target_arch = "aarch64")]
fn counter_is_steady() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_eight_nanoseconds_or_more_and_the_rate_is_about_right() {
        let measured = Calibration::measure(Clock::All);
        assert!(measured.rate / 1000 <= 1_000_000_000 / TICK_MIN_NS, "{measured:?}");
        assert_eq!(measured.packed() & 0xff, CLOCK_LEVEL_ALL);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let end = now(measured.packed());
        let ticks = end.ticks - measured.base.ticks;
        let elapsed_ns = u128::from(end.boottime_ns - measured.base.boottime_ns);
        let measured_ns = u128::from(ticks) * 1_000_000_000_000 / u128::from(measured.rate);
        assert!(measured_ns.abs_diff(elapsed_ns) < elapsed_ns / 100, "{measured_ns} ns for {elapsed_ns}");
    }

    #[test]
    fn the_time_of_a_task_is_that_of_the_system() {
        install(&Calibration::measure(Clock::All));
        let end_ns = sys::boottime_ns() + 5_000_000;
        let mut last_ns = sys::boottime_ns();
        while last_ns < end_ns {
            let before_ns = sys::boottime_ns();
            let task_ns = boottime_ns_of_task();
            let after_ns = sys::boottime_ns();
            // 1% of the millisecond in which the counter is asked, as the rate may be wrong by that.
            assert!(
                task_ns + 10_000 > before_ns && task_ns < after_ns + 10_000,
                "{before_ns} {task_ns} {after_ns}"
            );
            last_ns = after_ns;
        }
    }
}
