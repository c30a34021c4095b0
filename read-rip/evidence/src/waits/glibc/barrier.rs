//! `pthread_barrier_t`: `struct pthread_barrier`, in `sysdeps/nptl/internaltypes.h`.
//!
//! | offset | since 2.23 | before |
//! |---|---|---|
//! | 0 | `in`: threads that have arrived, in all rounds | `curr_event`: here they wait |
//! | 4 | `current_round`: here they wait; the value of `in` at its beginning | `lock` |
//! | 8 | `count`: threads of a round | `left`: threads that are missing |
//! | 12 | `shared` | `init_count`: threads of a round |
//! | 16 | `out` | `private` |
//!
//! The stack has to say that it is a barrier.

use super::super::case::{Case, Found, only};
use super::super::wait::{Owner, WaitKind};

/// The stack says that it is a barrier.
pub(super) fn named(case: &Case<'_>) -> Option<Found> {
    only([recent(case), old(case)])
}

/// Since 2.23.
fn recent(case: &Case<'_>) -> Option<Found> {
    let object = case.object_at(4)?;
    let [entered, round, count, shared, _] = case.words(object)?;
    let arrived = entered.wrapping_sub(round);
    let is_valid = matches!(shared, 0 | 1 | 128) && case.agrees(shared != 0) && round == case.futex.expected;
    (is_valid && (1..count).contains(&arrived)).then_some(found(object, arrived, count))
}

/// Before 2.23.
fn old(case: &Case<'_>) -> Option<Found> {
    let object = case.object_at(0)?;
    let [event, lock, left, count, private] = case.words(object)?;
    let is_valid = lock <= 2
        && matches!(private, 0 | 128)
        && case.agrees(private == 128)
        && event == case.futex.expected;
    (is_valid && (1..count).contains(&left)).then(|| found(object, count - left, count))
}

fn found(object: u64, arrived: u32, count: u32) -> Found {
    Found {
        kind: WaitKind::Barrier { arrived: Some((arrived, count)) },
        object: Some(object),
        owner: Owner::Nobody,
        is_exclusive: false,
    }
}
