//! Tasks: their slots, and the turns in which threads poll them.
//!
//! A task has a slot of its own. While a thread polls the task, the thread's cursor points into the task's slot, so its
//! marks and locks belong to the task: a mark costs what it costs anyway. After the poll the cursor points where it did
//! before. What the slot of a task says besides is in [`TaskPart`].
//!
//! It knows no futures and no executors: the layers above say when a task begins, is polled, is woken and ends. The
//! functions here run in the instance that owns the ring (`instance::Anchor`).
//!
//! # Invariants
//!
//! * One thread at a time is between [`begin_turn`] and [`end_turn`] of a task. Only it writes to the task's slot, but
//!   for wakes. A future is polled through a pinned mutable reference, which ensures this.
//! * A thread's own slot stays its own: [`TaskBlock::home`] remembers it, and what concerns the thread itself (its
//!   exit, its name, a fork) goes there.
//! * A task of a parent is not polled into the parent's slot by a forked child: [`TaskSlot::forks`] tells them apart.
//!
//! # When a turn was
//!
//! To read a clock takes longer than the rest of a poll. So several polls of a thread have one time, at most
//! [`PERIOD_MAX`] and about a millisecond's worth. A thread that polls more rarely reads the clock at the begin and at
//! the end of each poll. A thread cannot see that it slept between two polls, or that one took long: then up to so many
//! polls after it have a time from before. An executor that tells us ([`rests`]) has no polls with a time from before
//! it slept. A time that was not read at the turn says so, and is never later than the turn.

#![allow(unsafe_code, reason = "slots are reached through cursors, raw pointers into the mapping")]

use core::ptr;
use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicU64, compiler_fence};

use librip_format::{
    PAYLOAD_MASK, RestPart, SlotHeader, TASK_BLOCKING, TASK_NAME_IS_KIND, TaskPart, WAKERS_OFF_WORKER,
    WAKERS_UNKNOWN, pack_wakers, rest_shift, sampled_time, task_since, task_ticks, unpack_wakers,
};

use super::blocks::blocks;
use super::slot::Slot;
use super::task_slot::{TaskSlot, Turn};
use super::{clock, current, polls, sampled, state};
use crate::arch::{self, DUE_NOW, TaskBlock, ThreadBlock};
use crate::ring::Ring;
use crate::ring::slots::{self, NewTask, Position};
use crate::sys;

/// The polls that have one time are aimed at so many ticks: 0.5 to 1 ms.
const AIM_TICKS: u64 = 1 << 16;
/// The most polls that have one time.
const PERIOD_MAX: u64 = 64;

/// The part of the task that the calling thread polls, if it polls one.
pub(super) fn current_part() -> Option<&'static TaskPart> {
    let own = arch::thread_block();
    let ring = current::ring().filter(|_| polls(own))?;
    let after_words = ring.geometry.slot.task_at_bytes() as usize - size_of::<SlotHeader>();
    let part = own.cursor.get().wrapping_byte_add(after_words);
    // SAFETY: a thread that polls a task has the task's cursor, which points right after the header of a slot, in a
    // mapping that stays. Slots of tasks have this part, at this distance. All fields are atomics.
    Some(unsafe { &*part.cast::<TaskPart>() })
}

/// The number of the poll that the calling thread is in; 0 if it polls no task, or not in this instance of librip.
pub(crate) fn current_poll() -> u64 {
    // ORDERING: relaxed: this thread has written it.
    current_part().map_or(0, |part| part.turn.load(Relaxed).div_ceil(2))
}

