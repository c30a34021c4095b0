//! [`Value`]: what an event can record, and how the program's own types say so.

use super::primitive::Primitive;

/// A type whose values [`rip_event!`](crate::rip_event) and [`rip_span!`](crate::rip_span) record.
///
/// These are integers of up to 64 bits, `f32`, `f64`, `bool`, `char`, raw pointers, `str` and `String`, texts by
/// reference ([`Text`](crate::Text)), and references to all of them. A type of your own says which of them stands for
/// it. With the feature `macros`, `#[derive(Value)]` does that for enums, by the name of the variant, and for structs
/// with one field, by that field.
///
/// # Examples
///
/// ```
/// use librip::{Value, rip_event};
///
/// struct DiskId(u32);
///
/// impl Value for DiskId {
///     type Recorded<'a> = u32;
///
///     fn recorded(&self) -> u32 {
///         self.0
///     }
/// }
///
/// rip_event!("disk {} is full", DiskId(7));
/// ```
///
/// A type that is none of these does not compile:
///
/// ```compile_fail
/// librip::rip_event!("took {:?}", std::time::Duration::ZERO);
/// ```
pub trait Value {
    /// What is recorded in its place.
    type Recorded<'a>: Primitive
    where
        Self: 'a;

    /// Returns what is recorded in its place.
    fn recorded(&self) -> Self::Recorded<'_>;
}

impl<T: Value + ?Sized> Value for &T {
    type Recorded<'a>
        = T::Recorded<'a>
    where
        Self: 'a;

    #[inline(always)]
    fn recorded(&self) -> T::Recorded<'_> {
        (**self).recorded()
    }
}

impl<T: Value + ?Sized> Value for &mut T {
    type Recorded<'a>
        = T::Recorded<'a>
    where
        Self: 'a;

    #[inline(always)]
    fn recorded(&self) -> T::Recorded<'_> {
        (**self).recorded()
    }
}

/// Implements [`Value`] for types that stand for themselves.
macro_rules! stand_for_themselves {
    ($($type:ty),+) => {
        $(impl Value for $type {
            type Recorded<'a> = $type;

            #[inline(always)]
            fn recorded(&self) -> $type {
                *self
            }
        })+
    };
}

stand_for_themselves!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, bool, char);
stand_for_themselves!(super::text::Text, super::text::Name);

impl<T> Value for *const T {
    type Recorded<'a>
        = *const T
    where
        Self: 'a;

    #[inline(always)]
    fn recorded(&self) -> *const T {
        *self
    }
}

impl<T> Value for *mut T {
    type Recorded<'a>
        = *const T
    where
        Self: 'a;

    #[inline(always)]
    fn recorded(&self) -> *const T {
        self.cast_const()
    }
}

impl Value for str {
    type Recorded<'a> = &'a str;

    #[inline(always)]
    fn recorded(&self) -> &str {
        self
    }
}

impl Value for String {
    type Recorded<'a> = &'a str;

    #[inline(always)]
    fn recorded(&self) -> &str {
        self
    }
}
