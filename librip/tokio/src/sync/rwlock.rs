//! [`RwLock`]: tokio's readers-writer lock, recorded.

#![allow(unsafe_code, reason = "the value is in a cell, to which the semaphore regulates access")]

use std::cell::UnsafeCell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;

use librip::task::lock::{Holding, Use};
use tokio::sync::{Semaphore, TryLockError};

use super::guards::{guard, map};
use super::mutex::is_locked;
use super::pointer::{Exclusive, Shared};
use super::raw::{HasPermits, Lease, Raw};
use crate::blocking::block_on;

/// As many readers as tokio allows.
const MAX_READERS: u32 = u32::MAX >> 3;

/// [`tokio::sync::RwLock`], recorded: the ring says which tasks read or write it, and which wait for it.
///
/// # Examples
///
/// ```
/// use librip_tokio::sync::RwLock;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// static ROUTES: RwLock<Vec<u32>> = RwLock::const_new(Vec::new());
///
/// ROUTES.write().await.push(7);
/// assert_eq!(ROUTES.read().await.len(), 1);
/// # }
/// ```
#[repr(C)]
pub struct RwLock<T: ?Sized> {
    raw: Raw,
    /// How many permits there are: one for each reader. A writer takes all.
    max_readers: u32,
    value: UnsafeCell<T>,
}

// SAFETY: whoever has the lock may take the value.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: several threads may read the value at once, and one with all permits may take it.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T: ?Sized> HasPermits for RwLock<T> {
    fn permits(&self) -> &Semaphore {
        self.raw.permits()
    }
}

/// Defines the methods that lock in one of the two modes.
macro_rules! locking {
    (
        $guard:ident, $owned_guard:ident, $permits:ident, $data:ident,
        $lock:ident, $lock_owned:ident, $blocking_lock:ident, $try_lock:ident, $try_lock_owned:ident
    ) => {
        #[doc = concat!("See [`tokio::sync::RwLock::", stringify!($lock), "`].")]
        #[inline]
        #[track_caller]
        pub fn $lock(&self) -> impl Future<Output = $guard<'_, T>> {
            self.acquire(Location::caller(), self.$permits(), |hold| {
                $guard::new(self.$data(), Lease::new(&self.raw, self.$permits() as usize, hold))
            })
        }

        #[doc = concat!("See [`tokio::sync::RwLock::", stringify!($lock_owned), "`].")]
        #[track_caller]
        pub fn $lock_owned(self: Arc<Self>) -> impl Future<Output = $owned_guard<T>> {
            let at = Location::caller();
            async move {
                let hold = self.acquire(at, self.$permits(), |hold| hold).await;
                let (data, permits) = (self.$data(), self.$permits() as usize);
                $owned_guard::new(data, Lease::new(self, permits, hold))
            }
        }

        #[doc = concat!("See [`tokio::sync::RwLock::", stringify!($blocking_lock), "`].")]
        ///
        /// # Panics
        ///
        /// If the calling thread polls tasks.
        #[track_caller]
        pub fn $blocking_lock(&self) -> $guard<'_, T> {
            block_on(self.$lock())
        }

        #[doc = concat!("See [`tokio::sync::RwLock::", stringify!($try_lock), "`].")]
        ///
        /// # Errors
        ///
        /// If others have locked it.
        #[track_caller]
        pub fn $try_lock(&self) -> Result<$guard<'_, T>, TryLockError> {
            match self.raw.try_acquire(self.$permits()) {
                Ok(hold) => {
                    Ok($guard::new(self.$data(), Lease::new(&self.raw, self.$permits() as usize, hold)))
                }
                Err(_) => Err(is_locked()),
            }
        }

        #[doc = concat!("See [`tokio::sync::RwLock::", stringify!($try_lock_owned), "`].")]
        ///
        /// # Errors
        ///
        /// If others have locked it.
        #[track_caller]
        pub fn $try_lock_owned(self: Arc<Self>) -> Result<$owned_guard<T>, TryLockError> {
            match self.raw.try_acquire(self.$permits()) {
                Ok(hold) => {
                    let (data, permits) = (self.$data(), self.$permits() as usize);
                    Ok($owned_guard::new(data, Lease::new(self, permits, hold)))
                }
                Err(_) => Err(is_locked()),
            }
        }
    };
}

