//! `read-rip export`: files for other programs.
//!
//! It chooses what they show, and where the file goes. It formats nothing.

use std::io::Write;

use super::bare::functions;
use super::check::Readings;
use super::error::AppError;
use super::limits::limits;
use super::output::{output, remark};
use super::reading::Reading;
use super::save::written;
use crate::cli::{Common, ExportArgs, ExportFormat};
use crate::export::{self, Said, SaidKind, Timeline};
use crate::locations::{FileNames, Limits, Locations};
use crate::locks::{LockModel, ThreadId};
use crate::log::{self, Entry, EntryKind, Span};
use crate::report::{self, LockNames, counted};

/// `read-rip export`.
pub(super) fn export(args: &ExportArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    let mut readings = Readings::at_present(&path, wanted)?;
    let limits = limits(&args.time, &readings.reading)?;
    let is_timeline = args.format == ExportFormat::Chrome;
    let said = if is_timeline { said(&readings.reading, limits, wanted) } else { Vec::new() };
    let words = readings.reading.snapshot.take_words();
    let reading = &readings.reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let model = readings.model_of(Limits::default(), words, &mut locations);
    let objects = reading.objects(&mut locations);
    let frames = match &reading.seen {
        Some(seen) if args.format == ExportFormat::Folded => {
            functions(seen.stacks.iter().map(|group| &group.stack), seen, &mut locations)
        }
        _ => report::StackFrames::default(),
    };
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, false);
    let seen = reading.seen_names(&objects);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen };
    let (mut threads, left_out) =
        if is_timeline { timelines(&model, &said, limits, args.threads) } else { (Vec::new(), 0) };
    threads.sort_by_key(|(id, _)| *id);
    let program = reading.program();
    let write = |out: &mut dyn Write| match args.format {
        ExportFormat::Chrome => export::chrome(out, &program, &names, &threads, &said),
        ExportFormat::Dot => export::dot(out, &names),
        ExportFormat::Folded => export::folded(out, &program, &names, &frames),
    };
    match &args.output {
        Some(target) => {
            written(target, write).map_err(|source| AppError::Export { path: target.clone(), source })?;
        }
        None => {
            let mut out = output(wanted);
            write(&mut out)?;
            out.flush()?;
        }
    }
    let mut remarks = Vec::new();
    if left_out > 0 {
        remarks.push(format!("{} left out: see --threads.", counted(left_out as u64, "thread")));
    }
    let undated: usize = threads.iter().map(|(_, timeline)| timeline.undated).sum::<usize>()
        + said.iter().filter(|said| said.kind == SaidKind::Event(None)).count();
    if undated > 0 {
        remarks.push(format!(
            "{} of waits, holds, spans and events have no time, and are not drawn; RIP_CLOCK=all gives each one.",
            undated
        ));
    }
    if let Some(target) = &args.output {
        remark(format_args!("Written to {}.", report::printable(&target.to_string_lossy())));
    }
    reading.remarks(wanted, &locations, &remarks)
}

/// What all threads said in that time, ordered by slots. Their words are still there.
fn said(reading: &Reading, limits: Limits, wanted: &Common) -> Vec<Said> {
    let snapshot = &reading.snapshot;
    let mut locations = Locations::new(snapshot, reading.resolver(wanted));
    let slots = || snapshot.all_recorded();
    let (mut entries, _) = log::entries(snapshot, slots(), &locations, reading.horizon());
    entries.retain(|entry| limits.has(&entry.when));
    let mut spans = log::spans(snapshot, &entries, slots(), &mut locations, reading.now_ns);
    for span in &mut spans {
        span.open.retain(|open| limits.overlap(open.since_ns, reading.now_ns));
    }
    said_in(reading, &entries, &spans, &mut locations)
}

/// What these entries say, and the open ones of these spans, ordered by slots.
pub(super) fn said_in(
    reading: &Reading,
    entries: &[Entry],
    spans: &[Span],
    locations: &mut Locations<'_>,
) -> Vec<Said> {
    let mut said = Vec::new();
    for entry in entries {
        let kind = match (entry.kind, entry.when.time_ns) {
            (EntryKind::Event(_), at_ns) => SaidKind::Event(at_ns),
            (EntryKind::End(Some(took_ns)), Some(end_ns)) => {
                SaidKind::Span(Some((end_ns.saturating_sub(took_ns), end_ns)))
            }
            (EntryKind::End(_), _) => SaidKind::Span(None),
            (EntryKind::Begin, _) => continue,
        };
        let slot = reading.snapshot.recorded(entry.slot);
        let place = locations.find(slot, &entry.event);
        let location = locations.get(place);
        let text = log::text(entry.kind, slot, &entry.event, location, locations);
        let place =
            location.source.as_ref().map_or_else(String::new, |(file, line)| format!("{file}:{line}"));
        said.push(Said { slot: entry.slot, text, place, kind });
    }
    for span in spans {
        said.extend(span.open.iter().map(|open| Said {
            slot: open.slot,
            text: span.name.clone(),
            place: format!("{}:{}", span.place.0, span.place.1),
            kind: SaidKind::Open(open.since_ns),
        }));
    }
    said.sort_by_key(|said| said.slot);
    said
}

/// The timelines of the threads that matter most, these first, and how many threads are left out.
pub(super) fn timelines(
    model: &LockModel,
    said: &[Said],
    limits: Limits,
    most: usize,
) -> (Vec<(ThreadId, Timeline)>, usize) {
    let of = |(id, thread): (ThreadId, _)| {
        let thread: &crate::locks::ThreadLocks = thread;
        let mut timeline = Timeline::of(thread, export::of_slot(said, thread.slot), model);
        timeline.slices.retain(|slice| limits.overlap(Some(slice.begin_ns), Some(slice.end_ns)));
        (id, timeline)
    };
    let is_involved = |id: ThreadId| {
        let thread = &model.threads[id];
        let is_wanted = |hold: &crate::locks::Hold| !model.locks[hold.lock].waiters.is_empty();
        (thread.holds.iter().any(is_wanted), thread.is_blocked())
    };
    let mut all: Vec<(ThreadId, Timeline)> = model.threads.iter().enumerate().map(of).collect();
    all.sort_by_key(|(id, timeline)| std::cmp::Reverse((is_involved(*id), timeline.slices.len())));
    let left_out = all.len().saturating_sub(most);
    all.truncate(most);
    (all, left_out)
}
