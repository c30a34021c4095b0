//! What has changed between two readings, as text.

use std::io::{self, Write};

use super::units::{counted, duration};
use crate::printable::printable;
use crate::threads::Difference;

/// A place, with the threads that were there and those that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceChange {
    /// The function.
    pub function: String,
    /// Its file and line, or module and address.
    pub place: String,
    /// Threads in the earlier reading.
    pub before: usize,
    /// Threads in the later reading.
    pub after: usize,
}

/// What became of the threads. `between_ns` is the time between the readings.
#[expect(clippy::missing_errors_doc, reason = "those of the output")]
pub fn difference(
    out: &mut dyn Write,
    difference: &Difference<'_>,
    between_ns: Option<u64>,
) -> io::Result<()> {
    let Difference { still, moved, begun, ended } = difference;
    if let Some(between_ns) = between_ns {
        write!(out, "{} later: ", duration(between_ns))?;
    }
    write!(
        out,
        "{} recorded something in between, and {} nothing",
        counted(*moved as u64, "thread"),
        still.len()
    )?;
    writeln!(out, "; {begun} began to record, {ended} ended")
}

/// Places, one a line.
#[expect(clippy::missing_errors_doc, reason = "those of the output")]
pub fn place_changes(out: &mut dyn Write, changes: &[PlaceChange]) -> io::Result<()> {
    if changes.is_empty() {
        return writeln!(out, "As many threads as before are at each place.");
    }
    writeln!(out, "Threads at each place, before and after:")?;
    for PlaceChange { function, place, before, after } in changes {
        let function = printable(function).to_string();
        let separator = if function.is_empty() { "" } else { ", " };
        writeln!(out, "{before:>7} -> {after:<7} {function}{separator}{place}")?;
    }
    Ok(())
}
