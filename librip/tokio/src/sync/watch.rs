//! `tokio::sync::watch` with waits that are recorded: a receiver that waits for another value, and a sender that waits
//! for the end of all receivers.
//!
//! ```
//! use librip_tokio::sync::watch;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (sender, mut receiver) = watch::channel(1);
//! librip_tokio::spawn(async move { sender.send(7) });
//! receiver.changed().await.unwrap();
//! assert_eq!(*receiver.borrow(), 7);
//! # }
//! ```

use std::future::Future;

use tokio::sync::watch;

use self::error::{RecvError, SendError};
use super::channel::{Channel, End, set_name};
use crate::forward::forward;

pub use tokio::sync::watch::{Ref, error};

/// See [`tokio::sync::watch::channel`].
#[must_use]
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = watch::channel(init);
    let (sends, receives) = Channel::ends();
    (Sender { inner: sender, end: sends }, Receiver { inner: receiver, end: receives })
}

/// [`tokio::sync::watch::Receiver`], recorded: the ring says that it waits.
#[derive(Debug)]
pub struct Receiver<T> {
    inner: watch::Receiver<T>,
    end: End,
}

impl<T> Receiver<T> {
    forward! {
        tokio::sync::watch::Receiver;
        fn borrow(&self) -> Ref<'_, T>;
        fn borrow_and_update(&mut self) -> Ref<'_, T>;
        ///
        /// # Errors
        ///
        /// If all senders are gone.
        fn has_changed(&self) -> Result<bool, RecvError>;
        fn mark_changed(&mut self);
        fn mark_unchanged(&mut self);
        fn same_channel(&self, other: &Self) -> bool;
    }

    /// Whether all senders are gone: see `tokio::sync::watch::Receiver::is_closed`, which tokio has since 1.54.
    pub fn is_closed(&self) -> bool {
        self.inner.has_changed().is_err()
    }

    /// See [`tokio::sync::watch::Receiver::changed`].
    #[track_caller]
    pub fn changed(&mut self) -> impl Future<Output = Result<(), RecvError>> {
        self.end.wait(self.inner.changed(), Result::is_ok)
    }

    /// See [`tokio::sync::watch::Receiver::wait_for`].
    #[track_caller]
    pub fn wait_for(
        &mut self,
        f: impl FnMut(&T) -> bool,
    ) -> impl Future<Output = Result<Ref<'_, T>, RecvError>> {
        // It may outlast many values, so who sends now says nothing.
        self.end.channel().wait(self.inner.wait_for(f), Result::is_ok)
    }

    /// Tokio's receiver, for what asks for that one, as streams do. Its waits are not recorded.
    pub fn into_inner(self) -> watch::Receiver<T> {
        self.end.forget();
        self.inner
    }

    set_name!(end.channel());
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        Receiver { inner: self.inner.clone(), end: self.end.clone() }
    }
}

/// [`tokio::sync::watch::Sender`], recorded: the ring says that it waits for the end of all receivers.
#[derive(Debug)]
pub struct Sender<T> {
    inner: watch::Sender<T>,
    end: End,
}

impl<T> Sender<T> {
    /// See [`tokio::sync::watch::Sender::new`].
    pub fn new(init: T) -> Sender<T> {
        Sender { inner: watch::Sender::new(init), end: Channel::new().sender() }
    }

    /// See [`tokio::sync::watch::Sender::send`].
    ///
    /// # Errors
    ///
    /// If all receivers are gone.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.end.used();
        self.inner.send(value)
    }

    /// See [`tokio::sync::watch::Sender::send_modify`].
    pub fn send_modify<F: FnOnce(&mut T)>(&self, modify: F) {
        self.end.used();
        self.inner.send_modify(modify);
    }

    /// See [`tokio::sync::watch::Sender::send_if_modified`].
    pub fn send_if_modified<F: FnOnce(&mut T) -> bool>(&self, modify: F) -> bool {
        self.end.used();
        self.inner.send_if_modified(modify)
    }

    /// See [`tokio::sync::watch::Sender::send_replace`].
    pub fn send_replace(&self, value: T) -> T {
        self.end.used();
        self.inner.send_replace(value)
    }

    forward! {
        tokio::sync::watch::Sender;
        fn borrow(&self) -> Ref<'_, T>;
        fn is_closed(&self) -> bool;
        fn receiver_count(&self) -> usize;
        fn sender_count(&self) -> usize;
        fn same_channel(&self, other: &Self) -> bool;
    }

    /// See [`tokio::sync::watch::Sender::closed`].
    #[track_caller]
    pub fn closed(&self) -> impl Future<Output = ()> {
        self.end.channel().wait(self.inner.closed(), |()| true)
    }

    /// See [`tokio::sync::watch::Sender::subscribe`].
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver { inner: self.inner.subscribe(), end: self.end.channel().receiver() }
    }

    set_name!(end.channel());
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender { inner: self.inner.clone(), end: self.end.clone() }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Sender<T> {
        Sender::new(T::default())
    }
}