/// Gives a task a slot. `creator` is how far the thread or task has come that makes it. `location` and `origin` are
/// those of [`TaskPart`]. An empty name is none.
pub(crate) fn claim(creator: Option<Position>, location: u64, origin: u64, name: &[u8]) -> TaskSlot {
    let ring = current::ring().or_else(|| sys::with_signals_blocked(current::ring_for_mark));
    let Some(ring) = ring else { return TaskSlot::NONE };
    let owner = creator.and_then(|creator| ring.control.owners().get(creator.index as usize));
    // A thread that has no slot may make a task. In a forked child, the creator may be a thread of the parent.
    let owner = owner.filter(|_| !state::is_forked_child());
    let (pid, pid_namespace) = match owner {
        Some(owner) => (owner.pid.load(Relaxed), owner.pid_namespace.load(Relaxed)),
        None => (sys::pid(), state::pid_namespace()),
    };
    let now_ns = clock::boottime_ns_of_task();
    let task = NewTask { pid, pid_namespace, creator, location, origin, now_ns };
    let Some((index, number)) = slots::claim_task(ring, &task) else { return TaskSlot::NONE };
    if !name.is_empty() {
        slots::set_name(ring.slot(index), name);
    }
    let part = ring.task(index).map_or(ptr::null(), ptr::from_ref);
    // A call on a pool is polled once, for as long as it likes.
    let is_polled = origin & 0xff != TASK_BLOCKING;
    let kind_name = if origin & TASK_NAME_IS_KIND != 0 { name } else { b"" };
    let place = if is_polled { polls::place(ring, pid, location, kind_name) } else { 0 };
    let slot = TaskSlot {
        words: ring.words(index),
        part,
        forks: state::forks(),
        number,
        index: index as u32,
        place,
    };
    if place != 0 {
        polls::made(&slot, clock::of_event());
    }
    slot
}

/// The task is no more: nobody polls it, and its slot may get another one.
pub(crate) fn end(slot: &TaskSlot) {
    if let (true, Some(ring)) = (slot.exists() && slot.is_own(), current::ring())
        && let Some(index) = ring.slot_of(slot.words)
    {
        slots::release_task(ring, index, clock::boottime_ns_of_task());
    }
}

/// Another [`TaskPart::origin`]: more is known of where the task runs than when it was made.
///
/// The task exists, and does not end meanwhile.
pub(crate) fn set_origin(slot: &TaskSlot, origin: u64) {
    if slot.exists() && slot.is_own() {
        // SAFETY: it exists.
        let part = unsafe { slot.part() };
        // ORDERING: relaxed: one word for the reader, which is true before and after.
        part.origin.store(origin, Relaxed);
    }
}

/// The calling thread begins to poll a task. Its events belong to the task until [`end_turn`]. A thread that records
/// nowhere goes on to do so.
///
/// # Safety
///
/// The slot exists.
#[inline(always)]
pub(crate) unsafe fn begin_turn(slot: &TaskSlot) -> Turn {
    let (own, tasks) = (arch::thread_block(), arch::task_block());
    let mut cursor = own.cursor.get();
    if cursor.is_null() {
        cursor = claim_own(own);
    }
    if cursor.is_null() || !slot.is_own() {
        return Turn::NONE;
    }
    // SAFETY: the caller's promise.
    let part = unsafe { slot.part() };
    // ORDERING: relaxed, here and below: the reader believes the time only if it fits the turn, and the rest only if
    // the turn was the same before and after.
    part.poller.store((cursor.addr() as u64).wrapping_sub(slot.words.addr() as u64), Relaxed);
    let number = part.turn.load(Relaxed) | 1;
    let left = tasks.left.get();
    let is_timed = left == 0;
    let ticks = if is_timed {
        begin_period(tasks, slot)
    } else {
        tasks.left.set(left - 1);
        tasks.ticks.get()
    };
    part.since.store(task_since(number, ticks), Relaxed);
    // This poll answers the wakes that come before it. A later one asks for another poll.
    let wakes = part.wakes.load(Relaxed);
    // ORDERING: release, here and below: a reader that sees the turn sees what was stored before it.
    part.turn.store(number, Release);
    // ORDERING: release: a reader that sees the wakes as answered sees the task in a poll, or after it. A process may
    // be killed between these stores.
    part.wakes_polled.store(wakes as u32, Release);
    if tasks.home.get().is_null() {
        tasks.home.set(cursor);
        // For a signal handler that comes between, the task's slot must not be the thread's own.
        compiler_fence(SeqCst);
    }
    set_cursor(own, tasks, slot.words);
    Turn::new(cursor, number, is_timed)
}

/// The calling thread has no slot yet, and claims one: who reads about a task wants to know who polls it.
#[cold]
#[inline(never)]
fn claim_own(own: &ThreadBlock) -> *mut u64 {
    if own.is_absent.get() == 0 {
        arch::enter();
    }
    own.cursor.get()
}

