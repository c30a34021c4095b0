//! The views of a process by the kernel and its memory: where its threads stand without a ring or in a core file, and
//! `stacks`.
//!
//! It formats nothing: `report` does.

use std::io::Write;
use std::time::Duration;

use read_rip_case::{Case, Options, Readings, Subject};
use read_rip_evidence::standing::Standings;
use read_rip_model::locations::LocationId;
use read_rip_model::locks::LockModel;
use read_rip_report::{self as report, ActivityWords, Json, printable};

use super::error::AppError;
use super::output::View;
use super::remarks;
use super::verdict;
use crate::cli::{Common, RingArgs, ShowArgs, StacksArgs, THRESHOLD};

/// `read-rip PID` for a process without a ring, and `read-rip CORE`.
pub(super) fn show(
    subject: &Subject,
    ring: &RingArgs,
    args: &ShowArgs,
    common: &Common,
) -> Result<u8, AppError> {
    let options = Options { stops_threads: args.stop.stop, ..common.options() };
    let mut readings = Readings::of(subject, &options)?;
    let mut case = Case::of(&mut readings, &options);
    let reading = case.reading;
    let no_stacks = || AppError::NoStacks { path: subject.path().into_owned() };
    let seen = reading.seen.as_ref().ok_or_else(no_stacks)?;
    if let Some(core) = &reading.core {
        // The functions of the thread that got the signal.
        let thread = seen.target.tasks.iter().position(|task| task.own_tid == core.death.tid);
        case.find_frames(thread.map(|thread| seen.stack(thread)));
    }
    let is_judged = !common.json && !args.threads && args.r#match.is_none();
    let judgement = is_judged.then(|| case.judge(THRESHOLD));
    let texts = case.texts(args.verbose);
    let names = case.names(&texts);
    let words = ActivityWords::new(&names).ok_or_else(no_stacks)?;
    let places = places(seen, &case.model);
    let threads: Vec<usize> = (0..seen.threads.len())
        .filter(|&thread| is_wanted(args.r#match.as_ref(), thread, &places, &words))
        .collect();
    let mut out = View::new(common);
    if common.json {
        reading.write_core(&mut Json(&mut out))?;
        Json(&mut out).standings(&words, &threads, |thread| places[thread], &reading.snapshot)?;
        Json(&mut out).tokio_groups(&names)?;
    } else {
        writeln!(out, "{}", reading.heading(&[]))?;
        if !args.threads
            && let Some(core) = &reading.core
        {
            report::death(&mut out, &core.death, seen, &core.command_line, &texts, &case.frames)?;
        }
        match args.threads {
            true => report::standing_threads(&mut out, &words, &threads, |thread| places[thread])?,
            false => report::standings(&mut out, &words, &threads, |thread| places[thread])?,
        }
        if is_judged {
            report::tokio_tasks(&mut out, &names, args.verbose)?;
        }
        let helpers = judgement.as_ref().map(|judgement| report::helpers(&judgement.balance, &names));
        for line in helpers.into_iter().flatten() {
            writeln!(out, "{}", printable(&line))?;
        }
        let command = verdict::command(subject, ring);
        if let Some(verdict) = judgement.and_then(|judgement| verdict::line(&judgement, &names, &command)) {
            writeln!(out, "{}", printable(&verdict))?;
        }
    }
    out.end()?;
    let is_hidden = seen.target.hidden.is_some();
    let unseen = report::remarks::of_executor(&case.model, !is_hidden);
    match is_judged {
        true => remarks::write_after_verdict(reading, common, &case.locations, unseen.as_slice()),
        false => remarks::write(reading, common, &case.locations, unseen.as_slice()),
    }
}

/// `read-rip stacks`.
pub(super) fn stacks(args: &StacksArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    // The second reading follows at once: it shows which stacks were read while their threads ran.
    let stops_threads = args.stop.stop;
    let options = Options { stops_threads, window: Duration::ZERO, ..common.options() };
    let mut readings = Readings::of(&subject, &options)?;
    let mut case = Case::of(&mut readings, &options);
    case.find_all_frames();
    let reading = case.reading;
    let no_stacks = || AppError::NoStacks { path: subject.path().into_owned() };
    let seen = reading.seen.as_ref().ok_or_else(no_stacks)?;
    let texts = case.texts(args.verbose);
    let names = case.names(&texts);
    let words = ActivityWords::new(&names).ok_or_else(no_stacks)?;
    let places = places(seen, &case.model);
    let is_wanted = |thread| is_wanted(args.r#match.as_ref(), thread, &places, &words);
    let mut out = View::new(common);
    if common.json {
        reading.write_core(&mut Json(&mut out))?;
        Json(&mut out).stacks(&words, is_wanted, &case.frames)?;
    } else {
        writeln!(out, "{}", reading.heading(&reading.threads()))?;
        report::stacks(&mut out, &words, is_wanted, |path| texts.file(path).to_owned(), &case.frames)?;
    }
    out.end()?;
    let unseen = report::remarks::of_executor(&case.model, false);
    remarks::write(reading, common, &case.locations, unseen.as_slice())
}

/// Where each thread that was seen stands.
fn places(seen: &Standings, model: &LockModel) -> Vec<Option<LocationId>> {
    let mut places = vec![None; seen.threads.len()];
    let known = model.threads.iter().filter_map(|thread| thread.seen);
    for known in known.filter(|seen| seen.process == 0) {
        places[known.index] = known.place;
    }
    places
}

/// Whether `--match` lets a thread through.
fn is_wanted(
    pattern: Option<&regex::Regex>,
    thread: usize,
    places: &[Option<LocationId>],
    words: &ActivityWords<'_>,
) -> bool {
    let Some(pattern) = pattern else { return true };
    let task = &words.seen.target.tasks[thread];
    pattern.is_match(&format!("{}[{}]", task.name, task.own_tid))
        || places[thread].is_some_and(|place| {
            let location = words.names.locations.get(place);
            pattern.is_match(&location.function)
                || pattern.is_match(&location.users_function())
                || pattern.is_match(&words.names.texts.of(location))
        })
}
