//! The traits of `lock_api` 0.4, which `parking_lot` 0.12 implements.
//!
//! Only what `record` calls is written here: which method of the inner lock is the try, and which waits.
//! Methods of this version say `bool` where those of the next say `Option<Guard>`: `()` stands for the guard.

#![allow(unsafe_code, reason = "the traits are unsafe, and so is to unlock what may not be locked")]

use core::convert::Infallible;
use core::panic::Location;

use lock_api as api;

use super::record::{self, MUTEX, READ, READ_FIRST, UPGRADABLE, WRITE};
use super::{Recorded, SetName};
use librip_format::SITE_TRY;

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawMutex> api::RawMutex for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Recorded<R> = Recorded::new(R::INIT);

    type GuardMarker = R::GuardMarker;

    #[inline(always)]
    #[track_caller]
    fn lock(&self) {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock().then_some(());
        record::lock::<MUTEX, _>(lock, here, try_lock, || self.inner.lock());
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock(&self) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        record::try_lock::<MUTEX, _>(lock, here, || self.inner.try_lock().then_some(())).is_some()
    }

    #[inline(always)]
    unsafe fn unlock(&self) {
        record::unlock::<MUTEX>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock() }
        });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawMutexFair> api::RawMutexFair for Recorded<R> {
    #[inline(always)]
    unsafe fn unlock_fair(&self) {
        record::unlock::<MUTEX>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_fair() }
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawMutexTimed> api::RawMutexTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline(always)]
    #[track_caller]
    fn try_lock_for(&self, timeout: R::Duration) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock().then_some(());
        let wait = || self.inner.try_lock_for(timeout).then_some(());
        record::lock_in_time::<MUTEX, _>(lock, here, try_lock, wait).is_some()
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_until(&self, timeout: R::Instant) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock().then_some(());
        let wait = || self.inner.try_lock_until(timeout).then_some(());
        record::lock_in_time::<MUTEX, _>(lock, here, try_lock, wait).is_some()
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLock> api::RawRwLock for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Recorded<R> = Recorded::new(R::INIT);

    type GuardMarker = R::GuardMarker;

    #[inline(always)]
    #[track_caller]
    fn lock_shared(&self) {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_shared().then_some(());
        record::lock::<READ, _>(lock, here, try_lock, || self.inner.lock_shared());
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        record::try_lock::<READ, _>(lock, here, || self.inner.try_lock_shared().then_some(())).is_some()
    }

    #[inline(always)]
    unsafe fn unlock_shared(&self) {
        record::unlock::<READ>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_shared() }
        });
    }

    #[inline(always)]
    #[track_caller]
    fn lock_exclusive(&self) {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_exclusive().then_some(());
        record::lock::<WRITE, _>(lock, here, try_lock, || self.inner.lock_exclusive());
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        record::try_lock::<WRITE, _>(lock, here, || self.inner.try_lock_exclusive().then_some(())).is_some()
    }

    #[inline(always)]
    unsafe fn unlock_exclusive(&self) {
        record::unlock::<WRITE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_exclusive() }
        });
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.inner.is_locked_exclusive()
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockFair> api::RawRwLockFair for Recorded<R> {
    #[inline(always)]
    unsafe fn unlock_shared_fair(&self) {
        record::unlock::<READ>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_shared_fair() }
        });
    }

    #[inline(always)]
    unsafe fn unlock_exclusive_fair(&self) {
        record::unlock::<WRITE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_exclusive_fair() }
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockDowngrade> api::RawRwLockDowngrade for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    unsafe fn downgrade(&self) {
        record::downgrade::<READ, _>(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller holds the lock in that mode.
            unsafe { self.inner.downgrade() };
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockTimed> api::RawRwLockTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: R::Duration) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_shared().then_some(());
        let wait = || self.inner.try_lock_shared_for(timeout).then_some(());
        record::lock_in_time::<READ, _>(lock, here, try_lock, wait).is_some()
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: R::Instant) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_shared().then_some(());
        let wait = || self.inner.try_lock_shared_until(timeout).then_some(());
        record::lock_in_time::<READ, _>(lock, here, try_lock, wait).is_some()
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: R::Duration) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_exclusive().then_some(());
        let wait = || self.inner.try_lock_exclusive_for(timeout).then_some(());
        record::lock_in_time::<WRITE, _>(lock, here, try_lock, wait).is_some()
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: R::Instant) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_exclusive().then_some(());
        let wait = || self.inner.try_lock_exclusive_until(timeout).then_some(());
        record::lock_in_time::<WRITE, _>(lock, here, try_lock, wait).is_some()
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockRecursive> api::RawRwLockRecursive for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    fn lock_shared_recursive(&self) {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_shared_recursive().then_some(());
        record::lock::<READ_FIRST, _>(lock, here, try_lock, || self.inner.lock_shared_recursive());
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared_recursive(&self) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        record::try_lock::<READ_FIRST, _>(lock, here, || self.inner.try_lock_shared_recursive().then_some(()))
            .is_some()
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockRecursiveTimed> api::RawRwLockRecursiveTimed for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    fn try_lock_shared_recursive_for(&self, timeout: R::Duration) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_shared_recursive().then_some(());
        let wait = || self.inner.try_lock_shared_recursive_for(timeout).then_some(());
        record::lock_in_time::<READ_FIRST, _>(lock, here, try_lock, wait).is_some()
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared_recursive_until(&self, timeout: R::Instant) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_shared_recursive().then_some(());
        let wait = || self.inner.try_lock_shared_recursive_until(timeout).then_some(());
        record::lock_in_time::<READ_FIRST, _>(lock, here, try_lock, wait).is_some()
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgrade> api::RawRwLockUpgrade for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    fn lock_upgradable(&self) {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_upgradable().then_some(());
        record::lock::<UPGRADABLE, _>(lock, here, try_lock, || self.inner.lock_upgradable());
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_upgradable(&self) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        record::try_lock::<UPGRADABLE, _>(lock, here, || self.inner.try_lock_upgradable().then_some(()))
            .is_some()
    }

    #[inline(always)]
    unsafe fn unlock_upgradable(&self) {
        record::unlock::<UPGRADABLE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_upgradable() }
        });
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn upgrade(&self) {
        // SAFETY: the caller has an upgradable read.
        let try_upgrade = |()| unsafe { self.inner.try_upgrade() }.then_some(()).ok_or(());
        let wait = |()| {
            // SAFETY: as above; the try has left it as it was.
            unsafe { self.inner.upgrade() };
            Ok::<_, Infallible>(())
        };
        let (lock, here) = (self.identity.address(), Location::caller());
        let Ok(()) = record::upgrade::<0, _, _, _>(lock, here, (), try_upgrade, wait);
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn try_upgrade(&self) -> bool {
        let upgraded = record::try_upgrade(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller has an upgradable read.
            unsafe { self.inner.try_upgrade() }.then_some(()).ok_or(())
        });
        upgraded.is_ok()
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgradeFair> api::RawRwLockUpgradeFair for Recorded<R> {
    #[inline(always)]
    unsafe fn unlock_upgradable_fair(&self) {
        record::unlock::<UPGRADABLE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_upgradable_fair() }
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgradeDowngrade> api::RawRwLockUpgradeDowngrade for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    unsafe fn downgrade_upgradable(&self) {
        record::downgrade::<READ, _>(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller holds the lock in that mode.
            unsafe { self.inner.downgrade_upgradable() };
        });
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn downgrade_to_upgradable(&self) {
        record::downgrade::<UPGRADABLE, _>(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller holds the lock in that mode.
            unsafe { self.inner.downgrade_to_upgradable() };
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgradeTimed> api::RawRwLockUpgradeTimed for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: R::Duration) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_upgradable().then_some(());
        let wait = || self.inner.try_lock_upgradable_for(timeout).then_some(());
        record::lock_in_time::<UPGRADABLE, _>(lock, here, try_lock, wait).is_some()
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: R::Instant) -> bool {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let try_lock = || self.inner.try_lock_upgradable().then_some(());
        let wait = || self.inner.try_lock_upgradable_until(timeout).then_some(());
        record::lock_in_time::<UPGRADABLE, _>(lock, here, try_lock, wait).is_some()
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn try_upgrade_for(&self, timeout: R::Duration) -> bool {
        // SAFETY: the caller has an upgradable read.
        let try_upgrade = |()| unsafe { self.inner.try_upgrade() }.then_some(()).ok_or(());
        // SAFETY: as above; the try has left it as it was.
        let wait = |()| unsafe { self.inner.try_upgrade_for(timeout) }.then_some(()).ok_or(());
        let (lock, here) = (self.identity.address(), Location::caller());
        record::upgrade::<SITE_TRY, _, _, _>(lock, here, (), try_upgrade, wait).is_ok()
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn try_upgrade_until(&self, timeout: R::Instant) -> bool {
        // SAFETY: the caller has an upgradable read.
        let try_upgrade = |()| unsafe { self.inner.try_upgrade() }.then_some(()).ok_or(());
        // SAFETY: as above; the try has left it as it was.
        let wait = |()| unsafe { self.inner.try_upgrade_until(timeout) }.then_some(()).ok_or(());
        let (lock, here) = (self.identity.address(), Location::caller());
        record::upgrade::<SITE_TRY, _, _, _>(lock, here, (), try_upgrade, wait).is_ok()
    }
}

impl<R: api::RawMutex, T: ?Sized> SetName for api::Mutex<Recorded<R>, T> {
    fn set_name(&self, name: &str) {
        // SAFETY: it is not unlocked.
        let raw = unsafe { self.raw() };
        raw.identity.set_name(name);
    }
}

impl<R: api::RawRwLock, T: ?Sized> SetName for api::RwLock<Recorded<R>, T> {
    fn set_name(&self, name: &str) {
        // SAFETY: it is not unlocked.
        let raw = unsafe { self.raw() };
        raw.identity.set_name(name);
    }
}
