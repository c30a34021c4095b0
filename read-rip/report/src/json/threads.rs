//! Threads as JSON: by function, and one by one with their histories. It computes nothing.

use std::io::{self, Write};

use read_rip_model::locations::{Dated, Locations};
use read_rip_model::log;
use read_rip_model::threads::{Group, Thread, ThreadState};
use read_rip_ring::{Slot, Snapshot};
use serde::{Serialize, Serializer};

use super::doing::{JsonDoing, json_doing};
use super::location::{JsonLocation, json_location};
use super::writer::{Json, moment};
use crate::log::realtime_ns;
use crate::{ActivityWords, LockNames};

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
    events: JsonEvents<'a>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    after_boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_boottime_ns: Option<String>,
    /// What the program said.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    location: JsonLocation<'a>,
}

#[derive(Serialize)]
struct JsonCapture<'a> {
    name: &'a str,
    pid: u32,
    tid: u32,
    kept_boottime_ns: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_realtime_ns: Option<String>,
    overwritten: u64,
    events: JsonEvents<'a>,
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
        events: &[Dated],
        names: &LockNames<'_>,
        snapshot: &Snapshot,
        now_ns: Option<u64>,
    ) -> io::Result<()> {
        let seen = ActivityWords::new(names).and_then(|words| words.seen_thread(thread));
        self.line(
            "thread",
            JsonThread {
                name: &thread.slot.name,
                pid: thread.slot.pid,
                tid: thread.slot.tid,
                state: thread_state_name(thread.state),
                generation: thread.slot.generation,
                overwritten: thread.slot.overwritten(),
                events: JsonEvents {
                    slot: thread.slot,
                    events,
                    locations: names.locations,
                    snapshot,
                    now_ns,
                },
                doing: seen.and_then(|seen| json_doing(seen, names, snapshot)),
            },
        )
    }

    /// What a thread had recorded when the program kept it.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn capture(
        &mut self,
        slot: &Slot,
        events: &[Dated],
        names: &LockNames<'_>,
        snapshot: &Snapshot,
        now_ns: Option<u64>,
    ) -> io::Result<()> {
        self.line(
            "capture",
            JsonCapture {
                name: &slot.name,
                pid: slot.pid,
                tid: slot.tid,
                kept_boottime_ns: moment(slot.exited_boottime_ns),
                kept_realtime_ns: realtime_ns(snapshot, slot.exited_boottime_ns).map(moment),
                overwritten: slot.overwritten(),
                events: JsonEvents { slot, events, locations: names.locations, snapshot, now_ns },
            },
        )
    }
}

/// A history. Its events become text one after the other, because there may be many.
struct JsonEvents<'a> {
    slot: &'a Slot,
    events: &'a [Dated],
    locations: &'a Locations<'a>,
    snapshot: &'a Snapshot,
    now_ns: Option<u64>,
}

impl Serialize for JsonEvents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.events.iter().map(|dated| self.event(dated)))
    }
}

impl JsonEvents<'_> {
    fn event(&self, dated: &Dated) -> JsonEvent<'_> {
        let JsonEvents { slot, locations, snapshot, now_ns, .. } = *self;
        let Dated { event, location, when } = dated;
        let lock = locations.lock_of(slot, event);
        let location = locations.get(*location);
        let (after_ns, before_ns) = when.bounds();
        JsonEvent {
            sequence: event.sequence & snapshot.sequence_mask,
            lock: lock.map(|lock| format!("{lock:#x}")),
            lock_name: lock.and_then(|lock| locations.lock_name(slot.pid, lock)),
            boottime_ns: when.time_ns.map(moment),
            after_boottime_ns: after_ns.map(moment),
            before_boottime_ns: before_ns.map(moment),
            text: log::kind_of(slot, event, locations, None, now_ns)
                .map(|kind| log::text(kind, slot, event, location, locations)),
            location: json_location(location, locations, snapshot),
        }
    }
}

/// What a thread is: `present`, `exited` or `abandoned`.
pub fn thread_state_name(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Present => "present",
        ThreadState::Exited => "exited",
        ThreadState::Abandoned => "abandoned",
    }
}
