//! When polls of tasks begin and end, and when tasks are woken, if the operator wants to know how long that took.
//!
//! It reads no clock: `task` does, at the begin and the end of each poll then. `ring::polls` has the counts. It runs in
//! the instance that owns the ring.
//!
//! # Invariants
//!
//! * What a length is computed from is in the control block: `PollCell` of the task's slot. So nobody else can change
//!   which count is added to.
//! * Only the thread that polls a task writes when its poll began. Wakers write when it was woken, if nobody has.

#![allow(unsafe_code, reason = "words are reached through a slot, in the mapping")]

use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use librip_format::{PAYLOAD_MASK, SlotHeader, is_operand, payload};

use super::task_slot::TaskSlot;
use super::{clock, current};
use crate::arch::TaskBlock;
use crate::ring::Ring;
use crate::ring::control::PollCell;
use crate::ring::polls::{self, Ended};

/// What the recorder counts of polls of [tasks](crate::task): how long they take, and for how long tasks wait for them.
///
/// # Examples
///
/// ```
/// use librip::{Builder, Keep, Polls};
///
/// let made = Builder::new().polls(Polls::Times).keep(Keep::Never).create();
/// # let _ = made;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Polls {
    /// Nothing.
    #[default]
    Off,
    /// For each place at which tasks are made: how many polls took how long, how long after a wake they began, and
    /// which were the longest. That takes a reading of the clock at the begin and at the end of each poll. It needs
    /// times: with [`Clock::Off`](crate::Clock::Off), nothing is counted. The calls of
    /// [`Blocking`](crate::task::Blocking) are no polls.
    Times,
}

/// Whether each poll has its own times, in the instance that owns the ring.
static ARE_TIMED: AtomicBool = AtomicBool::new(false);

/// Runs before the ring is published.
pub(crate) fn install(ring_has_places: bool) {
    // ORDERING: relaxed: the ring is published after this, with release.
    ARE_TIMED.store(ring_has_places, Relaxed);
}

/// Whether each poll reads the clock.
#[inline]
pub(crate) fn are_timed() -> bool {
    // ORDERING: relaxed: written once, before the ring is published.
    ARE_TIMED.load(Relaxed)
}

/// The place of the tasks that are made at this location and, if it is not empty, have this name: for [`TaskSlot`].
pub(super) fn place(ring: &Ring, pid: u32, location: u64, kind_name: &[u8]) -> u32 {
    if are_timed() { polls::place(ring, pid, location, kind_name) } else { 0 }
}

/// The ring, the index of the task's place, and the times of its slot; `None` if its polls are not counted.
#[inline]
fn of(slot: &TaskSlot) -> Option<(&'static Ring, u64, &'static PollCell)> {
    let place = u64::from(slot.place.checked_sub(1)?);
    let ring = current::ring()?;
    Some((ring, place, ring.control.poll_cell(u64::from(slot.index))?))
}

/// Somebody wakes the task, or has made it: it is ready from now on, unless it was already.
#[inline]
pub(super) fn woken(slot: &TaskSlot, ticks: u64) {
    if let Some((_, _, cell)) = of(slot)
        && cell.woken.load(Relaxed) == 0
    {
        // ORDERING: relaxed: the executor orders this before the poll that answers the wake. A wake that comes later
        // than that poll's begin asks for another poll.
        _ = cell.woken.compare_exchange(0, ticks, Relaxed, Relaxed);
    }
}

/// The executor says that it has woken the task so long ago, and that a poll is about to begin. It knows that better
/// than [`woken`], which nobody calls for such tasks.
pub(crate) fn woken_ago(slot: &TaskSlot, ago_ns: u64) {
    if let Some((_, _, cell)) = of(slot) {
        let woken = clock::of_event().wrapping_sub(clock::ticks_of(ago_ns)) & PAYLOAD_MASK;
        // ORDERING: relaxed: the thread that is about to poll the task. 0 means that nobody has woken it.
        cell.woken.store(woken.max(1), Relaxed);
    }
}

