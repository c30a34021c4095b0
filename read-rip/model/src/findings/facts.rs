//! What the evidence of several analyses has: holds, waits, and the past of a lock.
//!
//! It contains no text and draws no conclusions. `--json` writes these types as they are, with the names of their
//! fields, and so it does with the evidence of each analysis.

use serde::Serialize;

use crate::locations::LocationId;
use crate::locks::{LockId, Quantiles, ThreadId};

/// A thread that holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldFact {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it; `None`: only the process's memory says that it holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// In shared mode.
    #[serde(rename = "shared")]
    pub is_shared: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The thread did not acquire it: the thread that forked its process did.
    #[serde(rename = "inherited", skip_serializing_if = "std::ops::Not::not")]
    pub is_inherited: bool,
}

/// A thread that waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitFact {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread waits.
    pub location: LocationId,
    /// In shared mode.
    #[serde(rename = "shared")]
    pub is_shared: bool,
    /// The wait ends by itself after a time.
    #[serde(rename = "timed")]
    pub is_timed: bool,
    /// The thread waits on a condition variable, and needs the lock to return.
    #[serde(rename = "relock")]
    pub is_relock: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// The threads that wait for a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiters {
    /// How many.
    pub count: usize,
    /// The first of them, those that have waited longest first.
    pub first: Vec<WaitFact>,
}

/// A thread that waits for the end of another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JoinFact {
    /// The thread.
    pub thread: ThreadId,
    /// The thread whose end it waits for.
    pub joined: ThreadId,
    /// Where the thread waits.
    pub location: LocationId,
    /// The wait ends by itself after a time.
    #[serde(rename = "timed")]
    pub is_timed: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// A task that is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuspendedFact {
    /// Where, or where it was last; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// That is the await. Otherwise the task was there before, or was made there.
    #[serde(rename = "await")]
    pub is_await: bool,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The length may be too long: the clock was read before.
    #[serde(rename = "at_most")]
    pub is_at_most: bool,
}

/// A thread that waits, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SleepFact {
    /// The thread.
    pub thread: ThreadId,
    /// The lock for which it waits, or which it has released for a condition variable; or the semaphore, barrier or
    /// channel.
    pub lock: LockId,
    /// On what it waits.
    pub what: Asleep,
    /// Where it waits.
    pub location: LocationId,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

/// On what a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Asleep {
    /// A lock.
    Lock,
    /// A condition variable.
    Condition,
    /// A semaphore.
    Semaphore,
    /// A barrier.
    Barrier,
    /// A message, or room for one.
    Message,
    /// To be woken by another thread.
    Wake,
    /// A notification.
    Notification,
    /// The end of a thread.
    Thread,
}

/// What is known of the past of a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockHistory {
    /// How often it was acquired.
    pub acquisitions: u64,
    /// How often after a wait.
    pub contended: u64,
    /// By how many threads.
    pub owners: usize,
    /// How long threads waited for it, as far as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<Quantiles>,
    /// How long threads held it, as far as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<Quantiles>,
}
