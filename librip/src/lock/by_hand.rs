//! What marks of locks by hand record: the functions that the macros of [`marks`](crate::marks) call.
//!
//! They acquire no lock and know no lock's type. They write the event and keep the held-lock table. The program decides
//! what it marks, and where. So the table follows the marks: a lock is in HELD from the mark after its acquisition to
//! the mark after its release, and ACQUIRING and RELEASING are passed at once.

#![allow(unsafe_code, reason = "sites are assembly")]

use crate::lock::protocol::{CondWait, FastRelease, Release, released_unknown};
use crate::lock::site::{Flags, Here, Origin};
use crate::lock::table::{FastEntry, Slot};
use crate::process::instance::{self, Request};
use librip_format::{
    HELD_ACQUIRING, HELD_DESTROYED, HELD_HELD, HELD_NONE, HELD_SHARED, HELD_WAITING, SITE_SHARED,
};

/// A value that identifies a lock by an address.
///
/// For references and raw pointers it is the address they point at, so a lock in an `Arc` is `&*arc`.
pub trait LockAddress {
    /// The address.
    fn address(self) -> u64;
}

impl<T: ?Sized> LockAddress for &T {
    #[inline(always)]
    fn address(self) -> u64 {
        core::ptr::from_ref(self).addr() as u64
    }
}

impl<T: ?Sized> LockAddress for *const T {
    #[inline(always)]
    fn address(self) -> u64 {
        self.addr() as u64
    }
}

impl<T: ?Sized> LockAddress for *mut T {
    #[inline(always)]
    fn address(self) -> u64 {
        self.addr() as u64
    }
}

/// What [`rip_lock_wait!`](crate::rip_lock_wait) calls.
pub fn wait(lock: impl LockAddress, pc: u64, site_flags: Flags) {
    let Some(slot) = Slot::current() else { return };
    let lock = lock.address();
    let time = slot.time();
    let sequence = Here.event(slot, [time], [lock], pc);
    let known = slot.find(lock, is_attempt);
    let flags = Here::entry_flags(site_flags);
    let entry = known.or_else(|| slot.enter_lock(lock, sequence, pc, flags)).or_else(|| {
        // It counts as overflowed when it is acquired.
        slot.forget_overflowed();
        slot.enter_last(lock, sequence, pc, flags, HELD_WAITING)
    });
    let Some(mut entry) = entry else { return };
    entry.set_since(time, 0);
    entry.set_pc(pc);
    entry.set_state(HELD_WAITING);
}

fn is_attempt(state: u64) -> bool {
    matches!(state, HELD_ACQUIRING | HELD_WAITING)
}

/// What [`rip_lock_acquired!`](crate::rip_lock_acquired) calls.
#[inline(always)]
pub fn acquired(lock: impl LockAddress, pc: u64, pc_timed: u64, site_flags: Flags) {
    let lock = lock.address();
    // What `librip.h` does in the same case.
    if let Some(slot) = Slot::existing()
        && !slot.reads_clock()
        && let Some(entry) = slot.fast_free_if_only()
    {
        enter_held(slot, entry, lock, pc, site_flags);
        return;
    }
    acquired_slowly(lock, pc, pc_timed, site_flags);
}

/// Enters a lock in HELD into a free entry.
#[inline(always)]
fn enter_held(slot: Slot, entry: FastEntry, lock: u64, pc: u64, site_flags: Flags) {
    let sequence = Here.plain_event(slot, [lock], pc);
    let mut entry = entry.enter(lock, sequence, pc, Here::entry_flags(site_flags));
    entry.change_state(HELD_ACQUIRING, HELD_HELD);
}

/// Like [`acquired`], in all cases: also for the thread's first event, an event with a time, a thread that does not
/// record, that has used several entries, or that has waited for this lock.
#[inline(never)]
pub(crate) fn acquired_slowly(lock: u64, pc: u64, pc_timed: u64, site_flags: Flags) {
    let Some(slot) = Slot::current() else { return };
    if !slot.reads_clock()
        && let Some(entry) = slot.fast_free_if_new(lock)
    {
        enter_held(slot, entry, lock, pc, site_flags);
        return;
    }
    let (pc, time, sequence) = if slot.times_all() {
        let (pc, time) = (pc_timed, slot.time());
        (pc, time, Here.event(slot, [time], [lock], pc))
    } else {
        (pc, 0, Here.event(slot, [], [lock], pc))
    };
    let known = slot.find(lock, |state| is_attempt(state) || state == HELD_HELD);
    let known = known.filter(|entry| {
        // The last entry is for waits, and this one is over.
        let is_last = entry.is_last_of(slot);
        if is_last {
            entry.clear();
        }
        !is_last
    });
    match known {
        Some(mut entry) if entry.state() == HELD_HELD => {
            entry.set_since(entry.since(), entry.recursion() + 1);
        }
        Some(mut entry) => {
            entry.set_pc(pc);
            entry.set_flag(HELD_SHARED, site_flags & SITE_SHARED != 0);
            entry.set_state(HELD_HELD);
            entry.set_since(time, 0);
        }
        None => {
            if let Some(mut entry) = slot.enter_lock(lock, sequence, pc, Here::entry_flags(site_flags)) {
                if time != 0 {
                    entry.set_since(time, 0);
                }
                entry.set_state(HELD_HELD);
            }
        }
    }
}

