//! Measures what an event and a span of `tracing` cost with the layer, and with subscribers that keep the last events
//! in memory, and compares them with those of librip in the same run.
//!
//! ```text
//! cargo bench -p librip-tracing       or: scripts/bench events
//! ```
//!
//! # Method
//!
//! `turns` describes the method, `marks.rs` the columns, `loops` the rows. A process has one subscriber, as programs
//! have: `tracing` is fastest then. So each subscriber is measured in a process of its own, and compared with
//! `rip_event!` there:
//!
//! * *layer*: a registry with the layer of librip-tracing, and nothing else;
//! * *text in a ring*: a registry with a layer that formats each event into a ring of bytes of its thread ([`rings`]);
//! * *values in a ring*: a subscriber that copies time, place and values into a ring of its thread, and does nothing
//!   else: the least that a ring subscriber can cost;
//! * *registry*: a registry alone. What its events and spans cost is a part of the first two.
//!
//! An event through `tracing` also pays for `tracing` itself: the look at the level, and the call of the subscriber.
//!
//! # What is not measured
//!
//! The first event of a callsite. Filters.

#![allow(unsafe_code, reason = "the processor time is read by a system call")]

#[path = "../../benches/turns/child.rs"]
mod child;
#[path = "../../benches/turns/companion.rs"]
mod companion;
#[path = "../../benches/turns/loops.rs"]
mod loops;
mod rings;
#[path = "../../benches/turns/table.rs"]
mod table;
#[path = "../../benches/turns/mod.rs"]
mod turns;

use child::child;
use librip::{Builder, Keep, rip_event, rip_span};
use loops::Loop;
use rings::{TextRing, ValueRing};
use table::print_title;
use tracing::Dispatch;
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry;

/// In a child process, this variable names the subscriber to measure.
const SUBSCRIBER: &str = "RIP_BENCH_GROUP";
const SUBSCRIBERS: [&str; 5] =
    ["layer", "layer, without a ring", "text in a ring", "values in a ring", "registry"];

fn main() {
    let Ok(subscriber) = std::env::var(SUBSCRIBER) else {
        print_title("librip/tracing/benches/tracing.rs");
        SUBSCRIBERS.iter().for_each(|subscriber| child(SUBSCRIBER, subscriber));
        return;
    };
    if !loops::counts() {
        println!("tracing, {subscriber}");
    }
    if let Err(error) = start(&subscriber) {
        eprintln!("tracing: nothing can be measured: {error}");
        std::process::exit(1);
    }
    loops::run(&all(subscriber.starts_with("layer")));
}

/// Makes the ring, if there is to be one, and sets the process's subscriber.
fn start(subscriber: &str) -> Result<(), Box<dyn std::error::Error>> {
    if subscriber != "layer, without a ring" {
        Builder::new().words(1024).keep(Keep::Never).create()?;
    }
    let dispatch = match subscriber {
        "text in a ring" => Dispatch::new(registry().with(TextRing)),
        "values in a ring" => Dispatch::new(ValueRing),
        "registry" => Dispatch::new(registry()),
        _ => Dispatch::new(registry().with(librip_tracing::layer())),
    };
    Ok(tracing::dispatcher::set_global_default(dispatch)?)
}

fn all(with_log: bool) -> Vec<Loop> {
    let mut loops = vec![
        Loop::new("rip_event!, two u64", |rounds| {
            for round in 0..rounds {
                rip_event!("moved from={} to={}", round, rounds);
            }
        }),
        Loop::new("tracing::info!, two u64", integers),
        Loop::new("tracing::info!, a message with arguments", messages),
        Loop::new("rip_span!", |rounds| {
            for _ in 0..rounds {
                let _span = rip_span!("round");
            }
        }),
        Loop::new("tracing::info_span!, without fields", spans),
        Loop::new("tracing::info_span!, with a field", spans_with_a_field),
    ];
    if with_log {
        loops.push(Loop::new("a record of log", records));
    }
    loops.push(loops::empty());
    loops
}

#[inline(never)]
fn integers(rounds: u64) {
    for round in 0..rounds {
        tracing::info!(from = round, to = rounds, "moved");
    }
}

#[inline(never)]
fn messages(rounds: u64) {
    for round in 0..rounds {
        tracing::info!("moved from {} to {}", round, rounds);
    }
}

/// The same message through the logger.
#[inline(never)]
fn records(rounds: u64) {
    use log::Log;
    let logger = librip_tracing::Logger::new();
    for round in 0..rounds {
        let mut record = log::Record::builder();
        record.level(log::Level::Info).target(module_path!()).module_path(Some(module_path!()));
        record.file(Some(file!())).line(Some(line!()));
        logger.log(&record.args(format_args!("moved from {round} to {rounds}")).build());
    }
}

#[inline(never)]
fn spans(rounds: u64) {
    for _ in 0..rounds {
        let _span = tracing::info_span!("round").entered();
    }
}

#[inline(never)]
fn spans_with_a_field(rounds: u64) {
    for round in 0..rounds {
        let _span = tracing::info_span!("round", round).entered();
    }
}
