//! The JSON output: one object a line, `{"type": ..., "data": {...}}`.
//!
//! The first line of a view has type `ring` and the schema's version, 1. Within a version fields and types are
//! only added. All fields but `type` are optional: one that does not apply or is not known is left out.
//! Addresses are strings in hexadecimal with `0x`; times are integers, in the unit of their name. Paths and names
//! that are not UTF-8 have U+FFFD where they are not; what a terminal could obey is escaped.
//!
//! | type | data |
//! |---|---|
//! | `ring` | `schema`, `path`, `program`, `pid`, `state`, `threads`, `created_realtime_ns`, `refused_full`, `refused_memory`, `words`, `overwritten`, `torn`, `unwritten`, `damaged` |
//! | `function` | `function`, `threads`, `texts`: a list of `location` with `threads` and `tids` |
//! | `thread` | `name`, `pid`, `tid`, `state` (`present`, `exited`, `abandoned`), `generation`, `overwritten`, `events`: a list of `sequence`, `lock` (its address) and `location` |
//! | `locks` | of all locks: `held_overflows`, `held_beyond`, `held_unclear`, `releases_unmatched`, `quiet` (locks that are left out), `now_boottime_ns`, `clock` (`off`, `contended`, `all`) |
//! | `lock` | `name`, `name_from` (`given`, `symbol`, `location`), `type` (`mutex`, `rwlock`, `semaphore`, `lock`), `pid`, `address`, `wrapped`, `contradictory`, `holders`, `waiters`, `lenders` (of a semaphore: those that wait for a unit; thread ids), `acquisitions`, `contended`, `failed_tries`, `owners`, `wait` and `hold` |
//! | `problem` | `about`, `what`, `hint`: what could not be read or resolved |
//! | `removed` | `path`: a ring that `gc` has removed |
//!
//! A `location` has `function`, `file`, `line`, `kind` (`snap`, `progress`, `lock_wait`, `lock_acquired`, `lock_released`,
//! `lock_try_failed`, `lock_takes`, `condition_wait`, `condition_woken`, `lock_destroyed`), `label`, `address`
//! (module-relative), `pc` (actual), `module`, and `callers`, a list of `function`, `file` and `line` that it was inlined into, innermost first.
//! Where the linker has made several marks one, and it is not known which of them was passed, it has `one_of`, a list of at most
//! eight with `file`, `line`, `label` and `kind`; the location's own are then those of the first, without `kind` if the marks say
//! different things.
//!
//! A holder of a lock has `name`, `tid`, `thread_state` (as the `state` of a `thread`), `state` (`held`, `taking`, `releasing`,
//! `destroyed`), `shared`, `again` (how often it was taken again), `since_boottime_ns`, `for_ns`, `steady` (unchanged between
//! two readings, or of a dead process) and `location`. Waiters are groups: `threads`, `tids`, `shared`, `timed`, `longest_ns`
//! and `location`. Times of waiting and holding have `count`, `p50_ns`, `p90_ns`, `p99_ns` and `max_ns`.

mod location;
mod locks;

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::events::Event;
use crate::locations::{LocationId, Locations};
use crate::process::{Found, Liveness};
use crate::ring::{Header, Snapshot};
use crate::threads::{Group, Losses, Thread, ThreadState};

use super::list::ended;
use super::printable::is_harmless;
pub(super) use location::{JsonLocation, json_location};

/// The version in the first line.
const SCHEMA: u32 = 1;

/// Writes JSON lines.
#[derive(Debug)]
pub struct Json<W>(pub W);

#[derive(Serialize)]
struct Line<'a, T> {
    r#type: &'a str,
    data: T,
}

#[derive(Serialize)]
struct Ring<'a> {
    schema: u32,
    path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    threads: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_realtime_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_full: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused_memory: Option<u64>,
    #[serde(flatten)]
    words: Option<Words>,
}

#[derive(Serialize)]
struct Words {
    words: u64,
    overwritten: u64,
    torn: u64,
    unwritten: u64,
    damaged: u64,
}

#[derive(Serialize)]
struct Function<'a> {
    function: &'a str,
    threads: usize,
    locations: Vec<PileUp<'a>>,
}

#[derive(Serialize)]
struct PileUp<'a> {
    #[serde(flatten)]
    location: JsonLocation<'a>,
    threads: usize,
    tids: &'a [u32],
}

#[derive(Serialize)]
struct JsonThread<'a> {
    name: &'a str,
    pid: u32,
    tid: u32,
    state: &'a str,
    generation: u32,
    overwritten: u64,
    events: Vec<JsonEvent<'a>>,
}

