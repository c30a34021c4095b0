//! Measures what marks in C cost, and compares them with the Rust macros and with unmarked pthread calls in the same
//! run.
//!
//! ```text
//! cargo bench -p librip-capi --features bench --bench c          or: scripts/bench c
//! ```
//!
//! # Method
//!
//! The method and the columns are those of `librip/benches/marks.rs`. The C part, `marks.c`, is compiled with `cc -O2`
//! (or `CC`) and linked into this program, so both languages reach the thread's block in the same way. The Rust rows
//! call the same pthread functions.
//!
//! # What is not measured
//!
//! A C library that is loaded by `dlopen`, which needs one more load to find the block. Contended locks, for which both
//! languages call the library. Events that wait for nothing but each other: a program does other work between them.

#![allow(unsafe_code, reason = "declares functions of the C part")]

#[path = "../../benches/turns/mod.rs"]
mod turns;

use core::ffi::c_int;
use core::hint::black_box;

use librip::{Builder, Keep, Text, rip_event, rip_lock_acquired, rip_lock_released, rip_snap, rip_span};
use rip as _;
use turns::{Candidate, ROUNDS, SLICE_NS, in_turns, quantile};

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
    safe fn pthread_mutex_lock(mutex: *const Mutex) -> c_int;
    safe fn pthread_mutex_unlock(mutex: *const Mutex) -> c_int;
}

fn main() {
    println!(
        "{ROUNDS} rounds of {} ms a candidate; see librip/capi/benches/c.rs for the method",
        SLICE_NS / 1_000_000
    );
    println!("{:<44}{:>10}{:>9}  {:<18}to", "", "ns", "ratio", "(spread)");
    measure(&mut [
        Candidate::new("rip_snap!(), no ring yet", 0, 4, marks),
        Candidate::new("RIP_SNAP(), no ring yet", 0, 4, |rounds| rip_bench_marks(rounds)),
    ]);
    if let Err(error) = Builder::new().slots(64).keep(Keep::Never).create() {
        eprintln!("c: no ring, so there is nothing to measure: {error}");
        std::process::exit(1);
    }
    measure(&mut [
        Candidate::new("rip_snap!()", 0, 4, marks),
        Candidate::new("RIP_SNAP()", 0, 4, |rounds| rip_bench_marks(rounds)),
    ]);
    measure(&mut [
        Candidate::new("pthread_mutex, lock and unlock", 0, 1, |rounds| rip_bench_pthread(rounds)),
        Candidate::new("with three rip_snap!()", 0, 1, pthread_snaps),
        Candidate::new("with three RIP_SNAP()", 1, 1, |rounds| rip_bench_pthread_snaps(rounds)),
        Candidate::new("with rip_lock_acquired!, rip_lock_released!", 0, 1, pthread_marks),
        Candidate::new("with RIP_LOCK_ACQUIRED, RIP_LOCK_RELEASED", 3, 1, |rounds| {
            rip_bench_pthread_marks(rounds)
        }),
    ]);
    measure(&mut [
        Candidate::new("two pthread_mutex, nested", 0, 1, |rounds| rip_bench_pthread_nested(rounds)),
        Candidate::new("with the Rust lock marks", 0, 1, pthread_nested_marks),
        Candidate::new("with the C lock marks", 1, 1, |rounds| rip_bench_pthread_nested_marks(rounds)),
    ]);
    measure(&mut [
        Candidate::new("rip_event!", 0, 1, events),
        Candidate::new("RIP_EVENT", 0, 1, |rounds| rip_bench_events(rounds)),
        Candidate::new("rip_event!, two u32", 2, 1, events_with_values),
        Candidate::new("RIP_EVENT, two uint32_t", 2, 1, |rounds| rip_bench_events_with_values(rounds)),
        Candidate::new("rip_event!, two u64", 4, 1, events_with_long_values),
        Candidate::new("RIP_EVENT, two uint64_t", 4, 1, |rounds| rip_bench_events_with_long_values(rounds)),
        Candidate::new("rip_event!, a text of 12 bytes", 6, 1, events_with_text),
        Candidate::new("RIP_EVENT, a text of 12 bytes", 6, 1, |rounds| rip_bench_events_with_text(rounds)),
        Candidate::new("rip_event!, a Text", 8, 1, events_with_static_text),
        Candidate::new("RIP_EVENT, a RIP_TEXT", 8, 1, |rounds| rip_bench_events_with_static_text(rounds)),
        Candidate::new("rip_span!, begin and end", 10, 1, spans),
        Candidate::new("RIP_SPAN, begin and end", 10, 1, |rounds| rip_bench_spans(rounds)),
    ]);
}

fn measure(candidates: &mut [Candidate<'_>]) {
    let times = in_turns(candidates);
    for (index, candidate) in candidates.iter().enumerate() {
        let beside = candidate.beside;
        let ratios: Vec<f64> =
            times[index].iter().zip(&times[beside]).map(|(time, other)| time / other).collect();
        let spread = format!("({:.2} to {:.2})", quantile(&ratios, 0.25), quantile(&ratios, 0.75));
        println!(
            "{:<44}{:>10.2}{:>9.2}  {spread:<18}{}",
            candidate.name,
            quantile(&times[index], 0.5),
            quantile(&ratios, 0.5),
            candidates[beside].name
        );
    }
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
        rip_event!("opened {}", Text(*black_box(&"twelve bytes")));
    }
}

#[inline(never)]
fn spans(rounds: u64) {
    for _ in 0..rounds {
        let _span = rip_span!("work");
    }
}
