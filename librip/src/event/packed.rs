//! [`PackedValues`]: the values of an event of a program in C, as the header packs them.
//!
//! They have their types when the program runs, as [`AnyValue`](super::any_value::AnyValue)s have. An event of a C
//! program takes a third of the time if they are written as they are.

#![allow(unsafe_code, reason = "texts of a program in C")]

use core::ptr;

use librip_format::{
    SHAPE_TYPE_BITS, VALUE_BOOL, VALUE_BYTES, VALUE_I32, VALUE_NONE, VALUE_TEXT, VALUE_UNSIGNED, VALUES_MAX,
    bytes_words,
};

use super::primitive::{summary_of_bytes, write_bytes, write_double};
use super::text;
use super::values::Values;
use crate::process::slot::Words;

/// A value: `struct librip_value_1` of the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PackedValue {
    /// A number, the bits of a float, or the address of a text.
    pub bits: u64,
    /// `VALUE_*` in the lowest 8 bits. The length of a text is above, bytes.
    pub kind: u64,
}

const _: () = assert!(size_of::<PackedValue>() == 16, "the header says 16");

impl PackedValue {
    /// A text by value.
    pub fn bytes(bytes: &[u8]) -> PackedValue {
        let address = bytes.as_ptr().expose_provenance() as u64;
        PackedValue { bits: address, kind: VALUE_BYTES | (bytes.len() as u64) << 8 }
    }

    /// `VALUE_*`.
    #[inline(always)]
    pub fn value_type(self) -> u64 {
        self.kind & ((1 << SHAPE_TYPE_BITS) - 1)
    }

    #[inline(always)]
    fn len(self) -> usize {
        (self.kind >> 8) as usize
    }

    /// How many words it takes; 0 for a text by value.
    #[inline(always)]
    fn fixed_words(self) -> usize {
        const OF_ONE_WORD: u64 = 1 << VALUE_UNSIGNED | 1 << VALUE_I32 | 1 << VALUE_BOOL;
        const OF_TWO_WORDS: u64 = !(OF_ONE_WORD | 1 << VALUE_BYTES);
        let value_type = self.value_type();
        ((OF_ONE_WORD >> value_type & 1) | (OF_TWO_WORDS >> value_type & 1) << 1) as usize
    }
}

/// What the types of some values say.
#[derive(Clone, Copy, Debug, Default)]
pub struct PackedTypes {
    /// As a shape has them.
    types: u64,
    /// How many words the values take, those of texts by value left out.
    words: usize,
    set: u64,
}

impl PackedTypes {
    /// Looks at the first ten values.
    #[inline(always)]
    pub fn of(values: &[PackedValue]) -> PackedTypes {
        let mut all = PackedTypes::default();
        for (index, value) in values.iter().take(VALUES_MAX).enumerate() {
            all.types |= value.value_type() << (SHAPE_TYPE_BITS * index as u32);
            all.words += value.fixed_words();
            all.set |= 1 << value.value_type();
        }
        all
    }

    /// Whether one of the values has this type, `VALUE_*`.
    #[inline(always)]
    pub fn has(self, value_type: u64) -> bool {
        self.set >> value_type & 1 != 0
    }
}

/// The values of one event, of which the first ten count.
#[derive(Clone, Copy, Debug)]
pub struct PackedValues<'a> {
    values: &'a [PackedValue],
    types: PackedTypes,
}

impl<'a> PackedValues<'a> {
    /// These values, with what [`PackedTypes::of`] says of their types.
    ///
    /// # Safety
    ///
    /// Each [`VALUE_BYTES`] is the address and the length of a text that can be read for `'a`, and each [`VALUE_TEXT`]
    /// of one that lasts as long as the process and does not change.
    #[inline(always)]
    pub unsafe fn new(values: &'a [PackedValue], types: PackedTypes) -> PackedValues<'a> {
        PackedValues { values: &values[..values.len().min(VALUES_MAX)], types }
    }

    /// The bytes of a value that is a text by value.
    fn bytes(&self, value: PackedValue) -> &'a [u8] {
        // SAFETY: the promise of the one who made this.
        unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(value.bits as usize), value.len()) }
    }

    /// The bytes of a value that is a text by reference.
    fn static_bytes(&self, value: PackedValue) -> &'static [u8] {
        // SAFETY: the promise of the one who made this.
        unsafe { core::slice::from_raw_parts(ptr::with_exposed_provenance(value.bits as usize), value.len()) }
    }
}

#[allow(private_interfaces, reason = "as the trait")]
impl Values for PackedValues<'_> {
    #[inline(always)]
    fn types(&self) -> u64 {
        self.types.types
    }

    #[inline(always)]
    fn words(&self, kept_max: usize) -> usize {
        if !self.types.has(VALUE_BYTES) {
            return self.types.words;
        }
        let texts = self.values.iter().filter(|value| value.value_type() == VALUE_BYTES);
        self.types.words + texts.map(|text| bytes_words(text.len().min(kept_max))).sum::<usize>()
    }

    #[inline(always)]
    fn prepare(&self) {
        if self.types.has(VALUE_TEXT) {
            for &value in self.values.iter().filter(|value| value.value_type() == VALUE_TEXT) {
                text::copy(self.static_bytes(value));
            }
        }
    }

    #[inline(always)]
    fn write(&self, kept_max: usize, words: &mut Words) {
        for &value in self.values {
            if value.fixed_words() == 1 {
                words.operand(value.bits);
            } else {
                match value.value_type() {
                    VALUE_BYTES => {
                        let bytes = self.bytes(value);
                        write_bytes(bytes, bytes.len(), kept_max, words);
                    }
                    VALUE_TEXT => {
                        words.operand(value.bits);
                        words.operand(value.len() as u64);
                    }
                    _ => write_double(value.bits, words),
                }
            }
        }
    }

    #[inline(always)]
    fn first(&self) -> (u64, u64) {
        match self.values.first() {
            Some(&value) if value.value_type() == VALUE_BYTES => {
                (VALUE_BYTES, summary_of_bytes(self.bytes(value)))
            }
            Some(&value) => (value.value_type(), value.bits),
            None => (VALUE_NONE, 0),
        }
    }
}
