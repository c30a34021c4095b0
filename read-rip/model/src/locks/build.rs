//! Builds a [`LockModel`] from a snapshot's held-lock tables and events.
//!
//! It does not interpret histories: `replay` does. The tables say which thread holds which lock now. The events say
//! how that state arose, as far as they are known. If a table and the events disagree, because one of them was read
//! later, the table is right about the present.

use std::collections::HashSet;

use read_rip_evidence::runtimes::Runtime;
use read_rip_ring::events;
use read_rip_ring::{
    Header, HeldLock, HeldState, Incident, LockType, OperandType, RestState, SequenceBits, SiteKind, Slot,
    Snapshot, Words, call_location,
};

use super::between::Before;
use super::entry::{Entry, Steadiness, is_wait};
use super::ledger::Ledger;
use super::marks::{Mark, Marks};
use super::merge;
use super::peer::find_peers;
use super::replay::{Scratch, replay};
use super::task_facts::{find_pollers, main_wait, main_wait_for, task_facts};
use super::{
    ConditionCalls, Hold, HoldState, Join, Lock, LockIncident, LockModel, OfFutures, Peer, Rest, StepKind,
    TaskFacts, ThreadId, ThreadLocks, Wait,
};
use crate::locations::{Horizon, Limits, LocationId, Locations};
use crate::threads::{self, Thread, ThreadState};

#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub snapshot: &'a Snapshot,
    /// An earlier reading of the same ring, if its process is alive.
    pub earlier: Option<&'a Snapshot>,
    /// The time between the two readings, ns.
    pub window_ns: Option<u64>,
    /// Whether the process is dead, so that nothing can change any more.
    pub is_final: bool,
    /// The time of the reading, or of the process's end, ns since boot.
    pub now_ns: Option<u64>,
    /// If `now_ns` is not known: a moment at which the process was already dead, ns since boot.
    pub latest_end_ns: Option<u64>,
    /// If `now_ns` is not known: a moment at which the process still lived, ns since boot.
    pub alive_ns: Option<u64>,
    /// The threads of the process; empty if it has ended or they are not known.
    pub living: &'a HashSet<u32>,
    /// Forked processes that have ended while the ring is still in use.
    pub ended: &'a HashSet<u32>,
    /// Whether the model gets all steps of all threads. Otherwise it gets one step of each thread that made progress,
    /// or may have made it: an earlier reading needs no more.
    pub wants_steps: bool,
    /// The time of which uses, waits and holds count in the record of a lock.
    pub limits: Limits,
}

/// What becomes of the words of a snapshot while a model is built.
#[derive(Debug)]
enum History {
    /// They are in the snapshot and stay there.
    Stays,
    /// They were taken out of the snapshot. Those of a slot are dropped as soon as they have become steps, so that the
    /// memory is not needed for both.
    Taken(Vec<Words>),
}

/// Builds the model. Its locations are those of `locations`, which may be of a later reading of the same ring.
pub fn build(input: &Input<'_>, locations: &mut Locations<'_>) -> LockModel {
    build_of(input, History::Stays, locations)
}

/// Like [`build`], with the words that were taken out of the snapshot.
pub fn build_of_words(input: &Input<'_>, words: Vec<Words>, locations: &mut Locations<'_>) -> LockModel {
    build_of(input, History::Taken(words), locations)
}

