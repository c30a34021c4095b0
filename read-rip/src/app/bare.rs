//! The views of a process by the kernel and its memory: where its threads stand without a ring or in a core file, and
//! `stacks`.
//!
//! It formats nothing: `report` does.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use read_rip_evidence::core::Death;
use read_rip_evidence::process::Ends;
use read_rip_evidence::stacks::Stack;
use read_rip_evidence::standing::Standings;
use read_rip_model::locations::{FileNames, LocationId, Locations};
use read_rip_model::locks::LockModel;
use read_rip_report::{self as report, ActivityWords, Json, LockNames, printable};

use super::check::Readings;
use super::error::AppError;
use super::output::{output, prose};
use super::verdict;
use crate::cli::{CheckArgs, Common, RingArgs, ShowArgs, StacksArgs};

/// `read-rip PID` for a process without a ring, and `read-rip CORE`.
pub(super) fn show(path: &Path, ring: &RingArgs, args: &ShowArgs, wanted: &Common) -> Result<u8, AppError> {
    let readings = Readings::of(path, &CheckArgs::of(RingArgs::default()), &Ends::default(), wanted)?;
    let reading = &readings.reading;
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let model = readings.model(Vec::new(), &mut locations);
    let Some(seen) = &reading.seen else { return Err(AppError::NoStacks { path: path.to_owned() }) };
    let objects = reading.objects(&mut locations);
    let crashed = reading.core.as_ref().map(|core| crashed(&core.death, seen, &mut locations));
    let crashed = crashed.unwrap_or_default();
    let of_frames = crashed.values().flatten().filter_map(|frame| frame.file.as_deref());
    let of_locations = locations.iter().filter_map(|location| location.source.as_ref());
    let files = FileNames::of_paths(of_frames.chain(of_locations.map(|(file, _)| &**file)));
    let texts = report::location_texts(&locations, &files, args.verbose);
    let seen_names = reading.seen_names(&objects);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen: seen_names };
    let Some(words) = ActivityWords::new(&names) else {
        return Err(AppError::NoStacks { path: path.to_owned() });
    };
    let places = places(seen, &model);
    let threads: Vec<usize> = (0..seen.threads.len())
        .filter(|&thread| is_wanted(args.r#match.as_ref(), thread, &places, &words))
        .collect();
    let mut out: Box<dyn Write> = if args.threads { Box::new(output(wanted)) } else { prose(wanted) };
    if wanted.json {
        reading.write_core(&mut Json(&mut out))?;
        Json(&mut out).standings(&words, &threads, |thread| places[thread], &reading.snapshot)?;
    } else {
        writeln!(out, "{}", reading.heading(&[]))?;
        if !args.threads
            && let Some(core) = &reading.core
        {
            let file = |path: &str| files.get(path).to_owned();
            report::death(&mut out, &core.death, seen, &core.command_line, file, &crashed)?;
        }
        match args.threads {
            true => report::standing_threads(&mut out, &words, &threads, |thread| places[thread])?,
            false => report::standings(&mut out, &words, &threads, |thread| places[thread])?,
        }
        if !args.threads && args.r#match.is_none() {
            let name = ring.name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
            let (_, verdict) = verdict::of_model(&readings, &names, &format!("read-rip check {name}"));
            if let Some(verdict) = verdict {
                writeln!(out, "{}", printable(&verdict))?;
            }
        }
    }
    out.flush()?;
    let unseen: Vec<String> = report::remarks::of_executor(&model).into_iter().collect();
    reading.remarks(wanted, &locations, &unseen)
}

/// `read-rip stacks`.
pub(super) fn stacks(args: &StacksArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(&args.ring, wanted)?;
    // The second reading follows at once: it shows which stacks were read while their threads ran.
    let args_of_check = CheckArgs { window: Duration::ZERO, ..CheckArgs::of(RingArgs::default()) };
    let readings = Readings::of(&path, &args_of_check, &Ends::default(), wanted)?;
    let reading = &readings.reading;
    let Some(seen) = &reading.seen else { return Err(AppError::NoStacks { path }) };
    let mut locations = Locations::new(&reading.snapshot, reading.resolver(wanted));
    let model = readings.model(Vec::new(), &mut locations);
    let objects = reading.objects(&mut locations);
    let frames = functions(seen.stacks.iter().map(|group| &group.stack), seen, &mut locations);
    let paths = frames.values().flatten().filter_map(|frame| frame.file.as_deref());
    let files = FileNames::of_paths(paths);
    let texts = report::location_texts(&locations, &files, false);
    let seen_names = reading.seen_names(&objects);
    let names = LockNames { model: &model, locations: &locations, texts: &texts, seen: seen_names };
    let Some(words) = ActivityWords::new(&names) else {
        return Err(AppError::NoStacks { path: path.to_owned() });
    };
    let places = places(seen, &model);
    let is_wanted = |thread| is_wanted(args.r#match.as_ref(), thread, &places, &words);
    let mut out = prose(wanted);
    if wanted.json {
        reading.write_core(&mut Json(&mut out))?;
        Json(&mut out).stacks(&words, is_wanted, &frames)?;
    } else {
        writeln!(out, "{}", reading.heading(&reading.threads()))?;
        report::stacks(&mut out, &words, is_wanted, |path| files.get(path).to_owned(), &frames)?;
    }
    out.flush()?;
    let unseen: Vec<String> = report::remarks::of_executor(&model).into_iter().collect();
    reading.remarks(wanted, &locations, &unseen)
}

/// Where each thread that was seen stands.
fn places(seen: &Standings, model: &LockModel) -> Vec<Option<LocationId>> {
    let mut places = vec![None; seen.threads.len()];
    for known in model.threads.iter().filter_map(|thread| thread.seen) {
        places[known.index] = known.place;
    }
    places
}

/// The functions of the thread that got the signal.
fn crashed(death: &Death, seen: &Standings, locations: &mut Locations<'_>) -> report::StackFrames {
    let thread = seen.target.tasks.iter().position(|task| task.own_tid == death.tid);
    functions(thread.map(|thread| seen.stack(thread)), seen, locations)
}

/// The functions at all addresses of these stacks, inlined ones first.
pub(super) fn functions<'s>(
    stacks: impl IntoIterator<Item = &'s Stack>,
    seen: &Standings,
    locations: &mut Locations<'_>,
) -> report::StackFrames {
    let mut functions = report::StackFrames::default();
    for &frame in stacks.into_iter().flat_map(|stack| &stack.frames) {
        functions.entry(frame).or_insert_with(|| locations.frames(seen.target.own_pid, frame.lookup()));
    }
    functions
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
            pattern.is_match(&location.function) || pattern.is_match(&words.names.texts.of(location))
        })
}
