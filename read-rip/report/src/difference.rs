//! What has changed between two readings, as text.

use std::io::{self, Write};

use read_rip_model::threads::Difference;

use super::units::{counted, duration};
use crate::printable;

/// A place, with the threads and tasks that were there and those that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceChange {
    pub function: String,
    /// Its file and line, or module and address.
    pub place: String,
    /// Threads in the earlier reading.
    pub before: usize,
    /// Threads in the later reading.
    pub after: usize,
}

/// What became of the threads, and of the tasks if there are any. `between_ns` is the time between the readings.
#[expect(clippy::missing_errors_doc, reason = "those of the output")]
pub fn difference(
    out: &mut dyn Write,
    difference: &Difference<'_>,
    between_ns: Option<u64>,
    has_tasks: bool,
) -> io::Result<()> {
    let Difference { still, moved, begun, ended } = difference;
    if let Some(between_ns) = between_ns {
        write!(out, "{} later: ", duration(between_ns))?;
    }
    let moved = match has_tasks {
        true => format!("{moved} of the threads and tasks"),
        false => counted(*moved as u64, "thread"),
    };
    write!(out, "{moved} recorded something in between, and {} nothing", still.len())?;
    writeln!(out, "; {begun} began to record, {ended} ended")
}

/// Places, one a line.
#[expect(clippy::missing_errors_doc, reason = "those of the output")]
pub fn place_changes(out: &mut dyn Write, changes: &[PlaceChange], has_tasks: bool) -> io::Result<()> {
    let and_tasks = if has_tasks { " and tasks" } else { "" };
    if changes.is_empty() {
        return writeln!(out, "As many threads{and_tasks} as before are at each place.");
    }
    writeln!(out, "Threads{and_tasks} at each place, before and after:")?;
    for PlaceChange { function, place, before, after } in changes {
        let function = printable(function).to_string();
        let separator = if function.is_empty() { "" } else { ", " };
        writeln!(out, "{before:>7} -> {after:<7} {function}{separator}{place}")?;
    }
    Ok(())
}
