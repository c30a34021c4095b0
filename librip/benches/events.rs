//! Measures what an event with values, a span, a channel, a capture and a lock mark cost, and compares them with a
//! plain mark in the same run.
//!
//! ```text
//! cargo bench -p librip --bench events        or: scripts/bench events
//! ```
//!
//! # Method
//!
//! [`turns`] describes the method, `marks.rs` the columns, [`loops`] the rows. With `RIP_CLOCK=off` an event has no
//! time, with `contended` it has one, and with `all` a lock mark has one too. The level of the clock holds for a
//! process, so each level is measured in a process of its own.
//!
//! A cycle that is not slow asks the kernel with `RIP_USAGE`, but only if the last answers are too old: its time is
//! what that costs on average if cycles follow one another without a pause. A cycle that is slow asks at its end. So
//! the differences between its times are the price of asking.
//!
//! A mark in a task is within one poll of the task, so the poll costs nothing that can be seen in a row.
//!
//! # What is not measured
//!
//! Events with cold caches. The first event with a text by reference, which copies the text.

#![allow(unsafe_code, reason = "the counter is read by an instruction")]

#[path = "turns/channels.rs"]
mod channels;
#[path = "turns/child.rs"]
mod child;
#[path = "turns/companion.rs"]
mod companion;
#[path = "turns/loops.rs"]
mod loops;
#[path = "turns/table.rs"]
mod table;
mod turns;

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use child::child;
use librip::{
    Builder, Clock, Keep, Text, Usage, rip_capture, rip_channel, rip_event, rip_lock_acquired,
    rip_lock_released, rip_slow_cycle, rip_snap, rip_span,
};
use librip_format::{LEVEL_OFF, LEVEL_WARN};
use loops::Loop;
use table::print_title;

/// In a child process, this variable names the level of the clock.
const LEVEL: &str = "RIP_BENCH_LEVEL";

rip_channel!(FREQUENT, words = 64);
rip_channel!(WARNINGS, words = 64);
rip_channel!(OFF, words = 64);

fn main() {
    let (clock, usage) = match std::env::var(LEVEL).as_deref() {
        Ok("off") => (Clock::Off, Usage::Off),
        Ok("contended") => (Clock::Contended, Usage::Off),
        Ok("counts") => (Clock::Contended, Usage::Counts),
        Ok("delays") => (Clock::Contended, Usage::Delays),
        Ok(_) => (Clock::All, Usage::Off),
        Err(_) => {
            print_title("librip/benches/events.rs");
            ["off", "contended", "all", "counts", "delays"].iter().for_each(|level| child(LEVEL, level));
            return;
        }
    };
    let (title, loops) = match (clock, usage) {
        (_, Usage::Counts) => ("cycles and spans with RIP_USAGE=counts", used()),
        (_, Usage::Delays) => ("cycles and spans with RIP_USAGE=delays", used()),
        (Clock::Off, _) => ("without times (RIP_CLOCK=off)", all()),
        (Clock::Contended, _) => ("with times", all()),
        _ => ("with times of lock marks too (RIP_CLOCK=all)", vec![mark(), lock_marks(), loops::empty()]),
    };
    if !loops::counts() {
        println!("{title}");
    }
    if let Err(error) = start(clock, usage) {
        eprintln!("events: nothing can be measured: {error}");
        std::process::exit(1);
    }
    loops::run(&loops);
}

/// Makes the ring, and switches two of its channels.
fn start(clock: Clock, usage: Usage) -> Result<(), Box<dyn std::error::Error>> {
    Builder::new().clock(clock).usage(usage).keep(Keep::Never).create()?;
    // The ring has a channel from the first event in it on.
    rip_event!(channel FREQUENT, "first");
    rip_event!(channel WARNINGS, "first");
    rip_event!(channel OFF, "first");
    let path = librip::ring_path().ok_or("the ring has no path")?;
    channels::switch(&path, 1, LEVEL_WARN.into())?;
    channels::switch(&path, 2, LEVEL_OFF)?;
    Ok(())
}

