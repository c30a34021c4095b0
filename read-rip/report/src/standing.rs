//! The views of a process that is looked at without a ring: where its threads stand, and their stacks.

use std::io::{self, Write};

use read_rip_evidence::runtimes::{Runtime, SourceFrame};
use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::RunState;
use read_rip_model::locations::{Location, LocationId, is_no_function};
use read_rip_symbols::Frame;

use super::activity::ActivityWords;
use super::names::called_words;
use super::stack_lines::StackLines;
use super::units::counted;
use crate::printable;

/// The functions at each address of stacks, the inlined ones first.
pub type StackFrames = std::collections::HashMap<read_rip_evidence::stacks::Frame, Vec<Frame>>;

/// Threads that stand at one place and do the same.
struct Crowd {
    place: Option<LocationId>,
    doing: String,
    /// What their names have in common, where nothing else is known of them.
    kind: String,
    threads: Vec<usize>,
}

/// Writes the condensed view: threads by where they stand and what they do, the most first.
///
/// # Errors
///
/// Those of `out`.
pub fn standings(
    out: &mut dyn Write,
    words: &ActivityWords<'_>,
    threads: &[usize],
    place_of: impl Fn(usize) -> Option<LocationId>,
) -> io::Result<()> {
    for crowd in crowds(words, threads, place_of) {
        let count = counted(crowd.threads.len() as u64, "thread");
        let place = crowd.place.map(|place| words.names.locations.get(place));
        match place {
            Some(location) if is_no_function(&location.users_function()) => {
                writeln!(out, "{} : {count}, {}", words.names.texts.line_of(location), crowd.doing)?;
            }
            Some(location) => {
                let line = words.names.texts.line_of(location);
                let function = location.users_function();
                let called = called(location);
                writeln!(out, "{} : {count} at {line}, {called}{}", printable(&function), crowd.doing)?;
            }
            None if !crowd.kind.is_empty() => {
                writeln!(out, "{} : {count}, {}", printable(&crowd.kind), crowd.doing)?;
            }
            None => writeln!(out, "unknown : {count}, {}", crowd.doing)?,
        }
    }
    Ok(())
}

/// `in insert of dashmap, `: the function of a library that the user has called there.
fn called(location: &Location) -> String {
    let called = location.users_line().called.map(|called| format!("in {}, ", called_words(&called)));
    called.unwrap_or_default()
}

/// Writes a line for each thread.
///
/// # Errors
///
/// Those of `out`.
pub fn standing_threads(
    out: &mut dyn Write,
    words: &ActivityWords<'_>,
    threads: &[usize],
    place_of: impl Fn(usize) -> Option<LocationId>,
) -> io::Result<()> {
    for &thread in threads {
        let task = &words.seen.target.tasks[thread];
        let at =
            place_of(thread).map(|place| format!("{}, ", words.names.location(place))).unwrap_or_default();
        writeln!(out, "{}[{}]: {at}{}", printable(&task.name), task.own_tid, words.of(thread))?;
    }
    Ok(())
}

/// What a process is called: its program, its pid here, and the one in its container.
pub fn process_name(program: &str, pid: u32, own_pid: u32) -> String {
    match own_pid == pid {
        true => format!("{program}[{pid}]"),
        false => format!("{program}[{pid}] ({own_pid} in its container)"),
    }
}

