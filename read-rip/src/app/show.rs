//! The condensed view, the per-thread view, and `info`.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::AppError;
use super::{ERROR, SOUND, now_ns, output, remark};
use crate::analyse::{self, Losses, Thread, ThreadState};
use crate::cli::{Common, RingArgs, View};
use crate::decode::{self, Event};
use crate::places::{FileNames, PlaceId, Places};
use crate::process::{self, Life, living_threads};
use crate::report::{self, Json, counted, printable};
use crate::resolve::{Options, Resolver};
use crate::ring::{self, Module, Snapshot};

/// A C ancestor's program was not position-independent: any address may be in it.
const WHOLE_ADDRESS_SPACE: u64 = 1 << 48;

/// `read-rip [RING]`.
pub(super) fn show(ring: &RingArgs, view: &View, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(ring, &wanted.dir)?;
    let reading = Reading::of(&path, wanted)?;
    let mut places = Places::new(&reading.snapshot, reading.resolver(wanted));
    let threads = analyse::threads(&reading.snapshot, &reading.living);
    let remarks = if view.threads {
        show_threads(view, wanted, &reading, &threads, &mut places)?
    } else {
        show_condensed(view, wanted, &reading, &threads, &mut places)?
    };
    reading.remarks(wanted, &places, &remarks)
}

/// `read-rip info`.
pub(super) fn info(ring: &RingArgs, wanted: &Common) -> Result<u8, AppError> {
    let path = super::rings::choose(ring, &wanted.dir)?;
    let reading = Reading::of(&path, wanted)?;
    let mut out = output(wanted);
    if wanted.json {
        Json(&mut out).ring(&path, &reading.snapshot, reading.life.as_ref(), &reading.losses)?;
    } else {
        let life = reading.life.as_ref();
        report::info(&mut out, &path, &reading.snapshot, life, &reading.losses, now_ns())?;
    }
    out.flush()?;
    drop(out);
    reading.report_defects(wanted)
}

/// A ring that was read, and what the system knows of its process.
struct Reading {
    path: PathBuf,
    snapshot: Snapshot,
    life: Option<Life>,
    losses: Losses,
    /// The threads that the process has; empty when it has ended.
    living: HashSet<u32>,
}

impl Reading {
    fn of(path: &Path, wanted: &Common) -> Result<Reading, AppError> {
        // Asked before and behind the copy: a thread that ends or begins in between is not gone.
        let living_before = ring::read_header(path).map(|header| living_threads(header.pid as i32));
        let mut snapshot = ring::read(path)?;
        if snapshot.header.is_none()
            && let Some(exe) = wanted.exe.clone()
        {
            // The ancestor's rings name no program.
            snapshot.modules.push(Module {
                end: WHOLE_ADDRESS_SPACE,
                path: exe,
                is_executable: true,
                ..Module::default()
            });
        }
        let life = snapshot.header.as_ref().map(|header| process::life_of_ring(header, &snapshot.slots));
        let mut living = match (&life, &snapshot.header) {
            // Thread ids in the ring count in the process's own namespace, which must be ours to compare.
            (Some(Life::Alive { pid }), Some(header)) if header.pid as i32 == *pid => living_threads(*pid),
            _ => HashSet::new(),
        };
        if !living.is_empty() {
            living.extend(living_before.unwrap_or_default());
        }
        let losses = analyse::losses(&snapshot);
        Ok(Reading { path: path.to_owned(), snapshot, life, losses, living })
    }

    fn resolver(&self, wanted: &Common) -> Resolver {
        let pid = match self.life {
            Some(Life::Alive { pid }) => Some(pid),
            _ => None,
        };
        let mut options = Options { executable: wanted.exe.clone(), ..Options::default() };
        options.debug_dirs.splice(0..0, wanted.debug_dir.iter().cloned());
        options.root = pid.map(|pid| PathBuf::from(format!("/proc/{pid}/root")));
        options.live_executable = pid.map(|pid| PathBuf::from(format!("/proc/{pid}/exe")));
        Resolver::new(&self.snapshot.modules, options)
    }

