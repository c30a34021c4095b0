//! `read-rip export`: files for other programs.
//!
//! It chooses what they show, and where the file goes. It formats nothing.

use std::io::Write;
use std::path::Path;

use read_rip_export::{self as export, Contention, SaidKind, Scene};
use read_rip_model::locations::{FileNames, Limits, Locations};
use read_rip_report::{self as report, LockNames};

use super::bare::functions;
use super::check::Readings;
use super::error::AppError;
use super::judged::{self, Judged};
use super::limits::limits;
use super::output::{bytes, output};
use super::timelines::{all_timelines, choose, said};
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
pub(super) fn export(args: &ExportArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    let drawn = match args.format {
        ExportFormat::Chrome => Drawn::Chrome,
        ExportFormat::Perfetto => Drawn::Perfetto,
        ExportFormat::Firefox => Drawn::Firefox,
        ExportFormat::Dot => Drawn::Dot,
        ExportFormat::Folded => Drawn::Folded,
        ExportFormat::Ctf => return trace(&path, args, wanted),
        ExportFormat::Ndjson => return judged::export(&path, Judged::Ndjson, args, wanted),
        ExportFormat::Openmetrics => return judged::export(&path, Judged::Openmetrics, args, wanted),
        ExportFormat::Parquet => return judged::export(&path, Judged::Parquet, args, wanted),
    };
    let writing = written::target(&args.output).map(Writing::begin).transpose()?;
    let mut readings = Readings::at_present(&path, wanted)?;
    let limits = limits(&args.time, &readings.reading)?;
    let is_timeline = drawn.is_timeline();
    let said = if is_timeline { said(&readings.reading, limits, wanted) } else { Vec::new() };
    let words = readings.reading.snapshot.take_words();
    let reading = &readings.reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let model = readings.model_of(Limits::default(), words, &mut locations);
    let objects = reading.objects(&mut locations);
    let frames = match &reading.seen {
        Some(seen) if drawn.has_stacks() => {
            functions(seen.stacks.iter().map(|group| &group.stack), seen, &mut locations)
        }
        _ => report::StackFrames::default(),
    };
    let files = FileNames::choose(locations.iter());
    let texts = report::location_texts(&locations, &files, false);
    let seen = reading.seen_names(&objects);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen };
    let mut threads = if is_timeline { all_timelines(&model, &said, limits) } else { Vec::new() };
    let contention = Contention::of(&threads);
    let left_out = choose(&mut threads, &model, args.threads);
    threads.sort_by_key(|(id, _)| *id);
    let program = reading.program();
    let scene = Scene {
        program: &program,
        names: &names,
        threads: &threads,
        said: &said,
        contention: &contention,
        frames: &frames,
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
            let mut out = output(wanted);
            write(&mut out)?;
            out.flush()?;
        }
    }
    let mut remarks = Vec::new();
    if !left_out.is_empty() {
        remarks.push(format!("{} left out: see --threads.", names.members(&left_out, left_out.len())));
    }
    let undated: usize = threads.iter().map(|(_, timeline)| timeline.undated).sum::<usize>()
        + said.iter().filter(|said| said.kind == SaidKind::Event(None)).count();
    if undated > 0 {
        remarks.push(report::remarks::of_undated(undated));
    }
    if let Some(target) = written::target(&args.output) {
        written::remark_of(target);
    }
    reading.remarks(wanted, &locations, &remarks)
}

/// Writes the folder of a trace.
fn trace(path: &Path, args: &ExportArgs, wanted: &Common) -> Result<u8, AppError> {
    let target = written::target(&args.output).ok_or(AppError::NeedsFolder)?;
    let writing = Writing::begin(target)?;
    let reading = super::log::read(path, wanted)?;
    let limits = limits(&args.time, &reading)?;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let program = reading.program();
    let leftover = writing.folder(|files| {
        export::ctf(files, &program, &reading.snapshot, &mut locations, reading.horizon(), limits)
    })?;
    written::remark_of(target);
    reading.remarks(wanted, &locations, &report::remarks::of_leftover(&leftover))
}
