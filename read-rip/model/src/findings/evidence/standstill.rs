//! Threads that wait for what does not move, and holders that do nothing.

use serde::Serialize;

use super::facts::{Asleep, HoldFact, JoinFact, LockHistory, SleepFact, SuspendedFact, Waiters};
use crate::locations::LocationId;
use crate::locks::{Doing, LockId, ThreadId};

/// Threads that wait for a lock whose ownership stands still.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standstill {
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for this very lock.
    pub waiters: Waiters,
    /// How many threads wait for it, or for locks that those threads hold, and so on.
    pub blocked: usize,
    /// For how many locks they wait.
    pub locks: usize,
    /// How many more threads wait on condition variables whose locks these threads have used.
    pub on_conditions: usize,
    /// For how long the first of all these threads has waited, ns. If the end of the process is not known: at least.
    #[serde(rename = "longest_wait_ns", skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<u64>,
    /// For how long it has waited at most, ns.
    #[serde(rename = "longest_wait_at_most_ns", skip_serializing_if = "Option::is_none")]
    pub longest_at_most_ns: Option<u64>,
    /// The holder; `None`: no recorded thread is known to hold the lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<StandingHolder>,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<LockHistory>,
    /// How many more groups of waiting threads no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}
/// A holder that keeps its lock, and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StandingHolder {
    /// The hold.
    pub hold: HoldFact,
    /// For how long at least it has held the lock, ns: since the first of the threads that wait for it began to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_at_least_ns: Option<u64>,
    /// Whether it held the lock at both readings, and in between; `None` without two.
    #[serde(rename = "held_throughout", skip_serializing_if = "Option::is_none")]
    pub is_steady: Option<bool>,
    /// How many words it recorded between two readings; `None` without two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words_recorded: Option<u64>,
    /// The time between the two readings, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Where it was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// The condition variable, semaphore, barrier or channel on which it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sleep: Option<HolderSleep>,
    /// The thread whose end it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join: Option<JoinFact>,
    /// It is a task that is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<Box<SuspendedFact>>,
}
/// A wait of a holder on a condition variable, semaphore, barrier or channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HolderSleep {
    /// The lock that it has released for the condition variable; or the semaphore, barrier or channel.
    pub lock: LockId,
    /// On what it waits.
    pub what: Asleep,
    /// Where it waits.
    pub location: LocationId,
    /// The wait ends by itself after a time.
    #[serde(rename = "timed")]
    pub is_timed: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}
/// A process in which no thread moves, and threads wait for locks or for one another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// How many threads the process has.
    pub threads: usize,
    /// How many of them wait for locks.
    pub on_locks: usize,
    /// How many wait for the end of a thread, or for an initialisation.
    pub on_threads: usize,
    /// How many wait for what only another thread can bring, as a signal on a condition variable.
    pub inside: usize,
    /// For how long none of them moved, ns: the time between the two readings; `None`: the process is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<u64>,
    /// Threads that do the same at the same place, those that wait for locks first. Of many groups the first ones.
    pub first: Vec<StandingFact>,
}
/// Threads that do the same at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct StandingFact {
    /// One of them.
    pub thread: ThreadId,
    /// How many they are.
    pub count: usize,
    /// What they do.
    pub doing: Doing,
    /// Where they stand in the program; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
}
/// A process all of whose threads wait, so that no thread is left to wake another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Abandoned {
    /// How many threads.
    pub threads: usize,
    /// How many of them wait for locks.
    pub on_locks: usize,
    /// How many wait on condition variables.
    pub on_conditions: usize,
    /// How many wait for units of semaphores.
    pub on_semaphores: usize,
    /// How many wait at barriers.
    pub on_barriers: usize,
    /// How many wait for messages, or to be woken by another thread.
    pub on_messages: usize,
    /// For how long all of them have waited, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The first of them, those that have waited longest first.
    pub first: Vec<SleepFact>,
}
/// Threads that wait on a condition variable after its last signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unheard {
    /// How many threads wait on it.
    pub waiting: usize,
    /// The one of them that has waited longest.
    pub first: SleepFact,
    /// How many threads the process has. All of them wait.
    pub threads: usize,
    /// A thread that signalled the condition when nobody waited.
    pub signaller: ThreadId,
    /// Where it did that last.
    pub signalled_at: LocationId,
}
/// A thread that holds a lock and does nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleHolder {
    /// The hold.
    pub hold: HoldFact,
    /// For how long at least, ns: without a recorded time, the time between two readings.
    pub at_least_ns: u64,
    /// Where the thread was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// It is a task that is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<SuspendedFact>,
    /// The threads that wait for the lock.
    pub waiters: Waiters,
}
