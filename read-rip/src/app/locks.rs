//! `read-rip locks`: who has each lock, who waits for it, and how it was used.
//!
//! It judges nothing: `check` does.

use std::io::Write;

use super::error::AppError;
use super::reading::{Reading, agreeing};
use super::{output, remark};
use crate::cli::{Common, LocksArgs};
use crate::locations::{FileNames, Locations};
use crate::locks::{self, LockModel, Overview, Summary};
use crate::report::{self, Json, LockNames, counted};
use crate::ring::{ClockLevel, HELD_LOCKS_MAX};

/// `read-rip locks`.
pub(super) fn locks(args: &LocksArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, &wanted.dir)?;
    let reading = Reading::of(&path, wanted)?;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let model = locks::build(&reading.input(None), &mut locations);
    let overview = locks::overview(&model, args.all);
    let mut out = output(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        json.ring(&reading.path, &reading.snapshot, reading.liveness.as_ref(), &reading.losses)?;
        json.locks(&overview, &model, &locations, &reading.snapshot)?;
    } else {
        remark(reading.heading(&reading.threads()));
        let files = FileNames::choose(locations.iter());
        let texts = report::location_texts(&locations, &files, args.verbose);
        let names = LockNames { model: &model, locations: &locations, texts: &texts };
        report::locks(&mut out, &overview, &names, args.verbose, reading.now_ns.is_none())?;
    }
    out.flush()?;
    reading.remarks(wanted, &locations, &unknown(&reading, &model, &overview))
}

/// What cannot be known of the locks.
fn unknown(reading: &Reading, model: &LockModel, overview: &Overview) -> Vec<String> {
    let mut remarks = Vec::new();
    if model.locks.is_empty() {
        remarks.push("No lock is known: the program marks none, or none of its marks is left.".to_owned());
    }
    if overview.quiet > 0 {
        let quiet = agreeing(overview.quiet as u64, "lock", "is", "are");
        remarks.push(format!("{quiet} not shown: nobody has, wants or wanted them in vain (--all)."));
    }
    let beyond: u64 = model.threads.iter().map(|thread| u64::from(thread.overflowed)).sum();
    if beyond > 0 {
        let held = agreeing(beyond, "lock", "is", "are");
        remarks.push(format!("{held} held besides: a thread's table has room for {}.", HELD_LOCKS_MAX));
    }
    if model.held_overflows > beyond {
        let overflows = counted(model.held_overflows, "acquisition");
        remarks.push(format!("{overflows} found no room in their thread's table so far."));
    }
    let unclear: u64 = model.threads.iter().map(|thread| u64::from(thread.in_flux)).sum();
    if unclear > 0 {
        let entries = agreeing(unclear, "lock", "was", "were");
        remarks.push(format!("{entries} being taken or given up while the tables were read, and not shown."));
    }
    if model.releases_unmatched > 0 {
        remarks.push(format!(
            "{} by others than the holder went unnoticed: a lock marked by hand may appear held and not be.",
            counted(model.releases_unmatched, "release")
        ));
    }
    let is_odd = |summary: &Summary| {
        let lock = &model.locks[summary.lock];
        summary.has_moved || (lock.holders.is_empty() && !lock.waiters.is_empty())
    };
    if !model.is_final && overview.locks.iter().any(is_odd) {
        remarks.push("The threads went on meanwhile: each is shown at a moment of its own.".to_owned());
    }
    let clock = reading.snapshot.header.as_ref().and_then(|header| header.clock);
    let is_timed = clock.is_some_and(|clock| clock.level != ClockLevel::Off);
    if !is_timed && !model.locks.is_empty() {
        remarks.push("No times were recorded (RIP_CLOCK=contended or all).".to_owned());
    }
    if reading.losses.overwritten > 0 && model.locks.iter().any(|lock| lock.record.acquisitions > 0) {
        remarks.push("Acquisitions and times are as far as the histories reach.".to_owned());
    }
    remarks
}
