//! Orders of acquisition in which threads can block one another.

use serde::Serialize;

use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId};

/// A lock that a thread acquired shared while it held it shared, and a writer of the lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NestedReads {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it first.
    pub first: LocationId,
    /// Where the thread acquired it again.
    pub second: LocationId,
    /// A thread that acquires the lock exclusively.
    pub writer: ThreadId,
    /// Where the writer acquired the lock, or waits for it.
    pub written: LocationId,
}
/// Threads that acquire locks in orders that form a cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderCycle {
    /// In the order of the cycle: each edge acquires the lock that the next one holds.
    pub edges: Vec<OrderEdge>,
    /// How many more sets of locks with the same names form such a cycle.
    pub similar: usize,
    /// How many more cycles no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}
/// A thread that acquired one lock while it held another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderEdge {
    /// The thread.
    pub thread: ThreadId,
    /// What it held.
    pub held: Acquisition,
    /// What it acquired while it held that.
    pub acquired: Acquisition,
}
/// A lock, and where and how it was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Acquisition {
    /// The lock.
    pub lock: LockId,
    /// Where.
    pub location: LocationId,
    /// In shared mode.
    #[serde(rename = "shared")]
    pub is_shared: bool,
}
