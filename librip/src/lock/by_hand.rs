//! What marks of locks by hand record: the functions behind the macros of [`marks`](crate::marks).
//!
//! They take no lock and know no lock's type. They write the event and keep the held-lock table; the program decides
//! what it marks, and where.

#![allow(unsafe_code, reason = "sites are assembly")]

use crate::lock::table::{Slot, held_flags};
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

/// Behind [`rip_lock_wait!`].
pub fn wait(lock: impl LockAddress, pc: u64, site_flags: u16) {
    let Some(slot) = Slot::current() else { return };
    let lock = lock.address();
    let time = slot.time();
    let sequence = slot.event([time, lock], pc);
    let is_attempt = |state| state == HELD_ACQUIRING || state == HELD_WAITING;
    let known = slot.find(lock, is_attempt);
    let Some(mut entry) = known.or_else(|| slot.enter_lock(lock, sequence, pc, held_flags(site_flags)))
    else {
        // It counts as one that is held beyond the table when it is acquired.
        slot.was_beyond();
        return;
    };
    entry.set_since(time, 0);
    entry.set_pc(pc);
    entry.set_state(HELD_WAITING);
}

/// Behind [`rip_lock_acquired!`].
#[inline(always)]
pub fn acquired(lock: impl LockAddress, pc: u64, pc_timed: u64, site_flags: u16) {
    let lock = lock.address();
    // What `librip.h` does in the same case.
    if let Some(slot) = Slot::existing()
        && !slot.times_all()
        && let Some(entry) = slot.only_free()
    {
        let sequence = slot.event([lock], pc);
        entry.enter(lock, sequence, pc, held_flags(site_flags)).change_state(HELD_ACQUIRING, HELD_HELD);
        return;
    }
    acquired_slowly(lock, pc, pc_timed, site_flags);
}

/// The thread's first event, or one with a time, or a thread that has or had several locks, or has waited for this one.
#[inline(never)]
pub(crate) fn acquired_slowly(lock: u64, pc: u64, pc_timed: u64, site_flags: u16) {
    let Some(slot) = Slot::current() else { return };
    if !slot.times_all()
        && let Some(entry) = slot.near_free_if_new(lock)
    {
        let sequence = slot.event([lock], pc);
        entry.enter(lock, sequence, pc, held_flags(site_flags)).change_state(HELD_ACQUIRING, HELD_HELD);
        return;
    }
    let (pc, time, sequence) = if slot.times_all() {
        let (pc, time) = (pc_timed, slot.time());
        (pc, time, slot.event([time, lock], pc))
    } else {
        (pc, 0, slot.event([lock], pc))
    };
    match slot.find(lock, |state| matches!(state, HELD_ACQUIRING | HELD_WAITING | HELD_HELD)) {
        Some(mut entry) if entry.state() == HELD_HELD => entry.set_since(entry.since(), entry.again() + 1),
        Some(mut entry) => {
            entry.set_pc(pc);
            entry.set_flag(HELD_SHARED, site_flags & SITE_SHARED != 0);
            entry.set_state(HELD_HELD);
            entry.set_since(time, 0);
        }
        None => {
            if let Some(mut entry) = slot.enter_lock(lock, sequence, pc, held_flags(site_flags)) {
                if time != 0 {
                    entry.set_since(time, 0);
                }
                entry.set_state(HELD_HELD);
            }
        }
    }
}

/// Behind [`rip_lock_released!`].
#[inline(always)]
pub fn released(lock: impl LockAddress, pc: u64, pc_timed: u64) {
    let lock = lock.address();
    if let Some(slot) = Slot::existing()
        && !slot.times_all()
        && slot.has_released_first(lock)
    {
        slot.event([lock], pc);
        return;
    }
    released_slowly(lock, pc, pc_timed);
}

/// A lock that is not the thread's first one, or whose time is known, or that this thread does not have.
#[inline(never)]
pub(crate) fn released_slowly(lock: u64, pc: u64, pc_timed: u64) {
    let Some(slot) = Slot::current() else { return };
    if !slot.times_all()
        && let Some(entry) = slot.near_releases(lock)
    {
        entry.entry().clear();
        slot.event([lock], pc);
        return;
    }
    let entry = slot.find(lock, |state| state != HELD_NONE && state != HELD_DESTROYED);
    let since = entry.map_or(0, |entry| entry.since());
    match entry {
        Some(mut entry) if entry.again() > 0 => entry.set_since(since, entry.again() - 1),
        Some(entry) => entry.clear(),
        // It was destroyed between its release and this mark.
        None => match slot.find(lock, |state| state == HELD_DESTROYED) {
            Some(entry) => entry.clear(),
            None => released_unknown(slot, lock),
        },
    }
    if since != 0 || slot.times_all() {
        slot.event([slot.time(), since, lock], pc_timed);
    } else {
        slot.event([lock], pc);
    }
}

/// A lock was given up that this thread does not have, by its table.
#[cold]
#[inline(never)]
pub(crate) fn released_unknown(slot: Slot, lock: u64) {
    if !slot.was_beyond() {
        instance::request(Request::LOCK_RELEASED, lock);
    }
}

/// Behind [`rip_lock_try_failed!`].
pub fn try_failed(lock: impl LockAddress, pc: u64) {
    let Some(slot) = Slot::current() else { return };
    let lock = lock.address();
    if let Some(entry) = slot.find(lock, |state| matches!(state, HELD_ACQUIRING | HELD_WAITING)) {
        entry.clear();
    }
    slot.event([lock], pc);
}

/// Behind [`rip_lock_destroyed!`].
pub fn destroyed(lock: impl LockAddress) {
    let lock = lock.address();
    instance::name_lock(lock, b"");
    instance::request(Request::LOCK_DESTROYED, lock);
    if let Some(slot) = Slot::existing() {
        destroyed_here(slot, lock);
    }
}

/// Behind [`rip_lock_name!`].
pub fn name(lock: impl LockAddress, name: impl AsRef<str>) {
    instance::name_lock(lock.address(), name.as_ref().as_bytes());
}

/// Records that a lock ends.
#[inline(never)]
pub(crate) fn destroyed_here(slot: Slot, lock: u64) {
    let pc = crate::__rip_lock_site!(KIND_LOCK_DESTROYED, [], [OPERAND_LOCK]);
    slot.event([lock], pc);
}
