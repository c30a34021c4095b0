//! The commands, from their arguments to their exit status. Here the layers come together.

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

/// The ring was read, and nothing is wrong.
const SOUND: u8 = 0;
/// The ring was read, and there are findings.
const FINDINGS: u8 = 1;
/// An error, or part of the ring could not be read.
const ERROR: u8 = 2;

/// Output is written in pieces of this length.
const BUFFER_BYTES: usize = 64 << 10;

/// Runs the command that the arguments ask for.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => show::show(&cli.ring, &cli.show, &cli.common),
        Some(Command::List) => rings::list(&cli.common),
        Some(Command::Gc { dry_run }) => rings::gc(dry_run, &cli.common),
        Some(Command::Info { ring }) => show::info(&ring, &cli.common),
        Some(Command::Locks(args)) => locks::locks(&args, &cli.common),
        Some(Command::Check(args)) => check::check(&args, &cli.common),
        Some(Command::Run(args)) => run::run(&args, &cli.common),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        // The reader of the output closed it: that is no error.
        Err(AppError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            error.report();
            ExitCode::from(ERROR)
        }
    }
}

/// Standard output, with colours where the options say so.
fn output(wanted: &Common) -> impl Write + use<> {
    let choice = match wanted.color {
        clap::ColorChoice::Auto => AutoStream::choice(&io::stdout()),
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    // Buffered on both sides: the filter that removes colours writes many small pieces.
    let stdout: Box<dyn Write> = Box::new(BufWriter::with_capacity(BUFFER_BYTES, io::stdout()));
    BufWriter::with_capacity(BUFFER_BYTES, AutoStream::new(stdout, choice))
}

/// Writes a line to standard error. A failure is ignored: with `2>&1 | head` nothing may read it.
fn remark(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// The time, ns since 1970.
fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
