//! A step of a thread, as values. `steps` keeps many of them.

use super::LockId;
use crate::locations::LocationId;

/// Something that a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sequence of its PC word.
    pub sequence: u64,
    pub kind: StepKind,
    /// The lock; `None` for progress and plain marks.
    pub lock: Option<LockId>,
    /// Whether the lock is acquired in shared mode.
    pub is_shared: bool,
    /// Whether the attempt does not block, or ends after a time.
    pub is_try: bool,
    /// Whether the thread acquires the lock shared, and passes waiting writers.
    pub is_readers_first: bool,
    pub location: LocationId,
    /// When, ns since boot; `None` if that was not recorded.
    pub time_ns: Option<u64>,
    /// For a release: when the lock was acquired, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Passed a plain mark.
    Snap,
    /// Waited for what nobody holds, or stopped to: a message, a barrier, the end of a thread.
    Blocked,
    /// Did useful work.
    Progress,
    Wait,
    /// Acquired the lock: a mark by hand.
    Acquired,
    /// Acquired the lock in a wrapper, which records the start of an acquisition. It did not fail.
    AcquireBegin,
    /// Failed to acquire the lock, at once or after a wait of limited time.
    TryFailed,
    Released,
    /// Released the lock and waits on a condition variable.
    ConditionWait,
    /// Came back from a condition variable with the lock.
    ConditionWoken,
    /// Destroyed the lock. Another lock may be created at its address.
    Destroyed,
    /// Initialised the lock: nobody holds it. Another lock may have been at its address.
    Initialised,
    /// Took a unit of a semaphore; in shared mode if there was another one left. Nobody holds a semaphore.
    UnitTaken,
    UnitPosted,
    /// Passed marks that the linker folded into one. They differ in meaning.
    Ambiguous,
}
impl StepKind {
    /// Whether the thread did useful work, or may have done it.
    pub(crate) fn may_be_progress(self) -> bool {
        matches!(self, StepKind::Progress | StepKind::Ambiguous)
    }
}
