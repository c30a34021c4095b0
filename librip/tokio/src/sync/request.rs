//! Requests: who is presumed to answer.
//!
//! Who waits at a oneshot channel for the answer to a request has sent its sender to somebody, and nobody has used that
//! sender yet. Mostly it is in the message that the task sends next. So who alone receives what the task has sent since
//! it made the channel is presumed to have it. That is wrong if that message was another one, or the request was handed
//! on. No proof may rest on it.
//!
//! Nothing is presumed if the task has sent to several since, has made another channel since, or waits for the answer
//! in a later poll than that in which its message was sent: then another thread may have polled it meanwhile. In an
//! instance of librip that does not own the ring, no polls are known, and nothing is presumed of a task. Messages that
//! need no drop do not count: no sender is in them.

use std::cell::Cell;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use librip::task::lock;
use pin_project_lite::pin_project;

use super::channel::{End, NOBODY};

/// The last channel for an answer that somebody has made, and what its maker has sent since.
#[derive(Clone, Copy)]
struct Request {
    /// Tells it from all others; 0 if there is none.
    serial: u64,
    maker: u32,
    /// Who alone has got everything; `NOBODY` if nothing was sent.
    receiver: u32,
    /// In which poll of the maker this was so: later another thread may poll it.
    poll: u64,
}

const NONE: Request = Request { serial: 0, maker: NOBODY, receiver: NOBODY, poll: 0 };

thread_local! {
    static LAST: Cell<Request> = const { Cell::new(NONE) };
    static SERIAL: Cell<u64> = const { Cell::new(0) };
}

/// A channel for an answer is made. Returns its serial.
pub(super) fn begin() -> u64 {
    let serial = next_serial();
    let (maker, poll) = (lock::user(), lock::poll());
    let is_known = poll != 0 || !lock::is_task(maker);
    LAST.set(if is_known { Request { serial, maker, receiver: NOBODY, poll } } else { NONE });
    serial
}

/// A number that no other channel of the process has. Each thread takes many at once.
fn next_serial() -> u64 {
    const AT_ONCE: u64 = 1024;
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let mut last = SERIAL.get();
    if last.is_multiple_of(AT_ONCE) {
        // ORDERING: relaxed: it only has to be unique.
        last = TAKEN.fetch_add(AT_ONCE, Relaxed);
    }
    SERIAL.set(last + 1);
    last + 1
}

/// That of the calling thread or task, in this poll.
fn current() -> Option<Request> {
    let last = LAST.get();
    let is_own = || last.maker == lock::user() && last.poll == lock::poll();
    (last.serial != 0 && is_own()).then_some(last)
}

/// The calling thread or task has sent a message of type `T`. `sender` is where.
#[inline]
pub(super) fn sent<T>(sender: &End) {
    if LAST.get().serial != 0 && needs_drop::<T>() {
        sent_to(sender.other_side().user);
    }
}

fn sent_to(receiver: u32) {
    let Some(request) = current() else { return };
    let is_only = receiver != NOBODY && [NOBODY, receiver].contains(&request.receiver);
    // The maker stays: see `go_on`.
    LAST.set(if is_only { Request { receiver, ..request } } else { Request { serial: 0, ..request } });
}

/// Who is presumed to answer the calling thread or task; `None` if nothing is known.
pub(super) fn answerer(serial: u64) -> Option<u32> {
    let request = current().filter(|request| request.serial == serial)?;
    Some(request.receiver).filter(|&receiver| receiver != NOBODY)
}

pin_project! {
    /// A future that sends a message of type `T`.
    pub(super) struct Sends<'a, F, T> {
        sender: &'a End,
        message: PhantomData<fn(T)>,
        // What was so when it had to wait first.
        before: Option<Request>,
        #[pin]
        future: F,
    }
}

impl<'a, F, T> Sends<'a, F, T> {
    pub(super) fn new(sender: &'a End, future: F) -> Sends<'a, F, T> {
        Sends { sender, message: PhantomData, before: None, future }
    }
}

impl<T, E, F: Future<Output = Result<(), E>>> Future for Sends<'_, F, T> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let poll = this.future.poll(cx);
        match &poll {
            Poll::Pending if this.before.is_none() => *this.before = Some(current().unwrap_or(NONE)),
            Poll::Ready(Ok(())) => {
                this.before.take().inspect(go_on);
                sent::<T>(this.sender);
            }
            Poll::Pending | Poll::Ready(Err(_)) => {}
        }
        poll
    }
}