/// The poll has returned, or has panicked. Nothing happens if the turn was not begun, or if the thread has left the
/// task's slot meanwhile: it has forked, and this is the child, or it has ended.
///
/// `wakers` is how many can wake the task now, or [`WAKERS_UNKNOWN`].
///
/// A coroutine may be left in the middle of a poll that it makes: see [`end_turn_around`].
///
/// # Safety
///
/// The slot exists.
#[inline(always)]
pub(crate) unsafe fn end_turn(slot: &TaskSlot, turn: Turn, wakers: u32) {
    let (own, tasks) = (arch::thread_block(), arch::task_block());
    if !slot.is_at(own.cursor.get()) {
        // SAFETY: the caller's promise.
        unsafe { end_turn_around(own, slot, turn) };
        return;
    }
    // SAFETY: the caller's promise.
    let part = unsafe { slot.part() };
    let number = turn.number() + 1;
    part.wakers.store(pack_wakers(wakers), Relaxed);
    if turn.is_timed() {
        part.since.store(task_since(number, end_period(tasks, slot)), Relaxed);
    }
    part.turn.store(number, Release);
    set_cursor(own, tasks, turn.cursor);
}

/// Ends a turn while the cursor leads to another slot.
///
/// If the turn is that of a coroutine, the coroutine may be polling a task, whose turn goes on when the coroutine is
/// resumed. Until then the thread must not write to the slot of that task: another thread may resume the coroutine. So
/// it records for itself. The other way round, the task's turn ends after the coroutine was resumed, and the cursor
/// leads to the coroutine's slot, where it should.
///
/// # Safety
///
/// The slot exists.
#[cold]
#[inline(never)]
unsafe fn end_turn_around(own: &ThreadBlock, slot: &TaskSlot, turn: Turn) {
    let is_begun = !turn.cursor.is_null() && slot.is_own();
    if !is_begun || !polls(own) {
        return;
    }
    // SAFETY: the caller's promise.
    let part = unsafe { slot.part() };
    if part.turn.load(Relaxed) == turn.number() {
        part.wakers.store(pack_wakers(WAKERS_UNKNOWN), Relaxed);
        part.turn.store(turn.number() + 1, Release);
        if !ptr::eq(own.cursor.get(), turn.cursor) {
            leave(own);
        }
    }
}

/// Reads the clock, and says how many polls have this time too.
#[cold]
#[inline(never)]
fn begin_period(tasks: &TaskBlock, slot: &TaskSlot) -> u64 {
    let before = tasks.ticks.get();
    let ticks = read_clock(tasks, slot);
    if polls::are_timed() {
        // No other poll has this time: none is left.
        polls::began(tasks, slot, ticks);
    } else {
        let period = next_period(tasks.period.get(), ticks.wrapping_sub(before));
        tasks.period.set(period);
        tasks.left.set(period);
    }
    exact(ticks)
}

/// Reads the clock at the end of a poll that has read it at its begin.
#[cold]
#[inline(never)]
fn end_period(tasks: &TaskBlock, slot: &TaskSlot) -> u64 {
    let ticks = read_clock(tasks, slot);
    if polls::are_timed() {
        polls::ended(tasks, slot, ticks);
    }
    exact(ticks)
}

/// A time that was read at the turn. 0 means that it is not known.
fn exact(ticks: u64) -> u64 {
    if ticks == 0 { 0 } else { task_ticks(ticks, true) }
}

/// Reads the clock at the begin or the end of a turn of the task with this slot. The turns that have this time too have
/// the time that it leaves in the block.
fn read_clock(tasks: &TaskBlock, slot: &TaskSlot) -> u64 {
    let ticks = event_ticks();
    if let Some(slot) = Slot::at(slot.words) {
        sampled::take_between(slot, ticks);
    }
    tasks.ticks.set(task_ticks(ticks, false));
    ticks
}

/// How many polls have the next time, if the last period took so many ticks.
fn next_period(period: u64, took_ticks: u64) -> u64 {
    let fitting = period.saturating_mul(AIM_TICKS) / took_ticks.max(1);
    fitting.min(period.saturating_mul(2)).clamp(1, PERIOD_MAX)
}

/// The calling thread of an executor is about to sleep, or (`false`) has slept: the next turn reads the clock. It
/// claims a slot: who looks at a process wants to know all threads that poll tasks.
pub(crate) fn rests(begins: bool) {
    let own = arch::thread_block();
    arch::task_block().left.set(0);
    let Some(ring) = current::ring().filter(|ring| ring.geometry.slot.has_task) else { return };
    if own.cursor.get().is_null() {
        claim_own(own);
    }
    if let Some(part) = ring.slot_of(home(own)).and_then(|index| ring.rest(index)) {
        note_rest(arch::task_block(), part, begins, event_ticks());
    }
}

