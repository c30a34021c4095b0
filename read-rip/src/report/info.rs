//! What a ring says of itself.

use std::io::{self, Write};
use std::path::Path;

use super::{age, ended, printable};
use crate::process::Life;
use crate::ring::{SlotState, Snapshot};
use crate::threads::Losses;

/// Linux's number for tmpfs (`TMPFS_MAGIC`).
const TMPFS: u64 = 0x0102_1994;

/// Writes a line for each thing there is to know.
///
/// # Errors
///
/// Those of `out`.
pub fn info(
    out: &mut dyn Write,
    path: &Path,
    snapshot: &Snapshot,
    life: Option<&Life>,
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
        62 => "x86-64",
        183 => "aarch64",
        _ => "unknown architecture",
    };
    line("format", format!("{}.{}, {machine}", header.version.0, header.version.1))?;
    let program = snapshot.program();
    line("program", program.map_or_else(|| "unknown".into(), |module| module.path.display().to_string()))?;
    let host = if header.host.is_empty() { String::new() } else { format!(" on {}", header.host) };
    line("process", format!("pid {}, user {}{host}", header.pid, header.uid))?;
    if let Some(life) = life {
        line("state", ended(header, life))?;
    }
    line("made", format!("{} ago", age(now_ns.saturating_sub(header.created_realtime_ns))))?;
    if header.file_system != TMPFS {
        let warning = "not tmpfs: the kernel writes it to disk, which can make marks wait";
        line("file system", format!("{:#x}, {warning}", header.file_system))?;
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
            librip_format::CLOCK_LEVEL_OFF => "off",
            librip_format::CLOCK_LEVEL_CONTENDED => "of contended locks",
            _ => "of all lock events",
        };
        let source = match clock.source {
            librip_format::CLOCK_SOURCE_COUNTER => "the processor's counter",
            _ => "CLOCK_MONOTONIC",
        };
        // Ticks in 1000 s become ticks in a microsecond.
        let rate = clock.ticks_a_kilosecond / 1_000_000;
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
    for (setting, meaning) in [
        (librip_format::SETTING_WORDS, "RIP_WORDS was not understood: a number from 16 to 16384 is"),
        (librip_format::SETTING_SLOTS, "RIP_SLOTS was not understood: a number from 1 to 16777216 is"),
        (librip_format::SETTING_KEEP, "RIP_KEEP was not understood: always, failure and never are"),
        (librip_format::SETTING_CLOCK, "RIP_CLOCK was not understood: off, contended and all are"),
        (librip_format::SETTING_SLOTS_LIMITED, "there are fewer slots than asked for: ulimit -f or -v"),
    ] {
        if header.settings_ignored & setting != 0 {
            line("setting", meaning.into())?;
        }
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
