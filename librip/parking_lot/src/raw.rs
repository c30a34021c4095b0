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

/// Expands to a method that does something to the word in a mode.
macro_rules! method {
    (lock $name:ident, $mode:ident) => {
        #[inline]
        fn $name(&self) {
            self.0.lock(Mode::$mode, None);
        }
    };
    (try_lock $name:ident, $mode:ident) => {
        #[inline]
        fn $name(&self) -> bool {
            self.0.try_lock(Mode::$mode)
        }
    };
    (lock_for $name:ident, $mode:ident) => {
        #[inline]
        fn $name(&self, timeout: Duration) -> bool {
            self.0.lock(Mode::$mode, until(timeout))
        }
    };
    (lock_until $name:ident, $mode:ident) => {
        #[inline]
        fn $name(&self, timeout: Instant) -> bool {
            self.0.lock(Mode::$mode, Some(timeout))
        }
    };
    (unlock $name:ident, $mode:ident, $is_fair:expr) => {
        #[inline]
        unsafe fn $name(&self) {
            self.0.unlock(Mode::$mode, None, $is_fair);
        }
    };
    (unlock_shared $name:ident) => {
        #[inline]
        unsafe fn $name(&self) {
            self.0.unlock_shared();
        }
    };
    (downgrade $name:ident, $mode:ident, $kept:ident) => {
        #[inline]
        unsafe fn $name(&self) {
            self.0.unlock(Mode::$mode, Some(Mode::$kept), false);
        }
    };
    (is $name:ident, $asked:ident) => {
        #[inline]
        fn $name(&self) -> bool {
            self.0.$asked()
        }
    };
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

            method!(lock lock, Exclusive);
            method!(try_lock try_lock, Exclusive);
            method!(unlock unlock, Exclusive, $is_fair);
            method!(is is_locked, is_locked);
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexFair for $name {
            method!(unlock unlock_fair, Exclusive, true);
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexTimed for $name {
            type Duration = Duration;
            type Instant = Instant;

            method!(lock_for try_lock_for, Exclusive);
            method!(lock_until try_lock_until, Exclusive);
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

    method!(lock lock_shared, Shared);
    method!(try_lock try_lock_shared, Shared);
    method!(unlock_shared unlock_shared);
    method!(lock lock_exclusive, Exclusive);
    method!(try_lock try_lock_exclusive, Exclusive);
    method!(unlock unlock_exclusive, Exclusive, false);
    method!(is is_locked, is_locked);
    method!(is is_locked_exclusive, is_exclusive);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockFair for PlainRwLock {
    method!(unlock_shared unlock_shared_fair);
    method!(unlock unlock_exclusive_fair, Exclusive, true);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockDowngrade for PlainRwLock {
    method!(downgrade downgrade, Exclusive, Shared);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockTimed for PlainRwLock {
    type Duration = Duration;
    type Instant = Instant;

    method!(lock_for try_lock_shared_for, Shared);
    method!(lock_until try_lock_shared_until, Shared);
    method!(lock_for try_lock_exclusive_for, Exclusive);
    method!(lock_until try_lock_exclusive_until, Exclusive);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockRecursive for PlainRwLock {
    method!(lock lock_shared_recursive, Recursive);
    method!(try_lock try_lock_shared_recursive, Recursive);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockRecursiveTimed for PlainRwLock {
    method!(lock_for try_lock_shared_recursive_for, Recursive);
    method!(lock_until try_lock_shared_recursive_until, Recursive);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgrade for PlainRwLock {
    method!(lock lock_upgradable, Upgradable);
    method!(try_lock try_lock_upgradable, Upgradable);
    method!(unlock unlock_upgradable, Upgradable, false);

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
    method!(unlock unlock_upgradable_fair, Upgradable, true);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeDowngrade for PlainRwLock {
    method!(downgrade downgrade_upgradable, Upgradable, Shared);
    method!(downgrade downgrade_to_upgradable, Exclusive, Upgradable);
}

// SAFETY: as above.
unsafe impl lock_api::RawRwLockUpgradeTimed for PlainRwLock {
    method!(lock_for try_lock_upgradable_for, Upgradable);
    method!(lock_until try_lock_upgradable_until, Upgradable);

    #[inline]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        self.0.upgrade(until(timeout))
    }

    #[inline]
    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        self.0.upgrade(Some(timeout))
    }
}
