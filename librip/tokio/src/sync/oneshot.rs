//! `tokio::sync::oneshot` with waits that are recorded: a receiver that waits for its message, and a sender that waits
//! for the end of the receiver.
//!
//! ```
//! use librip_tokio::sync::oneshot;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (sender, receiver) = oneshot::channel();
//! librip_tokio::spawn(async move { sender.send(7) });
//! assert_eq!(receiver.await, Ok(7));
//! # }
//! ```

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use librip::task::lock::{MESSAGE, Peer, Waits};
use tokio::sync::oneshot;

use self::error::{RecvError, TryRecvError};
use super::channel::{Channel, set_name};
use super::request;
use crate::blocking::block_on;
use crate::forward::forward;

pub use tokio::sync::oneshot::error;

/// See [`tokio::sync::oneshot::channel`]. The place where the receiver waits is that of this call.
#[track_caller]
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let serial = request::begin();
    let (sender, receiver) = oneshot::channel();
    let channel = Channel::new();
    let wait = Answer::wait(receiver, channel.clone(), serial, Location::caller());
    (Sender { inner: sender, channel }, Receiver { wait })
}

/// [`tokio::sync::oneshot::Sender`], recorded: the ring says that it waits for the end of the receiver.
#[derive(Debug)]
pub struct Sender<T> {
    inner: oneshot::Sender<T>,
    channel: Channel,
}

impl<T> Sender<T> {
    forward! {
        tokio::sync::oneshot::Sender;
        ///
        /// # Errors
        ///
        /// The message, if the receiver is gone.
        fn send(self, t: T) -> Result<(), T>;
        fn is_closed(&self) -> bool;
    }

    /// See [`tokio::sync::oneshot::Sender::closed`].
    #[track_caller]
    pub fn closed(&mut self) -> impl Future<Output = ()> {
        self.channel.wait(self.inner.closed(), |()| true)
    }

    /// See [`tokio::sync::oneshot::Sender::poll_closed`]. It records nothing.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_closed(cx)
    }

    /// Tokio's sender, for what asks for that one.
    pub fn into_inner(self) -> oneshot::Sender<T> {
        self.inner
    }

    set_name!(channel);
}

/// [`tokio::sync::oneshot::Receiver`], recorded: the ring says that it waits for the message.
pub struct Receiver<T> {
    wait: Waits<MESSAGE, Answer<T>>,
}

impl<T> Receiver<T> {
    fn inner(&mut self) -> &mut oneshot::Receiver<T> {
        &mut Pin::new(&mut self.wait).get_pin_mut().get_mut().inner
    }

    /// See [`tokio::sync::oneshot::Receiver::close`].
    pub fn close(&mut self) {
        self.inner().close();
    }

    /// See [`tokio::sync::oneshot::Receiver::is_terminated`].
    pub fn is_terminated(&self) -> bool {
        self.wait.get_ref().inner.is_terminated()
    }

    /// See [`tokio::sync::oneshot::Receiver::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.wait.get_ref().inner.is_empty()
    }

    /// See [`tokio::sync::oneshot::Receiver::try_recv`].
    ///
    /// # Errors
    ///
    /// If there is no message.
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        self.inner().try_recv()
    }

    /// See [`tokio::sync::oneshot::Receiver::blocking_recv`]. The place of the wait is that of this call.
    ///
    /// # Errors
    ///
    /// If the sender is gone.
    ///
    /// # Panics
    ///
    /// If the calling thread polls tasks.
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        let Answer { inner, channel, serial, .. } = self.wait.into_inner();
        block_on(Answer::wait(inner, channel, serial, Location::caller()))
    }

    /// Tokio's receiver, for what asks for that one. Its wait is not recorded.
    pub fn into_inner(self) -> oneshot::Receiver<T> {
        self.wait.into_inner().inner
    }

    set_name!(wait.get_ref().channel);
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.wait).poll(cx)
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wait.get_ref().inner.fmt(f)
    }
}

/// A receiver that says, when it has to wait, who is presumed to answer.
struct Answer<T> {
    inner: oneshot::Receiver<T>,
    channel: Channel,
    /// What [`request::begin`] has returned.
    serial: u64,
    at: &'static Location<'static>,
    has_noted: bool,
}

impl<T> Answer<T> {
    /// Records the wait of a receiver, at a location. One that does not block is not recorded.
    fn wait(
        inner: oneshot::Receiver<T>,
        channel: Channel,
        serial: u64,
        at: &'static Location<'static>,
    ) -> Waits<MESSAGE, Answer<T>> {
        let answer = Answer { inner, channel: channel.clone(), serial, at, has_noted: false };
        channel.wait_at(at, answer, Result::is_ok)
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T, RecvError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let poll = Pin::new(&mut self.inner).poll(cx);
        if poll.is_pending() && !self.has_noted {
            self.has_noted = true;
            if let Some(user) = request::answerer(self.serial) {
                self.channel.note_peer(self.at, Peer { user, ends: 1, receives: false, is_presumed: true });
            }
        }
        poll
    }
}
