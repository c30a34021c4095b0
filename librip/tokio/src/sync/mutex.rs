//! [`Mutex`]: tokio's mutex, recorded.

#![allow(unsafe_code, reason = "the value is in a cell, to which the semaphore regulates access")]

use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::mem;
use std::panic::Location;
use std::sync::{Arc, LazyLock};

use librip::task::lock::{Holding, MUTEX, MUTEX_OWNED, Use};
use tokio::sync::{Semaphore, TryLockError};

use super::guards::{guard, map};
use super::pointer::Exclusive;
use super::raw::{HasPermits, Lease, Raw};
use crate::blocking::block_on;

/// [`tokio::sync::Mutex`], recorded: the ring says which task holds it, and which tasks wait for it.
///
/// # Examples
///
/// ```
/// use librip_tokio::sync::Mutex;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// static TOTAL: Mutex<u64> = Mutex::const_new(0);
///
/// *TOTAL.lock().await += 1;
/// assert_eq!(*TOTAL.lock().await, 1);
/// # }
/// ```
#[repr(C)]
pub struct Mutex<T: ?Sized> {
    raw: Raw,
    value: UnsafeCell<T>,
}

// SAFETY: whoever has the mutex may take the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: a thread at a time has the permit, and may take the value meanwhile.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T: ?Sized> HasPermits for Mutex<T> {
    fn permits(&self) -> &Semaphore {
        self.raw.permits()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// See [`tokio::sync::Mutex::new`].
    pub fn new(t: T) -> Mutex<T>
    where
        T: Sized,
    {
        Mutex::const_new(t)
    }

    /// See [`tokio::sync::Mutex::const_new`].
    pub const fn const_new(t: T) -> Mutex<T>
    where
        T: Sized,
    {
        Mutex { raw: Raw::new(1), value: UnsafeCell::new(t) }
    }

    /// See [`tokio::sync::Mutex::lock`].
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        self.acquire(Location::caller(), |hold| self.guard(hold))
    }

    /// See [`tokio::sync::Mutex::lock_owned`].
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> {
        let at = Location::caller();
        async move {
            let hold = self.acquire(at, |hold| hold).await;
            self.owned_guard(hold)
        }
    }

    /// See [`tokio::sync::Mutex::blocking_lock`].
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        block_on(self.lock())
    }

    /// See [`tokio::sync::Mutex::blocking_lock_owned`].
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        block_on(self.lock_owned())
    }

    /// See [`tokio::sync::Mutex::try_lock`].
    ///
    /// # Errors
    ///
    /// If it is locked.
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        match self.raw.try_acquire(1) {
            Ok(hold) => Ok(self.guard(hold)),
            Err(_) => Err(is_locked()),
        }
    }

    /// See [`tokio::sync::Mutex::try_lock_owned`].
    ///
    /// # Errors
    ///
    /// If it is locked.
    #[track_caller]
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        match self.raw.try_acquire(1) {
            Ok(hold) => Ok(self.owned_guard(hold)),
            Err(_) => Err(is_locked()),
        }
    }

    /// See [`tokio::sync::Mutex::get_mut`].
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// See [`tokio::sync::Mutex::into_inner`].
    pub fn into_inner(self) -> T
    where
        T: Sized,
    {
        self.value.into_inner()
    }

    librip::__rip_set_name!("the mutex", raw);

    #[inline(always)]
    fn acquire<const USE: Use, O>(
        &self,
        at: &'static Location<'static>,
        mut map: impl FnMut(Option<Holding<USE>>) -> O,
    ) -> impl Future<Output = O> {
        // SANITY: nobody closes this semaphore.
        self.raw.acquire(at, 1, move |acquired| map(acquired.expect("a mutex is never closed")))
    }

    /// The caller has the permit.
    fn guard(&self, hold: Option<Holding<MUTEX>>) -> MutexGuard<'_, T> {
        MutexGuard::new(self.data(), Lease::new(self, 1, hold))
    }

    /// The caller has the permit.
    fn owned_guard(self: Arc<Self>, hold: Option<Holding<MUTEX_OWNED>>) -> OwnedMutexGuard<T> {
        OwnedMutexGuard::new(self.data(), Lease::new(self, 1, hold))
    }

    fn data(&self) -> Exclusive<T> {
        // SAFETY: the caller has the permit, and a lease beside this pointer keeps it, and the mutex.
        unsafe { Exclusive::new(self.value.get()) }
    }
}

/// Tokio alone can make this error: it says it of a mutex of its own, which stays locked.
pub(super) fn is_locked() -> TryLockError {
    static LOCKED: LazyLock<tokio::sync::Mutex<()>> = LazyLock::new(|| {
        let mutex = tokio::sync::Mutex::new(());
        mem::forget(mutex.try_lock());
        mutex
    });
    // SANITY: nobody has the guard.
    LOCKED.try_lock().expect_err("a mutex that stays locked")
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

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    /// Locks the mutex if it is free, and records nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Mutex");
        match self.raw.permits().try_acquire() {
            Ok(_permit) => fields.field("data", &self.data().get()),
            Err(_) => fields.field("data", &format_args!("<locked>")),
        };
        fields.finish()
    }
}

guard! {
    /// Holds a [`Mutex`] until it is dropped.
    MutexGuard['a, T: ?Sized]['a, T: ?Sized]['a, T]: Exclusive<T>, &'a Mutex<T>, MUTEX, &'a mut T
}
guard! {
    /// Holds a [`Mutex`] until it is dropped, and owns a share of it.
    OwnedMutexGuard[T: ?Sized][T: ?Sized][T]: Exclusive<T>, Arc<Mutex<T>>, MUTEX_OWNED, Box<T>
}
guard! {
    /// A [`MutexGuard`] for a part of the value.
    MappedMutexGuard['a, T: ?Sized]['a, T: ?Sized]['a, T]: Exclusive<T>, &'a Raw, MUTEX, &'a mut T
}
guard! {
    /// An [`OwnedMutexGuard`] for a part of the value.
    OwnedMappedMutexGuard[T: ?Sized, U: ?Sized = T][T: ?Sized, U: ?Sized][T, U]:
    Exclusive<U>, Arc<Mutex<T>>, MUTEX_OWNED, Box<T>
}

impl<'a, T: ?Sized> From<Lease<&'a Mutex<T>, MUTEX>> for Lease<&'a Raw, MUTEX> {
    fn from(lease: Lease<&'a Mutex<T>, MUTEX>) -> Self {
        let mutex = *lease.lock();
        lease.of(&mutex.raw)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    map!(MutexGuard, MappedMutexGuard<'a, U>, T -> U, (&mut));

    /// See [`tokio::sync::MutexGuard::mutex`].
    #[inline]
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.lease.lock()
    }
}

impl<T: ?Sized> OwnedMutexGuard<T> {
    map!(OwnedMutexGuard, OwnedMappedMutexGuard<T, U>, T -> U, (&mut));

    /// See [`tokio::sync::OwnedMutexGuard::mutex`].
    #[inline]
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        this.lease.lock()
    }
}

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    map!(MappedMutexGuard, MappedMutexGuard<'a, U>, T -> U, (&mut));
}

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    map!(OwnedMappedMutexGuard, OwnedMappedMutexGuard<T, V>, U -> V, (&mut));
}
