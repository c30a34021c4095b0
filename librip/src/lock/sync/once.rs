//! [`Once`]: the standard library's, recorded.

use core::fmt;
use core::panic::Location;
use std::sync;

use super::OnceState;
use super::initialising::{Initialising, wait_until_done};
use crate::lock::Identity;

/// [`std::sync::Once`], recorded: the ring says which thread runs the initialiser, and which threads wait for it.
///
/// # Examples
///
/// ```
/// use librip::sync::Once;
///
/// static START: Once = Once::new();
///
/// START.call_once(|| println!("once"));
/// assert!(START.is_completed());
/// ```
#[repr(C)]
pub struct Once {
    identity: Identity,
    inner: sync::Once,
}

/// See [`std::sync::ONCE_INIT`].
#[deprecated(note = "replaced by `Once::new`, as in the standard library")]
#[allow(clippy::declare_interior_mutable_const, reason = "it is what a static is made of")]
pub const ONCE_INIT: Once = Once::new();

impl Once {
    /// See [`std::sync::Once::new`].
    #[expect(clippy::new_without_default, reason = "the standard library's has no default either")]
    #[must_use]
    pub const fn new() -> Once {
        Once { identity: Identity::new(), inner: sync::Once::new() }
    }

    /// See [`std::sync::Once::call_once`].
    ///
    /// # Panics
    ///
    /// If an earlier initialiser panicked.
    #[inline]
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if !self.inner.is_completed() {
            let mut call = Initialising::begin(Location::caller(), &self.identity);
            self.inner.call_once(|| call.run(f));
        }
    }

    /// See [`std::sync::Once::call_once_force`].
    #[inline]
    #[track_caller]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        if !self.inner.is_completed() {
            let mut call = Initialising::begin(Location::caller(), &self.identity);
            self.inner.call_once_force(|state| call.run(|| f(state)));
        }
    }

    /// See [`std::sync::Once::is_completed`].
    #[inline]
    pub fn is_completed(&self) -> bool {
        self.inner.is_completed()
    }

    /// See [`std::sync::Once::wait`].
    ///
    /// # Panics
    ///
    /// If an initialiser panicked.
    #[track_caller]
    pub fn wait(&self) {
        if !self.inner.is_completed() {
            wait_until_done(Location::caller(), &self.identity, self.object(), || self.inner.wait());
        }
    }

    /// See [`std::sync::Once::wait_force`].
    #[track_caller]
    pub fn wait_force(&self) {
        if !self.inner.is_completed() {
            wait_until_done(Location::caller(), &self.identity, self.object(), || self.inner.wait_force());
        }
    }

    fn object(&self) -> u64 {
        core::ptr::from_ref(&self.inner).addr() as u64
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
