//! The futures of a task that the program has named, and which future has which entry of the held-lock table.
//!
//! A task may have several futures that run beside one another. If one of them is not polled any more, what it holds or
//! stands in line for blocks the others: a futurelock. So the slot of a task says of each named future, and of each
//! entry, when it was polled last.
//!
//! The functions here run in the instance that owns the ring. The calling thread polls the task.

#![allow(unsafe_code, reason = "an entry is reached through a pointer into the mapping")]

use core::ptr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use librip_format::{
    AWAITS_MAX, AwaitEntry, HELD_MAX, HeldLock, TaskPart, await_place, entry_turn, sampled_time,
    with_left_out,
};

use super::blocks::slot_of;
use super::current;
use super::task::current_part;
use super::task_slot::FuturePlace;
use crate::arch;
use crate::ring::slots;

/// The future that is polled, as an index in the part of its task; `None` if it was not named.
fn current_future(part: &TaskPart) -> Option<usize> {
    let future = arch::task_block().future.get();
    let index = future.addr().wrapping_sub(part.awaits.as_ptr().addr()) / size_of::<AwaitEntry>();
    // It may be that of a task whose poll this one is part of.
    (index < AWAITS_MAX).then_some(index)
}

/// The future that has this entry of the held-lock table is polled in the present turn, with the task's own waker or
/// with another one.
pub(crate) fn poll_entry(held: &HeldLock, is_direct: bool) {
    let (Some(part), Some(slot)) = (current_part(), slot_of(arch::thread_block())) else { return };
    let distance = ptr::from_ref(held).addr().wrapping_sub(slot.held.as_ptr().addr());
    // It may be an entry of another slot.
    let index = distance / size_of::<HeldLock>();
    if index < HELD_MAX {
        // ORDERING: relaxed, here and below: the turn that ends after this is stored with release.
        part.entry_turns[index]
            .store(entry_turn(part.turn.load(Relaxed), is_direct, current_future(part)), Relaxed);
    }
}

/// The future at this location is polled for the first time. Gives it an entry, if there is room, and otherwise counts
/// it.
pub(crate) fn begin_future(location: u64) -> FuturePlace {
    let (Some(part), Some(ring)) = (current_part(), current::ring()) else { return FuturePlace::NONE };
    let Some(slot) = ring.slot_of(arch::thread_block().cursor.get()) else { return FuturePlace::NONE };
    let free = part.awaits.iter().position(|entry| entry.place.load(Relaxed) == 0);
    let place = await_place(location, current_future(part));
    match free.map(|index| &part.awaits[index]) {
        Some(entry) => {
            note_turn(&entry.turn, place, part.turn.load(Relaxed));
            // ORDERING: release: a reader that sees the place sees the turn that fits it.
            entry.place.store(place, Release);
        }
        None if count_left_out(part, true) => {}
        None => return FuturePlace::NONE,
    }
    let generation = slots::generation(ring, slot);
    let index = free.unwrap_or(AWAITS_MAX) as u32;
    FuturePlace { part, place, index, slot: slot as u32, generation }
}

/// A future without an entry has begun (`true`), or is no more. Returns whether that was counted.
fn count_left_out(part: &TaskPart, is_more: bool) -> bool {
    let mut word = part.location.load(Relaxed);
    // Other threads change it only when they drop such a future. One that scribbles must not keep this one here.
    for _ in 0..COUNT_ATTEMPTS {
        let Some(next) = with_left_out(word, is_more) else { return false };
        // ORDERING: relaxed: a number for the reader.
        match part.location.compare_exchange(word, next, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(now) => word = now,
        }
    }
    false
}

/// How often a change is tried that others disturb.
const COUNT_ATTEMPTS: u32 = 64;

fn note_turn(target: &AtomicU64, place: u64, turn: u64) {
    target.store(sampled_time(place, turn), Relaxed);
}

/// The calling thread begins to poll a future. Returns the future whose poll that is part of, for [`leave_future`].
pub(crate) fn poll_future(of: &FuturePlace) -> *const AwaitEntry {
    let future = &arch::task_block().future;
    let former = future.get();
    if let Some(part) = current_part().filter(|&part| ptr::eq(part, of.part))
        && let Some(entry) = part.awaits.get(of.index as usize)
    {
        note_turn(&entry.turn, of.place, part.turn.load(Relaxed));
        future.set(entry);
    }
    // Otherwise another task has got the future.
    former
}

/// The poll of a future has ended, or has panicked. `former` is what [`poll_future`] returned.
pub(crate) fn leave_future(former: *const AwaitEntry) {
    arch::task_block().future.set(former);
}

/// A future is no more.
pub(crate) fn end_future(of: &FuturePlace) {
    // SAFETY: null, or the part of a slot in a mapping that stays. All fields are atomics.
    let Some(part) = (unsafe { of.part.as_ref() }) else { return };
    let is_polled = current_part().is_some_and(|current| ptr::eq(current, of.part));
    let has_same_owner =
        || current::ring().is_some_and(|ring| slots::generation(ring, u64::from(of.slot)) == of.generation);
    // A task that has ended has no futures. If another one has its slot, the entry is that one's.
    if is_polled || has_same_owner() {
        match part.awaits.get(of.index as usize) {
            // ORDERING: relaxed: the entry is free, whatever its turn says.
            Some(entry) => _ = entry.place.compare_exchange(of.place, 0, Relaxed, Relaxed),
            None => _ = count_left_out(part, false),
        }
    }
}
