//! Slots change owners here: threads and tasks claim and release them, and the slots of dead threads are reclaimed.
//!
//! It works on the ring alone and knows no thread-local state (`process::thread` does). Everything is safe in a signal
//! handler: it uses atomics and a few system calls.
//!
//! # Invariants
//!
//! * One owner at a time writes a slot's words. An exchange hands out each fresh index once. A used slot passes through
//!   the exit queue, which gives it to one thread.
//! * Memory is reserved before the index is handed out, so an owner's plain stores cannot fault.
//! * An exited thread's slot is reused only when no fresh one is left, the oldest exit first. Of the first process that
//!   was found dead, some slots are never reused.
//! * Tasks' slots have a queue of their own. They are used again as soon as [`ENDED_TASKS`] others have ended.
//! * The control block decides. The slot's header in the file is a copy for the reader.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::fence;

use librip_format::{
    RestPart, SLOT_CLAIMING, SLOT_EXITED, SLOT_FLAG_NAMED, SLOT_KIND_TASK, SLOT_KIND_THREAD, SLOT_LIVE,
    SlotHeader, TASK_ID, TaskPart,
};

use super::control::SlotOwner;
use super::{Ring, Table};
use crate::sys::{self, Unreserved};

/// A thread that claims a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimant {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) pid_namespace: u64,
    /// Where the thread that created it was then, if that is known.
    pub(crate) creator: Option<Position>,
}

/// How far a thread had come.
#[allow(unreachable_pub, reason = "the feature `interpose` exports it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The index of its slot.
    pub index: u64,
    /// The slot's count.
    pub count: u64,
}

/// Why a thread gets no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// All slots have owners.
    Full,
    /// The kernel has no memory for another slot, or the file is damaged.
    Memory,
    /// The kernel refuses system calls.
    Filter,
}

/// While the ring is full, threads look for dead owners at most once in this time.
const RECLAIM_INTERVAL_NS: u64 = 1_000_000_000;

/// The first process that died without giving up its slots keeps at most one part of all slots in this many. So
/// children that crash again and again do not overwrite what the first crash left.
const FIRST_DEAD_PART: u64 = 4;

/// So many tasks that have ended keep their slots, the last ones. If there are more, the slot of the one that ended
/// first is used again, and no new one: a program may have millions of short tasks.
const ENDED_TASKS: u64 = 1024;

/// One part of all slots in this many is for threads alone.
const THREADS_PART: u64 = 8;

/// A task that gets a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewTask {
    pub(crate) pid: u32,
    pub(crate) pid_namespace: u64,
    /// How far the thread or task that makes it has come.
    pub(crate) creator: Option<Position>,
    /// [`TaskPart::location`].
    pub(crate) location: u64,
    /// [`TaskPart::origin`].
    pub(crate) origin: u64,
    /// The present time of `CLOCK_BOOTTIME`.
    pub(crate) now_ns: u64,
}

/// Gives a task a slot. Returns the index of the slot and the number of the task. The header counts it if there is no
/// slot.
pub(crate) fn claim_task(ring: &Ring, task: &NewTask) -> Option<(u64, u32)> {
    // ORDERING: acquire, as in `claim`.
    let is_damaged = ring.is_damaged.load(Acquire);
    let index = if is_damaged { None } else { task_slot(ring) };
    match (index, index.and_then(|index| ring.task(index))) {
        (Some(index), Some(part)) => Some((index, init_task(ring, index, part, task))),
        _ => {
            if ring.has_header() {
                // ORDERING: relaxed, a statistic.
                ring.header().tasks_refused.fetch_add(1, Relaxed);
            }
            None
        }
    }
}

fn task_slot(ring: &Ring) -> Option<u64> {
    if !ring.geometry.slot.has_task {
        return None;
    }
    let queue = ring.control.task_queue();
    if queue.len() > ENDED_TASKS
        && let Some(index) = queue.take()
    {
        return Some(index);
    }
    fresh_for_task(ring).or_else(|| queue.take())
}

/// A slot that had no owner before, unless tasks have as many as they may have.
fn fresh_for_task(ring: &Ring) -> Option<u64> {
    let capacity = ring.geometry.capacity(Table::Slots);
    let most = capacity - capacity.div_ceil(THREADS_PART);
    let taken = &ring.control.counters().task_slots;
    // ORDERING: relaxed: a count, which hands nothing over.
    let index = (u64::from(taken.fetch_add(1, Relaxed)) < most).then(|| fresh(ring).ok().flatten()).flatten();
    if index.is_none() {
        taken.fetch_sub(1, Relaxed);
    }
    index
}

