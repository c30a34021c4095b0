//! Threads as JSON: by function, and one by one with their histories. It computes nothing.

use std::io::{self, Write};

use serde::Serialize;

use super::doing::{JsonDoing, json_doing};
use super::location::{JsonLocation, json_location};
use super::writer::{Json, moment};
use crate::events::Event;
use crate::locations::{LocationId, Locations};
use crate::report::{ActivityWords, LockNames};
use crate::ring::Snapshot;
use crate::threads::{Group, Thread, ThreadState};

#[derive(Serialize)]
struct Function<'a> {
    pid: u32,
    function: &'a str,
    threads: usize,
    locations: Vec<LocationThreads<'a>>,
}

#[derive(Serialize)]
struct LocationThreads<'a> {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    doing: Option<JsonDoing<'a>>,
}

#[derive(Serialize)]
struct JsonEvent<'a> {
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boottime_ns: Option<String>,
    location: JsonLocation<'a>,
}

impl<W: Write> Json<W> {
    /// A group of the condensed view, of threads of a process.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn group(
        &mut self,
        pid: u32,
        group: &Group,
        locations: &Locations<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let entries = group.locations.iter().map(|at| LocationThreads {
            location: json_location(locations.get(at.location), locations, snapshot),
            threads: at.tids.len(),
            tids: &at.tids,
        });
        self.line(
            "function",
            Function { pid, function: &group.function, threads: group.threads, locations: entries.collect() },
        )
    }

    /// A thread and its history.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn thread(
        &mut self,
        thread: &Thread<'_>,
        events: &[(Event, LocationId)],
        names: &LockNames<'_>,
        snapshot: &Snapshot,
        now_ns: Option<u64>,
    ) -> io::Result<()> {
        let locations = names.locations;
        let seen = ActivityWords::new(names).and_then(|words| words.seen_thread(thread));
        let events = events.iter().map(|(event, location)| JsonEvent {
            sequence: event.sequence & snapshot.sequence_mask,
            lock: locations.lock_of(thread.slot, event).map(|lock| format!("{lock:#x}")),
            lock_name: locations
                .lock_of(thread.slot, event)
                .and_then(|lock| locations.lock_name(thread.slot.pid, lock)),
            boottime_ns: locations.time_of(thread.slot, event, now_ns).map(moment),
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
                doing: seen.and_then(|seen| json_doing(seen, names, snapshot)),
            },
        )
    }
}

pub(super) fn state_name(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Present => "present",
        ThreadState::Exited => "exited",
        ThreadState::Abandoned => "abandoned",
    }
}
