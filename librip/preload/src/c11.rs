//! The locks of `threads.h`. In glibc an `mtx_t` is a `pthread_mutex_t`, a `cnd_t` a `pthread_cond_t`, and these functions
//! call the others within the library, where no interposer sees it.

use core::ffi::c_int;

use librip::interpose::{Flags, MUTEX, MUTEX_TRY, Plain, RECURSIVE, RECURSIVE_TRY, destroyed};

use crate::acquire::{Manner, acquire, acquire_plain, release, try_acquire};
use crate::condition::lend;
use crate::mutex::Kind;
use crate::{Pointer, address, real};

/// `thrd_busy`, in glibc.
const BUSY: c_int = 1;

#[inline(always)]
fn real_trylock(mutex: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::mtx_trylock(mutex) }
}

#[inline(always)]
fn real_lock(mutex: Pointer) -> c_int {
    // SAFETY: callers pass on what the program has passed.
    unsafe { real::mtx_lock(mutex) }
}

pub(crate) unsafe extern "C-unwind" fn lock(mutex: Pointer, caller: u64) -> c_int {
    if Kind::of(mutex).is_recursive() {
        return lock_slowly(mutex, caller);
    }
    let plain = Plain::takes::<MUTEX>(address(mutex), caller);
    let otherwise = move || lock_slowly(mutex, caller);
    acquire_plain::<MUTEX>(plain, mutex, BUSY, real_trylock, real_lock, otherwise)
}

#[inline(never)]
fn lock_slowly(mutex: Pointer, caller: u64) -> c_int {
    lock_otherwise::<MUTEX, RECURSIVE>(mutex, caller, move || real_lock(mutex))
}

#[inline(always)]
fn lock_otherwise<const FLAGS: Flags, const FLAGS_IF_RECURSIVE: Flags>(
    mutex: Pointer,
    caller: u64,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let kind = Kind::of(mutex);
    let taking = kind.taking(mutex, caller);
    let manner = Manner::Tries(move || real_trylock(mutex), BUSY);
    if kind.is_recursive() {
        acquire::<FLAGS_IF_RECURSIVE>(taking, manner, wait)
    } else {
        acquire::<FLAGS>(taking, manner, wait)
    }
}

pub(crate) unsafe extern "C-unwind" fn trylock(mutex: Pointer, caller: u64) -> c_int {
    let kind = Kind::of(mutex);
    let taking = kind.taking(mutex, caller);
    if kind.is_recursive() {
        try_acquire::<RECURSIVE_TRY>(taking, move || real_trylock(mutex))
    } else {
        try_acquire::<MUTEX_TRY>(taking, move || real_trylock(mutex))
    }
}

pub(crate) unsafe extern "C-unwind" fn timedlock(mutex: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::mtx_timedlock(mutex, until) };
    lock_otherwise::<MUTEX_TRY, RECURSIVE_TRY>(mutex, caller, wait)
}

pub(crate) unsafe extern "C-unwind" fn unlock(mutex: Pointer, caller: u64) -> c_int {
    release::<MUTEX>(
        address(mutex),
        caller,
        move || Kind::of(mutex).is_anyones(),
        // SAFETY: passes on what the program has passed.
        move || unsafe { real::mtx_unlock(mutex) },
    )
}

pub(crate) unsafe extern "C-unwind" fn destroy(mutex: Pointer, caller: u64) {
    // SAFETY: passes on what the program has passed. It has no result.
    unsafe { real::mtx_destroy(mutex) };
    destroyed::<MUTEX>(address(mutex), caller, true);
}

pub(crate) unsafe extern "C-unwind" fn cnd_wait(condition: Pointer, mutex: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    lend::<MUTEX>(condition, mutex, caller, move || unsafe { real::cnd_wait(condition, mutex) })
}

pub(crate) unsafe extern "C-unwind" fn cnd_timedwait(
    condition: Pointer,
    mutex: Pointer,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::cnd_timedwait(condition, mutex, until) };
    lend::<MUTEX_TRY>(condition, mutex, caller, wait)
}