/// Ends a task whose slot has this index, at this time of `CLOCK_BOOTTIME`. Nobody writes to it any more.
pub(crate) fn release_task(ring: &Ring, index: u64, now_ns: u64) {
    end(ring, index, now_ns);
    ring.control.task_queue().put(index);
}

/// Gives the claimant a slot and returns its index.
pub(crate) fn claim(ring: &Ring, claimant: Claimant) -> Result<u64, Refusal> {
    // ORDERING: acquire, pairs with the release of the SIGBUS handler, which sets it before it replaces the mapping.
    if ring.is_damaged.load(Acquire) {
        return Err(Refusal::Memory);
    }
    let index = match fresh(ring) {
        Ok(Some(index)) => index,
        no_fresh => {
            let refusal = match no_fresh {
                Ok(_) => Refusal::Full,
                Err(Unreserved::NoMemory) => Refusal::Memory,
                Err(Unreserved::Refused) => Refusal::Filter,
            };
            let index = used(ring, claimant).ok_or(refusal)?;
            // ORDERING: relaxed, a statistic.
            ring.header().slots_reused.fetch_add(1, Relaxed);
            index
        }
    };
    init(ring, index, claimant);
    Ok(index)
}

/// Counts a refusal in the header, for the reader.
pub(crate) fn count_refusal(ring: &Ring, refusal: Refusal) {
    // Somebody may have truncated the file to nothing.
    if ring.has_header() {
        let counter = match refusal {
            Refusal::Full => &ring.header().threads_refused_full,
            Refusal::Memory => &ring.header().threads_refused_memory,
            Refusal::Filter => &ring.header().threads_refused_filter,
        };
        // ORDERING: relaxed, a statistic.
        counter.fetch_add(1, Relaxed);
    }
}

/// Ends the ownership of a slot whose owner will not write any more.
pub(crate) fn release(ring: &Ring, index: u64) {
    end(ring, index, sys::boottime_ns());
    ring.control.exit_queue().put(index);
}

fn end(ring: &Ring, index: u64, now_ns: u64) {
    let (slot, owner) = (ring.slot(index), &ring.control.owners()[index as usize]);
    // ORDERING: relaxed, ordered by the state's release below.
    slot.exited_boottime_ns.store(now_ns, Relaxed);
    // ORDERING: release, pairs with the reader's second look at the state. The next owner synchronises through the exit
    // queue.
    slot.state.store(SLOT_EXITED, Release);
    owner.end();
}

/// The owner of a slot has exited, and a thread that has come to `joiner` has joined it. If the slot has another owner
/// meanwhile, nothing happens.
pub(crate) fn joined(ring: &Ring, index: u64, is_generation: impl Fn(u32) -> bool, joiner: Position) {
    if index >= ring.geometry.capacity(Table::Slots) {
        return;
    }
    let life = ring.control.owners()[index as usize].life();
    if life.state != SLOT_EXITED || !is_generation(life.generation) {
        return;
    }
    let slot = ring.slot(index);
    slot.joiner_count.store(joiner.count, Relaxed);
    // ORDERING: release: a reader that sees the joiner sees its count. A thread that claims the slot at this moment may
    // be said to be joined while it lives, and the reader does not believe that.
    slot.joiner_slot.store(joiner.index as u32 + 1, Release);
}

/// How many owners a slot has had.
pub(crate) fn generation(ring: &Ring, index: u64) -> u32 {
    ring.control.owners()[index as usize].life().generation
}

/// Whether any thread has recorded anything.
pub(crate) fn has_events(ring: &Ring) -> bool {
    // A thread gets a history when it records an event in a channel. The slot does not count that event.
    // ORDERING: relaxed: an event that is recorded at this moment may be missed.
    ring.used(Table::Histories).load(Relaxed) > 0
        || handed_out_from(ring, 0).any(|(_, slot, _)| slot.count.load(Relaxed) > 0)
}

/// Writes the name that the program gives the owner; longer names are cut.
pub(crate) fn set_name(slot: &SlotHeader, name: &[u8]) {
    super::names::store(&slot.name, name);
    // ORDERING: relaxed: a reader that sees only one of the two shows a former name of the thread.
    slot.flags.store(SLOT_FLAG_NAMED, Relaxed);
}

