//! Raw locks that are recorded: for `parking_lot`, and everything else that is built on `lock_api`.
//!
//! A lock of `lock_api` is a raw lock and the data next to it. [`Recorded`] is a raw lock around another one, so the
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
//! The feature `lock_api` is for `lock_api` 0.4 (0.4.14 or later) and `parking_lot` 0.12; `lock_api_05` for 0.5 and
//! 0.13. To record the locks of dependencies too, without a change of their source, see the crates in
//! `librip/parking_lot` and `librip/parking_lot_0_13`, which stand in for `parking_lot` 0.12 and 0.13.
//!
//! # What is recorded
//!
//! The same as by [`sync`](crate::sync), at the same cost. A wait with a time limit ends by itself.
//!
//! * *Reentrant mutexes* (`lock_api::ReentrantMutex<Recorded<R>, ..>`) lock their raw mutex at a thread's first
//!   acquisition and unlock it at the last release. Only that is recorded.
//! * *Upgradable reads* are shared, and their sites have
//!   [`SITE_UPGRADABLE`](librip_format::SITE_UPGRADABLE). An upgrade that has to wait is a wait for exclusive access:
//!   the thread then counts as waiting and not as holding. An upgrade that fails, or that needs no wait, is visible in
//!   the held-lock table only.
//! * *Guards that are sent* to another thread and dropped there: the release is recorded there, and the table of the
//!   thread that acquired the lock is corrected. Where the marker of `lock_api` 0.4 says that guards can be sent, a
//!   deadlock is potential and not proven, because another thread may have the guard. So it is with `lock_api_05`,
//!   whose guards are of any type, unless [`Facts`] say that they stay on their thread.
//! * *Raw locks without guards* can be released by any thread. They are known by [`Recorded::new`]; a lock that was
//!   made of `INIT` is taken for one with guards, until a thread releases it that did not acquire it.
//! * *Condition variables*: `parking_lot` 0.12 accepts its own mutex only, so there is a `raw::Condvar` for the
//!   feature `lock_api`. With `lock_api_05`, use `lock_api::Condvar<Recorded<parking_lot::RawCondvar>>`.
//!
//! # What it does not see
//!
//! `lock_api` passes the program's line on to this module, so `read-rip` shows it in every kind of build, as for
//! [`sync`](crate::sync). Where `lock_api` itself acquires a lock again, after `unlocked` or `bump`, it shows a line of
//! `lock_api`, and so it does for a reentrant mutex. The condition variables of `lock_api` 0.5 do not pass the line on:
//! debug information has it. A `bump` is recorded, and done, as a fair unlock followed by a lock.
//!
//! A lock of `lock_api` is identified by the address of its raw lock, which need not be the lock's own address: name it
//! with [`SetName`] and not with `rip_lock_name!`. With `lock_api_05` it is not known whether readers pass waiting
//! writers (those of `parking_lot::RawRwLockRecursive` do), so a deadlock by way of a waiting writer is suspected, not
//! proven. [`Facts`] say it.

#[cfg(feature = "lock_api")]
mod condvar;
mod record;
mod traits;
#[cfg(feature = "lock_api")]
mod v04;
#[cfg(feature = "lock_api_05")]
mod v05;

#[cfg(feature = "lock_api")]
pub use condvar::{Condvar, WaitTimeoutResult};

use core::marker::PhantomData;

use crate::lock::Identity;

/// A raw lock, recorded: the ring has its holder and its waiters. See the [module](self).
///
/// `F` says what the traits of `lock_api` 0.5 do not say of `R`. It takes no space.
///
/// It takes at least four bytes, and its address is a multiple of four.
// The two low bits of the address are free for what an event says of the lock: see `librip_format::call`.
#[repr(C, align(4))]
#[derive(Debug)]
pub struct Recorded<R, F = Unknown> {
    identity: Identity,
    inner: R,
    facts: PhantomData<fn() -> F>,
}

/// What the traits of `lock_api` 0.5 do not say of a raw lock. Those of 0.4 say it, and ask for no facts.
///
/// `read-rip` believes them: with facts that are wrong, it proves deadlocks that are none.
pub trait Facts {
    /// Whether only the thread that acquired the lock releases it: its guards cannot be sent.
    const GUARDS_STAY: bool = false;
    /// Whether readers pass writers that wait. `None`: that is not known.
    const READERS_FIRST: Option<bool> = None;
}

/// No [`Facts`] are known.
#[derive(Debug)]
pub enum Unknown {}

impl Facts for Unknown {}

const _: () = {
    assert!(core::mem::offset_of!(Recorded<u8>, identity) == 0);
    assert!(align_of::<Recorded<u8>>() as u64 > librip_format::CALL_LOCK_BITS);
};

impl<R> Recorded<R> {
    /// Records a raw lock, which nobody holds.
    ///
    /// It is a lock without guards, which any thread may release. So `read-rip` proves nothing from who holds it.
    #[inline]
    pub const fn new(inner: R) -> Recorded<R> {
        Recorded { identity: Identity::without_guard(), inner, facts: PhantomData }
    }
}

impl<R, F> Recorded<R, F> {
    /// Records a raw lock, which nobody holds, and which has guards.
    const fn guarded(inner: R) -> Recorded<R, F> {
        Recorded { identity: Identity::new(), inner, facts: PhantomData }
    }

    /// Returns the raw lock itself. What is done to it directly is not recorded.
    #[inline]
    pub const fn inner(&self) -> &R {
        &self.inner
    }
}

impl<R: Default> Default for Recorded<R> {
    fn default() -> Recorded<R> {
        Recorded::new(R::default())
    }
}

/// Names for locks of `lock_api`.
pub trait SetName {
    /// Names the lock in the ring, up to 48 bytes. The name is removed when the lock is dropped.
    fn set_name(&self, name: &str);
}
