//! What a raw lock records besides what all wrappers do: releases, and changes between modes.
//!
//! It knows no trait: a closure changes the lock, and the result is `()` or a guard. Everything is inlined into the
//! program's functions, so that each call has its own sites.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::convert::identity;
use std::sync::{PoisonError, TryLockError};

use crate::lock::protocol::is_held;
use crate::lock::record;
use crate::lock::site::{Flags, Origin, Sites, define_sites, wrapper_site};
use crate::lock::table::{Entry, Slot};
use librip_format::{
    HELD_HELD, HELD_WAITING, LOCK_TYPE_MUTEX, LOCK_TYPE_RWLOCK, SITE_LOCK_TYPE_SHIFT, SITE_SHARED,
    SITE_UPGRADABLE,
};

pub(super) const MUTEX: Flags = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT;
/// A readers-writer lock in exclusive mode.
pub(super) const WRITE: Flags = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT;
/// A readers-writer lock in shared mode.
pub(super) const READ: Flags = WRITE | SITE_SHARED;
/// A readers-writer lock in shared mode, whose readers pass waiting writers.
pub(super) const READ_FIRST: Flags = READ | librip_format::SITE_READERS_FIRST;
/// A readers-writer lock in shared mode, which may be upgraded.
pub(super) const UPGRADABLE: Flags = READ | SITE_UPGRADABLE;

define_sites!(RawSites);

/// Locks, however long it takes.
#[inline(always)]
pub(super) fn lock<S: Sites, G>(
    sites: S,
    lock: u64,
    try_lock: impl Fn() -> Option<G>,
    wait: impl FnOnce() -> G,
) -> G {
    let try_lock = || try_lock().ok_or(TryLockError::WouldBlock);
    record::lock(sites, lock, try_lock, || Ok(wait()), identity).unwrap_or_else(PoisonError::into_inner)
}

/// Locks if the lock is free.
#[inline(always)]
pub(super) fn try_lock<S: Sites, G>(sites: S, lock: u64, try_lock: impl FnOnce() -> Option<G>) -> Option<G> {
    record::try_lock(sites, lock, || try_lock().ok_or(TryLockError::WouldBlock), identity).ok()
}

#[inline(always)]
pub(super) fn unlock<const FLAGS: Flags>(lock: u64, unlock: impl FnOnce()) {
    record::unlock(
        lock,
        unlock,
        #[inline(always)]
        || wrapper_site!(KIND_LOCK_RELEASED, FLAGS, [OPERAND_LOCK]),
        #[inline(always)]
        || wrapper_site!(KIND_LOCK_RELEASED, FLAGS, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]),
    );
}

/// Changes the mode of a held lock from exclusive to a lesser one. The lock is not released.
#[inline(always)]
pub(super) fn downgrade<S: Sites, G>(sites: S, lock: u64, downgrade: impl FnOnce() -> G) -> G {
    // Before: another thread must not appear to share a lock that is recorded as held in exclusive mode.
    set_mode(sites.origin(), lock, S::FLAGS);
    downgrade()
}

/// Upgrades an upgradable read to a write if that takes no waiting.
#[inline(always)]
pub(super) fn try_upgrade<S: Sites, G, U>(
    sites: S,
    lock: u64,
    upgrade: impl FnOnce() -> Result<G, U>,
) -> Result<G, U> {
    let guard = upgrade()?;
    set_mode(sites.origin(), lock, S::FLAGS);
    Ok(guard)
}

/// Upgrades an upgradable read to a write, unless other readers stay for too long.
#[inline(always)]
pub(super) fn upgrade<S: Sites, G, U, E>(
    sites: S,
    lock: u64,
    guard: U,
    try_upgrade: impl FnOnce(U) -> Result<G, U>,
    wait: impl FnOnce(U) -> Result<G, E>,
) -> Result<G, E> {
    let guard = match try_upgrade(guard) {
        Ok(guard) => {
            set_mode(sites.origin(), lock, S::FLAGS);
            return Ok(guard);
        }
        Err(guard) => guard,
    };
    let upgrading = Upgrading::begin(sites.waiter(), lock, S::FLAGS, sites.wait_of_thread());
    let result = wait(guard);
    upgrading.end(result.is_ok());
    result
}

/// A held lock has another mode from now on, and this call is where it was acquired.
#[inline(never)]
fn set_mode<O: Origin>(origin: O, lock: u64, site_flags: Flags) {
    let entry = Slot::current().and_then(|slot| slot.find(lock, is_held));
    if let Some(mut entry) = entry {
        set_call(&mut entry, origin, site_flags);
    }
}

fn set_call<O: Origin>(entry: &mut Entry, origin: O, site_flags: Flags) {
    // A mark by hand has no call.
    if entry.is_call() == O::IS_CALL {
        entry.set_place(origin.entry_pc(0), O::entry_flags(site_flags));
    }
}

/// A reader that waits for the other readers to release the lock.
#[derive(Debug)]
struct Upgrading {
    /// As it was before, and as it is now.
    entries: Option<(Entry, Entry)>,
    since: u64,
}

impl Upgrading {
    #[cold]
    #[inline(never)]
    fn begin<O: Origin>(origin: O, lock: u64, site_flags: Flags, pc: u64) -> Upgrading {
        let Some(slot) = Slot::current() else { return Upgrading { entries: None, since: 0 } };
        origin.note(slot);
        let time = slot.time();
        origin.event(slot, [time], [lock], pc);
        let before = slot.find(lock, is_held);
        let since = before.map_or(0, Entry::since);
        let entries = before.map(|before| {
            let mut entry = before;
            entry.set_state(HELD_WAITING);
            entry.set_since(time, 0);
            set_call(&mut entry, origin, site_flags);
            (before, entry)
        });
        Upgrading { entries, since }
    }

    #[inline(never)]
    fn end(self, is_upgraded: bool) {
        let Some((before, mut entry)) = self.entries else { return };
        if is_upgraded {
            entry.set_state(HELD_HELD);
            entry.set_since(Slot::existing().map_or(0, Slot::time), 0);
        } else {
            entry.set_since(self.since, 0);
            entry.set_place(before.pc(), before.flags());
            entry.set_state(HELD_HELD);
        }
    }
}