/// Hands out an index that had no owner before; `None` if all were handed out.
pub(super) fn fresh(ring: &Ring) -> Result<Option<u64>, Unreserved> {
    let used = ring.used(Table::Slots);
    loop {
        // ORDERING: relaxed: the exchange decides which thread gets the index, and nobody has written to its slot.
        let next = used.load(Relaxed);
        if next >= ring.geometry.capacity(Table::Slots) {
            return Ok(None);
        }
        reserve_through(ring, next)?;
        // ORDERING: release, pairs with the acquire in `handed_out_from`: the slot's memory is reserved.
        if used.compare_exchange(next, next + 1, Release, Relaxed).is_ok() {
            ring.publish_used(Table::Slots, next + 1);
            return Ok(Some(next));
        }
    }
}

/// Makes slot `index` safe to write to, with all slots before it and those that share its page.
fn reserve_through(ring: &Ring, index: u64) -> Result<(), Unreserved> {
    let reserved = &ring.control.counters().slots_reserved;
    // ORDERING: relaxed on both accesses: reserving again does no harm. A reserved page is in the file, so a store of
    // any thread or process finds it, whatever its mapping looked like before.
    let from = reserved.load(Relaxed);
    if index < from {
        return Ok(());
    }
    let slots = ring.geometry.extent(Table::Slots);
    let slots_per_page = (ring.geometry.page_len_bytes as u64 / slots.entry_len_bytes).max(1);
    let to = (index + 1).next_multiple_of(slots_per_page).min(slots.capacity);
    ring.reserve(Table::Slots, from, to)?;
    reserved.fetch_max(to, Relaxed);
    Ok(())
}

/// Takes a slot that was released, or else one whose owner has died without releasing it.
fn used(ring: &Ring, claimant: Claimant) -> Option<u64> {
    let queue = ring.control.exit_queue();
    queue.take().or_else(|| {
        reclaim(ring, claimant);
        queue.take()
    })
}

/// The slots that were handed out so far, from index `first` on and then from the start: index, slot and owner.
pub(crate) fn handed_out_from(
    ring: &Ring,
    first: u64,
) -> impl Iterator<Item = (u64, &SlotHeader, &SlotOwner)> {
    // ORDERING: acquire, pairs with the release in `fresh`.
    let end = ring.used(Table::Slots).load(Acquire);
    let first = first.min(end);
    let owner = |index: u64| &ring.control.owners()[index as usize];
    (first..end).chain(0..first).map(move |index| (index, ring.slot(index), owner(index)))
}

/// Puts slots of dead threads into the exit queue: threads of forked children that were killed, and threads whose exit
/// went unnoticed. Only owners in the claimant's PID namespace are examined, because other ids mean nothing here.
fn reclaim(ring: &Ring, claimant: Claimant) {
    if claimant.pid_namespace == 0 {
        return;
    }
    let after = &ring.control.counters().reclaim_after_ns;
    let now = sys::boottime_ns();
    // ORDERING: relaxed: the exchange elects one thread to do the work, and hands nothing over.
    let due = after.load(Relaxed);
    if now < due || after.compare_exchange(due, now + RECLAIM_INTERVAL_NS, Relaxed, Relaxed).is_err() {
        return;
    }
    let (mut kept, kept_max) = (0, ring.geometry.capacity(Table::Slots) / FIRST_DEAD_PART);
    for (index, _, owner) in handed_out_from(ring, 0) {
        let life = owner.life();
        // ORDERING: relaxed: `end_of_dead` fails if these are the ids of a later owner.
        if life.state != SLOT_LIVE || owner.pid_namespace.load(Relaxed) != claimant.pid_namespace {
            continue;
        }
        let pid = owner.pid.load(Relaxed);
        if !sys::thread_is_gone(pid, owner.tid.load(Relaxed)) {
            continue;
        }
        if kept < kept_max && is_of_first_dead(ring, pid) {
            kept += 1;
        } else if owner.end_of_dead(life) {
            // The slot of a task goes to a thread then: the ring is full.
            release(ring, index);
        }
    }
}

/// Whether a process is dead, and the first one that was found dead with slots.
fn is_of_first_dead(ring: &Ring, pid: u32) -> bool {
    if sys::process_exists(pid) {
        return false;
    }
    let first = &ring.control.counters().first_dead;
    // ORDERING: relaxed: it is a pid, and hands nothing over.
    match first.compare_exchange(0, pid, Relaxed, Relaxed) {
        Ok(_) => true,
        Err(first) => first == pid,
    }
}

