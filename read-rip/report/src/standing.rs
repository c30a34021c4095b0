//! The views of a process that is looked at without a ring: where its threads stand, and their stacks.

use std::io::{self, Write};

use read_rip_evidence::stacks::{Cut, End, Stack};
use read_rip_evidence::standing::Standings;
use read_rip_evidence::target::RunState;
use read_rip_model::locations::LocationId;
use read_rip_symbols::Frame;

use super::activity::ActivityWords;
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
            Some(location) if location.has_no_function() => {
                writeln!(out, "{} : {count}, {}", words.names.texts.line_of(location), crowd.doing)?;
            }
            Some(location) => {
                let line = words.names.texts.line_of(location);
                writeln!(out, "{} : {count} at {line}, {}", printable(&location.function), crowd.doing)?;
            }
            None if !crowd.kind.is_empty() => {
                writeln!(out, "{} : {count}, {}", printable(&crowd.kind), crowd.doing)?;
            }
            None => writeln!(out, "unknown : {count}, {}", crowd.doing)?,
        }
    }
    Ok(())
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

/// Writes whole stacks, grouped, the most frequent first.
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
        stack_lines(out, &group.stack, words.seen, &file, frames)?;
        writeln!(out)?;
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

/// Writes the functions of a stack, the innermost first.
pub(super) fn stack_lines(
    out: &mut dyn Write,
    stack: &Stack,
    seen: &Standings,
    file: impl Fn(&str) -> String,
    frames: &StackFrames,
) -> io::Result<()> {
    for (at, &frame) in stack.frames.iter().enumerate() {
        let mark = if stack.inferred_from.is_some_and(|from| at >= from) { "?" } else { " " };
        let named = frames.get(&frame).map_or(&[][..], Vec::as_slice);
        if named.is_empty() {
            let what = if is_generated(seen, frame.pc) { ", in generated code" } else { "" };
            writeln!(out, "  {mark} {:#x}{what}", frame.pc)?;
        }
        for one in named {
            let function = one.function.as_deref().map_or("unknown".into(), printable);
            let line = match (&one.file, one.line) {
                (Some(path), Some(line)) => format!(" {}:{line}", printable(&file(path))),
                _ => String::new(),
            };
            let inlined = if one.is_inlined { " (inlined)" } else { "" };
            writeln!(out, "  {mark} {function}{line}{inlined}")?;
        }
    }
    if let End::Cut(cut) = stack.end {
        writeln!(out, "    cut: {}", why(cut))?;
    }
    Ok(())
}

/// Whether an address is in code that the program has made itself, as a Java virtual machine does: it can be executed,
/// and no file is mapped there. Core files do not always say where files were mapped.
fn is_generated(seen: &Standings, address: u64) -> bool {
    let mapping = seen.target.mapping_at(address).filter(|_| !seen.is_final);
    mapping.is_some_and(|mapping| mapping.is_executable && mapping.path.is_none())
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

fn why(cut: Cut) -> &'static str {
    match cut {
        Cut::NoRegisters => "the thread runs, or the kernel does not show its registers",
        Cut::NoModule => "the next address is in no file that is mapped",
        Cut::NoTable => "the code has no unwind table here",
        Cut::UnknownRegister => "the unwind table needs a register that is not known",
        Cut::Unreadable => "the stack cannot be read",
        Cut::NotACall => "the next value on the stack is not a return address",
        Cut::NoProgress => "the unwind table leads in a circle",
        Cut::TooLong => "the stack is longer than what is read",
    }
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
    let frozen = if target.is_frozen == Some(true) { ", frozen by its control group" } else { "" };
    format!(
        "{}, alive{frozen}, records nothing: {}, as the kernel and its memory show them",
        printable(&process_name(&target.name, target.pid, target.own_pid)),
        counted(target.tasks.len() as u64, "thread")
    )
}
