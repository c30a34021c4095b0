//! Threads that wait for one root, as data. `standstill` finds them, and draws no conclusions either.

use crate::locks::{LockId, ThreadId};

/// What keeps a group of threads waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Root {
    /// This thread holds a lock, and does not wait for one itself.
    Holder(ThreadId),
    /// This lock, and no recorded thread is known to hold it.
    Lock(LockId),
}

/// Threads that wait, directly or behind others, for one root.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) root: Root,
    /// The lock that the root keeps and for which most threads wait.
    pub(super) lock: LockId,
    /// All threads that wait.
    pub(super) threads: Vec<ThreadId>,
    /// The locks for which they wait, each once.
    pub(super) locks: Vec<LockId>,
}
