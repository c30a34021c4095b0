//! The traits of `lock_api` 0.5, which `parking_lot` 0.13 implements.
//!
//! Only what `record` calls is written here: which method of the inner lock is the try, and which waits.

#![allow(unsafe_code, reason = "the traits are unsafe, and so is to unlock what may not be locked")]

use core::convert::Infallible;
use core::panic::Location;

use lock_api_05 as api;

use super::record::{self, MUTEX, UPGRADABLE, WRITE};
use super::{Recorded, SetName};
use librip_format::{SITE_SHARED, SITE_TRY};

/// Shared mode. Not of the type of readers-writer locks: that says that readers queue behind waiting writers, and here
/// `R` may be a lock whose readers do not (`parking_lot::RawRwLockRecursive`), so `read-rip` is to be unsure.
const READ: u16 = SITE_SHARED;

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawMutex> api::RawMutex for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Recorded<R> = Recorded::new(R::INIT);

    type Guard = R::Guard;

    #[inline(always)]
    #[track_caller]
    fn lock(&self) -> R::Guard {
        let lock = self.identity.address_in_use();
        record::lock::<MUTEX, _>(lock, Location::caller(), || self.inner.try_lock(), || self.inner.lock())
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock(&self) -> Option<R::Guard> {
        record::try_lock::<MUTEX, _>(self.identity.address_in_use(), Location::caller(), || {
            self.inner.try_lock()
        })
    }

    #[inline(always)]
    unsafe fn unlock(&self, guard: R::Guard) {
        record::unlock::<MUTEX>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock(guard) }
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
    unsafe fn unlock_fair(&self, guard: R::Guard) {
        record::unlock::<MUTEX>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_fair(guard) }
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawMutexTimed> api::RawMutexTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline(always)]
    #[track_caller]
    fn try_lock_for(&self, timeout: R::Duration) -> Option<R::Guard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_for(timeout);
        record::lock_in_time::<MUTEX, _>(lock, here, || self.inner.try_lock(), wait)
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_until(&self, timeout: R::Instant) -> Option<R::Guard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_until(timeout);
        record::lock_in_time::<MUTEX, _>(lock, here, || self.inner.try_lock(), wait)
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLock> api::RawRwLock for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Recorded<R> = Recorded::new(R::INIT);

    type SharedGuard = R::SharedGuard;

    type ExclusiveGuard = R::ExclusiveGuard;

    #[inline(always)]
    #[track_caller]
    fn lock_shared(&self) -> R::SharedGuard {
        let lock = self.identity.address_in_use();
        record::lock::<READ, _>(
            lock,
            Location::caller(),
            || self.inner.try_lock_shared(),
            || self.inner.lock_shared(),
        )
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<R::SharedGuard> {
        record::try_lock::<READ, _>(self.identity.address_in_use(), Location::caller(), || {
            self.inner.try_lock_shared()
        })
    }

    #[inline(always)]
    unsafe fn unlock_shared(&self, guard: R::SharedGuard) {
        record::unlock::<READ>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_shared(guard) }
        });
    }

    #[inline(always)]
    #[track_caller]
    fn lock_exclusive(&self) -> R::ExclusiveGuard {
        let lock = self.identity.address_in_use();
        record::lock::<WRITE, _>(
            lock,
            Location::caller(),
            || self.inner.try_lock_exclusive(),
            || self.inner.lock_exclusive(),
        )
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<R::ExclusiveGuard> {
        record::try_lock::<WRITE, _>(self.identity.address_in_use(), Location::caller(), || {
            self.inner.try_lock_exclusive()
        })
    }

    #[inline(always)]
    unsafe fn unlock_exclusive(&self, guard: R::ExclusiveGuard) {
        record::unlock::<WRITE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_exclusive(guard) }
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
    unsafe fn unlock_shared_fair(&self, guard: R::SharedGuard) {
        record::unlock::<READ>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_shared_fair(guard) }
        });
    }

    #[inline(always)]
    unsafe fn unlock_exclusive_fair(&self, guard: R::ExclusiveGuard) {
        record::unlock::<WRITE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_exclusive_fair(guard) }
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockDowngrade> api::RawRwLockDowngrade for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    unsafe fn downgrade(&self, guard: R::ExclusiveGuard) -> R::SharedGuard {
        record::downgrade::<READ, _>(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller holds the lock in that mode.
            unsafe { self.inner.downgrade(guard) }
        })
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockTimed> api::RawRwLockTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: R::Duration) -> Option<R::SharedGuard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_shared_for(timeout);
        record::lock_in_time::<READ, _>(lock, here, || self.inner.try_lock_shared(), wait)
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: R::Instant) -> Option<R::SharedGuard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_shared_until(timeout);
        record::lock_in_time::<READ, _>(lock, here, || self.inner.try_lock_shared(), wait)
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: R::Duration) -> Option<R::ExclusiveGuard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_exclusive_for(timeout);
        record::lock_in_time::<WRITE, _>(lock, here, || self.inner.try_lock_exclusive(), wait)
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: R::Instant) -> Option<R::ExclusiveGuard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_exclusive_until(timeout);
        record::lock_in_time::<WRITE, _>(lock, here, || self.inner.try_lock_exclusive(), wait)
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgrade> api::RawRwLockUpgrade for Recorded<R> {
    type UpgradableGuard = R::UpgradableGuard;

    #[inline(always)]
    #[track_caller]
    fn lock_upgradable(&self) -> R::UpgradableGuard {
        let lock = self.identity.address_in_use();
        record::lock::<UPGRADABLE, _>(
            lock,
            Location::caller(),
            || self.inner.try_lock_upgradable(),
            || self.inner.lock_upgradable(),
        )
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<R::UpgradableGuard> {
        record::try_lock::<UPGRADABLE, _>(self.identity.address_in_use(), Location::caller(), || {
            self.inner.try_lock_upgradable()
        })
    }

    #[inline(always)]
    unsafe fn unlock_upgradable(&self, guard: R::UpgradableGuard) {
        record::unlock::<UPGRADABLE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_upgradable(guard) }
        });
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn upgrade(&self, guard: R::UpgradableGuard) -> R::ExclusiveGuard {
        // SAFETY: the caller has an upgradable read.
        let try_upgrade = |guard| unsafe { self.inner.try_upgrade(guard) };
        // SAFETY: as above; the try has left it as it was.
        let wait = |guard| Ok::<_, Infallible>(unsafe { self.inner.upgrade(guard) });
        let (lock, here) = (self.identity.address(), Location::caller());
        let Ok(guard) = record::upgrade::<0, _, _, _>(lock, here, guard, try_upgrade, wait);
        guard
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn try_upgrade(&self, guard: R::UpgradableGuard) -> Result<R::ExclusiveGuard, R::UpgradableGuard> {
        record::try_upgrade(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller has an upgradable read.
            unsafe { self.inner.try_upgrade(guard) }
        })
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgradeFair> api::RawRwLockUpgradeFair for Recorded<R> {
    #[inline(always)]
    unsafe fn unlock_upgradable_fair(&self, guard: R::UpgradableGuard) {
        record::unlock::<UPGRADABLE>(self.identity.address(), || {
            // SAFETY: the caller holds the lock in this mode.
            unsafe { self.inner.unlock_upgradable_fair(guard) }
        });
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgradeDowngrade> api::RawRwLockUpgradeDowngrade for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    unsafe fn downgrade_upgradable(&self, guard: R::UpgradableGuard) -> R::SharedGuard {
        record::downgrade::<READ, _>(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller holds the lock in that mode.
            unsafe { self.inner.downgrade_upgradable(guard) }
        })
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn downgrade_to_upgradable(&self, guard: R::ExclusiveGuard) -> R::UpgradableGuard {
        record::downgrade::<UPGRADABLE, _>(self.identity.address(), Location::caller(), || {
            // SAFETY: the caller holds the lock in that mode.
            unsafe { self.inner.downgrade_to_upgradable(guard) }
        })
    }
}

// SAFETY: every method does what the inner lock's does, which is as the trait demands.
unsafe impl<R: api::RawRwLockUpgradeTimed> api::RawRwLockUpgradeTimed for Recorded<R> {
    #[inline(always)]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: R::Duration) -> Option<R::UpgradableGuard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_upgradable_for(timeout);
        record::lock_in_time::<UPGRADABLE, _>(lock, here, || self.inner.try_lock_upgradable(), wait)
    }

    #[inline(always)]
    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: R::Instant) -> Option<R::UpgradableGuard> {
        let (lock, here) = (self.identity.address_in_use(), Location::caller());
        let wait = || self.inner.try_lock_upgradable_until(timeout);
        record::lock_in_time::<UPGRADABLE, _>(lock, here, || self.inner.try_lock_upgradable(), wait)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn try_upgrade_for(
        &self,
        guard: R::UpgradableGuard,
        timeout: R::Duration,
    ) -> Result<R::ExclusiveGuard, R::UpgradableGuard> {
        // SAFETY: the caller has an upgradable read.
        let try_upgrade = |guard| unsafe { self.inner.try_upgrade(guard) };
        // SAFETY: as above; the try has left it as it was.
        let wait = |guard| unsafe { self.inner.try_upgrade_for(guard, timeout) };
        let (lock, here) = (self.identity.address(), Location::caller());
        record::upgrade::<SITE_TRY, _, _, _>(lock, here, guard, try_upgrade, wait)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn try_upgrade_until(
        &self,
        guard: R::UpgradableGuard,
        timeout: R::Instant,
    ) -> Result<R::ExclusiveGuard, R::UpgradableGuard> {
        // SAFETY: the caller has an upgradable read.
        let try_upgrade = |guard| unsafe { self.inner.try_upgrade(guard) };
        // SAFETY: as above; the try has left it as it was.
        let wait = |guard| unsafe { self.inner.try_upgrade_until(guard, timeout) };
        let (lock, here) = (self.identity.address(), Location::caller());
        record::upgrade::<SITE_TRY, _, _, _>(lock, here, guard, try_upgrade, wait)
    }
}

// SAFETY: the inner condition variable unlocks and locks the inner mutex.
unsafe impl<C: api::RawCondvar> api::RawCondvar for Recorded<C> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Recorded<C> = Recorded::new(C::INIT);

    type RawMutex = Recorded<C::RawMutex>;

    #[inline(always)]
    #[track_caller]
    unsafe fn wait(&self, mutex: &Self::RawMutex, guard: &mut <C::RawMutex as api::RawMutex>::Guard) {
        let (lock, condition) = (mutex.identity.address(), self.identity.address());
        record::lend::<0, _>(lock, condition, Location::caller(), || {
            // SAFETY: the caller has the mutex, and with it the inner one.
            unsafe { self.inner.wait(&mutex.inner, guard) }
        });
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.inner.notify_one()
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.inner.notify_all()
    }
}

// SAFETY: as above.
unsafe impl<C: api::RawCondvarTimed> api::RawCondvarTimed for Recorded<C>
where
    C::RawMutex: api::RawMutexTimed,
{
    fn checked_duration_to_instant(
        timeout: &<C::RawMutex as api::RawMutexTimed>::Duration,
    ) -> Option<<C::RawMutex as api::RawMutexTimed>::Instant> {
        C::checked_duration_to_instant(timeout)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn wait_until(
        &self,
        mutex: &Self::RawMutex,
        guard: &mut <C::RawMutex as api::RawMutex>::Guard,
        timeout: &<C::RawMutex as api::RawMutexTimed>::Instant,
    ) -> bool {
        let (lock, condition) = (mutex.identity.address(), self.identity.address());
        record::lend::<SITE_TRY, _>(lock, condition, Location::caller(), || {
            // SAFETY: the caller has the mutex, and with it the inner one.
            unsafe { self.inner.wait_until(&mutex.inner, guard, timeout) }
        })
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn wait_for(
        &self,
        mutex: &Self::RawMutex,
        guard: &mut <C::RawMutex as api::RawMutex>::Guard,
        timeout: &<C::RawMutex as api::RawMutexTimed>::Duration,
    ) -> bool {
        let (lock, condition) = (mutex.identity.address(), self.identity.address());
        record::lend::<SITE_TRY, _>(lock, condition, Location::caller(), || {
            // SAFETY: the caller has the mutex, and with it the inner one.
            unsafe { self.inner.wait_for(&mutex.inner, guard, timeout) }
        })
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
