//! What stops a command, as `Error:`, `Caused by:` and `Hint:` on standard error.

use std::io;
use std::path::PathBuf;

use super::output::remark;
use crate::process;
use crate::report::printable;
use crate::ring;

/// What stops a command.
#[derive(Debug)]
pub(super) enum AppError {
    /// A ring that cannot be read.
    Ring(ring::Error),
    /// A directory that cannot be searched.
    Directory { path: PathBuf, source: io::Error },
    /// There is no ring in the directory.
    NoRing { dir: PathBuf },
    /// There is no ring of this process.
    NoRingOf { pid: u32, dir: PathBuf },
    /// There are several rings. They have been listed.
    ManyRings { count: usize },
    /// A suppression file that cannot be used.
    Suppressions { path: PathBuf, why: String },
    /// A program that cannot be run.
    Run { program: PathBuf, why: String, hint: &'static str },
    /// The interposer was not found.
    NoPreload,
    /// Standard output cannot be written.
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

const NO_RING_HINT: &str = "\
    a program makes a ring with librip::init() or rip_start(), or under `read-rip run --preload`, normally in \
    /dev/shm, and removes it when it exits with status 0; if RIP_RING puts it elsewhere, see --dir";

impl AppError {
    /// Writes what happened, why, and what to do about it.
    pub(super) fn report(&self) {
        let cause = |error: &dyn std::error::Error| error.source().map(ToString::to_string);
        let (what, cause, hint) = match self {
            AppError::Ring(error) => (error.to_string(), cause(error), Some(error.hint())),
            AppError::Directory { path, source } => (
                format!("could not search {} for rings", path.display()),
                Some(source.to_string()),
                Some("name the file of a ring, or another directory with --dir"),
            ),
            AppError::NoRing { dir } => (format!("no rings in {}", dir.display()), None, Some(NO_RING_HINT)),
            AppError::NoRingOf { pid, dir } => {
                let (is, searched) = if process::living_threads(*pid as i32).is_empty() {
                    ("it does not exist", "")
                } else {
                    ("it is alive", " and its maps")
                };
                let what = format!("no ring for process {pid} ({is}; looked in {}{searched})", dir.display());
                (what, None, Some(NO_RING_HINT))
            }
            AppError::ManyRings { count } => (
                format!("{count} rings found; name one"),
                None,
                Some("name one of those above, by path or pid"),
            ),
            AppError::Suppressions { path, why } => (
                format!("could not use the suppression file {}", path.display()),
                Some(why.clone()),
                Some("each line is KIND or KIND:REGEX; a line that begins with # is a comment"),
            ),
            AppError::Run { program, why, hint } => {
                (format!("could not run {}: {why}", program.display()), None, Some(*hint))
            }
            AppError::NoPreload => (
                "no librip_preload.so beside this program, in /usr/local/lib or in /usr/lib".into(),
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
