//! What a thread or task waits for: the one answer that all views, findings and exports give.
//!
//! A task in a `select!` waits for several objects. Then the answer is the first of them in the order of [`Awaited`],
//! and [`ThreadLocks`] has the others. It is the same for a thread that a signal handler interrupted in a wait.

use super::{Join, LockId, ThreadId, ThreadLocks, Wait};
use crate::locations::LocationId;

/// For what a thread or task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited<'m> {
    /// A lock.
    Lock(&'m Wait),
    /// A signal on a condition variable.
    Condition {
        /// The lock that it has released meanwhile.
        lock: LockId,
        /// The wait, with its place and time, if it was recorded.
        wait: Option<&'m Wait>,
    },
    /// A unit of a semaphore, the others at a barrier, a message, a notification.
    Unit {
        /// The semaphore, barrier or channel.
        lock: LockId,
        /// The wait, with its place and time, if it was recorded.
        wait: Option<&'m Wait>,
    },
    /// The end of a thread or task.
    End(&'m Join),
}

impl ThreadLocks {
    /// What the thread or task waits for; `None` if it does not wait.
    pub fn awaited(&self) -> Option<Awaited<'_>> {
        let wait = self.sleep.as_deref();
        let condition = || self.condition_wait.map(|lock| Awaited::Condition { lock, wait });
        let unit =
            || self.semaphore_wait.or(wait.map(|wait| wait.lock)).map(|lock| Awaited::Unit { lock, wait });
        let end = || self.join.as_deref().map(Awaited::End);
        self.wait.as_ref().map(Awaited::Lock).or_else(condition).or_else(unit).or_else(end)
    }
}

impl<'m> Awaited<'m> {
    /// The lock, semaphore, barrier or channel; of a condition variable, the lock that was released.
    pub fn lock(&self) -> Option<LockId> {
        match *self {
            Awaited::Lock(wait) => Some(wait.lock),
            Awaited::Condition { lock, .. } | Awaited::Unit { lock, .. } => Some(lock),
            Awaited::End(_) => None,
        }
    }

    /// The wait at that lock, if it was recorded.
    pub fn wait(&self) -> Option<&'m Wait> {
        match *self {
            Awaited::Lock(wait) => Some(wait),
            Awaited::Condition { wait, .. } | Awaited::Unit { wait, .. } => wait,
            Awaited::End(_) => None,
        }
    }

    /// The thread or task whose end is waited for.
    pub fn end_of(&self) -> Option<ThreadId> {
        match self {
            Awaited::End(join) => Some(join.joined),
            _ => None,
        }
    }

    /// Where it waits.
    pub fn location(&self) -> Option<LocationId> {
        match self {
            Awaited::End(join) => Some(join.location),
            _ => self.wait().map(|wait| wait.location),
        }
    }
}
