//! [`block_on`]: a thread waits for a future, without a runtime.
//!
//! It is for the functions `blocking_*` of locks and channels. Tokio's own run tokio's futures only.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::sync::RwLock;

/// Runs a future on the calling thread, which sleeps while the future waits.
///
/// # Panics
///
/// If the thread polls tasks of a runtime.
#[track_caller]
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    refuse_to_block_a_runtime();
    let mut future = pin!(future);
    // Most futures do not wait. They need no waker.
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return output;
    }
    let sleeper = Arc::new(Sleeper { thread: thread::current(), is_woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&sleeper));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        sleeper.sleep();
    }
}

/// Panics where tokio's `blocking_*` functions panic, with their message: this calls one that never waits.
#[track_caller]
fn refuse_to_block_a_runtime() {
    static NEVER_WRITTEN: RwLock<()> = RwLock::const_new(());
    drop(NEVER_WRITTEN.blocking_read());
}

/// A thread that sleeps until somebody wakes it.
struct Sleeper {
    thread: Thread,
    /// The token of `thread::park` does not suffice: the future may use it up.
    is_woken: AtomicBool,
}

impl Sleeper {
    fn sleep(&self) {
        // ORDERING: acquire, pairs with the release in `wake_by_ref`: the future sees what was done before the wake.
        while !self.is_woken.swap(false, Acquire) {
            thread::park();
        }
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // ORDERING: release, as in `sleep`.
        self.is_woken.store(true, Release);
        self.thread.unpark();
    }
}
