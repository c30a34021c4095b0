//! What an analysis sees: one or two readings of a ring, and questions that several analyses ask of them.
//!
//! It draws no conclusions.

use std::cell::OnceCell;

use foldhash::HashSet;
use read_rip_ring::Runtime;

use super::LATELY_NS;
use super::facts::{HoldFact, JoinFact, LockHistory, WaitFact, Waiters};
use super::history::{self, HandedOver};
use super::pasts::Pasts;
use super::remarks::Premise;
use super::standstill::Group;
use crate::locations::Location;
use crate::locks::{Hold, Join, Lock, LockId, LockModel, Ownership, Quantiles, ThreadId, Wait};
use crate::threads::ThreadState;

/// This many waiting threads are listed one by one.
const LISTED_MAX: usize = 5;

/// What an analysis sees.
#[derive(Debug)]
pub struct View<'a> {
    /// The ring; for a living process the later of two readings.
    pub now: &'a LockModel,
    /// The earlier reading of a living process. Its ids of locks, threads and locations are its own. Of each thread's
    /// steps it has one that is progress, or may be, if there is any.
    pub before: Option<&'a LockModel>,
    /// The locations that the models name, by their ids.
    pub locations: &'a [&'a Location],
    /// A hold that lasts at least this long counts as long, ns.
    pub threshold_ns: u64,
    /// What analyses have found out about `now` and other analyses need too.
    pub memo: Memo,
}

/// What takes long to find out, and several analyses need. It is empty at first.
#[derive(Debug, Default)]
pub struct Memo {
    handed_over: OnceCell<HandedOver>,
    nesting_threads: OnceCell<Vec<bool>>,
    /// See `pollers`: of each executor the process, and the executor.
    pub(super) overstaffed: OnceCell<HashSet<(u32, Runtime)>>,
    /// See `standstill`.
    pub(super) groups: OnceCell<Vec<Group>>,
    /// For each group, whether it looks like an idle pool. See `idle_pool`.
    pub(super) are_pools: OnceCell<Vec<bool>>,
    pasts: OnceCell<Pasts>,
    /// Locks that somebody held in the earlier reading: the process, and the address.
    held_before: OnceCell<HashSet<(u32, u64)>>,
    /// See `replaced`.
    pub(super) replaced: OnceCell<HashSet<LockId>>,
    /// See `replaced`.
    pub(super) begun: OnceCell<HashSet<LockId>>,
}

/// Whether something lasted for at least some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// It did.
    Long,
    /// It did not.
    Short,
    /// The record does not say: there is no time, or the process died at an unknown moment.
    Unknown,
}

