//! [`Raw`]: what mutexes, readers-writer locks and initialisations are made of; [`Lease`]: what their guards have.
//!
//! Tokio's own locks are semaphores with a value beside. So are these, because an owned guard of tokio needs an `Arc`
//! of tokio's lock, and here the `Arc` is that of the lock around it. The semaphore is tokio's, and with it the order
//! of the waiters, what happens when one of them is dropped, and the cooperation with the scheduler.

use std::future::Future;
use std::mem;
use std::panic::Location;
use std::sync::Arc;

use librip::task::lock::{self, Holding, Identity, Use};
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit, TryAcquireError};

use super::map::map;

/// Permits, and an identity. Its address is that of the lock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Raw {
    identity: Identity,
    permits: Semaphore,
}

impl Raw {
    #[track_caller]
    pub(crate) const fn new(permits: usize) -> Raw {
        Raw { identity: Identity::new(), permits: Semaphore::const_new(permits) }
    }

    pub(crate) fn permits(&self) -> &Semaphore {
        &self.permits
    }

    pub(crate) fn set_name(&self, name: &str) {
        self.identity.set_name(name);
    }

    /// The address of the lock, which is about to be used.
    pub(crate) fn address_in_use(&self) -> u64 {
        self.identity.address_in_use()
    }

    /// Waits for so many permits. Nothing gives them back but a lease.
    pub(crate) fn acquire<const USE: Use>(
        &self,
        at: &'static Location<'static>,
        permits: u32,
    ) -> impl Future<Output = Result<Option<Holding<USE>>, AcquireError>> {
        let acquiring = self.permits.acquire_many(permits);
        let acquire = lock::acquire_at::<USE, _>(at, self.address_in_use(), acquiring, Result::is_ok);
        map(acquire, |(permit, hold)| {
            permit.map(SemaphorePermit::forget)?;
            Ok(hold)
        })
    }

    #[track_caller]
    pub(crate) fn try_acquire<const USE: Use>(
        &self,
        permits: u32,
    ) -> Result<Option<Holding<USE>>, TryAcquireError> {
        let mut failure = TryAcquireError::NoPermits;
        let attempt = || {
            let permit = self.permits.try_acquire_many(permits).map_err(|error| failure = error);
            permit.map(SemaphorePermit::forget).ok()
        };
        let acquired = lock::attempt::<USE, _>(self.address_in_use(), attempt);
        acquired.map(|((), hold)| hold).ok_or(failure)
    }
}

/// A lock that has permits.
pub(crate) trait HasPermits {
    fn permits(&self) -> &Semaphore;
}

impl HasPermits for Raw {
    fn permits(&self) -> &Semaphore {
        &self.permits
    }
}

impl<L: HasPermits + ?Sized> HasPermits for &L {
    fn permits(&self) -> &Semaphore {
        (**self).permits()
    }
}

impl<L: HasPermits + ?Sized> HasPermits for Arc<L> {
    fn permits(&self) -> &Semaphore {
        (**self).permits()
    }
}

/// Permits of a lock, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease<L: HasPermits, const USE: Use> {
    lock: L,
    /// 0 if another lease has them.
    permits: usize,
    hold: Option<Holding<USE>>,
}

impl<L: HasPermits, const USE: Use> Lease<L, USE> {
    /// The caller has acquired the permits.
    pub(crate) fn new(lock: L, permits: usize, hold: Option<Holding<USE>>) -> Lease<L, USE> {
        Lease { lock, permits, hold }
    }

    pub(crate) fn lock(&self) -> &L {
        &self.lock
    }

    pub(crate) fn count(&self) -> usize {
        self.permits
    }

    /// Another lease, of this many permits of this one, which has them. `hold_more` records another hold.
    pub(crate) fn split(
        &mut self,
        permits: usize,
        hold_more: impl FnOnce(&L) -> Option<Holding<USE>>,
    ) -> Lease<L, USE>
    where
        L: Clone,
    {
        self.permits -= permits;
        let hold = match permits {
            0 => None,
            _ if self.permits == 0 => self.hold.take(),
            _ => hold_more(&self.lock),
        };
        Lease { lock: self.lock.clone(), permits, hold }
    }

    /// Takes the permits of another lease of this lock.
    pub(crate) fn add(&mut self, mut other: Lease<L, USE>) {
        // SANITY: tokio panics too. A semaphore has fewer permits than fit in a `usize`.
        self.permits = self.permits.checked_add(other.permits).expect("number of permits overflowed");
        other.permits = 0;
        match (&self.hold, other.hold.take()) {
            (Some(_), Some(hold)) => hold.forget(),
            (None, hold) => self.hold = hold,
            (Some(_), None) => {}
        }
    }

    /// Nobody gives the permits back.
    pub(crate) fn forget(mut self) {
        self.permits = 0;
        if let Some(hold) = self.hold.take() {
            hold.forget();
        }
    }

    /// The same lease of another type of lock: `lock` is the same one.
    pub(crate) fn of<M: HasPermits>(mut self, lock: M) -> Lease<M, USE> {
        Lease { lock, permits: mem::take(&mut self.permits), hold: self.hold.take() }
    }
}

impl<L: HasPermits + Clone, const USE: Use> Lease<L, USE> {
    /// Gives back all permits but one. The lock is shared from now on.
    pub(crate) fn downgrade<const SHARED: Use>(mut self) -> Lease<L, SHARED> {
        // Before: another task must not appear to share a lock that is recorded as held in exclusive mode.
        let hold = self.hold.take().map(Holding::downgrade);
        let others = mem::take(&mut self.permits) - 1;
        self.lock.permits().add_permits(others);
        Lease { lock: self.lock.clone(), permits: 1, hold }
    }
}

impl<L: HasPermits, const USE: Use> Drop for Lease<L, USE> {
    fn drop(&mut self) {
        let (permits, hold) = (mem::take(&mut self.permits), self.hold.take());
        if permits > 0 {
            lock::release(hold, || self.lock.permits().add_permits(permits));
        }
    }
}
