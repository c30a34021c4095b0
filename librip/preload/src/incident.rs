//! Calls that failed, as incidents: errors by which the C library says that a lock is used wrongly.
//!
//! A try that finds the lock taken, a time limit that is over, and a time limit that is none say nothing of the lock.

use core::ffi::c_int;

use librip::interpose::{
    Caller, INCIDENT_DESTROY, INCIDENT_DESTROYED, INCIDENT_NOT_RECOVERABLE, INCIDENT_OWNER_DIED,
    INCIDENT_RELOCK, INCIDENT_SEMAPHORE_FULL, INCIDENT_TOO_OFTEN, INCIDENT_UNLOCK,
    INCIDENT_WAIT_WITHOUT_LOCK, incident,
};

use crate::object::{Condition, Mutex, Object, Rwlock, Semaphore, Spin};

/// A kind of object that the C library may recognise as destroyed.
pub(crate) trait Kind: Copy {
    /// Whether the C library has marked the object as destroyed. It refuses to use it.
    fn is_destroyed(_object: Object<Self>) -> bool {
        false
    }
}

impl Kind for Mutex {
    fn is_destroyed(mutex: Object<Mutex>) -> bool {
        // FOLKLORE: pthread_mutex_destroy of glibc stores this in place of the type. No initialiser does.
        mutex.kind_word() == -1
    }
}

impl Kind for Rwlock {}
impl Kind for Spin {}
impl Kind for Semaphore {}
impl Kind for Condition {}

/// A call that acquires a lock has returned this, which is neither success nor "busy".
#[cold]
#[inline(never)]
pub(crate) fn not_acquired<K: Kind>(lock: Object<K>, caller: Caller, result: c_int) {
    let kind = match result {
        libc::EDEADLK => INCIDENT_RELOCK,
        libc::EOWNERDEAD => INCIDENT_OWNER_DIED,
        libc::ENOTRECOVERABLE => INCIDENT_NOT_RECOVERABLE,
        libc::EAGAIN => INCIDENT_TOO_OFTEN,
        libc::EINVAL if K::is_destroyed(lock) => INCIDENT_DESTROYED,
        _ => return,
    };
    incident(kind, lock.address(), caller);
}

/// An unlock has failed.
#[cold]
#[inline(never)]
pub(crate) fn not_released<K: Kind>(lock: Object<K>, caller: Caller, result: c_int) {
    let kind = match result {
        libc::EPERM => INCIDENT_UNLOCK,
        libc::EINVAL if K::is_destroyed(lock) => INCIDENT_DESTROYED,
        _ => return,
    };
    incident(kind, lock.address(), caller);
}

#[cold]
#[inline(never)]
pub(crate) fn not_destroyed<K: Kind>(object: Object<K>, caller: Caller, result: c_int) {
    if result == libc::EBUSY {
        incident(INCIDENT_DESTROY, object.address(), caller);
    }
}

/// A semaphore did not accept a unit: it has as many as it can have, or is none.
#[cold]
#[inline(never)]
pub(crate) fn not_posted(semaphore: Object<Semaphore>, caller: Caller) {
    if std::io::Error::last_os_error().raw_os_error() == Some(libc::EOVERFLOW) {
        incident(INCIDENT_SEMAPHORE_FULL, semaphore.address(), caller);
    }
}

/// A wait on a condition variable has failed, or has returned with a mutex whose owner has died.
#[cold]
#[inline(never)]
pub(crate) fn not_waited(mutex: Object<Mutex>, caller: Caller, result: c_int) {
    match result {
        libc::EPERM => wait_without_mutex(mutex, caller),
        libc::EOWNERDEAD | libc::ENOTRECOVERABLE => not_acquired(mutex, caller, result),
        _ => {}
    }
}

/// A thread waits on a condition variable with a mutex that it does not hold.
#[cold]
#[inline(never)]
pub(crate) fn wait_without_mutex(mutex: Object<Mutex>, caller: Caller) {
    incident(INCIDENT_WAIT_WITHOUT_LOCK, mutex.address(), caller);
}
