//! What mutexes and readers-writer locks have in common: how they are locked and unlocked.
//!
//! Macros, because the methods have the documentation of their type, and their sites name its source file.

use librip_format::{LOCK_TYPE_MUTEX, LOCK_TYPE_RWLOCK, SITE_LOCK_TYPE_SHIFT, SITE_OWNED, SITE_SHARED};

pub(super) const MUTEX: u16 = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;
/// The flags of a readers-writer lock in exclusive mode.
pub(super) const WRITE: u16 = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT | SITE_OWNED;
/// The flags of a readers-writer lock in shared mode.
pub(super) const READ: u16 = WRITE | SITE_SHARED;

/// Defines the methods that lock, blocking and not, of a lock that has an `identity` and an `inner` lock. `Sites` is
/// what `define_sites` has defined.
macro_rules! locking {
    ($type:ident, $lock:ident, $try_lock:ident, $guard:ident, $flags:ident) => {
        #[doc = concat!("See [`std::sync::", stringify!($type), "::", stringify!($lock), "`].")]
        ///
        /// # Errors
        ///
        /// If the lock is poisoned.
        #[inline(always)]
        #[track_caller]
        pub fn $lock(&self) -> ::std::sync::LockResult<$guard<'_, T>> {
            use $crate::lock::record;

            let sites = Sites::<$flags>(::core::panic::Location::caller());
            let lock = self.identity.address_in_use();
            let guard = |inner| $guard::new(self.identity.address(), inner);
            record::lock(sites, lock, || self.inner.$try_lock(), || self.inner.$lock(), guard)
        }

        #[doc = concat!("See [`std::sync::", stringify!($type), "::", stringify!($try_lock), "`].")]
        ///
        /// # Errors
        ///
        /// If the lock is not free, or is poisoned.
        #[inline(always)]
        #[track_caller]
        pub fn $try_lock(&self) -> ::std::sync::TryLockResult<$guard<'_, T>> {
            use $crate::lock::record;

            const FLAGS: u16 = $flags | $crate::__private::format::SITE_TRY;
            let sites = Sites::<FLAGS>(::core::panic::Location::caller());
            let lock = self.identity.address_in_use();
            let guard = |inner| $guard::new(self.identity.address(), inner);
            record::try_lock(sites, lock, || self.inner.$try_lock(), guard)
        }
    };
}
pub(super) use locking;

/// Defines what both types have besides locking, as `std::sync` has it.
macro_rules! common {
    ($type:ident) => {
        impl<T> $type<T> {
            #[doc = concat!("See [`std::sync::", stringify!($type), "::new`].")]
            #[inline]
            pub const fn new(value: T) -> $type<T> {
                $type { identity: Identity::new(), inner: ::std::sync::$type::new(value) }
            }

            #[doc = concat!("See [`std::sync::", stringify!($type), "::into_inner`].")]
            ///
            /// # Errors
            ///
            /// If the lock is poisoned.
            pub fn into_inner(self) -> ::std::sync::LockResult<T> {
                self.inner.into_inner()
            }
        }

        impl<T: ?Sized> $type<T> {
            #[doc = concat!("See [`std::sync::", stringify!($type), "::is_poisoned`].")]
            pub fn is_poisoned(&self) -> bool {
                self.inner.is_poisoned()
            }

            #[doc = concat!("See [`std::sync::", stringify!($type), "::clear_poison`].")]
            pub fn clear_poison(&self) {
                self.inner.clear_poison();
            }

            #[doc = concat!("See [`std::sync::", stringify!($type), "::get_mut`].")]
            ///
            /// # Errors
            ///
            /// If the lock is poisoned.
            pub fn get_mut(&mut self) -> ::std::sync::LockResult<&mut T> {
                self.inner.get_mut()
            }

            $crate::__rip_set_name!("the lock", identity);
        }

        impl<T: ?Sized + ::core::fmt::Debug> ::core::fmt::Debug for $type<T> {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl<T: Default> Default for $type<T> {
            fn default() -> $type<T> {
                $type::new(T::default())
            }
        }

        impl<T> From<T> for $type<T> {
            fn from(value: T) -> $type<T> {
                $type::new(value)
            }
        }
    };
}
pub(super) use common;

/// Defines a guard, which unlocks. `Sites` is what `define_sites` has defined.
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
                use $crate::lock::record::drop_guard;
                use $crate::lock::site::wrapper_site;

                let pc = wrapper_site!(KIND_LOCK_RELEASED, $flags, [OPERAND_LOCK]);
                let pc_timed =
                    wrapper_site!(KIND_LOCK_RELEASED, $flags, [OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]);
                // SAFETY: taken once: here, or by a method that forgets the guard.
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
