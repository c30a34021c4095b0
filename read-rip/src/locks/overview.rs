//! Locks in the order in which they hurt, and the threads at each in as few groups as possible.
//!
//! # Question
//!
//! Which lock do threads suffer from, who has it, and where do the others wait?
//!
//! # Method
//!
//! Locks are ordered by waiters now, then by the longest wait, then by contended acquisitions in the known histories.
//! Threads that do the same with a lock at the same location are one group, however many they are.
//!
//! # Blind spots
//!
//! A lock that nobody marks is not there, and neither is one whose marks were all overwritten while nobody has it.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Hold, HoldState, Lock, LockId, LockModel, ThreadId};
use crate::locations::LocationId;
use crate::threads::ThreadState;

/// So many locks that are of no interest are shown without being asked for.
const QUIET_MAX: usize = 20;

/// The locks to show.
#[derive(Debug)]
pub struct Overview {
    /// The worst first.
    pub locks: Vec<Summary>,
    /// How many are left out because nobody has them, waits for them or waited for them.
    pub quiet: usize,
}

/// A lock and what threads do with it.
#[derive(Debug)]
pub struct Summary {
    /// Which.
    pub lock: LockId,
    /// Who has it, or may have it.
    pub holders: Vec<Holders>,
    /// Who waits for it, the largest group first.
    pub waiters: Vec<Waiters>,
    /// Some have it for themselves alone, and others have it too: something that was recorded is not so.
    pub is_contradictory: bool,
    /// The same, but of a living process: it may have changed hands while it was read.
    pub has_moved: bool,
    /// How long it took to get it, as far as that was recorded.
    pub waits: Option<Quantiles>,
    /// How long it was held, as far as that was recorded.
    pub holds: Option<Quantiles>,
}

/// Threads that have a lock in the same way.
#[derive(Debug)]
pub struct Holders {
    /// Who, in the order of the model.
    pub threads: Vec<ThreadId>,
    /// How sure it is.
    pub state: HoldState,
    /// What became of the threads.
    pub thread_state: ThreadState,
    /// In shared mode.
    pub is_shared: bool,
    /// Where they took it.
    pub location: LocationId,
    /// The longest, ns; `None`: not recorded.
    pub longest_ns: Option<u64>,
}

/// Threads that wait for a lock at the same location.
#[derive(Debug)]
pub struct Waiters {
    /// Who, in the order of the model.
    pub threads: Vec<ThreadId>,
    /// In shared mode.
    pub is_shared: bool,
    /// They give up after a time.
    pub is_timed: bool,
    /// Where they wait.
    pub location: LocationId,
    /// The longest, ns; `None`: not recorded.
    pub longest_ns: Option<u64>,
}

/// How lengths of time are distributed: the value that so many in a hundred do not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Quantiles {
    pub count: usize,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
}

impl Quantiles {
    /// Of values in ascending order (nearest rank); `None` if there are none.
    pub fn of(ascending: &[u64]) -> Option<Quantiles> {
        let rank = |percent: usize| ascending[(ascending.len() * percent).div_ceil(100).max(1) - 1];
        let &max_ns = ascending.last()?;
        Some(Quantiles {
            count: ascending.len(),
            p50_ns: rank(50),
            p90_ns: rank(90),
            p99_ns: rank(99),
            max_ns,
        })
    }
}

/// Chooses and orders locks. Those of no interest are left out when they are many, unless `all` are wanted.
pub fn overview(model: &LockModel, all: bool) -> Overview {
    let quiet = model.locks.iter().filter(|lock| is_quiet(lock)).count();
    let is_wanted = |lock: &Lock| all || quiet <= QUIET_MAX || !is_quiet(lock);
    let wanted = (0..model.locks.len()).filter(|&id| is_wanted(&model.locks[id]));
    let mut locks: Vec<Summary> = wanted.map(|id| summary(model, id)).collect();
    locks.sort_by_cached_key(|summary| {
        let lock = &model.locks[summary.lock];
        let longest = summary.waiters.iter().filter_map(|group| group.longest_ns).max();
        let Lock { record, .. } = lock;
        let has_holder = !summary.holders.is_empty();
        let hurt = (lock.waiters.len(), longest, record.contended, has_holder, record.acquisitions);
        (Reverse(hurt), lock.pid, lock.address)
    });
    Overview { quiet: model.locks.len() - locks.len(), locks }
}

/// Whether nobody has a lock, waits for it, or had to do without it.
fn is_quiet(lock: &Lock) -> bool {
    lock.holders.is_empty()
        && lock.possible_holders.is_empty()
        && lock.waiters.is_empty()
        && lock.condition_waiters.is_empty()
        && lock.semaphore_waiters.is_empty()
        && lock.record.contended == 0
        && lock.record.failed_tries == 0
}

fn summary(model: &LockModel, id: LockId) -> Summary {
    let lock = &model.locks[id];
    // A clock whose speed was measured for too short a time can be ahead of the system's: then nothing is known.
    let ago = |since: Option<u64>| model.now_ns?.checked_sub(since?);
    let mut holders: Vec<Holders> = Vec::new();
    let mut by_kind = HashMap::new();
    for hold in lock.holders.iter().chain(&lock.possible_holders) {
        let &Hold { thread, state, is_shared, location, since_ns, .. } = hold;
        let thread_state = model.threads[thread].state;
        let at =
            *by_kind.entry((state as u8, thread_state as u8, is_shared, location)).or_insert_with(|| {
                holders.push(Holders {
                    threads: Vec::new(),
                    state,
                    thread_state,
                    is_shared,
                    location,
                    longest_ns: None,
                });
                holders.len() - 1
            });
        holders[at].threads.push(thread);
        holders[at].longest_ns = holders[at].longest_ns.max(ago(since_ns));
    }
    let mut waiters: Vec<Waiters> = Vec::new();
    let mut by_place = HashMap::new();
    for wait in &lock.waiters {
        let (is_shared, is_timed, location) = (wait.is_shared, wait.is_timed, wait.location);
        let at = *by_place.entry((is_shared, is_timed, location)).or_insert_with(|| {
            waiters.push(Waiters { threads: Vec::new(), is_shared, is_timed, location, longest_ns: None });
            waiters.len() - 1
        });
        waiters[at].threads.push(wait.thread);
        waiters[at].longest_ns = waiters[at].longest_ns.max(ago(wait.since_ns));
    }
    holders.sort_by_key(|group| (group.state != HoldState::Held, Reverse(group.threads.len())));
    waiters.sort_by_key(|group| (Reverse(group.threads.len()), Reverse(group.longest_ns)));
    let is_impossible = lock.holders.len() > 1 && lock.holders.iter().any(|hold| !hold.is_shared);
    let is_steady = lock.holders.iter().all(|hold| hold.is_steady);
    Summary {
        lock: id,
        holders,
        waiters,
        is_contradictory: is_impossible && is_steady,
        has_moved: is_impossible && !is_steady,
        waits: Quantiles::of(&lock.record.waits_ns),
        holds: Quantiles::of(&lock.record.holds_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(Quantiles::of(&[]), None);
        let one = Quantiles::of(&[7]).unwrap();
        assert_eq!((one.p50_ns, one.p99_ns, one.max_ns), (7, 7, 7));
        let hundred: Vec<u64> = (1..=100).collect();
        let of = Quantiles::of(&hundred).unwrap();
        assert_eq!((of.count, of.p50_ns, of.p90_ns, of.p99_ns, of.max_ns), (100, 50, 90, 99, 100));
    }
}
