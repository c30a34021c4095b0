//! The locks of `threads.h`.
//!
//! In glibc an `mtx_t` is a `pthread_mutex_t`, and a `cnd_t` is a `pthread_cond_t`. These functions call the pthread
//! functions within the library, where an interposer does not see it.

use core::ffi::c_int;

use librip::interpose::{
    Caller, LastHolder, MUTEX, MUTEX_TRY, destroyed, destroys_in_use, initialised, signals,
};

use crate::acquire::{lock_calls, release};
use crate::condition::record_wait;
use crate::mutex::{Kind, lock_in_time, lock_with, trylock_with};
use crate::object::{Condition, Deadline, Mutex, Object};
use crate::real;

/// `thrd_success`, in glibc.
const SUCCESS: c_int = 0;
/// `thrd_busy`, in glibc.
const BUSY: c_int = 1;

lock_calls!(C11(Mutex): mtx_trylock, mtx_lock, BUSY);

pub(crate) extern "C-unwind" fn lock(mutex: Object<Mutex>, caller: Caller) -> c_int {
    lock_with::<C11>(mutex, caller)
}

pub(crate) extern "C-unwind" fn trylock(mutex: Object<Mutex>, caller: Caller) -> c_int {
    trylock_with::<C11>(mutex, caller)
}

pub(crate) extern "C-unwind" fn timedlock(mutex: Object<Mutex>, until: Deadline, caller: Caller) -> c_int {
    lock_in_time::<C11>(mutex, caller, move || real::mtx_timedlock(mutex, until))
}

pub(crate) extern "C-unwind" fn unlock(mutex: Object<Mutex>, caller: Caller) -> c_int {
    let by_anyone = move || Kind::of(mutex).is_released_by_anyone();
    release::<Mutex, MUTEX>(mutex, caller, by_anyone, move || real::mtx_unlock(mutex))
}

pub(crate) extern "C-unwind" fn destroy(mutex: Object<Mutex>, caller: Caller) {
    let holder = if mutex.owner().is_some() { LastHolder::Certain } else { LastHolder::Possible };
    // It has no result.
    real::mtx_destroy(mutex);
    destroyed::<MUTEX>(mutex.address(), caller, holder);
}

pub(crate) extern "C-unwind" fn init(mutex: Object<Mutex>, kind: c_int, caller: Caller) -> c_int {
    let owner = mutex.owner();
    let result = real::mtx_init(mutex, kind);
    if result == SUCCESS {
        initialised::<MUTEX>(mutex.address(), caller, owner);
    }
    result
}

pub(crate) extern "C-unwind" fn cnd_signal(condition: Object<Condition>, caller: Caller) -> c_int {
    signals(condition.address(), caller, condition.may_have_waiters());
    real::cnd_signal(condition)
}

pub(crate) extern "C-unwind" fn cnd_broadcast(condition: Object<Condition>, caller: Caller) -> c_int {
    signals(condition.address(), caller, condition.may_have_waiters());
    real::cnd_broadcast(condition)
}

/// It has no result.
pub(crate) extern "C-unwind" fn cnd_destroy(condition: Object<Condition>, caller: Caller) -> c_int {
    if condition.has_waiters() {
        destroys_in_use(condition.address(), caller);
    }
    real::cnd_destroy(condition)
}

pub(crate) extern "C-unwind" fn cnd_wait(
    condition: Object<Condition>,
    mutex: Object<Mutex>,
    caller: Caller,
) -> c_int {
    record_wait::<MUTEX>(condition, mutex, caller, move || real::cnd_wait(condition, mutex))
}

pub(crate) extern "C-unwind" fn cnd_timedwait(
    condition: Object<Condition>,
    mutex: Object<Mutex>,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::cnd_timedwait(condition, mutex, until);
    record_wait::<MUTEX_TRY>(condition, mutex, caller, wait)
}
