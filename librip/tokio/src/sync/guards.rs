//! What guards have in common.
//!
//! Macros, because each guard has its own type, and the methods have the documentation of their type.

/// Defines a guard: a pointer to what is locked, and a lease of the lock.
///
/// `$declared` are the generics with their defaults. `$marker` has the traits `Send` and `Sync` that tokio's guard asks
/// of its types.
macro_rules! guard {
    (
        $(#[$meta:meta])*
        $guard:ident [$($declared:tt)*] [$($generics:tt)*] [$($arguments:tt)*]: $pointer:ident<$target:ident>,
        $lock:ty, $use:ident, $marker:ty
    ) => {
        $(#[$meta])*
        #[doc = concat!("See [`tokio::sync::", stringify!($guard), "`].")]
        #[must_use = "if unused, the lock is released immediately"]
        pub struct $guard<$($declared)*> {
            data: $crate::sync::pointer::$pointer<$target>,
            lease: $crate::sync::raw::Lease<$lock, { ::librip::task::lock::$use }>,
            marker: ::std::marker::PhantomData<$marker>,
        }

        impl<$($generics)*> $guard<$($arguments)*> {
            pub(crate) fn new(
                data: $crate::sync::pointer::$pointer<$target>,
                lease: $crate::sync::raw::Lease<$lock, { ::librip::task::lock::$use }>,
            ) -> Self {
                $guard { data, lease, marker: ::std::marker::PhantomData }
            }
        }

        impl<$($generics)*> ::std::ops::Deref for $guard<$($arguments)*> {
            type Target = $target;

            #[inline]
            fn deref(&self) -> &$target {
                self.data.get()
            }
        }

        $crate::sync::guards::guard!(mutable $pointer $guard [$($generics)*] [$($arguments)*] $target);

        impl<$($generics)*> ::std::fmt::Debug for $guard<$($arguments)*>
        where
            $target: ::std::fmt::Debug,
        {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<$($generics)*> ::std::fmt::Display for $guard<$($arguments)*>
        where
            $target: ::std::fmt::Display,
        {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
    (mutable Exclusive $guard:ident [$($generics:tt)*] [$($arguments:tt)*] $target:ident) => {
        impl<$($generics)*> ::std::ops::DerefMut for $guard<$($arguments)*> {
            #[inline]
            fn deref_mut(&mut self) -> &mut $target {
                self.data.get_mut()
            }
        }
    };
    (mutable Shared $($rest:tt)*) => {};
}
pub(crate) use guard;

/// Defines `map` and `try_map` of a guard: the other guard has a part of what is locked, and the same lease.
macro_rules! map {
    ($guard:ident, $other:ty, $target:ident -> $part:ident, ($($reference:tt)+)) => {
        #[doc = concat!("See [`tokio::sync::", stringify!($guard), "::map`].")]
        #[inline]
        pub fn map<$part, F>(this: Self, f: F) -> $other
        where
            $part: ?Sized,
            F: FnOnce($($reference)+ $target) -> $($reference)+ $part,
        {
            // If `f` panics, the lease is dropped, and with it the lock is released.
            <$other>::new(this.data.map(f), this.lease.into())
        }

        #[doc = concat!("See [`tokio::sync::", stringify!($guard), "::try_map`].")]
        ///
        /// # Errors
        ///
        /// This guard, if `f` returns nothing.
        #[inline]
        pub fn try_map<$part, F>(this: Self, f: F) -> Result<$other, Self>
        where
            $part: ?Sized,
            F: FnOnce($($reference)+ $target) -> Option<$($reference)+ $part>,
        {
            match this.data.try_map(f) {
                Ok(data) => Ok(<$other>::new(data, this.lease.into())),
                Err(data) => Err(Self::new(data, this.lease)),
            }
        }
    };
}
pub(crate) use map;
