//! `read-rip captures`.
//!
//! ```text
//! worker[4712], kept 2026-11-23 14:02:07.018113 UTC
//!   14:02:07.000113 app.rs:12 "request 7"
//!   --:--:--.------ app.rs:14
//!   14:02:07.018101 app.rs:9 "serve: a cycle took 17988 us, more than 5000 us"
//! ```
//!
//! It orders and chooses nothing. It has the sentence for slow cycles that other commands show too.

use std::io::{self, Write};

use read_rip_model::locations::{Dated, Locations};
use read_rip_model::log::{Blame, CycleStepKind, SlowCycle, SlowCycles};
use read_rip_ring::{Slot, Snapshot};
use serde::Serialize;

use super::log::{NO_TIME, thread_of_slot, wall_clock};
use super::names::LockNames;
use super::printable::printable;
use super::threads::{said, word};
use super::units::{agree, duration};

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
        let (step_kind, step) = match &blame.kind {
            CycleStepKind::Span(name) => ("span", Some(name.clone())),
            CycleStepKind::Wait(lock) => ("lock", Some(lock_name(*pid, *lock, locations))),
            CycleStepKind::Outside => ("outside", None),
        };
        let cycles = agree(*count, "1 slow cycle was kept; it", "the worst");
        let cycles =
            if *count == 1 { cycles.to_owned() } else { format!("{count} slow cycles were kept; {cycles}") };
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
    let words = step_words(&blame.kind, pid, locations);
    let within = blame.within.as_ref().map_or_else(String::new, |name| format!(" in `{}`", printable(name)));
    format!("{} % {words}{within}", blame.percent(cycle))
}

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
