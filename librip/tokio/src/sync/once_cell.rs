//! [`OnceCell`]: tokio's, recorded.
//!
//! The cell is tokio's. Which task runs its initialiser, a semaphore beside it decides, as in tokio's own: so it can be
//! recorded.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::Location;

use librip::task::lock::{Holding, ONCE};
use tokio::sync::{self, SetError, TryAcquireError};

use super::raw::{Lease, Raw};
use crate::forward::forward;

/// [`tokio::sync::OnceCell`], recorded: the ring says which task initialises it, and which tasks wait for that.
///
/// Once it is initialised, nothing is recorded.
///
/// # Examples
///
/// ```
/// use librip_tokio::sync::OnceCell;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// static NAME: OnceCell<String> = OnceCell::const_new();
///
/// assert_eq!(NAME.get_or_init(|| async { "server".to_owned() }).await, "server");
/// # }
/// ```
#[repr(C)]
pub struct OnceCell<T> {
    /// One permit, to initialise. Closed when that is done.
    raw: Raw,
    inner: sync::OnceCell<T>,
}

impl<T> OnceCell<T> {
    /// See [`tokio::sync::OnceCell::new`].
    pub fn new() -> OnceCell<T> {
        OnceCell::const_new()
    }

    /// See [`tokio::sync::OnceCell::const_new`].
    pub const fn const_new() -> OnceCell<T> {
        OnceCell { raw: Raw::new(1), inner: sync::OnceCell::const_new() }
    }

    /// See [`tokio::sync::OnceCell::new_with`].
    pub fn new_with(value: Option<T>) -> OnceCell<T> {
        OnceCell { raw: Raw::new(1), inner: sync::OnceCell::new_with(value) }
    }

    /// See [`tokio::sync::OnceCell::const_new_with`].
    pub const fn const_new_with(value: T) -> OnceCell<T> {
        OnceCell { raw: Raw::new(1), inner: sync::OnceCell::const_new_with(value) }
    }

    forward! {
        tokio::sync::OnceCell;
        fn initialized(&self) -> bool;
        fn get(&self) -> Option<&T>;
        fn get_mut(&mut self) -> Option<&mut T>;
        fn into_inner(self) -> Option<T>;
    }

    /// See [`tokio::sync::OnceCell::set`].
    ///
    /// # Errors
    ///
    /// If it is initialised, or a task initialises it.
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        if self.initialized() {
            return Err(SetError::AlreadyInitializedError(value));
        }
        // Nobody waits here, so nothing is recorded.
        match self.raw.permits().try_acquire() {
            Ok(_permit) => {
                let set = self.inner.set(value);
                self.raw.permits().close();
                set
            }
            Err(TryAcquireError::NoPermits) => Err(SetError::InitializingError(value)),
            Err(TryAcquireError::Closed) => Err(SetError::AlreadyInitializedError(value)),
        }
    }

    /// See [`tokio::sync::OnceCell::get_or_init`].
    #[track_caller]
    pub fn get_or_init<F, Fut>(&self, f: F) -> impl Future<Output = &T>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        let at = Location::caller();
        async move {
            let initialised = self.initialise(at, || async { Ok::<T, Infallible>(f().await) }).await;
            initialised.unwrap_or_else(|never| match never {})
        }
    }

    /// See [`tokio::sync::OnceCell::get_or_try_init`].
    #[track_caller]
    pub fn get_or_try_init<E, F, Fut>(&self, f: F) -> impl Future<Output = Result<&T, E>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.initialise(Location::caller(), f)
    }

    async fn initialise<E, Fut: Future<Output = Result<T, E>>>(
        &self,
        at: &'static Location<'static>,
        f: impl FnOnce() -> Fut,
    ) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let acquired: Result<Option<Holding<ONCE>>, _> = self.raw.acquire(at, 1, |acquired| acquired).await;
        if let Ok(hold) = acquired {
            // It is given back if `f` fails, panics or is dropped. Then the next task initialises.
            let lease = Lease::new(&self.raw, 1, hold);
            let value = f().await?;
            // It fails if the cell was made with a value, and then it has one.
            let _ = self.inner.set(value);
            self.raw.permits().close();
            drop(lease);
        }
        // SANITY: the semaphore is closed when the cell has a value, and not before.
        Ok(self.get().expect("an initialised cell"))
    }

    /// See [`tokio::sync::OnceCell::take`].
    pub fn take(&mut self) -> Option<T> {
        let taken = self.inner.take();
        // Whoever has it now may initialise it again.
        self.raw = Raw::new(1);
        taken
    }

    librip::__rip_set_name!("it", raw);
}

impl<T> Default for OnceCell<T> {
    fn default() -> OnceCell<T> {
        OnceCell::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> OnceCell<T> {
        OnceCell { raw: Raw::new(1), inner: self.inner.clone() }
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &OnceCell<T>) -> bool {
        self.inner == other.inner
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> OnceCell<T> {
        OnceCell { raw: Raw::new(1), inner: value.into() }
    }
}
