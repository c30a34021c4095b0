//! [`RecursiveRwLock`] and its guards: those of `lock_api`, with the recorded raw lock.

use crate::raw::RawRwLockRecursive;

/// A readers-writer lock that a thread can lock again for reading while it holds it for reading. A reader waits for no
/// writer that waits itself.
pub type RecursiveRwLock<T> = lock_api::RwLock<RawRwLockRecursive, T>;
/// Holds a [`RecursiveRwLock`] for reading until it is dropped.
pub type RecursiveRwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLockRecursive, T>;
/// Holds a [`RecursiveRwLock`] for writing until it is dropped.
pub type RecursiveRwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLockRecursive, T>;
/// Holds a [`RecursiveRwLock`] for reading until it is dropped, and may be upgraded.
pub type RecursiveRwLockUpgradableReadGuard<'a, T> =
    lock_api::RwLockUpgradableReadGuard<'a, RawRwLockRecursive, T>;
/// A [`RecursiveRwLockReadGuard`] for a part of the data.
pub type MappedRecursiveRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLockRecursive, T>;
/// A [`RecursiveRwLockWriteGuard`] for a part of the data.
pub type MappedRecursiveRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLockRecursive, T>;
