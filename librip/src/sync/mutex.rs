//! [`Mutex`]: the standard library's, with a record.

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
use crate::layout::{LOCK_TYPE_MUTEX, SITE_LOCK_TYPE_SHIFT, SITE_OWNED, SITE_TRY};
use crate::lock::Identity;
use crate::lock::wrap::{Attempt, drop_guard, wrapper_site};

const MUTEX: u16 = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;

/// [`std::sync::Mutex`], and the ring knows who holds it and who waits.
///
/// # Examples
///
/// ```
/// use librip::sync::Mutex;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
///
/// *TOTAL.lock().unwrap() += 1;
/// assert_eq!(*TOTAL.lock().unwrap(), 1);
/// ```
#[repr(C)]
pub struct Mutex<T: ?Sized> {
    identity: Identity,
    inner: sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// See [`std::sync::Mutex::new`].
    #[inline]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { identity: Identity::new(), inner: sync::Mutex::new(value) }
    }

    /// See [`std::sync::Mutex::into_inner`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// See [`std::sync::Mutex::lock`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    #[inline(always)]
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let here = Location::caller();
        let attempt = Attempt::begin(
            self.identity.address_in_use(),
            false,
            #[inline(always)]
            || wrapper_site!(KIND_LOCK_TAKES, MUTEX, [OPERAND_LOCK], here),
            #[inline(always)]
            || wrapper_site!(KIND_LOCK_TAKES, MUTEX, [OPERAND_TIME, OPERAND_LOCK], here),
        );
        match self.inner.try_lock() {
            Ok(guard) => {
                attempt.has();
                Ok(self.guard(guard))
            }
            Err(TryLockError::Poisoned(poisoned)) => {
                attempt.has_poisoned();
                Err(PoisonError::new(self.guard(poisoned.into_inner())))
            }
            Err(TryLockError::WouldBlock) => {
                let pc = wrapper_site!(KIND_LOCK_WAIT, MUTEX, [OPERAND_TIME, OPERAND_LOCK], here);
                let waiting = attempt.waits(self.identity.address(), pc);
                let result = self.inner.lock();
                waiting.has();
                // Not in a function of its own: its result would come through memory, and so would every guard.
                mapped(result, |guard| self.guard(guard))
            }
        }
    }

    /// See [`std::sync::Mutex::try_lock`].
    ///
    /// # Errors
    ///
    /// If the mutex is locked, or poisoned.
    #[inline(always)]
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let here = Location::caller();
        let attempt = Attempt::begin(
            self.identity.address_in_use(),
            false,
            #[inline(always)]
            || wrapper_site!(KIND_LOCK_TAKES, MUTEX | SITE_TRY, [OPERAND_LOCK], here),
            #[inline(always)]
            || wrapper_site!(KIND_LOCK_TAKES, MUTEX | SITE_TRY, [OPERAND_TIME, OPERAND_LOCK], here),
        );
        match self.inner.try_lock() {
            Ok(guard) => {
                attempt.has();
                Ok(self.guard(guard))
            }
            Err(TryLockError::Poisoned(poisoned)) => {
                attempt.has_poisoned();
                Err(TryLockError::Poisoned(PoisonError::new(self.guard(poisoned.into_inner()))))
            }
            Err(TryLockError::WouldBlock) => {
                attempt.failed(
                    self.identity.address(),
                    wrapper_site!(KIND_LOCK_TRY_FAILED, MUTEX | SITE_TRY, [OPERAND_LOCK], here),
                );
                Err(TryLockError::WouldBlock)
            }
        }
    }

    /// See [`std::sync::Mutex::is_poisoned`].
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// See [`std::sync::Mutex::clear_poison`].
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// See [`std::sync::Mutex::get_mut`].
    ///
    /// # Errors
    ///
    /// If the mutex is poisoned.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// Names the mutex in the ring, up to 48 bytes. The name belongs to the place where the lock is now: name it where
    /// it will stay.
    pub fn set_name(&self, name: &str) {
        self.identity.set_name(name);
    }

    #[inline(always)]
    fn guard<'a>(&self, inner: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { inner: ManuallyDrop::new(inner), lock: self.identity.address() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

/// See [`std::sync::MutexGuard`].
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized + 'a> {
    inner: ManuallyDrop<sync::MutexGuard<'a, T>>,
    lock: u64,
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The lock's address, and the guard itself, for a condition variable: what happens then is recorded there.
    pub(super) fn into_parts(self) -> (u64, sync::MutexGuard<'a, T>) {
        let mut guard = ManuallyDrop::new(self);
        // SAFETY: taken once, because `guard` is not dropped.
        (guard.lock, unsafe { ManuallyDrop::take(&mut guard.inner) })
    }

    pub(super) fn from_parts(lock: u64, inner: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { inner: ManuallyDrop::new(inner), lock }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let pc = wrapper_site!(KIND_LOCK_RELEASED, MUTEX, [OPERAND_LOCK]);
        let pc_timed = wrapper_site!(KIND_LOCK_RELEASED, MUTEX, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]);
        // SAFETY: taken once, here; `into_parts` does not get here.
        let inner = unsafe { ManuallyDrop::take(&mut self.inner) };
        drop_guard(self.lock, inner, pc, pc_timed);
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
