//! The traits of `lock_api` 0.4, which `parking_lot` 0.12 implements.
//!
//! Methods of this version return `bool` where those of 0.5 return `Option<Guard>`: `()` stands for the guard.

#![allow(unsafe_code, reason = "the traits are unsafe, and so is the release of a lock that may not be held")]

use core::convert::Infallible;
use core::panic::Location;

use lock_api as api;

use super::record::{self as raw, MUTEX, READ, READ_FIRST, RawSites, UPGRADABLE, WRITE};
use super::traits::{implement, method, with_sites};
use super::{Recorded, SetName};
use crate::lock::record;
use librip_format::{SITE_OWNED_BY_RULE, SITE_TRY};

macro_rules! version {
    (types UpgradableGuard) => {};
    (types $($guard:ident),*) => {
        type GuardMarker = R::GuardMarker;
    };
    (stays $guard:ident) => {
        stays_on_its_thread::<R::GuardMarker>()
    };
    (sites $guard:ident, $flags:ident $(| $more:ident)?, |$sites:ident| $body:expr) => {
        with_sites!($guard, { $flags $(| $more)? }, |$sites| $body)
    };
    (guard $guard:ident) => {
        ()
    };
    (tried $guard:ident) => {
        bool
    };
    (upgraded) => {
        bool
    };
    (option $tried:expr) => {
        $tried.then_some(())
    };
    (of_option $option:expr) => {
        $option.is_some()
    };
    (result $upgraded:expr) => {
        $upgraded.then_some(()).ok_or(())
    };
    (of_result $result:expr) => {
        $result.is_ok()
    };
}

/// Whether guards with this marker stay on the thread that acquired the lock.
///
/// `lock_api` demands one of two types as a marker, and only the size tells them apart in a constant: that of a guard
/// that can be sent is empty. A lock that is used without a guard is not known here, so this is a rule of the
/// interface: see [`SITE_OWNED_BY_RULE`].
pub(super) const fn stays_on_its_thread<Marker>() -> bool {
    const { assert!(size_of::<api::GuardSend>() != size_of::<api::GuardNoSend>()) };
    size_of::<Marker>() == size_of::<api::GuardNoSend>()
}

implement!([] []);

// SAFETY: every method does what the inner lock's method does, as the trait demands.
unsafe impl<R: api::RawRwLockRecursive> api::RawRwLockRecursive for Recorded<R> {
    method!(lock lock_shared_recursive, try_lock_shared_recursive, SharedGuard, READ_FIRST);
    method!(try_lock try_lock_shared_recursive, SharedGuard, READ_FIRST);
}

// SAFETY: as above.
unsafe impl<R: api::RawRwLockRecursiveTimed> api::RawRwLockRecursiveTimed for Recorded<R> {
    method!(
        lock_in_time try_lock_shared_recursive_for(Duration), try_lock_shared_recursive, SharedGuard, READ_FIRST
    );
    method!(
        lock_in_time try_lock_shared_recursive_until(Instant), try_lock_shared_recursive, SharedGuard, READ_FIRST
    );
}
