//! `read-rip captures`.
//!
//! ```text
//! 1 slow cycle of serve: waiting for TABLE in `update`, up to 17.1 ms, usually 0 ns
//!   held meanwhile by janitor[4713], app.rs:44: 1 time
//! worker[4712], kept 2026-11-23 14:02:07.018113 UTC
//!   14:02:07.000113 app.rs:12 "request 7"
//!   14:02:07.000118 app.rs:14(begin) "update"
//!   14:02:07.000120   app.rs:15(waits) of TABLE (0x55d0c8)  <-- 95 % of the cycle: janitor[4713] held ...
//!   14:02:07.018090 app.rs:14(end) "update" after 17.9 ms
//!   14:02:07.018101 app.rs:9 "serve: a cycle took 17988 us, more than 5000 us"
//! ```
//!
//! It orders and chooses nothing. It has the sentence for slow cycles that other commands show too.

use std::collections::BTreeMap;
use std::io::{self, Write};

use read_rip_model::locations::{Dated, Locations};
use read_rip_model::log::{self, Blame, Capture, CycleStepKind, EntryKind, Holder, SlowCycle, SlowCycles};
use read_rip_ring::{Slot, Snapshot};
use serde::Serialize;

use super::log::{NO_TIME, thread_of_slot, wall_clock};
use super::names::LockNames;
use super::printable::printable;
use super::threads::{said, word};
use super::units::{counted, duration};

/// The slow cycles that a ring has kept.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptCycles {
    /// How many there are.
    pub count: usize,
    /// The name of the one that took the longest.
    pub worst: String,
    /// How long it took, ns.
    pub took_ns: u64,
    /// How long it may take, ns.
    pub limit_ns: u64,
    /// The step that made it slow: `span`, `lock` (it waited for a lock), or `outside` of its spans.
    pub step_kind: &'static str,
    /// The name of that span or lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// How long it was in that step, ns.
    pub step_ns: u64,
    /// How long it usually is in that step, ns, if other cycles show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual_ns: Option<u64>,
    #[serde(skip)]
    sentence: String,
}

impl KeptCycles {
    /// What other commands than `captures` say of these cycles.
    pub fn of(of: &SlowCycles, locations: &Locations<'_>) -> KeptCycles {
        let SlowCycles { count, thread: (pid, _), worst } = of;
        let blame = &worst.blame;
        let (step_kind, step) = step_name(&blame.kind, *pid, locations);
        let cycles = match count {
            1 => "1 slow cycle was kept; it".to_owned(),
            _ => format!("{count} slow cycles were kept; the worst"),
        };
        let took = duration(worst.took_ns);
        let sentence = format!("{cycles} took {took}: {}", share(worst, blame, *pid, locations));
        let &Blame { took_ns: step_ns, usual_ns, .. } = blame;
        let &SlowCycle { took_ns, limit_ns, .. } = worst;
        let (count, worst) = (*count, worst.name.clone());
        KeptCycles { count, worst, took_ns, limit_ns, step_kind, step, step_ns, usual_ns, sentence }
    }

    /// `55 slow cycles were kept; the worst took 341 ms: 98 % in `grow``, and the command that shows them.
    pub fn line(&self, ring: &str) -> String {
        format!("{}; next: read-rip captures {ring}", self.sentence)
    }
}

/// What a step is, as JSON names it, and the name of its span or lock.
pub(super) fn step_name(
    kind: &CycleStepKind,
    pid: u32,
    locations: &Locations<'_>,
) -> (&'static str, Option<String>) {
    match kind {
        CycleStepKind::Span(name) => ("span", Some(name.clone())),
        CycleStepKind::Wait(lock) => ("lock", Some(lock_name(pid, *lock, locations))),
        CycleStepKind::Outside => ("outside", None),
    }
}

/// What a lock is called by its address.
fn lock_name(pid: u32, lock: u64, locations: &Locations<'_>) -> String {
    locations
        .lock_name(pid, lock)
        .map_or_else(|| format!("lock {lock:#x}"), |name| printable(name).into_owned())
}

/// What a thread does in a step: `in `grow``.
fn step_words(kind: &CycleStepKind, pid: u32, locations: &Locations<'_>) -> String {
    match kind {
        CycleStepKind::Span(name) => format!("in `{}`", printable(name)),
        CycleStepKind::Wait(lock) => format!("waiting for {}", lock_name(pid, *lock, locations)),
        CycleStepKind::Outside => "outside of its spans".to_owned(),
    }
}

