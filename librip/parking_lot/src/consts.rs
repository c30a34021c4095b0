//! Functions that create locks in constants. `new` does the same by now.

use lock_api::GetThreadId;

use crate::{FairMutex, Mutex, RawFairMutex, RawMutex, RawRwLock, RawThreadId, ReentrantMutex, RwLock};

/// Creates a mutex in a constant.
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::const_new(<RawMutex as lock_api::RawMutex>::INIT, value)
}

/// Creates a fair mutex in a constant.
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::const_new(<RawFairMutex as lock_api::RawMutex>::INIT, value)
}

/// Creates a reentrant mutex in a constant.
pub const fn const_reentrant_mutex<T>(value: T) -> ReentrantMutex<T> {
    ReentrantMutex::const_new(
        <RawMutex as lock_api::RawMutex>::INIT,
        <RawThreadId as GetThreadId>::INIT,
        value,
    )
}

/// Creates a readers-writer lock in a constant.
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::const_new(<RawRwLock as lock_api::RawRwLock>::INIT, value)
}
