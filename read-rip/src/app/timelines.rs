//! What threads logged and did in a time that the user wants: events, spans, waits and holds. It draws nothing.

use std::collections::{HashMap, HashSet};

use read_rip_case::{Options, Reading};
use read_rip_export::{self as export, Logged, LoggedKind, Timeline};
use read_rip_model::findings::Pasts;
use read_rip_model::locations::{Limits, Locations};
use read_rip_model::locks::{LockModel, ThreadId};
use read_rip_model::log::{self, CycleStepKind, Entry, EntryKind, Span};
use read_rip_report as report;
use read_rip_ring::Slot;
use read_rip_ring::events::{self, Event};

/// What all threads said in that time, ordered by slots. Their words are still there.
pub(super) fn logged(reading: &Reading, limits: Limits, options: &Options) -> Vec<Logged> {
    let snapshot = &reading.snapshot;
    let mut locations = Locations::new(snapshot, reading.resolver(options));
    let slots = || snapshot.all_recorded();
    let (mut entries, _) = log::entries(snapshot, slots(), &locations, reading.horizon());
    entries.retain(|entry| limits.has(&entry.when));
    let mut spans = log::spans(snapshot, &entries, slots(), &mut locations, reading.now_ns);
    for span in &mut spans {
        span.open.retain(|open| limits.overlap(open.since_ns, reading.now_ns));
    }
    let mut logged = logged_in(reading, entries.iter(), &spans, &mut locations);
    logged.extend(kept(reading, limits, &mut locations));
    logged.sort_by_key(|logged| logged.slot);
    logged
}

/// What captures have and the histories of their threads do not have any more: events, spans, waits, and the slow
/// cycles themselves. A capture whose thread has no slot any more has no timeline, and is left out.
pub(super) fn kept(reading: &Reading, limits: Limits, locations: &mut Locations<'_>) -> Vec<Logged> {
    let snapshot = &reading.snapshot;
    let owner = |slot: &Slot| (slot.pid, slot.tid, slot.claimed_boottime_ns);
    let owners: HashMap<_, usize> =
        snapshot.slots.iter().enumerate().map(|(index, slot)| (owner(slot), index)).collect();
    // Two captures may have the same events.
    let mut seen = HashSet::new();
    let mut logged = Vec::new();
    for capture in log::captures(snapshot, locations, reading.now_ns) {
        let kept = &snapshot.captures[capture.index];
        let Some(&slot) = owners.get(&owner(kept)) else { continue };
        let in_history = snapshot.slots[slot].words_from;
        let mut is_new = |event: &Event| {
            let first = event.sequence - event.operands.len() as u64;
            first < in_history && seen.insert((slot, event.sequence))
        };
        let overlap = |from_ns, to_ns| limits.overlap(Some(from_ns), Some(to_ns));
        let (events, _) = events::events(kept, |pc| locations.operand_words(kept.pid, pc));
        for event in &events {
            let Some(EntryKind::Event(level)) = log::kind_of(kept, event, locations, None, None) else {
                continue;
            };
            let at_ns = locations.time_of(kept, event, reading.now_ns);
            if !is_new(event) || !limits.overlap(at_ns, at_ns) {
                continue;
            }
            let text = {
                let found = locations.find(kept, event);
                log::text(EntryKind::Event(level), kept, event, locations.get(found), locations)
            };
            let place = place(kept, event, locations);
            logged.push(Logged { slot, text, place, kind: LoggedKind::Event(at_ns), usage: None });
        }
        if let Some(cycle) = &capture.cycle
            && let Some((begin_ns, end_ns)) = cycle.times_ns
            && let Some(last) = events.last()
            && overlap(begin_ns, end_ns)
        {
            let text = format!("slow cycle: {}{}", cycle.name, report::causes_in_short(&cycle.causes));
            let kind = LoggedKind::Span(Some((begin_ns, end_ns)));
            logged.push(Logged { slot, text, place: place(kept, last, locations), kind, usage: None });
        }
        for step in &capture.steps {
            let (begin_ns, end_ns) = (step.begin_ns, step.end_ns);
            if !overlap(begin_ns, end_ns) || !is_new(&step.event) {
                continue;
            }
            let (text, kind) = match &step.kind {
                CycleStepKind::Span(name) => (name.clone(), LoggedKind::Span(Some((begin_ns, end_ns)))),
                CycleStepKind::Wait(lock) => {
                    let name = locations.lock_name(kept.pid, *lock);
                    let name = name.map_or_else(|| format!("lock {lock:#x}"), str::to_owned);
                    (name, LoggedKind::Wait(begin_ns, end_ns))
                }
                CycleStepKind::Outside | CycleStepKind::Overwritten => continue,
            };
            logged.push(Logged { slot, text, place: place(kept, &step.event, locations), kind, usage: None });
        }
    }
    logged
}

