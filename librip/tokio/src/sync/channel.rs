//! [`Channel`] and [`End`]: what the ends of a channel have in common.
//!
//! # Who can end a wait
//!
//! Nobody holds a channel, but whoever waits there waits for the other side. So each side counts its ends, and each end
//! knows which task or thread has used it, if only one has. When a wait begins, the ring gets what is known of the
//! other side: [`librip::task::lock::note_peer`]. Where an end is, in a task that has not used it yet or in none,
//! nobody knows. An end that several have used, that became tokio's, or that is a weak sender tells nothing. Who will
//! answer a request is presumed: see [`request`](super::request).

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::task::{Context, Poll};

use librip::task::lock::{self, Identity, MESSAGE, Peer, Waits};
use pin_project_lite::pin_project;

/// Identifies a channel, and does not keep it open. Tokio does not say where a channel is, so each has something of its
/// own on the heap, whose address stands for it.
#[derive(Clone, Debug)]
pub(crate) struct Channel(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    identity: Identity,
    senders: Side,
    receivers: Side,
}

impl Channel {
    /// A channel with one end on each side: that which sends, and that which receives.
    pub(crate) fn ends() -> (End, End) {
        let channel = Channel::new();
        (channel.sender(), channel.receiver())
    }

    /// A channel without ends.
    pub(crate) fn new() -> Channel {
        let (senders, receivers) = (Side::default(), Side::default());
        Channel(Arc::new(Shared { identity: Identity::new(), senders, receivers }))
    }

    /// Another end that sends.
    pub(crate) fn sender(&self) -> End {
        End::new(self.clone(), false)
    }

    /// An end that does not keep the channel open, and may become one that sends: so who sends is not known any more.
    pub(crate) fn weak_sender(&self) -> End {
        let end = self.sender();
        end.used_by(NOBODY);
        end
    }

    /// Another end that receives.
    pub(crate) fn receiver(&self) -> End {
        End::new(self.clone(), true)
    }

    fn address(&self) -> u64 {
        self.0.identity.address()
    }

    fn side(&self, receives: bool) -> &Side {
        if receives { &self.0.receivers } else { &self.0.senders }
    }

    pub(crate) fn set_name(&self, name: &str) {
        self.0.identity.set_name(name);
    }

    pub(crate) fn note_peer(&self, at: &'static Location<'static>, peer: Peer) {
        lock::note_peer(at, self.address(), peer);
    }

    /// Records a wait for what the other side does, of which nothing is said. One that does not block is not recorded.
    #[track_caller]
    pub(crate) fn wait<F: Future>(&self, future: F, has_it: fn(&F::Output) -> bool) -> Waits<MESSAGE, F> {
        self.wait_at(Location::caller(), future, has_it)
    }

    /// Like [`wait`](Channel::wait), at a location.
    pub(crate) fn wait_at<F: Future>(
        &self,
        at: &'static Location<'static>,
        future: F,
        has_it: fn(&F::Output) -> bool,
    ) -> Waits<MESSAGE, F> {
        // Its end is not recorded: at a channel nothing is held, so a later one is not mixed up with it.
        lock::wait_at(at, self.address(), future, false, has_it)
    }
}

/// The ends of one side of a channel: how many there are, in the upper half, and the xor of their users. So if there is
/// one end, its user is known, whichever end that is.
#[derive(Debug, Default)]
struct Side(AtomicU64);

impl Side {
    fn change(&self, ends: i32, users: u32) {
        let change = |old: u64| {
            let count = ((old >> 32) as u32).wrapping_add_signed(ends);
            Some(u64::from(count) << 32 | u64::from(old as u32 ^ users))
        };
        // ORDERING: relaxed: it guards nothing. Both halves change at once.
        let _ = self.0.fetch_update(Relaxed, Relaxed, change);
    }

    fn peer(&self, receives: bool) -> Peer {
        // ORDERING: relaxed, as above.
        let now = self.0.load(Relaxed);
        let ends = (now >> 32) as u32;
        // While two change the user of one end at once, the users may be `SEVERAL` and an id together.
        let user = if ends == 1 && lock::is_user(now as u32) { now as u32 } else { NOBODY };
        Peer { user, ends, receives, is_presumed: false }
    }
}

/// The user of an end that nobody has used yet.
pub(super) const NOBODY: u32 = 0;
/// The user of an end that several have used, or somebody who is not known. No task has this number.
const SEVERAL: u32 = u32::MAX;

/// An end of a channel.
#[derive(Debug)]
pub(crate) struct End {
    channel: Channel,
    receives: bool,
    user: AtomicU32,
}

