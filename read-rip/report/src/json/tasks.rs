//! Tasks as JSON, each with its futures, its waits and its holds. It computes nothing.

use std::io::{self, Write};

use read_rip_model::locations::LocationId;
use read_rip_model::locks::{LockId, TaskDoes, TaskFacts, ThreadId, task_does, task_place, task_since};
use read_rip_ring::{Snapshot, TaskKind};
use serde::Serialize;

use super::location::{JsonLocation, json_location};
use super::writer::{Json, moment};
use crate::names::LockNames;
use crate::remarks::is_zero;

#[derive(Serialize)]
struct Task<'a> {
    name: &'a str,
    pid: u32,
    tid: u32,
    number: u32,
    kind: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<String>,
    since_exact: bool,
    polls: u64,
    wakes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wakers: Option<u32>,
    local: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<Runtime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    polled_by: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_at: Option<JsonLocation<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
    futures: Vec<Future<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    futures_left_out: u64,
    waits: Vec<Use<'a>>,
    holds: Vec<Use<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_peer: Option<ChannelPeer>,
}

/// The other side of the channel at which a task waits.
#[derive(Serialize)]
struct ChannelPeer {
    side: &'static str,
    ends: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    presumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<bool>,
}

#[derive(Serialize)]
struct Runtime {
    number: u32,
    workers: u32,
}

#[derive(Serialize)]
struct Future<'a> {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    outer: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    polled: Option<bool>,
    location: JsonLocation<'a>,
}

/// A lock or object for which a future waits, or a lock that it holds.
#[derive(Serialize)]
struct Use<'a> {
    lock: String,
    lock_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    future: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    polled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
}

impl<W: Write> Json<W> {
    /// A task.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn task(&mut self, id: ThreadId, names: &LockNames<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let (model, thread) = (names.model, &names.model.threads[id]);
        let Some(task) = thread.task.as_deref() else { return Ok(()) };
        let location = |id: LocationId| json_location(names.locations.get(id), names.locations, snapshot);
        let lock = |id: LockId| {
            let lock = &model.locks[id];
            (format!("{:#x}", lock.address), names.lock(lock))
        };
        let (since_ns, is_at_most) = task_since(thread, task);
        let waits = task.waits.iter().map(|wait| {
            let (lock, lock_name) = lock(wait.wait.lock);
            Use {
                lock,
                lock_name,
                since_boottime_ns: wait.wait.since_ns.map(moment),
                future: wait.future,
                polled: wait.is_polled,
                location: Some(location(wait.wait.location)),
            }
        });
        let holds = task.holds.iter().map(|hold| {
            let (lock, lock_name) = lock(hold.lock);
            Use {
                lock,
                lock_name,
                since_boottime_ns: hold.hold.since_ns.map(moment),
                future: hold.future,
                polled: None,
                location: hold.hold.location.map(location),
            }
        });
        let futures = task.futures.iter().map(|future| Future {
            index: future.index,
            outer: future.outer,
            polled: future.is_polled,
            location: location(future.location),
        });
        self.line(
            "task",
            Task {
                name: &thread.name,
                pid: thread.pid,
                tid: thread.tid,
                number: task.number,
                kind: task_kind_name(task.kind),
                state: task_state_name(task_does(thread, task)),
                since_boottime_ns: since_ns.map(moment),
                since_exact: !is_at_most,
                polls: task.polls,
                wakes: task.wakes,
                wakers: task.wakers,
                local: task.is_local,
                runtime: runtime(task),
                polled_by: task.thread.map(|thread| model.threads[thread].tid),
                within: task.outer.map(|outer| model.threads[outer].tid),
                made_at: task.made_at.map(location),
                location: task_place(thread, task).location.map(location),
                futures: futures.collect(),
                futures_left_out: task.left_out,
                waits: waits.collect(),
                holds: holds.collect(),
                channel_peer: thread.peer.as_ref().map(|peer| ChannelPeer {
                    side: if peer.receives { "receives" } else { "sends" },
                    ends: peer.ends,
                    user: peer.user,
                    presumed: peer.is_presumed,
                    ended: peer.user.map(|_| peer.present.is_none()),
                }),
            },
        )
    }
}

fn runtime(task: &TaskFacts) -> Option<Runtime> {
    task.runtime.map(|runtime| Runtime { number: runtime.number, workers: runtime.workers })
}

/// The name of a kind of task.
pub fn task_kind_name(kind: TaskKind) -> &'static str {
    match kind {
        TaskKind::Async => "async",
        TaskKind::Blocking => "blocking",
        TaskKind::Coroutine => "coroutine",
        TaskKind::Unknown(_) => "unknown",
    }
}

/// The name of what a task does.
pub fn task_state_name(does: TaskDoes) -> &'static str {
    match does {
        TaskDoes::Runs => "running",
        TaskDoes::Ready => "ready",
        TaskDoes::Suspended => "suspended",
        TaskDoes::Ended => "ended",
    }
}
