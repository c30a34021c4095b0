//! The objects of glibc, from 2.17 to today, on x86-64 and aarch64.
//!
//! Their layouts follow glibc's public sources; each file names them. Both processors have the same layouts, but for
//! what `thread` says. No file asks for the version of the library: what differs is told by the bytes.

mod barrier;
mod condition;
mod mutex;
mod once;
mod rwlock;
mod semaphore;
mod stream;
mod thread;

pub(super) use thread::{id_at, id_offset};

use super::case::{Case, Found};
use super::construct::Primitive;

/// Interprets the bytes as the object that the stack says.
pub(super) fn named(case: &Case<'_>, primitive: Primitive) -> Option<Found> {
    match primitive {
        Primitive::Mutex => mutex::named(case),
        Primitive::ReadLock => rwlock::named(case, false),
        Primitive::WriteLock => rwlock::named(case, true),
        Primitive::Condition => condition::named(case),
        Primitive::Semaphore => semaphore::named(case),
        Primitive::Barrier => barrier::named(case),
        Primitive::Once => once::named(case),
        Primitive::Guard => once::guard(case),
        Primitive::Join => thread::join(case),
        Primitive::LibraryLock => stream::named(case),
        Primitive::Opaque { .. } => None,
    }
}

/// Interprets the bytes as each kind of object that stores an owner.
pub(super) fn unnamed(case: &Case<'_>) -> [Option<Found>; 4] {
    [mutex::unnamed(case), rwlock::unnamed(case), thread::join(case), stream::unnamed(case)]
}
