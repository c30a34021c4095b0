//! How a lock is acquired, whatever its kind: the C library tries first, and waits only if the try fails.
//!
//! A try that succeeds does what the waiting function would have done. The waiting function is called whenever the try
//! fails, so that every other result is its own. No fairness is lost: the C library's locks let a newcomer pass the
//! threads that sleep. Where the two functions differ in more than waiting, there is no try ([`Manner::Direct`]).

use core::ffi::c_int;

use librip::interpose::{
    self, Acquisition, Caller, FastAcquisition, Flags, Recursion, Sites, StackPointer, begin_acquire,
    begin_wait, drop_stale_entries, holds_alone, owner_died,
};

use crate::incident;
use crate::object::Object;

/// A call that acquires a lock.
#[derive(Clone, Copy)]
pub(crate) struct Call<K> {
    pub(crate) lock: Object<K>,
    pub(crate) caller: Caller,
    pub(crate) on_relock: OnRelock,
    /// Whether several processes use the lock.
    pub(crate) is_process_shared: bool,
}

/// What the C library does if the thread already holds the lock.
#[derive(Clone, Copy)]
pub(crate) enum OnRelock {
    /// The same as if another thread held it.
    Nothing,
    /// It refuses, and does not wait.
    Refuses,
    /// The thread holds the lock once more.
    Recurses,
}

/// The C library's functions for a kind of lock.
pub(crate) trait Calls {
    type Kind: incident::Kind + Copy;
    /// What `try_lock` returns if the lock is not free.
    const BUSY: c_int;
    fn try_lock(lock: Object<Self::Kind>) -> c_int;
    fn lock(lock: Object<Self::Kind>) -> c_int;
}

/// Defines a type for [`Calls`]: `lock_calls!(NAME(KIND): TRY_LOCK, LOCK, BUSY)`, with functions of `real`.
macro_rules! lock_calls {
    ($name:ident($kind:ty): $try_lock:ident, $lock:ident, $busy:expr) => {
        enum $name {}

        impl $crate::acquire::Calls for $name {
            type Kind = $kind;
            const BUSY: ::core::ffi::c_int = $busy;

            #[inline(always)]
            fn try_lock(lock: $crate::object::Object<$kind>) -> ::core::ffi::c_int {
                $crate::real::$try_lock(lock)
            }

            #[inline(always)]
            fn lock(lock: $crate::object::Object<$kind>) -> ::core::ffi::c_int {
                $crate::real::$lock(lock)
            }
        }
    };
}
pub(crate) use lock_calls;

/// How the C library is called.
#[derive(Clone, Copy)]
pub(crate) enum Manner {
    TryFirst,
    /// At once with the program's own call. `seems_taken`: a thread held the lock a moment ago. If that has just
    /// changed, a wait is not recorded, or a wait is recorded that did not happen.
    Direct {
        seems_taken: bool,
    },
}

/// Acquires a lock. `wait` is the program's own call.
#[inline(always)]
pub(crate) fn acquire<C: Calls, const FLAGS: Flags>(
    call: Call<C::Kind>,
    manner: Manner,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let Call { caller, .. } = call;
    let lock = call.lock.address();
    let manner = match call.on_relock {
        OnRelock::Recurses => match Recursion::begin::<FLAGS>(lock, caller) {
            Some(recursion) => return recurse::<C::Kind, FLAGS>(recursion, call.lock, caller, wait()),
            None => manner,
        },
        OnRelock::Refuses if holds_alone(lock) => Manner::Direct { seems_taken: false },
        OnRelock::Refuses | OnRelock::Nothing => manner,
    };
    let mut acquisition = begin_acquire::<FLAGS>(lock, caller, call.is_process_shared);
    match manner {
        Manner::TryFirst => {
            let result = C::try_lock(call.lock);
            if result == 0 {
                drop_stale_entries::<FLAGS>(lock);
                acquisition.acquired();
                return 0;
            }
            acquire_slowly::<C, FLAGS>(acquisition, call, result, wait)
        }
        Manner::Direct { seems_taken } => {
            if seems_taken {
                acquisition = begin_wait::<FLAGS>(
                    acquisition,
                    lock,
                    caller,
                    call.is_process_shared,
                    StackPointer::here(),
                );
            }
            record_outcome::<C::Kind, FLAGS>(acquisition, call.lock, caller, wait())
        }
    }
}

