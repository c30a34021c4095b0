//! `read-rip captures`.
//!
//! ```text
//! 1 slow cycle of serve: waiting for TABLE in `update`, up to 17.1 ms, usually 0 ns
//!   held meanwhile by janitor[4713], app.rs:44: 1 time, for up to 17.2 ms
//! worker[4712], kept 2026-11-23 14:02:07.018113 UTC
//!   14:02:07.000113 app.rs:12 "request 7"
//!   14:02:07.000118 app.rs:14(begin) "update"
//!   14:02:07.000120   app.rs:15(waits) of TABLE (0x55d0c8)  <-- 95 % of the cycle: janitor[4713] held ...
//!   14:02:07.018090 app.rs:14(end) "update" after 17.9 ms
//!   14:02:07.018101 app.rs:9 "serve: a cycle took 17988 us, more than 5000 us"
//! ```
//!
//! It orders and chooses nothing. `cycles` says what made the cycles slow.

use std::io::{self, Write};

use read_rip_model::locations::Dated;
use read_rip_model::log::{self, Blame, Capture, EntryKind, Holder};
use read_rip_ring::{Slot, Snapshot};

use super::cycles::{causes_words, held_ns};
use super::log::{NO_TIME, thread_of_slot, wall_clock};
use super::names::LockNames;
use super::threads::{said, word};
use super::units::{counted, duration};

/// Spans are indented up to this depth.
const DEPTH_MAX: usize = 12;

/// A capture that is shown.
#[derive(Clone, Copy, Debug)]
pub struct ShownCapture<'a> {
    /// The copy of the thread's slot.
    pub slot: &'a Slot,
    /// What the thread had recorded, the oldest event first.
    pub events: &'a [Dated],
    /// The cycle, and its steps.
    pub capture: &'a Capture,
    /// If the cycle waited for a lock: who held it, if that is recorded.
    pub holder: Option<&'a Holder>,
}

/// Writes a capture: the thread, and what it had recorded, the oldest event first. What is within a span is indented,
/// and the step that made a cycle slow is marked. `now_ns` is the time of the reading or of the process's end.
///
/// # Errors
///
/// Those of `out`.
pub fn capture(
    out: &mut dyn Write,
    shown: &ShownCapture<'_>,
    names: &LockNames<'_>,
    (snapshot, names_process): (&Snapshot, bool),
    now_ns: Option<u64>,
) -> io::Result<()> {
    let &ShownCapture { slot, events, capture, holder } = shown;
    let (bold, dimmed) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
    write!(out, "{bold}{}{bold:#}, kept", thread_of_slot(slot, names_process))?;
    match wall_clock(snapshot, slot.exited_boottime_ns) {
        Some((day, time)) => write!(out, " {day} {time} UTC")?,
        None => write!(out, " at an unknown time")?,
    }
    writeln!(out, "{}", if capture.usual.is_some() { ", a usual cycle for comparison" } else { "" })?;
    let (locations, texts) = (names.locations, names.texts);
    if slot.overwritten() > 0 {
        writeln!(out, "  {dimmed}{} before were overwritten{dimmed:#}", counted(slot.overwritten(), "word"))?;
    }
    let cycle = capture.cycle.as_ref();
    // The steps that made it slow, and the event of each.
    let guilty: Vec<(&Blame, u64)> = cycle.map_or_else(Vec::new, |cycle| {
        let event = |blame: &Blame| Some(capture.steps.get(blame.step?)?.event.sequence);
        cycle.blames().filter_map(|blame| Some((blame, event(blame)?))).collect()
    });
    // The causes are those of the whole cycle.
    let why = cycle.map_or_else(String::new, |cycle| {
        causes_words(&cycle.causes, cycle.wait().is_some(), capture.usage.as_ref())
    });
    let mut depth = 0usize;
    for Dated { event, location, when } in events {
        let time = when.time_ns.and_then(|ns| wall_clock(snapshot, ns));
        let time = time.map_or_else(|| format!("{dimmed}{NO_TIME}{dimmed:#}"), |(_, time)| time);
        let kind = log::kind_of(slot, event, locations, when.time_ns, now_ns);
        if matches!(kind, Some(EntryKind::End(_))) {
            depth = depth.saturating_sub(1);
        }
        let indent = 2 * depth.min(DEPTH_MAX);
        if matches!(kind, Some(EntryKind::Begin)) {
            depth += 1;
        }
        let location = locations.get(*location);
        write!(out, "  {time} {:indent$}{}", "", texts.line_of(location))?;
        if let Some(word) = word(slot, event, locations) {
            write!(out, "({word})")?;
        }
        write!(out, "{}", texts.outer(location))?;
        said(out, slot, event, location, locations, now_ns)?;
        let step = guilty.iter().find(|(_, sequence)| *sequence == event.sequence);
        if let Some(((blame, _), cycle)) = step.zip(cycle) {
            let guilty_style = anstyle::AnsiColor::Red.on_default().bold();
            write!(out, "  {guilty_style}<-- {} % of the cycle{guilty_style:#}", blame.percent(cycle))?;
            if guilty.len() == 1 {
                write!(out, "{why}")?;
            }
            if let Some(of @ Holder { slot, location, .. }) = holder.filter(|_| cycle.wait() == Some(blame)) {
                let who = thread_of_slot(&snapshot.slots[*slot], names_process);
                let line = texts.line_of(locations.get(*location));
                write!(out, ": {who} held the lock for {}, {line}", duration(held_ns(of)))?;
            }
        }
        // The last event says how long the cycle took.
        if guilty.len() != 1 && events.last().is_some_and(|last| last.event.sequence == event.sequence) {
            write!(out, "{why}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
