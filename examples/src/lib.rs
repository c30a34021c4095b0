//! What the example programs share: how they start, how they wait for one another, how they lock.
//!
//! It gets into no trouble itself; each program in `src/bin` does.

pub mod arrivals;
pub mod locks;
pub mod many_threads;
pub mod pace;
pub mod sessions;

use std::io::Write;

/// Starts recording and says where; a program without a ring runs on, as it should.
pub fn start() -> String {
    if let Err(error) = librip::init() {
        eprintln!("not recording: {error}");
    }
    librip::ring_path().map_or_else(|| "none".into(), |path| path.display().to_string())
}

/// Prints a line, at once. Whoever reads it may be gone, which is no reason to stop.
pub fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Says who runs and where its ring is.
pub fn say_running(ring: &str) {
    say(format_args!("running: pid {}, ring {ring}", std::process::id()));
}

/// Waits until somebody kills the process.
pub fn stay() -> ! {
    loop {
        std::thread::park();
    }
}