/// The present time, ticks; 0 if events have no times.
fn event_ticks() -> u64 {
    if clock::times_events() { clock::of_event() } else { 0 }
}

/// The calling thread has claimed a slot in this ring: the time that it is awake begins.
pub(super) fn claimed(ring: &Ring) {
    if ring.geometry.slot.has_task {
        let tasks = arch::task_block();
        tasks.rest_since.set(event_ticks());
        tasks.awake.set(0);
        tasks.asleep.set(0);
    }
}

/// Notes that a sleep begins or ends. `ticks`: when; 0 if that is not known.
fn note_rest(tasks: &TaskBlock, part: &RestPart, begins: bool, ticks: u64) {
    // ORDERING: relaxed, here and below: this thread's own stores. The reader believes the time only if it fits the
    // turn.
    let turn = part.turn.load(Relaxed);
    let next = if begins { turn | 1 } else { (turn.wrapping_add(1) & !1).max(2) };
    if next == turn {
        return;
    }
    let before = tasks.rest_since.replace(ticks);
    let lasted = ticks.wrapping_sub(before) & PAYLOAD_MASK;
    // Processors may be apart by some ticks.
    if ticks != 0 && before != 0 && lasted <= PAYLOAD_MASK / 2 {
        // Nobody may have said that it begins to sleep.
        let sum = if turn % 2 == 1 { &tasks.asleep } else { &tasks.awake };
        sum.set(sum.get() + lasted);
        let shift = rest_shift(tasks.awake.get() + tasks.asleep.get());
        for (own, sum) in [(&tasks.awake, &part.awake), (&tasks.asleep, &part.asleep)] {
            own.set(own.get() >> shift);
            sum.store(own.get(), Relaxed);
        }
    }
    part.since.store(task_since(next, exact(ticks)), Relaxed);
    // ORDERING: release: a reader that sees the turn sees what was stored before it.
    part.turn.store(next, Release);
}

/// The calling thread polls a task, and is none of the executor's threads until that poll ends.
pub(crate) fn left_worker() {
    if let Some(part) = current_part() {
        // ORDERING: relaxed: the end of the turn overwrites it.
        part.wakers.store(pack_wakers(WAKERS_OFF_WORKER), Relaxed);
    }
}

/// The calling thread is about to do something else than to poll, or has forked: its cursor leads to its own slot
/// again. It writes nothing if the thread has polled no task, and is inlined: a forked child would pay for a page of
/// data and one of code.
#[inline(always)]
pub(super) fn leave(own: &ThreadBlock) {
    let tasks = arch::task_block();
    let home = tasks.home.get();
    if !home.is_null() {
        // First the cursor: see `begin_turn`.
        if !ptr::eq(home, own.cursor.get()) {
            go_home(own, home);
        }
        compiler_fence(SeqCst);
        tasks.home.set(ptr::null_mut());
    }
}

#[cold]
#[inline(never)]
fn go_home(own: &ThreadBlock, home: *mut u64) {
    set_cursor(own, arch::task_block(), home);
}

/// Whether the calling thread polls a task.
fn polls(own: &ThreadBlock) -> bool {
    let home = arch::task_block().home.get();
    !home.is_null() && !ptr::eq(home, own.cursor.get())
}

/// The cursor of the calling thread's own slot, whatever it polls.
pub(super) fn home(own: &ThreadBlock) -> *mut u64 {
    let home = arch::task_block().home.get();
    if home.is_null() { own.cursor.get() } else { home }
}

#[inline(always)]
fn set_cursor(own: &ThreadBlock, tasks: &TaskBlock, cursor: *mut u64) {
    own.cursor.set(cursor);
    if tasks.has_more.get() != 0 {
        set_all(own, cursor);
    }
}

/// The calling thread has got a block a cursor. Whether it has others besides the one of this instance, or they say
/// when a time is due.
pub(super) fn note_blocks(has_more: bool) {
    let tasks = arch::task_block();
    tasks.has_more.set(tasks.has_more.get() | u64::from(has_more));
}

