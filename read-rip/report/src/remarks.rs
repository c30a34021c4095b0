//! Remarks: what a result does not show, for standard error.
//!
//! Each remark is a sentence. This file decides only whether a remark is needed.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::time::Duration;

use read_rip_evidence::process::{Child, Liveness};
use read_rip_evidence::scheduler::Refusal;
use read_rip_model::findings::{self, Balance, Outcome};
use read_rip_model::locations::{FileNames, Location, Locations};
use read_rip_model::locks::{LockModel, Overview, Summary};
use read_rip_model::threads::{Losses, Thread, ThreadState};
use read_rip_ring::events::Leftover;
use read_rip_ring::{ClockLevel, HELD_LOCKS_MAX, Schedule, SiteKind, Snapshot, is_task};
use read_rip_symbols::ModuleProblem;
use serde::Serialize;

use super::list::{process_state, state_of_child};
use super::names::location_texts;
use super::units::{age, counted};
use crate::printable;

/// What is wrong with a module's file. Its path may come from a hostile ring.
pub fn of_module(problem: &ModuleProblem) -> String {
    format!("{}: {}", printable(&problem.path.to_string_lossy()), problem.what)
}

/// That files have no debug information: one line for all of them. `None` if there is no such problem.
pub fn of_debug_info(problems: &[ModuleProblem]) -> Option<String> {
    let mut paths =
        problems.iter().filter(|problem| problem.is_about_debug_info()).map(|problem| &problem.path);
    let first = paths.next()?.to_string_lossy();
    let others = match paths.count() {
        0 => String::new(),
        others => format!(" and {}", counted(others as u64, "more file")),
    };
    Some(format!(
        "Warning: {}{others}: no debug information, so lines may be missing; build with -g, or name the directory of \
         debug files with --debug-dir",
        printable(&first)
    ))
}

/// What `check` looked at, and what came of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Checked {
    /// Threads that were analysed.
    pub threads: usize,
    /// Tasks that were analysed.
    #[serde(skip_serializing_if = "is_zero")]
    pub tasks: usize,
    /// Locks that were analysed.
    pub locks: usize,
    /// Findings that are reported.
    pub findings: usize,
    /// What the threads do, and what the record cannot show.
    pub balance: Balance,
    /// Findings that are not reported, because of suppression files.
    pub suppressed: usize,
    /// Findings that are not reported, because they do not match the pattern of `-m`.
    pub not_matching: usize,
    /// The time between two readings of a living process, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Why there is only one reading, where there should be two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_reading: Option<OneReading>,
    /// Lengths of time count up to the last recorded moment: when the process ended is not known.
    pub is_up_to_last_time: bool,
    /// Locks that are held and not listed, because a thread's table was full.
    pub held_overflowed: u64,
    /// Releases by another thread than the holder that were not matched to the holder.
    pub releases_unmatched: u64,
    /// The value of `RIP_WORDS` that keeps more history; `None`: there is none, or the ring has no header.
    #[serde(skip)]
    pub longer_slot_words: Option<u32>,
    /// There were too many orders of acquisition to compare all of them.
    pub is_order_search_cut: bool,
    /// The slow cycles that the ring has kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_cycles: Option<crate::KeptCycles>,
    /// What the user may call the ring.
    #[serde(skip)]
    pub ring: String,
}

/// Whether there is nothing to say: of a number that JSON leaves out then.
pub(crate) fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

