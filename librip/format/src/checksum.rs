//! Checksums of what is written once: the header's identity and geometry, modules, sites, their texts, names of locks,
//! texts of events, locations of calls, and the places and the longest ones of polls.
//!
//! They tell a flipped bit from a fact. They are no protection against a writer that means harm: it can compute them
//! too.
//!
//! The state of a complete entry is its checksum, which is odd. So a reader that sees it sees all that it covers:
//!
//! | entry | covered |
//! |---|---|
//! | [`Module`](crate::Module) | the entry after its state, and the checksum of its path |
//! | [`Site`](crate::Site) | the entry after its state, and the checksum of its text |
//! | [`StaticText`](crate::StaticText) | the entry after its state, and the checksum of its text |
//! | [`LockName`](crate::LockName) | the entry after its state |
//! | [`CallLocation`](crate::CallLocation) | the entry after its state |
//! | [`Channel`](crate::Channel) | the entry after its state, and the checksum of its name |
//! | [`PollPlace`](crate::PollPlace) | the entry after its state, up to the longest polls |
//! | [`LongPoll`](crate::LongPoll) | the entry after its state |
//! | [`Header`] | [`HEADER_CHECKED`], in [`Header::checksum`] |
//!
//! What changes while the process runs has none: counters, slots, words. Entries of held-lock tables have small ones of
//! their own: see [`held_meta`](crate::held_meta).

use core::mem::{offset_of, size_of};

use crate::{Header, REGIONS_MAX, Region};

/// 2^64 divided by the golden ratio.
pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The checksum of bytes that are added piece by piece.
///
/// The bytes of a piece are taken in words of eight, little-endian; the last one is padded with zeros. Each word is
/// xored into the sum, which is then multiplied by [`FACTOR`], and xored with its own upper half.
/// Each step can be reversed, so a change in one word always changes the sum. After a piece, its length is added as one
/// more word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// The checksum of an empty input.
    pub const fn new() -> Checksum {
        Checksum(0)
    }

    /// The same with one more piece.
    #[must_use]
    pub fn with(self, piece: &[u8]) -> Checksum {
        let (words, rest) = piece.as_chunks::<8>();
        let sum = words.iter().fold(self, |sum, &word| sum.with_word(u64::from_le_bytes(word)));
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(byte, &rest)| *byte = rest);
        let sum = if rest.is_empty() { sum } else { sum.with_word(u64::from_le_bytes(last)) };
        sum.with_word(piece.len() as u64)
    }

    /// The same with the checksum of other bytes, as one more word.
    #[must_use]
    pub const fn with_sum(self, other: Checksum) -> Checksum {
        self.with_word(other.0)
    }

    /// All 64 bits.
    pub const fn sum(self) -> u64 {
        self.0
    }

    const fn with_word(self, word: u64) -> Checksum {
        let mixed = (self.0 ^ word).wrapping_mul(FACTOR);
        Checksum(mixed ^ mixed >> 32)
    }

    /// The state of a complete entry with this checksum: odd.
    pub const fn state(self) -> u32 {
        self.0 as u32 | 1
    }
}

/// Whether this is the state of a complete entry.
pub const fn is_complete(state: u32) -> bool {
    state & 1 == 1
}

/// The parts of the header that are written once, as offset and length, bytes. The regions are among them without
/// [`Region::used`].
pub const HEADER_CHECKED: [(usize, usize); REGIONS_MAX + 4] = {
    let begin = offset_of!(Header, byte_order);
    let clock = offset_of!(Header, clock_level);
    let last = offset_of!(Header, time_namespace);
    let channels = offset_of!(Header, channel_entries);
    let mut parts = [(begin, offset_of!(Header, checksum) - begin); REGIONS_MAX + 4];
    parts[1] = (clock, offset_of!(Header, clock_ticks_per_kilosecond) - clock);
    parts[2] = (last, offset_of!(Header, incidents) - last);
    parts[3] = (channels, offset_of!(Header, channels_refused) - channels);
    let mut region = 0;
    while region < REGIONS_MAX {
        let at = offset_of!(Header, regions) + region * size_of::<Region>();
        parts[4 + region] = (at, offset_of!(Region, used));
        region += 1;
    }
    parts
};

/// The checksum of a header. `part` returns bytes of it, by offset and length.
pub fn header_checksum<'a>(part: impl Fn(usize, usize) -> &'a [u8]) -> u64 {
    let sum = HEADER_CHECKED.iter().fold(Checksum::new(), |sum, &(at, len)| sum.with(part(at, len)));
    u64::from(sum.state())
}
