//! `pthread_mutex_t`: `struct __pthread_mutex_s`, in `sysdeps/x86/nptl/bits/struct_mutex.h` and
//! `sysdeps/nptl/bits/struct_mutex.h`; before 2.31 in `bits/pthreadtypes.h`.
//!
//! | offset | field | what it has |
//! |---|---|---|
//! | 0 | `__lock` | 0 free, 1 locked, 2 locked and waited for; see below |
//! | 4 | `__count` | how often a recursive mutex is locked; see below |
//! | 8 | `__owner` | the owner's id |
//! | 12 | `__nusers` | the owner, and the waits on condition variables that will lock it again |
//! | 16 | `__kind` | type, and the bits below |
//! | 20 | `__spins`, `__elision` | of adaptive and of elided mutexes; otherwise 0 |
//! | 24 | `__list` | two pointers, of robust mutexes; otherwise 0 |
//!
//! A thread waits at `__lock`. In a robust or an inheriting mutex this has the owner's id, and in a protecting one the
//! ceiling of the priority, above bit 18. These three kinds have 0 or 1 in `__count`, and the others 0.
//!
//! # How likely an error is without function names
//!
//! `unnamed` wants a valid kind, an owner that lives, a lock word that is what the call expects, and zeros wherever the
//! kind wants them: 28 of 40 bytes of a normal mutex. Random bytes pass with a chance below 2^-200. So what passes is a
//! mutex, or was made to look like one: by a process that lies, or by a lock of a user's own that copies glibc's
//! layout, whose owner is then most likely the owner.

use super::super::case::{Case, Found, TID, WAITERS, wide};
use super::super::wait::{MutexType, Owner, Protocol, UnknownOwner, WaitKind};
use crate::target::FutexOperation;

/// Bits of `__kind`: `nptl/pthreadP.h`.
const ROBUST: u32 = 16;
const INHERIT: u32 = 32;
const PROTECT: u32 = 64;
const SHARED: u32 = 128;
const ELISION: u32 = 256;
const NO_ELISION: u32 = 512;
const TYPE: u32 = 3;
/// The bits of `__lock` below the ceiling: `PTHREAD_MUTEX_PRIO_CEILING_SHIFT` is 19.
const BELOW_CEILING: u32 = (1 << 19) - 1;
/// Locked and waited for.
const CONTENDED: u32 = 2;

#[derive(Clone, Copy)]
struct Mutex {
    lock: u32,
    count: u32,
    owner: u32,
    users: u32,
    kind: u32,
    spins: u32,
    list: [u64; 2],
}

/// The stack says that it is a mutex.
pub(super) fn named(case: &Case<'_>) -> Option<Found> {
    let mutex = Mutex::read(case)?;
    mutex.is_valid(case).then(|| mutex.found(case))
}

/// Nothing says that it is a mutex.
pub(super) fn unnamed(case: &Case<'_>) -> Option<Found> {
    let mutex = Mutex::read(case)?;
    let found = mutex.found(case);
    (mutex.is_valid(case) && mutex.is_strict() && matches!(found.owner, Owner::Tid(_))).then_some(found)
}

impl Mutex {
    fn read(case: &Case<'_>) -> Option<Mutex> {
        let [lock, count, owner, users, kind, spins, previous_low, previous_high, next_low, next_high] =
            case.words(case.object_at(0)?)?;
        let list = [wide(previous_low, previous_high), wide(next_low, next_high)];
        Some(Mutex { lock, count, owner, users, kind, spins, list })
    }

    /// Whether the kind has all of these bits.
    fn is(&self, bits: u32) -> bool {
        self.kind & bits == bits
    }

    /// Whether kind and call agree.
    fn is_valid(&self, case: &Case<'_>) -> bool {
        let is_known = self.kind & !(TYPE | ROBUST | INHERIT | PROTECT | SHARED | ELISION | NO_ELISION) == 0;
        let is_possible = !(self.is(INHERIT | PROTECT) || self.is(ELISION | NO_ELISION));
        let waits_for_pi = case.futex.operation == FutexOperation::LockPi;
        let has_expected = if self.is(INHERIT) {
            true // The kernel compares nothing.
        } else if self.is(ROBUST) {
            case.futex.expected & WAITERS != 0
        } else if self.is(PROTECT) {
            case.futex.expected & BELOW_CEILING == CONTENDED
        } else {
            case.futex.expected == CONTENDED
        };
        // A robust mutex always has the bit: nptl/pthread_mutex_init.c.
        let agrees = case.agrees(self.is(SHARED));
        is_known && is_possible && has_expected && agrees && waits_for_pi == self.is(INHERIT)
    }

    /// Whether the fields are what the kind wants, too, for a mutex that somebody owns.
    fn is_strict(&self) -> bool {
        let is_counted = match self.kind {
            kind if kind & TYPE == 1 => self.count != 0,
            // The functions for these kinds do not ask for the type when they set it to 1.
            kind if kind & (ROBUST | INHERIT | PROTECT) != 0 => self.count <= 1,
            _ => self.count == 0,
        };
        // One owner, and the threads that wait on a condition variable.
        let has_users = (1..=u32::from(u16::MAX)).contains(&self.users);
        let spins = match self.kind & TYPE {
            3 => self.spins <= i16::MAX as u32,
            _ => self.spins == 0 || self.is(ELISION),
        };
        let is_listed = match self.list {
            // The lowest bit marks an inheriting mutex.
            [previous, next] if self.is(ROBUST) => {
                previous & 6 == 0 && next & 6 == 0 && previous != 0 && next != 0
            }
            list => list == [0, 0],
        };
        let is_same_owner = !(self.is(ROBUST) || self.is(INHERIT)) || self.lock & TID == self.owner;
        is_counted && has_users && spins && is_listed && is_same_owner
    }

    fn found(&self, case: &Case<'_>) -> Found {
        let owner = if self.is(INHERIT) {
            case.owner_in_word(self.lock)
        } else if self.is(ROBUST) {
            case.unless_changed(self.lock, case.owner_in_word(self.lock))
        } else if self.is(ELISION) && self.owner == 0 {
            // A transaction of the processor may have it, which stores nothing.
            Owner::Unknown(UnknownOwner::NotStored)
        } else {
            case.unless_changed(self.lock, case.owner(self.owner))
        };
        let of_type = match self.kind & TYPE {
            0 => MutexType::Normal,
            1 => MutexType::Recursive,
            2 => MutexType::ErrorChecking,
            _ => MutexType::Adaptive,
        };
        let protocol = match () {
            () if self.is(INHERIT) => Protocol::Inherit,
            () if self.is(PROTECT) => Protocol::Protect,
            () => Protocol::None,
        };
        let (is_robust, is_shared) = (self.is(ROBUST), self.is(SHARED));
        // glibc sets the bit of shared mutexes for robust ones too, so it says nothing there.
        let kind = WaitKind::Mutex { of_type, is_robust, protocol, is_shared };
        Found { kind, object: Some(case.futex.address), owner, is_exclusive: true }
    }
}
