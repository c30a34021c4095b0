//! The clock of timed events: the processor's counter where it can be relied upon, else `CLOCK_MONOTONIC`.
//!
//! It reads clocks and measures how fast they are; which events are timed is decided where they are written.
//!
//! # Ticks
//!
//! Operands keep 48 bits. The counter is shifted right until a tick is 8 ns or more, so that 48 bits last for at
//! least 26 days: what began longer ago than that is shown as too recent by a multiple of it. The counter costs a few
//! nanoseconds, a system clock's answer five times that.
//!
//! # The rate
//!
//! The reader gets it from the header. It is first measured while the ring is made, to about one in ten thousand, and
//! again whenever the time since then has doubled, by whichever thread takes the time next, and when slots are claimed.
//! Each time the error becomes half of what it was.

#![allow(unsafe_code, reason = "the counter is read by an instruction, and the header is in a mapping")]

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::lock::elsewhere;
use crate::sys;
use librip_format::{
    CLOCK_LEVEL_CONTENDED, CLOCK_SOURCE_COUNTER, CLOCK_SOURCE_MONOTONIC, Header, PAYLOAD_MASK, slot_clock,
};

/// Which events carry times.
///
/// # Examples
///
/// ```
/// use librip::{Builder, Clock, Keep};
///
/// let made = Builder::new().clock(Clock::All).keep(Keep::Never).create();
/// # let _ = made;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// None.
    Off,
    /// Where a thread waits for a lock or a condition, and how long it then held the lock: a thread that waits
    /// anyway does not feel it.
    #[default]
    Contended,
    /// Every acquisition and release.
    All,
}

/// No tick is shorter.
const TICK_MIN_NS: u64 = 8;
/// How long the counter is compared with the system's clock when a ring is made.
const FIRST_LOOK_NS: u64 = 300_000;
/// Clocks are read together this often; the reading in which least time passed counts.
const LOOKS: u32 = 8;

/// How a ring's times are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) level: u32,
    pub(crate) source: u32,
    pub(crate) shift: u32,
    /// Ticks in 1000 s.
    pub(crate) rate: u64,
}

impl Source {
    /// Chooses the source. Takes [`FIRST_LOOK_NS`].
    pub(crate) fn choose(level: Clock) -> Source {
        let level = match level {
            Clock::Off => librip_format::CLOCK_LEVEL_OFF,
            Clock::Contended => CLOCK_LEVEL_CONTENDED,
            Clock::All => librip_format::CLOCK_LEVEL_ALL,
        };
        let source = if counter_is_steady() { CLOCK_SOURCE_COUNTER } else { CLOCK_SOURCE_MONOTONIC };
        let (begin_ns, begin) = look(source, 0);
        while sys::boottime_ns() < begin_ns + FIRST_LOOK_NS {
            core::hint::spin_loop();
        }
        let (now_ns, now) = look(source, 0);
        let rate = rate(now.wrapping_sub(begin), now_ns - begin_ns);
        // Ticks a second are at most 10^9 / TICK_MIN_NS.
        let mut shift = 0;
        while (rate >> shift) / 1000 > 1_000_000_000 / TICK_MIN_NS {
            shift += 1;
        }
        Source { level, source, shift, rate: rate >> shift }
    }

    /// The present time: ns since boot, and ticks, all 64 bits.
    pub(crate) fn now(&self) -> (u64, u64) {
        look(self.source, self.shift)
    }

    /// What slots keep of it.
    pub(crate) fn for_slots(&self) -> u32 {
        slot_clock(self.level, self.source, self.shift)
    }
}

/// When to measure the rate again, ticks.
static MEASURE_NEXT: AtomicU64 = AtomicU64::new(0);

/// Measures again how fast the clock of a ring is, over all the time since the ring was made.
pub(crate) fn improve(header: &Header) {
    let (now_ns, now) = look(header.clock_source, header.clock_shift);
    let Some(elapsed_ns) = now_ns.checked_sub(header.clock_base_boottime_ns) else { return };
    let ticks = now.wrapping_sub(header.clock_base_ticks);
    // ORDERING: relaxed, here and below: single words, any of whose values will do.
    MEASURE_NEXT.store((now & PAYLOAD_MASK).saturating_add(ticks), Relaxed);
    // A shorter time than the first look would make it worse.
    if elapsed_ns > 2 * FIRST_LOOK_NS {
        header.clock_ticks_per_kilosecond.store(rate(ticks, elapsed_ns), Relaxed);
    }
}

/// Both clocks at one moment: ns since boot, and ticks.
fn look(source: u32, shift: u32) -> (u64, u64) {
    let mut best = (0, 0);
    let mut least = u64::MAX;
    for _ in 0..LOOKS {
        let (before, ns, behind) = (read(source, 0), sys::boottime_ns(), read(source, 0));
        let took = behind.wrapping_sub(before);
        if took < least {
            least = took;
            best = (ns, before.wrapping_add(took / 2) >> shift);
        }
    }
    best
}

/// The present time as an operand, for a slot whose `clock` this is. Never 0, which means: not known.
#[cold]
#[inline(never)]
pub(crate) fn operand(slot_clock: u32) -> u64 {
    let ticks = read(slot_clock >> 8 & 0xff, slot_clock >> 16 & 0x3f) & PAYLOAD_MASK;
    if ticks > MEASURE_NEXT.load(Relaxed) {
        // About a second; in the copy of librip that owns the ring, `improve` knows better.
        MEASURE_NEXT.store(ticks.saturating_add(1 << 27), Relaxed);
        elsewhere::measure_clock();
    }
    ticks.max(1)
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

/// The time-stamp counter. Neither serialised nor ordered: a few nanoseconds do not matter here.
#[cfg(target_arch = "x86_64")]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction. Where the kernel forbids it (PR_SET_TSC), programs get
    // SIGSEGV; `counter_is_steady` asks before the first use.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether the counter runs at one speed in all states of the processor, and may be read.
#[cfg(target_arch = "x86_64")]
fn counter_is_steady() -> bool {
    const PR_TSC_ENABLE: i32 = 1;
    let mut allowed: i32 = PR_TSC_ENABLE;
    // SAFETY: writes an int, or fails.
    unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut allowed) };
    // CPUID 8000_0007H: EDX bit 8 is the invariant TSC (Intel SDM volume 3, section 17.17.1; AMD APM volume 3).
    let leaf = |leaf| core::arch::x86_64::__cpuid(leaf);
    allowed == PR_TSC_ENABLE && leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & 1 << 8 != 0
}

/// The virtual counter, which all Linux programs may read.
#[cfg(target_arch = "aarch64")]
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
        let source = Source::choose(Clock::All);
        assert!(source.rate / 1000 <= 1_000_000_000 / TICK_MIN_NS, "{source:?}");
        assert_eq!(source.for_slots() & 0xff, librip_format::CLOCK_LEVEL_ALL);
        let (begin_ns, begin) = source.now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let (end_ns, end) = source.now();
        let (ticks, elapsed_ns) = (end - begin, end_ns - begin_ns);
        let measured_ns = u128::from(ticks) * 1_000_000_000_000 / u128::from(source.rate);
        let off = measured_ns.abs_diff(u128::from(elapsed_ns));
        assert!(off < u128::from(elapsed_ns) / 100, "{measured_ns} ns for {elapsed_ns}");
    }
}
