//! What taking a lock is, whatever the lock: the C library is asked to try first, and only where that fails is it asked to
//! wait.
//!
//! A try that succeeds does what the other function would have done; the one that waits is asked whenever the try does
//! not succeed, so that every other answer is its own. No fairness is lost: the C library's locks let whoever comes
//! pass those who sleep. Where the two functions differ in more than waiting, `acquire_unasked` leaves the try out.

use core::ffi::c_int;

use librip::interpose::{Again, Attempt, Flags, Plain, Release, holds_alone, owner_died};

use crate::Pointer;

/// Takes a lock.
///
/// `busy` is what `try_lock` answers when the lock is taken.
#[inline(always)]
pub(crate) fn acquire<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    busy: c_int,
    try_lock: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let attempt = Attempt::begin::<FLAGS>(lock, caller);
    let result = try_lock();
    if result == 0 {
        attempt.has();
        return 0;
    }
    acquire_slowly::<FLAGS>(attempt, lock, caller, busy, result, wait)
}

#[cold]
#[inline(never)]
fn acquire_slowly<const FLAGS: Flags>(
    attempt: Attempt,
    lock: u64,
    caller: u64,
    busy: c_int,
    result: c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    if result == libc::EOWNERDEAD {
        owner_died(lock);
        attempt.has_waited();
        return result;
    }
    let attempt = if result == busy { attempt.waits::<FLAGS>(lock, caller) } else { attempt };
    let result = wait();
    came_of_it::<FLAGS>(attempt, lock, caller, result);
    result
}

/// Records what a lock's own function answered.
#[inline(never)]
fn came_of_it<const FLAGS: Flags>(attempt: Attempt, lock: u64, caller: u64, result: c_int) {
    match result {
        0 => attempt.has_waited(),
        libc::EOWNERDEAD => {
            owner_died(lock);
            attempt.has_waited();
        }
        _ => attempt.failed::<FLAGS>(lock, caller),
    }
}

/// Takes a lock without trying first, because the C library's two functions answer differently. `seems_taken`: somebody
/// had it a moment ago. If that has just changed, a wait is not seen, or one is that was none.
#[inline(never)]
pub(crate) fn acquire_unasked<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    seems_taken: bool,
    take: impl FnOnce() -> c_int,
) -> c_int {
    let mut attempt = Attempt::begin::<FLAGS>(lock, caller);
    if seems_taken {
        attempt = attempt.waits::<FLAGS>(lock, caller);
    }
    let result = take();
    came_of_it::<FLAGS>(attempt, lock, caller, result);
    result
}

/// Takes a lock which refuses the thread that has it: such a thread does not wait.
#[inline(always)]
pub(crate) fn acquire_checked<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    busy: c_int,
    try_lock: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    if holds_alone(lock) {
        return acquire_unasked::<FLAGS>(lock, caller, false, wait);
    }
    acquire::<FLAGS>(lock, caller, busy, try_lock, wait)
}

/// Takes a lock that the thread may have already, and may have again.
#[inline(always)]
pub(crate) fn acquire_again<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    busy: c_int,
    try_lock: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    match Again::begin::<FLAGS>(lock, caller) {
        Some(again) => once_more::<FLAGS>(again, lock, caller, wait()),
        None => acquire::<FLAGS>(lock, caller, busy, try_lock, wait),
    }
}

/// The same without trying first.
#[inline(always)]
pub(crate) fn acquire_again_unasked<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    seems_taken: bool,
    take: impl FnOnce() -> c_int,
) -> c_int {
    match Again::begin::<FLAGS>(lock, caller) {
        Some(again) => once_more::<FLAGS>(again, lock, caller, take()),
        None => acquire_unasked::<FLAGS>(lock, caller, seems_taken, take),
    }
}

#[inline(never)]
fn once_more<const FLAGS: Flags>(again: Again, lock: u64, caller: u64, result: c_int) -> c_int {
    if result == 0 {
        again.has();
    } else {
        again.failed::<FLAGS>(lock, caller);
    }
    result
}

/// Takes a lock if it is free.
#[inline(always)]
pub(crate) fn try_acquire<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    try_lock: impl FnOnce() -> c_int,
) -> c_int {
    let attempt = Attempt::begin::<FLAGS>(lock, caller);
    let result = try_lock();
    if result == 0 {
        attempt.has();
    } else {
        came_of_it::<FLAGS>(attempt, lock, caller, result);
    }
    result
}

/// The same of a lock that the thread may have already, and may have again.
#[inline(always)]
pub(crate) fn try_acquire_again<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    try_lock: impl FnOnce() -> c_int,
) -> c_int {
    match Again::begin::<FLAGS>(lock, caller) {
        Some(again) => once_more::<FLAGS>(again, lock, caller, try_lock()),
        None => try_acquire::<FLAGS>(lock, caller, try_lock),
    }
}

/// The same as [`acquire`], for the case that nearly all cases are: a lock that is free, taken by a thread that has one
/// other at most. `otherwise` does it in any other case, and is not to be inlined.
#[inline(always)]
pub(crate) fn acquire_plain<const FLAGS: Flags>(
    plain: Option<Plain>,
    lock: Pointer,
    busy: c_int,
    try_lock: impl FnOnce(Pointer) -> c_int,
    wait: impl FnOnce(Pointer) -> c_int,
    otherwise: impl FnOnce() -> c_int,
) -> c_int {
    let Some(plain) = plain else { return otherwise() };
    let result = try_lock(lock);
    if result == 0 {
        plain.has();
        return 0;
    }
    busy_plain::<FLAGS>(plain, busy, result, wait)
}

#[cold]
#[inline(never)]
fn busy_plain<const FLAGS: Flags>(
    plain: Plain,
    busy: c_int,
    result: c_int,
    wait: impl FnOnce(Pointer) -> c_int,
) -> c_int {
    let (attempt, lock, caller) = plain.attempt();
    // The pointer that the program has passed: no address of a program has more bits than the table keeps.
    let pointer = core::ptr::with_exposed_provenance_mut(lock as usize);
    acquire_slowly::<FLAGS>(attempt, lock, caller, busy, result, move || wait(pointer))
}

/// Gives a lock up. `by_anyone`: whether a thread may do so that has not taken it.
#[inline(always)]
pub(crate) fn release<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    by_anyone: impl FnOnce() -> bool,
    unlock: impl Fn() -> c_int,
) -> c_int {
    if let Some(plain) = Plain::releases(lock) {
        let result = unlock();
        if result == 0 {
            plain.released::<FLAGS>(caller);
        } else {
            plain.kept();
        }
        return result;
    }
    release_otherwise::<FLAGS>(lock, caller, by_anyone, unlock)
}

#[inline(never)]
fn release_otherwise<const FLAGS: Flags>(
    lock: u64,
    caller: u64,
    by_anyone: impl FnOnce() -> bool,
    unlock: impl Fn() -> c_int,
) -> c_int {
    let release = Release::begin(lock, by_anyone());
    let result = unlock();
    if result == 0 {
        release.done::<FLAGS>(lock, caller);
    } else {
        release.failed();
    }
    result
}
