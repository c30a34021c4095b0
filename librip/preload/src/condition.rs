//! Condition variables: waits only. Who signals takes nothing and waits for nobody.

use core::ffi::c_int;

use librip::interpose::{Flags, Lending, MUTEX, MUTEX_TRY, owner_died};

use crate::real::{self, Cleanup};
use crate::{Pointer, address};

pub(crate) unsafe extern "C-unwind" fn wait(condition: Pointer, mutex: Pointer, caller: u64) -> c_int {
    // SAFETY: passes on what the program has passed.
    lend::<MUTEX>(condition, mutex, caller, move || unsafe { real::pthread_cond_wait(condition, mutex) })
}

pub(crate) unsafe extern "C-unwind" fn timedwait(
    condition: Pointer,
    mutex: Pointer,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_cond_timedwait(condition, mutex, until) };
    lend::<MUTEX_TRY>(condition, mutex, caller, wait)
}

pub(crate) unsafe extern "C-unwind" fn clockwait(
    condition: Pointer,
    mutex: Pointer,
    clock: c_int,
    until: Pointer,
    caller: u64,
) -> c_int {
    // SAFETY: passes on what the program has passed.
    let wait = move || unsafe { real::pthread_cond_clockwait(condition, mutex, clock, until) };
    lend::<MUTEX_TRY>(condition, mutex, caller, wait)
}

/// Waits, without the mutex.
///
/// A thread that is cancelled meanwhile gets the mutex back before anything else happens, and so it is recorded: the
/// C library's own handler takes it, then ours says so, then the program's handlers run, and find it locked.
#[inline(always)]
pub(crate) fn lend<const FLAGS: Flags>(
    condition: Pointer,
    mutex: Pointer,
    caller: u64,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let mut lending = Lending::begin::<FLAGS>(address(mutex), address(condition), caller);
    let mut cleanup = Cleanup::new();
    // SAFETY: both are in this frame, and are left below.
    unsafe { cleanup.push(cancelled::<FLAGS>, (&raw mut lending).cast()) };
    let result = wait();
    // SAFETY: pushed above.
    unsafe { cleanup.pop() };
    if result == libc::EOWNERDEAD {
        owner_died(address(mutex));
    }
    // Any other error leaves the mutex with the thread, or leaves all as it was.
    lending.ends::<FLAGS>(result != libc::ENOTRECOVERABLE);
    result
}

extern "C" fn cancelled<const FLAGS: Flags>(lending: Pointer) {
    // SAFETY: `lend` is being unwound, and its frame is there still.
    let lending = unsafe { lending.cast::<Lending>().read() };
    lending.ends::<FLAGS>(true);
}
