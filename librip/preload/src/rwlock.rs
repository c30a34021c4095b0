//! Readers-writer locks.

use core::ffi::c_int;

use librip::interpose::{
    Caller, FastAcquisition, Flags, LastHolder, READ, READ_FIRST, READ_FIRST_TRY, READ_TRY, WRITE, WRITE_TRY,
    destroyed, initialised,
};

use crate::acquire::{
    Call, Calls, Manner, OnRelock, acquire, acquire_fast, lock_calls, release, try_acquire,
};
use crate::object::{Attributes, Deadline, Object, Rwlock};
use crate::real;

lock_calls!(Read(Rwlock): pthread_rwlock_tryrdlock, pthread_rwlock_rdlock, libc::EBUSY);
lock_calls!(Write(Rwlock): pthread_rwlock_trywrlock, pthread_rwlock_wrlock, libc::EBUSY);

/// A call that acquires a lock. If the thread holds it in exclusive mode, the C library refuses.
fn call(rwlock: Object<Rwlock>, caller: Caller) -> Call<Rwlock> {
    let is_process_shared = rwlock.is_process_shared();
    Call { lock: rwlock, caller, on_relock: OnRelock::Refuses, is_process_shared }
}

#[inline(always)]
fn lock<C: Calls<Kind = Rwlock>, const FLAGS: Flags>(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    let otherwise = move || lock_slowly::<C, FLAGS>(rwlock, caller);
    if rwlock.is_process_shared() {
        return otherwise();
    }
    let fast = FastAcquisition::begin_if_new::<FLAGS>(rwlock.address(), caller);
    acquire_fast::<C, FLAGS>(fast, rwlock, otherwise)
}

#[inline(never)]
fn lock_slowly<C: Calls<Kind = Rwlock>, const FLAGS: Flags>(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    acquire::<C, FLAGS>(call(rwlock, caller), Manner::TryFirst, move || C::lock(rwlock))
}

/// Locks. `wait` has a time limit, which `is_valid` or not.
#[inline(always)]
fn lock_in_time<C: Calls<Kind = Rwlock>, const FLAGS: Flags>(
    rwlock: Object<Rwlock>,
    caller: Caller,
    is_valid: bool,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let manner = if is_valid { Manner::TryFirst } else { Manner::Direct { seems_taken: false } };
    acquire::<C, FLAGS>(call(rwlock, caller), manner, wait)
}

/// Whether the C library accepts a time limit. It checks that even if the lock is free.
fn is_valid(until: Deadline, clock: c_int) -> bool {
    matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) && until.is_valid()
}

pub(crate) extern "C-unwind" fn rdlock(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    if rwlock.has_readers_first() {
        lock::<Read, READ_FIRST>(rwlock, caller)
    } else {
        lock::<Read, READ>(rwlock, caller)
    }
}

pub(crate) extern "C-unwind" fn tryrdlock(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    if rwlock.has_readers_first() {
        try_acquire::<Read, READ_FIRST_TRY>(call(rwlock, caller))
    } else {
        try_acquire::<Read, READ_TRY>(call(rwlock, caller))
    }
}

pub(crate) extern "C-unwind" fn timedrdlock(
    rwlock: Object<Rwlock>,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::pthread_rwlock_timedrdlock(rwlock, until);
    read_in_time(rwlock, caller, is_valid(until, libc::CLOCK_REALTIME), wait)
}

pub(crate) extern "C-unwind" fn clockrdlock(
    rwlock: Object<Rwlock>,
    clock: c_int,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::pthread_rwlock_clockrdlock(rwlock, clock, until);
    read_in_time(rwlock, caller, is_valid(until, clock), wait)
}

fn read_in_time(
    rwlock: Object<Rwlock>,
    caller: Caller,
    is_valid: bool,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    if rwlock.has_readers_first() {
        lock_in_time::<Read, READ_FIRST_TRY>(rwlock, caller, is_valid, wait)
    } else {
        lock_in_time::<Read, READ_TRY>(rwlock, caller, is_valid, wait)
    }
}

pub(crate) extern "C-unwind" fn wrlock(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    lock::<Write, WRITE>(rwlock, caller)
}

pub(crate) extern "C-unwind" fn trywrlock(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    try_acquire::<Write, WRITE_TRY>(call(rwlock, caller))
}

pub(crate) extern "C-unwind" fn timedwrlock(
    rwlock: Object<Rwlock>,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::pthread_rwlock_timedwrlock(rwlock, until);
    lock_in_time::<Write, WRITE_TRY>(rwlock, caller, is_valid(until, libc::CLOCK_REALTIME), wait)
}

pub(crate) extern "C-unwind" fn clockwrlock(
    rwlock: Object<Rwlock>,
    clock: c_int,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::pthread_rwlock_clockwrlock(rwlock, clock, until);
    lock_in_time::<Write, WRITE_TRY>(rwlock, caller, is_valid(until, clock), wait)
}

pub(crate) extern "C-unwind" fn unlock(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    release::<Rwlock, WRITE>(rwlock, caller, || true, move || real::pthread_rwlock_unlock(rwlock))
}

pub(crate) extern "C-unwind" fn destroy(rwlock: Object<Rwlock>, caller: Caller) -> c_int {
    let holder = if rwlock.is_taken() { LastHolder::Certain } else { LastHolder::None };
    let result = real::pthread_rwlock_destroy(rwlock);
    if result == 0 {
        destroyed::<WRITE>(rwlock.address(), caller, holder);
    }
    result
}

pub(crate) extern "C-unwind" fn init(
    rwlock: Object<Rwlock>,
    attributes: Attributes,
    caller: Caller,
) -> c_int {
    let writer = rwlock.writer();
    let result = real::pthread_rwlock_init(rwlock, attributes);
    if result == 0 {
        initialised::<WRITE>(rwlock.address(), caller, writer);
    }
    result
}
