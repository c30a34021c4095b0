//! Locks as JSON: what is known of all of them, and each with its holders and waiters. It computes nothing.

use std::io::{self, Write};

use read_rip_model::locks::{Hold, HoldState, Overview, Quantiles, Summary, Waiters as WaitingGroup};
use read_rip_ring::Snapshot;
use serde::Serialize;

use super::location::{JsonLocation, json_location};
use super::ring::clock_level_name;
use super::threads::thread_state_name;
use super::values::{Address, LockLabels, Moment};
use super::{Json, Line};
#[cfg(test)]
use super::{ring::clock_levels, threads::thread_states};
use crate::names::LockNames;
use crate::names::lock_type;

/// `locks`: what is known of all locks.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Locks {
    /// Acquisitions that are not in a thread's table of held locks, because it was full.
    held_overflows: u64,
    /// Locks that are held now and not listed, because a table was full.
    held_unlisted: u64,
    /// Entries of tables that changed while they were read.
    held_in_flux: u64,
    /// Releases by a thread other than the holder that were not matched to the holder.
    releases_unmatched: u64,
    /// Idle, uncontended locks that are left out. --all shows them.
    hidden: usize,
    /// The moment that the ring describes, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    now_boottime_ns: Option<Moment>,
    /// Which events have times.
    #[cfg_attr(test, schemars(extend("enum" = clock_levels())))]
    clock: &'static str,
}

/// `locks`: a lock.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Lock<'a> {
    #[serde(flatten)]
    labels: LockLabels<'a>,
    /// Its type; `lock` if it is not known.
    #[cfg_attr(test, schemars(extend("enum" = [
        "mutex", "rwlock", "spin lock", "semaphore", "barrier", "channel", "initialisation", "parked thread",
        "notification", "lock",
    ])))]
    r#type: &'static str,
    /// Its process.
    pid: u32,
    /// Its address.
    address: Address,
    /// All known operations are those of wrappers; otherwise some are marked by hand.
    wrapped: bool,
    /// One thread holds it exclusively, and another one is recorded as a holder too.
    contradictory: bool,
    /// Its holders.
    holders: Vec<Holder<'a>>,
    /// The threads that wait for it, in groups.
    waiters: Vec<Waiters<'a>>,
    /// The threads that wait on a condition variable, in groups. The lock is released meanwhile.
    condition_waiters: Vec<Waiters<'a>>,
    /// The threads that wait for a unit of this semaphore, at this barrier, or for a message of this channel, in
    /// groups.
    semaphore_waiters: Vec<Waiters<'a>>,
    /// Futures that wait for it and belong to no recorded task, in groups: the threads that polled them.
    futures_waiting: Vec<Waiters<'a>>,
    /// How many threads a round of this barrier takes, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads_of_round: Option<u16>,
    /// Known acquisitions.
    acquisitions: u64,
    /// How many of these came after a wait.
    contended: u64,
    /// Known tries that failed.
    failed_tries: u64,
    /// Threads that are known to have held it.
    owners: usize,
    /// How long threads waited for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Quantiles>,
    /// How long threads held it.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<Quantiles>,
}

/// A holder, or a thread that may be one.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Holder<'a> {
    /// The name of the thread or task.
    name: &'a str,
    /// Its id, as in `thread`.
    tid: u32,
    /// present: it exists, or did when its process ended; abandoned: it disappeared without exiting.
    #[cfg_attr(test, schemars(extend("enum" = thread_states())))]
    thread_state: &'static str,
    /// presumed: presumably holds the lock, and may have released it; acquiring, releasing: may hold the lock;
    /// destroyed: held it when it was destroyed; future: a future holds it that belongs to no recorded task, and this
    /// thread polled that.
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["held", "presumed", "acquiring", "releasing", "destroyed", "future"]))
    )]
    state: &'static str,
    /// In shared mode.
    shared: bool,
    /// How often the thread acquired it again while holding it.
    recursion: u16,
    /// Since when, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<Moment>,
    /// For how long, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    for_ns: Option<u64>,
    /// The entry did not change between two readings, or the process is dead.
    steady: bool,
    /// Where the thread acquired it.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
}

