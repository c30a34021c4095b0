//! `read-rip report`: one HTML file about a process, for people who have nothing but a browser.
//!
//! It chooses what is part of the file, and where the file goes. `check` judges, and `page` makes the file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use read_rip_case::{Case, Options, Reading, Readings, Subject, now_ns};
use read_rip_export::Logged;
use read_rip_export::page::{self, Entry, Log, Page};
use read_rip_model::locations::{FileNames, Limits, LocationId, Locations};
use read_rip_model::locks::{self, LockModel};
use read_rip_model::log::{self, EntryKind};
use read_rip_model::threads::{self, ThreadState};
use read_rip_report::{self as report, ActivityWords, LockNames};

use super::check::{Filter, Verdict, judge};
use super::error::AppError;
use super::output::{ERROR, SOUND};
use super::picture;
use super::remarks;
use super::timelines::{kept as kept_by_captures, logged_in, timelines};
use super::written::{self, name_of};
use crate::cli::{Common, ReportArgs};

/// More locks are only counted.
const LOCKS_MAX: usize = 5000;

/// `read-rip report`.
pub(super) fn report(args: &ReportArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let target = args.output.clone().unwrap_or_else(|| default_target(&subject.path()));
    let status = write(&subject, &target, args, common, true)?;
    written::remark_of(&target);
    // Findings are no failure of writing.
    Ok(if status == ERROR { ERROR } else { SOUND })
}

/// Writes the file. Returns the exit status of `check`; if `has_remarks`, its remarks are written too.
pub(super) fn write(
    subject: &Subject,
    target: &Path,
    args: &ReportArgs,
    common: &Common,
    has_remarks: bool,
) -> Result<u8, AppError> {
    let options = Options { window: args.window, stops_threads: args.stop.stop, ..common.options() };
    let mut readings = Readings::of(subject, &options)?;
    readings.reading = readings.reading.with_present_names();
    let period_ns = readings.period_ns();
    // The words are needed for this, and the case takes them.
    let record = record(&readings.reading, args.events, &options);
    let mut case = Case::of(&mut readings, &options);
    let verdict = judge(&mut case, &Filter::default());
    case.find_all_frames();
    let texts = case.texts(false);
    let names = case.names(&texts);
    Parts { verdict: &verdict, names: &names, case: &case, period_ns }
        .write(&record, args, target, common)?;
    match has_remarks {
        true => verdict.finish(&case, common),
        false => Ok(verdict.status(SOUND)),
    }
}

/// The file that is written if the user names none.
pub(super) fn default_target(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.html", name_of(path)))
}

/// What needs the words of the slots.
struct Record {
    log: Log,
    /// The same for timelines, ordered by slots.
    logged: Vec<Logged>,
    remarks: Vec<String>,
}

/// What the program logged: at most so many events, the newest ones.
fn record(reading: &Reading, most: usize, options: &Options) -> Record {
    let snapshot = &reading.snapshot;
    let mut locations = Locations::new(snapshot, reading.resolver(options));
    let slots = || snapshot.all_recorded();
    let (entries, leftover) = log::entries(snapshot, slots(), &locations, reading.horizon());
    let spans = log::spans(snapshot, &entries, slots(), &mut locations, reading.now_ns);
    // Timelines show spans only.
    let of_spans = entries.iter().filter(|entry| !matches!(entry.kind, EntryKind::Event(_)));
    let mut logged = logged_in(reading, of_spans, &spans, &mut locations);
    logged.extend(kept_by_captures(reading, Limits::default(), &mut locations));
    logged.sort_by_key(|logged| logged.slot);
    let left_out = entries.len().saturating_sub(most);
    let kept = &entries[left_out..];
    let places: Vec<LocationId> =
        kept.iter().map(|entry| locations.find(snapshot.recorded(entry.slot), &entry.event)).collect();
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, files, false);
    let names_process = super::log::names_process(reading);
    let entry = |(entry, place): (&log::Entry, LocationId)| {
        let slot = snapshot.recorded(entry.slot);
        let location = locations.get(place);
        let channel = slot.channel().and_then(|channel| snapshot.channel_name(channel));
        Entry {
            at_ns: entry.when.time_ns,
            word: report::entry_word(entry.kind),
            took_ns: if let EntryKind::End(took_ns) = entry.kind { took_ns } else { None },
            thread: report::thread_of_slot(slot, names_process),
            channel: channel.unwrap_or_default().to_owned(),
            text: log::text(entry.kind, slot, &entry.event, location, &locations),
            place: texts.line_of(location),
        }
    };
    let entries = kept.iter().zip(places).map(entry).collect();
    let mut remarks = report::remarks::of_leftover(&leftover);
    remarks.extend(report::remarks::of_channels(snapshot));
    remarks.extend(report::remarks::of_spans(snapshot));
    Record { log: Log { entries, left_out, spans, names_process }, logged, remarks }
}

