//! A program that uses `tracing` and `log`, and no marks of librip: its test reads what the bridge has recorded.
//!
//! What it prints is the same with and without a ring.

#![allow(unsafe_code, reason = "forks")]

use std::fmt;
use std::io::{Read, Write};
use std::sync::{Arc, Barrier};

use tracing::{Level, debug, debug_span, error, event, info, info_span, instrument, trace, warn};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let _ = librip::init();
    match arguments[0].as_str() {
        "log" => {
            librip_tracing::init_log().expect("no other logger");
            records();
        }
        "beside" => beside(),
        "filtered" => filtered(),
        "filtered apart" => filtered_apart(),
        way => {
            tracing_subscriber::registry().with(librip_tracing::layer()).init();
            match way {
                "events" => events(),
                "spans" => spans(),
                "deep" => deep(),
                "forked" => forked(),
                "race" => race(),
                "crowded" => crowded(),
                "growing" => growing(),
                "narrow" => narrow(),
                _ => panic!("which way?"),
            }
        }
    }
    std::process::exit(3);
}

/// A filter of the registry is one of all layers, wherever it stands.
fn filtered() {
    tracing_subscriber::registry().with(librip_tracing::layer()).with(LevelFilter::ERROR).init();
    info!("is not given to any layer");
    say("done");
    pause();
}

/// A filter of one layer leaves the others alone.
fn filtered_apart() {
    let printing = tracing_subscriber::layer::Identity::new().with_filter(LevelFilter::ERROR);
    tracing_subscriber::registry().with(librip_tracing::layer()).with(printing).init();
    info!("is given to this layer");
}

/// Writes a line.
fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("somebody reads");
}

/// Waits for the test, which writes a byte or kills the program.
fn pause() {
    let _ = std::io::stdin().read(&mut [0]);
}

#[derive(Debug)]
struct Disk {
    #[expect(dead_code, reason = "it is formatted")]
    name: &'static str,
}

/// Its `Debug` records an event itself.
struct Talkative;

impl fmt::Debug for Talkative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug!(inner = true, "formatting");
        f.write_str("talkative")
    }
}

/// Its `Debug` panics.
struct Broken;

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("half")?;
        std::panic::resume_unwind(Box::new(()))
    }
}

const LONG: &str = "a message that has no arguments, and is longer than anything that an event keeps by value: its \
                    text is a part of the format, which the ring has once, so nothing of it is cut, however long it \
                    is, and that is worth a test, because messages of this length do exist in programs";

fn events() {
    trace!("finest");
    debug!(unsigned = 255u8, large = u64::MAX, signed = i64::MIN, truth = true, float = 1.5, "typed");
    info!("{LONG}");
    // The text is the same each time, the values are not.
    for round in 0..3u64 {
        info!(round, "braces {{}} in a literal");
    }
    for name in ["first", "second", "first", "a third one"] {
        warn!("{}", name);
    }
    error!(code = 13, "cannot open {:?}: {}", "/etc/passwd", "permission denied");
    let long = "0123456789".repeat(40);
    info!(text = long.as_str(), debug = ?Disk { name: "sda" }, "{}/{}", &long[..200], &long[..200]);
    info!(a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = 10, k = 11, "eleven");
    info!(missing = None::<u64>, given = Some(1u64), "optional");
    event!(target: "custom", Level::INFO, r#type = "raw", "of a target");
    event!(Level::WARN, alone = %"only a field");
    info!(wide = u128::MAX, bytes = &[1u8, 2][..], "other types");
    info!(value = ?Talkative, "outer");
    info!(value = ?Broken, "after a panic");
    info!("{{escaped}} {:?}", Broken);
    say("done");
    pause();
}

#[instrument(skip(depth), fields(depth = depth))]
fn descend(name: &str, depth: u32) -> u32 {
    if depth == 0 { 0 } else { 1 + descend(name, depth - 1) }
}

fn spans() {
    assert_eq!(descend("ladder", 2), 2);
    let reentered = info_span!("reentered", round = tracing::field::Empty, kept = "as it was");
    for round in 0..3u64 {
        reentered.record("round", round);
        reentered.in_scope(|| debug!("inside"));
    }
    // In another order than they were entered.
    let (first, second) = (info_span!("first").entered(), debug_span!("second").entered());
    drop(first);
    drop(second);
    // One span, which two threads enter.
    let shared = info_span!("shared", id = 4711u64);
    let barrier = Arc::new(Barrier::new(3));
    for index in 0..2 {
        let (shared, barrier) = (shared.clone(), barrier.clone());
        let thread = std::thread::Builder::new().name(format!("t{index}"));
        let body = move || {
            let _shared = shared.enter();
            let _own = info_span!("own", index, text = "by value").entered();
            barrier.wait();
            std::thread::park();
        };
        thread.spawn(body).expect("a thread");
    }
    barrier.wait();
    say("open");
    pause();
}

/// More spans than a thread has room for.
fn deep() {
    let spans: Vec<_> = (0..70u64).map(|depth| info_span!("deep", depth).entered()).collect();
    drop(spans);
    let again = info_span!("again").entered();
    say("open");
    pause();
    drop(again);
}

/// Callsites of the parent, of the child, and of both.
fn forked() {
    let both = |who: &str| info!(who, "in both");
    info!("before the fork");
    both("neither yet");
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        both("child");
        info!("only in the child");
        log_late("child");
        std::process::exit(3);
    }
    let mut status = 0;
    // SAFETY: waits for the own child, and writes to a variable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    both("parent");
    info!("only in the parent");
    log_late("parent");
}