    /// Says on standard error what the result does not show; the exit status follows from it.
    fn remarks(&self, wanted: &Common, places: &Places<'_>, remarks: &[String]) -> Result<u8, AppError> {
        if wanted.json {
            let mut out = output(wanted);
            if let Some((what, hint)) = self.unnamed_program(wanted) {
                Json(&mut out).problem(&self.path.to_string_lossy(), what, Some(hint))?;
            }
            for problem in places.resolver().problems() {
                let about = problem.path.to_string_lossy();
                Json(&mut out).problem(&about, &problem.to_string(), Some(problem.hint()))?;
            }
            out.flush()?;
            return self.report_defects(wanted);
        }
        remarks.iter().for_each(remark);
        let Losses { words, overwritten, torn, unwritten, .. } = self.losses;
        let lost = [(torn, "torn"), (unwritten, "unwritten")]
            .iter()
            .filter(|&&(count, _)| count > 0)
            .map(|(count, what)| format!(", {count} {what}"))
            .collect::<String>();
        remark(format_args!(
            "{} known, {} overwritten{lost}.",
            agreeing(words, "mark", "is", "are"),
            agreeing(overwritten, "older one", "was", "were")
        ));
        if let Some((what, hint)) = self.unnamed_program(wanted) {
            remark(format_args!("Warning: {what}"));
            remark(format_args!("Hint: {hint}"));
        }
        if let Some(header) = &self.snapshot.header {
            let refused = header.threads_refused_full.saturating_add(header.threads_refused_memory);
            if refused > 0 {
                remark(format_args!(
                    "{} recorded nowhere: {} found no slot (RIP_SLOTS), {} no memory.",
                    counted(refused, "thread"),
                    header.threads_refused_full,
                    header.threads_refused_memory
                ));
            }
        }
        for problem in places.resolver().problems() {
            remark(format_args!("Warning: {}", printable(&problem.to_string())));
            remark(format_args!("Hint: {}", problem.hint()));
        }
        self.report_defects(wanted)
    }

    fn report_defects(&self, wanted: &Common) -> Result<u8, AppError> {
        let about = self.path.to_string_lossy();
        let mut hints = Vec::new();
        for defect in &self.snapshot.defects {
            if wanted.json {
                let mut out = output(wanted);
                Json(&mut out).problem(&about, &defect.to_string(), Some(defect.hint()))?;
                out.flush()?;
            } else {
                remark(format_args!("Damaged: {}", printable(&defect.to_string())));
                if !hints.contains(&defect.hint()) {
                    hints.push(defect.hint());
                }
            }
        }
        hints.iter().for_each(|hint| remark(format_args!("Hint: {hint}")));
        Ok(if self.snapshot.defects.is_empty() { SOUND } else { ERROR })
    }

    /// What to say where the ring does not name its program, and nobody else does.
    fn unnamed_program(&self, wanted: &Common) -> Option<(&'static str, &'static str)> {
        (self.snapshot.header.is_none() && wanted.exe.is_none()).then_some((
            "a ring of the C ancestor does not say which program it is of, so there are only addresses",
            "give the program with -e",
        ))
    }

