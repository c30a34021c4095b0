//! `read-rip locks`: who holds each lock, who waits for it, and how it was used.
//!
//! It makes no findings: `check` does.

use std::io::Write;

use read_rip_model::locations::{FileNames, Locations};
use read_rip_model::locks::{self, Summary};
use read_rip_report::{self as report, Json, LockNames};

use super::check::Readings;
use super::error::AppError;
use super::limits::limits;
use super::matching::Matching;
use super::output::prose;
use crate::cli::{Common, LocksArgs};

/// `read-rip locks`.
pub(super) fn locks(args: &LocksArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    let mut readings = Readings::at_present(&path, wanted)?;
    let limits = limits(&args.time, &readings.reading)?;
    let words = readings.reading.snapshot.take_words();
    let reading = &readings.reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let mut model = readings.model_of(limits, words, &mut locations);
    let objects = reading.objects(&mut locations);
    locks::keep_within(&mut model, &limits, reading.horizon().end_ns);
    let mut overview = locks::overview(&model, args.all, !limits.is_limited());
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, args.verbose);
    let seen = reading.seen_names(&objects);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen };
    if let Some(pattern) = &args.r#match {
        let matching = Matching::new(pattern, &names);
        overview.locks.retain(|lock| matching.has_use(lock));
    }
    let mut out = prose(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        reading.write_ring(&mut json)?;
        json.locks(&overview, &names, &reading.snapshot)?;
    } else {
        let processes = reading.processes(&reading.threads(), "");
        let is_listed = |pid| processes.iter().any(|process| process.pid == pid);
        for (index, process) in processes.iter().enumerate() {
            // The slots of some processes may have other owners now: their locks come first.
            let is_own = |lock: &&Summary| {
                let pid = model.locks[lock.lock].pid;
                pid == process.pid || index == 0 && !is_listed(pid)
            };
            let mut locks = overview.locks.iter().filter(is_own).peekable();
            if index > 0 && args.r#match.is_some() && locks.peek().is_none() {
                continue;
            }
            writeln!(out, "{}", process.heading)?;
            report::locks(&mut out, locks, process.pid, &names, args.verbose)?;
        }
    }
    out.flush()?;
    let remarks = report::remarks::of_locks(&model, &overview, &reading.snapshot, &reading.losses);
    reading.remarks(wanted, &locations, &remarks)
}
