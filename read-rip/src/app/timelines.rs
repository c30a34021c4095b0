//! What threads logged and did in a time that the user wants: events, spans, waits and holds. It draws nothing.

use read_rip_case::{Options, Reading};
use read_rip_export::{self as export, Logged, LoggedKind, Timeline};
use read_rip_model::locations::{Limits, Locations};
use read_rip_model::locks::{LockModel, ThreadId};
use read_rip_model::log::{self, Entry, EntryKind, Span};

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
    logged_in(reading, entries.iter(), &spans, &mut locations)
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
        let place = locations.find(slot, &entry.event);
        let location = locations.get(place);
        let text = log::text(entry.kind, slot, &entry.event, location, locations);
        let place =
            location.source.as_ref().map_or_else(String::new, |(file, line)| format!("{file}:{line}"));
        logged.push(Logged { slot: entry.slot, text, place, kind });
    }
    for span in spans {
        logged.extend(span.open.iter().map(|open| Logged {
            slot: open.slot,
            text: span.name.clone(),
            place: format!("{}:{}", span.place.0, span.place.1),
            kind: LoggedKind::Open(open.since_ns),
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
    let of = |id: ThreadId| {
        let logged = export::of_slot(logged, model.threads[id].slot);
        let mut timeline = Timeline::of(id, logged, model);
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