/// `file:line` of an event, as the compiler knew it.
fn place(slot: &Slot, event: &Event, locations: &mut Locations<'_>) -> String {
    let id = locations.find(slot, event);
    let source = locations.get(id).source.as_ref();
    source.map_or_else(String::new, |(file, line)| format!("{file}:{line}"))
}

/// What these entries say, and the open ones of these spans, ordered by slots.
pub(super) fn logged_in<'e>(
    reading: &Reading,
    entries: impl Iterator<Item = &'e Entry>,
    spans: &[Span],
    locations: &mut Locations<'_>,
) -> Vec<Logged> {
    let mut logged = Vec::new();
    for entry in entries {
        let kind = match (entry.kind, entry.when.time_ns) {
            (EntryKind::Event(_), at_ns) => LoggedKind::Event(at_ns),
            (EntryKind::End(Some(took_ns)), Some(end_ns)) => {
                LoggedKind::Span(Some((end_ns.saturating_sub(took_ns), end_ns)))
            }
            (EntryKind::End(_), _) => LoggedKind::Span(None),
            (EntryKind::Begin, _) => continue,
        };
        let slot = reading.snapshot.recorded(entry.slot);
        let location = locations.find(slot, &entry.event);
        let text = log::text(entry.kind, slot, &entry.event, locations.get(location), locations);
        let place = place(slot, &entry.event, locations);
        logged.push(Logged { slot: entry.slot, text, place, kind, usage: entry.usage.clone() });
    }
    for span in spans {
        logged.extend(span.open.iter().map(|open| Logged {
            slot: open.slot,
            text: span.name.clone(),
            place: format!("{}:{}", span.place.0, span.place.1),
            kind: LoggedKind::Open(open.since_ns),
            usage: None,
        }));
    }
    logged.sort_by_key(|logged| logged.slot);
    logged
}

/// The timelines of the threads and tasks that matter most, these first, and who is left out.
pub(super) fn timelines(
    model: &LockModel,
    logged: &[Logged],
    limits: Limits,
    most: usize,
) -> (Vec<(ThreadId, Timeline)>, Vec<ThreadId>) {
    let mut all = all_timelines(model, logged, limits);
    let left_out = choose(&mut all, model, most);
    (all, left_out)
}

/// The timelines of all threads, in the order of the model.
pub(super) fn all_timelines(
    model: &LockModel,
    logged: &[Logged],
    limits: Limits,
) -> Vec<(ThreadId, Timeline)> {
    let has_waiters = |&lock: &usize| !model.locks[lock].waiters.is_empty();
    let pasts = Pasts::of(model, (0..model.locks.len()).filter(has_waiters));
    let of = |id: ThreadId| {
        let logged = export::of_slot(logged, model.threads[id].slot);
        let mut timeline = Timeline::of(id, logged, model);
        timeline.add_earlier_holds(id, model, &pasts);
        timeline.slices.retain(|slice| limits.overlap(Some(slice.begin_ns), Some(slice.end_ns)));
        (id, timeline)
    };
    (0..model.threads.len()).map(of).collect()
}

/// Keeps the threads and tasks that matter most, and puts these first. Returns those that are left out.
pub(super) fn choose(
    threads: &mut Vec<(ThreadId, Timeline)>,
    model: &LockModel,
    most: usize,
) -> Vec<ThreadId> {
    let is_involved = |id: ThreadId| {
        let thread = &model.threads[id];
        let is_wanted = |hold: &read_rip_model::locks::Hold| !model.locks[hold.lock].waiters.is_empty();
        (thread.holds.iter().any(is_wanted), thread.is_blocked())
    };
    threads.sort_by_key(|(id, timeline)| std::cmp::Reverse((is_involved(*id), timeline.slices.len())));
    let kept = most.min(threads.len());
    threads.drain(kept..).map(|(id, _)| id).collect()
}
