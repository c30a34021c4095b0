//! The traits that `lock_api` 0.4 and 0.5 have in common, implemented for [`Recorded`](super::Recorded).
//!
//! The versions differ in one type: a method that acquires a lock returns nothing or a `bool` in 0.4, and a guard or an
//! `Option` of one in 0.5; a method that releases the lock takes the guard back. Only what `record` calls is written
//! here: which method of the inner lock tries, and which one waits.
//!
//! A module for a version has, before it calls [`implement`]:
//!
//! * `api`, the crate;
//! * the macro `version!`, the types of the version, what turns them into an `Option` or a `Result` and back, whether a
//!   guard stays on its thread, and which sites an acquisition has;
//! * the flags `MUTEX`, `READ`, `WRITE` and `UPGRADABLE`.

/// Evaluates `BODY` with the sites of an acquisition, which know the caller, and whether the guard stays on its thread:
/// `with_sites!(GUARD, { FLAGS }, |SITES| BODY)`.
///
/// One branch is left in the program, because the condition is a constant.
macro_rules! with_sites {
    ($guard:ident, { $flags:expr }, |$sites:ident| $body:expr) => {
        if const { version!(stays $guard) } {
            let $sites = RawSites::<{ $flags | SITE_OWNED_BY_RULE }>(Location::caller());
            $body
        } else {
            let $sites = RawSites::<{ $flags }>(Location::caller());
            $body
        }
    };
}
pub(super) use with_sites;

/// Expands to a method that does what the inner lock's method of that name does, and records it.
///
/// `[guard]` is the name of the parameter that a release has in 0.5, and `[]` in 0.4.
macro_rules! method {
    (lock $name:ident, $try_lock:ident, $guard:ident, $flags:ident) => {
        #[inline(always)]
        #[track_caller]
        fn $name(&self) -> version!(guard $guard) {
            let try_lock = || version!(option self.inner.$try_lock());
            let lock = self.identity.address_in_use();
            version!(sites $guard, $flags, |sites| raw::lock(sites, lock, try_lock, || self.inner.$name()))
        }
    };
    (try_lock $name:ident, $guard:ident, $flags:ident) => {
        #[inline(always)]
        #[track_caller]
        fn $name(&self) -> version!(tried $guard) {
            let try_lock = || version!(option self.inner.$name());
            let lock = self.identity.address_in_use();
            version!(sites $guard, $flags | SITE_TRY, |sites| {
                version!(of_option raw::try_lock(sites, lock, try_lock))
            })
        }
    };
    (lock_in_time $name:ident($timeout:ident), $try_lock:ident, $guard:ident, $flags:ident) => {
        #[inline(always)]
        #[track_caller]
        fn $name(&self, timeout: R::$timeout) -> version!(tried $guard) {
            let try_lock = || version!(option self.inner.$try_lock());
            let wait = || version!(option self.inner.$name(timeout));
            let lock = self.identity.address_in_use();
            version!(sites $guard, $flags | SITE_TRY, |sites| {
                version!(of_option record::lock_in_time(sites, lock, try_lock, wait))
            })
        }
    };
    (unlock $name:ident[$($given:ident)?], $guard:ident, $flags:ident) => {
        #[inline(always)]
        unsafe fn $name(&self $(, $given: version!(guard $guard))?) {
            raw::unlock::<$flags>(self.identity.address(), || {
                // SAFETY: the caller holds the lock in this mode.
                unsafe { self.inner.$name($($given)?) }
            });
        }
    };
    (downgrade $name:ident[$($given:ident)?], $from:ident, $to:ident, $flags:ident) => {
        #[inline(always)]
        #[track_caller]
        unsafe fn $name(&self $(, $given: version!(guard $from))?) -> version!(guard $to) {
            let downgrade = || {
                // SAFETY: the caller holds the lock in the mode that the name says.
                unsafe { self.inner.$name($($given)?) }
            };
            let lock = self.identity.address();
            version!(sites $from, $flags, |sites| raw::downgrade(sites, lock, downgrade))
        }
    };
    (upgrade_in_time $name:ident($timeout:ident)[$($given:ident)?]) => {
        #[inline(always)]
        #[track_caller]
        unsafe fn $name(
            &self,
            $($given: version!(guard UpgradableGuard),)?
            timeout: R::$timeout,
        ) -> version!(upgraded) {
            // SAFETY: the caller holds an upgradable read.
            let try_upgrade = |($($given)?)| version!(result unsafe { self.inner.try_upgrade($($given)?) });
            // SAFETY: as above. The try that failed has changed nothing.
            let wait = |($($given)?)| version!(result unsafe { self.inner.$name($($given,)? timeout) });
            let lock = self.identity.address();
            with_sites!(ExclusiveGuard, { WRITE | SITE_TRY }, |sites| {
                version!(of_result raw::upgrade(sites, lock, ($($given)?), try_upgrade, wait))
            })
        }
    };
    (is_locked $name:ident) => {
        #[inline]
        fn $name(&self) -> bool {
            self.inner.$name()
        }
    };
}
pub(super) use method;

