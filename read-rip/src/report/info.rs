//! What a ring says of itself.

use std::io::{self, Write};
use std::path::Path;

use super::{age, ended, printable};
use crate::process::Liveness;
use crate::ring::{ClockLevel, ClockSource, FileSystem, Machine, Setting, SlotState, Snapshot};
use crate::threads::Losses;

/// Writes a line for each thing there is to know.
///
/// # Errors
///
/// Those of `out`.
pub fn info(
    out: &mut dyn Write,
    path: &Path,
    snapshot: &Snapshot,
    liveness: Option<&Liveness>,
    losses: &Losses,
    now_ns: u64,
) -> io::Result<()> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12}{}", printable(&value));
    line("ring", path.display().to_string())?;
    let Some(header) = &snapshot.header else {
        line("format", "of librip's C ancestor: 320 bytes a slot, no header".into())?;
        line("threads", snapshot.slots.len().to_string())?;
        return words(&mut line, losses);
    };
    let machine = match header.machine {
        Machine::X86_64 => "x86-64",
        Machine::Aarch64 => "aarch64",
    };
    line("format", format!("{}.{}, {machine}", header.version.0, header.version.1))?;
    let program = snapshot.program();
    line("program", program.map_or_else(|| "unknown".into(), |module| module.path.display().to_string()))?;
    let host = if header.host.is_empty() { String::new() } else { format!(" on {}", header.host) };
    line("process", format!("pid {}, user {}{host}", header.pid, header.uid))?;
    if let Some(liveness) = liveness {
        line("state", ended(header, liveness))?;
    }
    line("made", format!("{} ago", age(now_ns.saturating_sub(header.created_realtime_ns))))?;
    if let FileSystem::Other(number) = header.file_system {
        let warning = "not tmpfs: the kernel writes it to disk, which can make marks wait";
        line("file system", format!("{number:#x}, {warning}"))?;
    }
    line(
        "geometry",
        format!(
            "{} slots of {} bytes, {} words each; {} used",
            header.slots.capacity, header.slot_len_bytes, header.slot_words, header.slots.used
        ),
    )?;
    let exited = snapshot.slots.iter().filter(|slot| slot.state == SlotState::Exited).count();
    line(
        "threads",
        format!(
            "{} in the ring, {exited} of them exited; {} slots were reused",
            snapshot.slots.len(),
            header.slots_reused
        ),
    )?;
    line(
        "refused",
        format!(
            "{} threads for want of a slot, {} for want of memory",
            header.threads_refused_full, header.threads_refused_memory
        ),
    )?;
    if header.threads_without_exit > 0 {
        line("unwatched", format!("{} threads whose exit goes unnoticed", header.threads_without_exit))?;
    }
    if header.metadata_refused > 0 {
        line("metadata", format!("{} modules found no room in the ring", header.metadata_refused))?;
    }
    if let Some(clock) = &header.clock {
        let which = match clock.level {
            ClockLevel::Off => "off",
            ClockLevel::Contended => "of contended locks",
            ClockLevel::All | ClockLevel::Unknown(_) => "of all lock events",
        };
        let source = match clock.source {
            ClockSource::Counter => "the processor's counter",
            ClockSource::Monotonic => "CLOCK_MONOTONIC",
        };
        // Ticks in 1000 s become ticks in a microsecond.
        let rate = clock.ticks_per_kilosecond / 1_000_000;
        line("times", format!("{which}, from {source}: {}.{:03} ticks a us", rate / 1000, rate % 1000))?;
    }
    if header.held_overflows > 0 {
        let overflows = header.held_overflows;
        line(
            "overflows",
            format!("{overflows} acquisitions found no room in their thread's table of locks"),
        )?;
    }
    if header.releases_unmatched > 0 {
        let unmatched = header.releases_unmatched;
        line("unmatched", format!("{unmatched} releases of locks by others than the holder went unnoticed"))?;
    }
    for setting in header.settings_ignored.iter() {
        let meaning = match setting {
            Setting::Words => "RIP_WORDS was not understood: a number from 16 to 16384 is",
            Setting::Slots => "RIP_SLOTS was not understood: a number from 1 to 16777216 is",
            Setting::Keep => "RIP_KEEP was not understood: always, failure and never are",
            Setting::Clock => "RIP_CLOCK was not understood: off, contended and all are",
            Setting::SlotsLimited => "there are fewer slots than asked for: ulimit -f or -v",
        };
        line("setting", meaning.into())?;
    }
    line("sites", snapshot.sites.len().to_string())?;
    words(&mut line, losses)?;
    for module in &snapshot.modules {
        let build_id: String = module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let build_id = if build_id.is_empty() { "no build id".to_owned() } else { build_id };
        line("module", format!("{:#x} {} {build_id}", module.load_bias, module.path.display()))?;
    }
    Ok(())
}

fn words(line: &mut dyn FnMut(&str, String) -> io::Result<()>, losses: &Losses) -> io::Result<()> {
    line(
        "words",
        format!(
            "{} read, {} overwritten, {} torn, {} unwritten, {} damaged",
            losses.words, losses.overwritten, losses.torn, losses.unwritten, losses.damaged
        ),
    )
}
