//! The end of the condensed view of a ring: what its threads do now, and the verdict in one line. `check` explains it.
//!
//! It analyses nothing itself: `findings` does.

use std::collections::HashMap;
use std::io::Write;

use read_rip_case::{Case, Judgement, Options, Readings, Subject};
use read_rip_model::findings::Outcome;
use read_rip_model::locations::LocationId;
use read_rip_model::locks::{self, LockModel, ThreadId};
use read_rip_model::threads::ThreadState;
use read_rip_report::{self as report, ActivityWords, LockNames, printable};

use super::check::slow_cycles;
use super::error::AppError;
use crate::cli::{RingArgs, THRESHOLD};

/// So many places of tasks are shown, and as many of threads that recorded nothing.
const PLACES_MAX: usize = 6;

/// A ring with more threads than this is not judged unasked: that takes several times as long as the view.
const THREADS_MAX: usize = 20_000;

/// Writes what the threads of a ring do now, if the kernel was asked, where those stand that recorded nothing, and the
/// verdict. `threads`: how many the view has shown. Nothing is said of what cannot be judged.
pub(super) fn verdict(
    out: &mut dyn Write,
    subject: &Subject,
    threads: usize,
    ring: &RingArgs,
    options: &Options,
) -> Result<(), AppError> {
    let command = command(subject, ring);
    if threads > THREADS_MAX {
        let what = format!("check: skipped, because there are more than 20,000 threads; next: {command}");
        return Ok(writeln!(out, "{}", printable(&what))?);
    }
    let mut readings = Readings::of(subject, options)?;
    let mut case = Case::of(&mut readings, options);
    let judgement = case.judge(THRESHOLD);
    let slow_cycles = slow_cycles(&mut case);
    let texts = case.texts(false);
    let names = case.names(&texts);
    tasks(out, &names)?;
    if let Some(words) = ActivityWords::new(&names) {
        if let Some(doing) = report::doing_now(&judgement.balance, &case.model) {
            writeln!(out, "{doing}")?;
        }
        for line in report::helpers(&judgement.balance, &names) {
            writeln!(out, "{}", printable(&line))?;
        }
        unrecorded(out, &words, &case.model)?;
        report::tokio_tasks(out, &names, false)?;
    }
    if let Some(verdict) = line(&judgement, &names, &command) {
        writeln!(out, "{}", printable(&verdict))?;
    }
    if let Some(cycles) = slow_cycles {
        writeln!(out, "{}", printable(&cycles.line(&name(subject, ring))))?;
    }
    Ok(())
}

/// What the tasks do, and where.
fn tasks(out: &mut dyn Write, names: &LockNames<'_>) -> std::io::Result<()> {
    let threads = &names.model.threads;
    let exists = |id: ThreadId| threads[id].task.is_some() && threads[id].state == ThreadState::Present;
    let groups = locks::task_groups(names.model, exists);
    let tasks: usize = groups.iter().map(|group| group.tasks.len()).sum();
    if tasks == 0 {
        return Ok(());
    }
    let shown = &groups[..groups.len().min(PLACES_MAX)];
    writeln!(out, "{}:", report::counted(tasks as u64, "task"))?;
    report::task_groups(out, shown, names, false)?;
    more_places(out, groups.len() - shown.len())
}

fn more_places(out: &mut dyn Write, places: usize) -> std::io::Result<()> {
    match places {
        0 => Ok(()),
        more => writeln!(out, "and at {}", report::counted(more as u64, "more place")),
    }
}

/// Where the threads stand that recorded nothing.
fn unrecorded(out: &mut dyn Write, words: &ActivityWords<'_>, model: &LockModel) -> std::io::Result<()> {
    let seen = model.threads.iter().filter(|thread| thread.slot.is_none()).filter_map(|thread| thread.seen);
    // The heading is that of the first process.
    let seen = seen.filter(|seen| seen.process == 0);
    let places: HashMap<usize, Option<LocationId>> = seen.map(|seen| (seen.index, seen.place)).collect();
    if places.is_empty() {
        return Ok(());
    }
    let mut threads: Vec<usize> = places.keys().copied().collect();
    threads.sort_unstable();
    writeln!(out, "{}:", report::recorded_nothing(threads.len()))?;
    let mut lines = Vec::new();
    report::standings(&mut lines, words, &threads, |thread| places.get(&thread).copied().flatten())?;
    let lines: Vec<&[u8]> = lines.split_inclusive(|&byte| byte == b'\n').collect();
    for line in lines.iter().take(PLACES_MAX) {
        out.write_all(line)?;
    }
    more_places(out, lines.len().saturating_sub(PLACES_MAX))
}

/// The command that explains the verdict.
pub(super) fn command(subject: &Subject, ring: &RingArgs) -> String {
    format!("read-rip check {}", name(subject, ring))
}

/// What the user calls the subject.
fn name(subject: &Subject, ring: &RingArgs) -> String {
    let path = subject.path();
    ring.name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
}

/// A judgement in a line, with the command that explains it. `None` if nothing is known that can be judged.
pub(super) fn line(judgement: &Judgement, names: &LockNames<'_>, command: &str) -> Option<String> {
    let what = report::verdict(&judgement.balance, &judgement.findings, names);
    match judgement.balance.outcome {
        Outcome::NothingRecorded => None,
        // It says what to do.
        Outcome::Hidden => Some(format!("check: {what}")),
        _ => Some(format!("check: {what}; next: {command}")),
    }
}
