//! What a raw lock records around the one that it wraps.
//!
//! It knows no trait: locking is whatever a closure does, and what comes of it is `()` or a guard. Everything is
//! inlined into the program's functions, so that each call has sites of its own.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::panic::Location;

use crate::lock::table::{Entry, Slot};
use crate::lock::wrap::{Lending, Release, attempt, wrapper_site};
use librip_format::{
    HELD_HELD, HELD_SHARED, HELD_WAITING, LOCK_TYPE_MUTEX, LOCK_TYPE_RWLOCK, SITE_LOCK_TYPE_SHIFT,
    SITE_SHARED, SITE_TRY, SITE_UPGRADABLE,
};

/// The flags of a mutex.
pub(super) const MUTEX: u16 = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT;
/// The flags of a lock that is written.
pub(super) const WRITE: u16 = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT;
/// The flags of a lock that is read.
pub(super) const READ: u16 = WRITE | SITE_SHARED;
/// The flags of a lock that is read, past writers who wait.
#[cfg(feature = "lock_api")]
pub(super) const READ_FIRST: u16 = READ | librip_format::SITE_READERS_FIRST;
/// The flags of a lock that is read and may be upgraded.
pub(super) const UPGRADABLE: u16 = READ | SITE_UPGRADABLE;

type Here = &'static Location<'static>;

/// Locks, however long it takes.
#[inline(always)]
pub(super) fn lock<const FLAGS: u16, G>(
    lock: u64,
    here: Here,
    try_lock: impl FnOnce() -> Option<G>,
    wait: impl FnOnce() -> G,
) -> G {
    let attempt = attempt!(lock, FLAGS, here);
    if let Some(guard) = try_lock() {
        attempt.has();
        return guard;
    }
    let pc = wrapper_site!(KIND_LOCK_WAIT, FLAGS, [OPERAND_TIME, OPERAND_LOCK], here);
    let waiting = attempt.waits(lock, pc);
    let guard = wait();
    waiting.has();
    guard
}

/// Locks if the lock is free.
#[inline(always)]
pub(super) fn try_lock<const FLAGS: u16, G>(
    lock: u64,
    here: Here,
    try_lock: impl FnOnce() -> Option<G>,
) -> Option<G> {
    let attempt = attempt!(lock, FLAGS | SITE_TRY, here);
    if let Some(guard) = try_lock() {
        attempt.has();
        return Some(guard);
    }
    attempt.failed(lock, wrapper_site!(KIND_LOCK_TRY_FAILED, FLAGS | SITE_TRY, [OPERAND_LOCK], here));
    None
}

/// Locks unless it takes too long.
#[inline(always)]
pub(super) fn lock_in_time<const FLAGS: u16, G>(
    lock: u64,
    here: Here,
    try_lock: impl FnOnce() -> Option<G>,
    wait: impl FnOnce() -> Option<G>,
) -> Option<G> {
    let attempt = attempt!(lock, FLAGS | SITE_TRY, here);
    if let Some(guard) = try_lock() {
        attempt.has();
        return Some(guard);
    }
    let pc = wrapper_site!(KIND_LOCK_WAIT, FLAGS | SITE_TRY, [OPERAND_TIME, OPERAND_LOCK], here);
    let waiting = attempt.waits(lock, pc);
    if let Some(guard) = wait() {
        waiting.has();
        return Some(guard);
    }
    waiting.failed(lock, wrapper_site!(KIND_LOCK_TRY_FAILED, FLAGS | SITE_TRY, [OPERAND_LOCK], here));
    None
}

/// Unlocks.
#[inline(always)]
pub(super) fn unlock<const FLAGS: u16>(lock: u64, unlock: impl FnOnce()) {
    let release = Release::begin(lock);
    unlock();
    release.done(
        lock,
        #[inline(always)]
        || wrapper_site!(KIND_LOCK_RELEASED, FLAGS, [OPERAND_LOCK]),
        #[inline(always)]
        || wrapper_site!(KIND_LOCK_RELEASED, FLAGS, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]),
    );
}

