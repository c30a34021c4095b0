//! The locks of the library's own.
//!
//! Most of them are one word (`lll_lock`, `sysdeps/nptl/lowlevellock.h`): 0 free, 1 locked, 2 locked and waited for.
//! They have no owner. Those of streams, `_IO_lock_t` (`sysdeps/nptl/stdio-lock.h`), and other recursive ones are
//! followed by a counter and a pointer to the owner's `struct pthread`.
//!
//! Without function names, only the latter are recognised: the pointer has to lead to a `struct pthread` of a living
//! thread.

use super::super::case::{Case, Found, wide};
use super::super::wait::{Owner, UnknownOwner, WaitKind};
use super::thread;

/// Locked and waited for.
const CONTENDED: u32 = 2;

/// The stack says that it is a lock of the library's own.
pub(super) fn named(case: &Case<'_>) -> Option<Found> {
    if let Some(found) = unnamed(case) {
        return Some(found);
    }
    let [word] = case.words(case.object_at(0)?)?;
    let owner = case.unless_changed(word, Owner::Unknown(UnknownOwner::NotStored));
    (case.futex.expected == CONTENDED && case.futex.is_private).then(|| found(case, owner))
}

/// Nothing says that it is one.
pub(super) fn unnamed(case: &Case<'_>) -> Option<Found> {
    let [word, count, low, high] = case.words(case.object_at(0)?)?;
    let is_locked = case.futex.expected == CONTENDED && word == CONTENDED && case.futex.is_private;
    if !is_locked || !(1..=i32::MAX.cast_unsigned()).contains(&count) {
        return None;
    }
    let owner =
        thread::id_at(case.memory, case.architecture, wide(low, high)).filter(|&id| case.lives(id))?;
    Some(found(case, Owner::Tid(owner)))
}

fn found(case: &Case<'_>, owner: Owner) -> Found {
    Found { kind: WaitKind::LibraryLock, object: Some(case.futex.address), owner, is_exclusive: true }
}
