//! Statics that are written later: [`Written`] once, without allocation and without waiting, and [`Scratch`] often.

#![allow(unsafe_code, reason = "a static that is written later")]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A value that is there or is not there yet.
#[derive(Debug)]
pub(crate) struct Written<T> {
    is_there: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: `set` has one caller, and others see the value after it is complete.
unsafe impl<T: Send + Sync> Sync for Written<T> {}

impl<T> Written<T> {
    pub(crate) const fn new() -> Written<T> {
        Written { is_there: AtomicBool::new(false), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Writes the value, unless it is there.
    ///
    /// # Safety
    ///
    /// No other thread calls it meanwhile, and no signal handler of this thread does.
    pub(crate) unsafe fn set(&self, value: T) -> &T {
        // ORDERING: relaxed: callers take turns.
        if !self.is_there.load(Relaxed) {
            // SAFETY: nobody has a reference to it, because it is not there, and no other thread is here.
            unsafe { (*self.value.get()).write(value) };
            // ORDERING: release, pairs with the acquire in `get`.
            self.is_there.store(true, Release);
        }
        // SAFETY: it is there, and never changes again.
        unsafe { &*self.value.get().cast::<T>() }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // ORDERING: acquire, pairs with the release in `set`.
        // SAFETY: it is there, and never changes again.
        self.is_there.load(Acquire).then(|| unsafe { &*self.value.get().cast::<T>() })
    }
}

/// Memory that one caller at a time uses: a static instead of a large local, where the stack may be small.
#[derive(Debug)]
pub(crate) struct Scratch<T>(UnsafeCell<T>);

// SAFETY: `take` has one caller at a time.
unsafe impl<T: Send> Sync for Scratch<T> {}

impl<T> Scratch<T> {
    pub(crate) const fn new(value: T) -> Scratch<T> {
        Scratch(UnsafeCell::new(value))
    }

    /// # Safety
    ///
    /// Nobody else calls it while the reference is used.
    #[allow(clippy::mut_from_ref, reason = "the caller promises to be alone")]
    pub(crate) unsafe fn take(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }
}
