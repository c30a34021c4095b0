//! [`Shared`] and [`Exclusive`]: what a guard gives access to.
//!
//! They are pointers and not references, because a guard releases its lock while it is an argument of a function: the
//! compiler may take a reference to be valid until that function returns.

#![allow(unsafe_code, reason = "a guard makes references of what it has locked")]

use std::ptr::{self, NonNull};

/// A value that the owner of this alone has. Not a `NonNull`, which may stand for one of a subtype.
#[derive(Debug)]
pub(crate) struct Exclusive<T: ?Sized>(*mut T);

// SAFETY: it is used as a mutable reference.
unsafe impl<T: ?Sized + Send> Send for Exclusive<T> {}
// SAFETY: as for Send.
unsafe impl<T: ?Sized + Sync> Sync for Exclusive<T> {}

impl<T: ?Sized> Exclusive<T> {
    /// # Safety
    ///
    /// Until it is dropped, or is given to `map`, the value exists and nobody else has a reference to it.
    pub(crate) unsafe fn new(value: *mut T) -> Exclusive<T> {
        Exclusive(value)
    }

    #[inline]
    pub(crate) fn get(&self) -> &T {
        // SAFETY: as promised to `new`, and `self` is borrowed meanwhile.
        unsafe { &*self.0 }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        // SAFETY: as promised to `new`, and `self` is borrowed meanwhile.
        unsafe { &mut *self.0 }
    }

    /// A part of the value.
    pub(crate) fn map<U: ?Sized>(mut self, f: impl FnOnce(&mut T) -> &mut U) -> Exclusive<U> {
        Exclusive(f(self.get_mut()))
    }

    /// The same, if there is one. Otherwise the value stays.
    pub(crate) fn try_map<U: ?Sized>(
        mut self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<Exclusive<U>, Exclusive<T>> {
        match f(self.get_mut()).map(ptr::from_mut) {
            Some(part) => Ok(Exclusive(part)),
            None => Err(self),
        }
    }

    /// Others may have it too, from now on.
    pub(crate) fn share(self) -> Shared<T> {
        Shared(NonNull::from(self.get()))
    }

    /// The same of a part of the value, if there is one. Otherwise nobody else may have the value.
    pub(crate) fn try_share<U: ?Sized>(
        self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<Shared<U>, Exclusive<T>> {
        match f(self.get()).map(NonNull::from) {
            Some(part) => Ok(Shared(part)),
            None => Err(self),
        }
    }
}

/// A value that nobody changes.
#[derive(Debug)]
pub(crate) struct Shared<T: ?Sized>(NonNull<T>);

// SAFETY: it is used as a shared reference.
unsafe impl<T: ?Sized + Sync> Send for Shared<T> {}
// SAFETY: as for Send. Tokio's guards demand `Send` besides.
unsafe impl<T: ?Sized + Send + Sync> Sync for Shared<T> {}

impl<T: ?Sized> Shared<T> {
    /// # Safety
    ///
    /// Until it is dropped, or is given to `map`, the value exists and nobody has a mutable reference to it.
    pub(crate) unsafe fn new(value: NonNull<T>) -> Shared<T> {
        Shared(value)
    }

    #[inline]
    pub(crate) fn get(&self) -> &T {
        // SAFETY: as promised to `new`, and `self` is borrowed meanwhile.
        unsafe { self.0.as_ref() }
    }

    /// A part of the value.
    pub(crate) fn map<U: ?Sized>(self, f: impl FnOnce(&T) -> &U) -> Shared<U> {
        Shared(NonNull::from(f(self.get())))
    }

    /// The same, if there is one. Otherwise the value stays.
    pub(crate) fn try_map<U: ?Sized>(self, f: impl FnOnce(&T) -> Option<&U>) -> Result<Shared<U>, Shared<T>> {
        match f(self.get()).map(NonNull::from) {
            Some(part) => Ok(Shared(part)),
            None => Err(self),
        }
    }
}