/// Writes stacks, grouped, the most frequent first. The functions of libraries are folded, unless texts are verbose.
///
/// # Errors
///
/// Those of `out`.
pub fn stacks(
    out: &mut dyn Write,
    words: &ActivityWords<'_>,
    is_wanted: impl Fn(usize) -> bool,
    file: impl Fn(&str) -> String,
    frames: &StackFrames,
) -> io::Result<()> {
    for group in &words.seen.stacks {
        let threads: Vec<usize> = group.tasks.iter().copied().filter(|&task| is_wanted(task)).collect();
        if threads.is_empty() {
            continue;
        }
        let count = counted(threads.len() as u64, "thread");
        writeln!(out, "{count}: {}", names(words.seen, &threads))?;
        let doings = doings(words, &threads);
        for (doing, of) in doings.iter().take(DOINGS_MAX) {
            match doings.len() {
                1 => writeln!(out, "  {doing}")?,
                _ => writeln!(out, "  {}: {doing}", names(words.seen, of))?,
            }
        }
        if doings.len() > DOINGS_MAX {
            let more: usize = doings[DOINGS_MAX..].iter().map(|(_, of)| of.len()).sum();
            writeln!(out, "  {}: each does something else", counted(more as u64, "more thread"))?;
        }
        let lines = StackLines { seen: words.seen, frames, is_whole: words.names.texts.is_verbose };
        lines.write(out, &group.stack, &file)?;
        inner_stacks(out, words.seen, &threads, &file)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Writes the functions of their language that threads with one native stack are in.
fn inner_stacks(
    out: &mut dyn Write,
    seen: &Standings,
    threads: &[usize],
    file: impl Fn(&str) -> String,
) -> io::Result<()> {
    let Some(interior) = &seen.interior else { return Ok(()) };
    let mut known: Vec<(&[SourceFrame], Vec<usize>)> = Vec::new();
    for &thread in threads {
        let inner = interior.thread(seen.target.tasks[thread].own_tid);
        let Some(frames) = inner.map(|inner| &*inner.frames).filter(|frames| !frames.is_empty()) else {
            continue;
        };
        match known.iter_mut().find(|(of, _)| *of == frames) {
            Some((_, of)) => of.push(thread),
            None => known.push((frames, vec![thread])),
        }
    }
    let language = seen.runtime.map_or("its language", Runtime::name);
    for (frames, of) in known.iter().take(DOINGS_MAX) {
        match known.len() {
            1 => writeln!(out, "  in {language}:")?,
            _ => writeln!(out, "  in {language}, {}:", names(seen, of))?,
        }
        for frame in *frames {
            let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
            writeln!(out, "    {} {}{line}", printable(&frame.function), printable(&file(&frame.file)))?;
        }
    }
    if known.len() > DOINGS_MAX {
        writeln!(out, "  and {} in {language}", counted((known.len() - DOINGS_MAX) as u64, "more stack"))?;
    }
    Ok(())
}

/// How many different things are listed that threads with one stack do.
const DOINGS_MAX: usize = 10;

/// What threads with one stack do, the most frequent first: they may wait for different objects.
pub(super) fn doings(words: &ActivityWords<'_>, threads: &[usize]) -> Vec<(String, Vec<usize>)> {
    let mut doings: Vec<(String, Vec<usize>)> = Vec::new();
    let mut positions = std::collections::HashMap::new();
    for &thread in threads {
        let doing = words.of(thread);
        let at = *positions.entry(doing.clone()).or_insert(doings.len());
        match doings.get_mut(at) {
            Some((_, of)) => of.push(thread),
            None => doings.push((doing, vec![thread])),
        }
    }
    doings.sort_by_key(|(_, of)| std::cmp::Reverse(of.len()));
    doings
}

/// How many threads of a group are named.
const NAMED_MAX: usize = 4;

fn names(seen: &Standings, threads: &[usize]) -> String {
    let name = |&thread: &usize| {
        let task = &seen.target.tasks[thread];
        format!("{}[{}]", printable(&task.name), task.own_tid)
    };
    let mut all: Vec<String> = threads.iter().take(NAMED_MAX).map(name).collect();
    if threads.len() > NAMED_MAX {
        all.push("...".to_owned());
    }
    all.join(", ")
}

fn crowds(
    words: &ActivityWords<'_>,
    threads: &[usize],
    place_of: impl Fn(usize) -> Option<LocationId>,
) -> Vec<Crowd> {
    let mut positions = std::collections::HashMap::new();
    let mut crowds: Vec<Crowd> = Vec::new();
    for &thread in threads {
        if words.seen.target.tasks[thread].state == RunState::Dead {
            continue;
        }
        let (place, doing) = (place_of(thread), words.of(thread));
        let kind = match words.seen.target.hidden {
            Some(_) => kind_of(&words.seen.target.tasks[thread].name),
            None => String::new(),
        };
        let at = *positions.entry((place, doing.clone(), kind.clone())).or_insert_with(|| {
            crowds.push(Crowd { place, doing, kind, threads: Vec::new() });
            crowds.len() - 1
        });
        crowds[at].threads.push(thread);
    }
    crowds.sort_by_key(|crowd| std::cmp::Reverse(crowd.threads.len()));
    crowds
}

/// The name of a thread without what tells it from its kind: `worker-N` for `worker-12`.
fn kind_of(name: &str) -> String {
    let mut kind = String::new();
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            true if kind.ends_with('N') => {}
            true => kind.push('N'),
            false => kind.push(letter),
        }
    }
    kind
}

/// The first line about a process without a ring, or about a core file with a ring or without.
pub fn standing_heading(seen: &Standings, has_ring: bool) -> String {
    let target = &seen.target;
    if seen.is_final {
        return format!(
            "{}[{}], core file{}: {}",
            printable(&target.name),
            target.pid,
            if has_ring { " and ring" } else { "" },
            counted(target.tasks.len() as u64, "thread")
        );
    }
    let frozen = if seen.is_frozen() { ", frozen by its control group" } else { "" };
    let (process, threads) = (
        process_name(&target.name, target.pid, target.own_pid),
        counted(target.tasks.len() as u64, "thread"),
    );
    let process = printable(&process);
    match target.hidden {
        // It may have a ring that this user may not read.
        Some(_) => format!("{process}, alive{frozen}: {threads}, as the kernel shows them"),
        None => {
            format!(
                "{process}, alive{frozen}, records nothing: {threads}, as the kernel and its memory show them"
            )
        }
    }
}