impl<T: ?Sized> RwLock<T> {
    /// See [`tokio::sync::RwLock::new`].
    pub fn new(value: T) -> RwLock<T>
    where
        T: Sized,
    {
        RwLock::const_new(value)
    }

    /// See [`tokio::sync::RwLock::with_max_readers`].
    ///
    /// # Panics
    ///
    /// If there are none, or more than `u32::MAX >> 3`.
    #[track_caller]
    pub fn with_max_readers(value: T, max_reads: u32) -> RwLock<T>
    where
        T: Sized,
    {
        RwLock::const_with_max_readers(value, max_reads)
    }

    /// See [`tokio::sync::RwLock::const_new`].
    pub const fn const_new(value: T) -> RwLock<T>
    where
        T: Sized,
    {
        RwLock::const_with_max_readers(value, MAX_READERS)
    }

    /// See [`tokio::sync::RwLock::const_with_max_readers`].
    ///
    /// # Panics
    ///
    /// If there are none, or more than `u32::MAX >> 3`.
    #[track_caller]
    pub const fn const_with_max_readers(value: T, max_reads: u32) -> RwLock<T>
    where
        T: Sized,
    {
        assert!(max_reads != 0, "a RwLock may not be created with 0 readers");
        assert!(max_reads <= MAX_READERS, "a RwLock may not be created with more readers than u32::MAX >> 3");
        RwLock { raw: Raw::new(max_reads as usize), max_readers: max_reads, value: UnsafeCell::new(value) }
    }

    locking!(
        RwLockReadGuard,
        OwnedRwLockReadGuard,
        permits_to_read,
        shared,
        read,
        read_owned,
        blocking_read,
        try_read,
        try_read_owned
    );
    locking!(
        RwLockWriteGuard,
        OwnedRwLockWriteGuard,
        permits_to_write,
        exclusive,
        write,
        write_owned,
        blocking_write,
        try_write,
        try_write_owned
    );

    /// See [`tokio::sync::RwLock::get_mut`].
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// See [`tokio::sync::RwLock::into_inner`].
    pub fn into_inner(self) -> T
    where
        T: Sized,
    {
        self.value.into_inner()
    }

    librip::__rip_set_name!("the lock", raw);

    fn permits_to_read(&self) -> u32 {
        1
    }

    fn permits_to_write(&self) -> u32 {
        self.max_readers
    }

    #[inline(always)]
    fn acquire<const USE: Use, O>(
        &self,
        at: &'static Location<'static>,
        permits: u32,
        mut map: impl FnMut(Option<Holding<USE>>) -> O,
    ) -> impl Future<Output = O> {
        // SANITY: nobody closes this semaphore.
        let expected = "a readers-writer lock is never closed";
        self.raw.acquire(at, permits, move |acquired| map(acquired.expect(expected)))
    }

    fn shared(&self) -> Shared<T> {
        // SANITY: a cell is not at address 0.
        let value = NonNull::new(self.value.get()).expect("an address");
        // SAFETY: the caller has a permit, and a lease beside this pointer keeps it, and the lock.
        unsafe { Shared::new(value) }
    }

    fn exclusive(&self) -> Exclusive<T> {
        // SAFETY: the caller has all permits, and a lease beside this pointer keeps them, and the lock.
        unsafe { Exclusive::new(self.value.get()) }
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    /// Locks the lock to read if it is free, and records nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("RwLock");
        match self.raw.permits().try_acquire() {
            Ok(_permit) => fields.field("data", &self.shared().get()),
            Err(_) => fields.field("data", &format_args!("<locked>")),
        };
        fields.finish()
    }
}

