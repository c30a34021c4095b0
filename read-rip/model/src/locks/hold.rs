//! A thread that holds a lock or waits for it, as values.

use super::{LockId, ThreadId};
use crate::locations::LocationId;

/// A thread that holds a lock, or may hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    pub thread: ThreadId,
    pub lock: LockId,
    /// Whether the lock is held in shared mode.
    pub is_shared: bool,
    /// Whether it is held in a shared mode that may become exclusive. A lock grants that mode to one thread at a time.
    pub is_upgradable: bool,
    /// The location of the acquisition; `None` if only the process's memory says that the thread holds the lock.
    pub location: Option<LocationId>,
    /// When the hold began, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
    /// How often the owner has acquired the lock again.
    pub recursion: u16,
    /// How certain it is that the thread holds the lock.
    pub state: HoldState,
    /// Whether the recorder remembers that a lock that was acquired at this place was released by another thread.
    pub has_place_of_handed_over: bool,
    /// Whether the earlier reading had the same entry. True for a dead process.
    pub is_steady: bool,
    /// Whether the thread has it since its process was forked: the thread that forked held the lock.
    pub is_inherited: bool,
    pub is_of_future: bool,
    /// Whether the thread has returned from the function that acquired the lock: its stack does not have it. False if
    /// that is not known.
    pub has_left: bool,
}
/// How certain it is that a thread holds a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldState {
    /// The thread tries to acquire the lock, and may hold it already.
    Acquiring,
    /// The thread holds the lock.
    #[default]
    Held,
    /// The thread releases the lock, and may have done so already.
    Releasing,
    /// The thread held the lock when the lock was destroyed.
    Destroyed,
    /// A future that belongs to no recorded task holds the lock. The thread polled it then, and any thread may poll it
    /// now.
    OfFuture,
}
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    pub thread: ThreadId,
    pub lock: LockId,
    /// Whether the thread wants the lock in shared mode.
    pub is_shared: bool,
    /// Whether it wants a shared mode that may become exclusive.
    pub is_upgradable: bool,
    pub location: LocationId,
    /// When the wait began, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
    /// Whether the wait ends by itself after a time.
    pub is_timed: bool,
    /// Whether the thread waits on a condition variable, and needs the lock to return from that.
    pub is_relock: bool,
    /// Whether the thread waited in the earlier reading too, for the same acquisition. True for a dead process.
    pub is_steady: bool,
    /// Whether a future waits, and not the code that runs on a thread: see [`TaskFacts`](super::TaskFacts).
    pub is_of_future: bool,
    /// Whether the kernel says that the thread sleeps in this very lock.
    pub is_seen: bool,
}
