//! The locks of `threads.h`. In glibc an `mtx_t` is a `pthread_mutex_t`, a `cnd_t` a `pthread_cond_t`, and these functions
//! call the others within the library, where no interposer sees it.

use core::ffi::c_int;

use librip::interpose::{MUTEX, MUTEX_TRY, destroyed};

use crate::acquire::{lock_calls, release};
use crate::condition::lend;
use crate::mutex::{Kind, lock_in_time, lock_with, trylock_with};
use crate::{Pointer, address, real};

/// `thrd_busy`, in glibc.
const BUSY: c_int = 1;

lock_calls!(C11: mtx_trylock, mtx_lock, BUSY);

pub(crate) unsafe extern "C-unwind" fn lock(mutex: Pointer, caller: u64) -> c_int {
    lock_with::<C11>(mutex, caller)
}

pub(crate) unsafe extern "C-unwind" fn trylock(mutex: Pointer, caller: u64) -> c_int {
    trylock_with::<C11>(mutex, caller)
}

pub(crate) unsafe extern "C-unwind" fn timedlock(mutex: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    lock_in_time::<C11>(mutex, caller, move || unsafe { real::mtx_timedlock(mutex, until) })
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
