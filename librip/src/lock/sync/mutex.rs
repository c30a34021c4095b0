//! [`Mutex`]: the standard library's mutex, recorded.

#![allow(
    unsafe_code,
    reason = "sites are assembly, and a guard takes the inner guard out of its `ManuallyDrop`"
)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::DerefMut;
use std::sync;

use super::LockResult;
use super::locking::{MUTEX, guard, locking};
use crate::lock::Identity;
use crate::lock::site::define_sites;

define_sites!(Sites);

/// [`std::sync::Mutex`], recorded: the ring has its holder and its waiters.
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
    locking!(Mutex, lock, try_lock, MutexGuard, MUTEX);

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

    /// Names the mutex in the ring, up to 48 bytes.
    ///
    /// The name belongs to the address that the mutex has now, so name it where it will stay.
    pub fn set_name(&self, name: &str) {
        self.identity.set_name(name);
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

guard!("Mutex", MutexGuard, MUTEX);

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The lock's address and the inner guard, for a condition variable, which records what happens to them.
    pub(super) fn into_parts(self) -> (u64, sync::MutexGuard<'a, T>) {
        let mut guard = ManuallyDrop::new(self);
        // SAFETY: taken once, because `guard` is not dropped.
        (guard.lock, unsafe { ManuallyDrop::take(&mut guard.inner) })
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
