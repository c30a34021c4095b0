//! Room for messages that is reserved.

use std::fmt;
use std::iter::FusedIterator;

use tokio::sync::mpsc;

use super::bounded::Sender;
use crate::sync::channel::End;
use crate::sync::request;

/// See [`tokio::sync::mpsc::Permit`].
pub struct Permit<'a, T> {
    inner: mpsc::Permit<'a, T>,
    end: &'a End,
}

impl<'a, T> Permit<'a, T> {
    pub(super) fn new(inner: mpsc::Permit<'a, T>, end: &'a End) -> Permit<'a, T> {
        Permit { inner, end }
    }

    /// See [`tokio::sync::mpsc::Permit::send`].
    pub fn send(self, value: T) {
        self.end.used();
        self.inner.send(value);
        request::sent::<T>(self.end);
    }
}

impl<T> fmt::Debug for Permit<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// See [`tokio::sync::mpsc::PermitIterator`].
pub struct PermitIterator<'a, T> {
    inner: mpsc::PermitIterator<'a, T>,
    end: &'a End,
}

impl<'a, T> PermitIterator<'a, T> {
    pub(super) fn new(inner: mpsc::PermitIterator<'a, T>, end: &'a End) -> PermitIterator<'a, T> {
        PermitIterator { inner, end }
    }
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        Some(Permit::new(self.inner.next()?, self.end))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}

impl<T> FusedIterator for PermitIterator<'_, T> {}

impl<T> fmt::Debug for PermitIterator<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// See [`tokio::sync::mpsc::OwnedPermit`].
pub struct OwnedPermit<T> {
    inner: mpsc::OwnedPermit<T>,
    end: End,
}

impl<T> OwnedPermit<T> {
    pub(super) fn new(inner: mpsc::OwnedPermit<T>, end: End) -> OwnedPermit<T> {
        OwnedPermit { inner, end }
    }

    /// See [`tokio::sync::mpsc::OwnedPermit::send`].
    pub fn send(self, value: T) -> Sender<T> {
        self.end.used();
        let inner = self.inner.send(value);
        request::sent::<T>(&self.end);
        Sender { inner, end: self.end }
    }

    /// See [`tokio::sync::mpsc::OwnedPermit::release`].
    pub fn release(self) -> Sender<T> {
        self.end.used();
        Sender { inner: self.inner.release(), end: self.end }
    }

    /// See [`tokio::sync::mpsc::OwnedPermit::same_channel`].
    pub fn same_channel(&self, other: &Self) -> bool {
        self.inner.same_channel(&other.inner)
    }

    /// See [`tokio::sync::mpsc::OwnedPermit::same_channel_as_sender`].
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.inner.same_channel_as_sender(&sender.inner)
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
