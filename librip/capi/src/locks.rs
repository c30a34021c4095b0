//! The locks of `rip.hpp`: what its classes call while there is a ring.
//!
//! The header takes the place of each call in the function of its caller: an address of code, the file and the line.
//! So the record names the line of the user, whatever was inlined. The lock itself is one of the C library, which has
//! its owner in memory. What is recorded of it is what the interposer records: see `librip::interpose`. As there, no
//! frame has anything to clean up, because `pthread_cancel` may unwind it.

use core::ffi::{c_char, c_int};

use librip::capi::place::{self, Place};
use librip::interpose::{
    self, Acquisition, Caller, CondWait, FastAcquisition, Flags, INCIDENT_UNLOCK, LastHolder, MUTEX,
    MUTEX_TRY, READ_FIRST, READ_FIRST_TRY, RECURSIVE, RECURSIVE_TRY, Recursion, Sites, StackPointer, WRITE,
    WRITE_TRY, begin_acquire, begin_condition_wait_at, begin_wait_at, destroyed, destroys_in_use,
    drop_stale_entries, holds_alone, incident, signals,
};

use librip_format::{LOCK_TYPE_RWLOCK, lock_type};

use crate::real::{self, Deadline, Lock};
use crate::{bytes_of, names};

/// `LIBRIP_OF_*_` of `rip.hpp`: a mutex.
const OF_MUTEX: u32 = 0;
/// A recursive mutex.
const OF_RECURSIVE: u32 = 1;
/// A readers-writer lock, in exclusive mode.
const OF_WRITER: u32 = 2;
/// A readers-writer lock, in shared mode.
const OF_READER: u32 = 3;
/// `LIBRIP_TRIES_`, beside one of these: the call does not wait.
const TRIES: u32 = 4;
/// `LIBRIP_UNTIL_`: the call waits until a time.
const UNTIL: u32 = 8;

/// How a call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Endless,
    None,
    Until(Deadline),
}

/// A call that acquires a lock. The program has passed the lock, and the time, to a function that uses them as such,
/// and that has not returned yet. So the C library's functions for such locks may be called.
#[derive(Clone, Copy)]
struct Call {
    lock: Lock,
    caller: Caller,
    patience: Patience,
    stack: StackPointer,
}

impl Call {
    fn address(self) -> u64 {
        self.lock.expose_provenance() as u64
    }
}

/// The C library's functions for a kind of lock.
trait Kind {
    /// # Safety
    ///
    /// As the C library's function, here and below.
    unsafe fn try_lock(lock: Lock) -> c_int;
    unsafe fn lock(lock: Lock) -> c_int;
    unsafe fn lock_until(lock: Lock, until: Deadline) -> c_int;
}

macro_rules! kinds {
    ($($name:ident: $try_lock:ident, $lock:ident, $until:ident;)*) => {
        $(
            enum $name {}
            impl Kind for $name {
                #[inline(always)]
                unsafe fn try_lock(lock: Lock) -> c_int {
                    // SAFETY: the caller's promise.
                    unsafe { real::$try_lock(lock) }
                }
                #[inline(always)]
                unsafe fn lock(lock: Lock) -> c_int {
                    // SAFETY: the caller's promise.
                    unsafe { real::$lock(lock) }
                }
                #[inline(always)]
                unsafe fn lock_until(lock: Lock, until: Deadline) -> c_int {
                    // SAFETY: the caller's promise.
                    unsafe { real::$until(lock, until) }
                }
            }
        )*
    };
}

kinds! {
    Mutex: pthread_mutex_trylock, pthread_mutex_lock, pthread_mutex_timedlock;
    Writer: pthread_rwlock_trywrlock, pthread_rwlock_wrlock, pthread_rwlock_timedwrlock;
    Reader: pthread_rwlock_tryrdlock, pthread_rwlock_rdlock, pthread_rwlock_timedrdlock;
}

/// A place as a return address: the call is before it.
fn caller(pc: u64) -> Caller {
    Caller(pc.wrapping_add(1))
}