/// Makes the claimant the owner of a slot that the calling thread has got for itself. The count continues from the
/// predecessor's.
fn init(ring: &Ring, index: u64, claimant: Claimant) {
    let Claimant { pid, tid, pid_namespace, creator } = claimant;
    let owner = Owner { kind: SLOT_KIND_THREAD, pid, tid, of_thread: tid, pid_namespace };
    init_with(ring, index, owner, creator, sys::boottime_ns(), &sys::thread_name(), || {
        if let Some(RestPart { turn, since, awake, asleep }) = ring.rest(index) {
            [turn, since, awake, asleep].into_iter().for_each(|word| word.store(0, Relaxed));
        }
    });
}

fn init_task(ring: &Ring, index: u64, part: &TaskPart, task: &NewTask) -> u32 {
    // ORDERING: relaxed: a number. It is unique among the tasks of a process that makes fewer than 2^31.
    let number = ring.control.counters().tasks.fetch_add(1, Relaxed).wrapping_add(1) | TASK_ID;
    // The owner exists as long as its process.
    let &NewTask { pid, pid_namespace, creator, location, origin, now_ns } = task;
    let owner = Owner { kind: SLOT_KIND_TASK, pid, tid: number, of_thread: pid, pid_namespace };
    init_with(ring, index, owner, creator, now_ns, &[], || {
        let words = [&part.turn, &part.since, &part.poller, &part.wakes, &part.woken];
        words.into_iter().for_each(|word| word.store(0, Relaxed));
        part.wakes_polled.store(0, Relaxed);
        part.wakers.store(0, Relaxed);
        part.location.store(location, Relaxed);
        part.origin.store(origin, Relaxed);
        for entry in &part.awaits {
            entry.place.store(0, Relaxed);
            entry.turn.store(0, Relaxed);
        }
        part.entry_turns.iter().for_each(|entry| entry.store(0, Relaxed));
    });
    number
}

/// Who gets a slot.
struct Owner {
    kind: u32,
    pid: u32,
    tid: u32,
    /// A thread that exists as long as the owner may.
    of_thread: u32,
    pid_namespace: u64,
}

fn init_with(
    ring: &Ring,
    index: u64,
    of: Owner,
    creator: Option<Position>,
    now_ns: u64,
    name: &[u8],
    rest: impl FnOnce(),
) {
    let (slot, owner) = (ring.slot(index), &ring.control.owners()[index as usize]);
    // ORDERING: relaxed for the fields: a reader accepts them only if state and generation are equal before and after
    // its copy. The fence orders state and generation before the fields, so a reader that sees a new field sees them
    // too. The state that ends the claim is stored last, with release.
    slot.state.store(SLOT_CLAIMING, Relaxed);
    slot.generation.store(owner.begin_claim(), Relaxed);
    fence(Release);
    slot.kind.store(of.kind, Relaxed);
    owner.pid.store(of.pid, Relaxed);
    owner.tid.store(of.of_thread, Relaxed);
    slot.pid.store(of.pid, Relaxed);
    slot.tid.store(of.tid, Relaxed);
    owner.pid_namespace.store(of.pid_namespace, Relaxed);
    slot.pid_namespace.store(of.pid_namespace as u32, Relaxed);
    slot.claimed_boottime_ns.store(now_ns, Relaxed);
    slot.exited_boottime_ns.store(0, Relaxed);
    slot.first_sequence.store(slot.count.load(Relaxed), Relaxed);
    // Without a creator, the first slot says something about the order too.
    let in_first_slot = || (0, ring.slot(0).count.load(Relaxed));
    let of_creator = |creator: Position| (creator.index as u32 + 1, creator.count);
    let (creator_slot, creator_count) = creator.map_or_else(in_first_slot, of_creator);
    slot.creator_slot.store(creator_slot, Relaxed);
    slot.creator_count.store(creator_count, Relaxed);
    slot.joiner_slot.store(0, Relaxed);
    slot.joiner_count.store(0, Relaxed);
    slot.held_overflowed.store(0, Relaxed);
    for entry in &slot.held {
        // The meta word first: an entry without a state means nothing.
        entry.meta.store(0, Relaxed);
        entry.lock.store(0, Relaxed);
    }
    ring.spans(index).iter().for_each(|span| span.begin.store(0, Relaxed));
    ring.channels(index).iter().for_each(|history| history.store(0, Relaxed));
    slot.flags.store(0, Relaxed);
    slot.held_end.store(0, Relaxed);
    super::names::store(&slot.name, name);
    rest();
    // ORDERING: release: the reader sees the fields before the state.
    slot.state.store(SLOT_LIVE, Release);
    owner.end_claim();
}
