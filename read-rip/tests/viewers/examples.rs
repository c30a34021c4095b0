//! The example programs, which `cargo build --workspace` puts beside `read-rip`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::run::Ended;

/// Where cargo puts `read-rip` and, if all is built, the example programs.
pub(crate) fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_read-rip")).parent().unwrap()
}

/// An example program that is stuck. It is killed when this goes.
pub(crate) struct Stuck(Ended);

impl Stuck {
    /// Starts a program, and waits until it is stuck. `None`, with a line that says so, if it is not built.
    pub(crate) fn start(program: &str, args: &[&str], rings: &Path) -> Option<Stuck> {
        if !built().join(program).exists() {
            eprintln!("skipped: {program} is not built; cargo build --workspace --bins");
            return None;
        }
        let mut command = Command::new(built().join(program));
        command.args(args).env("RIP_RING", rings).env("RIP_CLOCK", "all").stdout(Stdio::piped());
        let mut stuck = Stuck(Ended(command.spawn().unwrap()));
        let mut lines = BufReader::new(stuck.0.0.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("stuck")), "{program} has ended");
        Some(stuck)
    }
}
