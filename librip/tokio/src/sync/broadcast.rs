//! `tokio::sync::broadcast` with waits that are recorded: a receiver that waits for a message, and a sender that waits
//! for the end of all receivers.
//!
//! ```
//! use librip_tokio::sync::broadcast;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (sender, mut receiver) = broadcast::channel(16);
//! librip_tokio::spawn(async move { sender.send(7) });
//! assert_eq!(receiver.recv().await, Ok(7));
//! # }
//! ```

use std::future::Future;

use tokio::sync::broadcast;

use self::error::{RecvError, SendError, TryRecvError};
use super::channel::{Channel, End, set_name};
use crate::blocking::block_on;
use crate::forward::{debug_as_inner, forward};

pub use tokio::sync::broadcast::error;

/// See [`tokio::sync::broadcast::channel`].
///
/// # Panics
///
/// If there is to be room for no message, or for more than `usize::MAX / 2`.
#[track_caller]
#[must_use]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = broadcast::channel(capacity);
    let (sends, receives) = Channel::ends();
    (Sender { inner: sender, end: sends }, Receiver { inner: receiver, end: receives })
}

/// [`tokio::sync::broadcast::Sender`], recorded: the ring says that it waits for the end of all receivers.
pub struct Sender<T> {
    inner: broadcast::Sender<T>,
    end: End,
}

impl<T> Sender<T> {
    /// See [`tokio::sync::broadcast::Sender::new`].
    ///
    /// # Panics
    ///
    /// As [`channel`].
    #[track_caller]
    pub fn new(capacity: usize) -> Sender<T> {
        Sender { inner: broadcast::Sender::new(capacity), end: Channel::new().sender() }
    }

    /// See [`tokio::sync::broadcast::Sender::send`].
    ///
    /// # Errors
    ///
    /// If there is no receiver.
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        self.end.used();
        self.inner.send(value)
    }

    /// See [`tokio::sync::broadcast::Sender::subscribe`].
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { inner: self.inner.subscribe(), end: self.end.channel().receiver() }
    }

    /// See [`tokio::sync::broadcast::Sender::downgrade`].
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender { inner: self.inner.downgrade(), end: self.end.channel().weak_sender() }
    }

    forward! {
        tokio::sync::broadcast::Sender;
        fn len(&self) -> usize;
        fn is_empty(&self) -> bool;
        fn receiver_count(&self) -> usize;
        fn same_channel(&self, other: &Self) -> bool;
        fn strong_count(&self) -> usize;
        fn weak_count(&self) -> usize;
    }

    /// See [`tokio::sync::broadcast::Sender::closed`].
    #[track_caller]
    pub fn closed(&self) -> impl Future<Output = ()> {
        self.end.channel().wait(self.inner.closed(), |()| true)
    }

    set_name!(end.channel());
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender { inner: self.inner.clone(), end: self.end.clone() }
    }
}

/// See [`tokio::sync::broadcast::WeakSender`].
pub struct WeakSender<T> {
    inner: broadcast::WeakSender<T>,
    end: End,
}

impl<T> WeakSender<T> {
    /// See [`tokio::sync::broadcast::WeakSender::upgrade`].
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let inner = self.inner.upgrade()?;
        Some(Sender { inner, end: self.end.channel().sender() })
    }

    forward! {
        tokio::sync::broadcast::WeakSender;
        fn strong_count(&self) -> usize;
        fn weak_count(&self) -> usize;
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> WeakSender<T> {
        WeakSender { inner: self.inner.clone(), end: self.end.channel().weak_sender() }
    }
}

/// [`tokio::sync::broadcast::Receiver`], recorded: the ring says that it waits.
pub struct Receiver<T> {
    inner: broadcast::Receiver<T>,
    end: End,
}

impl<T> Receiver<T> {
    forward! {
        tokio::sync::broadcast::Receiver;
        fn len(&self) -> usize;
        fn is_empty(&self) -> bool;
        fn same_channel(&self, other: &Self) -> bool;
        fn sender_strong_count(&self) -> usize;
        fn sender_weak_count(&self) -> usize;
        fn is_closed(&self) -> bool;
    }

    /// Tokio's receiver, for what asks for that one, as streams do. Its waits are not recorded.
    pub fn into_inner(self) -> broadcast::Receiver<T> {
        self.end.forget();
        self.inner
    }

    set_name!(end.channel());
}

impl<T: Clone> Receiver<T> {
    /// See [`tokio::sync::broadcast::Receiver::resubscribe`].
    pub fn resubscribe(&self) -> Receiver<T> {
        Receiver { inner: self.inner.resubscribe(), end: self.end.channel().receiver() }
    }

    /// See [`tokio::sync::broadcast::Receiver::recv`].
    #[track_caller]
    pub fn recv(&mut self) -> impl Future<Output = Result<T, RecvError>> {
        self.end.wait(self.inner.recv(), Result::is_ok)
    }

    /// See [`tokio::sync::broadcast::Receiver::try_recv`].
    ///
    /// # Errors
    ///
    /// If there is no message, or the receiver has missed some.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.end.used();
        self.inner.try_recv()
    }

    /// See [`tokio::sync::broadcast::Receiver::blocking_recv`].
    ///
    /// # Errors
    ///
    /// If all senders are gone, or the receiver has missed some messages.
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        block_on(self.recv())
    }
}

debug_as_inner!(Sender<T>, WeakSender<T>, Receiver<T>);
