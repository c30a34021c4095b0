//! How long polls of tasks took, as JSON. It computes nothing.

use std::io::{self, Write};

use read_rip_model::locations::LocationId;
use read_rip_model::locks::{PollsAt, Quantiles, SlowPoll};
use read_rip_ring::Snapshot;
use serde::Serialize;

use super::location::{JsonLocation, json_location};
use super::values::{JsonThread, Moment};
use super::{Json, Line};
use crate::names::LockNames;

/// `tasks --polls`: how long the polls took of the tasks that were made at a place.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct PollsOfPlace<'a> {
    /// The process.
    pid: u32,
    /// Where these tasks are made; absent: all places that have no room of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_at: Option<JsonLocation<'a>>,
    /// Their name, if it says of which kind they are.
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    /// How long the polls took that have ended. Percentiles are upper limits, at most a quarter above.
    #[serde(skip_serializing_if = "Option::is_none")]
    polls: Option<Quantiles>,
    /// How long after a wake the poll began that answered it. That a task is made counts as a wake.
    #[serde(skip_serializing_if = "Option::is_none")]
    wake_to_poll: Option<Quantiles>,
}

/// `tasks --slow`: one of the longest polls of the tasks that were made at a place.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct LongPoll<'a> {
    /// The task.
    task: JsonThread<'a>,
    /// Where it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    made_at: Option<JsonLocation<'a>>,
    /// The thread that polled it, by its `tid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    polled_by: Option<u32>,
    /// When it began, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<Moment>,
    /// How long it took, or has taken so far, ns.
    took_ns: u64,
    /// Whether it has ended.
    ended: bool,
    /// Most of it was the poll of another task, which has a line of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    polled_another: bool,
    /// Where the task has recorded something last in it; if it has not ended, where the task is.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
}

impl<W: Write> Json<W> {
    /// How long the polls of a place took.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn polls(&mut self, of: &PollsAt, names: &LockNames<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let location = |id: LocationId| json_location(names.locations.get(id), names.locations, snapshot);
        self.line(Line::Polls(PollsOfPlace {
            pid: of.place.pid,
            made_at: of.place.made_at.map(location),
            name: &of.place.name,
            polls: of.polls,
            wake_to_poll: of.delays,
        }))
    }

    /// A long poll.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn long_poll(
        &mut self,
        poll: &SlowPoll,
        names: &LockNames<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let location = |id: LocationId| json_location(names.locations.get(id), names.locations, snapshot);
        self.line(Line::LongPoll(LongPoll {
            task: JsonThread { name: &poll.name, pid: poll.pid, tid: poll.task },
            made_at: poll.made_at.map(location),
            polled_by: poll.tid,
            since_boottime_ns: poll.began_ns.map(Moment),
            took_ns: poll.took_ns,
            ended: poll.has_ended,
            polled_another: poll.is_of_inner,
            location: poll.location.map(location),
        }))
    }
}
