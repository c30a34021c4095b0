//! [`Semaphore`]: that of `async_lock`, recorded.

#![allow(unsafe_code, reason = "a guard owns a share of what it borrows")]

use std::future::Future;
use std::panic::Location;
use std::sync::Arc;

use librip::task::lock::{self, Identity, MUTEX_OWNED};

use crate::blocking::{in_two_polls, run};
use crate::lease::{Lease, forget, outliving, ways};

/// [`async_lock::Semaphore`], recorded: the ring says which tasks have permits, and which wait for one.
///
/// # Examples
///
/// ```
/// use librip_async_lock::Semaphore;
///
/// let semaphore = Semaphore::new(2);
/// let guard = semaphore.acquire_blocking();
/// assert!(semaphore.try_acquire().is_some());
/// # drop(guard);
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Semaphore {
    identity: Identity,
    inner: async_lock::Semaphore,
}

impl Semaphore {
    /// See [`async_lock::Semaphore::new`].
    pub const fn new(n: usize) -> Semaphore {
        Semaphore { identity: Identity::new(), inner: async_lock::Semaphore::new(n) }
    }

    /// See [`async_lock::Semaphore::try_acquire`].
    #[track_caller]
    pub fn try_acquire(&self) -> Option<SemaphoreGuard<'_>> {
        let acquired = lock::attempt_permits(self.address(), || self.inner.try_acquire())?;
        Some(SemaphoreGuard { lease: Lease::new(acquired) })
    }

    /// See [`async_lock::Semaphore::acquire`].
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = SemaphoreGuard<'_>> {
        let ways =
            ways(|| self.inner.try_acquire(), || self.inner.acquire(), |lease| SemaphoreGuard { lease });
        lock::acquire_free(Location::caller(), self.address(), true, ways)
    }

    /// See [`async_lock::Semaphore::acquire_blocking`].
    #[track_caller]
    pub fn acquire_blocking(&self) -> SemaphoreGuard<'_> {
        let acquire = in_two_polls(|| self.inner.try_acquire(), || self.inner.acquire_blocking());
        let acquired = run(lock::acquire_permits(self.address(), acquire, |_| true));
        SemaphoreGuard { lease: Lease::new(acquired) }
    }

    /// See [`async_lock::Semaphore::try_acquire_arc`].
    #[track_caller]
    pub fn try_acquire_arc(self: &Arc<Self>) -> Option<SemaphoreGuardArc> {
        // SAFETY: the guard drops the lease before its share.
        let inner = unsafe { outliving(&self.inner) };
        let acquired = lock::attempt_permits(self.address(), || inner.try_acquire())?;
        Some(SemaphoreGuardArc { lease: Lease::new(acquired), _semaphore: Arc::clone(self) })
    }

    /// See [`async_lock::Semaphore::acquire_arc`].
    #[track_caller]
    pub fn acquire_arc(self: &Arc<Self>) -> impl Future<Output = SemaphoreGuardArc> + use<> {
        let (at, semaphore) = (Location::caller(), Arc::clone(self));
        async move {
            // SAFETY: the future drops the lease before the share, and so does the guard.
            let inner = unsafe { outliving(&semaphore.inner) };
            let ways = ways(|| inner.try_acquire(), || inner.acquire(), |lease| lease);
            let lease = lock::acquire_free(at, semaphore.address(), true, ways).await;
            SemaphoreGuardArc { lease, _semaphore: semaphore }
        }
    }

    /// See [`async_lock::Semaphore::acquire_arc_blocking`].
    #[track_caller]
    pub fn acquire_arc_blocking(self: &Arc<Self>) -> SemaphoreGuardArc {
        // SAFETY: the guard drops the lease before its share.
        let inner = unsafe { outliving(&self.inner) };
        let acquire = in_two_polls(|| inner.try_acquire(), || inner.acquire_blocking());
        let acquired = run(lock::acquire_permits(self.address(), acquire, |_| true));
        SemaphoreGuardArc { lease: Lease::new(acquired), _semaphore: Arc::clone(self) }
    }

    /// See [`async_lock::Semaphore::available_permits`].
    pub fn available_permits(&self) -> usize {
        self.inner.available_permits()
    }

    /// See [`async_lock::Semaphore::add_permits`].
    pub fn add_permits(&self, n: usize) {
        self.inner.add_permits(n);
    }

    librip::__rip_set_name!("the semaphore", identity);

    fn address(&self) -> u64 {
        self.identity.address_in_use()
    }
}

/// Has a permit of a [`Semaphore`] until it is dropped.
#[must_use = "if unused, the permit is given back immediately"]
#[derive(Debug)]
pub struct SemaphoreGuard<'a> {
    lease: Lease<async_lock::SemaphoreGuard<'a>, MUTEX_OWNED>,
}

impl SemaphoreGuard<'_> {
    /// See [`async_lock::SemaphoreGuard::forget`].
    pub fn forget(self) {
        let (inner, hold) = self.lease.into_parts();
        inner.forget();
        forget(hold);
    }
}

/// Has a permit of a [`Semaphore`] until it is dropped, and owns a share of it.
#[must_use = "if unused, the permit is given back immediately"]
#[derive(Debug)]
pub struct SemaphoreGuardArc {
    // It borrows the next field, and so is dropped before.
    lease: Lease<async_lock::SemaphoreGuard<'static>, MUTEX_OWNED>,
    _semaphore: Arc<Semaphore>,
}

impl SemaphoreGuardArc {
    /// See [`async_lock::SemaphoreGuardArc::forget`].
    pub fn forget(self) {
        let (inner, hold) = self.lease.into_parts();
        inner.forget();
        forget(hold);
    }
}
