//! `read-rip diff`: what has changed between two readings, and what has not. It formats nothing.
//!
//! It compares threads, locks and places of two readings of one process, and only places of two processes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::io::Write;

use read_rip_case::{Options, Reading, Subject};
use read_rip_model::locations::{FileNames, LocationId, Locations};
use read_rip_model::locks::{self, Hold, LockModel, Overview};
use read_rip_model::threads::{self, Thread, ThreadState};
use read_rip_report::{self as report, Json, LockNames, PlaceChange};
use read_rip_ring::events;
use read_rip_ring::is_task;
use read_rip_symbols::Resolver;

use super::error::AppError;
use super::output::{prose, remark};
use super::remarks;
use super::show::last_location;
use crate::cli::{Common, DiffArgs, RingArgs};

/// `read-rip diff`.
pub(super) fn diff(args: &DiffArgs, common: &Common) -> Result<u8, AppError> {
    let options = common.options();
    let (earlier, later) = read(args, &options, common)?;
    let is_one_process = is_same(&earlier, &later);
    if !is_one_process {
        remark("The readings are of two processes: read-rip compares places, and neither threads nor locks.");
    }
    let between_ns = is_one_process.then(|| later.now_ns?.checked_sub(earlier.now_ns?)).flatten();
    let (before, after) = (earlier.threads(), later.threads());
    let has_tasks = before.iter().chain(&after).any(|thread| is_task(thread.slot.tid));
    let mut of_earlier = Locations::new(&earlier.snapshot, earlier.resolver(&options));
    let places = places(&before, &mut of_earlier);
    let mut locations = Locations::new(&later.snapshot, later.resolver(&options));
    let changes = changes(places, self::places(&after, &mut locations), args.verbose);
    let difference = is_one_process.then(|| threads::difference(&before, &after));
    let mut model = LockModel::default();
    let mut overview = Overview::default();
    if let Some(difference) = &difference {
        let still: HashSet<usize> = difference.still.iter().map(|thread| thread.position).collect();
        let before = holds(&earlier);
        model = locks::build(&later.input(None), &mut locations);
        overview = locks::overview(&model, true, true);
        let is_kept = |hold: &Hold| before.contains(&key(&model, hold)) && has_kept(&model, hold, &still);
        overview.locks.retain(|lock| model.locks[lock.lock].holders.iter().any(is_kept));
    }
    let still = difference.as_ref().map_or(&[][..], |difference| &difference.still);
    let last: Vec<_> =
        last(still, &mut locations).map(|(thread, location)| (thread.slot.tid, location)).collect();
    let groups = threads::condense(&last, &locations);
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, files, args.verbose);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen: None };
    let mut out = prose(common);
    if common.json {
        let mut json = Json(&mut out);
        earlier.write_ring(&mut json)?;
        later.write_ring(&mut json)?;
        json.difference(difference.as_ref(), between_ns, &changes)?;
        for group in &groups {
            json.group(later.pid().unwrap_or_default(), group, &locations, &later.snapshot)?;
        }
        if difference.is_some() {
            json.locks(&overview, &names, &later.snapshot)?;
        }
    } else {
        writeln!(out, "{}", earlier.heading(&before))?;
        writeln!(out, "{}", later.heading(&after))?;
        if let Some(difference) = &difference {
            report::difference(&mut out, difference, between_ns, has_tasks)?;
        }
        report::place_changes(&mut out, &changes, has_tasks)?;
        if !groups.is_empty() {
            writeln!(out, "Recorded nothing in between:")?;
            report::condensed(&mut out, &groups, &locations, &texts, args.verbose)?;
        }
        if !overview.locks.is_empty() {
            writeln!(out, "Held all the time:")?;
            let pid = later.pid().unwrap_or_default();
            report::locks(&mut out, overview.locks.iter(), pid, &names, args.verbose)?;
        }
    }
    out.flush()?;
    remarks::write(&later, common, &locations, &[])
}

