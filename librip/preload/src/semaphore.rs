//! Semaphores: who blocks on one, who takes a unit and who gives one. Nobody holds them.
//!
//! A semaphore is looked at before it is waited for, not tried: `sem_wait` is a cancellation point even where it need not
//! block, and must find the unit untaken. What is seen may be out of date, so a wait may be recorded that was none, or
//! a short one missed.

use core::ffi::c_int;

use librip::interpose::{Blocking, Flags, SEMAPHORE, SEMAPHORE_TRY, given, taken};

use crate::real::{self, Cleanup};
use crate::{Pointer, address};

pub(crate) unsafe extern "C-unwind" fn wait(semaphore: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    take::<SEMAPHORE>(semaphore, caller, move || unsafe { real::sem_wait(semaphore) })
}

pub(crate) unsafe extern "C-unwind" fn timedwait(semaphore: Pointer, until: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    take::<SEMAPHORE_TRY>(semaphore, caller, move || unsafe { real::sem_timedwait(semaphore, until) })
}

pub(crate) unsafe extern "C-unwind" fn clockwait(
    semaphore: Pointer,
    clock: c_int,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    take::<SEMAPHORE_TRY>(semaphore, caller, move || unsafe { real::sem_clockwait(semaphore, clock, until) })
}

#[inline(always)]
fn take<const FLAGS: Flags>(semaphore: Pointer, caller: u64, wait: impl FnOnce() -> c_int) -> c_int {
    let mut value = 0;
    // SAFETY: reads the semaphore that the program is about to wait for.
    unsafe { real::sem_getvalue(semaphore, &raw mut value) };
    if value > 0 {
        let result = wait();
        taken::<FLAGS>(address(semaphore), caller, result == 0);
        return result;
    }
    let mut blocking = Blocking::begin::<FLAGS>(address(semaphore), caller);
    let mut cleanup = Cleanup::new();
    // SAFETY: both are in this frame, and are left below.
    unsafe { cleanup.push(cancelled::<FLAGS>, (&raw mut blocking).cast()) };
    let result = wait();
    // SAFETY: pushed above.
    unsafe { cleanup.pop() };
    blocking.ends::<FLAGS>(result == 0);
    result
}

extern "C" fn cancelled<const FLAGS: Flags>(blocking: Pointer) {
    // SAFETY: `take` is being unwound, and its frame is there still.
    let blocking = unsafe { blocking.cast::<Blocking>().read() };
    blocking.ends::<FLAGS>(false);
}

pub(crate) unsafe extern "C-unwind" fn trywait(semaphore: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let result = unsafe { real::sem_trywait(semaphore) };
    taken::<SEMAPHORE_TRY>(address(semaphore), caller, result == 0);
    result
}

pub(crate) unsafe extern "C-unwind" fn post(semaphore: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    let result = unsafe { real::sem_post(semaphore) };
    if result == 0 {
        given(address(semaphore), caller);
    }
    result
}
