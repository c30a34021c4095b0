//! `read-rip locks`: who holds each lock, who waits for it, and how it was used.
//!
//! It makes no findings: `check` does.

use std::io::Write;

use super::error::AppError;
use super::matching::Matching;
use super::output::prose;
use super::reading::Reading;
use crate::cli::{Common, LocksArgs};
use crate::locations::{FileNames, Locations};
use crate::locks;
use crate::report::{self, Json, LockNames};

/// `read-rip locks`.
pub(super) fn locks(args: &LocksArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    let reading = Reading::of(&path, wanted)?.with_present_names();
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let model = locks::build(&reading.input(None), &mut locations);
    let mut overview = locks::overview(&model, args.all);
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, args.verbose);
    let names = LockNames { model: &model, locations: &locations, texts: &texts };
    if let Some(pattern) = &args.r#match {
        let matching = Matching { pattern, names: &names };
        overview.locks.retain(|lock| matching.has_use(lock));
    }
    let mut out = prose(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        json.ring(&reading.path, &reading.snapshot, reading.liveness.as_ref(), &reading.losses)?;
        json.locks(&overview, &names, &reading.snapshot)?;
    } else {
        writeln!(out, "{}", reading.heading(&reading.threads()))?;
        report::locks(&mut out, &overview, &names, args.verbose, reading.now_ns.is_none())?;
    }
    out.flush()?;
    let remarks = report::remarks::of_locks(&model, &overview, &reading.snapshot, &reading.losses);
    reading.remarks(wanted, &locations, &remarks)
}