/// Two readings, the earlier one first.
fn read(args: &DiffArgs, options: &Options, common: &Common) -> Result<(Reading, Reading), AppError> {
    let read = |subject: &Subject| -> Result<Reading, AppError> {
        Ok(Reading::of(subject, options)?.with_present_names())
    };
    let subject = ring(&args.ring, common)?;
    let earlier = read(&subject)?;
    let Some(later) = &args.later else {
        if earlier.is_final() {
            return Err(AppError::NothingToCompare { path: subject.path().into_owned() });
        }
        std::thread::sleep(args.window);
        return Ok((earlier, read(&subject)?));
    };
    let later = RingArgs { ring: Some(later.clone()), ring_option: None };
    let later = read(&ring(&later, common)?)?;
    if is_same(&earlier, &later) && earlier.now_ns > later.now_ns && later.now_ns.is_some() {
        remark("The second reading is older than the first.");
        return Ok((later, earlier));
    }
    Ok((earlier, later))
}

fn ring(args: &RingArgs, common: &Common) -> Result<Subject, AppError> {
    match super::rings::choose(args, common)? {
        Subject::Core(path) => Err(AppError::NotForCores { path }),
        process @ Subject::Process(_) => Err(AppError::NoEvents { path: process.path().into_owned() }),
        ring => Ok(ring),
    }
}

/// Whether both readings are of one ring.
fn is_same(one: &Reading, other: &Reading) -> bool {
    let identity = |reading: &Reading| {
        let header = reading.snapshot.header.as_ref()?;
        Some((header.boot_id, header.pid, header.start_time_ticks, header.created_realtime_ns))
    };
    identity(one).is_some() && identity(one) == identity(other)
}

/// Where the present threads were last.
fn last<'t>(
    threads: &'t [Thread<'t>],
    locations: &mut Locations<'_>,
) -> impl Iterator<Item = (&'t Thread<'t>, LocationId)> {
    let mut found = Vec::with_capacity(threads.len());
    for thread in threads.iter().filter(|thread| thread.state == ThreadState::Present) {
        let last = events::last_event(thread.slot, |pc| locations.operand_words(thread.slot.pid, pc));
        found.extend(last.map(|event| (thread, last_location(thread.slot, &event, locations))));
    }
    found.into_iter()
}

/// How many threads are at each place: by function, and by file and line.
fn places(threads: &[Thread<'_>], locations: &mut Locations<'_>) -> BTreeMap<(String, String), usize> {
    let last: Vec<LocationId> = last(threads, locations).map(|(_, location)| location).collect();
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(locations, files, false);
    let mut places = BTreeMap::new();
    for location in last {
        let location = locations.get(location);
        *places.entry((location.users_function().into_owned(), texts.of(location))).or_default() += 1;
    }
    places
}

/// Those with the largest change first. Places without one are left out, unless `is_verbose`.
fn changes(
    before: BTreeMap<(String, String), usize>,
    mut after: BTreeMap<(String, String), usize>,
    is_verbose: bool,
) -> Vec<PlaceChange> {
    let change = |(function, place), before, after| PlaceChange { function, place, before, after };
    let mut changes: Vec<PlaceChange> = before
        .into_iter()
        .map(|(place, before)| {
            let now = after.remove(&place).unwrap_or(0);
            change(place, before, now)
        })
        .collect();
    changes.extend(after.into_iter().map(|(place, after)| change(place, 0, after)));
    changes.retain(|change| is_verbose || change.before != change.after);
    changes.sort_by_key(|change| Reverse((change.before.abs_diff(change.after), change.after)));
    changes
}

/// Which thread holds which lock: the lock's process and address, the thread's slot and id, and since when, ns since
/// boot.
type HoldKey = (u32, u64, u64, u32, Option<u64>);

fn key(model: &LockModel, hold: &Hold) -> HoldKey {
    let (lock, thread) = (&model.locks[hold.lock], &model.threads[hold.thread]);
    (lock.pid, lock.address, thread.slot_index, thread.tid, hold.since_ns)
}

fn holds(reading: &Reading) -> HashSet<HoldKey> {
    // Nobody sees the names of this model.
    let mut locations = Locations::new(&reading.snapshot, Resolver::new(&[], Default::default()));
    let model = locks::build(&reading.input(None), &mut locations);
    model.locks.iter().flat_map(|lock| &lock.holders).map(|hold| key(&model, hold)).collect()
}

/// Whether it is one hold: one that began at a known time, or one of a thread that has recorded nothing since.
fn has_kept(model: &LockModel, hold: &Hold, still: &HashSet<usize>) -> bool {
    let slot = model.threads[hold.thread].slot;
    hold.since_ns.is_some() || slot.is_some_and(|slot| still.contains(&slot))
}
