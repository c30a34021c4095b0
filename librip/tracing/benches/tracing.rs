//! Measures what an event and a span of `tracing` cost with the layer, and compares them with others in the same run.
//!
//! ```text
//! cargo bench -p librip-tracing       or: scripts/bench events
//! ```
//!
//! # Method
//!
//! `turns` describes the method: candidates take turns, and a ratio compares times of the same turn. Each candidate is
//! one loop in one thread. Three subscribers take turns as the thread's default one:
//!
//! * *layer*: a registry with the layer, and nothing else;
//! * *text in memory*: a registry with a layer that formats each event into a ring of bytes in memory: its time, level,
//!   target, message and fields, as a logger does that prints nothing. It has one ring for all threads, behind a mutex,
//!   which nobody else takes here;
//! * *registry*: a registry alone. What its events and spans cost is a part of the others' times.
//!
//! An event through `tracing` also pays for `tracing` itself: the look at the level, and the call of the subscriber.
//! Subscribers of a thread take some nanoseconds more than one of the whole process.
//!
//! # What is not measured
//!
//! The first event of a callsite. Several threads. Filters.

#![allow(unsafe_code, reason = "the processor time is read by a system call")]

#[path = "../../benches/turns/table.rs"]
mod table;
#[path = "../../benches/turns/mod.rs"]
mod turns;

use std::fmt::{self, Write};
use std::hint::black_box;
use std::sync::Mutex;
use std::time::SystemTime;

use librip::{Builder, Keep, rip_event, rip_span};
use table::{child, measure, print_title};
use tracing::field::{Field, Visit};
use tracing::{Dispatch, Event, Subscriber, dispatcher};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry;
use turns::Candidate;

/// In a child process, this variable names the group to measure.
const GROUP: &str = "RIP_BENCH_GROUP";

fn main() {
    match std::env::var(GROUP).as_deref() {
        Ok("without a ring") => without_a_ring(),
        Ok(_) => recording(),
        Err(_) => {
            print_title("librip/tracing/benches/tracing.rs");
            child(GROUP, "recording");
            child(GROUP, "without a ring");
        }
    }
}

/// A loop with a default subscriber of the thread.
fn with(dispatch: &Dispatch, body: fn(u64)) -> impl FnMut(u64) + use<> {
    let dispatch = dispatch.clone();
    move |rounds| dispatcher::with_default(&dispatch, || body(rounds))
}

fn without_a_ring() {
    println!("without a ring");
    let layer = Dispatch::new(registry().with(librip_tracing::layer()));
    let bare = Dispatch::new(registry());
    measure(&mut [
        Candidate::new("two u64, registry", 0, 1, with(&bare, integers)),
        Candidate::new("two u64, layer", 0, 1, with(&layer, integers)),
        Candidate::new("a span with a field, registry", 2, 1, with(&bare, spans_with_a_field)),
        Candidate::new("a span with a field, layer", 2, 1, with(&layer, spans_with_a_field)),
    ]);
}

fn recording() {
    println!("recording, with times");
    if let Err(error) = Builder::new().words(1024).keep(Keep::Never).create() {
        eprintln!("tracing: no ring, so there is nothing to measure: {error}");
        std::process::exit(1);
    }
    let layer = Dispatch::new(registry().with(librip_tracing::layer()));
    let text = Dispatch::new(registry().with(InMemory::new()));
    let bare = Dispatch::new(registry());
    measure(&mut [
        Candidate::new("rip_event!, two u64", 0, 1, |rounds| {
            for round in 0..rounds {
                rip_event!("moved from={} to={}", round, rounds);
            }
        }),
        Candidate::new("two u64, layer", 0, 1, with(&layer, integers)),
        Candidate::new("two u64, text in memory", 0, 1, with(&text, integers)),
        Candidate::new("two u64, registry", 0, 1, with(&bare, integers)),
        Candidate::new("a message with arguments, layer", 0, 1, with(&layer, messages)),
        Candidate::new("a message with arguments, text in memory", 0, 1, with(&text, messages)),
        Candidate::new("a record of log", 0, 1, records),
        Candidate::new("rip_span!", 7, 1, |rounds| {
            for _ in 0..rounds {
                let _span = rip_span!("round");
            }
        }),
        Candidate::new("a span without fields, layer", 7, 1, with(&layer, spans)),
        Candidate::new("a span without fields, registry", 7, 1, with(&bare, spans)),
        Candidate::new("a span with a field, layer", 7, 1, with(&layer, spans_with_a_field)),
        Candidate::new("a span with a field, registry", 7, 1, with(&bare, spans_with_a_field)),
    ]);
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

/// Formats events into memory.
struct InMemory(Mutex<Lines>);

/// The last bytes that were written.
struct Lines {
    bytes: Box<[u8]>,
    at: usize,
}

impl InMemory {
    fn new() -> InMemory {
        InMemory(Mutex::new(Lines { bytes: vec![0; 64 << 10].into(), at: 0 }))
    }
}

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.as_bytes().chunks(self.bytes.len()) {
            let (end, len) = (self.bytes.len(), part.len());
            let first = len.min(end - self.at);
            self.bytes[self.at..][..first].copy_from_slice(&part[..first]);
            self.bytes[..len - first].copy_from_slice(&part[first..]);
            self.at = (self.at + len) % end;
        }
        Ok(())
    }
}

impl Visit for Lines {
    fn record_u64(&mut self, field: &Field, value: u64) {
        let _ = write!(self, " {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self, " {value:?}"),
            name => write!(self, " {name}={value:?}"),
        };
    }
}

impl<S: Subscriber> Layer<S> for InMemory {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let Ok(mut lines) = self.0.lock() else { return };
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let metadata = event.metadata();
        let (seconds, micros) = (time.as_secs(), time.subsec_micros());
        let _ = write!(lines, "{seconds}.{micros:06} {} {}:", metadata.level(), metadata.target());
        event.record(&mut *lines);
        let _ = lines.write_str("\n");
        black_box(&lines.bytes);
    }
}
