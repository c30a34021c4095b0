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
//!   14:02:07.018090 app.rs:17(span) "answer" for 9.1 us
//!   14:02:07.018101 app.rs:9 "serve: a cycle took 17988 us, more than 5000 us"
//! ```
//!
//! It orders and chooses nothing. `cycles` says what made the cycles slow.

use std::collections::BTreeMap;
use std::io::{self, Write};

use read_rip_model::locations::Dated;
use read_rip_model::log::{self, Blame, Capture, EntryKind, Holder};
use read_rip_ring::{Slot, Snapshot};

use super::cycles::{causes_words, held_ns};
use super::log::{NO_TIME, thread_of_slot, wall_clock};
use super::names::LockNames;
use super::printable::printable;
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

/// Says how long the cycles took that were kept because they were not slow. It writes nothing if there are none.
///
/// # Errors
///
/// Those of `out`.
pub fn usual_cycles(out: &mut dyn Write, shown: &[ShownCapture<'_>]) -> io::Result<()> {
    let mut cycles: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for of in shown {
        if let Some((name, usage)) = of.capture.usual.as_ref().zip(of.capture.usage) {
            cycles.entry(name).or_default().push(usage.took_ns);
        }
    }
    for (name, took_ns) in cycles {
        let count = counted(took_ns.len() as u64, "usual cycle");
        let [least, most] = [took_ns.iter().min(), took_ns.iter().max()].map(|ns| *ns.unwrap_or(&0));
        let lengths = match least == most {
            true => duration(least),
            false => format!("{} to {}", duration(least), duration(most)),
        };
        writeln!(out, "compared with {count} of {}, of {lengths}: see --json", printable(name))?;
    }
    Ok(())
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
    writeln!(out)?;
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
    let mut ends = None;
    for (at, Dated { event, location, when }) in events.iter().enumerate() {
        // It is on the line of its beginning.
        if ends.take() == Some(at) {
            continue;
        }
        let time = when.time_ns.and_then(|ns| wall_clock(snapshot, ns));
        let time = time.map_or_else(|| format!("{dimmed}{NO_TIME}{dimmed:#}"), |(_, time)| time);
        let kind = log::kind_of(slot, event, locations, when.time_ns, now_ns);
        // A span with nothing within takes one line.
        let whole = events.get(at + 1).filter(|_| matches!(kind, Some(EntryKind::Begin))).and_then(|next| {
            match log::kind_of(slot, &next.event, locations, next.when.time_ns, now_ns)? {
                EntryKind::End(Some(took_ns)) => Some((next.event.sequence, took_ns)),
                _ => None,
            }
        });
        ends = whole.map(|_| at + 1);
        if matches!(kind, Some(EntryKind::End(_))) {
            depth = depth.saturating_sub(1);
        }
        let indent = 2 * depth.min(DEPTH_MAX);
        if matches!(kind, Some(EntryKind::Begin)) && whole.is_none() {
            depth += 1;
        }
        let location = locations.get(*location);
        write!(out, "  {time} {:indent$}{}", "", texts.line_of(location))?;
        if whole.is_some() {
            write!(out, "(span)")?;
        } else if let Some(word) = word(slot, event, locations) {
            write!(out, "({word})")?;
        }
        write!(out, "{}", texts.outer(location))?;
        said(out, slot, event, location, locations, now_ns)?;
        if let Some((_, took_ns)) = whole {
            write!(out, " for {}", duration(took_ns))?;
        }
        let shown = whole.map_or(event.sequence, |(end, _)| end);
        let step = guilty.iter().find(|(_, sequence)| *sequence == shown);
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
