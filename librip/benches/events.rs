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
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use librip::{
    Builder, Clock, Keep, Text, rip_capture, rip_channel, rip_event, rip_slow_cycle, rip_snap, rip_span,
};
use librip_format::{ChannelEntry, Header, LEVEL_OFF, REGION_CHANNELS, REGIONS_MAX, Region};
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
    rip_event!(channel FREQUENT, "first");
    rip_event!(channel OFF, "first");
    if let Err(error) = switch_off(1) {
        eprintln!("events: could not switch a channel off: {error}");
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

rip_channel!(FREQUENT, words = 64);
rip_channel!(OFF, words = 64);

/// Switches a channel off, as `read-rip set` does.
fn switch_off(channel: u64) -> std::io::Result<()> {
    let path = librip::ring_path().ok_or(std::io::ErrorKind::NotFound)?;
    let file = std::fs::File::options().read(true).write(true).open(path)?;
    let mut header = [0; size_of::<Header>()];
    file.read_exact_at(&mut header, 0)?;
    let u32_at = |at: usize| u32::from_ne_bytes(std::array::from_fn(|byte| header[at + byte]));
    let regions = (0..REGIONS_MAX).map(|index| offset_of!(Header, regions) + index * size_of::<Region>());
    let table = regions.into_iter().find(|&region| u32_at(region) == REGION_CHANNELS);
    let offset_at = table.ok_or(std::io::ErrorKind::NotFound)? + offset_of!(Region, offset);
    // A file offset of a table is below 4 GiB.
    let level = channel * size_of::<ChannelEntry>() as u64 + offset_of!(ChannelEntry, level) as u64;
    file.write_all_at(&LEVEL_OFF.to_ne_bytes(), u64::from(u32_at(offset_at)) + level)
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
        Candidate::new(name("rip_event!, two u32, in a channel"), 0, 1, |rounds| {
            for round in 0..rounds {
                rip_event!(channel FREQUENT, "{} of {}", round as u32, rounds as u32);
            }
        }),
        Candidate::new(name("rip_event!, in a channel that is off"), 0, 1, |rounds| {
            for round in 0..rounds {
                rip_event!(channel OFF, "{} of {}", round as u32, rounds as u32);
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