fn build_of(input: &Input<'_>, mut history: History, locations: &mut Locations<'_>) -> LockModel {
    let snapshot = input.snapshot;
    let header = snapshot.header.as_ref();
    let horizon = Horizon { now_ns: input.now_ns, end_ns: input.now_ns.or(input.latest_end_ns) };
    let mut ledger = Ledger::new(snapshot, horizon, input.limits);
    let mut marks = Marks::new(locations);
    let (mut scratch, mut pending_joins) = (Scratch::default(), Vec::new());
    let threads = threads::threads(snapshot, input.living, input.ended);
    let mut threads: Vec<ThreadLocks> = threads
        .iter()
        .enumerate()
        .map(|(id, thread)| {
            let earlier = input.earlier.and_then(|earlier| same_owner(earlier, thread.slot));
            let before = input.earlier.map(|snapshot| Before::of(snapshot, earlier, thread.slot));
            let steadiness = Steadiness { is_final: input.is_final, earlier, before };
            let with_words = match &mut history {
                History::Stays => None,
                History::Taken(words) => Some(Slot {
                    words: words.get_mut(thread.position).map(std::mem::take).unwrap_or_default(),
                    ..thread.slot.clone()
                }),
            };
            let thread = Thread { slot: with_words.as_ref().unwrap_or(thread.slot), ..*thread };
            let pending_joins = &mut pending_joins;
            let mut own =
                one_thread(id, &thread, &steadiness, &mut marks, &mut ledger, &mut scratch, pending_joins);
            if !input.wants_steps {
                own.steps = own.steps.iter().filter(|step| step.kind.may_be_progress()).take(1).collect();
            }
            own
        })
        .collect();
    find_pollers(&mut threads, &snapshot.slots);
    find_peers(&mut threads);
    let refused = header.map_or(0, Header::threads_refused);
    let pid = header.map_or(0, |header| header.pid);
    let unrecorded = (!input.living.is_empty()).then(|| {
        let own = threads.iter().filter(|thread| thread.pid == pid && thread.state == ThreadState::Present);
        let recorded: HashSet<u32> = own.map(|thread| thread.tid).collect();
        input.living.difference(&recorded).count()
    });
    let overflowed = threads.iter().filter(|thread| thread.overflowed > 0);
    let mut model = LockModel {
        pid,
        full: overflowed.map(|thread| thread.pid).collect(),
        is_end_unknown: input.now_ns.is_none(),
        unrecorded,
        is_final: input.is_final,
        now_ns: input.now_ns.or_else(|| last_time(&threads, &snapshot.slots).max(input.alive_ns)),
        window_ns: input.window_ns.filter(|_| input.earlier.is_some()),
        // A thread without a slot records nothing.
        has_lost_between: input.earlier.is_some() && (ledger.has_lost_between || refused > 0),
        has_progress_sites: snapshot.sites.iter().any(|site| site.kind == SiteKind::Progress),
        held_overflows: header.map_or(0, |header| header.held_overflows),
        slots_reused: header.map_or(0, |header| header.slots_reused),
        incidents: incidents(snapshot, &threads, &mut marks, &mut ledger),
        ended: input.ended.clone(),
        runtime: Runtime::of_modules(&snapshot.modules),
        releases_unmatched: header.map_or(0, |header| header.releases_unmatched),
        threads_refused: refused,
        tasks: threads.iter().filter(|thread| thread.task.is_some()).count(),
        tasks_refused: header.map_or(0, |header| header.tasks_refused),
        locks: ledger.close(snapshot, locations),
        threads,
        ..LockModel::default()
    };
    pending_joins.into_iter().for_each(|join| join.enter(&mut model));
    merge::merge(&mut model);
    model
}

/// A task that waits for one lock in several futures is one of the lock's waiters: with the wait that was polled last.
fn count_once(facts: &TaskFacts, id: ThreadId, ledger: &mut Ledger<'_>) {
    for wait in facts.waits.iter().filter(|wait| wait.is_for_lock) {
        let waiters = &mut ledger.locks[wait.wait.lock].waiters;
        // A thread's waits are the last ones of the list.
        let own = waiters.iter().rposition(|waiter| waiter.thread != id).map_or(0, |other| other + 1);
        if waiters.len() > own + 1 {
            waiters.truncate(own);
            waiters.extend(main_wait_for(facts, Some(wait.wait.lock)));
        }
    }
}

/// The slot in an earlier reading, if it had the same owner.
fn same_owner<'a>(earlier: &'a Snapshot, slot: &Slot) -> Option<&'a Slot> {
    // A snapshot lists slots by index.
    let position = earlier.slots.binary_search_by_key(&slot.index, |slot| slot.index).ok()?;
    let before = &earlier.slots[position];
    let owner = |slot: &Slot| (slot.generation, slot.pid, slot.tid);
    (owner(before) == owner(slot)).then_some(before)
}

