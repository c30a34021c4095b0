#![doc = include_str!("../README.md")]

mod condvar;
mod consts;
#[cfg(not(feature = "deadlock_detection"))]
mod deadlock;
#[cfg(feature = "deadlock_detection")]
pub mod deadlock;
mod fairness;
mod locks;
mod once;
mod raw;
mod waiters;
mod word;

#[cfg(all(feature = "send_guard", feature = "deadlock_detection"))]
compile_error!("the `send_guard` and `deadlock_detection` features cannot be used together");

pub use ::lock_api;

pub use crate::condvar::{Condvar, WaitTimeoutResult};
pub use crate::consts::{const_fair_mutex, const_mutex, const_reentrant_mutex, const_rwlock};
pub use crate::locks::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, RawThreadId, ReentrantMutex,
    ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use crate::once::{Once, OnceState};
pub use crate::raw::{RawFairMutex, RawMutex, RawRwLock};
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
