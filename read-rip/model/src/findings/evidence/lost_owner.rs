//! Locks whose owners are gone.

use serde::Serialize;

use super::facts::{HoldFact, Waiters};
use crate::locks::LockId;

/// A lock held by a thread that no longer exists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeadHolder {
    /// The hold.
    pub hold: HoldFact,
    /// The thread has exited; otherwise it disappeared without exiting.
    #[serde(rename = "exited")]
    pub has_exited: bool,
    /// The threads that wait for the lock.
    pub waiters: Waiters,
}
/// A lock of a forked child that is locked, and that no thread of the child holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Orphan {
    /// The child.
    pub pid: u32,
    /// The lock.
    pub lock: LockId,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// Whether a thread of the parent certainly held it at the fork.
    pub locked_at_fork: bool,
    /// The holder of the same lock in the parent now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<HoldFact>,
}
