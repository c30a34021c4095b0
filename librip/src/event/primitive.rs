//! [`Primitive`]: the values that the format knows, and the words of each.
//!
//! `librip_format::event` defines the words.

use librip_format::{
    BYTES_LEN_MAX, BYTES_PER_WORD, VALUE_BOOL, VALUE_BYTES, VALUE_CHAR, VALUE_F32, VALUE_F64, VALUE_I8,
    VALUE_I16, VALUE_I32, VALUE_I64, VALUE_POINTER, VALUE_U64, VALUE_UNSIGNED, bytes_words,
};

use crate::process::slot::Words;

/// A value that an event can have as it is: see [`Value`](crate::Value). The types that implement it are all there are.
#[allow(private_interfaces, reason = "the functions are for this crate alone")]
pub trait Primitive: Copy + sealed::Sealed {
    #[doc(hidden)]
    const TYPE: u64;

    /// How many words it takes, if a text keeps at most this many bytes.
    #[doc(hidden)]
    fn words(&self, kept_max: usize) -> usize;

    /// Runs before the words are reserved.
    #[doc(hidden)]
    #[inline(always)]
    fn prepare(&self) {}

    /// Writes that many words.
    #[doc(hidden)]
    fn write(&self, kept_max: usize, words: &mut Words);

    /// What an entry of the table of open spans has of it.
    #[doc(hidden)]
    fn summary(&self) -> u64;
}

pub(super) mod sealed {
    /// No other crate can implement it.
    pub trait Sealed {}
}

/// Implements [`Primitive`] for a type of 48 bits or fewer.
macro_rules! one_word {
    ($($type:ty: $kind:ident, $bits:expr;)+) => {
        $(
            impl sealed::Sealed for $type {}

            #[allow(private_interfaces, reason = "as the trait")]
            impl Primitive for $type {
                const TYPE: u64 = $kind;

                #[inline(always)]
                fn words(&self, _kept_max: usize) -> usize {
                    1
                }

                #[inline(always)]
                fn write(&self, _kept_max: usize, words: &mut Words) {
                    words.operand(self.summary());
                }

                #[inline(always)]
                fn summary(&self) -> u64 {
                    let bits: fn($type) -> u64 = $bits;
                    bits(*self)
                }
            }
        )+
    };
}

one_word! {
    u8: VALUE_UNSIGNED, u64::from;
    u16: VALUE_UNSIGNED, u64::from;
    u32: VALUE_UNSIGNED, u64::from;
    i8: VALUE_I8, |value| u64::from(value as u8);
    i16: VALUE_I16, |value| u64::from(value as u16);
    i32: VALUE_I32, |value| u64::from(value as u32);
    f32: VALUE_F32, |value| u64::from(value.to_bits());
    bool: VALUE_BOOL, u64::from;
    char: VALUE_CHAR, u64::from;
}

/// Implements [`Primitive`] for a type of 64 bits.
macro_rules! two_words {
    ($([$($generic:ident)?] $type:ty: $kind:ident, $bits:expr;)+) => {
        $(
            impl<$($generic)?> sealed::Sealed for $type {}

            #[allow(private_interfaces, reason = "as the trait")]
            impl<$($generic)?> Primitive for $type {
                const TYPE: u64 = $kind;

                #[inline(always)]
                fn words(&self, _kept_max: usize) -> usize {
                    2
                }

                #[inline(always)]
                fn write(&self, _kept_max: usize, words: &mut Words) {
                    write_double(self.summary(), words);
                }

                #[inline(always)]
                fn summary(&self) -> u64 {
                    let bits: fn($type) -> u64 = $bits;
                    bits(*self)
                }
            }
        )+
    };
}

two_words! {
    [] u64: VALUE_U64, |value| value;
    [] usize: VALUE_U64, |value| value as u64;
    [] i64: VALUE_I64, |value| value as u64;
    [] isize: VALUE_I64, |value| value as u64;
    [] f64: VALUE_F64, f64::to_bits;
    [T] *const T: VALUE_POINTER, |value| value.addr() as u64;
}

/// Writes 64 bits, the low 32 first.
#[inline(always)]
pub(super) fn write_double(bits: u64, words: &mut Words) {
    words.operand(bits & u64::from(u32::MAX));
    words.operand(bits >> u32::BITS);
}

impl sealed::Sealed for &str {}

#[allow(private_interfaces, reason = "as the trait")]
impl Primitive for &str {
    const TYPE: u64 = VALUE_BYTES;

    #[inline(always)]
    fn words(&self, kept_max: usize) -> usize {
        bytes_words(self.len().min(kept_max))
    }

    #[inline(always)]
    fn write(&self, kept_max: usize, words: &mut Words) {
        write_bytes(self.as_bytes(), self.len(), kept_max, words);
    }

    fn summary(&self) -> u64 {
        summary_of_bytes(self.as_bytes())
    }
}

/// The beginning of a text by value that need not be UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    pub(crate) bytes: &'a [u8],
    /// The length of the whole text.
    pub(crate) len: usize,
    /// No more bytes are kept, also if the event has room for more.
    pub(crate) kept_max: usize,
}

impl sealed::Sealed for Bytes<'_> {}

#[allow(private_interfaces, reason = "as the trait")]
impl Primitive for Bytes<'_> {
    const TYPE: u64 = VALUE_BYTES;

    #[inline(always)]
    fn words(&self, kept_max: usize) -> usize {
        bytes_words(self.bytes.len().min(kept_max.min(self.kept_max)))
    }

    #[inline(always)]
    fn write(&self, kept_max: usize, words: &mut Words) {
        write_bytes(self.bytes, self.len, kept_max.min(self.kept_max), words);
    }

    fn summary(&self) -> u64 {
        summary_of_bytes(self.bytes)
    }
}

/// The first 8 bytes of a text.
pub(super) fn summary_of_bytes(text: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.iter_mut().zip(text).for_each(|(first, byte)| *first = *byte);
    u64::from_le_bytes(first)
}

/// Writes a text by value, of whose `len` bytes these are the first ones.
#[inline(never)]
pub(super) fn write_bytes(bytes: &[u8], len: usize, kept_max: usize, words: &mut Words) {
    let kept = &bytes[..bytes.len().min(kept_max)];
    let len = (len.max(kept.len()) as u64).min(BYTES_LEN_MAX);
    words.operand(kept.len() as u64 | len << librip_format::BYTES_KEPT_BITS);
    for chunk in kept.chunks(BYTES_PER_WORD) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        words.operand(u64::from_le_bytes(word));
    }
}
