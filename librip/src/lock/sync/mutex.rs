//! [`Mutex`]: the standard library's mutex, recorded.

#![allow(
    unsafe_code,
    reason = "sites are assembly, and a guard takes the inner guard out of its `ManuallyDrop`"
)]

use core::mem::ManuallyDrop;
use core::ops::DerefMut;
use std::sync;

use super::locking::{MUTEX, common, guard, locking};
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

common!(Mutex);

impl<T: ?Sized> Mutex<T> {
    locking!(Mutex, lock, try_lock, MutexGuard, MUTEX);
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
