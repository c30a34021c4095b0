//! What a thread or task waits for: the one answer that all views, findings and exports give.
//!
//! A task in a `select!` waits for several objects. Then the answer is the first of them in the order of [`Awaited`].
//! [`ThreadLocks::all_awaited`] has the others too, for outputs that list each wait. It is the same for a thread that a
//! signal handler interrupted in a wait.

use super::{Join, LockId, ThreadId, ThreadLocks, Wait};
use crate::locations::LocationId;

/// For what a thread or task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited<'m> {
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

/// The object of a wait, without its place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    Lock(LockId),
    /// A condition variable, for which this lock was released.
    Condition(LockId),
    /// A semaphore, barrier, channel or notification.
    Unit(LockId),
    End(ThreadId),
}

impl Object {
    /// The lock, semaphore, barrier or channel; of a condition variable, the lock that was released.
    pub fn lock(self) -> Option<LockId> {
        match self {
            Object::Lock(lock) | Object::Condition(lock) | Object::Unit(lock) => Some(lock),
            Object::End(_) => None,
        }
    }
}

impl ThreadLocks {
    /// What the thread or task waits for; `None` if it does not wait.
    pub fn awaited(&self) -> Option<Awaited<'_>> {
        let lock = self.wait.as_ref().map(Awaited::Lock);
        lock.or_else(|| self.awaited_condition())
            .or_else(|| self.awaited_unit())
            .or_else(|| self.awaited_end())
    }

    /// All that it waits for, each object once. The first one is [`ThreadLocks::awaited`].
    pub fn all_awaited(&self) -> Vec<Awaited<'_>> {
        let futures = || self.task.iter().flat_map(|task| &task.waits);
        let lock = self.wait.as_ref().map(Awaited::Lock);
        let locks = futures().filter(|wait| wait.is_for_lock).map(|wait| Awaited::Lock(&wait.wait));
        let units = futures().filter(|wait| !wait.is_for_lock);
        let units = units.map(|wait| Awaited::Unit { lock: wait.wait.lock, wait: Some(&wait.wait) });
        let mut all: Vec<Awaited<'_>> = Vec::new();
        let each = lock
            .into_iter()
            .chain(locks)
            .chain(self.awaited_condition())
            .chain(self.awaited_unit())
            .chain(units)
            .chain(self.awaited_end());
        for awaited in each {
            if all.iter().all(|known| known.object() != awaited.object()) {
                all.push(awaited);
            }
        }
        all
    }

    fn awaited_condition(&self) -> Option<Awaited<'_>> {
        let lock = self.condition_wait?;
        let relock = || self.relock.as_deref().filter(|wait| wait.lock == lock);
        Some(Awaited::Condition { lock, wait: self.sleep_at(lock).or_else(relock) })
    }

    fn awaited_unit(&self) -> Option<Awaited<'_>> {
        let of_sleep = || self.sleep.as_ref().filter(|_| self.condition_wait.is_none()).map(|wait| wait.lock);
        let lock = self.semaphore_wait.or_else(of_sleep)?;
        Some(Awaited::Unit { lock, wait: self.sleep_at(lock) })
    }

    fn awaited_end(&self) -> Option<Awaited<'_>> {
        self.join.as_deref().map(Awaited::End)
    }

    /// The wait with its place and time. If a signal handler waits too, it may be for another object.
    fn sleep_at(&self, lock: LockId) -> Option<&Wait> {
        self.sleep.as_deref().filter(|wait| wait.lock == lock)
    }
}

impl<'m> Awaited<'m> {
    pub fn object(&self) -> Object {
        match *self {
            Awaited::Lock(wait) => Object::Lock(wait.lock),
            Awaited::Condition { lock, .. } => Object::Condition(lock),
            Awaited::Unit { lock, .. } => Object::Unit(lock),
            Awaited::End(join) => Object::End(join.joined),
        }
    }

    /// The lock, semaphore, barrier or channel; of a condition variable, the lock that was released.
    pub fn lock(&self) -> Option<LockId> {
        self.object().lock()
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

    /// Since when it waits, ns since boot; `None` if that was not recorded.
    pub fn since_ns(&self) -> Option<u64> {
        match self {
            Awaited::End(join) => join.since_ns,
            _ => self.wait()?.since_ns,
        }
    }

    pub fn location(&self) -> Option<LocationId> {
        match self {
            Awaited::End(join) => Some(join.location),
            _ => self.wait().map(|wait| wait.location),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TaskFacts, TaskWait};
    use super::*;

    fn wait(lock: LockId, since_ns: u64) -> Wait {
        Wait { lock, location: 10 + lock, since_ns: Some(since_ns), is_steady: true, ..Wait::default() }
    }

    fn objects(thread: &ThreadLocks) -> Vec<Object> {
        let all = thread.all_awaited();
        assert_eq!(all.first().copied(), thread.awaited());
        all.iter().map(Awaited::object).collect()
    }

    #[test]
    fn a_lock_comes_before_what_nobody_holds_and_the_end_of_a_thread_comes_last() {
        let mut thread = ThreadLocks::unrecorded(1, 1, String::new());
        assert!(objects(&thread).is_empty() && !thread.is_blocked());
        thread.join = Some(Box::new(Join { joined: 7, location: 30, is_steady: true, ..Join::default() }));
        assert_eq!(objects(&thread), [Object::End(7)]);
        (thread.semaphore_wait, thread.sleep) = (Some(2), Some(Box::new(wait(2, 5))));
        assert_eq!(objects(&thread), [Object::Unit(2), Object::End(7)]);
        thread.wait = Some(wait(1, 6));
        assert_eq!(objects(&thread), [Object::Lock(1), Object::Unit(2), Object::End(7)]);
    }

    #[test]
    fn a_condition_keeps_its_place_and_time_while_a_signal_handler_waits_for_a_unit() {
        let mut thread = ThreadLocks::unrecorded(1, 1, String::new());
        (thread.condition_wait, thread.relock) = (Some(1), Some(Box::new(wait(1, 5))));
        (thread.semaphore_wait, thread.sleep) = (Some(2), Some(Box::new(wait(2, 6))));
        assert_eq!(objects(&thread), [Object::Condition(1), Object::Unit(2)]);
        let times: Vec<_> = thread.all_awaited().iter().map(Awaited::since_ns).collect();
        assert_eq!(times, [Some(5), Some(6)]);
    }

    #[test]
    fn each_object_that_futures_of_a_task_wait_for_is_listed_once() {
        let mut thread = ThreadLocks::unrecorded(1, 1, String::new());
        let of = |lock, is_for_lock| TaskWait {
            wait: wait(lock, 5),
            is_polled: Some(true),
            is_direct: true,
            is_for_lock,
            future: None,
            entry: 0,
        };
        let waits = vec![of(3, false), of(1, true), of(1, true), of(2, true)];
        thread.task = Some(Box::new(TaskFacts { waits, ..TaskFacts::suspended(7, 0) }));
        thread.wait = Some(wait(2, 5));
        (thread.semaphore_wait, thread.sleep) = (Some(3), Some(Box::new(wait(3, 5))));
        assert_eq!(objects(&thread), [Object::Lock(2), Object::Lock(1), Object::Unit(3)]);
    }
}
