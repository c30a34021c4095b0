//! Locks, the most contended first, with the threads at each in as few groups as possible.
//!
//! # Question
//!
//! Which locks make threads wait, which threads hold them, and where do the others wait?
//!
//! # Method
//!
//! Locks are ordered by the number of waiters, then by the longest wait, then by contended acquisitions in the
//! known histories. Threads that do the same with a lock at the same location form one group.
//!
//! # Blind spots
//!
//! A lock without marks is missing. So is a free lock whose events were all overwritten.

use std::cmp::Reverse;

use foldhash::HashMap;
use read_rip_ring::{Lengths, LockType};

use super::{Hold, HoldState, Lock, LockId, LockModel, ThreadId, Wait};
use crate::locations::{Limits, LocationId};
use crate::threads::ThreadState;

/// At most this many idle, uncontended locks are shown unless all are requested.
const IDLE_MAX: usize = 20;

/// The locks to show.
#[derive(Debug, Default)]
pub struct Overview {
    /// The most contended first.
    pub locks: Vec<Summary>,
    /// The number of idle, uncontended locks that are left out.
    pub hidden: usize,
    /// The number of locks that were not used in the time that the user wants, and are left out.
    pub unused: usize,
}

/// A lock and its threads.
#[derive(Debug)]
pub struct Summary {
    /// The lock.
    pub lock: LockId,
    /// The threads that hold the lock, or may hold it.
    pub holders: Vec<Holders>,
    /// The threads that wait for the lock, the largest group first.
    pub waiters: Vec<Waiters>,
    /// The threads that have released the lock while they wait on a condition variable, likewise.
    pub condition_waiters: Vec<Waiters>,
    /// The threads that wait for a unit of this semaphore, likewise.
    pub semaphore_waiters: Vec<Waiters>,
    /// The threads that polled futures which wait and belong to no recorded task, likewise.
    pub futures_waiting: Vec<Waiters>,
    /// Whether one thread holds the lock exclusively and another holds it too, so that some record is wrong.
    pub is_contradictory: bool,
    /// Like `is_contradictory`, but in a living process, where the lock may have changed hands while it was read.
    pub has_moved: bool,
    /// The lengths of waits, as far as recorded.
    pub waits: Option<Quantiles>,
    /// The lengths of holds, as far as recorded.
    pub holds: Option<Quantiles>,
}

/// Threads that hold a lock in the same way.
#[derive(Debug)]
pub struct Holders {
    /// The threads, in the order of the model.
    pub threads: Vec<ThreadId>,
    /// How certain it is that they hold the lock.
    pub state: HoldState,
    /// Whether they are present, have exited, or disappeared.
    pub thread_state: ThreadState,
    /// Whether in shared mode.
    pub is_shared: bool,
    /// The location of the acquisition, if it is known.
    pub location: Option<LocationId>,
    /// The longest time, ns; `None` if no time was recorded.
    pub longest_ns: Option<u64>,
}

/// Threads that wait at the same location.
#[derive(Debug)]
pub struct Waiters {
    /// The threads, in the order of the model.
    pub threads: Vec<ThreadId>,
    /// Whether in shared mode.
    pub is_shared: bool,
    /// Whether the waits end by themselves after a time.
    pub is_timed: bool,
    /// The location of the wait.
    pub location: LocationId,
    /// The longest time, ns; `None` if no time was recorded.
    pub longest_ns: Option<u64>,
}

/// The distribution of lengths of time: percentiles and the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// How many are known.
    pub count: usize,
    /// Half of them are no longer, ns.
    pub p50_ns: u64,
    /// 90 of 100 are no longer, ns.
    pub p90_ns: u64,
    /// 99 of 100 are no longer, ns.
    pub p99_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

impl Quantiles {
    /// The quantiles of ascending values, by the nearest-rank method; `None` if there are no values.
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

    /// The same of lengths that are counted by intervals. Each percentile is the end of its interval, and so an upper
    /// limit; the maximum is exact.
    pub fn of_counts(lengths: &Lengths) -> Option<Quantiles> {
        let count = usize::try_from(lengths.count()).ok().filter(|&count| count > 0)?;
        let rank = |percent: u128| {
            let rank = (count as u128 * percent).div_ceil(100);
            let mut below = 0;
            let mut reached = lengths.counts.iter().skip_while(|of| {
                below += u128::from(of.count);
                below < rank
            });
            reached.next().map_or(lengths.greatest_ns, |of| of.at_most_ns.min(lengths.greatest_ns))
        };
        let [p50_ns, p90_ns, p99_ns] = [50, 90, 99].map(rank);
        Some(Quantiles { count, p50_ns, p90_ns, p99_ns, max_ns: lengths.greatest_ns })
    }
}

/// Leaves out the holds and waits of which no part is in that time. Those that are present last until `end_ns`.
pub fn keep_within(model: &mut LockModel, limits: &Limits, end_ns: Option<u64>) {
    let claimed: Vec<u64> = model.threads.iter().map(|thread| thread.claimed_ns).collect();
    // A thread has not waited for longer than it has recorded.
    let is_within = |thread: ThreadId, since_ns: Option<u64>| {
        limits.overlap(since_ns.or(claimed.get(thread).copied()), end_ns)
    };
    for lock in &mut model.locks {
        for holds in [&mut lock.holders, &mut lock.possible_holders] {
            holds.retain(|hold| is_within(hold.thread, hold.since_ns));
        }
        let of_futures = &mut lock.futures_waiting;
        for waits in [&mut lock.waiters, &mut lock.condition_waiters, &mut lock.semaphore_waiters, of_futures]
        {
            waits.retain(|wait| is_within(wait.thread, wait.since_ns));
        }
    }
}

