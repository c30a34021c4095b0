//! Open spans: what the owner of a slot is doing, however long ago it began.
//!
//! A slot of a ring whose header has [`Header::span_entries`](crate::Header::span_entries) has that many entries after
//! its words. An entry is in use if its [`OpenSpan::begin`] is not 0. The owner enters a span after it has recorded the
//! event that begins the span, and frees the entry before it records the event that ends it. Spans may end in another
//! order than they began, so free entries may be anywhere.
//!
//! The entry is written from its end to its start: `begin` last. 12 bits of [`OpenSpan::since`] are a checksum of the
//! entry. If it does not fit, the entry was being written, or is damaged.

use core::sync::atomic::AtomicU64;

use crate::PAYLOAD_MASK;
use crate::checksum::FACTOR;

/// A slot has this many entries if it has any. A thread may have more open spans; they have no entry.
pub const SPANS_MAX: u32 = 16;

/// An open span.
#[repr(C)]
#[derive(Debug)]
pub struct OpenSpan {
    /// The PC word of the event that began it; 0 if the entry is free.
    pub begin: AtomicU64,
    /// When it began, ticks, or 0 if that is not known; the type of its first value; and a checksum: see
    /// [`span_since`].
    pub since: AtomicU64,
    /// Its first value: the bits of a number, or the address of a text by reference. For a text by value: the first 8
    /// bytes.
    pub value: AtomicU64,
}

/// Bytes of an entry.
pub const OPEN_SPAN_LEN_BYTES: u64 = size_of::<OpenSpan>() as u64;

/// [`OpenSpan::since`]: the first of the 4 bits of the first value's type, [`VALUE_NONE`](crate::VALUE_NONE) if the
/// span has no values.
pub const SPAN_TYPE_SHIFT: u32 = 48;
/// [`OpenSpan::since`]: the first of the 12 bits of the checksum.
pub const SPAN_CHECK_SHIFT: u32 = 52;

/// Packs [`OpenSpan::since`]. `begin` and `value` are the entry's other words.
///
/// The checksum mixes all three words by multiplication with [`FACTOR`], and keeps the upper 12 bits.
pub const fn span_since(begin: u64, ticks: u64, value_type: u64, value: u64) -> u64 {
    let since = ticks & PAYLOAD_MASK | (value_type & 0xf) << SPAN_TYPE_SHIFT;
    let sum = begin.rotate_left(32).wrapping_add(since).wrapping_mul(FACTOR) ^ value;
    since | sum.wrapping_mul(FACTOR) >> SPAN_CHECK_SHIFT << SPAN_CHECK_SHIFT
}

/// Returns the type of the first value, by [`OpenSpan::since`].
pub const fn span_value_type(since: u64) -> u64 {
    since >> SPAN_TYPE_SHIFT & 0xf
}

/// Returns whether the checksum in `since` fits the entry.
pub const fn is_span_sound(begin: u64, since: u64, value: u64) -> bool {
    since == span_since(begin, since, span_value_type(since), value)
}

const _: () = assert!(size_of::<OpenSpan>() == 24);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack;

    #[test]
    fn a_changed_bit_of_an_entry_contradicts_its_checksum() {
        let entry = [pack(77, 0x55ff_0000_1000, false), 0, 4711];
        let entry = [entry[0], span_since(entry[0], 0x1234_5678, 5, entry[2]), entry[2]];
        assert!(is_span_sound(entry[0], entry[1], entry[2]));
        let is_unnoticed = |bit: &usize| {
            let mut changed = entry;
            changed[bit / 64] ^= 1 << (bit % 64);
            is_span_sound(changed[0], changed[1], changed[2])
        };
        assert_eq!((0..192).find(is_unnoticed), None);
    }
}
