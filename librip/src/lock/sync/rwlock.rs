//! [`RwLock`]: the standard library's readers-writer lock, recorded.

#![allow(
    unsafe_code,
    reason = "sites are assembly, and a guard takes the inner guard out of its `ManuallyDrop`"
)]

use core::mem::ManuallyDrop;
use core::ops::DerefMut;
use std::sync;

use super::locking::{READ, WRITE, common, guard, locking};
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

common!(RwLock);

impl<T: ?Sized> RwLock<T> {
    locking!(RwLock, read, try_read, RwLockReadGuard, READ);
    locking!(RwLock, write, try_write, RwLockWriteGuard, WRITE);
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
