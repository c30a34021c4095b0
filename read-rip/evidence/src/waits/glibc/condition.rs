//! `pthread_cond_t`, of which there are three layouts: since 2.41 (`struct __pthread_cond_s` without `__g_refs`), since
//! 2.25 (`sysdeps/nptl/bits/thread-shared-types.h`), and before (`bits/pthreadtypes.h`).
//!
//! | offset | since 2.41 | since 2.25 | before |
//! |---|---|---|---|
//! | 0 | `__wseq` | `__wseq` | `__lock`, then `__futex`: here they wait |
//! | 8 | `__g1_start` | `__g1_start` | `__total_seq` |
//! | 16 | `__g_size[2]` | `__g_refs[2]` | `__wakeup_seq` |
//! | 24 | `__g1_orig_size`, `__wrefs` | `__g_size[2]` | `__woken_seq` |
//! | 32 | `__g_signals[2]`: here they wait | `__g1_orig_size`, `__wrefs` | `__mutex` |
//! | 40 | 0 | `__g_signals[2]`: here they wait | `__nwaiters`, `__broadcast_seq` |
//!
//! Only the oldest one stores the mutex. If the mutex has priority inheritance, it tells the kernel too.
//!
//! The stack has to say that it is a condition variable. The bytes then have to tell the layout: the counters of a
//! variable at rest count the same threads twice. `__wrefs` has eight for each thread that waits, `__g_refs` has two.
//! The positions of the waiting threads since `__g1_start` are those of the first group (`__g1_orig_size`) and of the
//! second, and `__g_size` corrects both. If the numbers agree in none of the layouts, or in two, because the variable
//! is moving, the address is not known, and the kind still is.

use super::super::case::{Case, Found, wide};
use super::super::wait::{Owner, WaitKind};
use crate::target::FutexOperation;

/// The stack says that it is a condition variable.
pub(super) fn named(case: &Case<'_>) -> Option<Found> {
    let candidates = [
        recent(case, 32, is_2_41),
        recent(case, 36, is_2_41),
        recent(case, 40, is_2_25),
        recent(case, 44, is_2_25),
        old(case),
    ];
    let mut found = candidates.into_iter().flatten();
    let (object, mutex) = match (found.next(), found.next()) {
        (Some((object, mutex)), None) => (Some(object), mutex),
        _ => (None, None),
    };
    // The kernel moves the thread to this mutex, which has priority inheritance.
    let mutex = match case.futex.operation {
        FutexOperation::WaitRequeuePi(mutex) => Some(mutex),
        _ => mutex,
    };
    Some(Found { kind: WaitKind::Condition { mutex }, object, owner: Owner::Nobody, is_exclusive: true })
}

type Candidate = Option<(u64, Option<u64>)>;

/// A variable since 2.25, if the futex is at this offset.
fn recent(case: &Case<'_>, offset: u64, is: fn(&[u32; 12]) -> bool) -> Candidate {
    let object = case.object_at(offset).filter(|object| object.is_multiple_of(8))?;
    is(&case.words(object)?).then_some((object, None))
}

/// Whether it is at rest, by the layout since 2.41.
fn is_2_41(words: &[u32; 12]) -> bool {
    let [low, high, start_low, start_high, size1, size2, orig_size, references, _, _, unused1, unused2] =
        *words;
    let (sequence, start) = (wide(low, high) >> 1, wide(start_low, start_high));
    [unused1, unused2] == [0, 0]
        && waiting(sequence, start, orig_size, [size1, size2]) == Some(references >> 3)
}

/// Whether it is at rest, by the layout from 2.25 to 2.40.
fn is_2_25(words: &[u32; 12]) -> bool {
    let [low, high, start_low, start_high, refs1, refs2, size1, size2, orig_size, references, ..] = *words;
    let (sequence, start) = (wide(low, high) >> 1, wide(start_low, start_high) >> 1);
    (refs1 >> 1).checked_add(refs2 >> 1) == Some(references >> 3)
        && waiting(sequence, start, orig_size, [size1, size2]) == Some(references >> 3)
}

/// How many threads wait, by their positions; `None` if none does, or if there cannot be so many.
fn waiting(sequence: u64, start: u64, orig_size: u32, sizes: [u32; 2]) -> Option<u32> {
    let since = i64::try_from(sequence.checked_sub(start)?).ok()?;
    // The two lowest bits are a lock. The sizes are differences: that of the second group is minus those who gave up.
    let sizes = i64::from(sizes[0].cast_signed()) + i64::from(sizes[1].cast_signed());
    let waiting = since - i64::from(orig_size >> 2) + sizes;
    u32::try_from(waiting).ok().filter(|waiting| (1..1 << 22).contains(waiting))
}

/// A variable before 2.25.
fn old(case: &Case<'_>) -> Candidate {
    let object = case.object_at(4).filter(|object| object.is_multiple_of(8))?;
    let words: [u32; 12] = case.words(object)?;
    let [lock, _, total_low, total_high, wakeup_low, wakeup_high, woken_low, woken_high, ..] = words;
    let [.., mutex_low, mutex_high, waiters, _] = words;
    let (total, wakeup, woken) =
        (wide(total_low, total_high), wide(wakeup_low, wakeup_high), wide(woken_low, woken_high));
    let mutex = wide(mutex_low, mutex_high);
    let in_order = woken <= wakeup && wakeup <= total && total != 0;
    // The lowest bit is the clock. A variable that processes share has no mutex, but this.
    let is_waited_for = (1..1 << 22).contains(&(waiters >> 1));
    let has_mutex = mutex == u64::MAX || (mutex != 0 && mutex.is_multiple_of(4));
    (lock <= 2 && in_order && is_waited_for && has_mutex)
        .then_some((object, Some(mutex).filter(|&mutex| mutex != u64::MAX)))
}
