//! `read-rip tasks`: what the tasks of a process do, and where they are suspended.
//!
//! It makes no findings: `check` does.

use std::io::Write;

use read_rip_case::{Case, Options, Readings};
use read_rip_model::locks::{self, SlowPoll, ThreadId};
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
    if args.polls || args.slow {
        return polls(args, common, case);
    }
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
        json.workers(&names)?;
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
        if matching.is_none() {
            report::workers(&mut out, &names, args.verbose)?;
        }
        report::tokio_tasks(&mut out, &names, true)?;
        out.flush()?;
    }
    let no_tasks = || report::remarks::of_executor(model, true).unwrap_or_else(|| NO_TASKS.to_owned());
    let mut remarks = if has_tasks { Vec::new() } else { vec![no_tasks()] };
    remarks.extend(of_futures.iter().flat_map(|of| report::of_futures(of, &names)));
    remarks::write(reading, common, &case.locations, &remarks)
}

/// What is logged where no poll was counted.
const NO_POLLS: &str = "no polls are counted: start the program with RIP_POLLS=times";

/// So many of the longest polls are shown as text.
const SLOW_MAX: usize = 20;

/// `read-rip tasks --polls` and `--slow`.
fn polls(args: &TasksArgs, common: &Common, mut case: Case<'_>) -> Result<u8, AppError> {
    let polls = case.polls();
    let texts = case.texts(false);
    let names = case.names(&texts);
    let reading = case.reading;
    let is_match = |text: &str| args.r#match.as_ref().is_none_or(|pattern| pattern.is_match(text));
    let is_wanted = |poll: &&SlowPoll| {
        let at = [poll.made_at, poll.location].into_iter().flatten();
        is_match(&report::poll_task(poll, &names)) || at.into_iter().any(|at| is_match(&names.location(at)))
    };
    // A connection's poll that polled a slow request says nothing more. Programs get both.
    let is_shown = |poll: &&SlowPoll| common.json || !poll.is_of_inner;
    let slow: Vec<&SlowPoll> = polls.longest.iter().filter(is_shown).filter(is_wanted).collect();
    let mut remarks = if polls.are_counted { Vec::new() } else { vec![NO_POLLS.to_owned()] };
    let mut out = prose(common);
    if common.json {
        let mut json = Json(&mut out);
        reading.write_ring(&mut json)?;
        if args.polls {
            let mut places =
                polls.places.iter().filter(|of| is_match(&report::poll_place(&of.place, &names)));
            places.try_for_each(|of| json.polls(of, &names, &reading.snapshot))?;
        } else {
            slow.iter().try_for_each(|poll| json.long_poll(poll, &names, &reading.snapshot))?;
        }
    } else {
        writeln!(out, "{}", reading.heading(&reading.threads()))?;
        if args.polls {
            report::polls(&mut out, &polls, &names, is_match)?;
        } else {
            let more = report::slow_polls(&mut out, &slow, &names, &reading.snapshot, SLOW_MAX)?;
            if more > 0 {
                remarks.push(format!("{more} more long polls are not shown: --json has them"));
            }
        }
    }
    out.flush()?;
    remarks::write(reading, common, &case.locations, &remarks)
}