/// Acquires a lock. Returns 0, or the error number of the C library.
///
/// # Safety
///
/// `lock` points at a lock of the C library, of the kind that `how` says. `file` is null or a zero-terminated string
/// that lasts as long as the process. With `UNTIL`, `until` points at a time of the realtime clock.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_acquire_1(
    lock: Lock,
    pc: u64,
    file: *const c_char,
    line: u32,
    how: u32,
    until: Deadline,
) -> c_int {
    if !place::is_entered(pc) {
        // SAFETY: the caller's promise.
        unsafe { enter(pc, file, line) };
    }
    let call = |patience| Call { lock, caller: caller(pc), patience, stack: StackPointer::here() };
    if how == OF_MUTEX {
        // The usual case.
        return acquire::<Mutex, MUTEX>(call(Patience::Endless));
    }
    let patience = match how & !OF_READER {
        TRIES => Patience::None,
        UNTIL => Patience::Until(until),
        _ => Patience::Endless,
    };
    match (how & OF_READER, patience) {
        (OF_RECURSIVE, Patience::Endless) => acquire::<Mutex, RECURSIVE>(call(patience)),
        (OF_RECURSIVE, _) => acquire::<Mutex, RECURSIVE_TRY>(call(patience)),
        (OF_WRITER, Patience::Endless) => acquire::<Writer, WRITE>(call(patience)),
        (OF_WRITER, _) => acquire::<Writer, WRITE_TRY>(call(patience)),
        (OF_READER, Patience::Endless) => acquire::<Reader, READ_FIRST>(call(patience)),
        (OF_READER, _) => acquire::<Reader, READ_FIRST_TRY>(call(patience)),
        _ => acquire::<Mutex, MUTEX_TRY>(call(patience)),
    }
}

/// A place is used for the first time, perhaps.
///
/// # Safety
///
/// As [`librip_acquire_1`].
#[cold]
#[inline(never)]
unsafe fn enter(pc: u64, file: *const c_char, line: u32) {
    names::give();
    // SAFETY: the caller's promise.
    if let Some(file) = unsafe { bytes_of(&file) } {
        place::enter(Place { pc, file, line });
    }
}

#[inline(always)]
fn acquire<K: Kind, const FLAGS: Flags>(call: Call) -> c_int {
    let address = call.address();
    let fast = if FLAGS == MUTEX {
        FastAcquisition::begin::<FLAGS>(address, call.caller)
    } else {
        FastAcquisition::begin_if_new::<FLAGS>(address, call.caller)
    };
    let Some(fast) = fast else { return acquire_slowly::<K, FLAGS>(call) };
    // SAFETY: see `Call`.
    let result = unsafe { K::try_lock(call.lock) };
    if result == 0 {
        fast.acquired();
        return 0;
    }
    let (acquisition, _) = fast.slow();
    wait::<K, FLAGS>(acquisition, call, result)
}

#[inline(never)]
fn acquire_slowly<K: Kind, const FLAGS: Flags>(call: Call) -> c_int {
    let (address, caller) = (call.address(), call.caller);
    if FLAGS & RECURSIVE == RECURSIVE
        && let Some(recursion) = Recursion::begin::<FLAGS>(address, caller)
    {
        // SAFETY: see `Call`.
        let result = unsafe { K::try_lock(call.lock) };
        if result == 0 {
            recursion.acquired();
        } else {
            recursion.failed::<FLAGS>(address, caller);
        }
        return result;
    }
    let acquisition = begin_acquire::<FLAGS>(address, caller, false);
    // SAFETY: see `Call`.
    let result = unsafe { K::try_lock(call.lock) };
    if result == 0 {
        drop_stale_entries::<FLAGS>(address);
        acquisition.acquired();
        return 0;
    }
    wait::<K, FLAGS>(acquisition, call, result)
}

