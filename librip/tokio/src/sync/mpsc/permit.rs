//! Room for messages that is reserved, and how a sender reserves it.

use std::future::Future;
use std::iter::FusedIterator;
use std::panic::Location;

use tokio::sync::mpsc;

use super::bounded::Sender;
use super::error::{SendError, TrySendError};
use crate::forward::debug_as_inner;
use crate::sync::channel::End;
use crate::sync::map::map;
use crate::sync::request;

impl<T> Sender<T> {
    /// See [`tokio::sync::mpsc::Sender::reserve`].
    #[track_caller]
    pub fn reserve(&self) -> impl Future<Output = Result<Permit<'_, T>, SendError<()>>> {
        let reserved = self.end.wait(self.inner.reserve(), Result::is_ok);
        map(reserved, |inner| Ok(Permit { inner: inner?, end: &self.end }))
    }

    /// See [`tokio::sync::mpsc::Sender::reserve_many`].
    #[track_caller]
    pub fn reserve_many(
        &self,
        n: usize,
    ) -> impl Future<Output = Result<PermitIterator<'_, T>, SendError<()>>> {
        // It may outlast many messages, so who receives now says nothing.
        self.end.used();
        let reserved = self.end.channel().wait(self.inner.reserve_many(n), Result::is_ok);
        map(reserved, |inner| Ok(PermitIterator { inner: inner?, end: &self.end }))
    }

    /// See [`tokio::sync::mpsc::Sender::reserve_owned`].
    #[track_caller]
    pub fn reserve_owned(self) -> impl Future<Output = Result<OwnedPermit<T>, SendError<()>>> {
        let at = Location::caller();
        let Sender { inner, end } = self;
        async move {
            let inner = end.wait_at(at, inner.reserve_owned(), Result::is_ok).await?;
            Ok(OwnedPermit { inner, end })
        }
    }

    /// See [`tokio::sync::mpsc::Sender::try_reserve`].
    ///
    /// # Errors
    ///
    /// If there is no room, or the receiver is gone.
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.end.used();
        Ok(Permit { inner: self.inner.try_reserve()?, end: &self.end })
    }

    /// See [`tokio::sync::mpsc::Sender::try_reserve_many`].
    ///
    /// # Errors
    ///
    /// If there is not so much room, or the receiver is gone.
    pub fn try_reserve_many(&self, n: usize) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        self.end.used();
        Ok(PermitIterator { inner: self.inner.try_reserve_many(n)?, end: &self.end })
    }

    /// See [`tokio::sync::mpsc::Sender::try_reserve_owned`].
    ///
    /// # Errors
    ///
    /// If there is no room, or the receiver is gone.
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        let Sender { inner, end } = self;
        end.used();
        match inner.try_reserve_owned() {
            Ok(inner) => Ok(OwnedPermit { inner, end }),
            Err(TrySendError::Full(inner)) => Err(TrySendError::Full(Sender { inner, end })),
            Err(TrySendError::Closed(inner)) => Err(TrySendError::Closed(Sender { inner, end })),
        }
    }
}

/// See [`tokio::sync::mpsc::Permit`].
pub struct Permit<'a, T> {
    inner: mpsc::Permit<'a, T>,
    end: &'a End,
}

impl<T> Permit<'_, T> {
    /// See [`tokio::sync::mpsc::Permit::send`].
    pub fn send(self, value: T) {
        self.end.used();
        self.inner.send(value);
        request::sent::<T>(self.end);
    }
}

/// See [`tokio::sync::mpsc::PermitIterator`].
pub struct PermitIterator<'a, T> {
    inner: mpsc::PermitIterator<'a, T>,
    end: &'a End,
}

impl<'a, T> Iterator for PermitIterator<'a, T> {
    type Item = Permit<'a, T>;

    fn next(&mut self) -> Option<Permit<'a, T>> {
        Some(Permit { inner: self.inner.next()?, end: self.end })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<T> ExactSizeIterator for PermitIterator<'_, T> {}

impl<T> FusedIterator for PermitIterator<'_, T> {}

/// See [`tokio::sync::mpsc::OwnedPermit`].
pub struct OwnedPermit<T> {
    inner: mpsc::OwnedPermit<T>,
    end: End,
}

impl<T> OwnedPermit<T> {
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

debug_as_inner!(Permit<'_, T>, PermitIterator<'_, T>, OwnedPermit<T>);
