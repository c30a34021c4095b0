//! The condensed view, the per-thread view, and `info`.

use std::io::Write;

use super::error::AppError;
use super::reading::{Reading, agreeing};
use super::{now_ns, output, remark};
use crate::analyse::{self, Thread, ThreadState};
use crate::cli::{Common, RingArgs, View};
use crate::decode::{self, Event};
use crate::places::{FileNames, PlaceId, Places};
use crate::report::{self, Json};

/// What the heading says of threads that have exited.
const SHOWN_WITH_TV: &str = " (-tv shows those too)";

/// `read-rip [RING]`.
pub(super) fn show(ring: &RingArgs, view: &View, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(ring, &wanted.dir)?;
    let reading = Reading::of(&path, wanted)?;
    let mut places = Places::new(&reading.snapshot, reading.resolver(wanted));
    let threads = reading.threads();
    let remarks = if view.threads {
        show_threads(view, wanted, &reading, &threads, &mut places)?
    } else {
        show_condensed(view, wanted, &reading, &threads, &mut places)?
    };
    reading.remarks(wanted, &places, &remarks)
}

/// `read-rip info`.
pub(super) fn info(ring: &RingArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(ring, &wanted.dir)?;
    let reading = Reading::of(&path, wanted)?;
    let mut out = output(wanted);
    if wanted.json {
        Json(&mut out).ring(&path, &reading.snapshot, reading.life.as_ref(), &reading.losses)?;
    } else {
        let life = reading.life.as_ref();
        report::info(&mut out, &path, &reading.snapshot, life, &reading.losses, now_ns())?;
    }
    out.flush()?;
    drop(out);
    reading.report_defects(wanted)
}

fn show_condensed(
    view: &View,
    wanted: &Common,
    reading: &Reading,
    threads: &[Thread<'_>],
    places: &mut Places<'_>,
) -> Result<Vec<String>, AppError> {
    let mut last = Vec::with_capacity(threads.len());
    let mut silent = 0;
    for thread in threads.iter().filter(|thread| thread.state != ThreadState::Exited) {
        let slot = thread.slot;
        match decode::last_event(slot, |pc| places.operand_words(slot.pid, pc)) {
            Some(event) => last.push((thread, places.find(slot, &event))),
            None => silent += 1,
        }
    }
    let names = FileNames::choose(places.iter());
    let locations = report::location(places, &names, view.verbose);
    last.retain(|&(thread, place)| is_wanted(view, thread, Some(place), places, &locations));
    let last: Vec<(u32, PlaceId)> = last.iter().map(|&(thread, place)| (thread.slot.tid, place)).collect();
    let groups = analyse::condense(&last, places);
    let mut out = output(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        json.ring(&reading.path, &reading.snapshot, reading.life.as_ref(), &reading.losses)?;
        for group in &groups {
            json.group(group, places, &reading.snapshot)?;
        }
    } else {
        remark(reading.heading_with(threads, SHOWN_WITH_TV));
        report::condensed(&mut out, &groups, places, &locations, view.verbose)?;
    }
    out.flush()?;
    let mut remarks = Vec::new();
    if silent > 0 {
        remarks.push(format!("{} no mark that is known.", agreeing(silent, "thread", "has", "have")));
    }
    Ok(remarks)
}

fn show_threads(
    view: &View,
    wanted: &Common,
    reading: &Reading,
    threads: &[Thread<'_>],
    places: &mut Places<'_>,
) -> Result<Vec<String>, AppError> {
    let shown = || threads.iter().filter(|thread| view.verbose || thread.state != ThreadState::Exited);
    // Once for the places, which decide how each is called, and once to show them: all events at a time would take
    // several times the ring's memory.
    let mut incomplete = decode::Leftover::default();
    for thread in shown() {
        let (events, leftover) = decode::events(thread.slot, |pc| places.operand_words(thread.slot.pid, pc));
        incomplete.incomplete_events += leftover.incomplete_events;
        incomplete.stray_operands += leftover.stray_operands;
        for event in events {
            places.find(thread.slot, &event);
        }
    }
    let names = FileNames::choose(places.iter());
    let locations = report::location(places, &names, view.verbose);
    let mut out = output(wanted);
    if wanted.json {
        Json(&mut out).ring(&reading.path, &reading.snapshot, reading.life.as_ref(), &reading.losses)?;
    } else {
        remark(reading.heading_with(threads, SHOWN_WITH_TV));
    }
    for thread in shown() {
        let (events, _) = decode::events(thread.slot, |pc| places.operand_words(thread.slot.pid, pc));
        let events: Vec<(Event, PlaceId)> = events
            .into_iter()
            .map(|event| {
                let place = places.find(thread.slot, &event);
                (event, place)
            })
            .collect();
        let last = events.last().map(|&(_, place)| place);
        if !is_wanted(view, thread, last, places, &locations) {
            continue;
        }
        if wanted.json {
            Json(&mut out).thread(thread, &events, places, &reading.snapshot)?;
        } else {
            let mask = reading.snapshot.sequence_mask;
            report::thread(&mut out, thread, &events, places, &locations, mask)?;
        }
    }
    out.flush()?;
    let mut remarks = Vec::new();
    if incomplete != decode::Leftover::default() {
        remarks.push(format!(
            "{} operands, {} to none.",
            agreeing(incomplete.incomplete_events, "event", "misses", "miss"),
            agreeing(incomplete.stray_operands, "operand", "belongs", "belong")
        ));
    }
    Ok(remarks)
}

/// Whether `--match` lets a thread through.
fn is_wanted(
    view: &View,
    thread: &Thread<'_>,
    last: Option<PlaceId>,
    places: &Places<'_>,
    locations: &report::Locations<'_>,
) -> bool {
    let Some(pattern) = &view.r#match else { return true };
    let name = format!("{}[{}]", thread.slot.name, thread.slot.tid);
    pattern.is_match(&name)
        || last.is_some_and(|place| {
            let place = places.get(place);
            pattern.is_match(&place.function) || pattern.is_match(&locations.of(place))
        })
}
