#![doc = include_str!("../README.md")]

mod barrier;
mod blocking;
#[cfg(feature = "futures")]
pub mod futures;
mod guards;
mod lease;
mod mutex;
mod once_cell;
mod rwlock;
mod semaphore;
mod with;

pub use async_lock::BarrierWaitResult;
pub use barrier::Barrier;
pub use mutex::{Mutex, MutexGuard, MutexGuardArc};
pub use once_cell::OnceCell;
pub use rwlock::{
    RwLock, RwLockReadGuard, RwLockReadGuardArc, RwLockUpgradableReadGuard, RwLockUpgradableReadGuardArc,
    RwLockWriteGuard, RwLockWriteGuardArc,
};
pub use semaphore::{Semaphore, SemaphoreGuard, SemaphoreGuardArc};
