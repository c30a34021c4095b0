//! [`JoinHandle`] and [`ScopedJoinHandle`]: a join says in the ring for which thread it waits.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::panic::Location;
use std::os::unix::thread::{JoinHandleExt, RawPthread};
use std::sync::Arc;
use std::thread;

use super::life::Life;
use super::{Result, Thread};
use crate::lock::record;
use crate::lock::site::{Flags, define_sites};
use librip_format::{LOCK_TYPE_THREAD, SITE_LOCK_TYPE_SHIFT};

define_sites!(Sites);

/// A thread, whose end is waited for.
const THREAD: Flags = LOCK_TYPE_THREAD << SITE_LOCK_TYPE_SHIFT;

/// Waits for the end of a thread by `wait`, and records it. A join has no other outcome than the end.
#[inline(always)]
pub(super) fn wait_for_end<T>(
    location: &'static Location<'static>,
    life: &Life,
    wait: impl FnOnce() -> T,
) -> T {
    match life.object() {
        0 => wait(),
        tid => record::block(Sites::<THREAD>(location), tid, wait, |_| true),
    }
}

macro_rules! handle {
    ($type:ident [$($lifetime:lifetime)?], $example:literal) => {
        #[doc = concat!("[`std::thread::", stringify!($type), "`], whose join is recorded.")]
        ///
        /// # Examples
        ///
        /// ```
        #[doc = $example]
        /// ```
        #[derive(Debug)]
        pub struct $type<$($lifetime,)? T> {
            pub(super) inner: thread::$type<$($lifetime,)? T>,
            pub(super) life: Arc<Life>,
        }

        impl<$($lifetime,)? T> $type<$($lifetime,)? T> {
            #[doc = concat!("See [`std::thread::", stringify!($type), "::thread`].")]
            #[must_use]
            pub fn thread(&self) -> &Thread {
                self.inner.thread()
            }

            #[doc = concat!("See [`std::thread::", stringify!($type), "::join`].")]
            ///
            /// The ring says for which thread the caller waits.
            ///
            /// # Errors
            ///
            /// If the thread panicked, the value of the panic.
            #[inline(always)]
            #[track_caller]
            pub fn join(self) -> Result<T> {
                let result = wait_for_end(Location::caller(), &self.life, || self.inner.join());
                self.life.joined();
                result
            }

            #[doc = concat!("See [`std::thread::", stringify!($type), "::is_finished`].")]
            #[must_use]
            pub fn is_finished(&self) -> bool {
                self.inner.is_finished()
            }
        }
    };
}

handle!(JoinHandle[], "let handle = librip::thread::spawn(|| 7);\nassert_eq!(handle.join().unwrap(), 7);");
handle!(
    ScopedJoinHandle['scope],
    "let seven = librip::thread::scope(|scope| scope.spawn(|| 7).join().unwrap());\nassert_eq!(seven, 7);"
);

impl<T> From<JoinHandle<T>> for thread::JoinHandle<T> {
    /// The standard library's handle, whose join is not recorded.
    fn from(handle: JoinHandle<T>) -> thread::JoinHandle<T> {
        handle.inner
    }
}

impl<T> JoinHandleExt for JoinHandle<T> {
    fn as_pthread_t(&self) -> RawPthread {
        self.inner.as_pthread_t()
    }

    fn into_pthread_t(self) -> RawPthread {
        self.inner.into_pthread_t()
    }
}
