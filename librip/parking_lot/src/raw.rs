//! The raw locks: the traits of `lock_api` for [`Word`]. What is public is their recorded form.

#![allow(unsafe_code, reason = "the traits are unsafe")]

use core::time::Duration;
use std::time::Instant;

use librip::raw::Recorded;

use crate::word::{Mode, Word};

/// A raw mutex, recorded.
pub type RawMutex = Recorded<PlainMutex>;
/// A raw mutex that is always unlocked fairly, recorded.
pub type RawFairMutex = Recorded<PlainFairMutex>;
/// A raw readers-writer lock, recorded.
pub type RawRwLock = Recorded<PlainRwLock>;

#[cfg(feature = "send_guard")]
type GuardMarker = lock_api::GuardSend;
#[cfg(not(feature = "send_guard"))]
type GuardMarker = lock_api::GuardNoSend;

/// The moment when the time is up; `None` if it is too far away to be one.
pub(crate) fn until(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Implements the traits of a mutex. `$is_fair`: whether its usual unlock is fair.
macro_rules! mutex {
    ($(#[$doc:meta])* $name:ident, $is_fair:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(Word);

        // SAFETY: the word is held by one writer at a time. So in all that follow.
        unsafe impl lock_api::RawMutex for $name {
            #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
            const INIT: $name = $name(Word::new());

            type GuardMarker = GuardMarker;

            #[inline]
            fn lock(&self) {
                self.0.lock(Mode::Exclusive, None);
            }

            #[inline]
            fn try_lock(&self) -> bool {
                self.0.try_lock(Mode::Exclusive)
            }

            #[inline]
            unsafe fn unlock(&self) {
                self.0.unlock(Mode::Exclusive, None, $is_fair);
            }

            #[inline]
            fn is_locked(&self) -> bool {
                self.0.is_locked()
            }
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexFair for $name {
            #[inline]
            unsafe fn unlock_fair(&self) {
                self.0.unlock(Mode::Exclusive, None, true);
            }
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexTimed for $name {
            type Duration = Duration;
            type Instant = Instant;

            #[inline]
            fn try_lock_for(&self, timeout: Duration) -> bool {
                self.0.lock(Mode::Exclusive, until(timeout))
            }

            #[inline]
            fn try_lock_until(&self, timeout: Instant) -> bool {
                self.0.lock(Mode::Exclusive, Some(timeout))
            }
        }
    };
}

mutex! {
    /// A raw mutex that nobody records.
    PlainMutex, false
}

impl PlainMutex {
    pub(crate) fn word(&self) -> &Word {
        &self.0
    }
}

mutex! {
    /// A raw mutex that is always unlocked fairly, and that nobody records.
    PlainFairMutex, true
}

/// A raw readers-writer lock that nobody records.
#[derive(Debug)]
pub struct PlainRwLock(Word);

// SAFETY: while a thread has the word in exclusive mode, no other thread has it in any mode, and while one has it in
// upgradable mode, no other has it in that. So in all that follow.
unsafe impl lock_api::RawRwLock for PlainRwLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: PlainRwLock = PlainRwLock(Word::new());

    type GuardMarker = GuardMarker;

    #[inline]
    fn lock_shared(&self) {
        self.0.lock(Mode::Shared, None);
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        self.0.try_lock(Mode::Shared)
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        self.0.unlock_shared();
    }

    #[inline]
    fn lock_exclusive(&self) {
        self.0.lock(Mode::Exclusive, None);
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        self.0.try_lock(Mode::Exclusive)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.0.unlock(Mode::Exclusive, None, false);
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockFair for PlainRwLock {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        self.0.unlock_shared();
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        self.0.unlock(Mode::Exclusive, None, true);
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockDowngrade for PlainRwLock {
    #[inline]
    unsafe fn downgrade(&self) {
        self.0.unlock(Mode::Exclusive, Some(Mode::Shared), false);
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockTimed for PlainRwLock {
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        self.0.lock(Mode::Shared, until(timeout))
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        self.0.lock(Mode::Shared, Some(timeout))
    }

    #[inline]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        self.0.lock(Mode::Exclusive, until(timeout))
    }

    #[inline]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        self.0.lock(Mode::Exclusive, Some(timeout))
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockRecursive for PlainRwLock {
    #[inline]
    fn lock_shared_recursive(&self) {
        self.0.lock(Mode::Recursive, None);
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        self.0.try_lock(Mode::Recursive)
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockRecursiveTimed for PlainRwLock {
    #[inline]
    fn try_lock_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.0.lock(Mode::Recursive, until(timeout))
    }

    #[inline]
    fn try_lock_shared_recursive_until(&self, timeout: Instant) -> bool {
        self.0.lock(Mode::Recursive, Some(timeout))
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgrade for PlainRwLock {
    #[inline]
    fn lock_upgradable(&self) {
        self.0.lock(Mode::Upgradable, None);
    }

    #[inline]
    fn try_lock_upgradable(&self) -> bool {
        self.0.try_lock(Mode::Upgradable)
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        self.0.unlock(Mode::Upgradable, None, false);
    }

    #[inline]
    unsafe fn upgrade(&self) {
        self.0.upgrade(None);
    }

    #[inline]
    unsafe fn try_upgrade(&self) -> bool {
        self.0.try_upgrade()
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeFair for PlainRwLock {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self) {
        self.0.unlock(Mode::Upgradable, None, true);
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for PlainRwLock {
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        self.0.unlock(Mode::Upgradable, Some(Mode::Shared), false);
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        self.0.unlock(Mode::Exclusive, Some(Mode::Upgradable), false);
    }
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeTimed for PlainRwLock {
    #[inline]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        self.0.lock(Mode::Upgradable, until(timeout))
    }

    #[inline]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        self.0.lock(Mode::Upgradable, Some(timeout))
    }

    #[inline]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        self.0.upgrade(until(timeout))
    }

    #[inline]
    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        self.0.upgrade(Some(timeout))
    }
}
