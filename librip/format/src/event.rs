//! Events with values: what the words of one event say, apart from its site.
//!
//! The types of the values are not in the site: a generic function may have one site and values of several types. So
//! the last operand word, the *shape*, says what stands before it, and how many words that is:
//!
//! ```text
//!  47 46 45      40 39                                  0
//! +--+--+----------+-------------------------------------+
//! |L |T | words    | types of ten values, 4 bits each    |    L: the values were left out, T: the first word is a time
//! +--+--+----------+-------------------------------------+
//! ```
//!
//! The first value's type is in the lowest bits. After the last value, the types are [`VALUE_NONE`]. *Words* is the
//! number of operand words before the shape.
//!
//! | type | words | contents |
//! |---|---|---|
//! | [`VALUE_UNSIGNED`] | 1 | an integer without sign, of at most 32 bits |
//! | [`VALUE_I8`], [`VALUE_I16`], [`VALUE_I32`] | 1 | an integer, in the lowest bits |
//! | [`VALUE_U64`], [`VALUE_I64`] | 2 | an integer, the low 32 bits first |
//! | [`VALUE_F32`] | 1 | the bits of a float |
//! | [`VALUE_F64`] | 2 | the bits of a float, the low 32 bits first |
//! | [`VALUE_BOOL`] | 1 | 0 or 1 |
//! | [`VALUE_CHAR`] | 1 | a Unicode scalar value |
//! | [`VALUE_POINTER`] | 2 | an address, the low 32 bits first |
//! | [`VALUE_BYTES`] | 1 and more | a text by value: see below |
//! | [`VALUE_TEXT`], [`VALUE_NAME`] | 2 | a text by reference: its address, and its length in bytes |
//!
//! The first word of a text by value has the number of bytes that were kept in its lowest [`BYTES_KEPT_BITS`] bits, and
//! the length of the whole text above, at most [`BYTES_LEN_MAX`]. The kept bytes follow, [`BYTES_PER_WORD`] in a word,
//! the first one in the lowest bits. They may be cut within a character, and need not be UTF-8.

use core::sync::atomic::AtomicU32;

use crate::Text;

/// The bits of a value's type.
pub const SHAPE_TYPE_BITS: u32 = 4;
/// An event has at most this many values.
pub const VALUES_MAX: usize = 10;
/// The first bit of the number of words.
pub const SHAPE_WORDS_SHIFT: u32 = SHAPE_TYPE_BITS * VALUES_MAX as u32;
/// An event has at most this many operand words before its shape.
pub const SHAPE_WORDS_MAX: u64 = 63;
/// In a shape: the first operand word is the time of the event, ticks.
pub const SHAPE_TIME: u64 = 1 << 46;
/// In a shape: the values were left out, because they take more words than the slot or an event has.
pub const SHAPE_LEFT_OUT: u64 = 1 << 47;

/// No value.
pub const VALUE_NONE: u64 = 0;
/// `u8`, `u16` or `u32`.
pub const VALUE_UNSIGNED: u64 = 1;
/// `i8`.
pub const VALUE_I8: u64 = 2;
/// `i16`.
pub const VALUE_I16: u64 = 3;
/// `i32`.
pub const VALUE_I32: u64 = 4;
/// `u64` or `usize`.
pub const VALUE_U64: u64 = 5;
/// `i64` or `isize`.
pub const VALUE_I64: u64 = 6;
/// `f32`.
pub const VALUE_F32: u64 = 7;
/// `f64`.
pub const VALUE_F64: u64 = 8;
/// `bool`.
pub const VALUE_BOOL: u64 = 9;
/// `char`.
pub const VALUE_CHAR: u64 = 10;
/// A pointer.
pub const VALUE_POINTER: u64 = 11;
/// A text by value.
pub const VALUE_BYTES: u64 = 12;
/// A text by reference, which lasts as long as the process: an entry of [`REGION_STRINGS`](crate::REGION_STRINGS), or
/// a constant of the program.
pub const VALUE_TEXT: u64 = 13;
/// The name of an enum's variant, a text by reference.
pub const VALUE_NAME: u64 = 14;

