//! Readers-writer locks.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use librip::interpose::{
    Flags, Plain, READ, READ_FIRST, READ_FIRST_TRY, READ_TRY, WRITE, WRITE_TRY, destroyed,
};

use crate::acquire::{
    Calls, IfHad, Manner, Taking, acquire, acquire_plain, lock_calls, release, try_acquire,
};
use crate::{Pointer, address, real};

/// Whether readers who come pass writers who wait: so it is unless the lock's kind is
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`, which glibc keeps in the lock, at a place that initialisers
/// have compiled into programs.
#[inline(always)]
fn passes_writers(rwlock: Pointer) -> bool {
    const WRITERS_FIRST: u32 = 2;
    word(rwlock, 48) != WRITERS_FIRST
}

/// Whether several processes use the lock, which glibc keeps in it as well.
#[inline(always)]
fn is_process_shared(rwlock: Pointer) -> bool {
    word(rwlock, 28) != 0
}

/// What glibc keeps in a lock from its initialisation on.
#[inline(always)]
fn word(rwlock: Pointer, at: usize) -> u32 {
    let word = rwlock.wrapping_byte_add(at).cast::<u32>();
    // SAFETY: within the lock; a program that passes none faults here instead of in the C library.
    let word = unsafe { AtomicU32::from_ptr(word) };
    // ORDERING: relaxed: it does not change while the lock is in use.
    word.load(Relaxed)
}

/// Whether a time makes sense to the C library, which looks at it even where the lock is free.
fn is_sound(until: Pointer, clock: c_int) -> bool {
    if until.is_null() || !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
        return false;
    }
    // SAFETY: the C library reads it too, before anything else.
    let until = unsafe { until.cast::<libc::timespec>().read_unaligned() };
    (0..1_000_000_000).contains(&until.tv_nsec)
}

lock_calls!(Read: pthread_rwlock_tryrdlock, pthread_rwlock_rdlock, libc::EBUSY);
lock_calls!(Write: pthread_rwlock_trywrlock, pthread_rwlock_wrlock, libc::EBUSY);

/// A call that takes a lock. A thread that has it alone is refused, and does not wait.
fn taking(rwlock: Pointer, caller: u64) -> Taking {
    let is_process_shared = is_process_shared(rwlock);
    Taking { lock: rwlock, caller, if_had: IfHad::IsRefused, is_process_shared }
}

#[inline(always)]
fn lock<C: Calls, const FLAGS: Flags>(rwlock: Pointer, caller: u64) -> c_int {
    let otherwise = move || lock_slowly::<C, FLAGS>(rwlock, caller);
    if is_process_shared(rwlock) {
        return otherwise();
    }
    let plain = Plain::takes_if_new::<FLAGS>(address(rwlock), caller);
    acquire_plain::<C, FLAGS>(plain, rwlock, otherwise)
}

#[inline(never)]
fn lock_slowly<C: Calls, const FLAGS: Flags>(rwlock: Pointer, caller: u64) -> c_int {
    acquire::<C, FLAGS>(taking(rwlock, caller), Manner::Tries, move || C::lock(rwlock))
}

/// The same where the wait ends after a time.
#[inline(always)]
fn lock_in_time<C: Calls, const FLAGS: Flags>(
    rwlock: Pointer,
    caller: u64,
    is_sound: bool,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let manner = if is_sound { Manner::Tries } else { Manner::Looks { seems_taken: false } };
    acquire::<C, FLAGS>(taking(rwlock, caller), manner, wait)
}

pub(crate) unsafe extern "C-unwind" fn rdlock(rwlock: Pointer, caller: u64) -> c_int {
    if passes_writers(rwlock) {
        lock::<Read, READ_FIRST>(rwlock, caller)
    } else {
        lock::<Read, READ>(rwlock, caller)
    }
}

pub(crate) unsafe extern "C-unwind" fn tryrdlock(rwlock: Pointer, caller: u64) -> c_int {
    if passes_writers(rwlock) {
        try_acquire::<Read, READ_FIRST_TRY>(taking(rwlock, caller))
    } else {
        try_acquire::<Read, READ_TRY>(taking(rwlock, caller))
    }
}

pub(crate) unsafe extern "C-unwind" fn timedrdlock(rwlock: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_timedrdlock(rwlock, until) };
    read_in_time(rwlock, caller, is_sound(until, libc::CLOCK_REALTIME), wait)
}

pub(crate) unsafe extern "C-unwind" fn clockrdlock(
    rwlock: Pointer,
    clock: c_int,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_clockrdlock(rwlock, clock, until) };
    read_in_time(rwlock, caller, is_sound(until, clock), wait)
}

fn read_in_time(rwlock: Pointer, caller: u64, is_sound: bool, wait: impl FnOnce() -> c_int) -> c_int {
    if passes_writers(rwlock) {
        lock_in_time::<Read, READ_FIRST_TRY>(rwlock, caller, is_sound, wait)
    } else {
        lock_in_time::<Read, READ_TRY>(rwlock, caller, is_sound, wait)
    }
}

pub(crate) unsafe extern "C-unwind" fn wrlock(rwlock: Pointer, caller: u64) -> c_int {
    lock::<Write, WRITE>(rwlock, caller)
}

pub(crate) unsafe extern "C-unwind" fn trywrlock(rwlock: Pointer, caller: u64) -> c_int {
    try_acquire::<Write, WRITE_TRY>(taking(rwlock, caller))
}

pub(crate) unsafe extern "C-unwind" fn timedwrlock(rwlock: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_timedwrlock(rwlock, until) };
    lock_in_time::<Write, WRITE_TRY>(rwlock, caller, is_sound(until, libc::CLOCK_REALTIME), wait)
}

pub(crate) unsafe extern "C-unwind" fn clockwrlock(
    rwlock: Pointer,
    clock: c_int,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_clockwrlock(rwlock, clock, until) };
    lock_in_time::<Write, WRITE_TRY>(rwlock, caller, is_sound(until, clock), wait)
}

pub(crate) unsafe extern "C-unwind" fn unlock(rwlock: Pointer, caller: u64) -> c_int {
    release::<WRITE>(
        address(rwlock),
        caller,
        || true,
        // SAFETY: passes on what the program has passed.
        move || unsafe { real::pthread_rwlock_unlock(rwlock) },
    )
}

pub(crate) unsafe extern "C-unwind" fn destroy(rwlock: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let result = unsafe { real::pthread_rwlock_destroy(rwlock) };
    if result == 0 {
        destroyed::<WRITE>(address(rwlock), caller, true);
    }
    result
}
