//! [`OnceLock`]: the standard library's, recorded.

use core::fmt;
use core::panic::Location;
use std::sync;

use super::initialising::{Initialising, wait_until_done};
use crate::lock::Identity;

/// [`std::sync::OnceLock`], recorded: the ring says which thread initialises it, and which threads wait for that.
///
/// Once it is initialised, it costs what the standard library's costs.
///
/// # Examples
///
/// ```
/// use librip::sync::OnceLock;
///
/// static NAME: OnceLock<String> = OnceLock::new();
///
/// assert_eq!(NAME.get_or_init(|| "server".to_owned()), "server");
/// assert_eq!(NAME.get().map(String::as_str), Some("server"));
/// ```
#[repr(C)]
pub struct OnceLock<T> {
    identity: Identity,
    inner: sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    /// See [`std::sync::OnceLock::new`].
    #[inline]
    #[must_use]
    pub const fn new() -> OnceLock<T> {
        OnceLock { identity: Identity::new(), inner: sync::OnceLock::new() }
    }

    /// See [`std::sync::OnceLock::get`].
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.inner.get()
    }

    /// See [`std::sync::OnceLock::get_mut`].
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.inner.get_mut()
    }

    /// See [`std::sync::OnceLock::wait`].
    #[inline]
    #[track_caller]
    pub fn wait(&self) -> &T {
        match self.inner.get() {
            Some(value) => value,
            None => {
                let object = core::ptr::from_ref(&self.inner).addr() as u64;
                wait_until_done(Location::caller(), &self.identity, object, || self.inner.wait())
            }
        }
    }

    /// See [`std::sync::OnceLock::set`].
    ///
    /// # Errors
    ///
    /// If there is a value already: the new one.
    #[inline]
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("an initialiser runs once"));
        value.map_or(Ok(()), Err)
    }

    /// See [`std::sync::OnceLock::get_or_init`].
    ///
    /// # Panics
    ///
    /// If `f` does.
    #[inline]
    #[track_caller]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        match self.inner.get() {
            Some(value) => value,
            None => self.initialise(Location::caller(), f),
        }
    }

    #[cold]
    #[inline(never)]
    fn initialise<F: FnOnce() -> T>(&self, location: &'static Location<'static>, f: F) -> &T {
        let mut call = Initialising::begin(location, &self.identity);
        self.inner.get_or_init(|| call.run(f))
    }

    /// See [`std::sync::OnceLock::into_inner`].
    #[inline]
    pub fn into_inner(self) -> Option<T> {
        self.inner.into_inner()
    }

    /// See [`std::sync::OnceLock::take`].
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        self.inner.take()
    }

    crate::__rip_set_name!("it", identity);
}

impl<T> Default for OnceLock<T> {
    fn default() -> OnceLock<T> {
        OnceLock::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> OnceLock<T> {
        OnceLock { identity: Identity::new(), inner: self.inner.clone() }
    }
}

impl<T> From<T> for OnceLock<T> {
    fn from(value: T) -> OnceLock<T> {
        OnceLock { identity: Identity::new(), inner: value.into() }
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &OnceLock<T>) -> bool {
        self.inner == other.inner
    }
}

impl<T: Eq> Eq for OnceLock<T> {}
