//! [`channel`]: tokio's channel with room for some messages, recorded.

use std::future::Future;
#[cfg(feature = "time")]
use std::time::Duration;

use tokio::sync::mpsc;

#[cfg(feature = "time")]
use super::error::SendTimeoutError;
use super::error::{SendError, TrySendError};
use super::receiver::{receiver, weak_sender};
use crate::blocking::block_on;
use crate::forward::forward;
use crate::sync::channel::{Channel, End};
use crate::sync::request::{self, Sends};

/// See [`tokio::sync::mpsc::channel`].
///
/// # Panics
///
/// If there is to be room for no message.
#[track_caller]
#[must_use]
pub fn channel<T>(buffer: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel(buffer);
    let (sends, receives) = Channel::ends();
    (Sender { inner: sender, end: sends }, Receiver { inner: receiver, end: receives })
}

receiver!(Receiver);

impl<T> Receiver<T> {
    forward! {
        tokio::sync::mpsc::Receiver;
        fn capacity(&self) -> usize;
        fn max_capacity(&self) -> usize;
    }
}

/// [`tokio::sync::mpsc::Sender`], recorded: the ring says that it waits for room.
pub struct Sender<T> {
    pub(super) inner: mpsc::Sender<T>,
    pub(super) end: End,
}

weak_sender!(WeakSender, Sender);

impl<T> Sender<T> {
    /// See [`tokio::sync::mpsc::Sender::send`].
    #[track_caller]
    pub fn send(&self, value: T) -> impl Future<Output = Result<(), SendError<T>>> {
        self.end.wait(Sends::<_, T>::new(&self.end, self.inner.send(value)), Result::is_ok)
    }

    /// See [`tokio::sync::mpsc::Sender::try_send`].
    ///
    /// # Errors
    ///
    /// If there is no room, or the receiver is gone.
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        self.end.used();
        self.inner.try_send(message).inspect(|()| request::sent::<T>(&self.end))
    }

    /// See [`tokio::sync::mpsc::Sender::send_timeout`].
    #[cfg(feature = "time")]
    #[track_caller]
    pub fn send_timeout(
        &self,
        value: T,
        timeout: Duration,
    ) -> impl Future<Output = Result<(), SendTimeoutError<T>>> {
        self.end.wait(Sends::<_, T>::new(&self.end, self.inner.send_timeout(value, timeout)), Result::is_ok)
    }

    /// See [`tokio::sync::mpsc::Sender::blocking_send`].
    ///
    /// # Errors
    ///
    /// If the receiver is gone.
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_send(&self, value: T) -> Result<(), SendError<T>> {
        block_on(self.send(value))
    }

    forward! {
        tokio::sync::mpsc::Sender;
        fn capacity(&self) -> usize;
        fn max_capacity(&self) -> usize;
    }

    /// Tokio's sender, for what asks for that one. Its waits are not recorded.
    pub fn into_inner(self) -> mpsc::Sender<T> {
        self.end.forget();
        self.inner
    }
}
