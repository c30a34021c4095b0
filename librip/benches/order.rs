//! Measures how far the order of two threads' times may be wrong.
//!
//! ```text
//! cargo bench -p librip --bench order        or: scripts/bench order
//! ```
//!
//! # Method
//!
//! Two threads, each on a processor of its own, hand a value to each other through an atomic, back and forth. A thread
//! reads the clock directly before it hands the value over, and the other one directly after it has got the value. So
//! the second reading is after the first one, as the program sees it. The bench prints the smallest difference of all
//! hand-overs in each direction. If it is negative, times of that pair can show the two in the wrong order, by as much.
//!
//! The clock is that of the ring which this process makes. It is read by the instruction that a mark with a time uses,
//! without a fence, as there. So the processor may read it while it still waits for the value. The rows *fenced* have a
//! fence before each reading, and show what the counters alone differ by. A mark rounds the reading down to a tick, and
//! this bench does not: two times of marks that are less than a tick apart can be equal. The first processor is
//! measured with each other one.
//!
//! # What is not measured
//!
//! Whether the counters drift apart over hours, or after the machine was suspended.

#![allow(unsafe_code, reason = "the counter is read by an instruction, and threads are bound to processors")]

use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use librip::{Builder, Keep};
use librip_format::{CLOCK_SOURCE_COUNTER, Header};

/// So often does each thread get the value.
const HANDOVERS: u64 = 20_000_000;
/// Differences that are negative by more than this are counted apart.
const FAR_NS: f64 = 100.0;

#[derive(Clone, Copy)]
struct Clock {
    is_counter: bool,
    is_fenced: bool,
    /// The length of a tick of a mark, ns, and of a reading.
    tick_ns: f64,
    reading_ns: f64,
}

fn main() {
    let clock = match clock() {
        Ok(clock) => clock,
        Err(error) => {
            eprintln!("order: no ring, so its clock is not known: {error}");
            std::process::exit(1);
        }
    };
    let name = if clock.is_counter { "the processor's counter" } else { "CLOCK_MONOTONIC" };
    println!("the clock is {name}, a tick of a mark is {:.1} ns", clock.tick_ns);
    let processors = processors();
    let [first, others @ ..] = &processors[..] else { return };
    if others.is_empty() {
        println!("skipped: there is one processor");
        return;
    }
    println!(
        "{:<20}{:>12}{:>22}{:>20}{:>18}",
        "processors", "hand-overs", "least difference, ns", "in the wrong order", "by over 100 ns"
    );
    for other in others {
        for is_fenced in [false, true] {
            let clock = Clock { is_fenced, ..clock };
            let [there, back] = measure(clock, *first, *other);
            print_row(clock, (*first, *other), &there);
            print_row(clock, (*other, *first), &back);
        }
    }
}

/// What one of two threads has seen.
struct Seen {
    /// The smallest difference between its reading and that of the other thread before it.
    least: i64,
    /// How many differences were negative, and how many by more than [`FAR_NS`].
    wrong: u64,
    far: u64,
}

fn print_row(clock: Clock, (from, to): (usize, usize), seen: &Seen) {
    let name = format!("{from} to {to}{}", if clock.is_fenced { ", fenced" } else { "" });
    let least_ns = seen.least as f64 * clock.reading_ns;
    println!("{name:<20}{HANDOVERS:>12}{least_ns:>22.1}{:>20}{:>18}", seen.wrong, seen.far);
}

/// A value that is alone in its cache lines.
#[repr(align(128))]
struct Cell(AtomicU64);

/// Hands a value from one processor to the other and back. Returns what the second and what the first has seen.
fn measure(clock: Clock, first: usize, second: usize) -> [Seen; 2] {
    let (there, back) = (Cell(AtomicU64::new(0)), Cell(AtomicU64::new(0)));
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            bind(second);
            exchange(clock, &there.0, &back.0)
        });
        bind(first);
        there.0.store(now(clock), Release);
        let own = exchange(clock, &back.0, &there.0);
        [other.join().expect("it does not panic"), own]
    })
}

/// Gets the value and hands it on, again and again. The value is the other thread's reading.
fn exchange(clock: Clock, from: &AtomicU64, to: &AtomicU64) -> Seen {
    let far = -(FAR_NS / clock.reading_ns) as i64;
    let mut seen = Seen { least: i64::MAX, wrong: 0, far: 0 };
    let mut last = 0;
    for _ in 0..HANDOVERS {
        // ORDERING: acquire pairs with the store of the other thread, whose reading comes before that.
        let mut before = from.load(Acquire);
        while before == last {
            before = from.load(Acquire);
        }
        let after = now(clock);
        last = before;
        let difference = after.wrapping_sub(before).cast_signed();
        seen.least = seen.least.min(difference);
        seen.wrong += u64::from(difference < 0);
        seen.far += u64::from(difference < far);
        // ORDERING: release, see above.
        to.store(now(clock), Release);
    }
    seen
}

/// The clock of the ring of this process.
fn clock() -> Result<Clock, Box<dyn std::error::Error>> {
    Builder::new().keep(Keep::Never).create()?;
    let path = librip::ring_path().ok_or("it has no path")?;
    let mut header = [0; size_of::<Header>()];
    std::fs::File::open(path)?.read_exact_at(&mut header, 0)?;
    let u32_at = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| header[at + byte]));
    let u64_at = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| header[at + byte]));
    let tick_ns = 1e12 / u64_at(offset_of!(Header, clock_ticks_per_kilosecond)) as f64;
    let shift = u32_at(offset_of!(Header, clock_shift));
    Ok(Clock {
        is_fenced: false,
        is_counter: u32_at(offset_of!(Header, clock_source)) == CLOCK_SOURCE_COUNTER,
        tick_ns,
        reading_ns: tick_ns / (1u64 << shift) as f64,
    })
}

#[inline(always)]
fn now(clock: Clock) -> u64 {
    if clock.is_fenced {
        fence();
    }
    if clock.is_counter { counter() } else { monotonic_ns() }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and the ring's clock uses it too.
    unsafe { core::arch::x86_64::_rdtsc() }
}

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

/// The reading after this is made when all before it has been done.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn fence() {
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { core::arch::x86_64::_mm_lfence() };
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn fence() {
    // SAFETY: it changes no register and no memory.
    unsafe { core::arch::asm!("isb", options(nostack, preserves_flags)) };
}

fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a writable timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned()
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    // SAFETY: a set of processors is plain data, and all zeros is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is as long as the length says.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
    // SAFETY: the numbers are within the set.
    (0..libc::CPU_SETSIZE as usize).filter(|&processor| unsafe { libc::CPU_ISSET(processor, &set) }).collect()
}

/// Binds this thread to a processor.
fn bind(processor: usize) {
    // SAFETY: a set of processors is plain data, and all zeros is the empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number came from a set of the same size.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: `set` is as long as the length says.
    let status = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
    assert_eq!(status, 0, "processor {processor} is one of ours");
}
