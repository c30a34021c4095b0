//! Measures what marks in C cost, and compares them with the Rust macros and with unmarked pthread calls in the same
//! run.
//!
//! ```text
//! cargo bench -p librip-capi --features bench --bench c          or: scripts/bench c
//! ```
//!
//! # Method
//!
//! The method and the columns are those of `librip/benches/marks.rs`. The last table is of C alone, with one thread and
//! with two: `loops` describes its rows. The C part, `marks.c`, is compiled with `cc -O2`
//! (or `CC`) and linked into this program, so both languages reach the thread's block in the same way. The Rust rows
//! call the same pthread functions.
//!
//! # What is not measured
//!
//! A C library that is loaded by `dlopen`, which needs one more load to find the block. Contended locks, for which both
//! languages call the library. Events that wait for nothing but each other: a program does other work between them.

#![allow(unsafe_code, reason = "declares functions of the C part")]

#[path = "../../benches/turns/channels.rs"]
mod channels;
#[path = "../../benches/turns/child.rs"]
mod child;
#[path = "../../benches/turns/companion.rs"]
mod companion;
#[path = "../../benches/turns/loops.rs"]
mod loops;
#[path = "../../benches/turns/table.rs"]
mod table;
#[path = "../../benches/turns/mod.rs"]
mod turns;

use core::ffi::c_int;
use core::hint::black_box;

use child::child;
use librip::{
    Builder, Clock, Keep, Text, rip_event, rip_lock_acquired, rip_lock_released, rip_snap, rip_span,
};
use librip_format::{LEVEL_OFF, LEVEL_WARN};
use loops::Loop;
use rip as _;
use table::{measure, print_title};
use turns::Candidate;

/// A `pthread_mutex_t` of the C part, of which only the address is used.
#[repr(C)]
struct Mutex {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    static rip_bench_mutex: Mutex;
    static rip_bench_second: Mutex;
    safe fn rip_bench_marks(rounds: u64);
    safe fn rip_bench_pthread(rounds: u64);
    safe fn rip_bench_pthread_snaps(rounds: u64);
    safe fn rip_bench_pthread_marks(rounds: u64);
    safe fn rip_bench_pthread_nested(rounds: u64);
    safe fn rip_bench_pthread_nested_marks(rounds: u64);
    safe fn rip_bench_events(rounds: u64);
    safe fn rip_bench_events_with_values(rounds: u64);
    safe fn rip_bench_events_with_long_values(rounds: u64);
    safe fn rip_bench_events_with_text(rounds: u64);
    safe fn rip_bench_events_with_static_text(rounds: u64);
    safe fn rip_bench_spans(rounds: u64);
    safe fn rip_bench_snaps(rounds: u64);
    safe fn rip_bench_lock_marks(rounds: u64);
    safe fn rip_bench_events_in_a_channel(rounds: u64);
    safe fn rip_bench_events_below_the_level(rounds: u64);
    safe fn rip_bench_events_in_a_channel_that_is_off(rounds: u64);
    safe fn rip_bench_spans_in_a_channel(rounds: u64);
    safe fn rip_bench_cycles(rounds: u64);
    safe fn rip_bench_captures(rounds: u64);
    safe fn pthread_mutex_lock(mutex: *const Mutex) -> c_int;
    safe fn pthread_mutex_unlock(mutex: *const Mutex) -> c_int;
}

/// In a child process, this variable names the level of the clock.
const LEVEL: &str = "RIP_BENCH_LEVEL";

fn main() {
    match std::env::var(LEVEL).as_deref() {
        Ok("off") => alone(Clock::Off),
        Ok(_) => alone(Clock::Contended),
        Err(_) => {
            print_title("librip/capi/benches/c.rs");
            without_a_ring();
            start(Clock::Contended);
            beside_rust();
            ["off", "contended"].iter().for_each(|level| child(LEVEL, level));
        }
    }
}

fn without_a_ring() {
    measure(
        &mut [
            Candidate::new("rip_snap!(), no ring yet", 0, 4, marks),
            Candidate::new("RIP_SNAP(), no ring yet", 0, 4, |rounds| rip_bench_marks(rounds)),
        ],
        None,
    );
}

