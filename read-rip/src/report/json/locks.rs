//! Locks as JSON. The fields are described in the module above.
//!
//! Nothing is computed here but how long ago something was.

use std::io::{self, Write};

use serde::Serialize;

use super::{Json, JsonLocation, json_location, state_name};
use crate::locations::Locations;
use crate::locks::{Hold, HoldState, LockModel, LockName, Overview, Quantiles, Summary};
use crate::report::locks::type_name;
use crate::ring::{ClockLevel, Snapshot};

#[derive(Serialize)]
struct Locks {
    held_overflows: u64,
    held_beyond: u64,
    held_unclear: u64,
    releases_unmatched: u64,
    quiet: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    now_boottime_ns: Option<u64>,
    clock: &'static str,
}

#[derive(Serialize)]
struct Lock<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name_from: Option<&'static str>,
    r#type: &'static str,
    pid: u32,
    address: String,
    wrapped: bool,
    contradictory: bool,
    holders: Vec<Holder<'a>>,
    waiters: Vec<Waiters<'a>>,
    lenders: Vec<u32>,
    acquisitions: u64,
    contended: u64,
    failed_tries: u64,
    owners: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<Times>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<Times>,
}

#[derive(Serialize)]
struct Holder<'a> {
    name: &'a str,
    tid: u32,
    thread_state: &'static str,
    state: &'static str,
    shared: bool,
    again: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_ns: Option<u64>,
    steady: bool,
    location: JsonLocation<'a>,
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

#[derive(Serialize)]
struct Times {
    count: usize,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

impl<W: Write> Json<W> {
    /// What there is to say of all locks, and then each of them.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn locks(
        &mut self,
        overview: &Overview,
        model: &LockModel,
        locations: &Locations<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let clock = snapshot.header.as_ref().and_then(|header| header.clock.as_ref());
        self.line(
            "locks",
            Locks {
                held_overflows: model.held_overflows,
                held_beyond: model.threads.iter().map(|thread| u64::from(thread.overflowed)).sum(),
                held_unclear: model.threads.iter().map(|thread| u64::from(thread.in_flux)).sum(),
                releases_unmatched: model.releases_unmatched,
                quiet: overview.quiet,
                now_boottime_ns: model.now_ns,
                clock: match clock.map(|clock| clock.level) {
                    None | Some(ClockLevel::Off) => "off",
                    Some(ClockLevel::Contended) => "contended",
                    Some(_) => "all",
                },
            },
        )?;
        for summary in &overview.locks {
            self.lock(summary, model, locations, snapshot)?;
        }
        Ok(())
    }

    fn lock(
        &mut self,
        summary: &Summary,
        model: &LockModel,
        locations: &Locations<'_>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let lock = &model.locks[summary.lock];
        let location = |id| json_location(locations.get(id), locations, snapshot);
        let tids = |threads: &[usize]| threads.iter().map(|&id| model.threads[id].tid).collect();
        let (name, name_from) = match &lock.name {
            LockName::Given(name) => (Some(name.clone()), Some("given")),
            LockName::Symbol(name) => (Some(name.clone()), Some("symbol")),
            LockName::Location(id) => (Some(locations.get(*id).function.clone()), Some("location")),
            LockName::None => (None, None),
        };
        let holder = |hold: &Hold| Holder {
            name: &model.threads[hold.thread].name,
            tid: model.threads[hold.thread].tid,
            thread_state: state_name(model.threads[hold.thread].state),
            state: match hold.state {
                HoldState::Held => "held",
                HoldState::Acquiring => "taking",
                HoldState::Releasing => "releasing",
                HoldState::Destroyed => "destroyed",
            },
            shared: hold.is_shared,
            again: hold.recursion,
            since_boottime_ns: hold.since_ns,
            for_ns: model.now_ns.zip(hold.since_ns).and_then(|(now, since)| now.checked_sub(since)),
            steady: hold.is_steady,
            location: location(hold.location),
        };
        let waiters = summary.waiters.iter().map(|group| Waiters {
            threads: group.threads.len(),
            tids: tids(&group.threads),
            shared: group.is_shared,
            timed: group.is_timed,
            longest_ns: group.longest_ns,
            location: location(group.location),
        });
        self.line(
            "lock",
            Lock {
                name,
                name_from,
                r#type: type_name(lock),
                pid: lock.pid,
                address: format!("{:#x}", lock.address),
                wrapped: lock.nature.is_wrapped,
                contradictory: summary.is_contradictory,
                holders: lock.holders.iter().chain(&lock.possible_holders).map(holder).collect(),
                waiters: waiters.collect(),
                lenders: tids(&[&lock.condition_waiters[..], &lock.semaphore_waiters].concat()),
                acquisitions: lock.record.acquisitions,
                contended: lock.record.contended,
                failed_tries: lock.record.failed_tries,
                owners: lock.record.owners,
                wait: summary.waits.map(times),
                hold: summary.holds.map(times),
            },
        )
    }
}

fn times(of: Quantiles) -> Times {
    let Quantiles { count, p50_ns, p90_ns, p99_ns, max_ns } = of;
    Times { count, p50_ns, p90_ns, p99_ns, max_ns }
}