/// What a judgement gives.
struct Parts<'a> {
    verdict: &'a Verdict,
    names: &'a LockNames<'a>,
    case: &'a Case<'a>,
    period_ns: Option<u64>,
}

impl Parts<'_> {
    fn write(
        &self,
        record: &Record,
        args: &ReportArgs,
        target: &Path,
        common: &Common,
    ) -> Result<(), AppError> {
        let &Parts { verdict, names, case, period_ns } = self;
        let (model, reading) = (&case.model, case.reading);
        let overview = locks::overview(model, false, true);
        let picture = picture::make(verdict, names, reading, period_ns, &overview, LOCKS_MAX)?;
        let (mut timelines, timelines_left_out) =
            timelines(model, &record.logged, Limits::default(), args.threads);
        let undated = timelines.iter().map(|(_, timeline)| timeline.undated).sum();
        timelines.retain(|(_, timeline)| !timeline.slices.is_empty());
        let shown = overview.locks.iter().take(LOCKS_MAX);
        let page = Page {
            process: process(reading),
            names,
            found: &verdict.found,
            checked: &verdict.checked,
            picture: &picture,
            records: shown.map(|summary| &model.locks[summary.lock].record).collect(),
            groups: threads::condense(&places(model), names.locations),
            task_groups: locks::task_groups(model, |id| model.threads[id].state == ThreadState::Present),
            timelines: &timelines,
            timelines_left_out,
            log: &record.log,
            snapshot: &reading.snapshot,
            stacks: self.stacks()?,
            remarks: self.remarks(record, undated, common),
            facts: facts(reading)?,
            boot_realtime_ns: report::realtime_ns(&reading.snapshot, 0),
            written: utc(now_ns()),
        };
        written::file(target, |out| page::page(out, &page))
    }

    /// What is not shown, not known or damaged.
    fn remarks(&self, record: &Record, undated: usize, common: &Common) -> Vec<String> {
        let mut lines = report::remarks::of_check(&self.case.model, &self.verdict.checked);
        // The verdict says how many findings there are.
        if self.verdict.checked.findings > 0 {
            lines.remove(0);
        }
        if undated > 0 && self.case.model.is_recorded() {
            lines.push(report::remarks::of_undated(undated));
        }
        lines.extend_from_slice(&record.remarks);
        lines.extend(remarks::besides(self.case.reading, common, &self.case.locations, false));
        for (what, hint) in remarks::damage(self.case.reading) {
            lines.push(format!("Damaged: {what}. Hint: {hint}"));
        }
        lines
    }

    /// The stacks that are known: of each, the threads that have it, then its lines.
    fn stacks(&self) -> io::Result<Vec<Vec<String>>> {
        let Some(words) = ActivityWords::new(self.names) else { return Ok(Vec::new()) };
        let file = |path: &str| self.names.texts.file(path).to_owned();
        let mut text = Vec::new();
        report::stacks(&mut text, &words, |_| true, file, &self.case.frames)?;
        let lines = report::plain_lines(&text);
        Ok(lines.split(String::is_empty).filter(|lines| !lines.is_empty()).map(<[String]>::to_vec).collect())
    }
}

/// `program[pid]`.
fn process(reading: &Reading) -> String {
    let program = reading.program();
    let program = if program.is_empty() { "unknown program" } else { &*program };
    match reading.pid() {
        Some(pid) => format!("{program}[{pid}]"),
        None => program.to_owned(),
    }
}

/// The last mark of each thread that exists, or where the kernel sees it. Tasks have groups of their own.
fn places(model: &LockModel) -> Vec<(u32, LocationId)> {
    let present = model.threads.iter().filter(|thread| thread.state == ThreadState::Present);
    let present = present.filter(|thread| thread.task.is_none());
    let place = |thread: &locks::ThreadLocks| {
        Some((thread.tid, thread.last.or(thread.seen.and_then(|seen| seen.place))?))
    };
    present.filter_map(place).collect()
}

/// What is known of the process and the file.
fn facts(reading: &Reading) -> io::Result<Vec<(String, String)>> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: &str| {
        facts.push((name.to_owned(), value.to_owned()));
        Ok(())
    };
    let (path, program) = (&reading.path, reading.program());
    if reading.unrecorded().is_some() {
        let what = if reading.core.is_some() { "core file" } else { "process" };
        fact(what, &path.to_string_lossy())?;
        fact("program", &program)?;
    } else {
        let liveness = reading.liveness.as_ref();
        report::facts(&mut fact, path, &program, &reading.snapshot, liveness, &reading.losses, now_ns())?;
    }
    if let Some(core) = &reading.core {
        fact("command", &core.command_line)?;
    }
    Ok(facts)
}

/// A time as people read it.
fn utc(realtime_ns: u64) -> String {
    let text = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(realtime_ns)).to_string();
    text.replace('T', " ").replace('Z', " UTC")
}
