//! A snapshot's held-lock tables and events become a [`LockModel`].
//!
//! The tables say who has which lock now; the events say how it came about, as far as they are known. Where they
//! disagree, because one of them was read later, the tables are right about the present.

use std::collections::HashSet;

use super::ledger::Ledger;
use super::marks::{Mark, Marks};
use super::replay::replay;
use super::{Hold, HoldState, LockId, LockModel, ThreadId, ThreadLocks, Wait};
use crate::locations::Locations;
use crate::ring::{HeldLock, HeldState, LockType, SiteKind, Slot, Snapshot};
use crate::threads::{self, Thread};

/// What a model is built from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The ring.
    pub snapshot: &'a Snapshot,
    /// An earlier reading of the same ring, if its process is alive.
    pub earlier: Option<&'a Snapshot>,
    /// How long before the reading the earlier one was, ns.
    pub window_ns: Option<u64>,
    /// Whether nothing can change any more: the process is dead.
    pub is_final: bool,
    /// The moment of the reading, or of the process's end, ns since boot.
    pub now_ns: Option<u64>,
    /// The threads that the process has; empty when it has ended or nothing is known.
    pub living: &'a HashSet<u32>,
    /// Processes that were forked and have ended, while the ring is still in use.
    pub ended: &'a HashSet<u32>,
}

/// Builds the model. Its locations are those of `locations`, which may be of a later reading of the same ring.
pub fn build(input: &Input<'_>, locations: &mut Locations<'_>) -> LockModel {
    let snapshot = input.snapshot;
    let header = snapshot.header.as_ref();
    let mut ledger = Ledger::new(snapshot, input.now_ns);
    let mut marks = Marks::new(locations);
    let threads = threads::threads(snapshot, input.living, input.ended);
    let threads: Vec<ThreadLocks> = threads
        .iter()
        .enumerate()
        .map(|(id, thread)| {
            let before = input.earlier.and_then(|earlier| same_owner(earlier, thread.slot));
            let moment = Moment { is_final: input.is_final, before };
            one_thread(id, thread, &moment, &mut marks, &mut ledger)
        })
        .collect();
    let refused =
        header.map_or(0, |header| header.threads_refused_full.saturating_add(header.threads_refused_memory));
    LockModel {
        pid: header.map_or(0, |header| header.pid),
        is_final: input.is_final,
        now_ns: input.now_ns.or_else(|| last_time(&threads, &snapshot.slots)),
        window_ns: input.window_ns.filter(|_| input.earlier.is_some()),
        has_progress_sites: snapshot.sites.iter().any(|site| site.kind == SiteKind::Progress),
        held_overflows: header.map_or(0, |header| header.held_overflows),
        slots_reused: header.map_or(0, |header| header.slots_reused),
        ended: input.ended.clone(),
        releases_unmatched: header.map_or(0, |header| header.releases_unmatched),
        threads_refused: refused,
        locks: ledger.close(snapshot, locations),
        threads,
    }
}

/// What to compare a thread's table with.
struct Moment<'a> {
    is_final: bool,
    before: Option<&'a Slot>,
}

impl Moment<'_> {
    /// Whether an entry was the same before. Another acquisition of the same lock has another sequence.
    fn is_steady(&self, held: &HeldLock) -> bool {
        self.is_final || self.before.is_some_and(|before| before.held.contains(held))
    }
}

/// The slot in an earlier reading, if its owner was the same.
fn same_owner<'a>(earlier: &'a Snapshot, slot: &Slot) -> Option<&'a Slot> {
    // Slots are read in the order of their locations.
    let at = earlier.slots.binary_search_by_key(&slot.index, |slot| slot.index).ok()?;
    let before = &earlier.slots[at];
    (before.generation == slot.generation && before.pid == slot.pid && before.tid == slot.tid)
        .then_some(before)
}