#[derive(Serialize)]
struct JsonEvent<'a> {
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    location: JsonLocation<'a>,
}

#[derive(Serialize)]
struct Problem<'a> {
    about: &'a str,
    what: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

#[derive(Serialize)]
struct Removed<'a> {
    path: Cow<'a, str>,
}

/// Compact, with control characters escaped: serde_json itself escapes those below U+0020 only.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, letter)) = rest.char_indices().find(|&(_, letter)| !is_harmless(letter)) {
            out.write_all(&rest.as_bytes()[..at])?;
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = &rest[at + letter.len_utf8()..];
        }
        out.write_all(rest.as_bytes())
    }
}

impl<W: Write> Json<W> {
    pub(super) fn line(&mut self, r#type: &str, data: impl Serialize) -> io::Result<()> {
        Line { r#type, data }.serialize(&mut Serializer::with_formatter(&mut self.0, Harmless))?;
        writeln!(self.0)
    }

    /// The first line of a view.
    ///
    /// # Errors
    ///
    /// Those of the output, here and below.
    pub fn ring(
        &mut self,
        path: &Path,
        snapshot: &Snapshot,
        liveness: Option<&Liveness>,
        losses: &Losses,
    ) -> io::Result<()> {
        let header = snapshot.header.as_ref();
        let program = snapshot.program();
        self.line(
            "ring",
            Ring {
                schema: SCHEMA,
                path: path.to_string_lossy(),
                program: program.map(|module| module.path.to_string_lossy()),
                pid: header.map(|header| header.pid),
                state: header.zip(liveness).map(|(header, liveness)| ended(header, liveness)),
                threads: snapshot.slots.len() as u64,
                created_realtime_ns: header.map(|header| header.created_realtime_ns),
                refused_full: header.map(|header| header.threads_refused_full),
                refused_memory: header.map(|header| header.threads_refused_memory),
                words: Some(Words {
                    words: losses.words,
                    overwritten: losses.overwritten,
                    torn: losses.torn,
                    unwritten: losses.unwritten,
                    damaged: losses.damaged,
                }),
            },
        )
    }

    /// A ring in a list.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn found(&mut self, ring: &Found, program: &str) -> io::Result<()> {
        let header: &Header = &ring.header;
        self.line(
            "ring",
            Ring {
                schema: SCHEMA,
                path: ring.path.to_string_lossy(),
                program: Some(program.into()),
                pid: Some(header.pid),
                state: Some(ended(header, &ring.liveness)),
                threads: header.slots.used,
                created_realtime_ns: Some(header.created_realtime_ns),
                refused_full: Some(header.threads_refused_full),
                refused_memory: Some(header.threads_refused_memory),
                words: None,
            },
        )
    }

    /// A group of the condensed view.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn group(&mut self, group: &Group, locations: &Locations<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let spots = group.spots.iter().map(|spot| PileUp {
            location: json_location(locations.get(spot.location), locations, snapshot),
            threads: spot.tids.len(),
            tids: &spot.tids,
        });
        self.line(
            "function",
            Function { function: &group.function, threads: group.threads, locations: spots.collect() },
        )
    }

    /// A thread and its history.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn thread(
        &mut self,
        thread: &Thread<'_>,
        events: &[(Event, LocationId)],
        locations: &Locations<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let events = events.iter().map(|(event, location)| JsonEvent {
            sequence: event.sequence & snapshot.sequence_mask,
            lock: locations.lock_of(thread.slot, event).map(|lock| format!("{lock:#x}")),
            location: json_location(locations.get(*location), locations, snapshot),
        });
        self.line(
            "thread",
            JsonThread {
                name: &thread.slot.name,
                pid: thread.slot.pid,
                tid: thread.slot.tid,
                state: state_name(thread.state),
                generation: thread.slot.generation,
                overwritten: thread.slot.overwritten(),
                events: events.collect(),
            },
        )
    }

    /// Something that could not be read or resolved.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn problem(&mut self, about: &str, what: &str, hint: Option<&str>) -> io::Result<()> {
        self.line("problem", Problem { about, what, hint })
    }

    /// A ring that was removed.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn removed(&mut self, path: &Path) -> io::Result<()> {
        self.line("removed", Removed { path: path.to_string_lossy() })
    }
}

fn state_name(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Present => "present",
        ThreadState::Exited => "exited",
        ThreadState::Abandoned => "abandoned",
    }
}
