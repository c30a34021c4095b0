//! [`unbounded_channel`]: tokio's channel with room for all messages, recorded.

use std::future::Future;

use tokio::sync::mpsc;

use super::error::SendError;
use super::receiver::{receiver, weak_sender};
use crate::sync::channel::{Channel, End};
use crate::sync::request;

/// See [`tokio::sync::mpsc::unbounded_channel`].
#[must_use]
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (sends, receives) = Channel::ends();
    (UnboundedSender { inner: sender, end: sends }, UnboundedReceiver { inner: receiver, end: receives })
}

receiver!(UnboundedReceiver);

/// [`tokio::sync::mpsc::UnboundedSender`], recorded: the ring says that it waits for the end of the receiver.
pub struct UnboundedSender<T> {
    inner: mpsc::UnboundedSender<T>,
    end: End,
}

weak_sender!(WeakUnboundedSender, UnboundedSender);

impl<T> UnboundedSender<T> {
    /// See [`tokio::sync::mpsc::UnboundedSender::send`].
    ///
    /// # Errors
    ///
    /// If the receiver is gone.
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.end.used();
        self.inner.send(message).inspect(|()| request::sent::<T>(&self.end))
    }

    /// Tokio's sender, for what asks for that one. Its waits are not recorded.
    pub fn into_inner(self) -> mpsc::UnboundedSender<T> {
        self.end.forget();
        self.inner
    }
}
