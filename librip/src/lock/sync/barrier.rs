//! [`Barrier`]: the standard library's, recorded.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::fmt;
use core::panic::Location;
use std::sync;

use super::BarrierWaitResult;
use crate::lock::record;
use crate::lock::site::{Flags, define_sites};
use librip_format::{LOCK_TYPE_BARRIER, SITE_LOCK_TYPE_SHIFT};

define_sites!(Sites);

const BARRIER: Flags = LOCK_TYPE_BARRIER << SITE_LOCK_TYPE_SHIFT;

/// [`std::sync::Barrier`], recorded: the ring says which threads wait for others there, and how many it takes.
///
/// Nobody holds a barrier, so a wait there is in no deadlock that `read-rip` proves. The wait of the last thread, which
/// does not block, is recorded too.
///
/// # Examples
///
/// ```
/// use librip::sync::Barrier;
///
/// let barrier = Barrier::new(2);
/// std::thread::scope(|scope| {
///     scope.spawn(|| barrier.wait());
///     barrier.wait();
/// });
/// ```
pub struct Barrier {
    inner: sync::Barrier,
    /// How many threads a round takes.
    threads: usize,
}

impl Barrier {
    /// See [`std::sync::Barrier::new`].
    #[inline]
    #[must_use]
    pub const fn new(n: usize) -> Barrier {
        Barrier { inner: sync::Barrier::new(n), threads: n }
    }

    /// See [`std::sync::Barrier::wait`].
    #[inline(always)]
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let address = core::ptr::from_ref(self).addr() as u64;
        record::block_in_round(Sites::<BARRIER>(Location::caller()), address, self.threads, || {
            self.inner.wait()
        })
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
