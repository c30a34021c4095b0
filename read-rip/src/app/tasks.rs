//! `read-rip tasks`: what the tasks of a process do, and where they are suspended.
//!
//! It makes no findings: `check` does.

use std::io::Write;

use read_rip_case::{Case, Options, Readings};
use read_rip_model::locks::{self, ThreadId};
use read_rip_model::threads::ThreadState;
use read_rip_report::{self as report, Json};

use super::error::AppError;
use super::matching::Matching;
use super::output::{output, prose, remark};
use super::remarks;
use crate::cli::{Common, TasksArgs};

/// What is logged where no task is recorded.
const NO_TASKS: &str = "no tasks are recorded: call librip::init at the start, and spawn them with \
                        librip_tokio::spawn, or wrap their futures in librip::task::traced";

/// `read-rip tasks`.
pub(super) fn tasks(args: &TasksArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let options = Options { stops_threads: args.stop.stop, ..common.options() };
    let mut readings = Readings::at_present(&subject, &options)?;
    let mut case = Case::of(&mut readings, &options);
    let of_futures = case.unrecorded_futures();
    let (reading, model) = (case.reading, &case.model);
    let texts = case.texts(false);
    let names = case.names(&texts);
    let matching = args.r#match.as_ref().map(|pattern| Matching::new(pattern, &names));
    let is_wanted = |id: ThreadId| {
        let thread = &model.threads[id];
        let exists = args.all || thread.state == ThreadState::Present;
        thread.task.is_some() && exists && matching.as_ref().is_none_or(|matching| matching.has_task(id))
    };
    let heading = reading.heading(&reading.threads());
    let has_tasks = model.has_tasks();
    if common.json {
        let mut out = prose(common);
        let mut json = Json(&mut out);
        reading.write_ring(&mut json)?;
        for id in (0..model.threads.len()).filter(|&id| is_wanted(id)) {
            json.task(id, &names, &reading.snapshot)?;
        }
        json.tokio_tasks(&names)?;
        out.flush()?;
    } else if args.tasks {
        // Scripts read these lines: what precedes them is no result.
        let mut out = output(common);
        remark(&heading);
        for id in (0..model.threads.len()).filter(|&id| is_wanted(id)) {
            report::task(&mut out, id, &names)?;
        }
        out.flush()?;
    } else {
        let mut out = prose(common);
        writeln!(out, "{heading}")?;
        report::task_groups(&mut out, &locks::task_groups(model, is_wanted), &names, args.verbose)?;
        report::tokio_tasks(&mut out, &names, true)?;
        out.flush()?;
    }
    let no_tasks = || report::remarks::of_executor(model, true).unwrap_or_else(|| NO_TASKS.to_owned());
    let mut remarks = if has_tasks { Vec::new() } else { vec![no_tasks()] };
    remarks.extend(of_futures.iter().flat_map(report::of_futures));
    remarks::write(reading, common, &case.locations, &remarks)
}
