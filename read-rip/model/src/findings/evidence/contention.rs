//! Locks and lines at which threads queue.

use serde::Serialize;

use super::facts::{HoldFact, LockHistory, WaitFact, Waiters};
use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId};

/// A lock for which most of the threads that use it wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// How many threads are known to use it.
    pub users: usize,
    /// The holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<ActiveHolder>,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<LockHistory>,
}
/// A holder and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActiveHolder {
    /// The hold.
    pub hold: HoldFact,
    /// How many words it recorded between two readings; `None` without two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_recorded: Option<u64>,
    /// The time between the two readings, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}
/// Threads that wait for a lock while others overtake them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overtaken {
    /// The lock.
    pub lock: LockId,
    /// How many threads.
    pub threads: usize,
    /// The first of them: those that were overtaken most often.
    pub first: Vec<OvertakenWait>,
}
/// A wait, and how often other threads overtook it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OvertakenWait {
    /// The wait.
    pub wait: WaitFact,
    /// How often at least a thread that came later acquired the lock.
    pub overtakes: usize,
}
/// A lock at which threads lose time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contended {
    /// The lock.
    pub lock: LockId,
    /// The holder; the first if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<HoldFact>,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<LockHistory>,
    /// How many more contended locks no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}
/// A source line at which most threads wait, as far as plain marks show.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CrowdedLine {
    /// How many threads wait there.
    pub waiting: usize,
    /// How many threads the process has.
    pub threads: usize,
    /// One of those that wait.
    pub example: ThreadId,
    /// Where that one was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// How many threads seem to hold a lock of the same file.
    pub holders: usize,
    /// The first of these.
    pub first_holders: Vec<ApparentHolder>,
    /// All apparent holders wait at the line themselves, which looks like a deadlock.
    pub all_holders_wait: bool,
}
/// A thread that seems to hold a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ApparentHolder {
    /// The thread.
    pub thread: ThreadId,
    /// Where it seems to have acquired the lock.
    pub location: LocationId,
    /// It waits at the crowded line itself.
    #[serde(rename = "waits_too")]
    pub is_waiting: bool,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
}
