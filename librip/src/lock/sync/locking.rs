//! How locks are taken and given up: what mutexes and readers-writer locks have in common.
//!
//! Macros, because all of it is to be inlined into the program's functions, where each call has sites of its own.

use librip_format::{LOCK_TYPE_MUTEX, LOCK_TYPE_RWLOCK, SITE_LOCK_TYPE_SHIFT, SITE_OWNED, SITE_SHARED};

/// The flags of a mutex.
pub(super) const MUTEX: u16 = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;
/// The flags of a lock that is written.
pub(super) const WRITE: u16 = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;
/// The flags of a lock that is read.
pub(super) const READ: u16 = WRITE | SITE_SHARED;

/// Defines the two ways to lock, blocking and not, of a lock that has an `identity` and an `inner` lock.
macro_rules! locking {
    ($type:ident, $lock:ident, $try_lock:ident, $guard:ident, $flags:expr) => {
        #[doc = concat!("See [`std::sync::", stringify!($type), "::", stringify!($lock), "`].")]
        ///
        /// # Errors
        ///
        /// If the lock is poisoned.
        #[inline(always)]
        #[track_caller]
        pub fn $lock(&self) -> ::std::sync::LockResult<$guard<'_, T>> {
            use ::core::panic::Location;
            use ::std::sync::{PoisonError, TryLockError};

            use $crate::lock::wrap::{attempt, wrapper_site};

            let here = Location::caller();
            let attempt = attempt!(self.identity.address_in_use(), $flags, here);
            match self.inner.$try_lock() {
                Ok(guard) => {
                    attempt.has();
                    Ok($guard::new(self.identity.address(), guard))
                }
                Err(TryLockError::Poisoned(poisoned)) => {
                    attempt.has_poisoned();
                    Err(PoisonError::new($guard::new(self.identity.address(), poisoned.into_inner())))
                }
                Err(TryLockError::WouldBlock) => {
                    let pc = wrapper_site!(KIND_LOCK_WAIT, $flags, [OPERAND_TIME, OPERAND_LOCK], here);
                    let waiting = attempt.waits(self.identity.address(), pc);
                    let result = self.inner.$lock();
                    waiting.has();
                    // Not in a function of its own: its result would come through memory, and so would every guard.
                    $crate::lock::sync::mapped(result, |guard| $guard::new(self.identity.address(), guard))
                }
            }
        }

        #[doc = concat!("See [`std::sync::", stringify!($type), "::", stringify!($try_lock), "`].")]
        ///
        /// # Errors
        ///
        /// If the lock is not to be had at once, or poisoned.
        #[inline(always)]
        #[track_caller]
        pub fn $try_lock(&self) -> ::std::sync::TryLockResult<$guard<'_, T>> {
            use ::core::panic::Location;
            use ::std::sync::{PoisonError, TryLockError};

            use $crate::__private::format::SITE_TRY;
            use $crate::lock::wrap::{attempt, wrapper_site};

            let here = Location::caller();
            let attempt = attempt!(self.identity.address_in_use(), $flags | SITE_TRY, here);
            match self.inner.$try_lock() {
                Ok(guard) => {
                    attempt.has();
                    Ok($guard::new(self.identity.address(), guard))
                }
                Err(TryLockError::Poisoned(poisoned)) => {
                    attempt.has_poisoned();
                    let guard = $guard::new(self.identity.address(), poisoned.into_inner());
                    Err(TryLockError::Poisoned(PoisonError::new(guard)))
                }
                Err(TryLockError::WouldBlock) => {
                    attempt.failed(
                        self.identity.address(),
                        wrapper_site!(KIND_LOCK_TRY_FAILED, $flags | SITE_TRY, [OPERAND_LOCK], here),
                    );
                    Err(TryLockError::WouldBlock)
                }
            }
        }
    };
}
pub(super) use locking;

/// Defines a guard, which unlocks.
macro_rules! guard {
    ($type:literal, $guard:ident, $flags:expr) => {
        #[doc = concat!("See [`std::sync::", stringify!($guard), "`].")]
        #[must_use = concat!("if unused the ", $type, " will immediately unlock")]
        pub struct $guard<'a, T: ?Sized + 'a> {
            inner: ::core::mem::ManuallyDrop<::std::sync::$guard<'a, T>>,
            lock: u64,
        }

        impl<'a, T: ?Sized> $guard<'a, T> {
            #[inline(always)]
            pub(super) fn new(lock: u64, inner: ::std::sync::$guard<'a, T>) -> $guard<'a, T> {
                $guard { inner: ::core::mem::ManuallyDrop::new(inner), lock }
            }
        }

        impl<T: ?Sized> Drop for $guard<'_, T> {
            #[inline]
            fn drop(&mut self) {
                use $crate::lock::wrap::{drop_guard, wrapper_site};

                let pc = wrapper_site!(KIND_LOCK_RELEASED, $flags, [OPERAND_LOCK]);
                let pc_timed =
                    wrapper_site!(KIND_LOCK_RELEASED, $flags, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]);
                // SAFETY: taken once: here, or by what forgets the guard.
                let inner = unsafe { ::core::mem::ManuallyDrop::take(&mut self.inner) };
                drop_guard(self.lock, inner, pc, pc_timed);
            }
        }

        impl<T: ?Sized> ::core::ops::Deref for $guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T: ?Sized + ::core::fmt::Debug> ::core::fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + ::core::fmt::Display> ::core::fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}

pub(super) use guard;
