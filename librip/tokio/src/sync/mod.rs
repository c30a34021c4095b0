//! `tokio::sync` with locks and channels that are recorded: replace `use tokio::sync` by `use librip_tokio::sync`.
//!
//! They behave as tokio's do: the order of waiters, what happens if a future is dropped, the budget of a task, panics.
//! The ring then says which task holds which lock, and since when a task waits for which lock, message or notification.
//!
//! A future that is ready at its first poll has not waited. The place of a wait is the call that makes the future, as
//! `lock()` in `mutex.lock().await`.
//!
//! # What differs from `tokio::sync`
//!
//! * A lock records its end, so that another lock at the same address is not taken for it. So it has a destructor: a
//!   `const fn` cannot drop one.
//! * Functions that are `async fn` in tokio return an `impl Future` here. They take the location of their caller when
//!   they are called.
//! * `poll_recv` and its like record nothing: they do not know when a wait begins and ends.
//! * A [`oneshot::Receiver`] waits where its channel was made: a poll knows no caller.

mod barrier;
pub mod broadcast;
mod channel;
mod guards;
mod map;
pub mod mpsc;
mod mutex;
mod notify;
mod once_cell;
pub mod oneshot;
mod pointer;
mod raw;
mod request;
mod rwlock;
mod semaphore;
mod set_once;
pub mod watch;

pub use barrier::Barrier;
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};
pub use notify::Notify;
pub use once_cell::OnceCell;
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockMappedWriteGuard,
    RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
pub use set_once::SetOnce;

pub use tokio::sync::{
    AcquireError, BarrierWaitResult, SetError, SetOnceError, TryAcquireError, TryLockError,
};

/// Futures that have names, as in [`tokio::sync::futures`].
pub mod futures {
    pub use super::notify::{Notified, OwnedNotified};
}
