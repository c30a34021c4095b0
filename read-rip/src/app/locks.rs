//! `read-rip locks`: who holds each lock, who waits for it, and how it was used.
//!
//! It makes no findings: `check` does.

use std::io::Write;

use read_rip_case::{Case, Options, Readings};
use read_rip_model::locks::{self, Summary};
use read_rip_report::{self as report, Json};

use super::error::AppError;
use super::limits::limits;
use super::matching::Matching;
use super::output::prose;
use super::remarks;
use crate::cli::{Common, LocksArgs};

/// `read-rip locks`.
pub(super) fn locks(args: &LocksArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let options = Options { stops_threads: args.stop.stop, ..common.options() };
    let mut readings = Readings::at_present(&subject, &options)?;
    let limits = limits(&args.time, &readings.reading)?;
    let mut case = Case::within(&mut readings, limits, &options);
    let reading = case.reading;
    locks::keep_within(&mut case.model, &limits, reading.horizon().end_ns);
    let model = &case.model;
    let mut overview = locks::overview(model, args.all, !limits.is_limited());
    let texts = case.texts(args.verbose);
    let names = case.names(&texts);
    if let Some(pattern) = &args.r#match {
        let matching = Matching::new(pattern, &names);
        overview.locks.retain(|lock| matching.has_use(lock));
    }
    let mut out = prose(common);
    if common.json {
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
            let compared = overview.locks.iter().filter(is_own);
            if index > 0 && args.r#match.is_some() && locks.peek().is_none() {
                continue;
            }
            writeln!(out, "{}", process.heading)?;
            report::locks_table(&mut out, compared, &names)?;
            report::locks(&mut out, locks, process.pid, &names, args.verbose)?;
        }
    }
    out.flush()?;
    let remarks = report::remarks::of_locks(model, &overview, &reading.snapshot, &reading.losses);
    remarks::write(reading, common, &case.locations, &remarks)
}