/// Threads that wait at one location.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "WaitingGroup"))]
struct Waiters<'a> {
    /// How many.
    threads: usize,
    /// Their thread ids.
    tids: Vec<u32>,
    /// In shared mode.
    shared: bool,
    /// The waits have a time limit.
    timed: bool,
    /// The longest wait, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_ns: Option<u64>,
    /// Where they wait.
    location: JsonLocation<'a>,
}

impl<W: Write> Json<W> {
    /// What is known of all locks, and then each of them.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn locks(
        &mut self,
        overview: &Overview,
        names: &LockNames<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let model = names.model;
        let clock = snapshot.header.as_ref().and_then(|header| header.clock.as_ref());
        self.line(Line::Locks(Locks {
            held_overflows: model.held_overflows,
            held_unlisted: model.threads.iter().map(|thread| u64::from(thread.overflowed)).sum(),
            held_in_flux: model.threads.iter().map(|thread| u64::from(thread.in_flux)).sum(),
            releases_unmatched: model.releases_unmatched,
            hidden: overview.hidden,
            now_boottime_ns: model.now_ns.map(Moment),
            clock: clock_level_name(clock.map(|clock| clock.level)),
        }))?;
        for summary in &overview.locks {
            self.lock(summary, names, snapshot)?;
        }
        Ok(())
    }

    fn lock(&mut self, summary: &Summary, names: &LockNames<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let LockNames { model, locations, .. } = *names;
        let lock = &model.locks[summary.lock];
        let location = |id| json_location(locations.get(id), locations, snapshot);
        let tids = |threads: &[usize]| threads.iter().map(|&id| model.threads[id].tid).collect();
        let is_presumed = lock.is_holder_presumed();
        let holder = |hold: &Hold| Holder {
            name: &model.threads[hold.thread].name,
            tid: model.threads[hold.thread].tid,
            thread_state: thread_state_name(model.threads[hold.thread].state),
            state: match hold.state {
                HoldState::Held if is_presumed => "presumed",
                HoldState::Held => "held",
                HoldState::Acquiring => "acquiring",
                HoldState::Releasing => "releasing",
                HoldState::Destroyed => "destroyed",
                HoldState::OfFuture => "future",
            },
            shared: hold.is_shared,
            recursion: hold.recursion,
            since_boottime_ns: hold.since_ns.map(Moment),
            for_ns: model.now_ns.zip(hold.since_ns).and_then(|(now, since)| now.checked_sub(since)),
            steady: hold.is_steady,
            location: hold.location.map(location),
        };
        let waiters = |group: &WaitingGroup| Waiters {
            threads: group.threads.len(),
            tids: tids(&group.threads),
            shared: group.is_shared,
            timed: group.is_timed,
            longest_ns: group.longest_ns,
            location: location(group.location),
        };
        let all = |groups: &[_]| groups.iter().map(waiters).collect();
        self.line(Line::Lock(Lock {
            labels: LockLabels::of(lock, names),
            r#type: lock_type(lock),
            pid: lock.pid,
            address: Address(lock.address),
            wrapped: lock.nature.is_wrapped,
            contradictory: summary.is_contradictory,
            holders: lock.holders.iter().chain(&lock.possible_holders).map(holder).collect(),
            waiters: all(&summary.waiters),
            condition_waiters: all(&summary.condition_waiters),
            semaphore_waiters: all(&summary.semaphore_waiters),
            futures_waiting: all(&summary.futures_waiting),
            threads_of_round: lock.threads_of_round,
            acquisitions: lock.record.acquisitions,
            contended: lock.record.contended,
            failed_tries: lock.record.failed_tries,
            owners: lock.record.owners,
            waits: summary.waits,
            holds: summary.holds,
        }))
    }
}