fn one_thread(
    id: ThreadId,
    thread: &Thread<'_>,
    moment: &Moment<'_>,
    marks: &mut Marks<'_, '_>,
    ledger: &mut Ledger<'_>,
) -> ThreadLocks {
    let slot = thread.slot;
    let mut own = ThreadLocks {
        slot: thread.position,
        pid: slot.pid,
        tid: slot.tid,
        name: slot.name.clone(),
        state: thread.state,
        holds: Vec::new(),
        wait: None,
        condition_wait: None,
        semaphore_wait: None,
        overflowed: slot.held_overflowed,
        in_flux: slot.held_in_flux,
        last: None,
        steps: Vec::new(),
        overwritten: 0,
        advanced: moment.before.map(|before| slot.count.saturating_sub(before.count)),
    };
    let mut entries: Vec<(&HeldLock, Mark, LockId, Option<u64>)> = Vec::with_capacity(slot.held.len());
    for held in &slot.held {
        let mark = marks.held(slot.pid, held);
        let lock = ledger.lock(slot.pid, held.lock, &mark);
        let since_ns = held.since_ticks.and_then(|ticks| ledger.time_ns(slot, ticks));
        entries.push((held, mark, lock, since_ns));
    }
    entries.sort_by_key(|&(held, _, _, since_ns)| in_order(slot, held, since_ns));
    for (held, mark, lock, since_ns) in entries {
        let hold = |state| Hold {
            thread: id,
            lock,
            is_shared: held.is_shared,
            is_upgradable: held.is_shared && mark.flags.is_upgradable(),
            location: mark.location,
            since_ns,
            recursion: held.recursion,
            state,
            is_steady: moment.is_steady(held),
        };
        let entry = &mut ledger.locks[lock];
        entry.nature.is_process_shared |= held.is_process_shared;
        match held.state {
            HeldState::Acquiring => entry.possible_holders.push(hold(HoldState::Acquiring)),
            HeldState::Releasing => entry.possible_holders.push(hold(HoldState::Releasing)),
            HeldState::Destroyed => entry.possible_holders.push(hold(HoldState::Destroyed)),
            HeldState::Held => {
                if !held.is_shared {
                    // Who has got a lock alone does not have it from before: that was given up by another thread.
                    let is_former = |hold: &Hold| hold.thread == id && hold.lock == lock && !hold.is_shared;
                    entry.holders.retain(|hold| !is_former(hold));
                    own.holds.retain(|hold| !is_former(hold));
                }
                entry.holders.push(hold(HoldState::Held));
                own.holds.push(hold(HoldState::Held));
                ledger.owned(lock, id);
            }
            HeldState::ConditionWait => {
                entry.condition_waiters.push(id);
                own.condition_wait = Some(lock);
            }
            HeldState::SemaphoreWait => {
                entry.nature.lock_type = LockType::Semaphore;
                entry.semaphore_waiters.push(id);
                own.semaphore_wait = Some(lock);
            }
            HeldState::Waiting => {
                let wait = Wait {
                    thread: id,
                    lock,
                    is_shared: held.is_shared,
                    is_upgradable: held.is_shared && mark.flags.is_upgradable(),
                    location: mark.location,
                    since_ns,
                    is_timed: mark.flags.is_try(),
                    is_steady: moment.is_steady(held),
                };
                entry.waiters.push(wait);
                own.wait = Some(wait);
            }
        }
    }
    let history = replay(slot, id, marks, ledger);
    own.last = history.last;
    own.overwritten = slot.overwritten().saturating_add(history.given_up);
    own.steps = history.steps;
    own
}

/// Sorts a thread's entries by when they were made.
///
/// Those whose event is still among the words have their full sequence. The others are older: for them there is
/// the time, if it was recorded, and otherwise no order.
fn in_order(slot: &Slot, held: &HeldLock, since_ns: Option<u64>) -> (bool, u64) {
    let sequence = slot.count.checked_sub(1).and_then(|last| held.sequence.latest_until(last));
    match sequence.filter(|&sequence| sequence >= slot.words_from) {
        Some(sequence) => (true, sequence),
        None => (false, since_ns.unwrap_or(0)),
    }
}

/// The last moment that a ring knows of, ns since boot.
fn last_time(threads: &[ThreadLocks], slots: &[Slot]) -> Option<u64> {
    let steps = threads.iter().flat_map(|thread| thread.steps.iter().filter_map(|step| step.time_ns));
    let entries = threads.iter().flat_map(|thread| {
        let holds = thread.holds.iter().filter_map(|hold| hold.since_ns);
        holds.chain(thread.wait.and_then(|wait| wait.since_ns))
    });
    let owners = slots.iter().map(|slot| slot.claimed_boottime_ns.max(slot.exited_boottime_ns));
    steps.chain(entries).chain(owners).max().filter(|&time| time > 0)
}
