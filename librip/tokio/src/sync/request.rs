//! Requests: who is presumed to answer.
//!
//! Who waits at a oneshot channel for the answer to a request has sent its sender to somebody, and nobody has used that
//! sender yet. Mostly it is in the last message that the task has sent. So who receives such messages is presumed to
//! have it. That is wrong if the last message was another one, or the request was handed on. No proof may rest on it.

use std::cell::Cell;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use librip::task::lock::{self, Peer};
use tokio::sync::oneshot;

use super::channel::{Channel, NOBODY};

/// What a thread, or the task that it polled, has sent last.
#[derive(Clone, Copy)]
struct Sent {
    sender: u32,
    /// In which poll of the sender: later another thread may poll it, and know of later messages.
    poll: u64,
    /// Who alone receives from that channel; `NOBODY` if that is not known.
    receiver: u32,
}

const NOTHING: Sent = Sent { sender: NOBODY, poll: 0, receiver: NOBODY };

thread_local! {
    static LAST: Cell<Sent> = const { Cell::new(NOTHING) };
}

/// The calling thread or task uses a sender, mostly to send something.
#[inline]
pub(super) fn sent(sender: u32, receiver: u32) {
    LAST.set(Sent { sender, poll: lock::poll(), receiver });
}

/// A channel for an answer is made. What the calling thread sent before has nothing to do with it.
pub(super) fn begin() {
    LAST.set(NOTHING);
}

/// Who is presumed to answer the calling thread or task; `None` if nothing is known.
fn answerer() -> Option<u32> {
    let last = LAST.get();
    let is_own = last.sender == lock::user() && last.poll == lock::poll();
    Some(last.receiver).filter(|&receiver| receiver != NOBODY && is_own)
}

/// A receiver that says, when it has to wait, who is presumed to answer.
pub(super) struct Answer<T> {
    pub(super) inner: oneshot::Receiver<T>,
    pub(super) channel: Channel,
    at: &'static Location<'static>,
    has_noted: bool,
}

impl<T> Answer<T> {
    pub(super) fn new(
        inner: oneshot::Receiver<T>,
        channel: Channel,
        at: &'static Location<'static>,
    ) -> Answer<T> {
        Answer { inner, channel, at, has_noted: false }
    }
}

impl<T> Future for Answer<T> {
    type Output = <oneshot::Receiver<T> as Future>::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let poll = Pin::new(&mut self.inner).poll(cx);
        if poll.is_pending() && !self.has_noted {
            self.has_noted = true;
            if let Some(user) = answerer() {
                self.channel.note_peer(self.at, Peer { user, ends: 1, receives: false, is_presumed: true });
            }
        }
        poll
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_receives_what_was_sent_last_is_presumed_to_answer() {
        let own = lock::user();
        assert_eq!(answerer(), None, "nothing was sent");
        sent(own, 7);
        assert_eq!(answerer(), Some(7));
        sent(own, 8);
        assert_eq!(answerer(), Some(8));
        sent(own, NOBODY);
        assert_eq!(answerer(), None, "who receives it is not known");
        sent(own, 7);
        begin();
        assert_eq!(answerer(), None, "it was sent before the channel was made");
        sent(own + 1, 7);
        assert_eq!(answerer(), None, "another task has sent it");
        LAST.set(Sent { sender: own, poll: lock::poll() + 1, receiver: 7 });
        assert_eq!(
            answerer(),
            None,
            "it was sent in another poll, after which another thread may have gone on"
        );
    }
}
