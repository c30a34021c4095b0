//! What the example programs share: starting to record, waiting for each other, locking.
//!
//! The trouble is in the programs in `src/bin`, not here.

pub mod arrivals;
pub mod locks;
pub mod many_threads;
pub mod random;
pub mod sessions;

use std::io::Write;

/// The Rust code of README.md and of the guide compiles.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/guide/src/rust.md")]
    struct Rust;
    #[doc = include_str!("../../docs/guide/src/dependencies.md")]
    struct Dependencies;
    #[doc = include_str!("../../docs/guide/src/events.md")]
    struct Events;
}

/// Starts recording, and returns the path of the ring. If recording fails, says so and returns "none": the program
/// runs without a ring.
pub fn start() -> String {
    if let Err(error) = librip::init() {
        eprintln!("not recording: {error}");
    }
    ring()
}

/// The path of the ring, or "none".
pub fn ring() -> String {
    librip::ring_path().map_or_else(|| "none".into(), |path| path.display().to_string())
}

/// Prints a line and flushes it. Ignores errors: the program runs on if nothing reads its output.
pub fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Prints the process id and the path of the ring.
pub fn say_running(ring: &str) {
    say(format_args!("running: pid {}, ring {ring}", std::process::id()));
}

/// Waits until the process is killed.
pub fn stay() -> ! {
    loop {
        std::thread::park();
    }
}
