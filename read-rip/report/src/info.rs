//! What a ring says about itself, as text. It computes nothing.

use std::io::{self, Write};
use std::path::Path;

use librip_format::settings;
use read_rip_evidence::process::Liveness;
use read_rip_model::threads::Losses;
use read_rip_ring::{
    Clock, ClockLevel, ClockSource, FileSystem, Header, Machine, Setting, Slot, SlotState, Snapshot, is_task,
};

use super::list::process_state;
use super::log::channel_level;
use super::units::{age, counted, hex};
use crate::printable;

/// Writes a line for each thing that is known. `program` is what the program is called.
///
/// # Errors
///
/// Those of `out`.
pub fn info(
    out: &mut dyn Write,
    path: &Path,
    program: &str,
    snapshot: &Snapshot,
    liveness: Option<&Liveness>,
    losses: &Losses,
    now_ns: u64,
) -> io::Result<()> {
    facts(
        &mut |name, value| writeln!(out, "{name:<12}{value}"),
        path,
        program,
        snapshot,
        liveness,
        losses,
        now_ns,
    )
}

/// Gives each thing that is known to `fact`, with its name.
///
/// # Errors
///
/// Those of `fact`.
pub fn facts(
    fact: &mut dyn FnMut(&str, &str) -> io::Result<()>,
    path: &Path,
    program: &str,
    snapshot: &Snapshot,
    liveness: Option<&Liveness>,
    losses: &Losses,
    now_ns: u64,
) -> io::Result<()> {
    let mut lines = Lines(fact);
    lines.line("ring", path.display().to_string())?;
    match &snapshot.header {
        None => {
            lines.line("format", "legacy: no header, 320 bytes per slot".into())?;
            lines.line("threads", snapshot.slots.len().to_string())?;
        }
        Some(header) => {
            lines.identity(program, snapshot, header, liveness, now_ns)?;
            lines.slots(snapshot, header)?;
            lines.clock(header.clock.as_ref())?;
            lines.losses_of_locks(header)?;
            lines.settings(header)?;
            lines.line("sites", snapshot.sites.len().to_string())?;
        }
    }
    let Losses { words, overwritten, torn, unwritten, damaged } = losses;
    lines.line(
        "words",
        format!(
            "{words} read, {overwritten} overwritten, {torn} changed while being read, {unwritten} not written, \
                 {damaged} damaged"
        ),
    )?;
    if snapshot.header.is_some() { lines.modules(snapshot) } else { Ok(()) }
}

/// Gives away names and values.
struct Lines<'o>(&'o mut dyn FnMut(&str, &str) -> io::Result<()>);

