//! Measures what an event with values, a span and a capture cost, and compares them with a plain mark in the same run.
//!
//! ```text
//! cargo bench -p librip --bench events        or: scripts/bench events
//! ```
//!
//! # Method
//!
//! [`turns`] describes the method, `marks.rs` the columns. A candidate is compared with a plain mark. With
//! `RIP_CLOCK=off` an event has no time. The level of the clock holds for a process, so each level is measured in a
//! process of its own. *two threads* runs the same loop in another thread meanwhile, on another processor if there is
//! one.
//!
//! # What is not measured
//!
//! Events with cold caches. The first event with a text by reference, which copies the text.

#![allow(unsafe_code, reason = "the counter is read by an instruction")]

#[path = "turns/table.rs"]
mod table;
mod turns;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use librip::{Builder, Clock, Keep, Text, rip_capture, rip_event, rip_slow_cycle, rip_snap, rip_span};
use table::{child, measure, print_title};
use turns::Candidate;

/// In a child process, this variable names the level of the clock.
const LEVEL: &str = "RIP_BENCH_LEVEL";

fn main() {
    let level = match std::env::var(LEVEL).as_deref() {
        Ok("off") => Clock::Off,
        Ok(_) => Clock::Contended,
        Err(_) => {
            print_title("librip/benches/events.rs");
            child(LEVEL, "off");
            child(LEVEL, "contended");
            return;
        }
    };
    println!("{}", if level == Clock::Off { "without times (RIP_CLOCK=off)" } else { "with times" });
    if let Err(error) = Builder::new().clock(level).keep(Keep::Never).create() {
        eprintln!("events: no ring, so there is nothing to measure: {error}");
        std::process::exit(1);
    }
    measure(&mut candidates(""));
    let is_over = Arc::new(AtomicBool::new(false));
    let other = thread::spawn({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(Ordering::Relaxed) {
                integers(1000);
            }
        }
    });
    measure(&mut candidates(", two threads"));
    is_over.store(true, Ordering::Relaxed);
    if other.join().is_err() {
        std::process::exit(1);
    }
}

fn candidates(suffix: &'static str) -> Vec<Candidate<'static>> {
    let name = |name: &str| String::leak(format!("{name}{suffix}"));
    let mut candidates = vec![
        Candidate::new(name("rip_snap!()"), 0, 1, |rounds| {
            for _ in 0..rounds {
                rip_snap!();
            }
        }),
        Candidate::new(name("rip_event!, no value"), 0, 1, |rounds| {
            for _ in 0..rounds {
                rip_event!("passed");
            }
        }),
        Candidate::new(name("rip_event!, two u32"), 0, 1, |rounds| {
            for round in 0..rounds {
                rip_event!("{} of {}", round as u32, rounds as u32);
            }
        }),
        Candidate::new(name("rip_event!, two u64"), 0, 1, integers),
        Candidate::new(name("rip_event!, a str of 12 bytes"), 0, 1, |rounds| {
            for _ in 0..rounds {
                rip_event!("{}", black_box("twelve bytes"));
            }
        }),
        Candidate::new(name("rip_event!, a Text"), 0, 1, |rounds| {
            for _ in 0..rounds {
                rip_event!("{}", black_box(Text("twelve bytes")));
            }
        }),
        Candidate::new(name("rip_span!, begin and end"), 0, 1, |rounds| {
            for _ in 0..rounds {
                let _span = rip_span!("round");
            }
        }),
        Candidate::new(name("rip_slow_cycle!, not slow"), 0, 1, |rounds| {
            for _ in 0..rounds {
                let _cycle = rip_slow_cycle!("round", Duration::from_secs(1));
            }
        }),
        Candidate::new(name("rip_capture!, of 64 words"), 0, 1, |rounds| {
            for _ in 0..rounds {
                rip_capture!("kept");
            }
        }),
    ];
    #[cfg(target_arch = "x86_64")]
    candidates.push(Candidate::new(name("the counter alone (rdtsc)"), 0, 1, |rounds| {
        for _ in 0..rounds {
            // SAFETY: every x86-64 processor has the instruction.
            black_box(unsafe { core::arch::x86_64::_rdtsc() });
        }
    }));
    candidates
}

#[inline(never)]
fn integers(rounds: u64) {
    for round in 0..rounds {
        rip_event!("{} of {}", round, rounds);
    }
}
