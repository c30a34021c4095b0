//! [`Mutex`]: that of `async_lock`, recorded.

#![allow(unsafe_code, reason = "the value is in a cell, to which the inner mutex regulates access")]

use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use librip::task::lock::{self, Holding, Identity, Use};

use crate::blocking::{in_two_polls, run};
use crate::guards::guard;
use crate::lease::{Lease, outliving, ways};

/// [`async_lock::Mutex`], recorded: the ring says which task holds it, and which tasks wait for it.
///
/// # Examples
///
/// ```
/// use librip_async_lock::Mutex;
///
/// static TOTAL: Mutex<u64> = Mutex::new(0);
///
/// *TOTAL.lock_blocking() += 1;
/// assert_eq!(*TOTAL.lock_blocking(), 1);
/// ```
#[repr(C)]
pub struct Mutex<T: ?Sized> {
    pub(crate) raw: Raw,
    pub(crate) value: UnsafeCell<T>,
}

// SAFETY: whoever has the mutex may take the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: a thread at a time has the guard of the inner mutex, and may take the value meanwhile.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

/// A guard of the inner mutex, and what is recorded of it.
type Acquired<'a, const USE: Use> = (async_lock::MutexGuard<'a, ()>, Option<Holding<USE>>);

/// A mutex without a value.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Raw {
    identity: Identity,
    inner: async_lock::Mutex<()>,
}

impl Raw {
    pub(crate) const fn new() -> Raw {
        Raw { identity: Identity::new(), inner: async_lock::Mutex::new(()) }
    }

    /// `make` makes the output.
    #[inline(always)]
    pub(crate) fn lock<'a, const USE: Use, O>(
        &'a self,
        at: &'static Location<'static>,
        make: impl FnMut(Lease<async_lock::MutexGuard<'a, ()>, USE>) -> O,
    ) -> impl Future<Output = O> {
        let ways = ways(|| self.inner.try_lock(), || self.inner.lock(), make);
        lock::acquire_free(at, self.identity.address_in_use(), false, ways)
    }

    #[track_caller]
    pub(crate) fn lock_blocking<const USE: Use>(&self) -> Acquired<'_, USE> {
        let acquire = in_two_polls(|| self.inner.try_lock(), || self.inner.lock_blocking());
        run(lock::acquire(self.identity.address_in_use(), acquire, |_| true))
    }

    #[track_caller]
    pub(crate) fn try_lock<const USE: Use>(&self) -> Option<Acquired<'_, USE>> {
        lock::attempt(self.identity.address_in_use(), || self.inner.try_lock())
    }

    pub(crate) fn set_name(&self, name: &str) {
        self.identity.set_name(name);
    }
}

impl<T> Mutex<T> {
    /// See [`async_lock::Mutex::new`].
    pub const fn new(data: T) -> Mutex<T> {
        Mutex { raw: Raw::new(), value: UnsafeCell::new(data) }
    }

    /// See [`async_lock::Mutex::into_inner`].
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// See [`async_lock::Mutex::lock`].
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        self.raw.lock(Location::caller(), |lease| MutexGuard::new(lease, self))
    }

    /// See [`async_lock::Mutex::lock_blocking`].
    #[track_caller]
    pub fn lock_blocking(&self) -> MutexGuard<'_, T> {
        MutexGuard::new(Lease::new(self.raw.lock_blocking()), self)
    }

    /// See [`async_lock::Mutex::try_lock`].
    #[track_caller]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let acquired = self.raw.try_lock()?;
        Some(MutexGuard::new(Lease::new(acquired), self))
    }

    /// See [`async_lock::Mutex::lock_arc`].
    #[track_caller]
    pub fn lock_arc(self: &Arc<Self>) -> impl Future<Output = MutexGuardArc<T>> + use<T> {
        let (at, mutex) = (Location::caller(), Arc::clone(self));
        async move {
            // SAFETY: the future drops the lease before the share, and so does the guard.
            let raw = unsafe { outliving(&mutex.raw) };
            let lease = raw.lock(at, |lease| lease).await;
            MutexGuardArc::new(lease, mutex)
        }
    }

    /// See [`async_lock::Mutex::lock_arc_blocking`].
    #[track_caller]
    pub fn lock_arc_blocking(self: &Arc<Self>) -> MutexGuardArc<T> {
        // SAFETY: the guard drops the lease before its share.
        let raw = unsafe { outliving(&self.raw) };
        MutexGuardArc::new(Lease::new(raw.lock_blocking()), Arc::clone(self))
    }

    /// See [`async_lock::Mutex::try_lock_arc`].
    #[track_caller]
    pub fn try_lock_arc(self: &Arc<Self>) -> Option<MutexGuardArc<T>> {
        // SAFETY: the guard drops the lease before its share.
        let raw = unsafe { outliving(&self.raw) };
        let acquired = raw.try_lock()?;
        Some(MutexGuardArc::new(Lease::new(acquired), Arc::clone(self)))
    }

    /// See [`async_lock::Mutex::get_mut`].
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    librip::__rip_set_name!("the mutex", raw);
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    /// Locks the mutex if it is free, and records nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.raw.inner.try_lock() {
            Some(_guard) => {
                // SAFETY: the guard is alive, so nobody else has the value.
                let value = unsafe { &*self.value.get() };
                f.debug_struct("Mutex").field("data", &value).finish()
            }
            None => f.debug_struct("Mutex").field("data", &format_args!("<locked>")).finish(),
        }
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
    exclusive MutexGuard['a]: async_lock::MutexGuard<'a, ()>, MUTEX, &'a Mutex<T>, &'a mut T
}
guard! {
    /// Holds a [`Mutex`] until it is dropped, and owns a share of it.
    exclusive MutexGuardArc[]: async_lock::MutexGuard<'static, ()>, MUTEX_OWNED, Arc<Mutex<T>>, Box<T>
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// See [`async_lock::MutexGuard::source`].
    pub fn source(guard: &MutexGuard<'a, T>) -> &'a Mutex<T> {
        guard.lock
    }
}

impl<T: ?Sized> MutexGuardArc<T> {
    /// See [`async_lock::MutexGuardArc::source`].
    pub fn source(guard: &Self) -> &Arc<Mutex<T>>
    where
        // Whoever has the mutex may take the value.
        T: Send,
    {
        &guard.lock
    }
}
