//! [`Values`]: the values of one event, up to ten. `values` has them as a tuple, `any_value` as a slice.

use librip_format::{BYTES_KEPT_MAX, VALUE_NONE, shape_types};

use super::primitive::Primitive;
use crate::process::slot::Words;

/// The values of one event.
#[allow(private_interfaces, unnameable_types, reason = "macros call what takes it, and no one names it")]
pub trait Values {
    /// As much is kept of the longest text if there is room.
    #[doc(hidden)]
    const KEPT_MAX: usize = BYTES_KEPT_MAX;

    /// Their types, as a shape has them.
    #[doc(hidden)]
    fn types(&self) -> u64;

    /// As [`Primitive::words`], of all.
    #[doc(hidden)]
    fn words(&self, kept_max: usize) -> usize;

    /// As [`Primitive::prepare`], of all.
    #[doc(hidden)]
    fn prepare(&self);

    /// As [`Primitive::write`], of all.
    #[doc(hidden)]
    fn write(&self, kept_max: usize, words: &mut Words);

    /// The type of the first value, and its [`Primitive::summary`].
    #[doc(hidden)]
    fn first(&self) -> (u64, u64);
}

#[allow(private_interfaces, reason = "as the trait")]
impl Values for () {
    #[inline(always)]
    fn types(&self) -> u64 {
        0
    }

    #[inline(always)]
    fn words(&self, _kept_max: usize) -> usize {
        0
    }

    #[inline(always)]
    fn prepare(&self) {}

    #[inline(always)]
    fn write(&self, _kept_max: usize, _words: &mut Words) {}

    #[inline(always)]
    fn first(&self) -> (u64, u64) {
        (VALUE_NONE, 0)
    }
}

/// Implements [`Values`] for a tuple with these type parameters and indices.
macro_rules! tuple {
    ($($value:ident $index:tt),+) => {
        #[allow(private_interfaces, reason = "as the trait")]
        impl<$($value: Primitive),+> Values for ($($value,)+) {
            #[inline(always)]
            fn types(&self) -> u64 {
                const { shape_types(&[$($value::TYPE),+]) }
            }

            #[inline(always)]
            fn words(&self, kept_max: usize) -> usize {
                0 $(+ self.$index.words(kept_max))+
            }

            #[inline(always)]
            fn prepare(&self) {
                $(self.$index.prepare();)+
            }

            #[inline(always)]
            fn write(&self, kept_max: usize, words: &mut Words) {
                $(self.$index.write(kept_max, words);)+
            }

            #[inline(always)]
            fn first(&self) -> (u64, u64) {
                (A::TYPE, self.0.summary())
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