guard! {
    /// Holds a [`RwLock`] for reading until it is dropped.
    RwLockReadGuard['a, T: ?Sized]['a, T: ?Sized]['a, T]: Shared<T>, &'a Raw, READ, &'a T
}
guard! {
    /// Holds a [`RwLock`] for reading until it is dropped, and owns a share of it.
    OwnedRwLockReadGuard[T: ?Sized, U: ?Sized = T][T: ?Sized, U: ?Sized][T, U]:
    Shared<U>, Arc<RwLock<T>>, READ_OWNED, ()
}
guard! {
    /// Holds a [`RwLock`] for writing until it is dropped.
    RwLockWriteGuard['a, T: ?Sized]['a, T: ?Sized]['a, T]: Exclusive<T>, &'a Raw, WRITE, &'a RwLock<T>
}
guard! {
    /// Holds a [`RwLock`] for writing until it is dropped, and owns a share of it.
    OwnedRwLockWriteGuard[T: ?Sized][T: ?Sized][T]: Exclusive<T>, Arc<RwLock<T>>, WRITE_OWNED, ()
}
guard! {
    /// A [`RwLockWriteGuard`] for a part of the value.
    RwLockMappedWriteGuard['a, T: ?Sized]['a, T: ?Sized]['a, T]: Exclusive<T>, &'a Raw, WRITE, &'a RwLock<T>
}
guard! {
    /// An [`OwnedRwLockWriteGuard`] for a part of the value.
    OwnedRwLockMappedWriteGuard[T: ?Sized, U: ?Sized = T][T: ?Sized, U: ?Sized][T, U]:
    Exclusive<U>, Arc<RwLock<T>>, WRITE_OWNED, Arc<RwLock<U>>
}

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    map!(RwLockReadGuard, RwLockReadGuard<'a, U>, T -> U, (&));
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    map!(OwnedRwLockReadGuard, OwnedRwLockReadGuard<T, V>, U -> V, (&));

    /// See [`tokio::sync::OwnedRwLockReadGuard::rwlock`].
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.lease.lock()
    }
}

/// Defines the methods that make a guard for reading of one for writing.
macro_rules! downgrade {
    ($guard:ident, $read_guard:ty, $mapped:ty) => {
        #[doc = concat!("See [`tokio::sync::", stringify!($guard), "::into_mapped`].")]
        #[inline]
        pub fn into_mapped(this: Self) -> $mapped {
            <$mapped>::new(this.data, this.lease)
        }

        #[doc = concat!("See [`tokio::sync::", stringify!($guard), "::downgrade_map`].")]
        #[inline]
        pub fn downgrade_map<F, U: ?Sized>(this: Self, f: F) -> $read_guard
        where
            F: FnOnce(&T) -> &U,
        {
            // The lock is held in exclusive mode until `f` has returned.
            let data = this.data.share().map(f);
            <$read_guard>::new(data, this.lease.downgrade())
        }

        #[doc = concat!("See [`tokio::sync::", stringify!($guard), "::try_downgrade_map`].")]
        ///
        /// # Errors
        ///
        /// This guard, if `f` returns nothing.
        #[inline]
        pub fn try_downgrade_map<F, U: ?Sized>(this: Self, f: F) -> Result<$read_guard, Self>
        where
            F: FnOnce(&T) -> Option<&U>,
        {
            match this.data.try_share(f) {
                Ok(data) => Ok(<$read_guard>::new(data, this.lease.downgrade())),
                Err(data) => Err(Self::new(data, this.lease)),
            }
        }
    };
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    map!(RwLockWriteGuard, RwLockMappedWriteGuard<'a, U>, T -> U, (&mut));
    downgrade!(RwLockWriteGuard, RwLockReadGuard<'a, U>, RwLockMappedWriteGuard<'a, T>);

    /// See [`tokio::sync::RwLockWriteGuard::downgrade`].
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        Self::downgrade_map(self, |value| value)
    }
}

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    map!(OwnedRwLockWriteGuard, OwnedRwLockMappedWriteGuard<T, U>, T -> U, (&mut));
    downgrade!(OwnedRwLockWriteGuard, OwnedRwLockReadGuard<T, U>, OwnedRwLockMappedWriteGuard<T>);

    /// See [`tokio::sync::OwnedRwLockWriteGuard::downgrade`].
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        Self::downgrade_map(self, |value| value)
    }

    /// See [`tokio::sync::OwnedRwLockWriteGuard::rwlock`].
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.lease.lock()
    }
}

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    map!(RwLockMappedWriteGuard, RwLockMappedWriteGuard<'a, U>, T -> U, (&mut));
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    map!(OwnedRwLockMappedWriteGuard, OwnedRwLockMappedWriteGuard<T, V>, U -> V, (&mut));

    /// See [`tokio::sync::OwnedRwLockMappedWriteGuard::rwlock`].
    #[inline]
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        this.lease.lock()
    }
}
