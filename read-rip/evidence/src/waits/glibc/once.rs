//! `pthread_once_t` (`nptl/pthread_once.c`), and the guard of a static variable of C++ (libstdc++'s `guard.cc`).
//!
//! Both are a word, and the stack has to say which they are. A `pthread_once_t` that is being initialised has 1 in its
//! two lowest bits; above is the number of forks. Neither stores who initialises.

use super::super::case::{Case, Found};
use super::super::wait::{Owner, UnknownOwner, WaitKind};

/// A guard whose variable is being initialised, and waited for.
const PENDING_AND_WAITED_FOR: u32 = 0x1_0100;

/// The stack says that it is a `pthread_once_t`.
pub(super) fn named(case: &Case<'_>) -> Option<Found> {
    (case.futex.expected & 3 == 1).then_some(())?;
    found(case)
}

/// The stack says that it is a guard.
pub(super) fn guard(case: &Case<'_>) -> Option<Found> {
    (case.futex.expected == PENDING_AND_WAITED_FOR).then_some(())?;
    found(case)
}

fn found(case: &Case<'_>) -> Option<Found> {
    let object = case.object_at(0)?;
    let [word] = case.words(object)?;
    let owner = case.unless_changed(word, Owner::Unknown(UnknownOwner::NotStored));
    Some(Found { kind: WaitKind::Once, object: Some(object), owner, is_exclusive: false })
}
