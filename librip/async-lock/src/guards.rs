//! What guards have in common.
//!
//! A macro, because each guard has its own type, and the methods have the documentation of their type.

/// Defines a guard: a lease of the lock, and then the lock itself, which has the value in a cell. Fields are dropped in
/// this order. `$marker` has the traits `Send` and `Sync` that the value must have.
macro_rules! guard {
    (
        $(#[$meta:meta])*
        $mode:ident $guard:ident [$($lifetime:lifetime)?]: $inner:ty, $use:ident, $lock:ty, $marker:ty
    ) => {
        $(#[$meta])*
        #[must_use = "if unused, the lock is released immediately"]
        pub struct $guard<$($lifetime,)? T: ?Sized> {
            #[allow(dead_code, reason = "some guards do nothing with it but drop it")]
            lease: $crate::lease::Lease<$inner, { ::librip::task::lock::$use }>,
            lock: $lock,
            marker: ::std::marker::PhantomData<$marker>,
        }

        impl<$($lifetime,)? T: ?Sized> $guard<$($lifetime,)? T> {
            fn new(
                lease: $crate::lease::Lease<$inner, { ::librip::task::lock::$use }>,
                lock: $lock,
            ) -> Self {
                $guard { lease, lock, marker: ::std::marker::PhantomData }
            }
        }

        impl<$($lifetime,)? T: ?Sized> ::std::ops::Deref for $guard<$($lifetime,)? T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                // SAFETY: the lease has the lock, at least to read.
                unsafe { &*self.lock.value.get() }
            }
        }

        $crate::guards::guard!($mode $guard [$($lifetime)?]);

        impl<$($lifetime,)? T: ?Sized + ::std::fmt::Debug> ::std::fmt::Debug for $guard<$($lifetime,)? T> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($lifetime,)? T: ?Sized + ::std::fmt::Display> ::std::fmt::Display for $guard<$($lifetime,)? T> {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
    (exclusive $guard:ident [$($lifetime:lifetime)?]) => {
        impl<$($lifetime,)? T: ?Sized> ::std::ops::DerefMut for $guard<$($lifetime,)? T> {
            #[inline]
            fn deref_mut(&mut self) -> &mut T {
                // SAFETY: the lease has the lock, and nobody else.
                unsafe { &mut *self.lock.value.get() }
            }
        }
    };
    (shared $guard:ident [$($lifetime:lifetime)?]) => {};
}
pub(crate) use guard;
