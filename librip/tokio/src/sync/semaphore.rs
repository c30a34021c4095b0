//! [`Semaphore`]: tokio's, recorded.

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use librip::task::lock::{self, Holding, Identity, MUTEX_OWNED};
use tokio::sync::{self, AcquireError, TryAcquireError};

use super::raw::{self, HasPermits, Lease, Target};
use crate::blocking::block_on;
use crate::forward::forward;

/// [`tokio::sync::Semaphore`], recorded: the ring says which tasks have permits, and which wait for some.
///
/// A permit that is forgotten is nobody's any more. Who adds permits is not recorded.
///
/// # Examples
///
/// ```
/// use librip_tokio::sync::Semaphore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// static CONNECTIONS: Semaphore = Semaphore::const_new(2);
///
/// let permit = CONNECTIONS.acquire().await.unwrap();
/// assert_eq!(CONNECTIONS.available_permits(), 1);
/// # drop(permit);
/// # }
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Semaphore {
    identity: Identity,
    inner: sync::Semaphore,
}

impl HasPermits for Semaphore {
    fn permits(&self) -> &sync::Semaphore {
        &self.inner
    }
}

/// What an acquisition leaves behind: how many permits, and the hold.
type Acquired = (usize, Option<Holding<MUTEX_OWNED>>);

impl Semaphore {
    /// See [`tokio::sync::Semaphore::MAX_PERMITS`].
    pub const MAX_PERMITS: usize = sync::Semaphore::MAX_PERMITS;

    /// See [`tokio::sync::Semaphore::new`].
    ///
    /// # Panics
    ///
    /// If there are more than [`Semaphore::MAX_PERMITS`].
    #[track_caller]
    pub fn new(permits: usize) -> Semaphore {
        Semaphore { identity: Identity::new(), inner: sync::Semaphore::new(permits) }
    }

    /// See [`tokio::sync::Semaphore::const_new`].
    ///
    /// # Panics
    ///
    /// If there are more than [`Semaphore::MAX_PERMITS`].
    #[track_caller]
    pub const fn const_new(permits: usize) -> Semaphore {
        Semaphore { identity: Identity::new(), inner: sync::Semaphore::const_new(permits) }
    }

    forward! {
        tokio::sync::Semaphore;
        fn available_permits(&self) -> usize;
        ///
        /// # Panics
        ///
        /// If there are more than [`Semaphore::MAX_PERMITS`] then.
        fn add_permits(&self, n: usize);
        fn forget_permits(&self, n: usize) -> usize;
        fn close(&self);
        fn is_closed(&self) -> bool;
    }

