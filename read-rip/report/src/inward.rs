//! Where threads are that only the runtime of their language could judge.

use std::collections::BTreeMap;

use read_rip_evidence::runtimes::{InnerHold, InnerTasks, SourceFrame};
use read_rip_evidence::standing::Inward;
use read_rip_model::locations::LocationId;

use super::names::LockNames;
use super::units::{agree, counted};
use crate::printable;

/// At most this many places are listed.
const PLACES_MAX: usize = 8;

/// A line for each thing that threads do in their runtime, with the places.
pub(super) fn inward(names: &LockNames<'_>) -> Vec<String> {
    let mut all: BTreeMap<Inward, (usize, Vec<LocationId>)> = BTreeMap::new();
    for seen in names.model.threads.iter().filter_map(|thread| thread.seen) {
        if let Some(inward) = seen.inward {
            let (count, places) = all.entry(inward).or_default();
            *count += 1;
            places.extend(seen.place.filter(|place| !places.contains(place)));
        }
    }
    let line = |(inward, (count, places)): (Inward, (usize, Vec<LocationId>))| {
        let threads = counted(count as u64, "thread");
        let what = match inward {
            Inward::WaitsForLock => format!(
                "{threads} {} for {} that {} not store {} holder",
                agree(count, "waits", "wait"),
                agree(count, "a lock", "locks"),
                agree(count, "does", "do"),
                agree(count, "its", "their")
            ),
            Inward::RunsLoop => {
                format!("{threads} {} an event loop, whose tasks are not seen", agree(count, "runs", "run"))
            }
        };
        let mut at: Vec<String> =
            places.iter().take(PLACES_MAX).map(|&place| names.location(place).to_string()).collect();
        if places.len() > PLACES_MAX {
            at.push(counted((places.len() - PLACES_MAX) as u64, "more place"));
        }
        if at.is_empty() { what } else { format!("{what}: {}", at.join("; ")) }
    };
    all.into_iter().map(line).chain(in_blocks(names)).chain(goroutines(names)).collect()
}

/// A line for each thread that alone is in a block of its language on a lock for which others wait, or owns that lock.
fn in_blocks(names: &LockNames<'_>) -> Vec<String> {
    let Some(seen) = names.seen.map(|seen| seen.standings) else { return Vec::new() };
    let Some(interior) = &seen.interior else { return Vec::new() };
    let awaited = |thread: usize| {
        let waits = seen.inward(thread) == Some(Inward::WaitsForLock);
        interior.holder(seen.threads[thread].wait.as_ref().filter(|_| waits)?.futex)
    };
    let mut holds: Vec<&InnerHold> = (0..seen.threads.len()).filter_map(awaited).collect();
    holds.sort_unstable_by_key(|hold| (hold.tid, hold.word));
    holds.dedup_by_key(|hold| (hold.tid, hold.word));
    let line = |hold: &&InnerHold| {
        let task = seen.target.tasks.iter().find(|task| task.own_tid == hold.tid);
        let thread = task.map_or("thread", |task| &task.name);
        let has = if hold.is_stored { "owns one of them" } else { "is in a `with` block on one of them" };
        let at = hold.at.as_ref().map(|at| format!(": {}", place(at))).unwrap_or_default();
        format!("{}[{}] {has}{at}", printable(thread), hold.tid)
    };
    let mut lines: Vec<String> = holds.iter().take(PLACES_MAX).map(line).collect();
    if holds.len() > PLACES_MAX {
        lines.push(counted((holds.len() - PLACES_MAX) as u64, "more thread"));
    }
    lines
}

fn place(of: &SourceFrame) -> String {
    let file = of.file.rsplit('/').next().unwrap_or_default();
    let line = of.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{} {}{line}", printable(&of.function), printable(file))
}

/// A line for each group of goroutines.
fn goroutines(names: &LockNames<'_>) -> Vec<String> {
    let Some(seen) = names.seen.map(|seen| seen.standings) else { return Vec::new() };
    let is_for_naught = seen.interior.is_none() && seen.target.hidden.is_none();
    if let Some(runtime) = seen.runtime.filter(|runtime| is_for_naught && runtime.has_interior()) {
        return vec![format!(
            "the {} in it is of a version that read-rip does not understand",
            runtime.name()
        )];
    }
    let tasks = seen.interior.as_ref().map_or(&[][..], |interior| &interior.tasks);
    let line = |of: &InnerTasks| {
        let at = of.at.as_ref().map(|at| format!(" at {}", place(at))).unwrap_or_default();
        let made: Vec<String> = of.made_at.iter().map(place).collect();
        let made = if made.is_empty() { String::new() } else { format!(", made at {}", made.join(" or ")) };
        format!("{}: {}{at}{made}", counted(of.count as u64, "goroutine"), printable(&of.state))
    };
    let mut lines: Vec<String> = tasks.iter().take(PLACES_MAX).map(line).collect();
    let more: usize = tasks.iter().skip(PLACES_MAX).map(|of| of.count).sum();
    if more > 0 {
        lines.push(counted(more as u64, "more goroutine"));
    }
    lines
}
