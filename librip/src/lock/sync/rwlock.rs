//! [`RwLock`]: the standard library's readers-writer lock, recorded.

#![allow(
    unsafe_code,
    reason = "sites are assembly, and a guard takes the inner guard out of its `ManuallyDrop`"
)]

use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::DerefMut;
use std::sync;

use super::LockResult;
use super::locking::{READ, WRITE, guard, locking};
use crate::lock::Identity;
use crate::lock::record::downgraded;
use crate::lock::site::define_sites;

define_sites!(Sites);

/// [`std::sync::RwLock`], recorded: the ring has its readers, its writer and its waiters.
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
    locking!(RwLock, read, try_read, RwLockReadGuard, READ);
    locking!(RwLock, write, try_write, RwLockWriteGuard, WRITE);

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

    /// Names the lock in the ring, up to 48 bytes.
    ///
    /// The name belongs to the address that the lock has now, so name it where it will stay.
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

guard!("RwLock", RwLockReadGuard, READ);
guard!("RwLock", RwLockWriteGuard, WRITE);

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// See [`std::sync::RwLockWriteGuard::downgrade`].
    pub fn downgrade(s: RwLockWriteGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let mut guard = ManuallyDrop::new(s);
        // SAFETY: taken once, because `guard` is not dropped.
        let inner = unsafe { ManuallyDrop::take(&mut guard.inner) };
        // Before: another thread must not appear to share a lock that is recorded as held in exclusive mode.
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
