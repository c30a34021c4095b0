//! What the slot of a task says, as values: its turn, its futures, what each of them waits for and holds, and who polls
//! the task.

use foldhash::HashMap;
use read_rip_ring::{HeldLock, HeldState, Slot, TaskKind, TaskState, task_number};

use super::entry::{Entry, Steadiness, is_wait};
use super::marks::Marks;
use super::{
    HoldState, LockId, TaskFacts, TaskFuture, TaskHold, TaskJoin, TaskWait, ThreadId, ThreadLocks, Wait,
};

/// What is known of the task of a slot; `None` if it is the slot of a thread. `entries` are those of its table, but for
/// `joins`.
pub(super) fn task_facts(
    slot: &Slot,
    id: ThreadId,
    entries: &[Entry<'_>],
    joins: &[&HeldLock],
    steadiness: &Steadiness<'_>,
    marks: &mut Marks<'_, '_>,
    time_ns: impl Fn(u64) -> Option<u64>,
) -> Option<TaskFacts> {
    let state = slot.task.as_deref()?;
    let before = steadiness.earlier.and_then(|earlier| earlier.task.as_deref());
    let mut location = |address| marks.locations.find_location(slot.pid, address);
    let mut facts = TaskFacts {
        number: task_number(slot.tid).unwrap_or(0),
        kind: state.kind,
        is_local: state.is_local,
        is_of_kind: state.is_of_kind,
        // A poll that has left its worker keeps the executor from nothing.
        runtime: state.runtime.filter(|_| !(state.is_off_worker && state.kind == TaskKind::Async)),
        made_at: state.location.map(&mut location),
        is_polled: state.is_polled(),
        polls: state.polls(),
        is_off_worker: state.is_off_worker,
        since_ns: state.since_ticks.and_then(&time_ns),
        is_since_exact: state.is_since_exact,
        counts_wakes: state.counts_wakes,
        wakes: state.wakes,
        woken_ns: state.woken_ticks.and_then(&time_ns),
        is_steady: !state.is_in_flux
            && (steadiness.is_final || before.is_some_and(|before| before.turn == state.turn)),
        wakers: state.wakers,
        left_out: state.left_out,
        ..TaskFacts::default()
    };
    for held in joins.iter().filter(|held| held.is_of_future) {
        let index = usize::from(held.index);
        let of = state.entries.get(index).copied().unwrap_or_default();
        let is_polled = state.is_entry_polled(index);
        facts.joins.push(TaskJoin { is_polled, is_direct: of.is_direct });
        if is_polled != Some(false) {
            facts.joins_in = of.future;
        }
    }
    for entry in entries {
        add_entry(&mut facts, state, entry, id);
    }
    let futures = state.futures.iter().map(|future| TaskFuture {
        index: future.index,
        location: location(future.location),
        outer: future.outer,
        is_polled: state.is_future_polled(future.index),
    });
    facts.futures = futures.collect();
    Some(facts)
}

/// Adds an entry of the table of task `id` to what its futures wait for and hold.
fn add_entry(facts: &mut TaskFacts, state: &TaskState, entry: &Entry<'_>, id: ThreadId) {
    let index = usize::from(entry.held.index);
    // An entry that code on a thread has made still has the turn of a former entry.
    let of = state.entries.get(index).filter(|_| entry.held.is_of_future).copied().unwrap_or_default();
    if is_wait(entry.held.state) && entry.held.state != HeldState::ConditionWait {
        let wait = entry.wait(id);
        facts.waits.push(TaskWait {
            wait: Wait { is_steady: wait.is_steady && facts.is_steady, ..wait },
            is_polled: state.is_entry_polled(index).filter(|_| entry.held.is_of_future),
            is_direct: of.is_direct,
            is_for_lock: entry.held.state == HeldState::Waiting,
            future: of.future,
            entry: entry.held.index,
        });
    } else if entry.held.state == HeldState::Held {
        let hold = entry.hold(id, HoldState::Held);
        facts.holds.push(TaskHold { lock: entry.lock, hold, future: of.future });
    }
}

/// The wait for a lock that stands for a task: one of a future that was polled last, if there is any.
pub(super) fn main_wait(facts: &TaskFacts) -> Option<Wait> {
    main_wait_for(facts, None)
}

/// The same of its waits for one lock, if one is given.
pub(super) fn main_wait_for(facts: &TaskFacts, lock: Option<LockId>) -> Option<Wait> {
    let is_wanted = |wait: &&TaskWait| wait.is_for_lock && lock.is_none_or(|lock| wait.wait.lock == lock);
    let of_locks = || facts.waits.iter().filter(is_wanted);
    let polled = of_locks().rfind(|wait| wait.is_polled != Some(false));
    polled.or(of_locks().next_back()).map(|wait| wait.wait)
}

/// Finds who polls each task: the slots that they name become threads and tasks of the model.
pub(super) fn find_pollers(threads: &mut [ThreadLocks], slots: &[Slot]) {
    if threads.iter().all(|thread| thread.task.is_none()) {
        return;
    }
    let by_slot: HashMap<u64, ThreadId> =
        threads.iter().enumerate().map(|(id, thread)| (thread.slot_index, id)).collect();
    let poller = |thread: &ThreadLocks| {
        let state = slots.get(thread.slot?)?.task.as_ref()?;
        by_slot.get(&state.poller?).copied()
    };
    let pollers: Vec<Option<ThreadId>> = threads.iter().map(poller).collect();
    for id in 0..threads.len() {
        if threads[id].task.is_none() {
            continue;
        }
        let outer = pollers[id].filter(|&outer| threads[outer].task.is_some());
        let mut thread = pollers[id];
        // Damaged slots may name one another.
        for _ in 0..=MAX_DEPTH {
            match thread {
                Some(at) if threads[at].task.is_some() => thread = pollers[at],
                _ => break,
            }
        }
        let thread = thread.filter(|&at| threads[at].task.is_none());
        if let Some(task) = &mut threads[id].task {
            (task.outer, task.thread) = (outer, thread);
        }
    }
}

/// Tasks within tasks are followed so far.
const MAX_DEPTH: usize = 64;
