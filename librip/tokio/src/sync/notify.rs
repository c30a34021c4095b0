//! [`Notify`]: tokio's, recorded.

#![allow(unsafe_code, reason = "a future owns a share of what it borrows")]

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use librip::task::lock::{self, Identity, NOTIFICATION, Waits};
use pin_project_lite::pin_project;
use tokio::sync::{self, futures};

use crate::forward::forward;

/// [`tokio::sync::Notify`], recorded: the ring says which tasks wait for a notification.
///
/// Nobody holds a notification, so a wait for one is in no deadlock that `read-rip` proves. [`Notify::notify_waiters`]
/// is recorded, and whether anyone may have waited then: if all tasks wait, one of them at a `Notify` whose waiters
/// were notified before there were any, that is a suspected lost wake-up.
///
/// # Examples
///
/// ```
/// use librip_tokio::sync::Notify;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let notify = Notify::new();
/// notify.notify_one();
/// notify.notified().await;
/// # }
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct Notify {
    identity: Identity,
    /// How many futures there are that a notification of all may wake.
    listening: AtomicUsize,
    inner: sync::Notify,
}

impl Notify {
    /// See [`tokio::sync::Notify::new`].
    pub fn new() -> Notify {
        Notify { identity: Identity::new(), listening: AtomicUsize::new(0), inner: sync::Notify::new() }
    }

    /// See [`tokio::sync::Notify::const_new`].
    pub const fn const_new() -> Notify {
        Notify { identity: Identity::new(), listening: AtomicUsize::new(0), inner: sync::Notify::const_new() }
    }

    /// See [`tokio::sync::Notify::notified`]. The place of the wait is that of this call.
    #[track_caller]
    pub fn notified(&self) -> Notified<'_> {
        let listening = Listening::new(&self.listening);
        let notified = self.inner.notified();
        let wait = lock::wait(self.identity.address_in_use(), notified, false, |()| true);
        Notified { wait, listening }
    }

    /// See [`tokio::sync::Notify::notified_owned`]. The place of the wait is that of this call.
    #[track_caller]
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        // SAFETY: the future keeps a share of it, and drops that after what borrows it.
        let notify: &'static Notify = unsafe { &*Arc::as_ptr(&self) };
        let Notified { wait, listening } = notify.notified();
        OwnedNotified { wait, listening, _notify: self }
    }

    forward! {
        tokio::sync::Notify;
        fn notify_one(&self);
        fn notify_last(&self);
    }

    /// See [`tokio::sync::Notify::notify_waiters`].
    #[track_caller]
    pub fn notify_waiters(&self) {
        // ORDERING: relaxed: a future that is made at the same time may be notified or not, as with tokio's.
        let is_heard = self.listening.load(Relaxed) > 0;
        lock::note_wake_of_all(Location::caller(), self.identity.address_in_use(), is_heard);
        self.inner.notify_waiters();
    }

    librip::__rip_set_name!("it", identity);
}

/// Counts a future from when it is made: tokio notifies it from then on.
#[derive(Debug)]
struct Listening<'a>(&'a AtomicUsize);

impl Listening<'_> {
    fn new(count: &AtomicUsize) -> Listening<'_> {
        // ORDERING: relaxed, here and below: see `notify_waiters`.
        count.fetch_add(1, Relaxed);
        Listening(count)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

pin_project! {
    /// See [`tokio::sync::futures::Notified`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct Notified<'a> {
        #[pin]
        wait: Waits<NOTIFICATION, futures::Notified<'a>>,
        listening: Listening<'a>,
    }
}

impl Notified<'_> {
    /// See [`tokio::sync::futures::Notified::enable`]. It is no wait, and is not recorded.
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.project().wait.get_pin_mut().enable()
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().wait.poll(cx)
    }
}

impl fmt::Debug for Notified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wait.get_ref().fmt(f)
    }
}

pin_project! {
    /// See [`tokio::sync::futures::OwnedNotified`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub struct OwnedNotified {
        // Both borrow the last field, and so are dropped before.
        #[pin]
        wait: Waits<NOTIFICATION, futures::Notified<'static>>,
        listening: Listening<'static>,
        _notify: Arc<Notify>,
    }
}

impl OwnedNotified {
    /// See [`tokio::sync::futures::OwnedNotified::enable`]. It is no wait, and is not recorded.
    pub fn enable(self: Pin<&mut Self>) -> bool {
        self.project().wait.get_pin_mut().enable()
    }
}

impl Future for OwnedNotified {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.project().wait.poll(cx)
    }
}

impl fmt::Debug for OwnedNotified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wait.get_ref().fmt(f)
    }
}
