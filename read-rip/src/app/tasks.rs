//! `read-rip tasks`: what the tasks of a process do, and where they are suspended.
//!
//! It makes no findings: `check` does.

use std::io::Write;

use read_rip_model::locations::{FileNames, Locations};
use read_rip_model::locks::{self, ThreadId};
use read_rip_model::threads::ThreadState;
use read_rip_report::{self as report, Json, LockNames};

use super::check::Readings;
use super::error::AppError;
use super::matching::Matching;
use super::output::{output, prose, remark};
use crate::cli::{Common, TasksArgs};

/// What is said where no task is recorded.
const NO_TASKS: &str = "no tasks are recorded: call librip::init at the start, and spawn them with \
                        librip_tokio::spawn, or wrap their futures in librip::task::traced";

/// `read-rip tasks`.
pub(super) fn tasks(args: &TasksArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    let mut readings = Readings::at_present(&path, wanted)?;
    let words = readings.reading.snapshot.take_words();
    let reading = &readings.reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let model = readings.model(words, &mut locations);
    let objects = reading.objects(&mut locations);
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, false);
    let seen = reading.seen_names(&objects);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen };
    let matching = args.r#match.as_ref().map(|pattern| Matching::new(pattern, &names));
    let is_wanted = |id: ThreadId| {
        let thread = &model.threads[id];
        let exists = args.all || thread.state == ThreadState::Present;
        thread.task.is_some() && exists && matching.as_ref().is_none_or(|matching| matching.has_task(id))
    };
    let heading = reading.heading(&reading.threads());
    let has_tasks = model.has_tasks();
    if wanted.json {
        let mut out = prose(wanted);
        let mut json = Json(&mut out);
        reading.write_ring(&mut json)?;
        for id in (0..model.threads.len()).filter(|&id| is_wanted(id)) {
            json.task(id, &names, &reading.snapshot)?;
        }
        out.flush()?;
    } else if args.tasks {
        // Scripts read these lines: what precedes them is no result.
        let mut out = output(wanted);
        remark(&heading);
        for id in (0..model.threads.len()).filter(|&id| is_wanted(id)) {
            report::task(&mut out, id, &names)?;
        }
        out.flush()?;
    } else {
        let mut out = prose(wanted);
        writeln!(out, "{heading}")?;
        report::task_groups(&mut out, &locks::task_groups(&model, is_wanted), &names, args.verbose)?;
        out.flush()?;
    }
    let no_tasks = || report::remarks::of_executor(&model).unwrap_or_else(|| NO_TASKS.to_owned());
    let remarks = if has_tasks { Vec::new() } else { vec![no_tasks()] };
    let status = reading.remarks(wanted, &locations, &remarks)?;
    Ok(status)
}
