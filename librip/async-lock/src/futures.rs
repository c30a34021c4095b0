//! In place of `futures::lock`, of the crate `futures`: its mutex, recorded.
//!
//! It is not `async_lock::futures`, where the types are that the functions of `async_lock` return. Those of this crate
//! return an `impl Future`.

#![allow(unsafe_code, reason = "the value is in a cell, to which the inner mutex regulates access")]

use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use futures_util::lock as inner;
use librip::task::lock::{self, Identity};

use crate::guards::guard;
use crate::lease::{Lease, outliving, ways};

/// [`futures_util::lock::Mutex`], recorded: the ring says which task holds it, and which tasks wait for it.
///
/// # Examples
///
/// ```
/// use librip_async_lock::futures::Mutex;
///
/// let total = Mutex::new(1);
/// *total.try_lock().unwrap() += 1;
/// assert_eq!(total.into_inner(), 2);
/// ```
#[repr(C)]
pub struct Mutex<T: ?Sized> {
    identity: Identity,
    inner: inner::Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: whoever has the mutex may take the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: a thread at a time has the guard of the inner mutex, and may take the value meanwhile.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// See [`futures_util::lock::Mutex::new`].
    pub const fn new(t: T) -> Mutex<T> {
        Mutex { identity: Identity::new(), inner: inner::Mutex::new(()), value: UnsafeCell::new(t) }
    }

    /// See [`futures_util::lock::Mutex::into_inner`].
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// See [`futures_util::lock::Mutex::lock`].
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        let ways = ways(|| self.inner.try_lock(), || self.inner.lock(), |lease| MutexGuard::new(lease, self));
        lock::acquire_free(Location::caller(), self.identity.address_in_use(), false, ways)
    }

    /// See [`futures_util::lock::Mutex::lock_owned`].
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> {
        let at = Location::caller();
        async move {
            // SAFETY: the future drops the lease before the share, and so does the guard.
            let inner = unsafe { outliving(&self.inner) };
            let ways = ways(|| inner.try_lock(), || inner.lock(), |lease| lease);
            let lease = lock::acquire_free(at, self.identity.address_in_use(), false, ways).await;
            OwnedMutexGuard::new(lease, self)
        }
    }

    /// See [`futures_util::lock::Mutex::try_lock`].
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let acquired = lock::attempt(self.identity.address_in_use(), || self.inner.try_lock())?;
        Some(MutexGuard::new(Lease::new(acquired), self))
    }

    /// See [`futures_util::lock::Mutex::try_lock_owned`].
    #[track_caller]
    pub fn try_lock_owned(self: &Arc<Self>) -> Option<OwnedMutexGuard<T>> {
        // SAFETY: the guard drops the lease before its share.
        let inner = unsafe { outliving(&self.inner) };
        let acquired = lock::attempt(self.identity.address_in_use(), || inner.try_lock())?;
        Some(OwnedMutexGuard::new(Lease::new(acquired), Arc::clone(self)))
    }

    /// See [`futures_util::lock::Mutex::get_mut`].
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    librip::__rip_set_name!("the mutex", identity);
}

impl<T: ?Sized> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

guard! {
    /// Holds a [`Mutex`] until it is dropped.
    exclusive MutexGuard['a]: inner::MutexGuard<'a, ()>, MUTEX, &'a Mutex<T>, &'a mut T
}
guard! {
    /// Holds a [`Mutex`] until it is dropped, and owns a share of it.
    exclusive OwnedMutexGuard[]: inner::MutexGuard<'static, ()>, MUTEX_OWNED, Arc<Mutex<T>>, Box<T>
}
