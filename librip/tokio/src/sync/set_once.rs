//! [`SetOnce`]: tokio's, recorded.

use std::fmt;
use std::future::Future;

use librip::task::lock::{self, Identity, NOTIFICATION};
use tokio::sync::{self, SetOnceError};

use crate::forward::forward;

/// [`tokio::sync::SetOnce`], recorded: the ring says which tasks wait for its value.
///
/// # Examples
///
/// ```
/// use librip_tokio::sync::SetOnce;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// static NAME: SetOnce<&str> = SetOnce::const_new();
///
/// NAME.set("server").unwrap();
/// assert_eq!(*NAME.wait().await, "server");
/// # }
/// ```
#[repr(C)]
pub struct SetOnce<T> {
    identity: Identity,
    inner: sync::SetOnce<T>,
}

impl<T> SetOnce<T> {
    /// See [`tokio::sync::SetOnce::new`].
    pub fn new() -> SetOnce<T> {
        SetOnce::const_new()
    }

    /// See [`tokio::sync::SetOnce::const_new`].
    pub const fn const_new() -> SetOnce<T> {
        SetOnce { identity: Identity::new(), inner: sync::SetOnce::const_new() }
    }

    /// See [`tokio::sync::SetOnce::new_with`].
    pub fn new_with(value: Option<T>) -> SetOnce<T> {
        SetOnce { identity: Identity::new(), inner: sync::SetOnce::new_with(value) }
    }

    /// See [`tokio::sync::SetOnce::const_new_with`].
    pub const fn const_new_with(value: T) -> SetOnce<T> {
        SetOnce { identity: Identity::new(), inner: sync::SetOnce::const_new_with(value) }
    }

    forward! {
        tokio::sync::SetOnce;
        fn initialized(&self) -> bool;
        fn get(&self) -> Option<&T>;
        ///
        /// # Errors
        ///
        /// If it has a value: the new one.
        fn set(&self, value: T) -> Result<(), SetOnceError<T>>;
        fn into_inner(self) -> Option<T>;
    }

    /// See [`tokio::sync::SetOnce::wait`].
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = &T> {
        lock::wait::<NOTIFICATION, _>(self.identity.address_in_use(), self.inner.wait(), false, |_| true)
    }

    librip::__rip_set_name!("it", identity);
}

impl<T> Default for SetOnce<T> {
    fn default() -> SetOnce<T> {
        SetOnce::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> SetOnce<T> {
        SetOnce { identity: Identity::new(), inner: self.inner.clone() }
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &SetOnce<T>) -> bool {
        self.inner == other.inner
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> SetOnce<T> {
        SetOnce { identity: Identity::new(), inner: value.into() }
    }
}
