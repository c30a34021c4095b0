//! What programs expect of tokio. Each test calls `start` of the test program, which records or does not.

mod blocking;
mod channels;
mod combinators;
mod mutex;
mod once;
mod rwlock;
mod semaphore;
mod tasks;
mod wakes;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

pub(crate) use crate::start;

/// A future that is polled by hand, outside of a runtime, and counts its wakes.
pub(crate) struct Spawned<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<F: Future> Spawned<F> {
    pub(crate) fn new(future: F) -> Spawned<F> {
        Spawned { future: Box::pin(future), wakes: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// What the future is ready with.
    #[track_caller]
    pub(crate) fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the future waits"),
        }
    }

    #[track_caller]
    pub(crate) fn waits(&mut self) {
        assert!(self.poll().is_pending(), "the future does not wait");
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.wakes.0.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn pinned(&mut self) -> Pin<&mut F> {
        self.future.as_mut()
    }
}

/// Runs a future on a runtime with two workers, as a task.
pub(crate) fn on_two_workers<F: Future<Output: Send + 'static> + Send + 'static>(future: F) -> F::Output {
    start();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = librip_tokio::watch(builder.worker_threads(2).enable_time()).build().unwrap();
    librip_tokio::block_on(&runtime, async { librip_tokio::spawn(future).await.unwrap() })
}

/// Runs a future on a runtime with one thread, whose time goes by only while nothing else is to do.
pub(crate) fn on_one_thread<F: Future>(future: F) -> F::Output {
    start();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = librip_tokio::watch(builder.enable_time().start_paused(true)).build().unwrap();
    librip_tokio::block_on(&runtime, future)
}
