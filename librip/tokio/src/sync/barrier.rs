//! [`Barrier`]: tokio's, recorded.

use std::future::Future;

use librip::task::lock::{self, Identity};
use tokio::sync::{self, BarrierWaitResult};

/// [`tokio::sync::Barrier`], recorded: the ring says which tasks wait for others there, and how many it takes.
///
/// Nobody holds a barrier, so a wait there is in no deadlock that `read-rip` proves. The wait of the last task, which
/// does not block, is recorded too.
///
/// # Examples
///
/// ```
/// use librip_tokio::sync::Barrier;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let barrier = Barrier::new(2);
/// tokio::join!(barrier.wait(), barrier.wait());
/// # }
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Barrier {
    identity: Identity,
    inner: sync::Barrier,
    /// How many tasks a round takes.
    tasks: usize,
}

impl Barrier {
    /// See [`tokio::sync::Barrier::new`].
    pub fn new(n: usize) -> Barrier {
        // One task is a round if the program says 0, too.
        Barrier { identity: Identity::new(), inner: sync::Barrier::new(n), tasks: n.max(1) }
    }

    /// See [`tokio::sync::Barrier::wait`].
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = BarrierWaitResult> {
        lock::wait_in_round(self.identity.address_in_use(), self.inner.wait(), self.tasks)
    }

    librip::__rip_set_name!("it", identity);
}
