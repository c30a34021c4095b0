//! [`RwLock`]: the standard library's, with a record.

#![allow(
    unsafe_code,
    reason = "sites are assembly, and the guard in a guard is dropped by hand, between two records"
)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::panic::Location;
use std::sync;

use super::{LockResult, PoisonError, TryLockError, TryLockResult, mapped};
use crate::layout::{LOCK_TYPE_RWLOCK, SITE_LOCK_TYPE_SHIFT, SITE_OWNED, SITE_SHARED, SITE_TRY};
use crate::lock::Identity;
use crate::lock::wrap::{Attempt, downgraded, drop_guard, wrapper_site};

const WRITE: u16 = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;
const READ: u16 = WRITE | SITE_SHARED;

/// [`std::sync::RwLock`], and the ring knows who reads, who writes and who waits.
///
/// # Examples
///
/// ```
/// use librip::sync::RwLock;
///
/// static ROUTES: RwLock<Vec<u32>> = RwLock::new(Vec::new());
///
/// ROUTES.write().unwrap().push(7);
/// assert_eq!(ROUTES.read().unwrap().len(), 1);
/// ```
#[repr(C)]
pub struct RwLock<T: ?Sized> {
    identity: Identity,
    inner: sync::RwLock<T>,
}

/// Defines the two ways to lock, blocking and not.
macro_rules! locking {
    ($lock:ident, $try_lock:ident, $guard:ident, $flags:ident) => {
        #[doc = concat!("See [`std::sync::RwLock::", stringify!($lock), "`].")]
        ///
        /// # Errors
        ///
        /// If the lock is poisoned.
        #[inline(always)]
        #[track_caller]
        pub fn $lock(&self) -> LockResult<$guard<'_, T>> {
            let here = Location::caller();
            let attempt = Attempt::begin(
                self.identity.address_in_use(),
                $flags & SITE_SHARED != 0,
                #[inline(always)]
                || wrapper_site!(KIND_LOCK_TAKES, $flags, [OPERAND_LOCK], here),
                #[inline(always)]
                || wrapper_site!(KIND_LOCK_TAKES, $flags, [OPERAND_TIME, OPERAND_LOCK], here),
            );
            match self.inner.$try_lock() {
                Ok(guard) => {
                    attempt.has();
                    Ok($guard::new(self.identity.address(), guard))
                }
                Err(TryLockError::Poisoned(poisoned)) => {
                    attempt.has_poisoned();
                    Err(PoisonError::new($guard::new(self.identity.address(), poisoned.into_inner())))
                }
                Err(TryLockError::WouldBlock) => {
                    let pc = wrapper_site!(KIND_LOCK_WAIT, $flags, [OPERAND_TIME, OPERAND_LOCK], here);
                    let waiting = attempt.waits(self.identity.address(), pc);
                    let result = self.inner.$lock();
                    waiting.has();
                    // Not in a function of its own: see `Mutex::lock`.
                    mapped(result, |guard| $guard::new(self.identity.address(), guard))
                }
            }
        }

        #[doc = concat!("See [`std::sync::RwLock::", stringify!($try_lock), "`].")]
        ///
        /// # Errors
        ///
        /// If the lock is not to be had at once, or poisoned.
        #[inline(always)]
        #[track_caller]
        pub fn $try_lock(&self) -> TryLockResult<$guard<'_, T>> {
            let here = Location::caller();
            let attempt = Attempt::begin(
                self.identity.address_in_use(),
                $flags & SITE_SHARED != 0,
                #[inline(always)]
                || wrapper_site!(KIND_LOCK_TAKES, $flags | SITE_TRY, [OPERAND_LOCK], here),
                #[inline(always)]
                || wrapper_site!(KIND_LOCK_TAKES, $flags | SITE_TRY, [OPERAND_TIME, OPERAND_LOCK], here),
            );
            match self.inner.$try_lock() {
                Ok(guard) => {
                    attempt.has();
                    Ok($guard::new(self.identity.address(), guard))
                }
                Err(TryLockError::Poisoned(poisoned)) => {
                    attempt.has_poisoned();
                    let guard = $guard::new(self.identity.address(), poisoned.into_inner());
                    Err(TryLockError::Poisoned(PoisonError::new(guard)))
                }
                Err(TryLockError::WouldBlock) => {
                    attempt.failed(
                        self.identity.address(),
                        wrapper_site!(KIND_LOCK_TRY_FAILED, $flags | SITE_TRY, [OPERAND_LOCK], here),
                    );
                    Err(TryLockError::WouldBlock)
                }
            }
        }
    };
}

impl<T> RwLock<T> {
    /// See [`std::sync::RwLock::new`].
    #[inline]
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { identity: Identity::new(), inner: sync::RwLock::new(value) }
    }

    /// See [`std::sync::RwLock::into_inner`].
    ///
    /// # Errors
    ///
    /// If the lock is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    locking!(read, try_read, RwLockReadGuard, READ);
    locking!(write, try_write, RwLockWriteGuard, WRITE);

    /// See [`std::sync::RwLock::is_poisoned`].
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// See [`std::sync::RwLock::clear_poison`].
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// See [`std::sync::RwLock::get_mut`].
    ///
    /// # Errors
    ///
    /// If the lock is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// Names the lock in the ring, up to 48 bytes. The name belongs to the place where the lock is now: name it where
    /// it will stay.
    pub fn set_name(&self, name: &str) {
        self.identity.set_name(name);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

/// Defines a guard.
macro_rules! guard {
    ($guard:ident, $flags:ident) => {
        #[doc = concat!("See [`std::sync::", stringify!($guard), "`].")]
        #[must_use = "if unused the RwLock will immediately unlock"]
        pub struct $guard<'a, T: ?Sized + 'a> {
            inner: ManuallyDrop<sync::$guard<'a, T>>,
            lock: u64,
        }

        impl<'a, T: ?Sized> $guard<'a, T> {
            #[inline(always)]
            fn new(lock: u64, inner: sync::$guard<'a, T>) -> $guard<'a, T> {
                $guard { inner: ManuallyDrop::new(inner), lock }
            }
        }

        impl<T: ?Sized> Drop for $guard<'_, T> {
            #[inline]
            fn drop(&mut self) {
                let pc = wrapper_site!(KIND_LOCK_RELEASED, $flags, [OPERAND_LOCK]);
                let pc_timed =
                    wrapper_site!(KIND_LOCK_RELEASED, $flags, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]);
                // SAFETY: taken once, here.
                let inner = unsafe { ManuallyDrop::take(&mut self.inner) };
                drop_guard(self.lock, inner, pc, pc_timed);
            }
        }

        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}

guard!(RwLockReadGuard, READ);
guard!(RwLockWriteGuard, WRITE);

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// See [`std::sync::RwLockWriteGuard::downgrade`].
    pub fn downgrade(s: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let mut guard = ManuallyDrop::new(s);
        // SAFETY: taken once, because `guard` is not dropped.
        let inner = unsafe { ManuallyDrop::take(&mut guard.inner) };
        // Before: nobody may be seen to share a lock that is said to be had alone.
        downgraded(guard.lock);
        RwLockReadGuard::new(guard.lock, sync::RwLockWriteGuard::downgrade(inner))
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