/// Expands to the implementations: `implement!([guard] [F])` for 0.5, where `F` are the facts, and `implement!([] [])`
/// for 0.4.
macro_rules! implement {
    ([$($guard:ident)?] [$($facts:ident)?]) => {
        // SAFETY: every method does what the inner lock's method does, as the trait demands. So in all that follow.
        unsafe impl<R: api::RawMutex $(, $facts: Facts)?> api::RawMutex for Recorded<R $(, $facts)?> {
            #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
            const INIT: Self = Recorded::guarded(R::INIT);

            version!(types Guard);
            method!(lock lock, try_lock, Guard, MUTEX);
            method!(try_lock try_lock, Guard, MUTEX);
            method!(unlock unlock[$($guard)?], Guard, MUTEX);
            method!(is_locked is_locked);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawMutexFair $(, $facts: Facts)?> api::RawMutexFair for Recorded<R $(, $facts)?> {
            method!(unlock unlock_fair[$($guard)?], Guard, MUTEX);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawMutexTimed $(, $facts: Facts)?> api::RawMutexTimed for Recorded<R $(, $facts)?> {
            type Duration = R::Duration;
            type Instant = R::Instant;

            method!(lock_in_time try_lock_for(Duration), try_lock, Guard, MUTEX);
            method!(lock_in_time try_lock_until(Instant), try_lock, Guard, MUTEX);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLock $(, $facts: Facts)?> api::RawRwLock for Recorded<R $(, $facts)?> {
            #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
            const INIT: Self = Recorded::guarded(R::INIT);

            version!(types SharedGuard, ExclusiveGuard);
            method!(lock lock_shared, try_lock_shared, SharedGuard, READ);
            method!(try_lock try_lock_shared, SharedGuard, READ);
            method!(unlock unlock_shared[$($guard)?], SharedGuard, READ);
            method!(lock lock_exclusive, try_lock_exclusive, ExclusiveGuard, WRITE);
            method!(try_lock try_lock_exclusive, ExclusiveGuard, WRITE);
            method!(unlock unlock_exclusive[$($guard)?], ExclusiveGuard, WRITE);
            method!(is_locked is_locked);
            method!(is_locked is_locked_exclusive);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLockFair $(, $facts: Facts)?> api::RawRwLockFair for Recorded<R $(, $facts)?> {
            method!(unlock unlock_shared_fair[$($guard)?], SharedGuard, READ);
            method!(unlock unlock_exclusive_fair[$($guard)?], ExclusiveGuard, WRITE);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLockDowngrade $(, $facts: Facts)?> api::RawRwLockDowngrade
            for Recorded<R $(, $facts)?>
        {
            method!(downgrade downgrade[$($guard)?], ExclusiveGuard, SharedGuard, READ);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLockTimed $(, $facts: Facts)?> api::RawRwLockTimed for Recorded<R $(, $facts)?> {
            type Duration = R::Duration;
            type Instant = R::Instant;

            method!(lock_in_time try_lock_shared_for(Duration), try_lock_shared, SharedGuard, READ);
            method!(lock_in_time try_lock_shared_until(Instant), try_lock_shared, SharedGuard, READ);
            method!(lock_in_time try_lock_exclusive_for(Duration), try_lock_exclusive, ExclusiveGuard, WRITE);
            method!(lock_in_time try_lock_exclusive_until(Instant), try_lock_exclusive, ExclusiveGuard, WRITE);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLockUpgrade $(, $facts: Facts)?> api::RawRwLockUpgrade for Recorded<R $(, $facts)?> {
            version!(types UpgradableGuard);
            method!(lock lock_upgradable, try_lock_upgradable, UpgradableGuard, UPGRADABLE);
            method!(try_lock try_lock_upgradable, UpgradableGuard, UPGRADABLE);
            method!(unlock unlock_upgradable[$($guard)?], UpgradableGuard, UPGRADABLE);

            #[inline(always)]
            #[track_caller]
            unsafe fn upgrade(
                &self
                $(, $guard: version!(guard UpgradableGuard))?
            ) -> version!(guard ExclusiveGuard) {
                // SAFETY: the caller holds an upgradable read.
                let try_upgrade = |($($guard)?)| version!(result unsafe { self.inner.try_upgrade($($guard)?) });
                // SAFETY: as above. The try that failed has changed nothing.
                let wait = |($($guard)?)| Ok::<_, Infallible>(unsafe { self.inner.upgrade($($guard)?) });
                let lock = self.identity.address();
                let Ok(upgraded) = with_sites!(ExclusiveGuard, { WRITE }, |sites| {
                    raw::upgrade(sites, lock, ($($guard)?), try_upgrade, wait)
                });
                upgraded
            }

            #[inline(always)]
            #[track_caller]
            unsafe fn try_upgrade(
                &self
                $(, $guard: version!(guard UpgradableGuard))?
            ) -> version!(upgraded) {
                // SAFETY: the caller holds an upgradable read.
                let upgrade = || version!(result unsafe { self.inner.try_upgrade($($guard)?) });
                let lock = self.identity.address();
                with_sites!(ExclusiveGuard, { WRITE | SITE_TRY }, |sites| {
                    version!(of_result raw::try_upgrade(sites, lock, upgrade))
                })
            }
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLockUpgradeFair $(, $facts: Facts)?> api::RawRwLockUpgradeFair
            for Recorded<R $(, $facts)?>
        {
            method!(unlock unlock_upgradable_fair[$($guard)?], UpgradableGuard, UPGRADABLE);
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLockUpgradeDowngrade $(, $facts: Facts)?> api::RawRwLockUpgradeDowngrade
            for Recorded<R $(, $facts)?>
        {
            method!(downgrade downgrade_upgradable[$($guard)?], UpgradableGuard, SharedGuard, READ);
            method!(
                downgrade downgrade_to_upgradable[$($guard)?], ExclusiveGuard, UpgradableGuard, UPGRADABLE
            );
        }

        // SAFETY: as above.
        unsafe impl<R: api::RawRwLockUpgradeTimed $(, $facts: Facts)?> api::RawRwLockUpgradeTimed
            for Recorded<R $(, $facts)?>
        {
            method!(
                lock_in_time try_lock_upgradable_for(Duration), try_lock_upgradable, UpgradableGuard, UPGRADABLE
            );
            method!(
                lock_in_time try_lock_upgradable_until(Instant), try_lock_upgradable, UpgradableGuard, UPGRADABLE
            );
            method!(upgrade_in_time try_upgrade_for(Duration)[$($guard)?]);
            method!(upgrade_in_time try_upgrade_until(Instant)[$($guard)?]);
        }

        impl<R: api::RawMutex $(, $facts: Facts)?, T: ?Sized> SetName for api::Mutex<Recorded<R $(, $facts)?>, T> {
            fn set_name(&self, name: &str) {
                // SAFETY: it is not unlocked.
                let raw = unsafe { self.raw() };
                raw.identity.set_name(name);
            }
        }

        impl<R: api::RawRwLock $(, $facts: Facts)?, T: ?Sized> SetName for api::RwLock<Recorded<R $(, $facts)?>, T> {
            fn set_name(&self, name: &str) {
                // SAFETY: it is not unlocked.
                let raw = unsafe { self.raw() };
                raw.identity.set_name(name);
            }
        }
    };
}
pub(super) use implement;
