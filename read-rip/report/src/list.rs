//! The table of rings, and the words for the state of a process. It finds no rings.

use std::io::{self, Write};
use std::path::Path;

use comfy_table::{CellAlignment, Table};
use read_rip_evidence::process::{Found, Liveness, RunControl, Unreadable};
use read_rip_ring::{Ending, Header};

use super::units::age;
use crate::printable;

/// Whether a process is alive, or how it ended, as far as known, for people.
pub(crate) fn process_state(header: &Header, liveness: &Liveness) -> String {
    let own = match (liveness, header.ending) {
        (Liveness::Alive { pid, control }, Ending::Unrecorded) => {
            let state = control_text(control);
            match *pid == header.pid as i32 {
                true => state,
                false => format!("{state}, with pid {pid} in this PID namespace"),
            }
        }
        (Liveness::Dying { .. }, Ending::Unrecorded) => "dying (killed)".to_owned(),
        (Liveness::Replaced { .. }, Ending::Unrecorded) => {
            "ended by exec: it runs another program".to_owned()
        }
        (Liveness::Unknown { why }, Ending::Unrecorded) => format!("unknown: {why}"),
        (Liveness::Dead | Liveness::Forked { .. }, Ending::Unrecorded) => {
            "dead (killed, crashed or _exit)".to_owned()
        }
        (_, Ending::Exit { status, .. }) => format!("exited with status {status}"),
    };
    match liveness {
        Liveness::Forked { pid } => format!("{own}; its child {pid} is alive"),
        _ => own,
    }
}

/// Whether a living process runs.
fn control_text(control: &RunControl) -> String {
    match control {
        RunControl::Free => "alive".to_owned(),
        RunControl::Stopped => "stopped by a signal".to_owned(),
        RunControl::Traced { by, name, is_stopped } => {
            let state = if *is_stopped { "stopped, traced" } else { "alive, traced" };
            let name = if name.is_empty() { String::new() } else { format!(" ({})", printable(name)) };
            format!("{state} by {by}{name}")
        }
    }
}

pub(super) fn state_of_child(parent: u32, liveness: &Liveness) -> String {
    let state = match liveness {
        Liveness::Alive { control, .. } => control_text(control),
        Liveness::Dying { .. } => "dying (killed)".to_owned(),
        Liveness::Replaced { .. } => "alive, has called exec".to_owned(),
        Liveness::Dead | Liveness::Forked { .. } => "has ended".to_owned(),
        Liveness::Unknown { why } => format!("unknown: {why}"),
    };
    format!("{state}; child of {parent}")
}

/// The state of a process, and whose its ring is if it is not the reader's.
fn listed_state(ring: &Found) -> String {
    let state = process_state(&ring.header, &ring.liveness);
    let copied = if ring.header.is_copy() { "copy; " } else { "" };
    match ring.is_own() {
        true => format!("{copied}{state}"),
        false => format!("{copied}{state}; of {}", printable(&ring.owner())),
    }
}

/// Writes that a ring was removed, or would be.
///
/// # Errors
///
/// Those of `out`.
pub fn removed(
    out: &mut dyn Write,
    ring: &Found,
    program: &str,
    dry_run: bool,
    now_ns: u64,
) -> io::Result<()> {
    let done = if dry_run { "would remove" } else { "removed" };
    let program = if program.is_empty() { "unknown".into() } else { printable(program) };
    let age = age(now_ns.saturating_sub(ring.header.created_realtime_ns));
    writeln!(
        out,
        "{done} {}: {program}[{}], {age} old, {} KiB",
        printable(&ring.path.to_string_lossy()),
        ring.header.pid,
        ring.memory_bytes / 1024
    )
}

/// Writes that an unfinished ring was removed, or would be.
///
/// # Errors
///
/// Those of `out`.
pub fn removed_unfinished(out: &mut dyn Write, path: &Path, dry_run: bool) -> io::Result<()> {
    let done = if dry_run { "would remove" } else { "removed" };
    writeln!(out, "{done} {}: unfinished, nothing was recorded", printable(&path.to_string_lossy()))
}

/// Writes the rings as a table. `now_ns` is the time, ns since 1970. If a line is longer than a terminal of `width`
/// columns, the files are on lines of their own.
///
/// # Errors
///
/// Those of `out`.
pub fn list(
    out: &mut dyn Write,
    rings: &[(Found, String)],
    unreadable: &[Unreadable],
    now_ns: u64,
    width: Option<usize>,
) -> io::Result<()> {
    let mut files = vec![String::new()];
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["PROGRAM", "PID", "AGE", "THREADS", "MEMORY", "STATE"]);
    for (ring, program) in rings {
        table.add_row([
            if program.is_empty() { "unknown".to_owned() } else { printable(program).into_owned() },
            ring.header.pid.to_string(),
            age(now_ns.saturating_sub(ring.header.created_realtime_ns)),
            ring.header.slots.used.to_string(),
            format!("{} KiB", ring.memory_bytes / 1024),
            listed_state(ring),
        ]);
        files.push(printable(&ring.path.to_string_lossy()).into_owned());
        for child in &ring.children {
            table.add_row([
                String::new(),
                child.pid.to_string(),
                String::new(),
                child.threads.to_string(),
                String::new(),
                state_of_child(ring.header.pid, &child.liveness),
            ]);
            files.push(String::new());
        }
    }
    for ring in unreadable {
        table.add_row([
            printable(&ring.program).into_owned(),
            ring.pid.to_string(),
            String::new(),
            String::new(),
            format!("{} KiB", ring.memory_bytes / 1024),
            format!("not readable: belongs to {}", printable(&ring.owner)),
        ]);
        files.push(printable(&ring.path.to_string_lossy()).into_owned());
    }
    for column in [1, 3, 4] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let columns = |text: &str| text.chars().count();
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let widest = lines.iter().map(|line| columns(line)).max().unwrap_or_default();
    let longest = files.iter().map(|file| columns(file)).max().unwrap_or_default();
    let is_too_long = width.is_some_and(|width| widest + 2 + longest > width);
    files[0] = if is_too_long { String::new() } else { "RING".to_owned() };
    for (line, file) in lines.iter().zip(&files) {
        if file.is_empty() {
            writeln!(out, "{line}")?;
        } else if is_too_long {
            writeln!(out, "{line}\n     {file}")?;
        } else {
            writeln!(out, "{line:widest$}  {file}")?;
        }
    }
    Ok(())
}
