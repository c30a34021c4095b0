//! The condensed view, the per-thread view, and `info`. It formats nothing: `report` does.

use std::io::Write;

use foldhash::HashMap;
use read_rip_case::{Options, Reading, Subject, now_ns};
use read_rip_model::locations::{self, FileNames, Limits, LocationId, Locations};
use read_rip_model::locks::{self, LockModel};
use read_rip_model::threads::{self, Thread, ThreadState};
use read_rip_report::{self as report, Json, LockNames, Shown};
use read_rip_ring::events::{self, Event};
use read_rip_ring::{Slot, is_task};

use super::error::AppError;
use super::limits::limits;
use super::matching::Pattern;
use super::output::{View, prose, remark};
use super::remarks;
use crate::cli::{Common, RingArgs, ShowArgs};

/// What the heading adds to the number of exited threads.
const SHOWN_WITH_TV: &str = " (-tv shows them)";

/// `read-rip [RING]`.
pub(super) fn show(ring: &RingArgs, args: &ShowArgs, common: &Common) -> Result<u8, AppError> {
    show_subject(&super::rings::choose(ring, common)?, ring, args, common)
}

/// The same for what was chosen.
pub(super) fn show_subject(
    subject: &Subject,
    ring: &RingArgs,
    args: &ShowArgs,
    common: &Common,
) -> Result<u8, AppError> {
    if !subject.is_ring() {
        if args.time.is_limited() {
            return Err(AppError::NoTimes { path: subject.path().into_owned() });
        }
        return super::unrecorded::show(subject, ring, args, common);
    }
    let options = Options { stops_threads: args.stop.stop, ..common.options() };
    let mut reading = match args.threads {
        true => Reading::with_process(subject, &options)?,
        false => Reading::of(subject, &options)?,
    };
    // The condensed view names no threads.
    if args.threads || args.r#match.is_some() {
        reading = reading.with_present_names();
    }
    let limits = limits(&args.time, &reading)?;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(&options));
    let threads = reading.threads();
    let remarks = if args.threads {
        show_threads(args, common, &reading, limits, &threads, &mut locations)?
    } else {
        show_condensed(args, common, &reading, limits, &threads, &mut locations)?
    };
    let status = remarks::write(&reading, common, &locations, &remarks)?;
    if !args.threads && !common.json && args.r#match.is_none() && !limits.is_limited() {
        // The view is complete, and its memory is not needed any more.
        let count = threads.len();
        drop(threads);
        drop(locations);
        drop(reading);
        let mut out = prose(common);
        super::verdict::verdict(&mut out, subject, count, ring, &options)?;
        out.flush()?;
    }
    Ok(status)
}

/// `read-rip info`.
pub(super) fn info(ring: &RingArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(ring, common)?;
    let path = subject.path().into_owned();
    let reading = match subject {
        Subject::Core(_) => return Err(AppError::NotForCores { path }),
        Subject::Process(_) => return Err(AppError::NoEvents { path }),
        subject => Reading::of(&subject, &common.options())?,
    };
    let mut out = prose(common);
    if common.json {
        let mut json = Json(&mut out);
        reading.write_ring(&mut json)?;
        json.info(&reading.snapshot)?;
    } else {
        let liveness = reading.liveness.as_ref();
        let program = reading.program();
        report::info(&mut out, &path, &program, &reading.snapshot, liveness, &reading.losses, now_ns())?;
    }
    out.flush()?;
    drop(out);
    remarks::report_defects(&reading, common)
}

