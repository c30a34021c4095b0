//! What the drop-ins take as it is from the types that they wrap, which are in the field `inner`.
//!
//! Nothing of it is recorded.

/// Defines methods that call the method of the same name of the wrapped type, whose path comes first.
macro_rules! forward {
    ($($path:ident)::+;) => {};
    ($($path:ident)::+; $(#[$meta:meta])* fn same_channel(&self, other: &Self) -> bool; $($rest:tt)*) => {
        #[doc = concat!("See [`", $(stringify!($path), "::",)+ "same_channel`].")]
        $(#[$meta])*
        pub fn same_channel(&self, other: &Self) -> bool {
            self.inner.same_channel(&other.inner)
        }
        $crate::forward::forward!($($path)::+; $($rest)*);
    };
    (
        $($path:ident)::+; $(#[$meta:meta])*
        fn $name:ident(&mut $self:ident $(, $argument:ident: $type:ty)*) $(-> $returned:ty)?; $($rest:tt)*
    ) => {
        #[doc = concat!("See [`", $(stringify!($path), "::",)+ stringify!($name), "`].")]
        $(#[$meta])*
        pub fn $name(&mut $self $(, $argument: $type)*) $(-> $returned)? {
            $self.inner.$name($($argument),*)
        }
        $crate::forward::forward!($($path)::+; $($rest)*);
    };
    (
        $($path:ident)::+; $(#[$meta:meta])*
        fn $name:ident(&$self:ident $(, $argument:ident: $type:ty)*) $(-> $returned:ty)?; $($rest:tt)*
    ) => {
        #[doc = concat!("See [`", $(stringify!($path), "::",)+ stringify!($name), "`].")]
        $(#[$meta])*
        pub fn $name(&$self $(, $argument: $type)*) $(-> $returned)? {
            $self.inner.$name($($argument),*)
        }
        $crate::forward::forward!($($path)::+; $($rest)*);
    };
    (
        $($path:ident)::+; $(#[$meta:meta])*
        fn $name:ident($self:ident $(, $argument:ident: $type:ty)*) $(-> $returned:ty)?; $($rest:tt)*
    ) => {
        #[doc = concat!("See [`", $(stringify!($path), "::",)+ stringify!($name), "`].")]
        $(#[$meta])*
        pub fn $name($self $(, $argument: $type)*) $(-> $returned)? {
            $self.inner.$name($($argument),*)
        }
        $crate::forward::forward!($($path)::+; $($rest)*);
    };
}
pub(crate) use forward;

/// Defines `Debug` of types with a parameter `T` as that of the wrapped type.
macro_rules! debug_as_inner {
    ($($type:ty),*) => {$(
        impl<T> ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.inner.fmt(f)
            }
        }
    )*};
}
pub(crate) use debug_as_inner;
