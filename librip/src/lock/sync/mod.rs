//! `std::sync` with locks that are recorded: replace `use std::sync` by `use librip::sync`.
//!
//! [`Mutex`], [`RwLock`], [`Condvar`], [`Barrier`], [`Once`], [`OnceLock`], [`LazyLock`] and the receivers and bounded
//! senders of [`mpsc`] wrap those of the standard library and behave alike, poisoning included. Everything else is
//! re-exported unchanged. The ring then says which thread holds which lock, which one runs which initialiser, and since
//! when a thread waits for which of them, at a barrier, or for a message. `read-rip locks` and `read-rip check` show
//! that, with the lines of your program.
//!
//! ```
//! use librip::sync::{Arc, Mutex};
//!
//! let sessions = Arc::new(Mutex::new(Vec::new()));
//! librip::rip_lock_name!(&*sessions, "sessions"); // optional: a static has its own name
//! sessions.lock().unwrap().push(7);
//! ```
//!
//! # What it costs
//!
//! A few nanoseconds for an uncontended lock and unlock; `scripts/bench` has the table. While the lock is held, one
//! word is stored after the acquisition, and one before the release. Everything else is written outside. A lock takes
//! up to eight bytes more, and so does a guard.
//!
//! An initialisation that is done costs what it costs in the standard library: [`OnceLock::get`] and
//! [`Once::call_once`] execute as many instructions, [`OnceLock::get_or_init`] and [`LazyLock`] one more. Only calls
//! before that record. A channel records only where a thread waits. A barrier records each wait.
//!
//! # What differs from `std::sync`
//!
//! A mutex and a readers-writer lock record their end, so that another lock at the same address is not taken for them.
//! So they have a destructor, and the standard library's have none. It shows in two places:
//!
//! * in a `thread_local!`, such a lock is gone when the destructors of other thread-locals run, and `with` panics
//!   there. Put it into a `static`, or a `thread_local!` of `std::mem::ManuallyDrop`.
//! * a `const fn` cannot drop one (error E0493), for instance in `into_inner`. `new` is a `const fn` as in the standard
//!   library.
//!
//! Locks and guards are larger, and a [`LazyLock`] also by its initialiser. `WaitTimeoutResult`, `LockResult` and all
//! re-exports are the same types.
//!
//! # What it does not see
//!
//! If a lock is acquired through a function pointer (`.map(Mutex::lock)`), its location is where the pointer was
//! called, as far as debug information says. [`Mutex::get_mut`] and [`Mutex::into_inner`] lock nothing and record
//! nothing.

mod barrier;
mod condvar;
mod initialising;
mod lazy_lock;
mod locking;
pub mod mpsc;
mod mutex;
mod once;
mod once_lock;
mod rwlock;

pub use barrier::Barrier;
pub use condvar::Condvar;
pub use lazy_lock::LazyLock;
pub use mutex::{Mutex, MutexGuard};
#[allow(deprecated, reason = "programs that use it replace one import")]
pub use once::ONCE_INIT;
pub use once::Once;
pub use once_lock::OnceLock;
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use std::sync::{
    Arc, BarrierWaitResult, LockResult, OnceState, PoisonError, TryLockError, TryLockResult,
    WaitTimeoutResult, Weak, atomic,
};
