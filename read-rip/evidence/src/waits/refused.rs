//! A lock with priority inheritance that the kernel has refused: the thread sleeps for ever, or until its time is up.
//!
//! The kernel knows who has such a lock, and who waits for it. Where a wait would close a cycle, it says `EDEADLK`, and
//! where the owner of a lock that is not robust has ended, `ESRCH`. A mutex of another type than error-checking and
//! recursive must not return then. So both libraries let the thread sleep at a word that no other thread knows: a
//! literal on its own stack (glibc: `__pthread_mutex_lock_full`; musl: `pthread_mutex_timedlock_pi`).

use super::case::{Case, Found};
use super::wait::{Owner, UnknownOwner, WaitKind};
use crate::target::FutexOperation;

/// The function that sleeps has a frame that is smaller.
const FRAME_MAX_BYTES: u64 = 1024;

/// The stack says that it is a mutex, and ends here.
pub(super) fn refused(case: &Case<'_>, sp: u64) -> Option<Found> {
    let is_own_word = case.futex.address.checked_sub(sp).is_some_and(|from_sp| from_sp < FRAME_MAX_BYTES);
    let is_wait = case.futex.operation == FutexOperation::Wait && case.futex.expected == 0;
    let [word] = case.words(case.object_at(0)?)?;
    (is_own_word && is_wait && word == 0).then_some(Found {
        kind: WaitKind::Refused,
        object: Some(case.futex.address),
        owner: Owner::Unknown(UnknownOwner::NotStored),
        is_exclusive: true,
    })
}