/// What [`rip_lock_released!`](crate::rip_lock_released) calls.
#[inline(always)]
pub fn released(lock: impl LockAddress, pc: u64, pc_timed: u64) {
    let lock = lock.address();
    if let Some(slot) = Slot::existing()
        && !slot.reads_clock()
        && slot.fast_clear(lock)
    {
        Here.plain_event(slot, [lock], pc);
        return;
    }
    released_slowly(lock, pc, pc_timed);
}

/// Like [`released`], in all cases: also for a lock that is not in the first entry, has a time, or is not in the
/// thread's table.
#[inline(never)]
pub(crate) fn released_slowly(lock: u64, pc: u64, pc_timed: u64) {
    let Some(slot) = Slot::current() else { return };
    if !slot.times_all()
        && let Some(release) = FastRelease::begin(lock)
    {
        release.done(Here, lock, pc, || pc_timed);
        return;
    }
    let entry = slot.find(lock, |state| state != HELD_NONE && state != HELD_DESTROYED);
    if entry.is_none() {
        // It was destroyed between its release and this mark, or was acquired by another thread.
        match slot.find(lock, |state| state == HELD_DESTROYED) {
            Some(entry) => entry.clear(),
            None => released_unknown(slot, lock),
        }
    }
    Release::of(entry).done(Here, lock, pc, pc_timed);
}

/// What [`rip_lock_try_failed!`](crate::rip_lock_try_failed) calls.
pub fn try_failed(lock: impl LockAddress, pc: u64) {
    let Some(slot) = Slot::current() else { return };
    let lock = lock.address();
    if let Some(entry) = slot.find(lock, is_attempt) {
        entry.clear();
    }
    Here.event(slot, [], [lock], pc);
}

/// Whether the calling thread holds a lock or waits for it, by its table.
#[cfg(feature = "capi")]
#[cold]
pub(crate) fn is_known(lock: u64) -> bool {
    let is_attempt_or_held = |state| state != HELD_NONE && state != HELD_DESTROYED;
    Slot::existing().is_some_and(|slot| slot.find(lock, is_attempt_or_held).is_some())
}

/// Like [`released`], at a site of this library: the place has none.
#[cfg(feature = "capi")]
#[cold]
#[inline(never)]
pub(crate) fn released_here(lock: impl LockAddress) {
    let pc = crate::__rip_lock_site!(KIND_LOCK_RELEASED, "", [], [OPERAND_LOCK]);
    let timed =
        crate::__rip_lock_site!(KIND_LOCK_RELEASED, "", [], [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]);
    released(lock, pc, timed);
}

/// Like [`try_failed`], at a site of this library: the place has none.
#[cfg(feature = "capi")]
#[cold]
#[inline(never)]
pub(crate) fn try_failed_here(lock: impl LockAddress) {
    let pc = crate::__rip_lock_site!(KIND_LOCK_TRY_FAILED, "", [], [OPERAND_LOCK]);
    try_failed(lock, pc);
}

/// What [`rip_condition_wait!`](crate::rip_condition_wait) calls.
pub fn condition_wait(condition: impl LockAddress, lock: impl LockAddress, pc: u64) {
    CondWait::begin(Here, lock.address(), condition.address(), pc);
}

/// What [`rip_condition_woken!`](crate::rip_condition_woken) calls.
pub fn condition_woken(condition: impl LockAddress, lock: impl LockAddress, pc: u64) {
    CondWait::begun(Here, lock.address(), condition.address()).end(true, pc);
}

/// What [`rip_lock_destroyed!`](crate::rip_lock_destroyed) calls.
pub fn destroyed(lock: impl LockAddress, pc: u64) {
    let lock = lock.address();
    instance::unname_lock(lock);
    instance::request(Request::LOCK_DESTROYED, lock);
    if let Some(slot) = Slot::existing() {
        Here.event(slot, [], [lock], pc);
    }
}

/// What [`rip_lock_name!`](crate::rip_lock_name) calls.
pub fn name(lock: impl LockAddress, name: impl AsRef<str>) {
    instance::name_lock(lock.address(), name.as_ref().as_bytes());
}

/// Records the end of a lock.
#[inline(never)]
pub(crate) fn destroyed_here(slot: Slot, lock: u64) {
    let pc = crate::__rip_lock_site!(KIND_LOCK_DESTROYED, "", [], [OPERAND_LOCK]);
    Here.event(slot, [], [lock], pc);
}
