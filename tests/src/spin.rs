//! A raw lock that spins and that any thread may unlock, for `lock_api`. Its marker says whether guards can be sent.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The lock. `M` is the type of the guards' marker.
pub(crate) struct Spin<M>(AtomicBool, PhantomData<fn() -> M>);

unsafe impl<M> lock_api::RawMutex for Spin<M> {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Spin<M> = Spin(AtomicBool::new(false), PhantomData);
    type GuardMarker = M;

    fn lock(&self) {
        while !self.try_lock() {
            std::thread::yield_now();
        }
    }
    fn try_lock(&self) -> bool {
        !self.0.swap(true, Acquire)
    }
    unsafe fn unlock(&self) {
        self.0.store(false, Release);
    }
}