/// A word of a text has this many bytes.
pub const BYTES_PER_WORD: usize = 6;
/// A text by value keeps at most this many bytes, unless it is the message of an event.
pub const BYTES_KEPT_MAX: usize = 48;
/// The message of an event of a bridge keeps at most this many bytes, if the event has room for them.
pub const BYTES_KEPT_MAX_OF_MESSAGE: usize = 240;
/// A text by value keeps at most this many bytes in an event whose texts would not fit otherwise.
pub const BYTES_KEPT_MAX_OF_MANY: usize = 18;
/// The first word of a text: the bits of the number of kept bytes.
pub const BYTES_KEPT_BITS: u32 = 8;
/// The first word of a text: no greater length is recorded.
pub const BYTES_LEN_MAX: u64 = (1 << 40) - 1;

/// The types of values, packed as a shape has them. Values beyond [`VALUES_MAX`] do not compile.
pub const fn shape_types(types: &[u64]) -> u64 {
    assert!(types.len() <= VALUES_MAX, "an event has at most ten values");
    let mut packed = 0;
    let mut at = 0;
    while at < types.len() {
        packed |= types[at] << (SHAPE_TYPE_BITS * at as u32);
        at += 1;
    }
    packed
}

/// The number of operand words before a shape.
pub const fn shape_words(shape: u64) -> u64 {
    shape >> SHAPE_WORDS_SHIFT & SHAPE_WORDS_MAX
}

/// The type of a value, by its index from 0.
pub const fn shape_type(shape: u64, index: usize) -> u64 {
    if index >= VALUES_MAX {
        return VALUE_NONE;
    }
    shape >> (SHAPE_TYPE_BITS * index as u32) & ((1 << SHAPE_TYPE_BITS) - 1)
}

/// Returns how many words a text takes of which this many bytes are kept.
pub const fn bytes_words(kept: usize) -> usize {
    1 + kept.div_ceil(BYTES_PER_WORD)
}

/// A text to which events refer by its address: an entry of [`REGION_STRINGS`](crate::REGION_STRINGS).
///
/// The first thread that records the text enters it. Some texts may be entered twice.
#[repr(C)]
#[derive(Debug)]
pub struct StaticText {
    /// The entry's [checksum](crate::checksum), written last; 0 before.
    pub state: AtomicU32,
    /// The process.
    pub pid: u32,
    /// The actual address of the text in that process.
    pub address: u64,
    /// The text, of which at most [`STATIC_TEXT_LEN_MAX`] bytes are copied.
    pub text: Text,
    /// The length of the whole text, bytes.
    pub len_bytes: u64,
}

/// A [`StaticText`] keeps at most this many bytes.
pub const STATIC_TEXT_LEN_MAX: usize = 256;

const _: () = {
    assert!(size_of::<StaticText>() == 32);
    assert!(SHAPE_WORDS_MAX << SHAPE_WORDS_SHIFT & (SHAPE_TIME | SHAPE_LEFT_OUT) == 0);
    assert!((SHAPE_WORDS_MAX << SHAPE_WORDS_SHIFT) < SHAPE_TIME && SHAPE_LEFT_OUT < 1 << 48);
    assert!(BYTES_KEPT_MAX < BYTES_KEPT_MAX_OF_MESSAGE && BYTES_KEPT_MAX_OF_MESSAGE < 1 << BYTES_KEPT_BITS);
    assert!(bytes_words(BYTES_KEPT_MAX_OF_MESSAGE) < SHAPE_WORDS_MAX as usize);
    // Ten texts and a time fit if all are cut to the shorter length.
    assert!(VALUES_MAX * bytes_words(BYTES_KEPT_MAX_OF_MANY) < SHAPE_WORDS_MAX as usize);
};