/// How much of a cycle a step took.
fn share(cycle: &SlowCycle, blame: &Blame, pid: u32, locations: &Locations<'_>) -> String {
    format!("{} % {}", blame.percent(cycle), blamed(blame, pid, locations))
}

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

/// Writes what made the cycles slow: each step that is to blame, and in how many of them it is, the most frequent one
/// first. It writes nothing if there are no slow cycles.
///
/// # Errors
///
/// Those of `out`.
pub fn culprits(
    out: &mut dyn Write,
    shown: &[ShownCapture<'_>],
    names: &LockNames<'_>,
    snapshot: &Snapshot,
) -> io::Result<()> {
    let mut groups: BTreeMap<(&str, String), Vec<(&ShownCapture<'_>, &SlowCycle)>> = BTreeMap::new();
    for of in shown {
        if let Some(cycle) = &of.capture.cycle {
            let step = blamed(&cycle.blame, of.slot.pid, names.locations);
            groups.entry((&cycle.name, step)).or_default().push((of, cycle));
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, cycles)| std::cmp::Reverse(cycles.len()));
    let bold = anstyle::Style::new().bold();
    for ((name, step), cycles) in groups {
        let blames = || cycles.iter().map(|(_, cycle)| &cycle.blame);
        let worst_ns = blames().map(|blame| blame.took_ns).max().unwrap_or(0);
        let usual_ns = blames().filter_map(|blame| blame.usual_ns).max();
        let usual = usual_ns.map_or_else(String::new, |ns| format!(", usually {}", duration(ns)));
        let count = counted(cycles.len() as u64, "slow cycle");
        writeln!(
            out,
            "{bold}{count}{bold:#} of {}: {step}, up to {}{usual}",
            printable(name),
            duration(worst_ns)
        )?;
        let is_wait = blames().any(|blame| matches!(blame.kind, CycleStepKind::Wait(_)));
        let has_other_waits = cycles.iter().any(|(of, _)| of.capture.has_other_waits);
        match (is_wait, has_other_waits) {
            (true, _) => {}
            (false, true) => writeln!(out, "  some of them wait in other ways: see their events")?,
            (false, false) => {
                writeln!(
                    out,
                    "  no wait is recorded there: it ran longer, or waited for something unrecorded"
                )?;
            }
        }
        let mut holders: BTreeMap<String, usize> = BTreeMap::new();
        for holder in cycles.iter().filter_map(|(of, _)| of.holder) {
            let who = thread_of_slot(&snapshot.slots[holder.slot], false);
            let line = names.texts.line_of(names.locations.get(holder.location));
            *holders.entry(format!("{who}, {line}")).or_default() += 1;
        }
        for (holder, times) in holders {
            writeln!(out, "  held meanwhile by {holder}: {}", counted(times as u64, "time"))?;
        }
    }
    Ok(())
}

/// The step that is to blame, with the span around a wait.
fn blamed(blame: &Blame, pid: u32, locations: &Locations<'_>) -> String {
    let words = step_words(&blame.kind, pid, locations);
    let within = blame.within.as_ref().map_or_else(String::new, |name| format!(" in `{}`", printable(name)));
    format!("{words}{within}")
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
        Some((day, time)) => writeln!(out, " {day} {time} UTC")?,
        None => writeln!(out, " at an unknown time")?,
    }
    let (locations, texts) = (names.locations, names.texts);
    let blame = capture.cycle.as_ref().map(|cycle| (cycle, &cycle.blame));
    let guilty = blame.and_then(|(_, blame)| Some(capture.steps.get(blame.step?)?.event.sequence));
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
        if let Some((cycle, blame)) = blame.filter(|_| guilty == Some(event.sequence)) {
            let guilty = anstyle::AnsiColor::Red.on_default().bold();
            write!(out, "  {guilty}<-- {} % of the cycle{guilty:#}", blame.percent(cycle))?;
            if let Some(Holder { slot, since_ns, until_ns, location }) = holder {
                let who = thread_of_slot(&snapshot.slots[*slot], names_process);
                let line = texts.line_of(locations.get(*location));
                let held = duration(until_ns.saturating_sub(*since_ns));
                write!(out, ": {who} held the lock for {held}, {line}")?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}
