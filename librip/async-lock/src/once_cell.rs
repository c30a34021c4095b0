//! [`OnceCell`]: that of `async_lock`, recorded.
//!
//! Which task runs its initialiser, a mutex beside the cell decides. So it can be recorded.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::Location;

use librip::task::lock::{self, NOTIFICATION, ONCE};

use crate::blocking::{in_two_polls, run};
use crate::lease::Lease;
use crate::mutex::Raw;

/// [`async_lock::OnceCell`], recorded: the ring says which task initialises it, and which tasks wait for that.
///
/// Once it is initialised, nothing is recorded.
///
/// # Examples
///
/// ```
/// use librip_async_lock::OnceCell;
///
/// static NAME: OnceCell<String> = OnceCell::new();
///
/// assert_eq!(NAME.get_or_init_blocking(|| "server".to_owned()), "server");
/// ```
#[repr(C)]
pub struct OnceCell<T> {
    /// Whoever initialises has it.
    raw: Raw,
    inner: async_lock::OnceCell<T>,
}

impl<T> OnceCell<T> {
    /// See [`async_lock::OnceCell::new`].
    pub const fn new() -> OnceCell<T> {
        OnceCell { raw: Raw::new(), inner: async_lock::OnceCell::new() }
    }

    /// See [`async_lock::OnceCell::is_initialized`].
    pub fn is_initialized(&self) -> bool {
        self.inner.is_initialized()
    }

    /// See [`async_lock::OnceCell::get`].
    pub fn get(&self) -> Option<&T> {
        self.inner.get()
    }

    /// See [`async_lock::OnceCell::get_unchecked`].
    ///
    /// # Safety
    ///
    /// The cell must be initialised.
    #[allow(unsafe_code, reason = "the caller makes the promise of the inner function")]
    pub unsafe fn get_unchecked(&self) -> &T {
        // SAFETY: the caller says that the cell is initialised.
        unsafe { self.inner.get_unchecked() }
    }

    /// See [`async_lock::OnceCell::get_mut`].
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.inner.get_mut()
    }

    /// See [`async_lock::OnceCell::take`].
    pub fn take(&mut self) -> Option<T> {
        self.inner.take()
    }

    /// See [`async_lock::OnceCell::into_inner`].
    pub fn into_inner(self) -> Option<T> {
        self.inner.into_inner()
    }

    /// See [`async_lock::OnceCell::wait`].
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = &T> {
        lock::wait::<NOTIFICATION, _>(lock::address(&self.inner), self.inner.wait(), false, |_| true)
    }

    /// See [`async_lock::OnceCell::wait_blocking`].
    #[track_caller]
    pub fn wait_blocking(&self) -> &T {
        let wait = in_two_polls(|| self.inner.get(), || self.inner.wait_blocking());
        run(lock::wait::<NOTIFICATION, _>(lock::address(&self.inner), wait, false, |_| true))
    }

    /// See [`async_lock::OnceCell::get_or_try_init`].
    #[track_caller]
    pub fn get_or_try_init<E, Fut: Future<Output = Result<T, E>>>(
        &self,
        closure: impl FnOnce() -> Fut,
    ) -> impl Future<Output = Result<&T, E>> {
        self.initialise(Location::caller(), closure)
    }

    /// See [`async_lock::OnceCell::get_or_try_init_blocking`].
    ///
    /// # Errors
    ///
    /// If `closure` fails.
    #[track_caller]
    pub fn get_or_try_init_blocking<E>(&self, closure: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let _lease = Lease::new(self.raw.lock_blocking::<ONCE>());
        match self.get() {
            Some(value) => Ok(value),
            None => Ok(self.put(closure()?)),
        }
    }

    /// See [`async_lock::OnceCell::get_or_init`].
    #[track_caller]
    pub fn get_or_init<Fut: Future<Output = T>>(
        &self,
        closure: impl FnOnce() -> Fut,
    ) -> impl Future<Output = &T> {
        let at = Location::caller();
        async move {
            let initialised = self.initialise(at, || async { Ok::<T, Infallible>(closure().await) }).await;
            initialised.unwrap_or_else(|never| match never {})
        }
    }

    /// See [`async_lock::OnceCell::get_or_init_blocking`].
    #[track_caller]
    pub fn get_or_init_blocking(&self, closure: impl FnOnce() -> T) -> &T {
        let initialised = self.get_or_try_init_blocking(|| Ok::<T, Infallible>(closure()));
        initialised.unwrap_or_else(|never| match never {})
    }

    /// See [`async_lock::OnceCell::set`].
    #[track_caller]
    pub fn set(&self, value: T) -> impl Future<Output = Result<&T, T>> {
        let at = Location::caller();
        async move {
            let mut value = Some(value);
            // SANITY: an initialiser runs once.
            let set = self.get_or_init_at(at, || value.take().expect("the value")).await;
            value.map_or(Ok(set), Err)
        }
    }

    /// See [`async_lock::OnceCell::set_blocking`].
    ///
    /// # Errors
    ///
    /// The value, if there is one already.
    #[track_caller]
    pub fn set_blocking(&self, value: T) -> Result<&T, T> {
        let mut value = Some(value);
        // SANITY: an initialiser runs once.
        let set = self.get_or_init_blocking(|| value.take().expect("the value"));
        value.map_or(Ok(set), Err)
    }

    /// See [`async_lock::OnceCell::try_set`].
    ///
    /// # Errors
    ///
    /// The value, if there is one already, or a task initialises the cell.
    #[track_caller]
    pub fn try_set(&self, value: T) -> Result<(), T> {
        match self.raw.try_lock::<ONCE>().map(Lease::new) {
            Some(_lease) => self.inner.try_set(value),
            None => Err(value),
        }
    }

    librip::__rip_set_name!("it", raw);

    async fn get_or_init_at(&self, at: &'static Location<'static>, closure: impl FnOnce() -> T) -> &T {
        let initialised = self.initialise(at, || async { Ok::<T, Infallible>(closure()) }).await;
        initialised.unwrap_or_else(|never| match never {})
    }

    async fn initialise<E, Fut: Future<Output = Result<T, E>>>(
        &self,
        at: &'static Location<'static>,
        closure: impl FnOnce() -> Fut,
    ) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        // It is given back if the initialiser fails, panics or is dropped. Then the next task initialises.
        let _lease: Lease<_, ONCE> = self.raw.lock(at, |lease| lease).await;
        match self.get() {
            Some(value) => Ok(value),
            None => Ok(self.put(closure().await?)),
        }
    }

    /// The caller has the mutex, and the cell has no value.
    fn put(&self, value: T) -> &T {
        let _ = self.inner.try_set(value);
        // SANITY: it was set in the line above, or before.
        self.get().expect("an initialised cell")
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> OnceCell<T> {
        OnceCell::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> OnceCell<T> {
        OnceCell { raw: Raw::new(), inner: value.into() }
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
