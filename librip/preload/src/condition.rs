//! Condition variables: waits, and signals. A signal says whether a thread may have waited: one that nobody heard has
//! no effect on a thread that waits later.

use core::ffi::{c_int, c_void};

use librip::interpose::{
    Caller, CondWait, Flags, MUTEX, MUTEX_TRY, Sites, StackPointer, begin_condition_wait, destroys_in_use,
    has_no_entry, owner_died, signals, tid,
};

use crate::incident;
use crate::mutex::Kind;
use crate::object::{Condition, Deadline, Mutex, Object};
use crate::real::{self, Cleanup};

pub(crate) extern "C-unwind" fn wait(
    condition: Object<Condition>,
    mutex: Object<Mutex>,
    caller: Caller,
) -> c_int {
    record_wait::<MUTEX>(condition, mutex, caller, move || real::pthread_cond_wait(condition, mutex))
}

pub(crate) extern "C-unwind" fn timedwait(
    condition: Object<Condition>,
    mutex: Object<Mutex>,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::pthread_cond_timedwait(condition, mutex, until);
    record_wait::<MUTEX_TRY>(condition, mutex, caller, wait)
}

pub(crate) extern "C-unwind" fn clockwait(
    condition: Object<Condition>,
    mutex: Object<Mutex>,
    clock: c_int,
    until: Deadline,
    caller: Caller,
) -> c_int {
    let wait = move || real::pthread_cond_clockwait(condition, mutex, clock, until);
    record_wait::<MUTEX_TRY>(condition, mutex, caller, wait)
}

pub(crate) extern "C-unwind" fn signal(condition: Object<Condition>, caller: Caller) -> c_int {
    signals(condition.address(), caller, condition.may_have_waiters());
    real::pthread_cond_signal(condition)
}

pub(crate) extern "C-unwind" fn broadcast(condition: Object<Condition>, caller: Caller) -> c_int {
    signals(condition.address(), caller, condition.may_have_waiters());
    real::pthread_cond_broadcast(condition)
}

/// The C library waits until no thread waits any more. If nobody has woken these threads, that is for ever.
pub(crate) extern "C-unwind" fn destroy(condition: Object<Condition>, caller: Caller) -> c_int {
    if condition.has_waiters() {
        destroys_in_use(condition.address(), caller);
    }
    real::pthread_cond_destroy(condition)
}

/// Records a wait. The thread does not hold the mutex meanwhile.
///
/// A thread that is cancelled during the wait gets the mutex back before anything else happens, and that is recorded:
/// the C library's own handler locks it, then ours records it, then the program's handlers run, and find it locked.
#[inline(always)]
pub(crate) fn record_wait<const FLAGS: Flags>(
    condition: Object<Condition>,
    mutex: Object<Mutex>,
    caller: Caller,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let pc = Sites::<FLAGS>::condition_wait();
    if has_no_entry(mutex.address()) && Kind::of(mutex).names_another_owner(mutex, tid()) {
        incident::wait_without_mutex(mutex, caller);
    }
    let (lock, condition) = (mutex.address(), condition.address());
    let mut waiting = begin_condition_wait(caller, lock, condition, pc, StackPointer::here());
    let mut cleanup = Cleanup::new();
    // SAFETY: both stay in this frame, and `pop` is below.
    unsafe { cleanup.push(cancelled::<FLAGS>, (&raw mut waiting).cast()) };
    let result = wait();
    // SAFETY: pushed above.
    unsafe { cleanup.pop() };
    if result != 0 {
        incident::not_waited(mutex, caller, result);
    }
    if result == libc::EOWNERDEAD {
        owner_died(mutex.address());
    }
    // After any other error the thread still holds the mutex, or nothing has changed.
    waiting.end(result != libc::ENOTRECOVERABLE, Sites::<FLAGS>::condition_woken());
    result
}

extern "C" fn cancelled<const FLAGS: Flags>(waiting: *mut c_void) {
    // SAFETY: the thread unwinds, but the frame of `record_wait` is still there.
    let waiting = unsafe { waiting.cast::<CondWait<Caller>>().read() };
    waiting.end(true, Sites::<FLAGS>::condition_woken());
}