/// Sets the cursors of the blocks of all modules, and what a cursor brings with it.
#[cold]
#[inline(never)]
fn set_all(own: &ThreadBlock, cursor: *mut u64) {
    for block in blocks(own) {
        block.cursor.set(cursor);
        if clock::samples() {
            // The count of another slot says nothing about when a time is due.
            block.due.set(DUE_NOW);
        }
    }
}

/// Somebody wakes the task. Returns nothing: whoever calls it wakes the task afterwards.
///
/// The task exists: the caller has made sure of that, and that it does not end meanwhile.
pub(crate) fn woken(slot: &TaskSlot) {
    if !slot.exists() || !slot.is_own() {
        return;
    }
    // SAFETY: it exists.
    let part = unsafe { slot.part() };
    // ORDERING: relaxed: numbers for the reader. It believes the time only if its checksum fits the number.
    let number = part.wakes.fetch_add(1, Relaxed).wrapping_add(1);
    let is_first = (number as u32).wrapping_sub(part.wakes_polled.load(Relaxed)) == 1;
    if is_first && clock::times_events() {
        let ticks = clock::of_event();
        store_time(&part.woken, number, ticks);
        polls::woken(slot, ticks);
    }
}

/// Only so many can wake the task any more. A number that is not above this one stays. So does the one that says that
/// the number is not known.
///
/// The task exists, as for [`woken`]. No other thread lowers the number, or stores one above 1, meanwhile.
pub(crate) fn lower_wakers(slot: &TaskSlot, wakers: u32) {
    if !slot.exists() || !slot.is_own() {
        return;
    }
    // SAFETY: it exists.
    let part = unsafe { slot.part() };
    // ORDERING: relaxed: a number for the reader. The callers order themselves by a lock. A thread that polls the task
    // stores one of at most 1, or that the number is not known, without that lock: then the exchange fails.
    let _ = part.wakers.fetch_update(Relaxed, Relaxed, |packed| {
        let is_above = (wakers + 1..WAKERS_OFF_WORKER).contains(&unpack_wakers(packed));
        is_above.then(|| pack_wakers(wakers))
    });
}

