//! [`map`]: a future whose output is made of another one's.
//!
//! An `async` block does the same, but takes twice the room of the other future, and moves it once more. Locks have
//! several of these around one another.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

pin_project! {
    /// See [`map`].
    #[must_use = "futures do nothing unless you `.await` or poll them"]
    pub(crate) struct Map<F, M> {
        #[pin]
        future: F,
        // `None` if it is ready.
        map: Option<M>,
    }
}

/// Makes something of the output of a future.
pub(crate) fn map<F: Future, M: FnOnce(F::Output) -> T, T>(future: F, map: M) -> Map<F, M> {
    Map { future, map: Some(map) }
}

impl<F: Future, M: FnOnce(F::Output) -> T, T> Future for Map<F, M> {
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.project();
        let output = ready!(this.future.poll(cx));
        // SANITY: a future is not polled again after it was ready.
        let map = this.map.take().expect("`async fn` resumed after completion");
        Poll::Ready(map(output))
    }
}
