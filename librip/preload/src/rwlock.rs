//! Readers-writer locks.

use core::ffi::c_int;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use librip::interpose::{
    Flags, Plain, READ, READ_FIRST, READ_FIRST_TRY, READ_TRY, WRITE, WRITE_TRY, destroyed,
};

use crate::acquire::{acquire_checked, acquire_plain, acquire_unasked, release, try_acquire};
use crate::{Pointer, address, real};

/// Whether readers who come pass writers who wait: so it is unless the lock's kind is
/// `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`, which glibc keeps in the lock, at a place that initialisers
/// have compiled into programs.
#[inline(always)]
fn passes_writers(rwlock: Pointer) -> bool {
    const PLACE: usize = 48;
    const WRITERS_FIRST: u32 = 2;
    let kind = rwlock.wrapping_byte_add(PLACE).cast::<u32>();
    // SAFETY: within the lock; a program that passes none faults here instead of in the C library.
    let kind = unsafe { AtomicU32::from_ptr(kind) };
    // ORDERING: relaxed: it does not change while the lock is in use.
    kind.load(Relaxed) != WRITERS_FIRST
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

/// Takes a lock. A thread that has it alone is refused, and does not wait.
#[inline(always)]
fn lock<const FLAGS: Flags>(
    rwlock: Pointer,
    caller: u64,
    try_lock: fn(Pointer) -> c_int,
    wait: fn(Pointer) -> c_int,
) -> c_int {
    let plain = Plain::takes_if_new::<FLAGS>(address(rwlock), caller);
    let otherwise = move || lock_slowly::<FLAGS>(rwlock, caller, try_lock, wait);
    acquire_plain::<FLAGS>(plain, rwlock, libc::EBUSY, try_lock, wait, otherwise)
}

#[inline(never)]
fn lock_slowly<const FLAGS: Flags>(
    rwlock: Pointer,
    caller: u64,
    try_lock: fn(Pointer) -> c_int,
    wait: fn(Pointer) -> c_int,
) -> c_int {
    let (try_lock, wait) = (move || try_lock(rwlock), move || wait(rwlock));
    acquire_checked::<FLAGS>(address(rwlock), caller, libc::EBUSY, try_lock, wait)
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
        try_acquire::<READ_FIRST_TRY>(address(rwlock), caller, try_lock)
    } else {
        try_acquire::<READ_TRY>(address(rwlock), caller, try_lock)
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
    let lock = address(rwlock);
    if !is_sound {
        return acquire_unasked::<READ_TRY>(lock, caller, false, wait);
    }
    let try_lock = move || real_tryrdlock(rwlock);
    if passes_writers(rwlock) {
        acquire_checked::<READ_FIRST_TRY>(lock, caller, libc::EBUSY, try_lock, wait)
    } else {
        acquire_checked::<READ_TRY>(lock, caller, libc::EBUSY, try_lock, wait)
    }
}

pub(crate) unsafe extern "C-unwind" fn wrlock(rwlock: Pointer, caller: u64) -> c_int {
    lock::<WRITE>(rwlock, caller, real_trywrlock, real_wrlock)
}

pub(crate) unsafe extern "C-unwind" fn trywrlock(rwlock: Pointer, caller: u64) -> c_int {
    try_acquire::<WRITE_TRY>(address(rwlock), caller, move || real_trywrlock(rwlock))
}

pub(crate) unsafe extern "C-unwind" fn timedwrlock(rwlock: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_timedwrlock(rwlock, until) };
    write_in_time(rwlock, caller, is_sound(until, libc::CLOCK_REALTIME), wait)
}

pub(crate) unsafe extern "C-unwind" fn clockwrlock(
    rwlock: Pointer,
    clock: c_int,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_rwlock_clockwrlock(rwlock, clock, until) };
    write_in_time(rwlock, caller, is_sound(until, clock), wait)
}

fn write_in_time(rwlock: Pointer, caller: u64, is_sound: bool, wait: impl FnOnce() -> c_int) -> c_int {
    let lock = address(rwlock);
    if !is_sound {
        return acquire_unasked::<WRITE_TRY>(lock, caller, false, wait);
    }
    let try_lock = move || real_trywrlock(rwlock);
    acquire_checked::<WRITE_TRY>(lock, caller, libc::EBUSY, try_lock, wait)
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
