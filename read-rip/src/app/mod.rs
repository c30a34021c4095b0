//! Each command, from its arguments to its exit status: the layers put together.

mod check;
mod error;
mod locks;
mod reading;
mod rings;
mod run;
mod show;

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::Parser;

use crate::cli::{Cli, Command, Common};
use error::AppError;

/// Read, and nothing is wrong with the ring.
const SOUND: u8 = 0;
/// Read, and there are findings.
const FINDINGS: u8 = 1;
/// An error, or part of the ring could not be read.
const ERROR: u8 = 2;

/// Output is written in pieces of this length.
const BUFFER_BYTES: usize = 64 << 10;

/// Runs the command that the arguments ask for.
pub fn main() -> ExitCode {
    run_command(Cli::parse())
}

/// Runs a command. Writes to standard output and standard error, as the program does.
pub fn run_command(cli: Cli) -> ExitCode {
    let result = match cli.command {
        None => show::show(&cli.ring, &cli.view, &cli.common),
        Some(Command::List) => rings::list(&cli.common),
        Some(Command::Gc { dry_run }) => rings::gc(dry_run, &cli.common),
        Some(Command::Info { ring }) => show::info(&ring, &cli.common),
        Some(Command::Locks(args)) => locks::locks(&args, &cli.common),
        Some(Command::Check(args)) => check::check(&args, &cli.common),
        Some(Command::Run(args)) => run::run(&args, &cli.common),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        // Whoever read our output has seen enough.
        Err(AppError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            error.report();
            ExitCode::from(ERROR)
        }
    }
}

/// Standard output, with colours if they are wanted.
fn output(wanted: &Common) -> impl Write + use<> {
    let choice = match wanted.color {
        clap::ColorChoice::Auto => AutoStream::choice(&io::stdout()),
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    // Buffered on both sides: what removes colours hands on piece by piece.
    let stdout: Box<dyn Write> = Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()));
    BufWriter::with_capacity(BUFFER_BYTES, AutoStream::new(stdout, choice))
}

/// Writes a line to standard error. If nobody reads it (`2>&1 | head`), that is no reason to stop.
fn remark(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The time, ns since 1970.
fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
