//! [`AnyValue`]: a value whose type is known only when the program runs.

use librip_format::{BYTES_KEPT_MAX, BYTES_KEPT_MAX_OF_MESSAGE, SHAPE_TYPE_BITS, VALUES_MAX};

use super::primitive::{Bytes, Primitive};
use super::text::Text;
use super::values::Values;
use crate::process::slot::Words;

/// A value whose type is known only when the program runs, for the events of other languages and interfaces.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AnyValue<'a> {
    /// An integer without sign.
    U32(u32),
    /// An integer without sign.
    U64(u64),
    /// An integer.
    I32(i32),
    /// An integer.
    I64(i64),
    /// A float.
    F64(f64),
    /// A truth value.
    Bool(bool),
    /// A Unicode scalar value.
    Char(char),
    /// An address.
    Pointer(*const ()),
    /// A text by value, which need not be UTF-8. At most 48 bytes of it are kept.
    Bytes(&'a [u8]),
    /// The beginning of a text by value, and the length of the whole text in bytes, which need not be UTF-8. At most 48
    /// bytes are kept.
    Beginning(&'a [u8], usize),
    /// The same of a message: at most 240 bytes are kept, and fewer if the event has no room for so many.
    Message(&'a [u8], usize),
    /// A text by reference.
    Text(Text),
}

/// Evaluates an expression with the [`Primitive`] that a value is.
macro_rules! with_primitive {
    ($any:expr, $value:ident => $then:expr) => {
        match $any {
            AnyValue::U32($value) => $then,
            AnyValue::U64($value) => $then,
            AnyValue::I32($value) => $then,
            AnyValue::I64($value) => $then,
            AnyValue::F64($value) => $then,
            AnyValue::Bool($value) => $then,
            AnyValue::Char($value) => $then,
            AnyValue::Pointer($value) => $then,
            AnyValue::Bytes(bytes) => {
                let $value = Bytes { bytes, len: bytes.len(), kept_max: BYTES_KEPT_MAX };
                $then
            }
            AnyValue::Beginning(bytes, len) => {
                let $value = Bytes { bytes, len, kept_max: BYTES_KEPT_MAX };
                $then
            }
            AnyValue::Message(bytes, len) => {
                let $value = Bytes { bytes, len, kept_max: BYTES_KEPT_MAX_OF_MESSAGE };
                $then
            }
            AnyValue::Text($value) => $then,
        }
    };
}

#[inline(always)]
fn type_of<P: Primitive>(_: P) -> u64 {
    P::TYPE
}

/// The first ten values: an event has no more.
#[inline(always)]
fn recorded<'a, 'v>(values: &'a [AnyValue<'v>]) -> &'a [AnyValue<'v>] {
    &values[..values.len().min(VALUES_MAX)]
}

#[allow(private_interfaces, reason = "as the trait")]
impl Values for &[AnyValue<'_>] {
    const KEPT_MAX: usize = BYTES_KEPT_MAX_OF_MESSAGE;

    #[inline]
    fn types(&self) -> u64 {
        let types = recorded(self).iter().map(|&value| with_primitive!(value, value => type_of(value)));
        types.zip((0..).step_by(SHAPE_TYPE_BITS as usize)).fold(0, |all, (own, at)| all | own << at)
    }

    #[inline]
    fn words(&self, kept_max: usize) -> usize {
        recorded(self).iter().map(|&value| with_primitive!(value, value => value.words(kept_max))).sum()
    }

    #[inline]
    fn prepare(&self) {
        for &value in recorded(self) {
            with_primitive!(value, value => value.prepare());
        }
    }

    #[inline]
    fn write(&self, kept_max: usize, words: &mut Words) {
        for &value in recorded(self) {
            with_primitive!(value, value => value.write(kept_max, words));
        }
    }

    #[inline]
    fn first(&self) -> (u64, u64) {
        match <[_]>::first(self) {
            Some(&value) => with_primitive!(value, value => (type_of(value), value.summary())),
            None => (librip_format::VALUE_NONE, 0),
        }
    }
}
