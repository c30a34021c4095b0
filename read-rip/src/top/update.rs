//! What moved since the last look, several times a second: numbers that a picture is brought up to date with.
//!
//! A picture of many threads takes seconds to make. The record says in some milliseconds who waits for which lock, who
//! has it, and which threads go on.

use foldhash::HashMap;
use read_rip_report::{LockKey, LockRow, ThreadKey, ThreadRow};

/// The locks and threads of a process at one moment, by its record alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// When it was taken, ns since 1970.
    pub taken_ns: u64,
    /// The time since the one before, ns; `None`: this is the first one.
    pub period_ns: Option<u64>,
    /// Threads that wait for a lock.
    pub waiting: usize,
    /// Threads that hold a lock.
    pub holding: usize,
    /// The locks that are held or waited for.
    pub locks: HashMap<LockKey, LockUpdate>,
    /// How many words each thread has recorded since the last one. A thread that has recorded none is not in it.
    pub advanced: HashMap<ThreadKey, u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockUpdate {
    /// How many threads wait for it.
    pub waiters: usize,
    pub holder: Option<ThreadKey>,
}

impl Update {
    /// How many threads wait for a lock now. The record does not know locks that are known from memory alone.
    pub fn waiters(&self, lock: &LockRow) -> usize {
        let is_recorded = lock.acquisitions > 0;
        let of_lock = self.locks.get(&lock.key).copied().or(is_recorded.then(LockUpdate::default));
        of_lock.map_or(lock.waiters, |of_lock| of_lock.waiters)
    }

    /// The thread that holds a lock now, if it is another one than in the picture.
    pub fn new_holder(&self, lock: &LockRow) -> Option<ThreadKey> {
        let holder = self.locks.get(&lock.key)?.holder?;
        (lock.holder != Some(holder)).then_some(holder)
    }

    /// How many words a thread has recorded since the last look.
    pub fn advanced(&self, thread: &ThreadRow) -> Option<u64> {
        self.period_ns?;
        let is_recorded = thread.advanced.is_some();
        self.advanced.get(&thread.key).copied().or(is_recorded.then_some(0))
    }

    /// How many words all threads record in a second; `None` if this is the first look.
    pub fn words_per_second(&self) -> Option<u64> {
        let words: u64 = self.advanced.values().sum();
        self.period_ns.map(|period_ns| read_rip_model::locks::per_second(words, period_ns))
    }
}
