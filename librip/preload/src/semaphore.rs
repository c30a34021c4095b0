//! Semaphores: which threads block on one, acquire a unit, or post one. Nobody holds them.
//!
//! The semaphore's value is read before a wait, and there is no try: `sem_wait` is a cancellation point even where it
//! need not block, and must then leave the unit. The value may be out of date. So a wait may be recorded that did not
//! happen, or a short one may be missed. The event also says whether there was more than one unit: a semaphore of one
//! unit lets one thread in at a time, as a lock does.

use core::ffi::c_int;

use librip::interpose::{
    Blocking, Caller, Flags, SEMAPHORE, SEMAPHORE_SHARED, SEMAPHORE_TRY, SEMAPHORE_TRY_SHARED, StackPointer,
    sem_posted, tried,
};

use crate::blocking::block;
use crate::incident;
use crate::object::{Deadline, Object, Semaphore};
use crate::real;

pub(crate) extern "C-unwind" fn wait(semaphore: Object<Semaphore>, caller: Caller) -> c_int {
    acquire::<SEMAPHORE, SEMAPHORE_SHARED>(semaphore, caller, move || real::sem_wait(semaphore))
}

pub(crate) extern "C-unwind" fn timedwait(
    semaphore: Object<Semaphore>,
    until: Deadline,
    caller: Caller,
) -> c_int {
    acquire::<SEMAPHORE_TRY, SEMAPHORE_TRY_SHARED>(semaphore, caller, move || {
        real::sem_timedwait(semaphore, until)
    })
}

pub(crate) extern "C-unwind" fn clockwait(
    semaphore: Object<Semaphore>,
    clock: c_int,
    until: Deadline,
    caller: Caller,
) -> c_int {
    acquire::<SEMAPHORE_TRY, SEMAPHORE_TRY_SHARED>(semaphore, caller, move || {
        real::sem_clockwait(semaphore, clock, until)
    })
}

#[inline(always)]
fn acquire<const FLAGS: Flags, const FLAGS_IF_SHARED: Flags>(
    semaphore: Object<Semaphore>,
    caller: Caller,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let mut value = 0;
    real::sem_getvalue(semaphore, &mut value);
    if value > 0 {
        let result = wait();
        if value > 1 {
            tried::<FLAGS_IF_SHARED>(semaphore.address(), caller, result == 0);
        } else {
            tried::<FLAGS>(semaphore.address(), caller, result == 0);
        }
        return result;
    }
    let waiting = Blocking::begin::<FLAGS>(semaphore.address(), caller, StackPointer::here());
    block::<FLAGS>(waiting, |result| result == 0, wait)
}

pub(crate) extern "C-unwind" fn trywait(semaphore: Object<Semaphore>, caller: Caller) -> c_int {
    let mut value = 0;
    real::sem_getvalue(semaphore, &mut value);
    let result = real::sem_trywait(semaphore);
    if value > 1 {
        tried::<SEMAPHORE_TRY_SHARED>(semaphore.address(), caller, result == 0);
    } else {
        tried::<SEMAPHORE_TRY>(semaphore.address(), caller, result == 0);
    }
    result
}

pub(crate) extern "C-unwind" fn post(semaphore: Object<Semaphore>, caller: Caller) -> c_int {
    let result = real::sem_post(semaphore);
    if result == 0 {
        sem_posted(semaphore.address(), caller);
    } else {
        incident::not_posted(semaphore, caller);
    }
    result
}