fn one_thread<'a>(
    id: ThreadId,
    thread: &Thread<'a>,
    steadiness: &Steadiness<'_>,
    marks: &mut Marks<'_, '_>,
    ledger: &mut Ledger<'_>,
    scratch: &mut Scratch,
    pending_joins: &mut Vec<PendingJoin>,
) -> ThreadLocks {
    let slot = thread.slot;
    let mut own = ThreadLocks {
        slot: Some(thread.position),
        state: thread.state,
        claimed_ns: slot.claimed_boottime_ns,
        is_first: slot.index == 0 && slot.generation == 1,
        first_slot_count: slot.first_slot_count,
        slot_index: slot.index,
        first_sequence: slot.first_sequence,
        creator: slot.creator,
        joiner: slot.joiner,
        exited_ns: Some(slot.exited_boottime_ns).filter(|_| thread.state == ThreadState::Exited),
        overflowed: slot.held_overflowed,
        in_flux: slot.held_in_flux,
        advanced: steadiness.earlier.map(|earlier| slot.count.saturating_sub(earlier.count)),
        ..ThreadLocks::unrecorded(slot.pid, slot.tid, slot.name.clone())
    };
    let last_wait = LastWait::of(slot, marks);
    let entry = |held: &'a HeldLock| {
        let mark = marks.of_entry(slot.pid, held);
        // The lock may be called by this place, so the place is that of the entry.
        let lock = ledger.lock(slot.pid, held.lock, &mark);
        let mark = at_last_wait(mark, held, last_wait.as_ref());
        let since_ns = held.since_ticks.and_then(|ticks| ledger.time_ns(slot, ticks));
        let has_place_of_handed_over = ledger.is_place_of_handed_over(held.pc);
        let is_steady = steadiness.is_steady(held);
        let is_inherited = is_inherited(slot, held);
        let is_being_polled = held.is_of_future && slot.task.as_ref().is_some_and(|task| task.is_polled());
        Entry {
            held,
            mark,
            lock,
            since_ns,
            has_place_of_handed_over,
            is_steady,
            is_inherited,
            is_being_polled,
            is_unrecorded: is_unrecorded(slot, held),
        }
    };
    let (mut joins, of_locks): (Vec<&HeldLock>, Vec<&HeldLock>) =
        slot.held.iter().partition(|held| held.state == HeldState::ThreadWait);
    joins.retain(|held| !is_unrecorded(slot, held));
    let mut entries: Vec<Entry<'_>> = of_locks.into_iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.sort_key(slot));
    for entry in &entries {
        add_entry(entry, id, &mut own, ledger);
    }
    // If a signal handler joins a thread too, the later entry is its. If a wrapper and the interposer record one join,
    // the first entry is the wrapper's, which knows the caller.
    // In a task: a future that was polled last.
    let was_polled = |held: &&&HeldLock| {
        let task = slot.task.as_ref().filter(|_| held.is_of_future);
        task.and_then(|task| task.is_entry_polled(usize::from(held.index))) != Some(false)
    };
    let last = joins.iter().rfind(was_polled);
    if let Some(held) = last.and_then(|last| joins.iter().find(|held| held.lock == last.lock)) {
        let is_being_polled = held.is_of_future && slot.task.as_ref().is_some_and(|task| task.is_polled());
        let mark = at_last_wait(marks.of_entry(slot.pid, held), held, last_wait.as_ref());
        pending_joins.push(PendingJoin {
            pid: slot.pid,
            joined_tid: held.lock as u32,
            join: Join {
                thread: id,
                joined: id,
                location: mark.location,
                since_ns: held.since_ticks.and_then(|ticks| ledger.time_ns(slot, ticks)),
                is_timed: held.is_try || mark.flags.is_try(),
                is_steady: steadiness.is_steady(held) && !is_being_polled,
                is_of_future: held.is_of_future,
            },
        });
    }
    if let Some(facts) =
        task_facts(slot, id, &entries, &joins, steadiness, marks, |ticks| ledger.time_ns(slot, ticks))
    {
        own.wait = main_wait(&facts).or(own.wait);
        count_once(&facts, id, ledger);
        own.task = Some(Box::new(facts));
    }
    own.rest = slot.rest.map(|rest| {
        let RestState { is_asleep, awake_ticks, asleep_ticks, since_ticks } = rest;
        let since_ns = since_ticks.and_then(|ticks| ledger.time_ns(slot, ticks));
        let [awake_ns, asleep_ns] = [awake_ticks, asleep_ticks].map(|ticks| ledger.length_ns(ticks));
        Box::new(Rest { is_asleep, since_ns, awake_ns, asleep_ns })
    });
    ledger.words_for_each = steadiness.before.as_ref().map_or(1.0, |before| before.words_for_each(slot));
    let history = replay(slot, steadiness.before.as_ref(), id, marks, ledger, scratch);
    ledger.has_lost_between |= steadiness.before.is_some_and(|before| before.has_lost(history.known_from));
    own.last = history.last;
    own.overwritten = slot.overwritten().saturating_add(history.discarded_words);
    own.steps = history.steps;
    // The events of such a future's entries may be overwritten.
    let mut of_entries = OfFutures::default();
    for held in slot.held.iter().filter(|held| is_unrecorded(slot, held)) {
        of_entries.add(!held.state.is_blocked(), marks.of_entry(slot.pid, held).location);
    }
    let (of_history, of_entries) = (history.of_futures, of_entries);
    own.of_futures = OfFutures {
        events: of_history.events.max(of_entries.events),
        at_locks: of_history.at_locks.max(of_entries.at_locks),
        last: of_history.last.or(of_entries.last),
    };
    own.condition = history.condition.filter(|_| own.condition_wait.is_some());
    if !history.signals.is_empty() || !history.ended.is_empty() {
        let calls = ConditionCalls { signals: history.signals, ended: history.ended };
        own.condition_calls = Some(Box::new(calls));
    }
    own.peer = history.peer.and_then(|(sequence, peer)| {
        let is_of_wait = |entry: &&Entry<'_>| entry.held.sequence == SequenceBits::of(sequence);
        let wait = entries.iter().find(is_of_wait)?;
        let is_message = wait.held.state == HeldState::MessageWait && own.semaphore_wait == Some(wait.lock);
        is_message.then(|| Box::new(Peer::of(peer)))
    });
    own.holds.shrink_to_fit();
    // The entry of an interposed wait on a condition variable does not say that it has a time limit. Its event does.
    if let Some(sleep) = &mut own.sleep {
        let last = own.steps.iter().last();
        sleep.is_timed |= last.is_some_and(|last| last.kind == StepKind::ConditionWait && last.is_try);
    }
    own
}

