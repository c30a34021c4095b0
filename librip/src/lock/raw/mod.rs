//! Raw locks that record what happens to them: for `parking_lot`, and all else that is built on `lock_api`.
//!
//! A lock of `lock_api` is a raw lock and the data beside it. [`Recorded`] is a raw lock around another one, so the
//! program changes the types that it names and nothing else:
//!
#![cfg_attr(feature = "lock_api", doc = "```")]
#![cfg_attr(not(feature = "lock_api"), doc = "```ignore")]
//! use librip::raw::Recorded;
//!
//! pub type Mutex<T> = lock_api::Mutex<Recorded<parking_lot::RawMutex>, T>;
//! pub type RwLock<T> = lock_api::RwLock<Recorded<parking_lot::RawRwLock>, T>;
//!
//! static TOTAL: Mutex<u64> = Mutex::new(0);
//!
//! *TOTAL.lock() += 1;
//! assert_eq!(*TOTAL.lock(), 1);
//! ```
//!
//! The feature `lock_api` is for `lock_api` 0.4 and `parking_lot` 0.12; `lock_api_05` for 0.5 and 0.13.
//!
//! # What is recorded
//!
//! The same as by [`sync`](crate::sync), at the same cost. A wait with a time limit is one that ends by itself.
//!
//! * *Reentrant mutexes* (`lock_api::ReentrantMutex<Recorded<R>, ..>`) lock their raw mutex when a thread takes them
//!   first and unlock it when it gives them up last: just that is recorded.
//! * *Upgradable reads* are shared, and their sites have
//!   [`SITE_UPGRADABLE`](librip_format::SITE_UPGRADABLE). An upgrade that has to wait is a wait to have the lock
//!   alone, during which the thread counts as waiting and not as holding. One that fails, or that is made at once, is
//!   seen in the held-lock table only.
//! * *Guards that are sent* to another thread and dropped there: the release is recorded there, and the table of the
//!   thread that took the lock is put right.
//! * *Condition variables*: `parking_lot` 0.12 accepts its own mutex only, so there is a `raw::Condvar` for the
//!   feature `lock_api`; with `lock_api_05`, `lock_api::Condvar<Recorded<parking_lot::RawCondvar>>`.
//!
//! # What it does not see
//!
//! `lock_api`'s own functions lie between the program and this module. Optimised builds inline them, and the places
//! shown are the program's; in unoptimised ones all places of a kind are one, in `lock_api`. Its `bump` is recorded as
//! a fair unlock followed by a lock, and made as that.
//!
//! What a lock of `lock_api` is known by is the address of its raw lock, which need not be its own: name it with
//! [`SetName`] and not with `rip_lock_name!`. With `lock_api_05` it is not known whether readers pass waiting writers
//! (those of `parking_lot::RawRwLockRecursive` do), and a deadlock by way of a waiting writer is suspected, not proven.

#[cfg(feature = "lock_api")]
mod condvar;
mod record;
#[cfg(feature = "lock_api")]
mod v04;
#[cfg(feature = "lock_api_05")]
mod v05;

#[cfg(feature = "lock_api")]
pub use condvar::{Condvar, WaitTimeoutResult};

use crate::lock::Identity;

/// A raw lock, and the ring knows who holds it and who waits. See the [module](self).
#[repr(C)]
#[derive(Debug, Default)]
pub struct Recorded<R> {
    identity: Identity,
    inner: R,
}

impl<R> Recorded<R> {
    /// Around a raw lock that nobody holds.
    #[inline]
    pub const fn new(inner: R) -> Recorded<R> {
        Recorded { identity: Identity::new(), inner }
    }

    /// The raw lock itself. What is done to it directly is not recorded.
    #[inline]
    pub const fn inner(&self) -> &R {
        &self.inner
    }
}

/// Names for locks of `lock_api`.
pub trait SetName {
    /// Names the lock in the ring, up to 48 bytes. The name goes with it.
    fn set_name(&self, name: &str);
}
