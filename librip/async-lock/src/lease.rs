//! [`Lease`]: what the guards have of a lock.

#![allow(unsafe_code, reason = "a guard owns a share of the lock that its lease borrows")]

use std::task::Poll;

use librip::task::lock::{self, Holding, Use, Ways};

/// A guard of the lock within a lock, which has no value, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lease<G, const USE: Use> {
    /// `None` if another lease has it.
    inner: Option<G>,
    hold: Option<Holding<USE>>,
}

impl<G, const USE: Use> Lease<G, USE> {
    pub(crate) fn new((inner, hold): (G, Option<Holding<USE>>)) -> Lease<G, USE> {
        Lease { inner: Some(inner), hold }
    }

    /// The guard and what is recorded of it. Whoever has them releases both.
    pub(crate) fn into_parts(mut self) -> (G, Option<Holding<USE>>) {
        // SANITY: only this function and `drop` take it.
        (self.inner.take().expect("a lease has its guard"), self.hold.take())
    }

    /// The lock is shared from now on. `downgrade` does it.
    pub(crate) fn downgrade<H, const SHARED: Use>(self, downgrade: impl FnOnce(G) -> H) -> Lease<H, SHARED> {
        let (inner, hold) = self.into_parts();
        // Before: another task must not appear to share a lock that is recorded as held in exclusive mode.
        let hold = hold.map(Holding::downgrade);
        Lease::new((downgrade(inner), hold))
    }
}

impl<G, const USE: Use> Drop for Lease<G, USE> {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            lock::release(self.hold.take(), || drop(inner));
        }
    }
}

/// How a lock is acquired: an attempt first, which is cheaper than to move the lock's own future, and that future if it
/// fails. `make` makes the output.
#[allow(clippy::type_complexity, reason = "the types of closures have no names")]
pub(crate) fn ways<G, W, const USE: Use, O>(
    mut attempt: impl FnMut() -> Option<G>,
    wait: W,
    mut make: impl FnMut(Lease<G, USE>) -> O,
) -> Ways<
    (),
    impl FnMut(()) -> Option<G>,
    W,
    impl FnMut(&G) -> bool,
    impl FnMut((G, Option<Holding<USE>>)) -> O,
> {
    Ways {
        proceed: |_| Poll::Ready(()),
        attempt: move |()| attempt(),
        wait,
        has_it: |_: &G| true,
        map: move |acquired| make(Lease::new(acquired)),
    }
}

/// Nobody releases what is held.
pub(crate) fn forget<const USE: Use>(hold: Option<Holding<USE>>) {
    if let Some(hold) = hold {
        hold.forget();
    }
}

/// The same lock, for a guard that owns a share of it.
///
/// # Safety
///
/// What is made of the result is dropped before that share.
pub(crate) unsafe fn outliving<R>(raw: &R) -> &'static R {
    // SAFETY: the caller's promise.
    unsafe { &*std::ptr::from_ref(raw) }
}