/// What there is in C, with one thread and with two.
fn alone(level: Clock) {
    start(level);
    if !loops::counts() {
        println!("C alone, {} times", if level == Clock::Off { "without" } else { "with" });
    }
    loops::run(&[
        Loop::new("RIP_SNAP()", |rounds| rip_bench_snaps(rounds)),
        Loop::new("RIP_LOCK_ACQUIRED, RIP_LOCK_RELEASED", |rounds| rip_bench_lock_marks(rounds)),
        Loop::new("RIP_EVENT, no value", |rounds| rip_bench_events(rounds)),
        Loop::new("RIP_EVENT, two uint32_t", |rounds| rip_bench_events_with_values(rounds)),
        Loop::new("RIP_EVENT_IN, two uint32_t", |rounds| rip_bench_events_in_a_channel(rounds)),
        Loop::new("RIP_EVENT_IN, below its channel's level", |rounds| {
            rip_bench_events_below_the_level(rounds)
        }),
        Loop::new("RIP_EVENT_IN, in a channel that is off", |rounds| {
            rip_bench_events_in_a_channel_that_is_off(rounds);
        }),
        Loop::new("RIP_SPAN, begin and end", |rounds| rip_bench_spans(rounds)),
        Loop::new("RIP_SPAN_IN, in a channel", |rounds| rip_bench_spans_in_a_channel(rounds)),
        Loop::new("RIP_SLOW_CYCLE, not slow", |rounds| rip_bench_cycles(rounds)),
        Loop::new("RIP_CAPTURE, of 64 words", |rounds| rip_bench_captures(rounds)),
        loops::empty(),
    ]);
}

/// Makes the ring, and switches two of its channels.
fn start(level: Clock) {
    if let Err(error) = try_start(level) {
        eprintln!("c: nothing can be measured: {error}");
        std::process::exit(1);
    }
}

fn try_start(level: Clock) -> Result<(), Box<dyn std::error::Error>> {
    Builder::new().slots(1024).clock(level).keep(Keep::Never).create()?;
    // The ring has a channel from the first event in it on.
    rip_bench_events_in_a_channel(1);
    rip_bench_events_below_the_level(1);
    rip_bench_events_in_a_channel_that_is_off(1);
    let path = librip::ring_path().ok_or("the ring has no path")?;
    channels::switch(&path, 1, LEVEL_WARN.into())?;
    channels::switch(&path, 2, LEVEL_OFF)?;
    Ok(())
}

/// Marks and events of C beside those of Rust, with one thread.
fn beside_rust() {
    measure(
        &mut [
            Candidate::new("rip_snap!()", 0, 4, marks),
            Candidate::new("RIP_SNAP()", 0, 4, |rounds| rip_bench_marks(rounds)),
        ],
        None,
    );
    measure(
        &mut [
            Candidate::new("pthread_mutex, lock and unlock", 0, 1, |rounds| rip_bench_pthread(rounds)),
            Candidate::new("with three rip_snap!()", 0, 1, pthread_snaps),
            Candidate::new("with three RIP_SNAP()", 1, 1, |rounds| rip_bench_pthread_snaps(rounds)),
            Candidate::new("with rip_lock_acquired!, rip_lock_released!", 0, 1, pthread_marks),
            Candidate::new("with RIP_LOCK_ACQUIRED, RIP_LOCK_RELEASED", 3, 1, |rounds| {
                rip_bench_pthread_marks(rounds)
            }),
        ],
        None,
    );
    measure(
        &mut [
            Candidate::new("two pthread_mutex, nested", 0, 1, |rounds| rip_bench_pthread_nested(rounds)),
            Candidate::new("with the Rust lock marks", 0, 1, pthread_nested_marks),
            Candidate::new("with the C lock marks", 1, 1, |rounds| rip_bench_pthread_nested_marks(rounds)),
        ],
        None,
    );
    measure(
        &mut [
            Candidate::new("rip_event!", 0, 1, events),
            Candidate::new("RIP_EVENT", 0, 1, |rounds| rip_bench_events(rounds)),
            Candidate::new("rip_event!, two u32", 2, 1, events_with_values),
            Candidate::new("RIP_EVENT, two uint32_t", 2, 1, |rounds| rip_bench_events_with_values(rounds)),
            Candidate::new("rip_event!, two u64", 4, 1, events_with_long_values),
            Candidate::new("RIP_EVENT, two uint64_t", 4, 1, |rounds| {
                rip_bench_events_with_long_values(rounds)
            }),
            Candidate::new("rip_event!, a text of 12 bytes", 6, 1, events_with_text),
            Candidate::new("RIP_EVENT, a text of 12 bytes", 6, 1, |rounds| {
                rip_bench_events_with_text(rounds)
            }),
            Candidate::new("rip_event!, a Text", 8, 1, events_with_static_text),
            Candidate::new("RIP_EVENT, a RIP_TEXT", 8, 1, |rounds| rip_bench_events_with_static_text(rounds)),
            Candidate::new("rip_span!, begin and end", 10, 1, spans),
            Candidate::new("RIP_SPAN, begin and end", 10, 1, |rounds| rip_bench_spans(rounds)),
        ],
        None,
    );
}