/// Whether an entry is of a future that belongs to no recorded task.
fn is_unrecorded(slot: &Slot, held: &HeldLock) -> bool {
    held.is_of_future && slot.task.is_none()
}

/// Whether a thread has an entry since its process was forked. Such an entry has the sequence of the slot's first word.
/// An event's entry has a later one: that of its PC word, and each event of a lock has an operand before that. After as
/// many words as a sequence tells apart it is not known, and the answer is no.
fn is_inherited(slot: &Slot, held: &HeldLock) -> bool {
    slot.count.saturating_sub(slot.first_sequence) < SequenceBits::PERIOD
        && held.sequence == SequenceBits::of(slot.first_sequence)
}

/// The last event of a thread, if it is a wait.
struct LastWait {
    /// The lock, or what else it waits for.
    lock: u64,
    /// The PC of the event's site.
    site: u64,
    /// The return address of the call, if an interposer recorded it.
    call: u64,
    /// The location of the call, if a wrapper recorded it.
    place: Option<u64>,
    location: LocationId,
}

impl LastWait {
    fn of(slot: &Slot, marks: &mut Marks<'_, '_>) -> Option<LastWait> {
        if !slot.held.iter().any(|held| is_wait(held.state)) {
            return None;
        }
        let event = events::last_event(slot, |pc| {
            let id = marks.find(slot.pid, pc);
            marks.kind(id).operand_words
        })?;
        let lock = marks.locations.lock_of(slot, &event)?;
        let id = marks.find(slot.pid, event.pc);
        let location = marks.of_event(slot, &event, id).location;
        let known = marks.locations.get(location);
        let (call, has_callers) = (known.pc, !known.outer.is_empty());
        // An entry knows the location as well, if there are no callers.
        let place = marks.locations.operand(slot, &event, OperandType::Location).filter(|_| has_callers);
        Some(LastWait { lock, site: event.pc, call, place, location })
    }