/// Waits for a condition, without the lock. `FLAGS` has [`SITE_TRY`] if it waits for a limited time.
#[inline(always)]
pub(super) fn lend<const FLAGS: u16, T>(
    lock: u64,
    condition: u64,
    here: Here,
    wait: impl FnOnce() -> T,
) -> T {
    let pc = wrapper_site!(
        KIND_CONDITION_WAIT,
        MUTEX | FLAGS,
        [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION],
        here
    );
    let lending = Lending::begin(lock, condition, pc);
    let result = wait();
    lending.ends(wrapper_site!(
        KIND_CONDITION_WOKEN,
        MUTEX | FLAGS,
        [OPERAND_TIME, OPERAND_LOCK, OPERAND_CONDITION],
        here
    ));
    result
}

/// The lock that is held goes over to a lesser mode, without being given up.
#[inline(always)]
pub(super) fn downgrade<const FLAGS: u16, G>(lock: u64, here: Here, downgrade: impl FnOnce() -> G) -> G {
    // Before: nobody may be seen to share a lock that is said to be had alone.
    changed(lock, true, wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, FLAGS, [OPERAND_LOCK], here));
    downgrade()
}

/// An upgradable read becomes a write if that takes no waiting.
#[inline(always)]
pub(super) fn try_upgrade<G, U>(
    lock: u64,
    here: Here,
    upgrade: impl FnOnce() -> Result<G, U>,
) -> Result<G, U> {
    let guard = upgrade()?;
    changed(lock, false, wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, WRITE | SITE_TRY, [OPERAND_LOCK], here));
    Ok(guard)
}

/// An upgradable read becomes a write unless other readers stay for too long. `FLAGS` has [`SITE_TRY`] if there
/// is a limit.
#[inline(always)]
pub(super) fn upgrade<const FLAGS: u16, G, U, E>(
    lock: u64,
    here: Here,
    guard: U,
    try_upgrade: impl FnOnce(U) -> Result<G, U>,
    wait: impl FnOnce(U) -> Result<G, E>,
) -> Result<G, E> {
    let guard = match try_upgrade(guard) {
        Ok(guard) => {
            changed(lock, false, wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, WRITE | FLAGS, [OPERAND_LOCK], here));
            return Ok(guard);
        }
        Err(guard) => guard,
    };
    let pc = wrapper_site!(KIND_LOCK_WAIT, WRITE | FLAGS, [OPERAND_TIME, OPERAND_LOCK], here);
    let upgrading = Upgrading::begin(lock, pc);
    let result = wait(guard);
    upgrading.ends(result.is_ok());
    result
}

#[inline(never)]
fn changed(lock: u64, is_shared: bool, pc: u64) {
    let entry = Slot::current().and_then(|slot| slot.find(lock, |state| state == HELD_HELD));
    if let Some(mut entry) = entry {
        entry.set_pc(pc);
        entry.set_flag(HELD_SHARED, is_shared);
    }
}

/// A wait of a reader for the other readers to leave.
#[derive(Debug)]
struct Upgrading {
    /// As it was before, and as it is now.
    entries: Option<(Entry, Entry)>,
    since: u64,
}

impl Upgrading {
    #[cold]
    #[inline(never)]
    fn begin(lock: u64, pc: u64) -> Upgrading {
        let Some(slot) = Slot::current() else { return Upgrading { entries: None, since: 0 } };
        let time = slot.time();
        slot.event([time, lock], pc);
        let before = slot.find(lock, |state| state == HELD_HELD);
        let since = before.map_or(0, Entry::since);
        let entries = before.map(|before| {
            let mut entry = before;
            entry.set_state(HELD_WAITING);
            entry.set_since(time, 0);
            entry.set_pc(pc);
            entry.set_flag(HELD_SHARED, false);
            (before, entry)
        });
        Upgrading { entries, since }
    }

    #[inline(never)]
    fn ends(self, is_upgraded: bool) {
        let Some((before, mut entry)) = self.entries else { return };
        if is_upgraded {
            entry.set_state(HELD_HELD);
            entry.set_since(Slot::existing().map_or(0, Slot::time), 0);
        } else {
            entry.set_since(self.since, 0);
            entry.set_pc(before.pc());
            entry.set_flag(HELD_SHARED, true);
            entry.set_state(HELD_HELD);
        }
    }
}