    /// One sentence on the process.
    fn heading(&self, threads: &[Thread<'_>]) -> String {
        let count = |state| threads.iter().filter(|thread| thread.state == state).count();
        let (exited, abandoned) = (count(ThreadState::Exited), count(ThreadState::Abandoned));
        let mut heading = match (&self.snapshot.header, &self.life) {
            (Some(header), Some(life)) => {
                let program = self.snapshot.program();
                let program = program.and_then(|module| module.path.file_name()).unwrap_or_default();
                let state = report::ended(header, life);
                format!("{}[{}], {state}: ", printable(&program.to_string_lossy()), header.pid)
            }
            _ => String::new(),
        };
        heading += &counted(threads.len() as u64, "thread");
        if exited > 0 {
            heading += &format!(", {exited} of them exited (-tv shows those too)");
        }
        if abandoned > 0 {
            heading += &format!(", {abandoned} gone without saying so");
        }
        heading
    }
}

fn show_condensed(
    view: &View,
    wanted: &Common,
    reading: &Reading,
    threads: &[Thread<'_>],
    places: &mut Places<'_>,
) -> Result<Vec<String>, AppError> {
    let mut last = Vec::with_capacity(threads.len());
    let mut silent = 0;
    for thread in threads.iter().filter(|thread| thread.state != ThreadState::Exited) {
        let slot = thread.slot;
        match decode::last_event(slot, |pc| places.operand_words(slot.pid, pc)) {
            Some(event) => last.push((thread, places.find(slot, event.pc))),
            None => silent += 1,
        }
    }
    let names = FileNames::choose(places.iter());
    let locations = report::location(places, &names, view.verbose);
    last.retain(|&(thread, place)| is_wanted(view, thread, Some(place), places, &locations));
    let last: Vec<(u32, PlaceId)> = last.iter().map(|&(thread, place)| (thread.slot.tid, place)).collect();
    let groups = analyse::condense(&last, places);
    let mut out = output(wanted);
    if wanted.json {
        let mut json = Json(&mut out);
        json.ring(&reading.path, &reading.snapshot, reading.life.as_ref(), &reading.losses)?;
        for group in &groups {
            json.group(group, places, &reading.snapshot)?;
        }
    } else {
        remark(reading.heading(threads));
        report::condensed(&mut out, &groups, places, &locations, view.verbose)?;
    }
    out.flush()?;
    let mut remarks = Vec::new();
    if silent > 0 {
        remarks.push(format!("{} no mark that is known.", agreeing(silent, "thread", "has", "have")));
    }
    Ok(remarks)
}

fn show_threads(
    view: &View,
    wanted: &Common,
    reading: &Reading,
    threads: &[Thread<'_>],
    places: &mut Places<'_>,
) -> Result<Vec<String>, AppError> {
    let shown = || threads.iter().filter(|thread| view.verbose || thread.state != ThreadState::Exited);
    // Once for the places, which decide how each is called, and once to show them: all events at a time would take
    // several times the ring's memory.
    let mut incomplete = decode::Leftover::default();
    for thread in shown() {
        let (events, leftover) = decode::events(thread.slot, |pc| places.operand_words(thread.slot.pid, pc));
        incomplete.incomplete_events += leftover.incomplete_events;
        incomplete.stray_operands += leftover.stray_operands;
        for event in events {
            places.find(thread.slot, event.pc);
        }
    }
    let names = FileNames::choose(places.iter());
    let locations = report::location(places, &names, view.verbose);
    let mut out = output(wanted);
    if wanted.json {
        Json(&mut out).ring(&reading.path, &reading.snapshot, reading.life.as_ref(), &reading.losses)?;
    } else {
        remark(reading.heading(threads));
    }
    for thread in shown() {
        let (events, _) = decode::events(thread.slot, |pc| places.operand_words(thread.slot.pid, pc));
        let events: Vec<(Event, PlaceId)> = events
            .into_iter()
            .map(|event| {
                let place = places.find(thread.slot, event.pc);
                (event, place)
            })
            .collect();
        let last = events.last().map(|&(_, place)| place);
        if !is_wanted(view, thread, last, places, &locations) {
            continue;
        }
        if wanted.json {
            Json(&mut out).thread(thread, &events, places, &reading.snapshot)?;
        } else {
            let mask = reading.snapshot.sequence_mask;
            report::thread(&mut out, thread, &events, places, &locations, mask)?;
        }
    }
    out.flush()?;
    let mut remarks = Vec::new();
    if incomplete != decode::Leftover::default() {
        remarks.push(format!(
            "{} operands, {} to none.",
            agreeing(incomplete.incomplete_events, "event", "misses", "miss"),
            agreeing(incomplete.stray_operands, "operand", "belongs", "belong")
        ));
    }
    Ok(remarks)
}

/// A number of things and what they do.
fn agreeing(count: u64, thing: &str, one: &str, several: &str) -> String {
    format!("{} {}", counted(count, thing), if count == 1 { one } else { several })
}

/// Whether `--match` lets a thread through.
fn is_wanted(
    view: &View,
    thread: &Thread<'_>,
    last: Option<PlaceId>,
    places: &Places<'_>,
    locations: &report::Locations<'_>,
) -> bool {
    let Some(pattern) = &view.r#match else { return true };
    let name = format!("{}[{}]", thread.slot.name, thread.slot.tid);
    pattern.is_match(&name)
        || last.is_some_and(|place| {
            let place = places.get(place);
            pattern.is_match(&place.function) || pattern.is_match(&locations.of(place))
        })
}
