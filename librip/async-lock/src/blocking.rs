//! A thread that waits: it tries, and then waits by the lock's own blocking function.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A future that is ready if `attempt` succeeds. If it is polled again, it blocks, and is ready.
pub(crate) fn in_two_polls<T>(
    attempt: impl FnOnce() -> Option<T>,
    block: impl FnOnce() -> T,
) -> impl Future<Output = T> {
    let (mut attempt, mut block) = (Some(attempt), Some(block));
    poll_fn(move |_| match attempt.take() {
        Some(attempt) => attempt().map_or(Poll::Pending, Poll::Ready),
        // SANITY: it is ready the second time, and is not polled again.
        None => Poll::Ready(block.take().expect("a future that was not ready")()),
    })
}

/// Polls a future until it is ready. It blocks within its polls.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
    }
}
