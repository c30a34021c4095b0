//! `std::sync::mpsc` with waits that are recorded: a receiver that waits for a message, and a sender that waits for
//! room in a channel of [`sync_channel`].
//!
//! A message that is there, and room that is there, cost what they cost in the standard library, and record nothing.
//! Nobody holds a channel, and the ring does not know who will send or receive. So `read-rip` shows who waits, and
//! proves no deadlock of that.
//!
//! ```
//! use librip::sync::mpsc;
//!
//! let (sender, receiver) = mpsc::channel();
//! std::thread::spawn(move || sender.send(7));
//! assert_eq!(receiver.recv(), Ok(7));
//! ```
//!
//! # Which channel
//!
//! The standard library does not say where a channel is. So a receiver has a byte of its own on the heap, whose address
//! stands for the channel. Senders have a copy of that address. A channel whose receiver is gone has nobody who waits.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::fmt;
use core::panic::Location;
use core::time::Duration;
use std::sync::mpsc;

use crate::lock::record;
use crate::lock::site::{Flags, define_sites};
use librip_format::{LOCK_TYPE_MESSAGE, SITE_LOCK_TYPE_SHIFT, SITE_TRY};

pub use std::sync::mpsc::{
    RecvError, RecvTimeoutError, SendError, Sender, TryIter, TryRecvError, TrySendError,
};

define_sites!(Sites);

const MESSAGE: Flags = LOCK_TYPE_MESSAGE << SITE_LOCK_TYPE_SHIFT;
const MESSAGE_IN_TIME: Flags = MESSAGE | SITE_TRY;

/// See [`std::sync::mpsc::channel`]. A sender never waits, so it is the standard library's.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel();
    (sender, Receiver::new(receiver))
}

/// See [`std::sync::mpsc::sync_channel`].
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::sync_channel(bound);
    let receiver = Receiver::new(receiver);
    (SyncSender { inner: sender, channel: receiver.channel() }, receiver)
}

/// [`std::sync::mpsc::SyncSender`], recorded: the ring says that it waits for room.
pub struct SyncSender<T> {
    inner: mpsc::SyncSender<T>,
    channel: u64,
}

impl<T> SyncSender<T> {
    /// See [`std::sync::mpsc::SyncSender::send`].
    ///
    /// # Errors
    ///
    /// If the receiver is gone.
    #[inline(always)]
    #[track_caller]
    pub fn send(&self, t: T) -> Result<(), SendError<T>> {
        match self.inner.try_send(t) {
            Ok(()) => Ok(()),
            Err(TrySendError::Disconnected(message)) => Err(SendError(message)),
            Err(TrySendError::Full(message)) => {
                let sites = Sites::<MESSAGE>(Location::caller());
                record::block(sites, self.channel, || self.inner.send(message), Result::is_ok)
            }
        }
    }

    /// See [`std::sync::mpsc::SyncSender::try_send`].
    ///
    /// # Errors
    ///
    /// If there is no room, or the receiver is gone.
    pub fn try_send(&self, t: T) -> Result<(), TrySendError<T>> {
        self.inner.try_send(t)
    }
}

impl<T> Clone for SyncSender<T> {
    fn clone(&self) -> SyncSender<T> {
        SyncSender { inner: self.inner.clone(), channel: self.channel }
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// [`std::sync::mpsc::Receiver`], recorded: the ring says that it waits for a message.
pub struct Receiver<T> {
    inner: mpsc::Receiver<T>,
    /// Its address stands for the channel.
    place: Box<u8>,
}

impl<T> Receiver<T> {
    fn new(inner: mpsc::Receiver<T>) -> Receiver<T> {
        Receiver { inner, place: Box::new(0) }
    }

    fn channel(&self) -> u64 {
        core::ptr::from_ref(&*self.place).addr() as u64
    }

    /// See [`std::sync::mpsc::Receiver::try_recv`].
    ///
    /// # Errors
    ///
    /// If there is no message, or if there is none and all senders are gone.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.inner.try_recv()
    }

    /// See [`std::sync::mpsc::Receiver::recv`].
    ///
    /// # Errors
    ///
    /// If there is no message and all senders are gone.
    #[inline(always)]
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        match self.inner.try_recv() {
            Ok(message) => Ok(message),
            Err(TryRecvError::Disconnected) => Err(RecvError),
            Err(TryRecvError::Empty) => {
                let sites = Sites::<MESSAGE>(Location::caller());
                record::block(sites, self.channel(), || self.inner.recv(), Result::is_ok)
            }
        }
    }

    /// See [`std::sync::mpsc::Receiver::recv_timeout`].
    ///
    /// # Errors
    ///
    /// If no message comes in time, or if there is none and all senders are gone.
    #[inline(always)]
    #[track_caller]
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        match self.inner.try_recv() {
            Ok(message) => Ok(message),
            Err(TryRecvError::Disconnected) => Err(RecvTimeoutError::Disconnected),
            Err(TryRecvError::Empty) => {
                let sites = Sites::<MESSAGE_IN_TIME>(Location::caller());
                record::block(sites, self.channel(), || self.inner.recv_timeout(timeout), Result::is_ok)
            }
        }
    }

    /// See [`std::sync::mpsc::Receiver::iter`].
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// See [`std::sync::mpsc::Receiver::try_iter`].
    pub fn try_iter(&self) -> TryIter<'_, T> {
        self.inner.try_iter()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self }
    }
}

/// See [`std::sync::mpsc::Iter`].
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline(always)]
    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

/// See [`std::sync::mpsc::IntoIter`].
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[inline(always)]
    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}
