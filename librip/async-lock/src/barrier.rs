//! [`Barrier`]: that of `async_lock`, recorded.

use std::future::Future;

use async_lock::BarrierWaitResult;
use librip::task::lock::{self, Identity};

use crate::blocking::{in_two_polls, run};

/// [`async_lock::Barrier`], recorded: the ring says which tasks wait for others there, and how many it takes.
///
/// # Examples
///
/// ```
/// assert!(librip_async_lock::Barrier::new(1).wait_blocking().is_leader());
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct Barrier {
    identity: Identity,
    inner: async_lock::Barrier,
    /// How many tasks a round takes.
    tasks: usize,
}

impl Barrier {
    /// See [`async_lock::Barrier::new`].
    pub const fn new(n: usize) -> Barrier {
        Barrier { identity: Identity::new(), inner: async_lock::Barrier::new(n), tasks: n }
    }

    /// See [`async_lock::Barrier::wait`].
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = BarrierWaitResult> {
        lock::wait_in_round(self.identity.address_in_use(), self.inner.wait(), self.tasks)
    }

    /// See [`async_lock::Barrier::wait_blocking`].
    #[track_caller]
    pub fn wait_blocking(&self) -> BarrierWaitResult {
        let wait = in_two_polls(|| None, || self.inner.wait_blocking());
        run(lock::wait_in_round(self.identity.address_in_use(), wait, self.tasks))
    }

    librip::__rip_set_name!("the barrier", identity);
}
