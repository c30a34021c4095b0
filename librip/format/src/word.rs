//! The word: the 64 bits that a mark stores with one instruction.
//!
//! ```text
//!  63        49 48 47                                   0
//! +------------+--+--------------------------------------+
//! | sequence   |op| payload: a PC, or an operand         |
//! +------------+--+--------------------------------------+
//! ```
//!
//! A slot with *N* words keeps the word with sequence *s* at index *s* mod *N*. The upper 15 bits of that word are
//! *s* mod 2^15. A word of all zeros was never written. Bit 48 is clear for a PC and set for an operand.
//!
//! An *event* is a PC word and the operand words directly before it. The site of the PC says how many operand words
//! there are. The payload of a PC word may also be a [`call`](crate::call), which has no site and one operand.

/// The first bit of a word's sequence.
pub const SEQUENCE_SHIFT: u32 = 49;
/// A word keeps this many bits of its sequence.
pub const SEQUENCE_BITS: u32 = 15;
/// Set in an operand word, clear in a PC word.
pub const OPERAND_FLAG: u64 = 1 << 48;
/// The bits of a word that hold a PC or an operand.
pub const PAYLOAD_MASK: u64 = OPERAND_FLAG - 1;

/// Packs a word. Only the lower 15 bits of `sequence` and the lower 48 bits of `payload` are kept.
///
/// ```
/// use librip_format::{pack, payload, sequence_bits};
///
/// let word = pack(1_000_003, 0x5555_0000_1234, false);
/// assert_eq!(payload(word), 0x5555_0000_1234);
/// assert_eq!(sequence_bits(word), 1_000_003 % (1 << 15));
/// ```
pub const fn pack(sequence: u64, payload: u64, operand: bool) -> u64 {
    (sequence << SEQUENCE_SHIFT) | if operand { OPERAND_FLAG } else { 0 } | (payload & PAYLOAD_MASK)
}

/// Returns the lower 15 bits of the word's sequence.
pub const fn sequence_bits(word: u64) -> u64 {
    word >> SEQUENCE_SHIFT
}

/// Returns the PC or the operand of a word.
pub const fn payload(word: u64) -> u64 {
    word & PAYLOAD_MASK
}

/// Returns whether a word is an operand.
pub const fn is_operand(word: u64) -> bool {
    word & OPERAND_FLAG != 0
}
