//! Threads that run and make no progress.

use serde::Serialize;

use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId};

/// Threads that each fail to acquire what another of them holds, step back, and try again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MutualFailure {
    /// How many threads.
    pub threads: usize,
    /// The first of them.
    pub tries: Vec<FailedTries>,
    /// The program marks progress, and none of these threads made any.
    #[serde(rename = "progress_marked")]
    pub is_progress_marked: bool,
}
/// A thread's tries to acquire a lock while it held another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailedTries {
    /// The thread.
    pub thread: ThreadId,
    /// How many tries failed.
    pub count: usize,
    /// The lock.
    pub lock: LockId,
    /// Where the thread tries.
    pub location: LocationId,
    /// Another of the threads, which acquires this lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<ThreadId>,
}
/// Busy threads without any mark of progress.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyLoops {
    /// How many threads.
    pub threads: usize,
    /// The first of them.
    pub loops: Vec<BusyLoop>,
}
/// A thread that repeatedly passes the same few locations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyLoop {
    /// The thread.
    pub thread: ThreadId,
    /// How many marks of it are known.
    pub marks: usize,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}