/// A warning, and what to do about it.
pub type Warning = (String, &'static str);

/// A number of things and their verb.
fn agreeing(count: u64, thing: &str, one: &str, several: &str) -> String {
    format!("{} {}", counted(count, thing), if count == 1 { one } else { several })
}

/// One line about the process and its threads. `of_exited` is added to the number of exited threads.
pub fn heading(
    snapshot: &Snapshot,
    program: &str,
    liveness: Option<&Liveness>,
    threads: &[Thread<'_>],
    of_exited: &str,
) -> String {
    match (&snapshot.header, liveness) {
        (Some(header), Some(liveness)) => {
            let state = process_state(header, liveness);
            format!("{}{}", of_process(program, header.pid, &state), of_threads(threads, of_exited))
        }
        _ => of_threads(threads, of_exited),
    }
}

/// The same about a forked child that records in its parent's ring.
pub fn heading_of_child(
    program: &str,
    parent: u32,
    child: &Child,
    threads: &[Thread<'_>],
    of_exited: &str,
) -> String {
    let state = state_of_child(parent, &child.liveness);
    of_process(program, child.pid, &state) + &of_threads(threads, of_exited)
}

fn of_process(program: &str, pid: u32, state: &str) -> String {
    let program = if program.is_empty() { "unknown program" } else { program };
    format!("{}[{pid}], {state}: ", printable(program))
}

fn of_threads(threads: &[Thread<'_>], of_exited: &str) -> String {
    let of_tasks = of_tasks(threads);
    let threads: Vec<_> = threads.iter().filter(|thread| !is_task(thread.slot.tid)).collect();
    let count = |state| threads.iter().filter(|thread| thread.state == state).count();
    let (exited, abandoned) = (count(ThreadState::Exited), count(ThreadState::Abandoned));
    let mut heading = counted(threads.len() as u64, "thread");
    if exited > 0 {
        heading += &format!(", {exited} of them exited{of_exited}");
    }
    if abandoned > 0 {
        heading += &format!(", {abandoned} disappeared without exiting");
    }
    heading + &of_tasks
}

/// A file that did not answer within this time.
pub fn of_silence(path: &Path, patience: Duration) -> String {
    let seconds = patience.as_secs();
    format!("{} did not answer within {seconds} s; its content was left out", whose(path))
}

/// A process that did not answer within the time of [`patience`](read_rip_evidence::patience).
pub fn of_silent_process(pid: u32) -> String {
    format!("process {pid} did not answer within 2 s: what its memory says was left out")
}

/// A mapped file that was not asked for what is not in memory.
pub fn of_unasked(path: &Path) -> String {
    format!("{} is on a file system that may not answer: what is not in memory was left out", whose(path))
}

/// A path, with the process in whose root directory it is.
fn whose(path: &Path) -> String {
    let within = path.strip_prefix("/proc").ok().and_then(|path| {
        let mut parts = path.components();
        let process = parts.next()?.as_os_str().to_str()?;
        Some((process, parts.as_path().strip_prefix("root").ok()?))
    });
    match within {
        Some((process, path)) => format!("process {process}: /{}", printable(&path.to_string_lossy())),
        None => printable(&path.to_string_lossy()).into_owned(),
    }
}

/// What a heading says of the tasks among these threads; nothing if there are none.
pub fn of_tasks(threads: &[Thread<'_>]) -> String {
    let tasks: Vec<_> = threads.iter().filter(|thread| is_task(thread.slot.tid)).collect();
    let ended = tasks.iter().filter(|task| task.state == ThreadState::Exited).count();
    let mut text = match tasks.len() - ended {
        0 if ended == 0 => String::new(),
        living => format!("; {}", counted(living as u64, "task")),
    };
    if ended > 0 {
        text += &format!(", and the last {ended} that have ended");
    }
    text
}

/// What a heading says of a ring that was saved this long ago.
pub fn of_saved(ago_ns: u64) -> String {
    format!(" (saved {} ago)", age(ago_ns))
}

/// How many words were read, and how many are lost. A word is a mark or an operand of a mark.
pub fn of_losses(losses: &Losses, snapshot: &Snapshot) -> String {
    let Losses { words, overwritten, torn, unwritten, .. } = *losses;
    let lost: String = [(torn, "changed while being read"), (unwritten, "not written")]
        .iter()
        .filter(|&&(count, _)| count > 0)
        .map(|(count, what)| format!(", {count} {what}"))
        .collect();
    let read = agreeing(words, "recorded word", "was", "were");
    if snapshot.period.is_some() {
        return format!("{read} read{lost}: those of this time, and some beside it.");
    }
    format!("{read} read, {} overwritten{lost}.", agreeing(overwritten, "older one", "was", "were"))
}

/// Threads, tasks, modules and names of locks that the recorder had no room for.
pub fn of_refused(snapshot: &Snapshot) -> Vec<String> {
    let mut remarks = Vec::new();
    let Some(header) = &snapshot.header else { return remarks };
    let refused = header.threads_refused();
    if refused > 0 {
        let filter = match header.threads_refused_filter {
            0 => String::new(),
            filtered => format!(", system calls refused to {filtered} (seccomp)"),
        };
        remarks.push(format!(
            "{} not recorded: no free slot for {} (RIP_SLOTS), no memory for {}{filter}.",
            agreeing(refused, "thread", "was", "were"),
            header.threads_refused_full,
            header.threads_refused_memory
        ));
    }
    if header.tasks_refused > 0 {
        let tasks = agreeing(header.tasks_refused, "task", "was", "were");
        remarks.push(format!(
            "{tasks} not recorded: no slot was free (RIP_SLOTS); tasks get seven eighths of the slots at most."
        ));
    }
    if header.metadata_refused > 0 {
        let records = counted(header.metadata_refused, "record");
        remarks.push(format!(
            "{records} of modules, sites or texts did not fit in the ring: their marks are shown by address, or not \
             recorded."
        ));
    }
    if header.lock_names_refused > 0 {
        let names = counted(header.lock_names_refused, "name");
        remarks.push(format!("{names} of locks did not fit in the ring: those locks are shown by address."));
    }
    remarks
}

/// That threads run tasks of which nothing is known. `has_stacks`: `stacks` would show more.
pub fn of_executor(model: &LockModel, has_stacks: bool) -> Option<String> {
    if model.has_tasks() {
        return None;
    }
    let name = findings::executors(model).next()?;
    let runs = match model.hidden_executor {
        None => {
            let workers = findings::executors(model).count();
            let workers = agreeing(workers as u64, "thread", "runs", "run");
            let seen = if model.knows_awaits { "seen only in part" } else { "not seen" };
            format!(
                "{workers} async tasks ({name}), and nothing has recorded which: what they wait for is {seen}."
            )
        }
        Some(_) => format!(
            "The program has {name}, and no stack shows which threads run async tasks, so what these wait for is not \
             known."
        ),
    };
    let pid = model.pid;
    let now = match has_stacks && !model.is_final {
        false => String::new(),
        true => format!(
            " Now: `gcore {pid}` keeps its memory, for which it stops for a moment, and `read-rip check core.{pid}` \
             reads that later; `read-rip stacks {pid}` shows how its workers got where they are."
        ),
    };
    let record = match name {
        "tokio" => {
            "librip_tokio::watch records all tasks of a runtime in programs that are built with --cfg \
             tokio_unstable, and librip_tokio::spawn those that it spawns"
        }
        _ => "librip::task::traced records the futures that it wraps",
    };
    Some(format!("{runs}{now} For the next time: call librip::init at the start of the program; {record}."))
}

/// Why no event may be recorded of a program that uses `tracing-subscriber`.
pub fn of_filter(locations: &mut Locations<'_>) -> Option<String> {
    let crates = locations.packages();
    crates.binary_search_by(|name| name.as_str().cmp("tracing_subscriber")).ok()?;
    Some(
        "The program uses tracing: librip_tracing::layer() records what it is given. With EnvFilter or LevelFilter, a \
         filter that is added to the registry is one of all its layers, before and after it (an EnvFilter without \
         RUST_LOG lets errors through alone): give it to the layer that prints, by .with_filter(...)."
            .to_owned(),
    )
}

/// That only one of a program's versions of `parking_lot` is recorded.
///
/// The crate that stands in for it has the module `word`, and the real one has the others.
pub fn of_unpatched(locations: &Locations<'_>) -> Option<String> {
    let has = |path| locations.resolver().has_path(path);
    let is_unpatched =
        has("parking_lot::word") && (has("parking_lot::raw_mutex") || has("parking_lot::raw_rwlock"));
    is_unpatched.then(|| {
        "The program also has a parking_lot whose locks are not recorded: run \"cargo tree --duplicates\", and patch \
         that version too."
            .to_owned()
    })
}

/// Events and operands that are not shown, because a part of them is missing.
pub fn of_leftover(leftover: &Leftover) -> Vec<String> {
    let mut remarks = Vec::new();
    if leftover.incomplete_events > 0 {
        let events = agreeing(leftover.incomplete_events, "event", "is", "are");
        remarks.push(format!("{events} not shown: operands were overwritten or not read."));
    }
    if leftover.stray_operands > 0 {
        let operands = agreeing(leftover.stray_operands, "operand", "is", "are");
        remarks.push(format!("{operands} not shown: the event was not written or not read."));
    }
    remarks
}

/// Why the kernel's scheduler is not recorded, or not all of it.
pub fn of_scheduler(refusal: &Refusal) -> Warning {
    let is_denied =
        |error: &Error| matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem);
    match refusal {
        Refusal::Events(error) if is_denied(error) => (
            format!("no turns of threads on processors are recorded: the kernel refuses perf events: {error}"),
            "run read-rip as root or with CAP_PERFMON (a container: --cap-add PERFMON), or set \
             kernel.perf_event_paranoid to 0",
        ),
        Refusal::Events(error) => {
            (format!("no turns of threads on processors are recorded: no perf events: {error}"), "")
        }
        Refusal::Buffers(error) => (
            format!("no turns of threads on processors are recorded: no buffer for perf events: {error}"),
            "raise kernel.perf_event_mlock_kb or ulimit -l, or run read-rip as root",
        ),
        Refusal::Clock => (
            "no turns of threads on processors are recorded: this machine's clocks cannot be compared with the \
             ring's"
                .to_owned(),
            "",
        ),
        Refusal::Tracepoints(error) if error.kind() == ErrorKind::NotFound => (
            "no wake-ups are recorded: tracefs is not mounted".to_owned(),
            "mount -t tracefs nodev /sys/kernel/tracing",
        ),
        Refusal::Tracepoints(error) => (
            format!("no wake-ups are recorded: tracefs cannot be read: {error}"),
            "run read-rip as root, or mount -o remount,mode=755 /sys/kernel/tracing",
        ),
        Refusal::WakeUps(error) => (
            format!("no wake-ups are recorded: the kernel refuses their tracepoint: {error}"),
            "run read-rip as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to -1",
        ),
        Refusal::PidNamespace => (
            "no wake-ups are recorded: the kernel numbers their threads as the first PID namespace does".to_owned(),
            "run read-rip on the host, outside of the container",
        ),
    }
}

/// Where the kernel's record of the scheduler has gaps; `None` if it has none.
pub fn of_gaps(records: u64) -> Option<String> {
    (records > 0).then(|| {
        let lost = counted(records, "record");
        let verb = if records == 1 { "was" } else { "were" };
        format!("{lost} of the kernel's scheduler {verb} lost: its buffers were full, and a shorter --interval helps.")
    })
}

/// What a recording does not have of the kernel's scheduler, and what was not read of it.
pub fn of_schedule(schedule: &Schedule) -> Vec<String> {
    let lost = of_gaps(schedule.gaps.iter().fold(0, |sum, gap| sum.saturating_add(gap.records)));
    let left_out = (schedule.left_out > 0).then(|| {
        let count = schedule.left_out;
        format!(
            "{count} turns and wake-ups are not shown, because they take too much memory: --unpack-limit SIZE"
        )
    });
    let damaged = schedule.defects.iter().map(|defect| format!("Warning: {defect}"));
    lost.into_iter().chain(left_out).chain(damaged).collect()
}

/// Words that were overwritten before a reader saw them.
pub fn of_unseen(words: u64) -> Option<String> {
    (words > 0).then(|| {
        let words = agreeing(words, "word", "was", "were");
        format!("{words} overwritten before they were read: RIP_WORDS gives each thread more.")
    })
}

/// What a recording does not have, and what was not read of it.
pub fn of_recording(snapshot: &Snapshot) -> Vec<String> {
    let left_out = snapshot.left_out_words;
    let left_out = (left_out > 0).then(|| {
        let words = agreeing(left_out, "word", "is", "are");
        format!(
            "The first {words} not shown: a recording may take 64 times its length in memory, and 1 GiB of words: \
             --unpack-limit SIZE"
        )
    });
    of_unseen(snapshot.unseen_words).into_iter().chain(left_out).collect()
}

/// Spans that are open and not listed.
pub fn of_spans(snapshot: &Snapshot) -> Vec<String> {
    let mut remarks = Vec::new();
    let Some(header) = &snapshot.header else { return remarks };
    if header.span_overflows > 0 {
        let spans = agreeing(header.span_overflows, "span", "was", "were");
        let most = header.span_entries;
        remarks.push(format!("{spans} not entered as open: a thread has room for {most} open spans."));
    }
    if header.span_entries == 0 && snapshot.sites.iter().any(|site| site.kind == SiteKind::SpanBegin) {
        remarks.push("Open spans were not recorded: no module had spans when the ring was made.".to_owned());
    }
    let in_flux: u64 = snapshot.slots.iter().map(|slot| u64::from(slot.spans_in_flux)).sum();
    if in_flux > 0 {
        let spans = agreeing(in_flux, "open span", "is", "are");
        remarks.push(format!("{spans} not shown: they began or ended during the reading."));
    }
    remarks
}

/// Captures that are not there.
pub fn of_captures(snapshot: &Snapshot) -> Option<String> {
    let refused = snapshot.header.as_ref()?.captures_refused;
    (refused > 0).then(|| {
        let captures = agreeing(refused, "capture", "was", "were");
        format!("{captures} dropped: there was no room, or several were made at the same moment.")
    })
}

/// Events of channels that are not there.
pub fn of_channels(snapshot: &Snapshot) -> Option<String> {
    let refused = snapshot.header.as_ref()?.channels_refused;
    (refused > 0).then(|| {
        format!(
            "{refused} times there was no room for a channel, or for a thread's words in one: those events are missing. \
             A ring has room for eight channels, and for 32 MiB of their words."
        )
    })
}

/// Threads without a known mark.
pub fn of_silent(count: u64) -> Option<String> {
    (count > 0).then(|| format!("{} no known mark.", agreeing(count, "thread", "has", "have")))
}

/// Threads without anything in the time that the user wants.
pub fn of_threads_left_out(count: u64) -> Option<String> {
    (count > 0).then(|| {
        format!("{} left out: nothing of that time is known.", agreeing(count, "thread", "is", "are"))
    })
}

/// What `check` cannot know, and what it left out.
pub fn of_check(model: &LockModel, checked: &Checked) -> Vec<String> {
    let mut remarks = Vec::new();
    if checked.findings > 0 {
        remarks.push(format!("{}.", count_of_findings(checked)));
    }
    remarks.extend(checked.one_reading.map(|why| why.text().to_owned()));
    if checked.suppressed > 0 {
        remarks.push(format!("{} suppressed.", agreeing(checked.suppressed as u64, "finding", "is", "are")));
    }
    if checked.not_matching > 0 {
        let findings = agreeing(checked.not_matching as u64, "finding", "does", "do");
        remarks.push(format!("{findings} not match the pattern."));
    }
    remarks.extend(of_overflowed(model));
    remarks.extend(of_unmatched(model));
    remarks.extend(of_executor(model, checked.balance.outcome != Outcome::Hidden));
    if checked.is_order_search_cut {
        let why = "Only a part of the orders in which threads acquired locks was compared: there are too many. There \
                   may be more inversions.";
        remarks.push(why.to_owned());
    }
    if checked.is_up_to_last_time && checked.findings > 0 {
        let why = "Lengths of time end at the last recorded moment. They may have been longer.";
        remarks.push(why.to_owned());
    }
    remarks
}

/// `2 findings in 3 threads and 4 locks`.
pub fn count_of_findings(checked: &Checked) -> String {
    let count = |count: usize, thing| counted(count as u64, thing);
    format!("{} in {}", count(checked.findings, "finding"), looked_at(checked, count(checked.locks, "lock")))
}

/// `3 threads, 2 tasks and 4 locks`.
pub(super) fn looked_at(checked: &Checked, locks: String) -> String {
    let threads = counted(checked.threads as u64, "thread");
    match checked.tasks {
        0 => format!("{threads} and {locks}"),
        tasks => format!("{threads}, {} and {locks}", counted(tasks as u64, "task")),
    }
}

/// How much of what threads did has no time, and is not drawn.
pub fn of_undated(undated: usize) -> String {
    let (what, are) = match undated {
        1 => ("wait, hold, span or event", "has no time and is not drawn"),
        _ => ("waits, holds, spans and events", "have no time and are not drawn"),
    };
    format!("{undated} {what} {are}; RIP_CLOCK=all gives each one a time.")
}

/// What `locks` cannot know, and what it left out.
pub fn of_locks(model: &LockModel, overview: &Overview, snapshot: &Snapshot, losses: &Losses) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(of_no_lock(model));
    if overview.hidden > 0 {
        let locks = counted(overview.hidden as u64, "idle, uncontended lock");
        remarks.push(format!(
            "{locks} hidden (--all shows {}).",
            if overview.hidden == 1 { "it" } else { "them" }
        ));
    }
    if overview.unused > 0 {
        let locks = agreeing(overview.unused as u64, "lock", "was", "were");
        remarks.push(format!("{locks} not used in that time."));
    }
    remarks.extend(of_overflowed(model));
    if model.held_overflows > overflowed(model) {
        remarks.push(format!(
            "{} not recorded as held so far, because a thread's table was full.",
            agreeing(model.held_overflows, "acquisition", "was", "were")
        ));
    }
    let in_flux: u64 = model.threads.iter().map(|thread| u64::from(thread.in_flux)).sum();
    if in_flux > 0 {
        let locks = agreeing(in_flux, "lock", "was", "were");
        remarks.push(format!(
            "{locks} being acquired or released during the reading. Their holders are not shown."
        ));
    }
    remarks.extend(of_unmatched(model));
    let has_moved = |summary: &Summary| {
        let lock = &model.locks[summary.lock];
        summary.has_moved || (!lock.is_from_memory && lock.holders.is_empty() && !lock.waiters.is_empty())
    };
    if !model.is_final && overview.locks.iter().any(has_moved) {
        remarks
            .push("Threads ran during the reading: each is shown at a slightly different moment.".to_owned());
    }
    let clock = snapshot.header.as_ref().and_then(|header| header.clock);
    let is_timed = clock.is_some_and(|clock| clock.level != ClockLevel::Off);
    if !is_timed && model.is_recorded() && model.locks.iter().any(|lock| !lock.is_from_memory) {
        remarks.push("No times were recorded (set RIP_CLOCK=contended or all).".to_owned());
    }
    if losses.overwritten > 0 && model.locks.iter().any(|lock| lock.record.acquisitions > 0) {
        remarks
            .push("Acquisitions and times are counted only as far back as the histories reach.".to_owned());
    }
    remarks
}

fn of_no_lock(model: &LockModel) -> Option<String> {
    let why = match model.is_recorded() {
        true => "No lock is known: the program marks no locks, or all of their marks are overwritten.",
        false => "No thread waits for a lock that read-rip knows.",
    };
    model.locks.is_empty().then(|| why.to_owned())
}

/// Locks that are held and in no table.
pub fn overflowed(model: &LockModel) -> u64 {
    model.threads.iter().map(|thread| u64::from(thread.overflowed)).sum()
}

fn of_overflowed(model: &LockModel) -> Option<String> {
    let count = overflowed(model);
    (count > 0).then(|| {
        let locks = agreeing(count, "held lock", "is", "are");
        format!(
            "{locks} not listed: a thread's table has room for {HELD_LOCKS_MAX} locks. Which further ones it holds \
             is not known."
        )
    })
}

fn of_unmatched(model: &LockModel) -> Option<String> {
    let count = model.releases_unmatched;
    (count > 0).then(|| {
        format!(
            "{} by a thread other than the holder {} not matched to the holder: a lock marked by hand may look held \
             although it is free.",
            counted(count, "release"),
            if count == 1 { "was" } else { "were" }
        )
    })
}

/// The warning for a ring that does not name its program, if no option names it.
pub const UNNAMED_PROGRAM: (&str, &str) = (
    "a ring in the legacy format does not name its program, so only addresses are known",
    "give the program with -e",
);

/// Marks that threads passed and whose meaning is not known.
pub fn of_ambiguous(locations: &Locations<'_>) -> Option<Warning> {
    let met: Vec<&Location> = locations.iter().filter(|location| location.is_ambiguous).collect();
    let names = FileNames::choose(met.iter().copied());
    let texts = location_texts(locations, names, false);
    let lines: BTreeSet<String> = met.iter().map(|location| texts.line_of(location)).collect();
    let first = lines.first()?;
    let others = match lines.len() - 1 {
        0 => String::new(),
        others => format!("; the same at {}", counted(others as u64, "other location")),
    };
    let what = format!(
        "{first}: the linker has folded marks of different meaning into one, so the meaning of an event there is not \
         known{others}"
    );
    Some((what, "link without --icf, or keep these functions apart with the linker's --keep-unique=FUNCTION"))
}

/// Why `check` has only one reading of a ring whose process is not known to be dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OneReading {
    /// The file is a copy of a ring.
    Copy,
    /// The ring was removed before the second reading.
    Removed,
}

impl OneReading {
    /// The remark.
    pub fn text(self) -> &'static str {
        match self {
            OneReading::Copy => {
                "This file is a copy of a ring. Whether the process ran while it was made is not known, so nothing in \
                 it is proven. Read the ring itself if you can."
            }
            OneReading::Removed => {
                "The ring was removed between two readings: its process ended. The findings are those of the first \
                 reading."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use read_rip_symbols::Problem;

    use super::*;

    #[test]
    fn control_characters_of_a_path_are_escaped() {
        let problem = ModuleProblem { module: 0, path: "/a\x1b[31m\n".into(), what: Problem::Missing };
        assert_eq!(of_module(&problem), "/a\\u{1b}[31m\\n: no such file");
    }
}
