//! The raw locks: the traits of `lock_api` for [`Word`]. What is public is their recorded form.

#![allow(unsafe_code, reason = "the traits are unsafe")]

use core::time::Duration;
use std::time::Instant;

use librip::raw::{Facts, Recorded};

use crate::word::{Mode, Word};

/// A raw mutex, recorded.
pub type RawMutex = Recorded<PlainMutex, OfLot>;
/// A raw mutex that is always unlocked fairly, recorded.
pub type RawFairMutex = Recorded<PlainFairMutex, OfLot>;
/// A raw readers-writer lock, recorded. `RECURSIVE`: whether a reader passes writers that wait.
pub type RawRwLock<const RECURSIVE: bool = false> = Recorded<PlainRwLock<RECURSIVE>, OfLot<RECURSIVE>>;
/// A raw readers-writer lock whose readers pass writers that wait, recorded.
pub type RawRwLockRecursive = RawRwLock<true>;

/// What a guard has of its raw lock: nothing but whether it can be sent to another thread.
#[cfg(feature = "send_guard")]
pub(crate) type Guard = lock_api::GuardSend;
#[cfg(not(feature = "send_guard"))]
pub(crate) type Guard = lock_api::GuardNoSend;

/// What is known of the locks of this crate.
#[derive(Debug)]
pub enum OfLot<const RECURSIVE: bool = false> {}

impl<const RECURSIVE: bool> Facts for OfLot<RECURSIVE> {
    const GUARDS_STAY: bool = !cfg!(feature = "send_guard");
    const READERS_FIRST: Option<bool> = Some(RECURSIVE);
}

/// The moment when the time is up; `None` if it is too far away to be one.
pub(crate) fn until(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Expands to a method that does something to the word in a mode.
macro_rules! method {
    (lock $name:ident, $mode:expr) => {
        #[inline]
        fn $name(&self) -> Guard {
            self.0.lock($mode, None);
            Guard::new()
        }
    };
    (try_lock $name:ident, $mode:expr) => {
        #[inline]
        fn $name(&self) -> Option<Guard> {
            self.0.try_lock($mode).then(Guard::new)
        }
    };
    (lock_for $name:ident, $mode:expr) => {
        #[inline]
        fn $name(&self, timeout: Duration) -> Option<Guard> {
            self.0.lock($mode, until(timeout)).then(Guard::new)
        }
    };
    (lock_until $name:ident, $mode:expr) => {
        #[inline]
        fn $name(&self, timeout: Instant) -> Option<Guard> {
            self.0.lock($mode, Some(timeout)).then(Guard::new)
        }
    };
    (unlock $name:ident, $mode:expr, $is_fair:expr) => {
        #[inline]
        unsafe fn $name(&self, _: Guard) {
            self.0.unlock($mode, None, $is_fair);
        }
    };
    (unlock_shared $name:ident) => {
        #[inline]
        unsafe fn $name(&self, _: Guard) {
            self.0.unlock_shared();
        }
    };
    (downgrade $name:ident, $mode:expr, $kept:expr) => {
        #[inline]
        unsafe fn $name(&self, guard: Guard) -> Guard {
            self.0.unlock($mode, Some($kept), false);
            guard
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

            type Guard = Guard;

            method!(lock lock, Mode::Exclusive);
            method!(try_lock try_lock, Mode::Exclusive);
            method!(unlock unlock, Mode::Exclusive, $is_fair);
            method!(is is_locked, is_locked);
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexFair for $name {
            method!(unlock unlock_fair, Mode::Exclusive, true);
        }

        // SAFETY: as above.
        unsafe impl lock_api::RawMutexTimed for $name {
            type Duration = Duration;
            type Instant = Instant;

            method!(lock_for try_lock_for, Mode::Exclusive);
            method!(lock_until try_lock_until, Mode::Exclusive);
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
pub struct PlainRwLock<const RECURSIVE: bool>(Word);

impl<const RECURSIVE: bool> PlainRwLock<RECURSIVE> {
    /// How a reader locks.
    const SHARED: Mode = if RECURSIVE { Mode::Recursive } else { Mode::Shared };

    /// Upgrades a read, which stays if the time is up.
    fn upgrade_until(&self, guard: Guard, until: Option<Instant>) -> Result<Guard, Guard> {
        if self.0.upgrade(until) { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: while a thread has the word in exclusive mode, no other thread has it in any mode, and while one has it in
// upgradable mode, no other has it in that. So in all that follow.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLock for PlainRwLock<RECURSIVE> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Self = PlainRwLock(Word::new());

    type SharedGuard = Guard;
    type ExclusiveGuard = Guard;

    method!(lock lock_shared, Self::SHARED);
    method!(try_lock try_lock_shared, Self::SHARED);
    method!(unlock_shared unlock_shared);
    method!(lock lock_exclusive, Mode::Exclusive);
    method!(try_lock try_lock_exclusive, Mode::Exclusive);
    method!(unlock unlock_exclusive, Mode::Exclusive, false);
    method!(is is_locked, is_locked);
    method!(is is_locked_exclusive, is_exclusive);
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockFair for PlainRwLock<RECURSIVE> {
    method!(unlock_shared unlock_shared_fair);
    method!(unlock unlock_exclusive_fair, Mode::Exclusive, true);
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockDowngrade for PlainRwLock<RECURSIVE> {
    method!(downgrade downgrade, Mode::Exclusive, Mode::Shared);
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockTimed for PlainRwLock<RECURSIVE> {
    type Duration = Duration;
    type Instant = Instant;

    method!(lock_for try_lock_shared_for, Self::SHARED);
    method!(lock_until try_lock_shared_until, Self::SHARED);
    method!(lock_for try_lock_exclusive_for, Mode::Exclusive);
    method!(lock_until try_lock_exclusive_until, Mode::Exclusive);
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgrade for PlainRwLock<RECURSIVE> {
    type UpgradableGuard = Guard;

    method!(lock lock_upgradable, Mode::Upgradable);
    method!(try_lock try_lock_upgradable, Mode::Upgradable);
    method!(unlock unlock_upgradable, Mode::Upgradable, false);

    #[inline]
    unsafe fn upgrade(&self, guard: Guard) -> Guard {
        self.0.upgrade(None);
        guard
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: Guard) -> Result<Guard, Guard> {
        if self.0.try_upgrade() { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeFair for PlainRwLock<RECURSIVE> {
    method!(unlock unlock_upgradable_fair, Mode::Upgradable, true);
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeDowngrade for PlainRwLock<RECURSIVE> {
    method!(downgrade downgrade_upgradable, Mode::Upgradable, Mode::Shared);
    method!(downgrade downgrade_to_upgradable, Mode::Exclusive, Mode::Upgradable);
}

// SAFETY: as above.
unsafe impl<const RECURSIVE: bool> lock_api::RawRwLockUpgradeTimed for PlainRwLock<RECURSIVE> {
    method!(lock_for try_lock_upgradable_for, Mode::Upgradable);
    method!(lock_until try_lock_upgradable_until, Mode::Upgradable);

    #[inline]
    unsafe fn try_upgrade_for(&self, guard: Guard, timeout: Duration) -> Result<Guard, Guard> {
        self.upgrade_until(guard, until(timeout))
    }

    #[inline]
    unsafe fn try_upgrade_until(&self, guard: Guard, timeout: Instant) -> Result<Guard, Guard> {
        self.upgrade_until(guard, Some(timeout))
    }
}
