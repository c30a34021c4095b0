//! The objects of musl, from 1.1 to today: `src/internal/pthread_impl.h` and the files of `src/thread`.
//!
//! | object | its words |
//! |---|---|
//! | `pthread_mutex_t` | type, lock (here they wait), waiters; a normal one stores no owner |
//! | `pthread_rwlock_t` | lock (here they wait): number of readers, or 0x7fffffff of a writer |
//! | `sem_t` | value (here they wait), waiters |
//! | `pthread_once_t` | 3 while somebody waits |
//! | a stream's lock | the owner's id, and 0x40000000 while somebody waits |
//! | a thread | its id, then `errno`, then its state (here a join waits) |
//!
//! Condition variables and barriers of one process are waited for at words on the stacks of the threads that wait, so
//! their addresses are not known.

use super::case::{Case, Found, TID, WAITERS};
use super::construct::Primitive;
use super::wait::{MutexType, Owner, Protocol, UnknownOwner, WaitKind};
use crate::target::{Architecture, FutexOperation};

/// Bits of a mutex's type.
const TYPE: u32 = 3;
const ROBUST: u32 = 4;
const INHERIT: u32 = 8;
const SHARED: u32 = 128;
/// The lock of a normal mutex: `EBUSY`.
const NORMAL_LOCKED: u32 = 16;
/// A word of a stream that somebody waits for: `MAYBE_WAITERS`.
const STREAM_WAITERS: u32 = 0x4000_0000;
/// A readers-writer lock that a writer has.
const WRITER: u32 = 0x7fff_ffff;

/// Interprets the bytes as the object that the stack says.
pub(super) fn named(case: &Case<'_>, primitive: Primitive) -> Option<Found> {
    let without_address = |kind| Found { kind, object: None, owner: Owner::Nobody, is_exclusive: false };
    match primitive {
        Primitive::Mutex => mutex(case),
        Primitive::ReadLock => rwlock(case, false),
        Primitive::WriteLock => rwlock(case, true),
        Primitive::Condition => Some(without_address(WaitKind::Condition { mutex: None })),
        Primitive::Barrier => Some(without_address(WaitKind::Barrier { arrived: None })),
        Primitive::Semaphore => semaphore(case),
        Primitive::Once => (case.futex.expected == 3)
            .then(|| at_futex(case, WaitKind::Once, UnknownOwner::NotStored, false))?,
        Primitive::Join => join(case),
        Primitive::LibraryLock => library_lock(case),
        Primitive::Guard | Primitive::Opaque { .. } => None,
    }
}

/// Interprets the bytes as a mutex with an owner, or as a normal one, which stores none.
pub(super) fn unnamed(case: &Case<'_>) -> Option<Found> {
    mutex(case).filter(|found| match found.owner {
        Owner::Tid(_) => true,
        Owner::Unknown(UnknownOwner::NotStored) => has_zeros_of_normal_mutex(case),
        Owner::Nobody | Owner::Unknown(_) => false,
    })
}

/// Whether all words are zero that a normal mutex does not use: 8 of 10, and the lock word is always the same. A
/// readers-writer lock with 16 readers has this lock word too, and so looks like a mutex if the word before it is zero.
fn has_zeros_of_normal_mutex(case: &Case<'_>) -> bool {
    let words = case.object_at(4).and_then(|object| case.words(object));
    words.is_some_and(|[kind, _, _, unused @ ..]: [u32; 10]| kind & !SHARED == 0 && unused == [0; 7])
}

fn mutex(case: &Case<'_>) -> Option<Found> {
    let object = case.object_at(4)?;
    let [kind, word, waiters] = case.words(object)?;
    let is_inheriting = kind & INHERIT != 0;
    let is_known = kind & !(TYPE | ROBUST | INHERIT | SHARED) == 0 && kind & TYPE != 3;
    let is_waited_for = (1..1 << 22).contains(&waiters) || is_inheriting;
    let waits_for_pi = case.futex.operation == FutexOperation::LockPi;
    if !is_known || !is_waited_for || waits_for_pi != is_inheriting || !case.agrees(kind & SHARED != 0) {
        return None;
    }
    let is_anonymous = kind & (TYPE | ROBUST | INHERIT) == 0;
    let owner = if is_anonymous {
        (case.futex.expected == NORMAL_LOCKED | WAITERS).then_some(())?;
        case.unless_changed(word, Owner::Unknown(UnknownOwner::NotStored))
    } else if is_inheriting {
        case.owner_in_word(word)
    } else {
        (case.futex.expected & WAITERS != 0).then_some(())?;
        case.unless_changed(word, case.owner_in_word(word))
    };
    let of_type = match kind & TYPE {
        0 => MutexType::Normal,
        1 => MutexType::Recursive,
        _ => MutexType::ErrorChecking,
    };
    let protocol = if is_inheriting { Protocol::Inherit } else { Protocol::None };
    let (is_robust, is_shared) = (kind & ROBUST != 0, kind & SHARED != 0);
    let kind = WaitKind::Mutex { of_type, is_robust, protocol, is_shared };
    Some(Found { kind, object: Some(object), owner, is_exclusive: true })
}