    /// Whether it is the wait of this entry.
    fn is_of(&self, held: &HeldLock) -> bool {
        let place = match held.call {
            Some(_) => self.place,
            None if held.is_caller => Some(self.call),
            None => Some(self.site),
        };
        let pc = if held.call.is_some() { call_location(held.pc) } else { held.pc };
        is_wait(held.state) && (held.lock, Some(pc)) == (self.lock, place)
    }
}

/// The mark of an entry. The event of a wait says more of the place than the entry.
fn at_last_wait(mark: Mark, held: &HeldLock, last_wait: Option<&LastWait>) -> Mark {
    match last_wait.filter(|wait| wait.is_of(held)) {
        Some(wait) => Mark { location: wait.location, ..mark },
        None => mark,
    }
}

/// A wait for the end of a thread, whose id is known and not yet its place in the model.
#[derive(Debug)]
struct PendingJoin {
    pid: u32,
    joined_tid: u32,
    join: Join,
}

impl PendingJoin {
    /// Finds the joined thread. One that recorded nothing becomes part of the model.
    fn enter(mut self, model: &mut LockModel) {
        let threads = model.threads.iter().enumerate();
        let is_joined = |thread: &ThreadLocks| (thread.pid, thread.tid) == (self.pid, self.joined_tid);
        // The id of a thread that has ended may be in use again: the last one is meant.
        let found =
            threads.filter(|(_, thread)| is_joined(thread)).max_by_key(|(_, thread)| thread.claimed_ns);
        self.join.joined = match found {
            Some((joined, _)) => joined,
            None => {
                model.threads.push(ThreadLocks::unrecorded(self.pid, self.joined_tid, String::new()));
                if self.pid == model.pid {
                    model.unrecorded = model.unrecorded.map(|unrecorded| unrecorded.saturating_sub(1));
                }
                model.threads.len() - 1
            }
        };
        model.threads[self.join.thread].join = Some(Box::new(self.join));
    }
}

/// The incidents of a ring, with their threads, locks and locations.
fn incidents(
    snapshot: &Snapshot,
    threads: &[ThreadLocks],
    marks: &mut Marks<'_, '_>,
    ledger: &mut Ledger<'_>,
) -> Vec<LockIncident> {
    let all = snapshot.header.as_ref().map_or(&[][..], |header| &header.incidents);
    let known = |incident: &Incident| {
        let claimed = |id: &ThreadId| threads[*id].claimed_ns;
        let is_same = |id: &ThreadId| {
            let thread = &threads[*id];
            (thread.pid, thread.tid) == (incident.pid, incident.tid) && claimed(id) <= incident.boottime_ns
        };
        // The id of a thread that has ended may be in use again.
        (0..threads.len()).filter(is_same).max_by_key(claimed)
    };
    let one = |incident: &Incident| LockIncident {
        kind: incident.kind,
        count: incident.count,
        thread: known(incident),
        tid: incident.tid,
        lock: ledger.lock_at(incident.pid, incident.lock),
        location: marks.locations.find_call(incident.pid, incident.caller),
        at_ns: (incident.boottime_ns > 0).then_some(incident.boottime_ns),
    };
    all.iter().map(one).collect()
}

