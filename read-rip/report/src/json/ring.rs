//! Rings as JSON: the first line of every view, lists, `info`, and what could not be read. It computes nothing.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use read_rip_evidence::process::{Child, Found, Liveness, Unreadable};
use read_rip_model::threads::Losses;
use read_rip_ring::{ClockLevel, ClockSource, Ending, FileSystem, Header, Machine, Setting, Snapshot};
use serde::Serialize;

use super::values::{Address, Moment};
use super::{Json, Line, SCHEMA};
use crate::list::{process_state, state_of_child};
use crate::log::channel_level_name;
use crate::units::hex;

/// A ring: the first line of every view, and each line of `list`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Ring<'a> {
    /// The version of this schema.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: u32,
    /// The file of the ring.
    path: Cow<'a, str>,
    /// What the program that was recorded is called: the name by which it was started, or else that of its executable.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<Cow<'a, str>>,
    /// The path of the program's executable. Lines of `list` have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    executable: Option<Cow<'a, str>>,
    /// The process, as its own PID namespace numbers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    /// The process whose ring this forked child shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_pid: Option<u32>,
    /// dying: killed, and threads of it may go on for a moment; replaced: alive, and it called exec; child-alive: dead,
    /// but a forked child records here; dead: killed, crashed or _exit; unreadable: it belongs to another user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = [
        "alive", "dying", "replaced", "child-alive", "exited", "dead", "unknown", "unreadable",
    ])))]
    state: Option<&'static str>,
    /// The status with which the process exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_status: Option<i32>,
    /// The state in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_text: Option<String>,
    /// Threads and tasks in the ring.
    threads: u64,
    /// When the ring was made, ns since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_realtime_ns: Option<Moment>,
    /// Threads that were not recorded because no slot was free.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_full: Option<u64>,
    /// Threads that were not recorded because no memory was available.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_memory: Option<u64>,
    /// Threads that were not recorded because the program restricts its system calls (seccomp).
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_filter: Option<u64>,
    #[serde(flatten)]
    words: Option<Words>,
}

/// A channel.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Channel"))]
struct JsonChannel<'a> {
    /// Its name.
    name: &'a str,
    /// The words of a thread.
    words: u32,
    /// The least important level that is recorded.
    #[cfg_attr(test, schemars(extend("enum" = ["all", "trace", "debug", "info", "warn", "error", "off"])))]
    level: &'static str,
}

/// The words of a ring.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Words {
    /// Words that were read.
    words: u64,
    /// Older words that newer ones have replaced.
    overwritten: u64,
    /// Words that changed while they were read.
    torn: u64,
    /// Words that were reserved and never written, or written over by an event that handlers had interrupted.
    unwritten: u64,
    /// Words that contradict their position in the ring.
    damaged: u64,
}

/// `info`: what a ring says about itself, besides its `ring` line.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Info<'a> {
    /// The version of the format.
    format: String,
    /// The processor architecture.
    #[cfg_attr(test, schemars(extend("enum" = [Machine::X86_64, Machine::Aarch64].map(machine_name))))]
    machine: &'static str,
    /// The user of the process.
    uid: u32,
    /// The host name.
    #[serde(skip_serializing_if = "str::is_empty")]
    host: &'a str,
    /// The ring was made on tmpfs.
    on_tmpfs: bool,
    /// Slots for which there is room.
    slots: u64,
    /// Slots that were used.
    slots_used: u64,
    /// Slots that were given to another thread.
    slots_reused: u64,
    /// Bytes per slot.
    slot_bytes: u64,
    /// Words per slot.
    slot_words: u32,
    /// Marks in the source that are known.
    sites: usize,
    /// Threads whose exit cannot be noticed.
    threads_without_exit: u64,
    /// Modules, sites and texts that did not fit in the ring.
    modules_refused: u64,
    /// Names of locks that did not fit in the ring.
    lock_names_refused: u64,
    /// What the program has kept.
    captures: usize,
    /// Captures that found no room.
    captures_refused: u64,
    /// The channels from which something was recorded.
    channels: Vec<JsonChannel<'a>>,
    /// Channels, and histories of threads in channels, that found no room.
    channels_refused: u64,
    /// Acquisitions that are not in a thread's table of held locks, because it was full.
    held_overflows: u64,
    /// Releases by a thread other than the holder that were not matched to the holder.
    releases_unmatched: u64,
    /// How times are recorded. Left out if none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<Clock>,
    /// Settings that the recorder did not follow.
    #[cfg_attr(test, schemars(extend("items" = {"enum": setting_names()})))]
    settings_ignored: Vec<&'static str>,
    /// Programs and libraries.
    modules: Vec<Module<'a>>,
}

