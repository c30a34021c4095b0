//! Readers-writer locks.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use librip::interpose::{
    Flags, Plain, READ, READ_FIRST, READ_FIRST_TRY, READ_TRY, WRITE, WRITE_TRY, destroyed,
};

use crate::acquire::{IfHad, Manner, Taking, acquire, acquire_plain, release, try_acquire};
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

#[inline(always)]
fn real_tryrdlock(rwlock: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::pthread_rwlock_tryrdlock(rwlock) }
}

#[inline(always)]
fn real_rdlock(rwlock: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::pthread_rwlock_rdlock(rwlock) }
}

#[inline(always)]
fn real_trywrlock(rwlock: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::pthread_rwlock_trywrlock(rwlock) }
}

#[inline(always)]
fn real_wrlock(rwlock: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::pthread_rwlock_wrlock(rwlock) }
}

/// A call that takes a lock. A thread that has it alone is refused, and does not wait.
fn taking(rwlock: Pointer, caller: u64) -> Taking {
    let is_process_shared = is_process_shared(rwlock);
    Taking { lock: rwlock, caller, if_had: IfHad::IsRefused, is_process_shared }
}

#[inline(always)]
fn lock<const FLAGS: Flags>(
    rwlock: Pointer,
    caller: u64,
    try_lock: fn(Pointer) -> c_int,
    wait: fn(Pointer) -> c_int,
) -> c_int {
    let otherwise = move || lock_slowly::<FLAGS>(rwlock, caller, try_lock, wait);
    if is_process_shared(rwlock) {
        return otherwise();
    }
    let plain = Plain::takes_if_new::<FLAGS>(address(rwlock), caller);
    acquire_plain::<FLAGS>(plain, rwlock, libc::EBUSY, try_lock, wait, otherwise)
}

#[inline(never)]
fn lock_slowly<const FLAGS: Flags>(
    rwlock: Pointer,
    caller: u64,
    try_lock: fn(Pointer) -> c_int,
    wait: fn(Pointer) -> c_int,
) -> c_int {
    let manner = Manner::Tries(move || try_lock(rwlock), libc::EBUSY);
    acquire::<FLAGS>(taking(rwlock, caller), manner, move || wait(rwlock))
}

/// The same where the wait ends after a time.
#[inline(always)]
fn lock_in_time<const FLAGS: Flags>(
    rwlock: Pointer,
    caller: u64,
    is_sound: bool,
    try_lock: fn(Pointer) -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let manner = if is_sound {
        Manner::Tries(move || try_lock(rwlock), libc::EBUSY)
    } else {
        Manner::Looks { seems_taken: false }
    };
    acquire::<FLAGS>(taking(rwlock, caller), manner, wait)
}

pub(crate) unsafe extern "C-unwind" fn rdlock(rwlock: Pointer, caller: u64) -> c_int {
    if passes_writers(rwlock) {
        lock::<READ_FIRST>(rwlock, caller, real_tryrdlock, real_rdlock)
    } else {
        lock::<READ>(rwlock, caller, real_tryrdlock, real_rdlock)
    }
}

pub(crate) unsafe extern "C-unwind" fn tryrdlock(rwlock: Pointer, caller: u64) -> c_int {
    let try_lock = move || real_tryrdlock(rwlock);
    if passes_writers(rwlock) {
        try_acquire::<READ_FIRST_TRY>(taking(rwlock, caller), try_lock)
    } else {
        try_acquire::<READ_TRY>(taking(rwlock, caller), try_lock)
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
        lock_in_time::<READ_FIRST_TRY>(rwlock, caller, is_sound, real_tryrdlock, wait)
    } else {
        lock_in_time::<READ_TRY>(rwlock, caller, is_sound, real_tryrdlock, wait)
    }
}

pub(crate) unsafe extern "C-unwind" fn wrlock(rwlock: Pointer, caller: u64) -> c_int {
    lock::<WRITE>(rwlock, caller, real_trywrlock, real_wrlock)
}

pub(crate) unsafe extern "C-unwind" fn trywrlock(rwlock: Pointer, caller: u64) -> c_int {
    try_acquire::<WRITE_TRY>(taking(rwlock, caller), move || real_trywrlock(rwlock))
}

pub(crate) unsafe extern "C-unwind" fn timedwrlock(rwlock: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_timedwrlock(rwlock, until) };
    lock_in_time::<WRITE_TRY>(rwlock, caller, is_sound(until, libc::CLOCK_REALTIME), real_trywrlock, wait)
}

pub(crate) unsafe extern "C-unwind" fn clockwrlock(
    rwlock: Pointer,
    clock: c_int,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_clockwrlock(rwlock, clock, until) };
    lock_in_time::<WRITE_TRY>(rwlock, caller, is_sound(until, clock), real_trywrlock, wait)
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
