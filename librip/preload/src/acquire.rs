//! What taking a lock is, whatever the lock: the C library is asked to try first, and only where that fails is it asked to
//! wait.
//!
//! A try that succeeds does what the other function would have done; the one that waits is asked whenever the try does
//! not succeed, so that every other answer is its own. No fairness is lost: the C library's locks let whoever comes
//! pass those who sleep. Where the two functions differ in more than waiting, there is no try ([`Manner::Looks`]).

use core::ffi::c_int;

use librip::interpose::{Again, Attempt, Flags, Plain, Release, holds_alone, owner_died};

use crate::{Pointer, address};

/// A call that takes a lock.
#[derive(Clone, Copy)]
pub(crate) struct Taking {
    pub(crate) lock: Pointer,
    pub(crate) caller: u64,
    pub(crate) if_had: IfHad,
    /// Whether the lock is for several processes.
    pub(crate) is_process_shared: bool,
}

/// What happens if the thread has the lock already.
#[derive(Clone, Copy)]
pub(crate) enum IfHad {
    /// It waits for itself, or has the lock twice.
    NothingElse,
    /// It is refused, and does not wait.
    IsRefused,
    /// It has it once more.
    HasAgain,
}

/// The C library's functions for a kind of lock.
pub(crate) trait Calls {
    /// What `try_lock` answers when the lock is taken.
    const BUSY: c_int;
    fn try_lock(lock: Pointer) -> c_int;
    fn lock(lock: Pointer) -> c_int;
}

/// Defines a type for [`Calls`]: `lock_calls!(NAME: TRY_LOCK, LOCK, BUSY)`, the functions by their names in `real`.
macro_rules! lock_calls {
    ($name:ident: $try_lock:ident, $lock:ident, $busy:expr) => {
        enum $name {}

        impl $crate::acquire::Calls for $name {
            const BUSY: ::core::ffi::c_int = $busy;

            #[inline(always)]
            fn try_lock(lock: $crate::Pointer) -> ::core::ffi::c_int {
                // SAFETY: callers pass on what the program has passed.
                unsafe { $crate::real::$try_lock(lock) }
            }

            #[inline(always)]
            fn lock(lock: $crate::Pointer) -> ::core::ffi::c_int {
                // SAFETY: callers pass on what the program has passed.
                unsafe { $crate::real::$lock(lock) }
            }
        }
    };
}
pub(crate) use lock_calls;

/// How the C library is asked.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    /// To try first.
    Tries,
    /// At once to do what the program wants. `seems_taken`: somebody had the lock a moment ago. If that has just changed, a
    /// wait is not seen, or one is that was none.
    Looks { seems_taken: bool },
}

/// Takes a lock in any case.
#[inline(always)]
pub(crate) fn acquire<C: Calls, const FLAGS: Flags>(
    taking: Taking,
    manner: Manner,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let Taking { caller, .. } = taking;
    let lock = address(taking.lock);
    let manner = match taking.if_had {
        IfHad::HasAgain => match Again::begin::<FLAGS>(lock, caller) {
            Some(again) => return once_more::<FLAGS>(again, lock, caller, wait()),
            None => manner,
        },
        IfHad::IsRefused if holds_alone(lock) => Manner::Looks { seems_taken: false },
        IfHad::IsRefused | IfHad::NothingElse => manner,
    };
    let mut attempt = Attempt::begin::<FLAGS>(lock, caller, taking.is_process_shared);
    match manner {
        Manner::Tries => {
            let result = C::try_lock(taking.lock);
            if result == 0 {
                attempt.has::<FLAGS>(lock);
                return 0;
            }
            acquire_slowly::<C, FLAGS>(attempt, lock, caller, result, wait)
        }
        Manner::Looks { seems_taken } => {
            if seems_taken {
                attempt = attempt.waits::<FLAGS>(lock, caller);
            }
            came_of_it::<FLAGS>(attempt, lock, caller, wait())
        }
    }
}

/// The lock was tried in vain, or was got from a dead owner.
#[cold]
#[inline(never)]
fn acquire_slowly<C: Calls, const FLAGS: Flags>(
    attempt: Attempt,
    lock: u64,
    caller: u64,
    result: c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    if result == libc::EOWNERDEAD {
        return came_of_it::<FLAGS>(attempt, lock, caller, result);
    }
    let attempt = if result == C::BUSY { attempt.waits::<FLAGS>(lock, caller) } else { attempt };
    came_of_it::<FLAGS>(attempt, lock, caller, wait())
}

/// Records what a lock's own function answered, and returns that.
#[inline(never)]
fn came_of_it<const FLAGS: Flags>(attempt: Attempt, lock: u64, caller: u64, result: c_int) -> c_int {
    match result {
        0 => attempt.has_waited::<FLAGS>(lock),
        libc::EOWNERDEAD => {
            owner_died(lock);
            attempt.has_waited::<FLAGS>(lock);
        }
        _ => attempt.failed::<FLAGS>(lock, caller),
    }
    result
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
pub(crate) fn try_acquire<C: Calls, const FLAGS: Flags>(taking: Taking) -> c_int {
    let Taking { caller, .. } = taking;
    let lock = address(taking.lock);
    if let IfHad::HasAgain = taking.if_had
        && let Some(again) = Again::begin::<FLAGS>(lock, caller)
    {
        return once_more::<FLAGS>(again, lock, caller, C::try_lock(taking.lock));
    }
    let attempt = Attempt::begin::<FLAGS>(lock, caller, taking.is_process_shared);
    let result = C::try_lock(taking.lock);
    if result == 0 {
        attempt.has::<FLAGS>(lock);
        return 0;
    }
    came_of_it::<FLAGS>(attempt, lock, caller, result)
}

/// Takes a lock in the case that nearly all cases are: it is free, and the thread has one other at most. `otherwise` does
/// it in any other case, and is not to be inlined.
#[inline(always)]
pub(crate) fn acquire_plain<C: Calls, const FLAGS: Flags>(
    plain: Option<Plain>,
    lock: Pointer,
    otherwise: impl FnOnce() -> c_int,
) -> c_int {
    let Some(plain) = plain else { return otherwise() };
    let result = C::try_lock(lock);
    if result == 0 {
        plain.has();
        return 0;
    }
    busy_plain::<C, FLAGS>(plain, lock, result)
}

#[cold]
#[inline(never)]
fn busy_plain<C: Calls, const FLAGS: Flags>(plain: Plain, lock: Pointer, result: c_int) -> c_int {
    let (attempt, caller) = plain.attempt();
    acquire_slowly::<C, FLAGS>(attempt, address(lock), caller, result, move || C::lock(lock))
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