impl End {
    fn new(channel: Channel, receives: bool) -> End {
        channel.side(receives).change(1, NOBODY);
        End { channel, receives, user: AtomicU32::new(NOBODY) }
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    /// The calling task or thread uses the end.
    #[inline]
    pub(crate) fn used(&self) {
        // ORDERING: relaxed, here and below: it guards nothing.
        let before = self.user.load(Relaxed);
        if before == SEVERAL {
            return;
        }
        let now = lock::user();
        if before != now || now == NOBODY {
            self.used_by(now);
        }
    }

    #[cold]
    pub(super) fn used_by(&self, now: u32) {
        let after = |before| match before {
            NOBODY if now != NOBODY => Some(now),
            _ if before == now && now != NOBODY || before == SEVERAL => None,
            _ => Some(SEVERAL),
        };
        if let Ok(before) = self.user.fetch_update(Relaxed, Relaxed, after) {
            self.channel.side(self.receives).change(0, before ^ after(before).unwrap_or(before));
        }
    }

    /// What is known of the other side.
    pub(super) fn other_side(&self) -> Peer {
        self.channel.side(!self.receives).peer(!self.receives)
    }

    /// Records a wait for what the other side does. One that does not block is not recorded.
    #[track_caller]
    pub(crate) fn wait<F: Future>(
        &self,
        future: F,
        has_it: fn(&F::Output) -> bool,
    ) -> Waits<MESSAGE, Uses<'_, F>> {
        self.wait_at(Location::caller(), future, has_it)
    }

    /// Like [`wait`](End::wait), for an async function, which cannot be `#[track_caller]`.
    pub(crate) fn wait_at<F: Future>(
        &self,
        at: &'static Location<'static>,
        future: F,
        has_it: fn(&F::Output) -> bool,
    ) -> Waits<MESSAGE, Uses<'_, F>> {
        self.channel.wait_at(at, Uses { end: self, at, has_noted: false, future }, has_it)
    }

    /// Nobody knows any more who uses the end: it goes on as one of tokio's.
    pub(crate) fn forget(self) {
        // It stays one of the ends of its side.
        self.channel.side(self.receives).change(1, SEVERAL);
    }
}

impl Clone for End {
    fn clone(&self) -> End {
        self.used();
        End::new(self.channel.clone(), self.receives)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.channel.side(self.receives).change(-1, *self.user.get_mut());
    }
}

pin_project! {
    /// A future that uses an end, and says who uses the other side when it has to wait.
    pub(crate) struct Uses<'a, F> {
        end: &'a End,
        at: &'static Location<'static>,
        has_noted: bool,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Uses<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let end = *this.end;
        end.used();
        let poll = this.future.poll(cx);
        if poll.is_pending() && !*this.has_noted {
            *this.has_noted = true;
            end.channel.note_peer(this.at, end.other_side());
        }
        poll
    }
}

/// Defines `set_name` of an end of a channel: `set_name!(FIELD)`, where the field is a [`Channel`] or leads to one.
macro_rules! set_name {
    ($($channel:tt)*) => {
        /// Names the channel in the ring, up to 48 bytes.
        pub fn set_name(&self, name: &str) {
            self.$($channel)*.set_name(name);
        }
    };
}
pub(crate) use set_name;

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// How many senders there are, and who alone has used the only one.
    fn senders(channel: &Channel) -> (u32, u32) {
        let peer = channel.0.senders.peer(false);
        (peer.ends, peer.user)
    }

    #[test]
    fn the_user_of_the_end_that_is_left_is_known() {
        let channel = Channel::new();
        let (first, second) = (channel.sender(), channel.sender());
        first.used_by(7);
        second.used_by(8);
        assert_eq!(senders(&channel), (2, NOBODY));
        drop(first);
        assert_eq!(senders(&channel), (1, 8));
        second.used_by(8);
        assert_eq!(senders(&channel), (1, 8));
        second.used_by(9);
        assert_eq!(senders(&channel), (1, NOBODY), "several have used it");
        second.used_by(9);
        assert_eq!(senders(&channel), (1, NOBODY));
        drop(second);
        assert_eq!(senders(&channel), (0, NOBODY));
    }

    #[test]
    fn an_end_that_became_one_of_tokios_stays_and_has_no_known_user() {
        let channel = Channel::new();
        let (lost, other) = (channel.sender(), channel.sender());
        lost.used_by(7);
        other.used_by(8);
        lost.forget();
        assert_eq!(senders(&channel), (2, NOBODY));
        drop(other);
        assert_eq!(senders(&channel), (1, NOBODY));
    }

    #[test]
    fn threads_that_use_clone_and_drop_ends_at_once_leave_nothing_behind() {
        let channel = Channel::new();
        let shared = channel.sender();
        thread::scope(|scope| {
            for id in 1..=4 {
                let (shared, channel) = (&shared, &channel);
                scope.spawn(move || {
                    for round in 0..10_000 {
                        shared.used_by(id);
                        let own = channel.sender();
                        own.used_by(id + round % 2);
                        own.used_by(id);
                    }
                });
            }
        });
        assert_eq!(senders(&channel), (1, NOBODY), "several have used it");
        drop(shared);
        // Nothing is left of the users of the ends that are gone.
        assert_eq!(channel.0.senders.0.load(Relaxed), 0);
    }
}
