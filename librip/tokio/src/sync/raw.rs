//! [`Raw`]: what mutexes, readers-writer locks and initialisations are made of; [`Lease`]: what their guards have.
//!
//! Tokio's own locks are semaphores with a value beside. So are these, because an owned guard of tokio needs an `Arc`
//! of tokio's lock, and here the `Arc` is that of the lock around it. The semaphore is tokio's, and with it the order
//! of the waiters, what happens when one of them is dropped, and the cooperation with the scheduler.

use std::future::Future;
use std::mem;
use std::panic::Location;
use std::sync::Arc;

use librip::task::lock::{self, Holding, Identity, Use, Ways};
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit, TryAcquireError};
use tokio::task::coop::{self, RestoreOnPending};

use super::map::map as map_future;

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

    /// Waits for so many permits. Nothing gives them back but a lease. `map` makes the output of the hold.
    #[inline(always)]
    pub(crate) fn acquire<const USE: Use, O>(
        &self,
        at: &'static Location<'static>,
        permits: u32,
        map: impl FnMut(Result<Option<Holding<USE>>, AcquireError>) -> O,
    ) -> impl Future<Output = O> {
        acquire(&self.permits, permits, Target { at, lock: self.address_in_use(), is_unit: false }, map)
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

/// What is acquired: see [`lock::acquire_free`].
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) at: &'static Location<'static>,
    pub(crate) lock: u64,
    pub(crate) is_unit: bool,
}

/// Acquires so many permits of a semaphore, and forgets them. `map` makes the output of the hold.
///
/// If they are free, no future of tokio's is made. To move that takes longer than all else. What it does then is done
/// here: one unit of the task's budget is used up.
#[inline(always)]
pub(crate) fn acquire<const USE: Use, O>(
    semaphore: &Semaphore,
    permits: u32,
    target: Target,
    mut map: impl FnMut(Result<Option<Holding<USE>>, AcquireError>) -> O,
) -> impl Future<Output = O> {
    let ways = Ways {
        proceed: coop::poll_proceed,
        attempt: move |budget: RestoreOnPending| {
            // A closed semaphore fails here too. The future then returns the error.
            semaphore.try_acquire_many(permits).ok()?.forget();
            budget.made_progress();
            Some(Ok(()))
        },
        wait: move || {
            map_future(semaphore.acquire_many(permits), |permit| permit.map(SemaphorePermit::forget))
        },
        // Whoever has acquired no permits holds nothing.
        has_it: move |acquired: &Result<(), _>| acquired.is_ok() && permits > 0,
        map: move |(acquired, hold): (Result<(), _>, _)| map(acquired.map(|()| hold)),
    };
    lock::acquire_free(target.at, target.lock, target.is_unit, ways)
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