/// The parent and the child get the same memory for what is known of different callsites.
fn log_late(who: &str) {
    let logger = librip_tracing::Logger::new();
    log_at(&logger, "late", if who == "child" { 1001 } else { 1002 }, &format!("logged in the {who}"));
}

/// A record of a place that no macro has.
fn log_at(logger: &librip_tracing::Logger, target: &str, line: u32, said: &str) {
    let file = format!("{target}.rs");
    let mut record = log::Record::builder();
    record.level(log::Level::Warn).target(target).file(Some(&file)).line(Some(line));
    log::Log::log(logger, &record.args(format_args!("{said}")).build());
}

/// More callsites than a ring has room for.
fn crowded() {
    let logger = librip_tracing::Logger::new();
    log_at(&logger, "first of all", 1, "once");
    for line in 1..=40_000 {
        log_at(&logger, "crowded", line, "one of many");
    }
    info!("after them");
    info_span!("too late").in_scope(|| ());
    log_at(&logger, "first of all", 1, "once");
}

/// Threads that use callsites for the first time at the same moment, with messages that differ.
fn race() {
    const THREADS: usize = 4;
    let barrier = Arc::new(Barrier::new(THREADS));
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let barrier = barrier.clone();
            std::thread::spawn(move || {
                macro_rules! callsites {
                    ($($number:literal)+) => {$(
                        barrier.wait();
                        info!(site = $number, "{}", ["zero", "one", "two", "three"][thread]);
                    )+};
                }
                callsites!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread ends"));
}

/// More text than an event has room for in a slot of 64 words.
fn narrow() {
    let long = "0123456789".repeat(40);
    let text = long.as_str();
    info!(a = text, b = text, c = text, d = text, e = text, "{text}{}", 1);
    say("few");
    pause();
    info!(a = text, b = text, c = text, d = text, e = text, f = text, g = text, "{text}{}", 1);
    say("many");
    pause();
}

/// New callsites, one after the other, while the test reads: as many as a ring has room for.
fn growing() {
    let logger = librip_tracing::Logger::new();
    for line in 1..=30_000 {
        for _ in 0..5 {
            log_at(&logger, "growing", line, "again and again");
        }
        if line == 1 {
            say("growing");
        }
    }
    pause();
}

fn records() {
    log::trace!("finest");
    for round in 0..3 {
        log::info!("a literal {{}}");
        log::warn!("round {}: {}", round, "x".repeat(300));
    }
    log::error!(target: "custom", "{LONG}");
    log::debug!("{:?}", Broken);
    say("done");
    pause();
}

/// A logger that prints, beside the one that records.
fn beside() {
    struct Printer;
    impl log::Log for Printer {
        fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
            metadata.level() <= log::Level::Warn
        }

        fn log(&self, record: &log::Record<'_>) {
            if self.enabled(record.metadata()) {
                say(&format!("{} {}", record.level(), record.args()));
            }
        }

        fn flush(&self) {
            say("flushed");
        }
    }
    let logger = librip_tracing::Logger::beside(Box::new(Printer));
    log::set_logger(Box::leak(Box::new(logger))).expect("no other logger");
    log::set_max_level(log::LevelFilter::Debug);
    log::warn!("both");
    log::info!("recorded only");
    say(&format!("enabled {}", log::log_enabled!(log::Level::Error)));
    log::logger().flush();
}