/// Chooses and orders locks. Idle, uncontended locks are left out if there are many, unless `all` locks are requested.
/// If not `all_time` counts, locks that were not used are left out.
pub fn overview(model: &LockModel, all: bool, all_time: bool) -> Overview {
    let is_unused = |lock: &Lock| !all_time && is_idle(lock) && lock.record.acquisitions == 0;
    let unused = model.locks.iter().filter(|lock| is_unused(lock)).count();
    let idle = model.locks.iter().filter(|lock| is_idle(lock)).count() - unused;
    let is_wanted = |lock: &Lock| all || idle <= IDLE_MAX || !is_idle(lock);
    // Nobody holds a semaphore: it is shown for the threads that wait.
    let is_idle_semaphore =
        |lock: &Lock| lock.nature.lock_type == LockType::Semaphore && lock.semaphore_waiters.is_empty();
    // Which lock was refused is not known.
    let is_hidden = |lock: &Lock| is_idle_semaphore(lock) || lock.nature.is_refused || is_unused(lock);
    let shown = (0..model.locks.len()).filter(|&id| !is_hidden(&model.locks[id]));
    let wanted = shown.clone().filter(|&id| is_wanted(&model.locks[id]));
    let mut locks: Vec<Summary> = wanted.map(|id| summary(model, id)).collect();
    locks.sort_by_cached_key(|summary| {
        let lock = &model.locks[summary.lock];
        let longest = summary.waiters.iter().filter_map(|group| group.longest_ns).max();
        let Lock { record, .. } = lock;
        let has_holder = !summary.holders.is_empty();
        let contention = (lock.waiters.len(), longest, record.contended, has_holder, record.acquisitions);
        (Reverse(contention), lock.pid, lock.address)
    });
    Overview { hidden: shown.count() - locks.len(), unused, locks }
}

/// Whether no thread holds the lock or waits for it, and no known acquisition waited or failed.
fn is_idle(lock: &Lock) -> bool {
    lock.holders.is_empty()
        && lock.possible_holders.is_empty()
        && lock.waiters.is_empty()
        && lock.condition_waiters.is_empty()
        && lock.semaphore_waiters.is_empty()
        && lock.futures_waiting.is_empty()
        && lock.record.contended == 0
        && lock.record.failed_tries == 0
}

fn summary(model: &LockModel, id: LockId) -> Summary {
    let lock = &model.locks[id];
    // If the rate of the clock was measured over too short a time, a time may be after `now_ns`. Its age is not
    // known then.
    let ago = |since: Option<u64>| model.now_ns?.checked_sub(since?);
    let mut holders: Vec<Holders> = Vec::new();
    let mut by_kind = HashMap::default();
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
    holders.sort_by_key(|group| (group.state != HoldState::Held, Reverse(group.threads.len())));
    let is_impossible = lock.holders.len() > 1 && lock.holders.iter().any(|hold| !hold.is_shared);
    let is_steady = lock.holders.iter().all(|hold| hold.is_steady);
    Summary {
        lock: id,
        holders,
        waiters: grouped(&lock.waiters, ago),
        condition_waiters: grouped(&lock.condition_waiters, ago),
        semaphore_waiters: grouped(&lock.semaphore_waiters, ago),
        futures_waiting: grouped(&lock.futures_waiting, ago),
        is_contradictory: is_impossible && is_steady,
        has_moved: is_impossible && !is_steady,
        waits: Quantiles::of(&lock.record.waits_ns),
        holds: Quantiles::of(&lock.record.holds_ns),
    }
}

/// The threads that wait in the same way at the same location. `ago` says how long ago a moment was.
fn grouped(waits: &[Wait], ago: impl Fn(Option<u64>) -> Option<u64>) -> Vec<Waiters> {
    let mut groups: Vec<Waiters> = Vec::new();
    let mut by_location = HashMap::default();
    for &Wait { thread, is_shared, is_timed, location, since_ns, .. } in waits {
        let at = *by_location.entry((is_shared, is_timed, location)).or_insert_with(|| {
            groups.push(Waiters { threads: Vec::new(), is_shared, is_timed, location, longest_ns: None });
            groups.len() - 1
        });
        groups[at].threads.push(thread);
        groups[at].longest_ns = groups[at].longest_ns.max(ago(since_ns));
    }
    groups.sort_by_key(|group| (Reverse(group.threads.len()), Reverse(group.longest_ns)));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_the_list() {
        assert_eq!(Quantiles::of(&[]), None);
        let one = Quantiles::of(&[7]).unwrap();
        assert_eq!((one.p50_ns, one.p99_ns, one.max_ns), (7, 7, 7));
        let hundred: Vec<u64> = (1..=100).collect();
        let of = Quantiles::of(&hundred).unwrap();
        assert_eq!((of.count, of.p50_ns, of.p90_ns, of.p99_ns, of.max_ns), (100, 50, 90, 99, 100));
    }
}
