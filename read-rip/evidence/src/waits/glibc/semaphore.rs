//! `sem_t`: `struct new_sem`, in `sysdeps/nptl/internaltypes.h`.
//!
//! | offset | since 2.21 | before |
//! |---|---|---|
//! | 0 | value: here they wait | value: here they wait |
//! | 4 | number of waiting threads | `private` |
//! | 8 | `private` | number of waiting threads |
//!
//! `private` is 0, or 128 if processes share it. The stack has to say that it is a semaphore.

use super::super::case::{Case, Found};
use super::super::wait::{Owner, WaitKind};

/// The stack says that it is a semaphore.
pub(super) fn named(case: &Case<'_>) -> Option<Found> {
    let object = case.object_at(0)?;
    let [value, second, third, fourth] = case.words(object)?;
    let is = |waiting: u32, private: u32| {
        (1..1 << 22).contains(&waiting) && matches!(private, 0 | 128) && case.agrees(private == 128)
    };
    let (is_recent, is_old) = (is(second, third), is(third, second) && fourth == 0);
    let is_valid = case.futex.expected == 0 && (is_recent || is_old);
    is_valid.then_some(Found {
        kind: WaitKind::Semaphore { value },
        object: Some(object),
        owner: Owner::Nobody,
        is_exclusive: true,
    })
}
