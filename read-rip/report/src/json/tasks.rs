//! Tasks as JSON, each with its futures, its waits and its holds. It computes nothing.

use std::io::{self, Write};

use read_rip_model::locations::LocationId;
use read_rip_model::locks::{LockId, TaskDoes, TaskFacts, ThreadId, task_does, task_place, task_since};
use read_rip_ring::{Snapshot, TaskKind};
use serde::Serialize;

use super::location::{JsonLocation, json_location};
use super::values::{Address, JsonThread, Moment};
use super::{Json, Line};
use crate::names::LockNames;
use crate::remarks::is_zero;

/// `tasks`: a task: a future, a call that blocks on a pool of an executor, or a coroutine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Task<'a> {
    #[serde(flatten)]
    thread: JsonThread<'a>,
    /// Its number. The process counts its tasks from 1.
    number: u32,
    /// What it is. blocking: a call on a pool for calls that block.
    #[cfg_attr(test, schemars(extend("enum" = ["async", "blocking", "coroutine", "unknown"])))]
    kind: &'static str,
    /// running: it is being polled, or runs; ready: it was made or woken and was not polled since; suspended: it waits;
    /// ended: it was dropped.
    #[cfg_attr(test, schemars(extend("enum" = task_states())))]
    state: &'static str,
    /// Since when it is in this state, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<Moment>,
    /// Otherwise the state may have begun up to 63 short polls later: one reading of the clock serves several polls.
    since_exact: bool,
    /// How often it was polled.
    polls: u64,
    /// How often it was woken since its last poll began.
    wakes: u64,
    /// How many clones of its waker exist: nobody else can wake it.
    #[serde(skip_serializing_if = "Option::is_none")]
    wakers: Option<u32>,
    /// It is polled on one thread only.
    local: bool,
    /// Its executor. A task whose poll has given its worker to another thread (`block_in_place`) has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<Runtime>,
    /// The thread that polls it or polled it last, by its `tid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    polled_by: Option<u32>,
    /// The task whose poll polls it, by its `tid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<u32>,
    /// Where the program made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_at: Option<JsonLocation<'a>>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
    /// Its marked futures that exist, in the order in which they were first polled.
    futures: Vec<Future<'a>>,
    /// How many more marked futures exist, for which the record has no room. At most 65,535 are counted.
    #[serde(skip_serializing_if = "is_zero")]
    futures_left_out: u64,
    /// What its futures wait for.
    waits: Vec<Use<'a>>,
    /// The locks that it holds.
    holds: Vec<Use<'a>>,
    /// If it waits at a channel: what was known of the other side when the wait began.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_peer: Option<ChannelPeer>,
}

/// The other side of the channel at which a task waits.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ChannelPeer {
    /// What the other side does.
    #[cfg_attr(test, schemars(extend("enum" = ["sends", "receives"])))]
    side: &'static str,
    /// How many ends it has.
    ends: u64,
    /// The id of the task or thread that alone has used its only end.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    /// Nobody has used it: the user alone receives what the task has sent since it made the channel, and is presumed to
    /// answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    presumed: bool,
    /// Whether that one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<bool>,
}

/// An executor.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Runtime {
    /// Its number in the process.
    number: u32,
    /// How many workers it has, each of which may poll the task; 0: none does, or unknown.
    workers: u32,
}

/// A future.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Future<'a> {
    /// Its number in the task.
    index: usize,
    /// The future that polled it first, by its `index`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outer: Option<usize>,
    /// The last poll of the task polled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    polled: Option<bool>,
    /// Where it is.
    location: JsonLocation<'a>,
}

/// A lock or another object that a task waits for, or a lock that it holds.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "UseOfTask"))]
struct Use<'a> {
    /// Its address.
    lock: Address,
    /// Its name.
    lock_name: String,
    /// Since when, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<Moment>,
    /// The marked future that does so, by its `index`.
    #[serde(skip_serializing_if = "Option::is_none")]
    future: Option<usize>,
    /// The last poll of the task polled this wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    polled: Option<bool>,
    /// Where.
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
            (Address(lock.address), names.lock(lock))
        };
        let (since_ns, is_at_most) = task_since(thread, task);
        let waits = task.waits.iter().map(|wait| {
            let (lock, lock_name) = lock(wait.wait.lock);
            Use {
                lock,
                lock_name,
                since_boottime_ns: wait.wait.since_ns.map(Moment),
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
                since_boottime_ns: hold.hold.since_ns.map(Moment),
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
        self.line(Line::Task(Task {
            thread: JsonThread { name: &thread.name, pid: thread.pid, tid: thread.tid },
            number: task.number,
            kind: task_kind_name(task.kind),
            state: task_state_name(task_does(thread, task)),
            since_boottime_ns: since_ns.map(Moment),
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
        }))
    }
}

/// `tasks`: a thread of an executor that says when it sleeps.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Worker<'a> {
    #[serde(flatten)]
    thread: JsonThread<'a>,
    /// Whether it sleeps. Otherwise it polls tasks, or looks for some.
    asleep: bool,
    /// Since when it sleeps or is awake, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<Moment>,
    /// Which part of the seconds before that it was awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    awake_percent: Option<u64>,
    /// The task that it polls, by its `tid`. Of tasks within one another this is the innermost.
    #[serde(skip_serializing_if = "Option::is_none")]
    polls: Option<u32>,
}

impl<W: Write> Json<W> {
    /// Writes the threads of executors that say when they sleep, a line each.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn workers(&mut self, names: &LockNames<'_>) -> io::Result<()> {
        let model = names.model;
        let rests = model.present().filter_map(|(id, thread)| Some((id, thread, thread.rest.as_deref()?)));
        for (id, thread, rest) in rests {
            self.line(Line::Worker(Worker {
                thread: JsonThread { name: &thread.name, pid: thread.pid, tid: thread.tid },
                asleep: rest.is_asleep,
                since_boottime_ns: rest.since_ns.map(Moment),
                awake_percent: rest.awake_percent(),
                polls: model.polled_by(id).map(|task| model.threads[task].tid),
            }))?;
        }
        Ok(())
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

/// All names of what tasks do.
#[cfg(test)]
fn task_states() -> [&'static str; 4] {
    use TaskDoes::{Ended, Ready, Runs, Suspended};
    [Runs, Ready, Suspended, Ended].map(task_state_name)
}