/// A send that had to wait has got through: its task goes on with what it was at before, if it has sent nothing else
/// meanwhile. What it has sent from another thread is not known here.
#[cold]
fn go_on(before: &Request) {
    if before.serial == 0 || before.maker != lock::user() {
        return;
    }
    let last = LAST.get();
    let is_same = last.serial == before.serial && last.receiver == before.receiver;
    // Others have used this thread meanwhile.
    let is_of_another = last.maker != before.maker;
    LAST.set(if is_same || is_of_another { Request { poll: lock::poll(), ..*before } } else { NONE });
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::super::channel::Channel;
    use super::*;

    #[test]
    fn who_alone_receives_what_was_sent_since_is_presumed_to_answer() {
        let serial = begin();
        assert_eq!(answerer(serial), None, "nothing was sent");
        sent_to(7);
        sent_to(7);
        assert_eq!(answerer(serial), Some(7));
        sent_to(8);
        assert_eq!(answerer(serial), None, "two have got something");
        sent_to(7);
        assert_eq!(answerer(serial), None, "it stays unknown");
        let serial = begin();
        assert_eq!(answerer(serial), None, "it was sent before the channel was made");
        sent_to(NOBODY);
        sent_to(7);
        assert_eq!(answerer(serial), None, "who receives one is not known");
    }

    #[test]
    fn the_answer_to_an_earlier_request_is_nobodys() {
        let first = begin();
        sent_to(7);
        let second = begin();
        sent_to(8);
        assert_eq!([first, second].map(answerer), [None, Some(8)]);
    }

    #[test]
    fn what_others_send_or_another_poll_sends_says_nothing() {
        let changes: [fn(&mut Request); 2] = [|last| last.maker += 1, |last| last.poll += 1];
        for change in changes {
            let serial = begin();
            let mut last = LAST.get();
            change(&mut last);
            LAST.set(last);
            sent_to(7);
            assert_eq!(answerer(serial), None, "another one has made it");
            let serial = begin();
            sent_to(7);
            let mut last = LAST.get();
            change(&mut last);
            LAST.set(last);
            assert_eq!(answerer(serial), None, "another one has sent it");
        }
    }

    #[test]
    fn a_send_that_waits_goes_on_with_its_request_in_a_later_poll() {
        let (sender, receiver) = Channel::ends();
        receiver.used_by(7);
        let serial = begin();
        let mut polls = 0;
        let mut future = std::pin::pin!(Sends::<_, String>::new(
            &sender,
            std::future::poll_fn(|_| {
                polls += 1;
                if polls < 3 { Poll::Pending } else { Poll::Ready(Ok::<_, ()>(())) }
            })
        ));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        for _ in 0..2 {
            assert!(future.as_mut().poll(&mut cx).is_pending());
            // Another task makes a request on this thread.
            LAST.set(Request { serial: next_serial(), maker: lock::user() + 1, ..NONE });
        }
        assert!(future.as_mut().poll(&mut cx).is_ready());
        assert_eq!(answerer(serial), Some(7));
    }

    #[test]
    fn a_send_that_waits_does_not_hide_what_was_sent_meanwhile() {
        let meanwhile: [fn(); 3] = [
            || sent_to(8),
            || sent_to(NOBODY),
            || {
                begin();
            },
        ];
        for change in meanwhile {
            let (sender, receiver) = Channel::ends();
            receiver.used_by(7);
            let serial = begin();
            let mut is_ready = false;
            let send = std::future::poll_fn(|_| {
                let poll = if is_ready { Poll::Ready(Ok::<_, ()>(())) } else { Poll::Pending };
                is_ready = true;
                poll
            });
            let mut send = std::pin::pin!(Sends::<_, String>::new(&sender, send));
            let mut cx = Context::from_waker(std::task::Waker::noop());
            assert!(send.as_mut().poll(&mut cx).is_pending());
            change();
            assert!(send.as_mut().poll(&mut cx).is_ready());
            assert_eq!(answerer(serial), None);
        }
    }

    #[test]
    fn a_message_that_has_nothing_to_drop_is_no_request() {
        let (sender, receiver) = Channel::ends();
        receiver.used_by(7);
        let serial = begin();
        sent::<u64>(&sender);
        assert_eq!(answerer(serial), None);
        sent::<oneshot::Sender<u64>>(&sender);
        assert_eq!(answerer(serial), Some(7));
    }

    #[test]
    fn no_two_channels_have_one_serial() {
        let of_thread = || (0..3000).map(|_| next_serial()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(of_thread)).collect();
        let mut all: Vec<u64> = threads.into_iter().flat_map(|it| it.join().unwrap()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), all.contains(&0)), (12_000, false));
    }
}