/// How times are recorded.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Clock {
    /// Which events have times.
    #[cfg_attr(test, schemars(extend("enum" = clock_levels())))]
    level: &'static str,
    /// The processor's counter or CLOCK_MONOTONIC.
    #[cfg_attr(test, schemars(extend("enum" = ["counter", "monotonic"])))]
    source: &'static str,
    /// Ticks in 1000 s.
    ticks_per_kilosecond: u64,
}

/// A module.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Module<'a> {
    /// Its path.
    path: Cow<'a, str>,
    /// What was added to its addresses.
    load_bias: Address,
    /// Its build id in hexadecimal; empty if it has none.
    build_id: String,
    /// It is the program.
    executable: bool,
}

/// Something that could not be read or resolved.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Problem<'a> {
    /// A file.
    about: &'a str,
    /// What happened.
    what: &'a str,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// `gc`: a ring that was removed.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Removed<'a> {
    /// The version of this schema.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: u32,
    /// Its file.
    path: Cow<'a, str>,
    /// The ring was not removed, because of --dry-run.
    dry_run: bool,
}

impl<W: Write> Json<W> {
    /// The first line of a view. `program` is what the program is called; empty if that is not known.
    ///
    /// # Errors
    ///
    /// Those of the output, here and below.
    pub fn ring(
        &mut self,
        path: &Path,
        program: &str,
        snapshot: &Snapshot,
        liveness: Option<&Liveness>,
        losses: &Losses,
    ) -> io::Result<()> {
        let Losses { words, overwritten, torn, unwritten, damaged } = *losses;
        self.line(Line::Ring(Ring {
            program: (!program.is_empty()).then(|| program.into()),
            executable: snapshot.program().map(|module| module.path.to_string_lossy()),
            threads: snapshot.slots.len() as u64,
            words: Some(Words { words, overwritten, torn, unwritten, damaged }),
            ..Ring::of(path, snapshot.header.as_ref(), liveness)
        }))
    }

    /// A ring in a list.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn found(&mut self, ring: &Found, program: &str) -> io::Result<()> {
        let header = &ring.header;
        self.line(Line::Ring(Ring {
            program: (!program.is_empty()).then(|| program.into()),
            threads: header.slots.used,
            ..Ring::of(&ring.path, Some(header), Some(&ring.liveness))
        }))
    }

    /// A forked child that has recorded in a ring of a list.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn child(&mut self, ring: &Found, child: &Child) -> io::Result<()> {
        let header = Header { ending: Ending::Unrecorded, ..ring.header.clone() };
        self.line(Line::Ring(Ring {
            pid: Some(child.pid),
            parent_pid: Some(header.pid),
            state_text: Some(state_of_child(header.pid, &child.liveness)),
            threads: child.threads as u64,
            ..Ring::of(&ring.path, Some(&header), Some(&child.liveness))
        }))
    }

    /// A ring in a list that cannot be read.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn unreadable(&mut self, ring: &Unreadable) -> io::Result<()> {
        self.line(Line::Ring(Ring {
            program: Some(ring.program.as_str().into()),
            pid: Some(ring.pid),
            state: Some("unreadable"),
            state_text: Some(format!("not readable: belongs to {}", ring.owner)),
            ..Ring::of(&ring.path, None, None)
        }))
    }

    /// What a ring says about itself.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn info(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let Some(header) = &snapshot.header else { return Ok(()) };
        self.line(Line::Info(Info {
            format: format!("{}.{}", header.version.0, header.version.1),
            machine: machine_name(header.machine),
            uid: header.uid,
            host: &header.host,
            on_tmpfs: header.file_system == FileSystem::Tmpfs,
            slots: header.slots.capacity,
            slots_used: header.slots.used,
            slots_reused: header.slots_reused,
            slot_bytes: header.slot_len_bytes,
            slot_words: header.slot_words,
            sites: snapshot.sites.len(),
            threads_without_exit: header.threads_without_exit,
            modules_refused: header.metadata_refused,
            lock_names_refused: header.lock_names_refused,
            captures: snapshot.captures.len(),
            captures_refused: header.captures_refused,
            channels: snapshot
                .channels
                .iter()
                .flatten()
                .map(|channel| JsonChannel {
                    name: &channel.name,
                    words: channel.words,
                    level: channel_level_name(channel.level),
                })
                .collect(),
            channels_refused: header.channels_refused,
            held_overflows: header.held_overflows,
            releases_unmatched: header.releases_unmatched,
            clock: header.clock.as_ref().map(|clock| Clock {
                level: clock_level_name(Some(clock.level)),
                source: match clock.source {
                    ClockSource::Counter => "counter",
                    ClockSource::Monotonic => "monotonic",
                },
                ticks_per_kilosecond: clock.ticks_per_kilosecond,
            }),
            settings_ignored: header.settings_ignored.iter().map(setting_name).collect(),
            modules: snapshot
                .modules
                .iter()
                .map(|module| Module {
                    path: module.path.to_string_lossy(),
                    load_bias: Address(module.load_bias),
                    build_id: hex(&module.build_id),
                    executable: module.is_executable,
                })
                .collect(),
        }))
    }

    /// Something that could not be read or resolved.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn problem(&mut self, about: &str, what: &str, hint: Option<&str>) -> io::Result<()> {
        self.line(Line::Problem(Problem { about, what, hint }))
    }

    /// A ring that was removed, or would have been.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn removed(&mut self, path: &Path, dry_run: bool) -> io::Result<()> {
        self.line(Line::Removed(Removed { schema: SCHEMA, path: path.to_string_lossy(), dry_run }))
    }
}

