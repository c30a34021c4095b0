//! Incidents: calls on locks that failed, or that the rules of the lock forbid.
//!
//! A slot's words are overwritten soon, so incidents have a table of their own, in the header. It keeps the first
//! [`INCIDENTS_OF_KIND`] callers of each kind, and counts how often each of them caused an incident of that kind. The
//! n-th entry of the kind *k* is at index `(k - 1) * INCIDENTS_OF_KIND + n`.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// An incident. Its fields are those of the first time, but for [`Incident::count`].
#[repr(C)]
#[derive(Debug)]
pub struct Incident {
    /// `INCIDENT_*`, written last; 0 for an unused entry.
    pub kind: AtomicU32,
    /// How often it happened at this caller. The count stops at its maximum.
    pub count: AtomicU32,
    /// The process.
    pub pid: AtomicU32,
    /// The thread, in its own PID namespace.
    pub tid: AtomicU32,
    /// The address of the lock.
    pub lock: AtomicU64,
    /// The return address of the call, as with [`OPERAND_CALLER`](crate::OPERAND_CALLER).
    pub caller: AtomicU64,
    /// `CLOCK_BOOTTIME`, ns.
    pub boottime_ns: AtomicU64,
}

/// [`Incident::kind`]: a lock was refused with EDEADLK: the caller holds it, or its owner waits for the caller.
pub const INCIDENT_RELOCK: u32 = 1;
/// [`Incident::kind`]: an unlock was refused with EPERM: the caller does not own the lock.
pub const INCIDENT_UNLOCK: u32 = 2;
/// [`Incident::kind`]: a lock was not destroyed, EBUSY: it is in use.
pub const INCIDENT_DESTROY: u32 = 3;
/// [`Incident::kind`]: the caller got a robust lock with EOWNERDEAD: the owner has ended and had not released it.
pub const INCIDENT_OWNER_DIED: u32 = 4;
/// [`Incident::kind`]: a robust lock was refused with ENOTRECOVERABLE: a caller after EOWNERDEAD did not repair it.
pub const INCIDENT_NOT_RECOVERABLE: u32 = 5;
/// [`Incident::kind`]: a lock was refused with EAGAIN: it is held as often as it can be.
pub const INCIDENT_TOO_OFTEN: u32 = 6;
/// [`Incident::kind`]: a call was refused with EINVAL: the lock was destroyed.
pub const INCIDENT_DESTROYED: u32 = 7;
/// [`Incident::kind`]: a unit of a semaphore was refused with EOVERFLOW: it has as many as it can have.
pub const INCIDENT_SEMAPHORE_FULL: u32 = 8;
/// [`Incident::kind`]: the caller waited on a condition variable with a mutex that it did not hold.
pub const INCIDENT_WAIT_WITHOUT_LOCK: u32 = 9;

/// There are this many kinds of incidents, from 1.
pub const INCIDENT_KINDS: usize = 9;
/// This many callers of each kind are kept.
pub const INCIDENTS_OF_KIND: usize = 4;
/// The header has this many entries for incidents.
pub const INCIDENTS_MAX: usize = INCIDENT_KINDS * INCIDENTS_OF_KIND;

const _: () = assert!(size_of::<Incident>() == 40);