/// The lock was not free.
#[cold]
#[inline(never)]
fn wait<K: Kind, const FLAGS: Flags>(mut acquisition: Acquisition, call: Call, mut result: c_int) -> c_int {
    let (address, caller) = (call.address(), call.caller);
    if result == libc::EBUSY && call.patience != Patience::None {
        // The C library refuses a thread that has a readers-writer lock alone. It does not wait then.
        if lock_type(FLAGS) != LOCK_TYPE_RWLOCK || !holds_alone(address) {
            acquisition = begin_wait_at::<FLAGS>(acquisition, address, caller, call.stack);
        }
        result = match call.patience {
            // SAFETY: see `Call`.
            Patience::Until(until) => unsafe { K::lock_until(call.lock, until) },
            // SAFETY: as above.
            _ => unsafe { K::lock(call.lock) },
        };
    }
    if result == 0 {
        drop_stale_entries::<FLAGS>(address);
        acquisition.acquired_after_wait();
    } else {
        acquisition.failed(caller, address, Sites::<FLAGS>::try_failed());
    }
    result
}

/// Releases a lock. Returns 0, or the error number of the C library.
///
/// # Safety
///
/// `lock` points at a lock of the C library, of the kind that `how` says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_release_1(lock: Lock, pc: u64, how: u32) -> c_int {
    let caller = caller(pc);
    // SAFETY: the caller's promise.
    let mutex = || unsafe { real::pthread_mutex_unlock(lock) };
    match how {
        OF_MUTEX => release::<MUTEX>(lock, caller, true, mutex),
        OF_RECURSIVE => release::<RECURSIVE>(lock, caller, false, mutex),
        // SAFETY: the caller's promise.
        _ => release::<WRITE>(lock, caller, true, || unsafe { real::pthread_rwlock_unlock(lock) }),
    }
}

#[inline(always)]
fn release<const FLAGS: Flags>(
    lock: Lock,
    caller: Caller,
    by_anyone: bool,
    unlock: impl Fn() -> c_int,
) -> c_int {
    let lock = lock.expose_provenance() as u64;
    let refused = |result| {
        if result == libc::EPERM {
            incident(INCIDENT_UNLOCK, lock, caller);
        }
    };
    interpose::release::<FLAGS>(lock, caller, || by_anyone, unlock, refused)
}

/// A lock ends. The C library is not told: a thread that outlives the end of `main` may go on to use a static lock, as
/// it may use a `std::mutex`.
///
/// # Safety
///
/// `lock` points at a lock of the C library, of the kind that `how` says.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_lock_ends_1(lock: Lock, pc: u64, how: u32) {
    let address = lock.expose_provenance() as u64;
    names::forget(address);
    if !librip::is_recording() {
        return;
    }
    // SAFETY: the caller's promise.
    let is_held = unsafe { real::is_held(lock, matches!(how, OF_MUTEX | OF_RECURSIVE)) };
    let holder = if is_held { LastHolder::Certain } else { LastHolder::None };
    destroyed::<MUTEX>(address, caller(pc), holder);
}

/// Before a wait on a condition variable. `is_timed`: whether the wait ends after a time.
///
/// # Safety
///
/// `file` is as in [`librip_acquire_1`].
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn librip_condition_begin_1(
    condition: Lock,
    lock: Lock,
    pc: u64,
    file: *const c_char,
    line: u32,
    is_timed: bool,
) {
    // SAFETY: the caller's promise.
    unsafe { enter(pc, file, line) };
    let site = if is_timed { Sites::<MUTEX_TRY>::condition_wait() } else { Sites::<MUTEX>::condition_wait() };
    let (condition, lock) = (condition.addr() as u64, lock.addr() as u64);
    begin_condition_wait_at(caller(pc), lock, condition, site, StackPointer::here());
}

/// After the wait, however it has ended: the thread has the mutex again.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_condition_end_1(condition: Lock, lock: Lock, pc: u64, is_timed: bool) {
    let site =
        if is_timed { Sites::<MUTEX_TRY>::condition_woken() } else { Sites::<MUTEX>::condition_woken() };
    CondWait::begun(caller(pc), lock.addr() as u64, condition.addr() as u64).end(true, site);
}

/// Before a condition variable is signalled. `is_heard`: whether a thread may wait on it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_condition_signals_1(condition: Lock, pc: u64, is_heard: bool) {
    signals(condition.addr() as u64, caller(pc), is_heard);
}

/// A condition variable ends, although threads wait on it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn librip_condition_ends_1(condition: Lock, pc: u64) {
    destroys_in_use(condition.addr() as u64, caller(pc));
}