/// Adds an entry of the table of thread `id` to the thread and to the lock.
fn add_entry(entry: &Entry<'_>, id: ThreadId, own: &mut ThreadLocks, ledger: &mut Ledger<'_>) {
    let lock = &mut ledger.locks[entry.lock];
    lock.nature.is_process_shared |= entry.held.is_process_shared;
    if entry.is_unrecorded && add_unrecorded(entry, id, lock) {
        return;
    }
    match entry.held.state {
        HeldState::Acquiring => lock.possible_holders.push(entry.hold(id, HoldState::Acquiring)),
        HeldState::Releasing => lock.possible_holders.push(entry.hold(id, HoldState::Releasing)),
        HeldState::Destroyed => lock.possible_holders.push(entry.hold(id, HoldState::Destroyed)),
        HeldState::Held => {
            let hold = entry.hold(id, HoldState::Held);
            if !hold.is_shared {
                // After an exclusive acquisition, an older entry for the same lock is stale: another thread
                // released the lock, and did not find the entry.
                let is_stale = |old: &Hold| old.lock == hold.lock && !old.is_shared;
                own.holds.retain(|old| !is_stale(old));
                // Threads are added in order, so those of this thread are the last ones: there can be thousands.
                let others = lock.holders.partition_point(|old| old.thread < id);
                let own_entries = lock.holders.split_off(others);
                lock.holders.extend(own_entries.into_iter().filter(|old| !is_stale(old)));
            }
            lock.holders.push(hold);
            own.holds.push(hold);
            if ledger.limits.overlap(hold.since_ns.or(Some(own.claimed_ns)), None) {
                ledger.owned(hold.lock, id);
            }
        }
        HeldState::ConditionWait => {
            lock.condition_waiters.push(entry.wait(id));
            own.condition_wait = Some(entry.lock);
            // A time limit ends the wait for the signal, not that for the lock.
            own.relock = Some(Box::new(Wait { is_relock: true, is_timed: false, ..entry.wait(id) }));
            own.sleep = Some(Box::new(entry.wait(id)));
        }
        // A thread is no lock: see `PendingJoin`.
        HeldState::ThreadWait => {}
        HeldState::SemaphoreWait | HeldState::BarrierWait | HeldState::MessageWait => {
            lock.nature.lock_type = type_of_awaited(entry.held, own.tid);
            if lock.nature.lock_type == LockType::Barrier {
                lock.threads_of_round =
                    lock.threads_of_round.max(Some(entry.held.recursion).filter(|&of| of > 0));
            }
            lock.semaphore_waiters.push(entry.wait(id));
            own.semaphore_wait = Some(entry.lock);
            own.sleep = Some(Box::new(entry.wait(id)));
        }
        HeldState::Waiting => {
            let wait = entry.wait(id);
            lock.waiters.push(wait);
            own.wait = Some(wait);
        }
    }
}

/// Adds an entry of a future that belongs to no recorded task to the lock alone: the thread `id` polled the future, and
/// whatever the thread does next, the future does something else. Returns whether it did: the thread itself may be in
/// the middle of a release.
fn add_unrecorded(entry: &Entry<'_>, id: ThreadId, lock: &mut Lock) -> bool {
    match entry.held.state {
        HeldState::Held => lock.possible_holders.push(entry.hold(id, HoldState::OfFuture)),
        HeldState::Waiting => lock.futures_waiting.push(entry.wait(id)),
        state if state.is_blocked() => {
            lock.nature.lock_type = type_of_awaited(entry.held, 0);
            lock.futures_waiting.push(entry.wait(id));
        }
        // A guard outlives no lock.
        HeldState::Destroyed => {}
        _ => return false,
    }
    true
}

/// What an entry waits for that nobody holds, in the table of a thread with this id.
fn type_of_awaited(held: &HeldLock, tid: u32) -> LockType {
    match held.state {
        HeldState::BarrierWait => LockType::Barrier,
        // No object has an address as low as the id of a thread, and none that of a task.
        HeldState::MessageWait if held.lock == u64::from(tid) => LockType::Wake,
        HeldState::MessageWait => LockType::Message,
        // A future waits for a semaphore's units as for a lock.
        _ if held.is_of_future => LockType::Notification,
        _ => LockType::Semaphore,
    }
}

/// The last time in a ring, ns since boot.
fn last_time(threads: &[ThreadLocks], slots: &[Slot]) -> Option<u64> {
    let steps = threads.iter().flat_map(|thread| thread.steps.iter().filter_map(|step| step.time_ns));
    let entries = threads.iter().flat_map(|thread| {
        let holds = thread.holds.iter().filter_map(|hold| hold.since_ns);
        let waits = [thread.wait.as_ref(), thread.sleep.as_deref()].into_iter().flatten();
        holds.chain(waits.filter_map(|wait| wait.since_ns))
    });
    let tasks = threads.iter().filter_map(|thread| thread.task.as_deref());
    let turns = tasks.flat_map(|task| task.since_ns.into_iter().chain(task.woken_ns));
    let rests = threads.iter().filter_map(|thread| thread.rest.as_ref()?.since_ns);
    let owners = slots.iter().map(|slot| slot.claimed_boottime_ns.max(slot.exited_boottime_ns));
    steps.chain(entries).chain(turns).chain(rests).chain(owners).max().filter(|&time| time > 0)
}
