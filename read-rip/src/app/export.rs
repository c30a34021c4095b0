//! `read-rip export`: files for other programs.
//!
//! It chooses what they show, and where the file goes. It formats nothing.

use std::io::Write;

use read_rip_case::{Case, Readings, Subject};
use read_rip_export::{self as export, Contention, LoggedKind, Scene};
use read_rip_model::locations::{Limits, Locations};
use read_rip_report as report;
use read_rip_ring::{Period, Schedule, Source};

use super::error::AppError;
use super::judged::{self, Judged};
use super::limits::within;
use super::output::{bytes, output};
use super::remarks;
use super::timelines::{all_timelines, choose, logged};
use super::written::{self, Writing};
use crate::cli::{Common, ExportArgs, ExportFormat};

/// A format that shows what happened, and judges nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Drawn {
    Chrome,
    Perfetto,
    Firefox,
    Dot,
    Folded,
}

impl Drawn {
    /// Whether it shows what threads did in the course of time.
    fn is_timeline(self) -> bool {
        matches!(self, Drawn::Chrome | Drawn::Perfetto | Drawn::Firefox)
    }

    /// Whether it shows the stacks of threads.
    fn has_stacks(self) -> bool {
        matches!(self, Drawn::Firefox | Drawn::Folded)
    }
}

/// `read-rip export`.
pub(super) fn export(args: &ExportArgs, common: &Common) -> Result<u8, AppError> {
    let subject = super::rings::choose(&args.ring, common)?;
    let drawn = match args.format {
        ExportFormat::Chrome => Drawn::Chrome,
        ExportFormat::Perfetto => Drawn::Perfetto,
        ExportFormat::Firefox => Drawn::Firefox,
        ExportFormat::Dot => Drawn::Dot,
        ExportFormat::Folded => Drawn::Folded,
        ExportFormat::Ctf => return trace(&subject, args, common),
        ExportFormat::Ndjson => return judged::export(&subject, Judged::Ndjson, args, common),
        ExportFormat::Openmetrics => return judged::export(&subject, Judged::Openmetrics, args, common),
        #[cfg(not(feature = "parquet"))]
        ExportFormat::Parquet => {
            return Err(AppError::NotBuilt { what: "Parquet files", feature: "parquet" });
        }
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => return judged::export(&subject, Judged::Parquet, args, common),
    };
    let writing = written::target(&args.output).map(Writing::begin).transpose()?;
    let options = common.options();
    let is_timeline = drawn.is_timeline();
    let read = |subject: &Subject| Ok(Readings::at_present(subject, &options)?);
    // What follows joins the words of this time to those of the image.
    let (mut readings, limits) = within(&subject, &args.time, (true, None), read, |of| &of.reading)?;
    let logged = if is_timeline { logged(&readings.reading, limits, &options) } else { Vec::new() };
    let schedule = match &subject {
        Subject::Recording(source) if drawn == Drawn::Perfetto => schedule(source, limits)?,
        _ => Schedule::default(),
    };
    let mut case = Case::of(&mut readings, &options);
    if drawn.has_stacks() {
        case.find_all_frames();
    }
    let (reading, model) = (case.reading, &case.model);
    let texts = case.texts(false);
    let names = case.names(&texts);
    let mut threads = if is_timeline { all_timelines(model, &logged, limits) } else { Vec::new() };
    let contention = Contention::of(&threads);
    let left_out = choose(&mut threads, model, args.threads);
    threads.sort_by_key(|(id, _)| *id);
    let program = reading.program();
    let scene = Scene {
        program: &program,
        names: &names,
        threads: &threads,
        logged: &logged,
        contention: &contention,
        schedule: &schedule,
        frames: &case.frames,
        boot_ns: report::realtime_ns(&reading.snapshot, 0),
    };
    let write = |out: &mut dyn Write| match drawn {
        Drawn::Chrome => export::chrome(out, &scene),
        Drawn::Perfetto => export::perfetto(out, &scene),
        Drawn::Firefox => export::firefox(out, &scene),
        Drawn::Dot => export::dot(out, &names),
        Drawn::Folded => export::folded(out, &scene, args.by_lock),
    };
    match writing {
        Some(writing) => writing.file(write)?,
        None if drawn == Drawn::Perfetto => {
            let mut out =
                bytes().map_err(|source| AppError::Export { path: "standard output".into(), source })?;
            write(&mut out)?;
            out.flush()?;
        }
        None => {
            let mut out = output(common);
            write(&mut out)?;
            out.flush()?;
        }
    }
    let mut remarks = Vec::new();
    if !left_out.is_empty() {
        remarks.push(format!("{} left out: see --threads.", names.members(&left_out, left_out.len())));
    }
    let undated: usize = threads.iter().map(|(_, timeline)| timeline.undated).sum::<usize>()
        + logged.iter().filter(|logged| logged.kind == LoggedKind::Event(None)).count();
    if undated > 0 {
        remarks.push(report::remarks::of_undated(undated));
    }
    remarks.extend(report::remarks::of_schedule(&schedule));
    if let Some(target) = written::target(&args.output) {
        written::remark_of(target);
    }
    remarks::write(reading, common, &case.locations, &remarks)
}

/// What a recording has of the kernel's scheduler in that time.
fn schedule(source: &Source, limits: Limits) -> Result<Schedule, AppError> {
    let (since_ns, until_ns) = (limits.since_ns.unwrap_or(0), limits.until_ns.unwrap_or(u64::MAX));
    let mut schedule = source.within(Period { since_ns, until_ns }).schedule()?;
    schedule.turns.retain(|turn| limits.overlap(Some(turn.begin_ns), Some(turn.end_ns)));
    schedule.wake_ups.retain(|of| limits.overlap(Some(of.at_ns), Some(of.at_ns)));
    schedule.gaps.retain(|gap| limits.overlap(Some(gap.begin_ns), Some(gap.end_ns)));
    Ok(schedule)
}

/// Writes the folder of a trace.
fn trace(subject: &Subject, args: &ExportArgs, common: &Common) -> Result<u8, AppError> {
    let target = written::target(&args.output).ok_or(AppError::NeedsFolder)?;
    let writing = Writing::begin(target)?;
    let options = common.options();
    let read = |subject: &Subject| super::log::read(subject, &options);
    let (reading, limits) = within(subject, &args.time, (true, None), read, |reading| reading)?;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(&options));
    let program = reading.program();
    let leftover = writing.folder(|files| {
        export::ctf(files, &program, &reading.snapshot, &mut locations, reading.horizon(), limits)
    })?;
    written::remark_of(target);
    remarks::write(&reading, common, &locations, &report::remarks::of_leftover(&leftover))
}
