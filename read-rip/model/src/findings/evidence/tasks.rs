//! Tasks that nobody polls, and polls that do not return.

use serde::Serialize;

use super::facts::{SleepFact, SuspendedFact};
use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId};

/// Polls that do not return, while tasks wait to be polled by the same threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyRuntime {
    /// The number of the executor; `None` if these are the polls of a thread that is no worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<u32>,
    /// That thread, which alone polls these tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_thread: Option<ThreadId>,
    /// How many of its workers are in such polls, or how many calls run on its pool for calls that block.
    pub workers: usize,
    /// How many workers it has.
    pub of_workers: usize,
    /// Whether it is its pool for calls that block.
    #[serde(rename = "blocking")]
    pub is_blocking: bool,
    /// The polls, the longest first. Of many the first ones.
    pub polls: Vec<PollFact>,
    /// The tasks that were woken or made since, and wait to be polled.
    pub ready: ReadyTasks,
}

/// A poll that does not return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PollFact {
    /// The task.
    pub task: ThreadId,
    /// The thread that polls it; `None` if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// Where the task was last, by its marks; `None` if it has made none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// Where the program made the task; `None` if that is not known, or the location is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_at: Option<LocationId>,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The length may be too long: the clock was read before the poll.
    #[serde(rename = "at_most")]
    pub is_at_most: bool,
}

impl PollFact {
    /// Where the task was last, or where it was made.
    pub fn place(&self) -> Option<LocationId> {
        self.location.or(self.made_at)
    }
}

/// Tasks that were woken, or made, and were not polled since.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadyTasks {
    /// How many.
    pub count: usize,
    /// The first of them, those that have waited longest first.
    pub first: Vec<ReadyTask>,
}

/// A task that was woken, or made, and was not polled since.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReadyTask {
    /// The task.
    pub task: ThreadId,
    /// It was never polled.
    #[serde(rename = "new")]
    pub is_new: bool,
    /// For how long it has waited; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// Tasks that are suspended, and that nobody can wake.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NeverWoken {
    /// How many.
    pub count: usize,
    /// How many others wait for locks that they hold.
    pub waiting: usize,
    /// The first of them, those that have slept longest first.
    pub first: Vec<SleeperFact>,
}

/// A task that nobody can wake.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SleeperFact {
    /// The task.
    pub task: ThreadId,
    /// Where, and for how long.
    #[serde(flatten)]
    pub suspended: SuspendedFact,
    /// A lock that it holds and for which others wait.
    pub lock: LockId,
}

/// Tasks that wait for room in a channel, whose receiver nobody uses any more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FullChannel {
    /// The channel.
    pub lock: LockId,
    /// The id of the task or thread that alone has received, and has ended.
    pub receiver: u32,
    /// How many wait.
    pub waiting: usize,
    /// The first of them, those that have waited longest first.
    pub first: Vec<SleepFact>,
}

/// Tasks that were woken, and that nobody polls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unpolled {
    /// The tasks.
    pub ready: ReadyTasks,
    /// The task that polls the first of them, if it is part of another task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer: Option<ThreadId>,
}