    /// See [`tokio::sync::Semaphore::acquire`].
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        self.acquire_many(1)
    }

    /// See [`tokio::sync::Semaphore::acquire_many`].
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, n: u32) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        self.wait(Location::caller(), n, |acquired| Ok(SemaphorePermit::of(self, acquired?)))
    }

    /// See [`tokio::sync::Semaphore::try_acquire`].
    ///
    /// # Errors
    ///
    /// If there is no permit, or the semaphore is closed.
    #[track_caller]
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// See [`tokio::sync::Semaphore::try_acquire_many`].
    ///
    /// # Errors
    ///
    /// If there are not so many permits, or the semaphore is closed.
    #[track_caller]
    pub fn try_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        Ok(SemaphorePermit::of(self, self.try_wait(n)?))
    }

    /// Like [`acquire`](Semaphore::acquire), for a thread.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed.
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        block_on(self.acquire())
    }

    /// Like [`acquire_many`](Semaphore::acquire_many), for a thread.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed.
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_acquire_many(&self, n: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        block_on(self.acquire_many(n))
    }

    /// See [`tokio::sync::Semaphore::acquire_owned`].
    #[track_caller]
    pub fn acquire_owned(
        self: Arc<Self>,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        self.acquire_many_owned(1)
    }

    /// See [`tokio::sync::Semaphore::acquire_many_owned`].
    #[track_caller]
    pub fn acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        let at = Location::caller();
        async move {
            let acquired = self.wait(at, n, |acquired| acquired).await?;
            Ok(OwnedSemaphorePermit::of(self, acquired))
        }
    }

    /// See [`tokio::sync::Semaphore::try_acquire_owned`].
    ///
    /// # Errors
    ///
    /// If there is no permit, or the semaphore is closed.
    #[track_caller]
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// See [`tokio::sync::Semaphore::try_acquire_many_owned`].
    ///
    /// # Errors
    ///
    /// If there are not so many permits, or the semaphore is closed.
    #[track_caller]
    pub fn try_acquire_many_owned(self: Arc<Self>, n: u32) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let acquired = self.try_wait(n)?;
        Ok(OwnedSemaphorePermit::of(self, acquired))
    }

    /// Like [`acquire_owned`](Semaphore::acquire_owned), for a thread.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed.
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        block_on(self.acquire_owned())
    }

    /// Like [`acquire_many_owned`](Semaphore::acquire_many_owned), for a thread.
    ///
    /// # Errors
    ///
    /// If the semaphore is closed.
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        n: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        block_on(self.acquire_many_owned(n))
    }

    librip::__rip_set_name!("the semaphore", identity);

    #[inline(always)]
    fn wait<O>(
        &self,
        at: &'static Location<'static>,
        permits: u32,
        mut map: impl FnMut(Result<Acquired, AcquireError>) -> O,
    ) -> impl Future<Output = O> {
        let target = Target { at, lock: self.identity.address_in_use(), is_unit: true };
        raw::acquire(&self.inner, permits, target, move |hold| map(hold.map(|hold| (permits as usize, hold))))
    }

    #[track_caller]
    fn try_wait(&self, permits: u32) -> Result<Acquired, TryAcquireError> {
        if permits == 0 {
            self.inner.try_acquire_many(permits)?.forget();
            return Ok((0, None));
        }
        let mut failure = TryAcquireError::NoPermits;
        let attempt = || {
            let permit = self.inner.try_acquire_many(permits).map_err(|error| failure = error);
            permit.map(sync::SemaphorePermit::forget).ok()
        };
        let acquired = lock::attempt_permits(self.identity.address_in_use(), attempt);
        acquired.map(|((), hold)| (permits as usize, hold)).ok_or(failure)
    }

    /// Records that there is one more holder, of permits that were acquired before.
    fn hold_more(&self, at: &'static Location<'static>) -> Option<Holding<MUTEX_OWNED>> {
        let acquired = lock::attempt_permits_at(at, self.identity.address_in_use(), || Some(()));
        acquired.and_then(|((), hold)| hold)
    }
}

/// Defines a permit, with what both kinds have in common.
macro_rules! permit {
    ($permit:ident [$($lifetime:lifetime)?], $semaphore:ty, $returned:ty) => {
        #[doc = concat!("See [`tokio::sync::", stringify!($permit), "`].")]
        #[must_use = "if unused, the permits are given back immediately"]
        #[derive(Debug)]
        pub struct $permit $(<$lifetime>)? {
            lease: Lease<$semaphore, MUTEX_OWNED>,
        }

        impl $(<$lifetime>)? $permit $(<$lifetime>)? {
            fn of(semaphore: $semaphore, (permits, hold): Acquired) -> Self {
                $permit { lease: Lease::new(semaphore, permits, hold) }
            }

            #[doc = concat!("See [`tokio::sync::", stringify!($permit), "::forget`].")]
            pub fn forget(self) {
                self.lease.forget();
            }

            #[doc = concat!("See [`tokio::sync::", stringify!($permit), "::merge`].")]
            ///
            /// # Panics
            ///
            /// If the other permits are those of another semaphore.
            #[track_caller]
            pub fn merge(&mut self, other: Self) {
                let (own, others): (&Semaphore, &Semaphore) = (self.lease.lock(), other.lease.lock());
                assert!(
                    std::ptr::eq(own, others),
                    "merging permits from different semaphore instances"
                );
                self.lease.add(other.lease);
            }

            #[doc = concat!("See [`tokio::sync::", stringify!($permit), "::split`].")]
            ///
            /// Either part is recorded as a holder.
            #[track_caller]
            pub fn split(&mut self, n: usize) -> Option<Self> {
                if n > self.lease.count() {
                    return None;
                }
                let at = Location::caller();
                Some($permit { lease: self.lease.split(n, |semaphore| semaphore.hold_more(at)) })
            }

            #[doc = concat!("See [`tokio::sync::", stringify!($permit), "::semaphore`].")]
            pub fn semaphore(&self) -> $returned {
                self.lease.lock()
            }

            #[doc = concat!("See [`tokio::sync::", stringify!($permit), "::num_permits`].")]
            pub fn num_permits(&self) -> usize {
                self.lease.count()
            }
        }
    };
}

permit!(SemaphorePermit['a], &'a Semaphore, &Semaphore);
permit!(OwnedSemaphorePermit[], Arc<Semaphore>, &Arc<Semaphore>);
