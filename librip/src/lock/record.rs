//! What a wrapper records around the lock that it wraps: `sync` and `raw` use it.
//!
//! It knows no lock's type: a closure acquires the lock, with the result types of the standard library and any guard.
//! Everything is inlined into the program's functions, so that each call has its own [`Sites`].

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::lock::blocked::{self, Blocked, Ends};
use crate::lock::protocol::{Acquisition, CondWait, FastRelease, Release, is_held};
use crate::lock::site::{Here, Origin, Sites};
use crate::lock::table::Slot;
use librip_format::HELD_SHARED;

/// A call has no site.
const NO_SITE: u64 = 0;

#[inline(always)]
fn begin<S: Sites>(sites: S, lock: u64) -> Acquisition {
    let flags = S::Origin::entry_flags(S::FLAGS);
    Acquisition::begin(
        sites.origin(),
        lock,
        flags,
        NO_SITE,
        #[inline(always)]
        || sites.acquire_begin_timed(),
    )
}

/// Tries again, for some hundred nanoseconds. `None` if the lock is still not free.
///
/// A lock that is held for a moment is free again by then. To record that wait would take longer than the wait, and
/// longer waits make more threads meet: two threads on one lock got half as far. The locks themselves spin too before
/// they sleep. So what ends meanwhile is no wait.
#[cold]
#[inline(never)]
fn tried_again<G>(try_lock: impl Fn() -> TryLockResult<G>) -> Option<LockResult<G>> {
    const TRIES: u32 = 8;
    (0..TRIES).find_map(|_| {
        core::hint::spin_loop();
        core::hint::spin_loop();
        match try_lock() {
            Ok(guard) => Some(Ok(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
            Err(TryLockError::WouldBlock) => None,
        }
    })
}

/// Locks, however long it takes. `map` makes a wrapper's guard of the lock's own.
#[inline(always)]
pub(crate) fn lock<S: Sites, G, H>(
    sites: S,
    lock: u64,
    try_lock: impl Fn() -> TryLockResult<G>,
    wait: impl FnOnce() -> LockResult<G>,
    map: impl Fn(G) -> H,
) -> LockResult<H> {
    let acquisition = begin(sites, lock);
    match try_lock() {
        Ok(guard) => {
            acquisition.acquired();
            Ok(map(guard))
        }
        Err(TryLockError::Poisoned(poisoned)) => {
            acquired_late(acquisition);
            Err(PoisonError::new(map(poisoned.into_inner())))
        }
        Err(TryLockError::WouldBlock) => {
            if let Some(result) = tried_again(try_lock) {
                acquired_late(acquisition);
                return mapped(result, map);
            }
            let waiting = Waiting(acquisition.begin_wait(
                sites.waiter(),
                lock,
                S::Origin::entry_flags(S::FLAGS),
                sites.wait_of_thread(),
            ));
            let result = wait();
            waiting.into_acquisition().acquired_after_wait();
            mapped(result, map)
        }
    }
}

/// Before a call that may run an initialiser. `is_running`: whether a thread seems to run it.
pub(crate) fn begin_once<S: Sites>(sites: S, lock: u64, is_running: bool) -> Acquisition {
    let acquisition = begin(sites, lock);
    if !is_running {
        return acquisition;
    }
    acquisition.begin_wait(sites.waiter(), lock, S::Origin::entry_flags(S::FLAGS), sites.wait_of_thread())
}

/// Maps the guard, whether the lock is poisoned or not.
#[inline(always)]
pub(crate) fn mapped<G, H>(result: LockResult<G>, map: impl FnOnce(G) -> H) -> LockResult<H> {
    match result {
        Ok(guard) => Ok(map(guard)),
        Err(poisoned) => Err(PoisonError::new(map(poisoned.into_inner()))),
    }
}

/// Locks if the lock is free. `map` is as in [`lock`].
#[inline(always)]
pub(crate) fn try_lock<S: Sites, G, H>(
    sites: S,
    lock: u64,
    try_lock: impl FnOnce() -> TryLockResult<G>,
    map: impl Fn(G) -> H,
) -> TryLockResult<H> {
    let acquisition = begin(sites, lock);
    match try_lock() {
        Ok(guard) => {
            acquisition.acquired();
            Ok(map(guard))
        }
        Err(TryLockError::Poisoned(poisoned)) => {
            acquired_late(acquisition);
            Err(TryLockError::Poisoned(PoisonError::new(map(poisoned.into_inner()))))
        }
        Err(TryLockError::WouldBlock) => {
            cold();
            acquisition.failed(sites.origin(), lock, sites.try_failed());
            Err(TryLockError::WouldBlock)
        }
    }
}

/// Says that the branch in which it is called is unlikely.
#[cold]
#[inline]
fn cold() {}

/// Not inlined, so that the usual way has no branch in it.
#[cold]
#[inline(never)]
fn acquired_late(acquisition: Acquisition) {
    acquisition.acquired();
}

/// Locks unless it takes too long.
#[cfg(any(feature = "lock_api", feature = "lock_api_05"))]
#[inline(always)]
pub(crate) fn lock_in_time<S: Sites, G>(
    sites: S,
    lock: u64,
    try_lock: impl FnOnce() -> Option<G>,
    wait: impl FnOnce() -> Option<G>,
) -> Option<G> {
    let acquisition = begin(sites, lock);
    if let Some(guard) = try_lock() {
        acquisition.acquired();
        return Some(guard);
    }
    let flags = S::Origin::entry_flags(S::FLAGS);
    let waiting = Waiting(acquisition.begin_wait(sites.waiter(), lock, flags, sites.wait_of_thread()));
    let guard = wait();
    let acquisition = waiting.into_acquisition();
    if guard.is_some() {
        acquisition.acquired_after_wait();
    } else {
        acquisition.failed(sites.origin(), lock, sites.try_failed());
    }
    guard
}

/// An acquisition that waits. If the lock's own code panics, the thread no longer waits.
struct Waiting(Acquisition);

impl Waiting {
    fn into_acquisition(self) -> Acquisition {
        let acquisition = self.0;
        core::mem::forget(self);
        acquisition
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.forget();
    }
}

/// Unlocks. `pc` and `pc_timed` are sites of the kind RELEASED.
#[inline(always)]
pub(crate) fn unlock(
    lock: u64,
    unlock: impl FnOnce(),
    pc: impl FnOnce() -> u64,
    pc_timed: impl FnOnce() -> u64,
) {
    let fast = FastRelease::begin(lock);
    let slow = if fast.is_some() { Release::of(None) } else { Release::begin(lock, true) };
    unlock();
    // One site for both ways.
    let pc = pc();
    FastRelease::done_or(fast, slow, Here, lock, pc, pc_timed);
}

/// Drops a guard, which unlocks. `pc` and `pc_timed` are as in [`unlock`].
///
/// Not inlined, so that the destructor that calls it is: if a compiler finds a destructor too large to inline, the
/// sites are in a place where no caller is known.
#[inline(never)]
pub(crate) fn drop_guard<G>(lock: u64, guard: G, pc: u64, pc_timed: u64) {
    unlock(lock, || drop(guard), || pc, || pc_timed);
}

/// Waits on a condition variable. `wait` releases the lock meanwhile.
#[inline(always)]
pub(crate) fn wait<S: Sites, T>(sites: S, lock: u64, condition: u64, wait: impl FnOnce() -> T) -> T {
    let waiting = CondWait::begin(sites.waiter(), lock, condition, sites.condition_wait());
    let waiting = waiting.with_origin(sites.origin());
    let result = wait();
    waiting.end(true, sites.condition_woken());
    result
}

/// Before a condition variable is signalled. `is_heard`: whether a thread may wait on it.
#[inline(always)]
pub(crate) fn signals<S: Sites>(sites: S, condition: u64, is_heard: bool) {
    if let Some(slot) = Slot::current() {
        let pc = if is_heard { sites.condition_signalled() } else { sites.condition_unheard() };
        sites.origin().event(slot, [], [condition], pc);
    }
}

/// Waits for something that nobody holds. `has_it` says of the result whether the thread has what it waited for.
#[inline(always)]
pub(crate) fn block<S: Sites, T>(
    sites: S,
    object: u64,
    wait: impl FnOnce() -> T,
    has_it: impl FnOnce(&T) -> bool,
) -> T {
    let blocked = Blocked::begin(sites.waiter(), object, S::FLAGS, sites.wait_of_thread());
    end_block(sites, object, Blocking(blocked), wait, has_it)
}

/// Waits at a barrier, a round of which takes so many threads.
#[inline(always)]
pub(crate) fn block_in_round<S: Sites, T>(
    sites: S,
    object: u64,
    threads: usize,
    wait: impl FnOnce() -> T,
) -> T {
    let blocked =
        Blocked::begin(sites.waiter(), object, S::FLAGS, sites.wait_of_thread()).in_round(threads as u64);
    end_block(sites, object, Blocking(blocked), wait, |_| true)
}

#[inline(always)]
fn end_block<S: Sites, T>(
    sites: S,
    object: u64,
    blocking: Blocking,
    wait: impl FnOnce() -> T,
    has_it: impl FnOnce(&T) -> bool,
) -> T {
    let result = wait();
    drop(blocking);
    let ends =
        Ends { has_it: sites.acquired(), has_it_timed: sites.acquired_timed(), failed: sites.try_failed() };
    blocked::tried(sites.origin(), object, has_it(&result), ends);
    result
}

/// A thread that blocks. If the wait panics, the thread no longer blocks.
struct Blocking(Blocked);

impl Drop for Blocking {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A held lock changes from exclusive to shared mode. It is not released.
pub(crate) fn downgraded(lock: u64) {
    let entry = Slot::current().and_then(|slot| slot.find(lock, is_held));
    if let Some(mut entry) = entry {
        entry.set_flag(HELD_SHARED, true);
    }
}