/// A loop that repeats a statement, which may name its number of the round, and the number of all.
macro_rules! repeat {
    ($name:literal, |$round:pat_param, $rounds:pat_param| $body:stmt) => {
        Loop::new($name, |rounds| {
            let $rounds = rounds;
            for $round in 0..rounds {
                $body
            }
        })
    };
}

fn mark() -> Loop {
    repeat!("rip_snap!()", |_, _| rip_snap!())
}

/// The same in a poll of a task.
fn mark_in_task() -> Loop {
    Loop::new("rip_snap!() in a task", |rounds| {
        let marks = async {
            for _ in 0..rounds {
                rip_snap!();
            }
        };
        let mut task = pin!(librip::task::traced(marks));
        assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    })
}

fn lock_marks() -> Loop {
    static LOCK: u64 = 0;
    repeat!("rip_lock_acquired!, rip_lock_released!", |_, _| {
        rip_lock_acquired!(&raw const LOCK);
        rip_lock_released!(&raw const LOCK);
    })
}

fn all() -> Vec<Loop> {
    let mut loops = vec![mark(), mark_in_task(), lock_marks()];
    loops.extend(events());
    loops.extend(channels());
    loops.extend(others());
    loops
}

fn events() -> [Loop; 5] {
    [
        repeat!("rip_event!, no value", |_, _| rip_event!("passed")),
        repeat!("rip_event!, two u32", |round, all| rip_event!("{} of {}", round as u32, all as u32)),
        repeat!("rip_event!, two u64", |round, all| rip_event!("{} of {}", round, all)),
        repeat!("rip_event!, a str of 12 bytes", |_, _| rip_event!("{}", black_box("twelve bytes"))),
        repeat!("rip_event!, a Text", |_, _| rip_event!("{}", black_box(Text("twelve bytes")))),
    ]
}

/// Events of two `u32`, and spans.
fn channels() -> [Loop; 5] {
    [
        repeat!("rip_event!, two u32, in a channel", |round, all| {
            rip_event!(channel FREQUENT, "{} of {}", round as u32, all as u32)
        }),
        repeat!("rip_event!, below its channel's level", |round, all| {
            rip_event!(channel WARNINGS, "{} of {}", round as u32, all as u32)
        }),
        repeat!("rip_event!, in a channel that is off", |round, all| {
            rip_event!(channel OFF, "{} of {}", round as u32, all as u32)
        }),
        repeat!("rip_span!, in a channel", |_, _| drop(rip_span!(channel FREQUENT, "round"))),
        repeat!("rip_span!, in a channel that is off", |_, _| drop(rip_span!(channel OFF, "round"))),
    ]
}

/// What `RIP_USAGE` makes longer.
fn used() -> Vec<Loop> {
    vec![mark(), quick(), slow(), measured(), measured_alone(), pause(), loops::empty()]
}

fn measured() -> Loop {
    repeat!("rip_span!(usage), one after the other", |_, _| drop(rip_span!(usage, "round")))
}

/// The answers at the end of the last one are too old for this one.
fn measured_alone() -> Loop {
    repeat!("rip_span!(usage), and 20 us", |_, _| {
        drop(rip_span!(usage, "round"));
        wait();
    })
}

fn pause() -> Loop {
    repeat!("20 us", |_, _| wait())
}

fn wait() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_micros(20) {}
}

fn quick() -> Loop {
    repeat!("rip_slow_cycle!, not slow", |_, _| drop(rip_slow_cycle!("round", Duration::from_millis(3))))
}

fn slow() -> Loop {
    repeat!("rip_slow_cycle!, slow", |_, _| drop(rip_slow_cycle!("round", Duration::ZERO)))
}

fn others() -> Vec<Loop> {
    vec![
        repeat!("rip_span!, begin and end", |_, _| drop(rip_span!("round"))),
        measured(),
        quick(),
        slow(),
        repeat!("rip_capture!, of 64 words", |_, _| rip_capture!("kept")),
        #[cfg(target_arch = "x86_64")]
        repeat!("the counter alone (rdtsc)", |_, _| {
            // SAFETY: every x86-64 processor has the instruction.
            black_box(unsafe { core::arch::x86_64::_rdtsc() });
        }),
        loops::empty(),
    ]
}