fn show_condensed(
    args: &ShowArgs,
    common: &Common,
    reading: &Reading,
    limits: Limits,
    threads: &[Thread<'_>],
    locations: &mut Locations<'_>,
) -> Result<Vec<String>, AppError> {
    let mut last = Vec::with_capacity(threads.len());
    let (mut silent, mut left_out) = (0, 0);
    // `read-rip tasks` shows the tasks.
    let is_thread = |thread: &&Thread<'_>| !is_task(thread.slot.tid);
    for thread in threads.iter().filter(is_thread).filter(|thread| thread.state != ThreadState::Exited) {
        let slot = thread.slot;
        if limits.is_limited() {
            let (events, _) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
            let whens = locations::whens(slot, events.iter(), locations, reading.horizon());
            if whens.last().is_some_and(|last| !limits.has(last)) {
                left_out += 1;
                continue;
            }
        }
        match events::last_event(slot, |pc| locations.operand_words(slot.pid, pc)) {
            Some(event) => last.push((thread, last_location(slot, &event, locations))),
            None => silent += 1,
        }
    }
    let names = FileNames::choose(locations.iter());
    let texts = report::location_texts(locations, names, args.verbose);
    let processes = reading.processes(threads, SHOWN_WITH_TV);
    let matching =
        args.r#match.as_ref().map(|pattern| Pattern { pattern, names_process: processes.len() > 1 });
    last.retain(|&(thread, location)| {
        matching.as_ref().is_none_or(|of| of.has_slot(thread.slot, Some(location), locations, &texts))
    });
    let mut by_process: HashMap<u32, Vec<(u32, LocationId)>> = HashMap::default();
    for (thread, location) in last {
        by_process.entry(thread.slot.pid).or_default().push((thread.slot.tid, location));
    }
    let mut out = View::new(common);
    if common.json {
        reading.write_ring(&mut Json(&mut out))?;
    }
    for process in &processes {
        let last = by_process.remove(&process.pid).unwrap_or_default();
        // If nothing matches in a process, it is mentioned only if the ring is its own.
        if last.is_empty() && args.r#match.is_some() && process.pid != processes[0].pid {
            continue;
        }
        let groups = threads::condense(&last, locations);
        if common.json {
            for group in &groups {
                Json(&mut out).group(process.pid, group, locations, &reading.snapshot)?;
            }
        } else {
            writeln!(out, "{}", process.heading)?;
            report::condensed(&mut out, &groups, locations, &texts, args.verbose)?;
        }
    }
    out.end()?;
    let has_tasks = threads.iter().any(|thread| is_task(thread.slot.tid));
    let of_tasks = has_tasks.then(|| "`read-rip tasks` shows the tasks.".to_owned());
    let remarks =
        [report::remarks::of_silent(silent), report::remarks::of_threads_left_out(left_out), of_tasks];
    Ok(remarks.into_iter().flatten().collect())
}

/// The location of a slot's last event.
pub(super) fn last_location(slot: &Slot, last: &Event, locations: &mut Locations<'_>) -> LocationId {
    let location = locations.find(slot, last);
    if !locations.get(location).is_in_wrapper {
        return location;
    }
    // The release of a guard: the acquisition is among the events before.
    locations::history(slot, locations).0.last().map_or(location, |&(_, last)| last)
}

fn show_threads(
    args: &ShowArgs,
    common: &Common,
    reading: &Reading,
    limits: Limits,
    threads: &[Thread<'_>],
    locations: &mut Locations<'_>,
) -> Result<Vec<String>, AppError> {
    let is_shown = |thread: &&Thread<'_>| args.verbose || thread.state != ThreadState::Exited;
    // Events are decoded twice: first to find all locations, whose short names depend on one another, then to show
    // them. Keeping all events would take several times the memory of the ring.
    let mut leftover = events::Leftover::default();
    for thread in threads.iter().filter(is_shown) {
        let (events, of_thread) = locations::history(thread.slot, locations);
        leftover += of_thread;
        if args.verbose || common.json {
            events.iter().for_each(|(event, _)| locations.find_lock(thread.slot, event));
        }
    }
    let mut model = LockModel::default();
    locks::observe_all(&mut model, reading.standings(), locations);
    let objects = reading.objects(locations);
    let seen = reading.seen_names(&objects);
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(locations, files, args.verbose);
    let mut out = View::new(common);
    if common.json {
        reading.write_ring(&mut Json(&mut out))?;
    }
    let processes = reading.processes(threads, SHOWN_WITH_TV);
    let matching =
        args.r#match.as_ref().map(|pattern| Pattern { pattern, names_process: processes.len() > 1 });
    let mut left_out = 0;
    for process in &processes {
        if !common.json {
            // Scripts read these lines, one a thread: what precedes them is no result.
            out.flush()?;
            remark(&process.heading);
        }
        for thread in process.threads.iter().filter(is_shown) {
            let (mut events, _) = locations::dated_history(thread.slot, locations, reading.horizon());
            events.retain(|dated| limits.has(&dated.when));
            let exited_ns = locations::exited_ns(thread.slot);
            let has_exit = limits.overlap(exited_ns, exited_ns) && thread.state == ThreadState::Exited;
            if limits.is_limited() && events.is_empty() && !has_exit {
                left_out += 1;
                continue;
            }
            let last = events.last().map(|dated| dated.location);
            if matching.as_ref().is_some_and(|of| !of.has_slot(thread.slot, last, locations, &texts)) {
                continue;
            }
            let names = LockNames { model: &model, locations, texts: &texts, seen };
            if common.json {
                Json(&mut out).thread(thread, &events, &names, &reading.snapshot, reading.now_ns)?;
            } else {
                let mask = reading.snapshot.sequence_mask;
                let shown = Shown { thread, events: &events, has_exit };
                report::thread(&mut out, &shown, &names, mask, reading.horizon())?;
            }
        }
    }
    out.end()?;
    let mut remarks = report::remarks::of_leftover(&leftover);
    remarks.extend(report::remarks::of_threads_left_out(left_out));
    Ok(remarks)
}