impl View<'_> {
    /// The locks that threads hand over.
    pub(super) fn handed_over(&self) -> &HandedOver {
        self.memo.handed_over.get_or_init(|| HandedOver::new(self.now))
    }

    /// Whether a thread ever acquired a lock, tried to, or waits for one, while it held one.
    pub(super) fn is_nesting(&self, thread: ThreadId) -> bool {
        self.memo.nesting_threads.get_or_init(|| history::nesting_threads(self.now))[thread]
    }

    /// The pasts of the locks for which threads wait.
    pub(super) fn pasts(&self) -> &Pasts {
        let has_waits = |&lock: &LockId| self.waits(lock).next().is_some();
        self.memo.pasts.get_or_init(|| Pasts::of(self.now, (0..self.now.locks.len()).filter(has_waits)))
    }

    /// Whether somebody held a lock in the earlier reading, as far as is known.
    pub(super) fn was_held(&self, lock: LockId) -> bool {
        let is_held = |lock: &&Lock| !lock.holders.is_empty() || !lock.possible_holders.is_empty();
        let held_before = self.memo.held_before.get_or_init(|| {
            let held = self.before.iter().flat_map(|before| before.locks.iter().filter(is_held));
            held.map(|lock| (lock.pid, lock.address)).collect()
        });
        let lock = &self.now.locks[lock];
        held_before.contains(&(lock.pid, lock.address))
    }

    /// Whether something that began then has lasted for `limit_ns`. When somebody looks at a dead process says nothing
    /// of when it died.
    pub(super) fn length(&self, since_ns: Option<u64>, limit_ns: u64) -> Length {
        match self.ago_ns(since_ns) {
            Some(at_least_ns) if at_least_ns >= limit_ns => Length::Long,
            Some(_) if !self.now.is_end_unknown => Length::Short,
            None if self.is_window_at_least(limit_ns) => Length::Long,
            _ => Length::Unknown,
        }
    }

    /// The time from which on a wait for what somebody has to bring counts: the threshold, and of a dead process one
    /// second, because its waits are known from below.
    pub(super) fn lasting_ns(&self) -> u64 {
        if self.now.is_final { LATELY_NS } else { self.threshold_ns }
    }

    /// Whether two readings of a living process are at least this far apart. What is the same in both lasted for so
    /// long.
    pub(super) fn is_window_at_least(&self, limit_ns: u64) -> bool {
        !self.now.is_final && self.now.window_ns.is_some_and(|window_ns| window_ns >= limit_ns)
    }

    /// Whether the process may still be there: it lives, or a debugger may have made the core file.
    pub(super) fn may_still_run(&self) -> bool {
        !self.now.is_final || self.now.threads.iter().any(|thread| thread.seen.is_some())
    }

    /// How long ago something was.
    pub(super) fn ago_ns(&self, since_ns: Option<u64>) -> Option<u64> {
        self.now.now_ns?.checked_sub(since_ns?)
    }

    /// What a conclusion from a hold of a lock takes for granted: that only the holder releases the lock, and that the
    /// lock's memory can be trusted.
    pub(super) fn premises(&self, lock: LockId) -> impl Iterator<Item = Premise> {
        let lock = &self.now.locks[lock];
        let of_futures = lock.holders.iter().any(|hold| hold.is_of_future);
        let rule = if of_futures { Premise::GuardStays } else { Premise::OwnerReleases };
        let by_rule = (lock.ownership() == Ownership::ByRule).then_some(rule);
        by_rule.into_iter().chain(lock.rests_on_memory().then_some(Premise::MemoryIntact))
    }

    /// The wait of a thread, if the thread still exists.
    pub(super) fn wait(&self, thread: ThreadId) -> Option<&Wait> {
        let thread = &self.now.threads[thread];
        thread.wait.as_ref().filter(|_| thread.state == ThreadState::Present)
    }

    /// The wait of a thread for the end of another one, if both still exist.
    pub(super) fn join(&self, thread: ThreadId) -> Option<&Join> {
        let is_present = |id: ThreadId| self.now.threads[id].state == ThreadState::Present;
        let join = self.now.threads[thread].join.as_deref()?;
        (is_present(thread) && is_present(join.joined)).then_some(join)
    }

    /// The wait of a thread for the lock of its condition variable, if the thread still exists.
    pub(super) fn relock(&self, thread: ThreadId) -> Option<&Wait> {
        let thread = &self.now.threads[thread];
        thread.relock.as_deref().filter(|_| thread.state == ThreadState::Present)
    }

    /// The waits for a lock by threads that still exist.
    pub(super) fn waits(&self, lock: LockId) -> impl Iterator<Item = &Wait> {
        let waiters = self.now.locks[lock].waiters.iter();
        waiters.filter(|wait| self.now.threads[wait.thread].state == ThreadState::Present)
    }

    /// When the first of the threads that wait for a lock began to wait, ns since boot.
    pub(super) fn first_wait_ns(&self, lock: LockId) -> Option<u64> {
        self.waits(lock).filter_map(|wait| wait.since_ns).min()
    }

    /// The threads that wait for a lock, as evidence.
    pub(super) fn waiters(&self, lock: LockId) -> Waiters {
        let mut waits: Vec<&Wait> = self.waits(lock).collect();
        // Waits without a time come last.
        waits.sort_by_key(|wait| wait.since_ns.unwrap_or(u64::MAX));
        let first = waits.iter().take(LISTED_MAX).map(|wait| self.wait_fact(wait));
        Waiters { count: waits.len(), first: first.collect() }
    }

    /// What is known of the past of a lock, as evidence; `None` without acquisitions.
    pub(super) fn lock_history(&self, lock: LockId) -> Option<LockHistory> {
        let record = &self.now.locks[lock].record;
        (record.acquisitions > 0).then(|| LockHistory {
            acquisitions: record.acquisitions,
            contended: record.contended,
            owners: record.owners,
            waits: Quantiles::of(&record.waits_ns),
            holds: Quantiles::of(&record.holds_ns),
        })
    }

    /// A wait, as evidence.
    pub(super) fn wait_fact(&self, wait: &Wait) -> WaitFact {
        WaitFact {
            thread: wait.thread,
            lock: wait.lock,
            location: wait.location,
            is_shared: wait.is_shared,
            is_timed: wait.is_timed,
            is_relock: wait.is_relock,
            for_ns: self.ago_ns(wait.since_ns),
        }
    }

    /// A wait for the end of a thread, as evidence.
    pub(super) fn join_fact(&self, join: &Join) -> JoinFact {
        let &Join { thread, joined, location, is_timed, since_ns, .. } = join;
        JoinFact { thread, joined, location, is_timed, for_ns: self.ago_ns(since_ns) }
    }

    /// A hold, as evidence.
    pub(super) fn hold_fact(&self, hold: &Hold) -> HoldFact {
        HoldFact {
            thread: hold.thread,
            lock: hold.lock,
            location: hold.location,
            is_shared: hold.is_shared,
            for_ns: self.ago_ns(hold.since_ns),
            is_inherited: hold.is_inherited,
        }
    }
}