fn store_time(time: &AtomicU64, number: u64, ticks: u64) {
    time.store(sampled_time(number, task_ticks(ticks, true)), Relaxed);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Acquire;
    use std::thread;

    use super::*;

    /// Slots that belong to no ring. The words of the first are the calling thread's own.
    struct Slots {
        words: [u64; 3],
        part: TaskPart,
    }

    impl Slots {
        fn new() -> Slots {
            // SAFETY: zero is a value of each of its fields, which are atomics.
            Slots { words: [0; 3], part: unsafe { core::mem::zeroed() } }
        }

        /// The slot whose words are at this index.
        fn at(&mut self, index: usize) -> TaskSlot {
            let words = &raw mut self.words[index];
            TaskSlot { words, part: &raw const self.part, forks: state::forks(), ..TaskSlot::NONE }
        }

        /// Runs a function on a thread that records in the first of the slots.
        fn on_thread(&mut self, run: impl FnOnce(&mut Slots) + Send) {
            thread::scope(|scope| {
                scope.spawn(|| {
                    let own = arch::thread_block();
                    own.cursor.set(&raw mut self.words[0]);
                    run(self);
                    leave(own);
                    // This thread must not exit as the owner of a slot.
                    own.cursor.set(ptr::null_mut());
                });
            });
        }
    }

    #[test]
    fn a_wake_is_answered_after_the_turn_in_which_it_is() {
        let (mut slots, is_done) = (Slots::new(), AtomicBool::new(false));
        let part = &raw const slots.part;
        // SAFETY: the slots outlive the threads, and all fields are atomics.
        let part: &TaskPart = unsafe { &*part };
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Relaxed) {
                    let answered = u64::from(part.wakes_polled.load(Acquire));
                    let turn = part.turn.load(Acquire);
                    assert!(turn + 1 >= 2 * answered, "{answered} wakes are answered in turn {turn}");
                }
            });
            slots.on_thread(|slots| {
                let task = slots.at(1);
                for wake in 1..=2_000_000 {
                    // One wake for each poll.
                    part.wakes.store(wake, Relaxed);
                    // SAFETY: the slot exists.
                    let turn = unsafe { begin_turn(&task) };
                    // SAFETY: as above.
                    unsafe { end_turn(&task, turn, 1) };
                }
            });
            is_done.store(true, Relaxed);
        });
    }

    #[test]
    fn a_thread_notes_for_how_long_it_slept_and_was_awake() {
        // SAFETY: zero is a value of each of its fields, which are atomics.
        let part: RestPart = unsafe { core::mem::zeroed() };
        let has = |turn: u64, ticks: u64, awake: u64, asleep: u64| {
            let words = [&part.turn, &part.since, &part.awake, &part.asleep].map(|word| word.load(Relaxed));
            assert_eq!(words, [turn, task_since(turn, exact(ticks)), awake, asleep]);
        };
        // SAFETY: zero is a value of each of its fields, which are cells.
        let tasks: TaskBlock = unsafe { core::mem::zeroed() };
        let note_rest = |begins, ticks| note_rest(&tasks, &part, begins, ticks);
        note_rest(true, 1000);
        has(1, 1000, 0, 0);
        note_rest(false, 1500);
        has(2, 1500, 0, 500);
        note_rest(true, 1600);
        has(3, 1600, 100, 500);
        note_rest(true, 1700);
        has(3, 1600, 100, 500);
        note_rest(false, 0);
        note_rest(true, 2000);
        has(5, 2000, 100, 500);
        // A clock of another processor.
        note_rest(false, 1998);
        has(6, 1998, 100, 500);
        note_rest(true, 2000 + (1 << 40));
        note_rest(false, 2000 + (1 << 41));
        assert!(part.awake.load(Relaxed) + part.asleep.load(Relaxed) < 1 << 29);
        let sums = || [&part.awake, &part.asleep].map(|sum| sum.load(Relaxed));
        let kept = sums();
        [&part.awake, &part.asleep].into_iter().for_each(|sum| sum.store(u64::MAX, Relaxed));
        note_rest(true, 2000 + (1 << 41));
        assert_eq!(sums(), kept, "somebody has scribbled on them");
        part.turn.store(u64::MAX, Relaxed);
        note_rest(false, 3000);
        assert_eq!(part.turn.load(Relaxed), 2, "somebody has scribbled on it");
    }

    #[test]
    fn a_thread_is_awake_before_its_first_sleep() {
        // SAFETY: zero is a value of each of its fields, which are atomics.
        let part: RestPart = unsafe { core::mem::zeroed() };
        // SAFETY: zero is a value of each of its fields, which are cells.
        let tasks: TaskBlock = unsafe { core::mem::zeroed() };
        tasks.rest_since.set(400);
        let sums = || [&part.awake, &part.asleep].map(|sum| sum.load(Relaxed));
        // The executor says only that the thread has slept.
        note_rest(&tasks, &part, false, 1000);
        assert_eq!(sums(), [600, 0]);
        note_rest(&tasks, &part, true, 1100);
        note_rest(&tasks, &part, false, 1150);
        assert_eq!(sums(), [700, 50]);
    }

    #[test]
    fn who_can_wake_a_task_is_not_known_if_its_turn_ends_around() {
        Slots::new().on_thread(|slots| {
            let (task, other) = (slots.at(1), slots.at(2));
            // SAFETY: the slot exists, here and below.
            let begin = || unsafe { begin_turn(&task) };
            // SAFETY: as above.
            let end = |turn| unsafe { end_turn(&task, turn, 3) };
            end(begin());
            assert_eq!(slots.part.wakers.load(Relaxed), pack_wakers(3));
            let turn = begin();
            arch::thread_block().cursor.set(other.words);
            end(turn);
            assert_eq!(slots.part.wakers.load(Relaxed), pack_wakers(WAKERS_UNKNOWN));
            assert_eq!(slots.part.turn.load(Relaxed), 4);
            assert!(!polls(arch::thread_block()), "the thread records for itself");
        });
    }

    #[test]
    fn frequent_turns_share_a_time_and_rare_ones_have_one_each() {
        let mut period = 1;
        for _ in 0..20 {
            period = next_period(period, period * 20);
        }
        assert_eq!(period, PERIOD_MAX);
        assert_eq!(next_period(PERIOD_MAX, AIM_TICKS * PERIOD_MAX), 1, "a millisecond each");
        assert_eq!(next_period(1, AIM_TICKS * 1000), 1);
        assert_eq!(next_period(0, 0), 1);
        assert_eq!(next_period(u64::MAX, u64::MAX), 1);
    }
}
