//! Locks as JSON: what is known of all of them, and each with its holders and waiters. It computes nothing.

use std::io::{self, Write};

use read_rip_model::locks::{Hold, HoldState, Overview, Quantiles, Summary, Waiters as WaitingGroup};
use read_rip_ring::Snapshot;
use serde::Serialize;

use super::location::{JsonLocation, json_location};
use super::ring::clock_level_name;
use super::threads::thread_state_name;
use super::writer::{Json, moment};
use crate::names::LockNames;
use crate::names::lock_type;

#[derive(Serialize)]
struct Locks {
    held_overflows: u64,
    held_unlisted: u64,
    held_in_flux: u64,
    releases_unmatched: u64,
    hidden: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    now_boottime_ns: Option<String>,
    clock: &'static str,
}

#[derive(Serialize)]
struct Lock<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_from: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'a str>,
    r#type: &'static str,
    pid: u32,
    address: String,
    wrapped: bool,
    contradictory: bool,
    holders: Vec<Holder<'a>>,
    waiters: Vec<Waiters<'a>>,
    condition_waiters: Vec<Waiters<'a>>,
    semaphore_waiters: Vec<Waiters<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads_of_round: Option<u16>,
    acquisitions: u64,
    contended: u64,
    failed_tries: u64,
    owners: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Quantiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<Quantiles>,
}

#[derive(Serialize)]
struct Holder<'a> {
    name: &'a str,
    tid: u32,
    thread_state: &'static str,
    state: &'static str,
    shared: bool,
    recursion: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_ns: Option<u64>,
    steady: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<JsonLocation<'a>>,
}

#[derive(Serialize)]
struct Waiters<'a> {
    threads: usize,
    tids: Vec<u32>,
    shared: bool,
    timed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest_ns: Option<u64>,
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
        self.line(
            "locks",
            Locks {
                held_overflows: model.held_overflows,
                held_unlisted: model.threads.iter().map(|thread| u64::from(thread.overflowed)).sum(),
                held_in_flux: model.threads.iter().map(|thread| u64::from(thread.in_flux)).sum(),
                releases_unmatched: model.releases_unmatched,
                hidden: overview.hidden,
                now_boottime_ns: model.now_ns.map(moment),
                clock: clock_level_name(clock.map(|clock| clock.level)),
            },
        )?;
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
        let (name, name_from) = names.origin(&lock.name).unzip();
        let holder = |hold: &Hold| Holder {
            name: &model.threads[hold.thread].name,
            tid: model.threads[hold.thread].tid,
            thread_state: thread_state_name(model.threads[hold.thread].state),
            state: match hold.state {
                HoldState::Held => "held",
                HoldState::Acquiring => "acquiring",
                HoldState::Releasing => "releasing",
                HoldState::Destroyed => "destroyed",
            },
            shared: hold.is_shared,
            recursion: hold.recursion,
            since_boottime_ns: hold.since_ns.map(moment),
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
        self.line(
            "lock",
            Lock {
                name,
                name_from,
                class: lock.class.as_deref(),
                r#type: lock_type(lock),
                pid: lock.pid,
                address: format!("{:#x}", lock.address),
                wrapped: lock.nature.is_wrapped,
                contradictory: summary.is_contradictory,
                holders: lock.holders.iter().chain(&lock.possible_holders).map(holder).collect(),
                waiters: all(&summary.waiters),
                condition_waiters: all(&summary.condition_waiters),
                semaphore_waiters: all(&summary.semaphore_waiters),
                threads_of_round: lock.threads_of_round,
                acquisitions: lock.record.acquisitions,
                contended: lock.record.contended,
                failed_tries: lock.record.failed_tries,
                owners: lock.record.owners,
                waits: summary.waits,
                holds: summary.holds,
            },
        )
    }
}