fn rwlock(case: &Case<'_>, is_exclusive: bool) -> Option<Found> {
    let object = case.object_at(0)?;
    let [word, waiters, _] = case.words(object)?;
    let held = case.futex.expected & WRITER;
    let is_valid = case.futex.expected & WAITERS != 0 && held != 0 && (1..1 << 22).contains(&waiters);
    let is_possible = is_exclusive || held == WRITER;
    let (readers, doubt) =
        if held == WRITER { (0, UnknownOwner::NotStored) } else { (held, UnknownOwner::Readers(held)) };
    (is_valid && is_possible).then(|| Found {
        kind: WaitKind::ReadWriteLock { readers, preference: None },
        object: Some(object),
        owner: case.unless_changed(word, Owner::Unknown(doubt)),
        is_exclusive,
    })
}

fn semaphore(case: &Case<'_>) -> Option<Found> {
    let object = case.object_at(0)?;
    let [value, waiters] = case.words(object)?;
    // -1 before 1.2.4. The highest bit says that somebody waits.
    let is_valid = matches!(case.futex.expected, u32::MAX | WAITERS) && (1..1 << 22).contains(&waiters);
    let value = if value == u32::MAX { 0 } else { value & !WAITERS };
    is_valid.then_some(Found {
        kind: WaitKind::Semaphore { value },
        object: Some(object),
        owner: Owner::Nobody,
        is_exclusive: true,
    })
}

fn library_lock(case: &Case<'_>) -> Option<Found> {
    let owner = case.futex.expected & !STREAM_WAITERS;
    if case.futex.expected & (WAITERS | STREAM_WAITERS) == STREAM_WAITERS && case.lives(owner & TID) {
        let [word] = case.words(case.object_at(0)?)?;
        let owner = case.unless_changed(word, Owner::Tid(owner));
        let kind = WaitKind::LibraryLock;
        return Some(Found { kind, object: Some(case.futex.address), owner, is_exclusive: true });
    }
    // The highest bit says that somebody waits. Before 1.1.20, it was the number 1.
    let is_valid = case.futex.expected & WAITERS != 0 || case.futex.expected == 1;
    is_valid.then(|| at_futex(case, WaitKind::LibraryLock, UnknownOwner::NotStored, true))?
}

/// An object at the futex's address, without an owner.
fn at_futex(case: &Case<'_>, kind: WaitKind, doubt: UnknownOwner, is_exclusive: bool) -> Option<Found> {
    let object = case.object_at(0)?;
    let [word] = case.words(object)?;
    let owner = case.unless_changed(word, Owner::Unknown(doubt));
    Some(Found { kind, object: Some(object), owner, is_exclusive })
}

/// A join waits at the state of the thread, which is after its id. The thread's structure begins with its own address.
fn join(case: &Case<'_>) -> Option<Found> {
    let offset = match case.architecture {
        Architecture::X86_64 => 56,
        Architecture::Aarch64 => 40,
    };
    let thread = case.object_at(offset)?;
    let mut bytes = [0; 60];
    let bytes = &mut bytes[..offset as usize + 4];
    case.memory.read(thread, bytes).ok()?;
    let word_at = |at: usize| Some(u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?));
    let points_to_itself = bytes[..8] == thread.to_le_bytes();
    let id = word_at(offset as usize - 8)?;
    let owner = case.unless_changed(word_at(offset as usize)?, case.owner(id));
    points_to_itself.then_some(Found { kind: WaitKind::Join, object: None, owner, is_exclusive: false })
}
