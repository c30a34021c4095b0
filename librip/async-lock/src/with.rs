//! [`with`]: a future, and the lock that it may borrow.
//!
//! An `async` block takes twice the room of the future, and may drop the lock first if it was not polled.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

pin_project! {
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) struct With<F: Future, L, T> {
        // It may borrow the lock, and so is dropped before.
        #[pin]
        future: F,
        // `None` if it is ready.
        lock: Option<L>,
        make: fn(F::Output, L) -> T,
    }
}

/// Makes something of the output of a future and of the lock, which is dropped after the future.
pub(crate) fn with<F: Future, L, T>(future: F, lock: L, make: fn(F::Output, L) -> T) -> With<F, L, T> {
    With { future, lock: Some(lock), make }
}

impl<F: Future, L, T> Future for With<F, L, T> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.project();
        let output = ready!(this.future.poll(cx));
        // SANITY: a future is not polled again after it was ready.
        let lock = this.lock.take().expect("`async fn` resumed after completion");
        Poll::Ready((this.make)(output, lock))
    }
}