impl Lines<'_> {
    fn line(&mut self, name: &str, value: String) -> io::Result<()> {
        (self.0)(name, &printable(&value))
    }

    /// Which process made the ring, where and when.
    fn identity(
        &mut self,
        program: &str,
        snapshot: &Snapshot,
        header: &Header,
        liveness: Option<&Liveness>,
        now_ns: u64,
    ) -> io::Result<()> {
        let machine = match header.machine {
            Machine::X86_64 => "x86-64",
            Machine::Aarch64 => "aarch64",
        };
        self.line("format", format!("{}.{}, {machine}", header.version.0, header.version.1))?;
        let executable = snapshot.program();
        let executable =
            executable.map_or_else(|| "unknown".into(), |module| module.path.display().to_string());
        self.line("program", if program.is_empty() { "unknown".into() } else { program.to_owned() })?;
        self.line("executable", executable)?;
        let host = if header.host.is_empty() { String::new() } else { format!(" on {}", header.host) };
        self.line("process", format!("pid {}, user {}{host}", header.pid, header.uid))?;
        if let Some(liveness) = liveness {
            self.line("state", process_state(header, liveness))?;
        }
        self.line("made", format!("{} ago", age(now_ns.saturating_sub(header.created_realtime_ns))))?;
        if let FileSystem::Other(number) = header.file_system {
            let warning = "not tmpfs: the kernel writes it to disk, and marks may wait for that";
            self.line("file system", format!("{number:#x}, {warning}"))?;
        }
        Ok(())
    }

    fn slots(&mut self, snapshot: &Snapshot, header: &Header) -> io::Result<()> {
        self.line(
            "geometry",
            format!(
                "{} slots of {} bytes, {} words each; {} used",
                header.slots.capacity, header.slot_len_bytes, header.slot_words, header.slots.used
            ),
        )?;
        let (tasks, threads): (Vec<&Slot>, Vec<&Slot>) =
            snapshot.slots.iter().partition(|slot| is_task(slot.tid));
        let exited = |slots: &[&Slot]| slots.iter().filter(|slot| slot.state == SlotState::Exited).count();
        let (all, ended, reused) = (threads.len(), exited(&threads), header.slots_reused);
        self.line(
            "threads",
            format!("{all} in the ring, {ended} of them exited; {reused} slots were reused"),
        )?;
        if !tasks.is_empty() {
            let ended = exited(&tasks);
            self.line("tasks", format!("{} in the ring, {ended} of them ended", tasks.len()))?;
        }
        let (full, memory) = (header.threads_refused_full, header.threads_refused_memory);
        self.line(
            "refused",
            format!("{full} threads because no slot was free, {memory} because no memory was available"),
        )?;
        if header.threads_refused_filter > 0 {
            let filtered = counted(header.threads_refused_filter, "thread");
            self.line("filtered", format!("{filtered} under a filter of system calls (seccomp)"))?;
        }
        if header.polls.capacity > 0 {
            self.line("polls", format!("timed, those of {}", counted(snapshot.polls.len() as u64, "place")))?;
        }
        if header.tasks_refused > 0 {
            self.line(
                "refused",
                format!("{} because no slot was free", counted(header.tasks_refused, "task")),
            )?;
        }
        if header.threads_without_exit > 0 {
            let count = header.threads_without_exit;
            self.line("unwatched", format!("the exit of {} cannot be noticed", counted(count, "thread")))?;
        }
        if header.metadata_refused > 0 {
            self.line(
                "metadata",
                format!(
                    "{} of modules, sites or texts did not fit in the ring",
                    counted(header.metadata_refused, "record")
                ),
            )?;
        }
        if header.lock_names_refused > 0 {
            self.line(
                "names",
                format!("{} did not fit in the ring", counted(header.lock_names_refused, "lock's name")),
            )?;
        }
        if !snapshot.captures.is_empty() || header.captures_refused > 0 {
            let kept = snapshot.captures.len();
            self.line("captures", format!("{kept} kept, {} dropped", header.captures_refused))?;
        }
        for channel in snapshot.channels.iter().flatten() {
            let (name, words, level) = (&channel.name, channel.words, channel_level(channel.level));
            self.line("channel", format!("{name}, {words} words for each thread, records: {level}"))?;
        }
        if header.channels_refused > 0 {
            let what = "channels, or histories of threads in channels, found no room";
            self.line("channels", format!("{} {what}", header.channels_refused))?;
        }
        Ok(())
    }

    fn clock(&mut self, clock: Option<&Clock>) -> io::Result<()> {
        let Some(clock) = clock else { return Ok(()) };
        let which = match clock.level {
            ClockLevel::Off => "off".to_owned(),
            ClockLevel::Contended => "of contended locks".to_owned(),
            ClockLevel::Ticks => "of contended locks, and of each thread about once a millisecond".to_owned(),
            ClockLevel::All => "of all lock events".to_owned(),
            ClockLevel::Unknown(level) => format!("of an unknown level ({level})"),
        };
        let source = match clock.source {
            ClockSource::Counter => "the processor's counter",
            ClockSource::Monotonic => "CLOCK_MONOTONIC",
        };
        // Ticks in 1000 s become ticks in a microsecond.
        let rate = clock.ticks_per_kilosecond / 1_000_000;
        self.line("times", format!("{which}, from {source}: {}.{:03} ticks per us", rate / 1000, rate % 1000))
    }

    fn losses_of_locks(&mut self, header: &Header) -> io::Result<()> {
        if header.held_overflows > 0 {
            let count = header.held_overflows;
            self.line(
                "overflows",
                format!(
                    "{} not recorded as held, because the thread's table was full",
                    counted(count, "acquisition")
                ),
            )?;
        }
        if header.releases_unmatched > 0 {
            let count = header.releases_unmatched;
            let releases = counted(count, "release");
            let what = "by a thread other than the holder, not matched to the holder";
            self.line("unmatched", format!("{releases} {what}"))?;
        }
        Ok(())
    }

    fn settings(&mut self, header: &Header) -> io::Result<()> {
        for setting in header.settings_ignored.iter() {
            let ignored = |setting: settings::Setting| {
                format!("{} was ignored: it is not {}", setting.name, setting.takes)
            };
            let meaning = match setting {
                Setting::Words => ignored(settings::WORDS),
                Setting::Slots => ignored(settings::SLOTS),
                Setting::Keep => ignored(settings::KEEP),
                Setting::Clock => ignored(settings::CLOCK),
                Setting::Usage => ignored(settings::USAGE),
                Setting::Polls => ignored(settings::POLLS),
                Setting::SlotsLimited => {
                    "fewer slots than asked for: limited by ulimit -f or -v, or by the size of the file system"
                        .to_owned()
                }
            };
            self.line("setting", meaning)?;
        }
        Ok(())
    }

    fn modules(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        for module in &snapshot.modules {
            let build_id = hex(&module.build_id);
            let build_id = if build_id.is_empty() { "no build id".to_owned() } else { build_id };
            self.line("module", format!("{:#x} {} {build_id}", module.load_bias, module.path.display()))?;
        }
        Ok(())
    }
}
