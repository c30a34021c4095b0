//! `pthread_rwlock_t`: `struct __pthread_rwlock_arch_t`, in `sysdeps/x86/nptl/bits/struct_rwlock.h` and
//! `sysdeps/aarch64/nptl/bits/struct_rwlock.h`; the states are in `nptl/pthread_rwlock_common.c`. Before 2.25 it is
//! another algorithm, in `nptl/pthread_rwlock_wrlock.c`, with fields of other meanings at the same offsets.
//!
//! | offset | since 2.25 | before |
//! |---|---|---|
//! | 0 | `__readers`: bits 0 to 2 state, then their number | `__lock` of the fields |
//! | 4 | `__writers` that wait | `__nr_readers` |
//! | 8 | `__wrphase_futex` | `__readers_wakeup`: readers wait here |
//! | 12 | `__writers_futex` | `__writer_wakeup`: writers wait here |
//! | 16 | always 0 | `__nr_readers_queued` |
//! | 20 | always 0 | `__nr_writers_queued` |
//! | 24 | `__cur_writer`, its thread id | `__writer`, its thread id |
//! | 28 | `__shared` | `__shared` |
//! | 32 | one byte for elision, then 0 | the same |
//! | 48 | `__flags`: whom it prefers | the same |
//!
//! Since 2.25, readers and the first writer in the queue wait at `__wrphase_futex`, other writers at `__writers_futex`,
//! and readers that wait behind a writer at `__readers`. Before, whoever waits is queued, so that one of two words is
//! not 0 that now always are. This tells the algorithms apart.
//!
//! Without function names, only a lock that a living writer has is recognised: its id, and 24 bytes that are 0, and the
//! states must fit.

use super::super::case::{Case, Found, only};
use super::super::wait::{Owner, Preference, UnknownOwner, WaitKind};

/// Bits of `__readers`.
const WRITE_PHASE: u32 = 1;
const WRITE_LOCKED: u32 = 2;
const READERS_WAIT: u32 = 4;
const READER_SHIFT: u32 = 3;
/// The bit of the two futexes that says that somebody waits.
const FUTEX_USED: u32 = 2;

/// Where in the lock the thread waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Readers = 0,
    WritePhase = 8,
    Writers = 12,
}

/// The stack says that it is a readers-writer lock, and what the thread wants.
pub(super) fn named(case: &Case<'_>, is_exclusive: bool) -> Option<Found> {
    only(all(case).map(|found| found.filter(|found| found.is_exclusive == is_exclusive)))
}

/// Nothing says that it is a readers-writer lock.
pub(super) fn unnamed(case: &Case<'_>) -> Option<Found> {
    only(all(case).map(|found| found.filter(|found| matches!(found.owner, Owner::Tid(_)))))
}

/// All interpretations.
fn all(case: &Case<'_>) -> [Option<Found>; 5] {
    [
        recent(case, At::Readers),
        recent(case, At::WritePhase),
        recent(case, At::Writers),
        old(case, At::WritePhase),
        old(case, At::Writers),
    ]
}

/// The words of the lock whose word the futex is.
fn words(case: &Case<'_>, at: At) -> Option<(u64, [u32; 14])> {
    let object = case.object_at(at as u64)?;
    Some((object, case.words(object)?))
}

/// Since 2.25.
fn recent(case: &Case<'_>, at: At) -> Option<Found> {
    let (object, words) = words(case, at)?;
    let [readers, _, phase, writers, pad3, pad4, writer, shared, elision, pad5, pad6, pad7, flags, _] = words;
    let preference = preference(flags)?;
    let is_clean = pad3 == 0 && pad4 == 0 && elision <= 0xff && [pad5, pad6, pad7] == [0; 3];
    if !is_clean || shared > 1 || !case.agrees(shared == 1) {
        return None;
    }
    let value = case.futex.expected;
    let is_writing = readers & WRITE_PHASE != 0;
    let is_locked = readers & WRITE_LOCKED != 0;
    let (word, is_exclusive, makes_sense) = match at {
        // A reader waits for the end of the writing, and the first writer for its beginning.
        At::WritePhase if value == FUTEX_USED | 1 => (phase, false, is_writing || phase != value),
        At::WritePhase if value == FUTEX_USED => (phase, true, is_locked && (!is_writing || phase != value)),
        At::Writers => (writers, true, value == FUTEX_USED | 1 && (is_locked || writers != value)),
        At::Readers => {
            let waits = value & (READERS_WAIT | WRITE_LOCKED) == READERS_WAIT | WRITE_LOCKED;
            let is_behind = waits && value & WRITE_PHASE == 0 && value >> READER_SHIFT != 0;
            (readers, false, is_behind && preference == Preference::Writers)
        }
        At::WritePhase => return None,
    };
    if !makes_sense {
        return None;
    }
    let count = readers >> READER_SHIFT;
    let owner = match () {
        () if is_writing && is_locked => case.owner(writer),
        () if !is_writing && count > 0 => Owner::Unknown(UnknownOwner::Readers(count)),
        () => Owner::Unknown(UnknownOwner::Changing),
    };
    // Readers that wait for the end of the writing are counted like those that have the lock.
    let holding = if is_writing { 0 } else { count };
    Some(Found {
        kind: WaitKind::ReadWriteLock { readers: holding, preference: Some(preference) },
        object: Some(object),
        owner: case.unless_changed(word, owner),
        is_exclusive,
    })
}

/// Before 2.25.
fn old(case: &Case<'_>, at: At) -> Option<Found> {
    let (object, words) = words(case, at)?;
    let [lock, readers, readers_wakeup, writer_wakeup, queued_readers, queued_writers, ..] = words;
    let [.., writer, shared, elision, pad1, pad2, pad3, flags, _] = words;
    let preference = preference(flags)?;
    let is_clean = lock <= 2 && elision <= 0xff && [pad1, pad2, pad3] == [0; 3];
    // The field has the bits of the system call.
    let is_shared = shared != 0;
    if !is_clean || !matches!(shared, 0 | 1 | 128) || !case.agrees(is_shared) {
        return None;
    }
    let (word, queued, is_exclusive) = match at {
        At::WritePhase => (readers_wakeup, queued_readers, false),
        At::Writers => (writer_wakeup, queued_writers, true),
        At::Readers => return None,
    };
    let is_owned_once = writer == 0 || readers == 0;
    // Numbers of threads.
    if queued == 0 || [readers, queued_readers, queued_writers].iter().any(|&n| n > 1 << 22) || !is_owned_once
    {
        return None;
    }
    let owner = match (writer, readers) {
        // Nobody has it: the wait is about to end, or this is another lock, 8 or 12 bytes from here.
        (0, 0) => return None,
        (0, readers) => Owner::Unknown(UnknownOwner::Readers(readers)),
        (writer, _) => case.owner(writer),
    };
    Some(Found {
        kind: WaitKind::ReadWriteLock { readers, preference: Some(preference) },
        object: Some(object),
        owner: case.unless_changed(word, owner),
        is_exclusive,
    })
}

fn preference(flags: u32) -> Option<Preference> {
    match flags {
        0 => Some(Preference::Readers),
        1 => Some(Preference::WritersInName),
        2 => Some(Preference::Writers),
        _ => None,
    }
}
