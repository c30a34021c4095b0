#![doc = include_str!("../README.md")]

mod condvar;
#[cfg(not(feature = "deadlock_detection"))]
#[path = "../../parking_lot/src/deadlock.rs"]
mod deadlock;
#[cfg(feature = "deadlock_detection")]
#[path = "../../parking_lot/src/deadlock.rs"]
pub mod deadlock;
mod fairness;
#[path = "../../parking_lot/src/locks.rs"]
mod locks;
mod once;
#[path = "../../parking_lot/src/once.rs"]
#[allow(unreachable_pub, reason = "in 0.12, all of it is public")]
mod once_of_0_12;
mod raw;
mod recursive;
#[path = "../../parking_lot/src/waiters.rs"]
mod waiters;
#[path = "../../parking_lot/src/word.rs"]
mod word;

#[cfg(all(feature = "send_guard", feature = "deadlock_detection"))]
compile_error!("the `send_guard` and `deadlock_detection` features cannot be used together");

pub use ::lock_api;

pub use crate::condvar::{Condvar, RawCondvar};
pub use crate::locks::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard, MappedReentrantMutexGuard,
    MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex, MutexGuard, RawThreadId, ReentrantMutex,
    ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use crate::once::Once;
pub use crate::once_of_0_12::OnceState;
pub use crate::raw::{RawFairMutex, RawMutex, RawRwLock, RawRwLockRecursive};
pub use crate::recursive::{
    MappedRecursiveRwLockReadGuard, MappedRecursiveRwLockWriteGuard, RecursiveRwLock,
    RecursiveRwLockReadGuard, RecursiveRwLockUpgradableReadGuard, RecursiveRwLockWriteGuard,
};
pub use lock_api::WaitTimeoutResult;
#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
