//! What stops a command, as `Error:`, `Caused by:` and `Hint:` on standard error.

use std::io;
use std::path::PathBuf;

use super::remark;
use crate::report::printable;
use crate::ring;

/// What stops a command.
#[derive(Debug)]
pub(super) enum AppError {
    /// A ring that cannot be read.
    Ring(ring::Error),
    /// A directory that cannot be looked through.
    Directory { path: PathBuf, source: io::Error },
    /// No ring fits.
    NoRing { what: String },
    /// More than one fits; they have been listed.
    ManyRings { count: usize },
    /// A file of suppressions that cannot be used.
    Suppressions { path: PathBuf, why: String },
    /// A program that cannot be run.
    Run { program: PathBuf, why: String, hint: &'static str },
    /// The interposer is not where it is looked for.
    NoPreload,
    /// Standard output is gone.
    Output(io::Error),
}

impl From<io::Error> for AppError {
    fn from(error: io::Error) -> AppError {
        AppError::Output(error)
    }
}

impl From<ring::Error> for AppError {
    fn from(error: ring::Error) -> AppError {
        AppError::Ring(error)
    }
}

impl AppError {
    pub(super) fn report(&self) {
        let cause = |error: &dyn std::error::Error| error.source().map(ToString::to_string);
        let (what, cause, hint) = match self {
            AppError::Ring(error) => (error.to_string(), cause(error), Some(error.hint())),
            AppError::Directory { path, source } => (
                format!("could not look for rings in {}", path.display()),
                Some(source.to_string()),
                Some("name a ring's file, or another directory with --dir"),
            ),
            AppError::NoRing { what } => (
                what.clone(),
                None,
                Some(
                    "a program makes one with librip::init() or rip_start(), or under `read-rip run --preload`, normally \
                     in /dev/shm, and removes it when it exits with status 0; RIP_RING may have put it elsewhere: see \
                     --dir",
                ),
            ),
            AppError::ManyRings { count } => {
                (format!("{count} rings are there"), None, Some("name one of those above, by path or pid"))
            }
            AppError::Suppressions { path, why } => (
                format!("could not use the suppressions in {}", path.display()),
                Some(why.clone()),
                Some("each line is KIND or KIND:REGEX, with # for comments"),
            ),
            AppError::Run { program, why, hint } => {
                (format!("could not run {}: {why}", program.display()), None, Some(*hint))
            }
            AppError::NoPreload => (
                "there is no librip_preload.so beside this program or in /usr/local/lib or /usr/lib".into(),
                None,
                Some(
                    "build it with cargo build --release -p librip-preload, or name it with --preload-library",
                ),
            ),
            AppError::Output(error) => ("could not write the output".into(), Some(error.to_string()), None),
        };
        remark(format_args!("Error: {}", printable(&what)));
        if let Some(cause) = cause {
            remark(format_args!("Caused by: {}", printable(&cause)));
        }
        if let Some(hint) = hint {
            remark(format_args!("Hint: {hint}"));
        }
    }
}
