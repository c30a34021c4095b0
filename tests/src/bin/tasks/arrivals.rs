//! How scenarios know that their tasks have come where they are to stay.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts those that have arrived.
#[derive(Default)]
pub(crate) struct Arrivals(AtomicUsize, tokio::sync::Notify);

impl Arrivals {
    pub(crate) fn arrive(&self) {
        self.0.fetch_add(1, SeqCst);
        self.1.notify_one();
    }

    pub(crate) async fn wait(&self, count: usize) {
        while self.0.load(SeqCst) < count {
            self.1.notified().await;
        }
    }

    /// The same where one of those that arrive waits for another one.
    pub(crate) async fn wait_beside_others(&self, count: usize) {
        while self.0.load(SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }
}

/// Awaits a future, and arrives whenever a poll of it has returned without a result.
pub(crate) async fn noting<F: Future>(future: F, arrivals: &Arrivals) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let poll = future.as_mut().poll(cx);
        if poll.is_pending() {
            arrivals.arrive();
        }
        poll
    })
    .await
}

/// A future that is sent to another thread although it holds a guard of a lock of threads.
pub(crate) struct Moves<F>(pub(crate) F);

// SAFETY: the lock of the guard within is never released, so no thread releases what another one has acquired.
unsafe impl<F> Send for Moves<F> {}

impl<F: Future> Future for Moves<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<F::Output> {
        // SAFETY: the future is not moved out of what is pinned.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(cx)
    }
}
