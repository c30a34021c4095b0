//! Threads that wait for one another in a cycle.

use serde::Serialize;

use super::facts::{ChannelFact, HoldFact, JoinFact, WaitFact};
use crate::locks::ThreadId;

/// Threads that wait for one another in a cycle. One edge: a thread that waits for a lock that it holds itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitCycle {
    /// How many threads are on the cycle.
    pub threads: usize,
    /// For how long all of them have waited; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// Each thread of the cycle and what blocks it, in the order of the cycle. Of a long cycle the first ones.
    pub edges: Vec<WaitEdge>,
    /// How many threads outside the cycle can never continue either.
    pub also_blocked: usize,
}
/// A thread of a cycle, and the next thread, which blocks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WaitEdge {
    /// It waits for a lock.
    Lock(LockEdge),
    /// It waits for the end of the next thread.
    Join {
        /// The wait.
        join: JoinFact,
    },
    /// It waits for a message of the next one, or for room that the next one can make.
    Channel {
        /// The wait.
        channel: ChannelFact,
    },
    /// It is a task that no worker of its executor can poll.
    Worker {
        /// The edge.
        worker: WorkerFact,
    },
}
impl WaitEdge {
    /// The thread or task that waits.
    pub fn thread(&self) -> ThreadId {
        match self {
            WaitEdge::Lock(edge) => edge.wait.thread,
            WaitEdge::Join { join } => join.thread,
            WaitEdge::Channel { channel } => channel.thread,
            WaitEdge::Worker { worker } => worker.task,
        }
    }

    /// The wait for a lock, if it is one.
    pub fn of_lock(&self) -> Option<&LockEdge> {
        match self {
            WaitEdge::Lock(edge) => Some(edge),
            WaitEdge::Join { .. } | WaitEdge::Channel { .. } | WaitEdge::Worker { .. } => None,
        }
    }

    /// The wait at a channel, if it is one.
    pub fn of_channel(&self) -> Option<&ChannelFact> {
        match self {
            WaitEdge::Channel { channel } => Some(channel),
            WaitEdge::Lock(_) | WaitEdge::Join { .. } | WaitEdge::Worker { .. } => None,
        }
    }
}
/// A thread of a cycle that waits for a lock, and the next thread, which blocks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LockEdge {
    /// The wait.
    pub wait: WaitFact,
    /// What blocks it.
    #[serde(flatten)]
    pub blocker: Blocker,
}
/// What blocks a wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// A thread holds the lock.
    Holder(HoldFact),
    /// This thread waits to acquire the lock exclusively, and later readers queue after it.
    QueuedWriter(ThreadId),
    /// Nobody holds the lock. The first in line is a future of this task, which the task does not poll.
    LeftOut(WaitFact),
}
/// A task that has to be polled, and a thread that may poll it, but waits for a lock. All others that may do so, too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorkerFact {
    /// The task that has to be polled.
    pub task: ThreadId,
    /// The thread.
    pub worker: ThreadId,
    /// The task that it polls, from whose poll it does not return; `None` if it waits outside of recorded tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled: Option<ThreadId>,
    /// How many workers the executor has; `None` if no worker polls the task, but this thread alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
}