/// The slot is a new task's, which is ready from now on.
pub(super) fn made(slot: &TaskSlot, ticks: u64) {
    if let Some((_, _, cell)) = of(slot) {
        // ORDERING: relaxed: whoever polls or wakes the task gets it from this thread.
        cell.began.store(0, Relaxed);
        cell.woken.store(ticks, Relaxed);
    }
}

/// A poll begins.
pub(super) fn began(tasks: &TaskBlock, slot: &TaskSlot, ticks: u64) {
    let Some((ring, place, cell)) = of(slot) else { return };
    // ORDERING: relaxed: see `woken`, and the invariants.
    cell.began.store(ticks, Relaxed);
    cell.count.store(header(slot).count.load(Relaxed), Relaxed);
    if cell.woken.load(Relaxed) != 0 {
        let woken = cell.woken.swap(0, Relaxed);
        polls::count(&polls::lane(ring.poll_place(place), lane(tasks)).delays, took(woken, ticks));
    }
}

/// A poll has ended. The slot is still the calling thread's.
pub(super) fn ended(tasks: &TaskBlock, slot: &TaskSlot, ticks: u64) {
    let Some((ring, place, cell)) = of(slot) else { return };
    let began = cell.began.load(Relaxed);
    if began == 0 || ticks == 0 {
        return;
    }
    let took = took(began, ticks);
    polls::count(&polls::lane(ring.poll_place(place), lane(tasks)).polls, took);
    // Who was woken while it was polled was not waiting meanwhile.
    let woken = cell.woken.load(Relaxed);
    if woken != 0 {
        _ = cell.woken.compare_exchange(woken, ticks, Relaxed, Relaxed);
    }
    let Some(key) = ring.control.poll_keys().get(place as usize) else { return };
    if polls::is_long(key, took) {
        let header = header(slot);
        let home = ring.slot_of(tasks.home.get()).and_then(|home| ring.control.owners().get(home as usize));
        let owner = &ring.control.owners()[slot.index as usize];
        let mut name = [0; librip_format::THREAD_NAME_LEN_BYTES];
        for (bytes, word) in name.chunks_exact_mut(8).zip(&header.name) {
            bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
        let poll = Ended {
            pid: owner.pid.load(Relaxed),
            task: slot.number,
            tid: home.map_or(0, |home| home.tid.load(Relaxed)),
            began,
            took,
            last: last_since(ring, slot, cell.count.load(Relaxed)),
            name,
        };
        polls::keep(ring, place, key, &poll);
    }
}

/// From one time to another one that was not read before it. Two processors' counters may be apart by some
/// nanoseconds; a time has 48 bits.
fn took(from: u64, to: u64) -> u64 {
    let ticks = to.wrapping_sub(from) & PAYLOAD_MASK;
    if ticks > PAYLOAD_MASK / 2 { 0 } else { ticks }
}

/// The lane in which the calling thread counts. The first threads have lanes of their own.
fn lane(tasks: &TaskBlock) -> u64 {
    if tasks.lane.get() == 0 {
        static NEXT: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);
        // ORDERING: relaxed: a number.
        tasks.lane.set(NEXT.fetch_add(1, Relaxed));
    }
    tasks.lane.get()
}

fn header(slot: &TaskSlot) -> &'static SlotHeader {
    // SAFETY: the words of a slot follow its header, in a mapping that stays. All fields are atomics.
    unsafe { &*slot.words.wrapping_byte_sub(size_of::<SlotHeader>()).cast() }
}

/// The PC word that the task has recorded last since it had recorded so many words; 0 if it has recorded none.
fn last_since(ring: &Ring, slot: &TaskSlot, count: u64) -> u64 {
    // ORDERING: relaxed, here and below: the calling thread's own stores.
    let now = header(slot).count.load(Relaxed);
    if now == count {
        return 0;
    }
    let mask = u64::from(ring.geometry.slot.words) - 1;
    let last = slot.words.wrapping_add((now.wrapping_sub(1) & mask) as usize);
    // SAFETY: the mask keeps the index within the slot's words.
    let word = unsafe { core::sync::atomic::AtomicU64::from_ptr(last) }.load(Relaxed);
    if is_operand(word) { 0 } else { payload(word) }
}
