//! `std::sync` with locks that record what happens to them: replace `use std::sync` by `use librip::sync`.
//!
//! [`Mutex`], [`RwLock`] and [`Condvar`] wrap those of the standard library and behave alike, poisoning included;
//! everything else is passed on as it is. The ring then knows which thread holds which lock, and since when it waits
//! for which other; `read-rip locks` and `read-rip check` show it, with the lines of your program, not of this one.
//!
//! ```
//! use librip::sync::{Arc, Mutex};
//!
//! let sessions = Arc::new(Mutex::new(Vec::new()));
//! librip::rip_lock_name!(&*sessions, "sessions"); // optional: statics are known by their own names
//! sessions.lock().unwrap().push(7);
//! ```
//!
//! # What it costs
//!
//! A few nanoseconds for an uncontended lock and unlock; `scripts/bench` has the table. While the lock is held, one
//! word is stored after it was taken, and one before it is given up; everything else is written outside. A lock takes
//! eight bytes more, a guard as well.
//!
//! # What it does not see
//!
//! The place of a lock that is taken through a function pointer (`.map(Mutex::lock)`) is where the pointer was called
//! from, as far as debug information tells. [`Mutex::get_mut`] and [`Mutex::into_inner`] lock nothing and record
//! nothing.

mod condvar;
mod locking;
mod mutex;
mod rwlock;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use std::sync::{
    Arc, Barrier, BarrierWaitResult, LazyLock, LockResult, Once, OnceLock, OnceState, PoisonError,
    TryLockError, TryLockResult, Weak, atomic, mpsc,
};

/// The standard library's guard, or what it says instead, as ours.
#[inline(always)]
fn mapped<G, H>(result: LockResult<G>, map: impl FnOnce(G) -> H) -> LockResult<H> {
    match result {
        Ok(guard) => Ok(map(guard)),
        Err(poisoned) => Err(PoisonError::new(map(poisoned.into_inner()))),
    }
}