#[inline(never)]
fn marks(rounds: u64) {
    for _ in 0..rounds {
        rip_snap!();
        rip_snap!();
        rip_snap!();
        rip_snap!();
    }
}

/// The work under the lock.
#[inline(always)]
fn work(counter: &mut u64) {
    *black_box(counter) += 1;
}

#[inline(never)]
fn pthread_snaps(rounds: u64) {
    let mut counter = 0;
    for _ in 0..rounds {
        rip_snap!();
        pthread_mutex_lock(&raw const rip_bench_mutex);
        rip_snap!();
        work(&mut counter);
        pthread_mutex_unlock(&raw const rip_bench_mutex);
        rip_snap!();
    }
}

#[inline(never)]
fn pthread_marks(rounds: u64) {
    let mut counter = 0;
    for _ in 0..rounds {
        pthread_mutex_lock(&raw const rip_bench_mutex);
        rip_lock_acquired!(&raw const rip_bench_mutex);
        work(&mut counter);
        pthread_mutex_unlock(&raw const rip_bench_mutex);
        rip_lock_released!(&raw const rip_bench_mutex);
    }
}

#[inline(never)]
fn pthread_nested_marks(rounds: u64) {
    let mut counter = 0;
    for _ in 0..rounds {
        pthread_mutex_lock(&raw const rip_bench_mutex);
        rip_lock_acquired!(&raw const rip_bench_mutex);
        pthread_mutex_lock(&raw const rip_bench_second);
        rip_lock_acquired!(&raw const rip_bench_second);
        work(&mut counter);
        pthread_mutex_unlock(&raw const rip_bench_second);
        rip_lock_released!(&raw const rip_bench_second);
        pthread_mutex_unlock(&raw const rip_bench_mutex);
        rip_lock_released!(&raw const rip_bench_mutex);
    }
}

#[inline(never)]
fn events(rounds: u64) {
    for _ in 0..rounds {
        rip_event!("happened");
    }
}

#[inline(never)]
fn events_with_values(rounds: u64) {
    for i in 0..rounds {
        rip_event!("{} of {}", i as u32, rounds as u32);
    }
}

#[inline(never)]
fn events_with_long_values(rounds: u64) {
    for i in 0..rounds {
        rip_event!("{} of {}", i, rounds);
    }
}

#[inline(never)]
fn events_with_text(rounds: u64) {
    for _ in 0..rounds {
        rip_event!("opened {}", *black_box(&"twelve bytes"));
    }
}

#[inline(never)]
fn events_with_static_text(rounds: u64) {
    for _ in 0..rounds {
        rip_event!("opened {}", Text(black_box("twelve bytes")));
    }
}

#[inline(never)]
fn spans(rounds: u64) {
    for _ in 0..rounds {
        let _span = rip_span!("work");
    }
}
