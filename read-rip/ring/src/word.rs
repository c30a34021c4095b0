//! The word of a slot: a PC or an operand, with the low bits of its sequence.
//!
//! It does not know which events words make: that depends on their sites.

/// One word of a slot, or the gap that a word left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// Stands for a word that is not known.
    pub const MISSING: Word = Word(0);

    /// The word as the ring holds it. All zeros is a word that was never written.
    pub const fn from_raw(raw: u64) -> Word {
        Word(raw)
    }

    /// The word of a passed mark.
    pub const fn pc(sequence: u64, pc: u64) -> Word {
        Word(librip_format::pack(sequence, pc, false))
    }

    pub const fn operand(sequence: u64, operand: u64) -> Word {
        Word(librip_format::pack(sequence, operand, true))
    }

    /// The word as the ring holds it.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Whether this word is not known.
    pub const fn is_missing(self) -> bool {
        self.0 == 0
    }

    /// Whether this word is an operand, and not a PC.
    pub const fn is_operand(self) -> bool {
        librip_format::is_operand(self.0)
    }

    /// The PC or the operand, 48 bits.
    pub const fn payload(self) -> u64 {
        librip_format::payload(self.0)
    }

    /// The low [`SequenceBits::COUNT`] bits of the word's sequence.
    pub const fn sequence(self) -> SequenceBits {
        SequenceBits(librip_format::sequence_bits(self.0))
    }
}

/// The low bits of a sequence: as much of it as a word keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceBits(u64);

impl SequenceBits {
    pub const COUNT: u32 = librip_format::SEQUENCE_BITS;
    /// The number of sequences that these bits tell apart.
    pub const PERIOD: u64 = 1 << Self::COUNT;

    /// The low bits of a full sequence.
    pub const fn of(sequence: u64) -> SequenceBits {
        SequenceBits(sequence % Self::PERIOD)
    }

    /// Whether a sequence with these bits has its word at this index of `n`, a power of two.
    pub(crate) const fn is_of_index(self, index: u64, n: u64) -> bool {
        self.0 % n == index
    }

    /// The largest full sequence up to `limit` that has these bits; `None` if there is none.
    pub const fn latest_until(self, limit: u64) -> Option<u64> {
        limit.checked_sub(limit.wrapping_sub(self.0) % Self::PERIOD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_bits_and_a_limit_name_one_sequence() {
        const LAST: u64 = SequenceBits::PERIOD - 1;
        for sequence in [0, 1, 32_767, 32_768, 1_000_000, u64::from(u32::MAX) * 9] {
            let bits = Word::pc(sequence, 1).sequence();
            assert_eq!(bits, SequenceBits::of(sequence));
            assert_eq!(bits.latest_until(sequence), Some(sequence));
            assert_eq!(bits.latest_until(sequence + LAST), Some(sequence));
            assert_eq!(bits.latest_until(sequence + LAST + 1), Some(sequence + LAST + 1));
        }
        assert_eq!(SequenceBits::of(5).latest_until(4), None);
    }
}
