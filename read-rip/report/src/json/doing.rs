//! What a thread does by the kernel and the memory, as JSON.

use read_rip_evidence::standing::Activity;
use read_rip_evidence::target::Call;
use read_rip_model::locks::{Doing, ThreadId};
use read_rip_ring::Snapshot;
use serde::Serialize;

use super::location::{JsonLocation, json_location};
use crate::activity::ActivityWords;
use crate::names::LockNames;

/// What a thread does, by the kernel and the process's memory. It was asked if this is there.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "ThreadDoing"))]
pub(super) struct JsonDoing<'a> {
    /// What.
    what: Doing,
    /// The same in words, with what it waits for.
    text: String,
    /// Whether it stood still between two readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    still: Option<bool>,
    /// The system call that it sleeps in.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'static str>,
    /// The descriptor of that call.
    #[serde(skip_serializing_if = "Option::is_none")]
    descriptor: Option<u32>,
    /// How long it ran between the two readings, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    ran_ns: Option<u64>,
    /// How long it was ready to run between the two readings and did not, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    delayed_ns: Option<u64>,
    /// Its nice value.
    #[serde(skip_serializing_if = "Option::is_none")]
    nice: Option<i32>,
    /// The process that traces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracer: Option<u32>,
    /// Where it stands in the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
}

/// What a thread of the model does; `None` if the kernel was not asked about it.
pub(super) fn json_doing<'a>(
    thread: ThreadId,
    names: &LockNames<'a>,
    snapshot: &'a Snapshot,
) -> Option<JsonDoing<'a>> {
    let seen = names.model.threads[thread].seen?;
    let words = ActivityWords::new(names)?.of_process(&seen);
    let call: Option<Call> = match words.seen.activity(seen.index) {
        Activity::Calls(call) => Some(call),
        Activity::DiskSleep(call) => call,
        _ => None,
    };
    let (task, scheduled) = (&words.seen.target.tasks[seen.index], words.seen.threads[seen.index].scheduled);
    Some(JsonDoing {
        what: seen.doing,
        text: words.of(seen.index),
        still: seen.is_still,
        call: call.and_then(|call| call.name),
        descriptor: call.and_then(|call| call.descriptor()),
        ran_ns: scheduled.map(|scheduled| scheduled.ran_ns),
        delayed_ns: scheduled.map(|scheduled| scheduled.delayed_ns),
        nice: task.nice,
        tracer: task.tracer,
        location: seen
            .place
            .map(|place| json_location(names.locations.get(place), names.locations, snapshot)),
    })
}
