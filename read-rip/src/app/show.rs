//! The condensed view, the per-thread view, and `info`. It formats nothing: `report` does.

use std::io::Write;

use super::error::AppError;
use super::output::{now_ns, output, prose, remark};
use super::reading::Reading;
use crate::cli::{Common, RingArgs, ShowArgs};
use crate::events::{self, Event};
use crate::locations::{FileNames, Guards, LocationId, Locations};
use crate::report::{self, Json, printable};
use crate::ring::Slot;
use crate::threads::{self, Thread, ThreadState};

/// What the heading adds to the number of exited threads.
const SHOWN_WITH_TV: &str = " (-tv shows them)";

/// `read-rip [RING]`.
pub(super) fn show(ring: &RingArgs, args: &ShowArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(ring, wanted)?;
    let mut reading = Reading::of(&path, wanted)?;
    // The condensed view names no threads.
    if args.threads || args.r#match.is_some() {
        reading = reading.with_present_names();
    }
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let threads = reading.threads();
    let remarks = if args.threads {
        show_threads(args, wanted, &reading, &threads, &mut locations)?
    } else {
        show_condensed(args, wanted, &reading, &threads, &mut locations)?
    };
    let status = reading.remarks(wanted, &locations, &remarks)?;
    if !args.threads && !wanted.json && args.r#match.is_none() {
        // The view is complete, and its memory is not needed any more.
        let count = threads.len();
        drop(threads);
        drop(locations);
        drop(reading);
        if let Some(verdict) = super::verdict::verdict(&path, count, ring, wanted)? {
            let mut out = prose(wanted);
            writeln!(out, "{}", printable(&verdict))?;
            out.flush()?;
        }
    }
    Ok(status)
}

/// `read-rip info`.
pub(super) fn info(ring: &RingArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(ring, wanted)?;
    let reading = Reading::of(&path, wanted)?;
    let mut out = output(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        json.ring(&path, &reading.snapshot, reading.liveness.as_ref(), &reading.losses)?;
        json.info(&reading.snapshot)?;
    } else {
        let liveness = reading.liveness.as_ref();
        report::info(&mut out, &path, &reading.snapshot, liveness, &reading.losses, now_ns())?;
    }
    out.flush()?;
    drop(out);
    reading.report_defects(wanted)
}

fn show_condensed(
    args: &ShowArgs,
    wanted: &Common,
    reading: &Reading,
    threads: &[Thread<'_>],
    locations: &mut Locations<'_>,
) -> Result<Vec<String>, AppError> {
    let mut last = Vec::with_capacity(threads.len());
    let mut silent = 0;
    for thread in threads.iter().filter(|thread| thread.state != ThreadState::Exited) {
        let slot = thread.slot;
        match events::last_event(slot, |pc| locations.operand_words(slot.pid, pc)) {
            Some(event) => last.push((thread, last_location(slot, &event, locations))),
            None => silent += 1,
        }
    }
    let names = FileNames::choose(locations.iter());
    let texts = report::location_texts(locations, &names, args.verbose);
    last.retain(|&(thread, location)| is_wanted(args, thread, Some(location), locations, &texts));
    let last: Vec<(u32, LocationId)> =
        last.iter().map(|&(thread, location)| (thread.slot.tid, location)).collect();
    let groups = threads::condense(&last, locations);
    let mut out = prose(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        json.ring(&reading.path, &reading.snapshot, reading.liveness.as_ref(), &reading.losses)?;
        for group in &groups {
            json.group(group, locations, &reading.snapshot)?;
        }
    } else {
        writeln!(out, "{}", reading.heading_with(threads, SHOWN_WITH_TV))?;
        report::condensed(&mut out, &groups, locations, &texts, args.verbose)?;
    }
    out.flush()?;
    Ok(report::remarks::of_silent(silent).into_iter().collect())
}

/// The location of a slot's last event.
fn last_location(slot: &Slot, last: &Event, locations: &mut Locations<'_>) -> LocationId {
    let location = locations.find(slot, last);
    if !locations.get(location).is_in_wrapper {
        return location;
    }
    // The release of a guard: the acquisition is among the events before.
    let (events, _) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
    let mut guards = Guards::default();
    let in_order = events.iter().map(|event| guards.find(slot, event, locations));
    in_order.last().unwrap_or(location)
}

fn show_threads(
    args: &ShowArgs,
    wanted: &Common,
    reading: &Reading,
    threads: &[Thread<'_>],
    locations: &mut Locations<'_>,
) -> Result<Vec<String>, AppError> {
    let shown = || threads.iter().filter(|thread| args.verbose || thread.state != ThreadState::Exited);
    // Events are decoded twice: first to find all locations, whose short names depend on one another, then to show
    // them. Keeping all events would take several times the memory of the ring.
    let mut leftover = events::Leftover::default();
    for thread in shown() {
        let (events, of_thread) =
            events::events(thread.slot, |pc| locations.operand_words(thread.slot.pid, pc));
        leftover.incomplete_events += of_thread.incomplete_events;
        leftover.stray_operands += of_thread.stray_operands;
        let mut guards = Guards::default();
        for event in events {
            guards.find(thread.slot, &event, locations);
            if args.verbose || wanted.json {
                locations.find_lock(thread.slot, &event);
            }
        }
    }
    let names = FileNames::choose(locations.iter());
    let texts = report::location_texts(locations, &names, args.verbose);
    let mut out = output(wanted);
    if wanted.json {
        Json(&mut out).ring(&reading.path, &reading.snapshot, reading.liveness.as_ref(), &reading.losses)?;
    } else {
        // Scripts read these lines, one a thread: what precedes them is no result.
        remark(reading.heading_with(threads, SHOWN_WITH_TV));
    }
    for thread in shown() {
        let (events, _) = events::events(thread.slot, |pc| locations.operand_words(thread.slot.pid, pc));
        let mut guards = Guards::default();
        let events: Vec<(Event, LocationId)> = events
            .into_iter()
            .map(|event| {
                let location = guards.find(thread.slot, &event, locations);
                (event, location)
            })
            .collect();
        let last = events.last().map(|&(_, location)| location);
        if !is_wanted(args, thread, last, locations, &texts) {
            continue;
        }
        if wanted.json {
            Json(&mut out).thread(thread, &events, locations, &reading.snapshot, reading.now_ns)?;
        } else {
            let mask = reading.snapshot.sequence_mask;
            report::thread(&mut out, thread, &events, locations, &texts, mask, reading.now_ns)?;
        }
    }
    out.flush()?;
    Ok(report::remarks::of_leftover(&leftover))
}

/// Whether `--match` lets a thread through.
fn is_wanted(
    args: &ShowArgs,
    thread: &Thread<'_>,
    last: Option<LocationId>,
    locations: &Locations<'_>,
    texts: &report::LocationTexts<'_>,
) -> bool {
    let Some(pattern) = &args.r#match else { return true };
    let name = format!("{}[{}]", thread.slot.name, thread.slot.tid);
    pattern.is_match(&name)
        || last.is_some_and(|location| {
            let location = locations.get(location);
            pattern.is_match(&location.function) || pattern.is_match(&texts.of(location))
        })
}
