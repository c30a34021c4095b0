//! `read-rip captures`.
//!
//! ```text
//! worker[4712], kept 2026-11-23 14:02:07.018113 UTC
//!   14:02:07.000113 app.rs:12 "request 7"
//!   --:--:--.------ app.rs:14
//!   14:02:07.018101 app.rs:9 "serve: a cycle took 17988 us, more than 5000 us"
//! ```
//!
//! It orders and chooses nothing.

use std::io::{self, Write};

use read_rip_model::locations::Dated;
use read_rip_ring::{Slot, Snapshot};

use super::log::{NO_TIME, thread_of_slot, wall_clock};
use super::names::LockNames;
use super::threads::{said, word};

/// Writes a capture: the thread, and what it had recorded, the oldest event first. `now_ns` is the time of the reading
/// or of the process's end.
///
/// # Errors
///
/// Those of `out`.
pub fn capture(
    out: &mut dyn Write,
    slot: &Slot,
    events: &[Dated],
    names: &LockNames<'_>,
    (snapshot, names_process): (&Snapshot, bool),
    now_ns: Option<u64>,
) -> io::Result<()> {
    let (bold, dimmed) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
    write!(out, "{bold}{}{bold:#}, kept", thread_of_slot(slot, names_process))?;
    match wall_clock(snapshot, slot.exited_boottime_ns) {
        Some((day, time)) => writeln!(out, " {day} {time} UTC")?,
        None => writeln!(out, " at an unknown time")?,
    }
    let (locations, texts) = (names.locations, names.texts);
    for Dated { event, location, when } in events {
        let time = when.time_ns.and_then(|ns| wall_clock(snapshot, ns));
        let time = time.map_or_else(|| format!("{dimmed}{NO_TIME}{dimmed:#}"), |(_, time)| time);
        let location = locations.get(*location);
        write!(out, "  {time} {}", texts.line_of(location))?;
        if let Some(word) = word(slot, event, locations) {
            write!(out, "({word})")?;
        }
        write!(out, "{}", texts.outer(location))?;
        said(out, slot, event, location, locations, now_ns)?;
        writeln!(out)?;
    }
    Ok(())
}