/// The try did not succeed, or the owner of the lock has died.
#[cold]
#[inline(never)]
fn acquire_slowly<C: Calls, const FLAGS: Flags>(
    acquisition: Acquisition,
    call: Call<C::Kind>,
    result: c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let (lock, caller) = (call.lock.address(), call.caller);
    if result == libc::EOWNERDEAD {
        return record_outcome::<C::Kind, FLAGS>(acquisition, call.lock, caller, result);
    }
    let acquisition = if result == C::BUSY {
        begin_wait::<FLAGS>(acquisition, lock, caller, call.is_process_shared, StackPointer::here())
    } else {
        acquisition
    };
    record_outcome::<C::Kind, FLAGS>(acquisition, call.lock, caller, wait())
}

/// Records the result of the C library's function, and returns it.
#[inline(never)]
fn record_outcome<K: incident::Kind, const FLAGS: Flags>(
    acquisition: Acquisition,
    object: Object<K>,
    caller: Caller,
    result: c_int,
) -> c_int {
    let lock = object.address();
    if result != 0 {
        incident::not_acquired(object, caller, result);
    }
    match result {
        0 | libc::EOWNERDEAD => {
            if result == libc::EOWNERDEAD {
                owner_died(lock);
            }
            drop_stale_entries::<FLAGS>(lock);
            acquisition.acquired_after_wait();
        }
        _ => acquisition.failed(caller, lock, Sites::<FLAGS>::try_failed()),
    }
    result
}

#[inline(never)]
fn recurse<K: incident::Kind, const FLAGS: Flags>(
    recursion: Recursion,
    object: Object<K>,
    caller: Caller,
    result: c_int,
) -> c_int {
    if result == 0 {
        recursion.acquired();
    } else {
        incident::not_acquired(object, caller, result);
        recursion.failed::<FLAGS>(object.address(), caller);
    }
    result
}

/// Acquires a lock if it is free.
#[inline(always)]
pub(crate) fn try_acquire<C: Calls, const FLAGS: Flags>(call: Call<C::Kind>) -> c_int {
    let Call { caller, .. } = call;
    let lock = call.lock.address();
    if let OnRelock::Recurses = call.on_relock
        && let Some(recursion) = Recursion::begin::<FLAGS>(lock, caller)
    {
        return recurse::<C::Kind, FLAGS>(recursion, call.lock, caller, C::try_lock(call.lock));
    }
    let acquisition = begin_acquire::<FLAGS>(lock, caller, call.is_process_shared);
    let result = C::try_lock(call.lock);
    if result == 0 {
        drop_stale_entries::<FLAGS>(lock);
        acquisition.acquired();
        return 0;
    }
    record_outcome::<C::Kind, FLAGS>(acquisition, call.lock, caller, result)
}

/// Acquires a lock in the usual case: it is free. `otherwise` acquires it in all
/// other cases, and must not be inlined.
#[inline(always)]
pub(crate) fn acquire_fast<C: Calls, const FLAGS: Flags>(
    fast: Option<FastAcquisition>,
    lock: Object<C::Kind>,
    otherwise: impl FnOnce() -> c_int,
) -> c_int {
    let Some(fast) = fast else { return otherwise() };
    let result = C::try_lock(lock);
    if result == 0 {
        fast.acquired();
        return 0;
    }
    acquire_busy::<C, FLAGS>(fast, lock, result)
}

#[cold]
#[inline(never)]
fn acquire_busy<C: Calls, const FLAGS: Flags>(
    fast: FastAcquisition,
    lock: Object<C::Kind>,
    result: c_int,
) -> c_int {
    let (acquisition, caller) = fast.slow();
    // What matters of the call is what the entry would have, and it has an entry.
    let call = Call { lock, caller, on_relock: OnRelock::Nothing, is_process_shared: false };
    acquire_slowly::<C, FLAGS>(acquisition, call, result, move || C::lock(lock))
}

/// Releases a lock. `by_anyone`: whether a thread may release it that has not acquired it.
#[inline(always)]
pub(crate) fn release<K: incident::Kind, const FLAGS: Flags>(
    object: Object<K>,
    caller: Caller,
    by_anyone: impl FnOnce() -> bool,
    unlock: impl Fn() -> c_int,
) -> c_int {
    let refused = |result| incident::not_released(object, caller, result);
    interpose::release::<FLAGS>(object.address(), caller, by_anyone, unlock, refused)
}