impl<'a> Ring<'a> {
    fn of(path: &'a Path, header: Option<&Header>, liveness: Option<&Liveness>) -> Ring<'a> {
        Ring {
            schema: SCHEMA,
            path: path.to_string_lossy(),
            program: None,
            executable: None,
            pid: header.map(|header| header.pid),
            parent_pid: None,
            state: header.zip(liveness).map(|(header, liveness)| process_state_name(header, liveness)),
            exit_status: header.and_then(Header::exit_status),
            state_text: header.zip(liveness).map(|(header, liveness)| process_state(header, liveness)),
            threads: 0,
            created_realtime_ns: header.map(|header| Moment(header.created_realtime_ns)),
            refused_full: header.map(|header| header.threads_refused_full),
            refused_memory: header.map(|header| header.threads_refused_memory),
            refused_filter: header.map(|header| header.threads_refused_filter),
            words: None,
        }
    }
}

/// What a process is: `alive`, `dead` and so on.
pub fn process_state_name(header: &Header, liveness: &Liveness) -> &'static str {
    match (liveness, header.ending) {
        (Liveness::Alive { .. }, _) => "alive",
        (Liveness::Dying { .. }, _) => "dying",
        (Liveness::Forked { .. }, _) => "child-alive",
        (Liveness::Unknown { .. }, Ending::Unrecorded) => "unknown",
        (Liveness::Replaced { .. }, _) => "replaced",
        (Liveness::Dead, Ending::Unrecorded) => "dead",
        (Liveness::Dead | Liveness::Unknown { .. }, Ending::Exit { .. }) => "exited",
    }
}

fn machine_name(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "x86-64",
        Machine::Aarch64 => "aarch64",
    }
}

/// Which events have times: the value of `RIP_CLOCK`.
pub fn clock_level_name(level: Option<ClockLevel>) -> &'static str {
    match level {
        None | Some(ClockLevel::Off) => "off",
        Some(ClockLevel::Contended) => "contended",
        Some(ClockLevel::Ticks) => "ticks",
        Some(ClockLevel::All) => "all",
        Some(ClockLevel::Unknown(_)) => "unknown",
    }
}

/// All names of levels.
#[cfg(test)]
pub(super) fn clock_levels() -> [&'static str; 5] {
    use ClockLevel::{All, Contended, Off, Ticks, Unknown};
    [Off, Contended, Ticks, All, Unknown(9)].map(|level| clock_level_name(Some(level)))
}

/// All names of settings.
#[cfg(test)]
fn setting_names() -> Vec<&'static str> {
    read_rip_ring::IgnoredSettings::from_bits(u32::MAX).iter().map(setting_name).collect()
}

fn setting_name(setting: Setting) -> &'static str {
    match setting {
        Setting::Words => "words",
        Setting::Slots => "slots",
        Setting::Keep => "keep",
        Setting::Clock => "clock",
        Setting::Usage => "usage",
        Setting::Polls => "polls",
        Setting::SlotsLimited => "slots-limited",
    }
}
