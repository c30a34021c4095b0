//! What other instances ask the owner of the ring to do, through its anchor. Without a ring, nothing is done.

#![allow(unsafe_code, reason = "the parts of slices come from other instances")]

use crate::process::instance::{Request, TaskCalls};
use crate::process::task_slot::{FuturePlace, TaskSlot, Turn};
use crate::process::usage::{self, Measured};
use crate::process::{clock, current, futures, polls, task, thread};
use crate::ring::calls::{self, CallPlace};
use crate::ring::captures::Kept;
use crate::ring::process_sites::{self, NewSite};
use crate::ring::{histories, incidents, lock_names, remote_tables, strings};
use crate::sys;
use librip_format::{AwaitEntry, HeldLock};

pub(super) extern "C" fn request(request: Request, lock: u64) {
    let Some(ring) = current::ring() else { return };
    match request {
        Request::LOCK_RELEASED => remote_tables::released(ring, lock),
        Request::LOCK_ABANDONED => remote_tables::abandoned(ring, lock),
        Request::LOCK_DESTROYED => remote_tables::destroyed(ring, lock, false),
        Request::HELD_LOCK_DESTROYED => remote_tables::destroyed(ring, lock, true),
        Request::LOCK_WITHOUT_GUARD => remote_tables::without_guard(ring, lock),
        Request::LOCK_INITIALISED => remote_tables::initialised(ring, lock),
        Request::CAPTURE => thread::capture(ring, lock, Kept::Slow),
        Request::CAPTURE_USUAL => thread::capture(ring, lock, Kept::Usual),
        Request::AVOID_SYSTEM_CALLS => sys::avoid_calls(),
        Request::RECALIBRATE_CLOCK => clock::recalibrate(ring.header()),
        count => count.count_in(ring.header()),
    }
}

pub(super) extern "C" fn note_incident(kind: u32, lock: u64, caller: u64) {
    if let Some(ring) = current::ring() {
        incidents::note(ring, kind, lock, caller);
    }
}

pub(super) extern "C" fn name_lock(lock: u64, name: *const u8, len_bytes: usize) {
    // A name is a first mark if there is a plan of a ring. To remove a name from no ring is not.
    let ring = if len_bytes == 0 { current::ring() } else { current::ring_for_mark() };
    if let Some(ring) = ring {
        // SAFETY: `instance::name_lock`, here or in another instance, passes the parts of a slice.
        let name = unsafe { core::slice::from_raw_parts(name, len_bytes) };
        lock_names::write(ring, lock, name);
    }
}

pub(super) extern "C" fn enter_call(place: &CallPlace<'_>) {
    if let Some(ring) = current::ring() {
        calls::write(ring, place);
    }
}

pub(super) extern "C" fn enter_text(text: *const u8, len_bytes: usize) {
    if let Some(ring) = current::ring() {
        // SAFETY: `instance::enter_text`, here or in another instance, passes the parts of a static slice.
        strings::write(ring, unsafe { core::slice::from_raw_parts(text, len_bytes) });
    }
}

pub(super) extern "C" fn enter_channel(name: *const u8, len_bytes: usize, words: u32) -> u64 {
    let entered = current::ring().and_then(|ring| {
        // SAFETY: `instance::enter_channel`, here or in another instance, passes the parts of a text.
        histories::enter_channel(ring, unsafe { core::slice::from_raw_parts(name, len_bytes) }, words)
    });
    entered.unwrap_or(u64::MAX)
}

pub(super) extern "C" fn begin_history(channel: u64, words: u32) {
    if let Some(ring) = current::ring() {
        thread::begin_history(ring, channel, words);
    }
}

pub(super) extern "C" fn enter_site(site: &NewSite<'_>) -> bool {
    current::ring().is_some_and(|ring| process_sites::write(ring, site))
}

pub(super) extern "C" fn measure(into: &mut Measured, age_max_ns: u64) {
    if let Some(ring) = current::ring() {
        *into = usage::measure(ring, age_max_ns);
    }
}

pub(super) extern "C" fn set_participation(takes_part: bool) {
    if takes_part {
        thread::rejoin();
    } else {
        thread::release_slot();
    }
}

/// What the owner does about tasks.
pub(super) const TASKS: TaskCalls = TaskCalls {
    claim: claim_task,
    end: end_task,
    set_origin,
    begin_turn,
    end_turn,
    woken,
    lower_wakers,
    woken_ago,
    are_polls_timed,
    rests,
    left_worker,
    poll_entry,
    begin_future,
    poll_future,
    leave_future,
    end_future,
};

extern "C" fn claim_task(location: u64, origin: u64, name: *const u8, len_bytes: usize) -> TaskSlot {
    // SAFETY: `instance::claim_task`, here or in another instance, passes the parts of a slice.
    let name = unsafe { core::slice::from_raw_parts(name, len_bytes) };
    task::claim(thread::position_of_creator(), location, origin, name)
}

extern "C" fn end_task(slot: &TaskSlot) {
    task::end(slot);
}

extern "C" fn set_origin(slot: &TaskSlot, origin: u64) {
    task::set_origin(slot, origin);
}

unsafe extern "C" fn begin_turn(slot: &TaskSlot) -> Turn {
    // SAFETY: `TaskCalls` demands it.
    unsafe { task::begin_turn(slot) }
}

unsafe extern "C" fn end_turn(slot: &TaskSlot, turn: Turn, wakers: u32) {
    // SAFETY: `TaskCalls` demands it.
    unsafe { task::end_turn(slot, turn, wakers) };
}

extern "C" fn woken(slot: &TaskSlot) {
    task::woken(slot);
}

extern "C" fn lower_wakers(slot: &TaskSlot, wakers: u32) {
    task::lower_wakers(slot, wakers);
}

extern "C" fn woken_ago(slot: &TaskSlot, ago_ns: u64) {
    polls::woken_ago(slot, ago_ns);
}

extern "C" fn are_polls_timed() -> bool {
    polls::are_timed()
}

extern "C" fn rests(begins: bool) {
    task::rests(begins);
}

extern "C" fn left_worker() {
    task::left_worker();
}

extern "C" fn poll_entry(held: &HeldLock, is_direct: bool) {
    futures::poll_entry(held, is_direct);
}

extern "C" fn begin_future(location: u64) -> FuturePlace {
    futures::begin_future(location)
}

extern "C" fn poll_future(place: &FuturePlace) -> *const AwaitEntry {
    futures::poll_future(place)
}

extern "C" fn leave_future(former: *const AwaitEntry) {
    futures::leave_future(former);
}

extern "C" fn end_future(place: &FuturePlace) {
    futures::end_future(place);
}
