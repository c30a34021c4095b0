//! The checksums of the format, typed from their description: the oracle checks them, and the builder writes them.
//!
//! It uses the [table](crate::format) of the tests, and nothing of `librip_format`.

use crate::format::{REGIONS, header_at, region_at};

/// 2^64 divided by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(sum: u64, word: u64) -> u64 {
    let product = (sum ^ word).wrapping_mul(FACTOR);
    product ^ (product >> 32)
}

/// `sum` with one more piece of bytes.
fn with_piece(sum: u64, piece: &[u8]) -> u64 {
    let word = |chunk: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    };
    let sum = piece.chunks(8).fold(sum, |sum, chunk| mixed(sum, word(chunk)));
    mixed(sum, piece.len() as u64)
}

/// Returns the state of a complete entry of these bytes, the state's included, without a text.
pub fn state(entry: &[u8]) -> u32 {
    with_piece(0, &entry[4..]) as u32 | 1
}

/// Returns the state of a complete entry with a text.
pub fn state_with_text(entry: &[u8], text: &[u8]) -> u32 {
    state_with_sum(entry, of_text(text))
}

/// Returns the checksum of several pieces.
pub fn of_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> u64 {
    pieces.fold(0, with_piece)
}

/// Returns the checksum of a text.
pub fn of_text(text: &[u8]) -> u64 {
    with_piece(0, text)
}

/// Returns the state of a complete entry with a text of this checksum.
pub fn state_with_sum(entry: &[u8], text: u64) -> u32 {
    mixed(with_piece(0, &entry[4..]), text) as u32 | 1
}

/// Returns what belongs in the header's checksum.
pub fn of_header(header: &[u8]) -> u64 {
    let parts = [
        (header_at::BYTE_ORDER, header_at::CHECKSUM),
        (header_at::CLOCK_LEVEL, header_at::CLOCK_TICKS_PER_KILOSECOND),
        (header_at::TIME_NAMESPACE, header_at::INCIDENTS),
        (header_at::CHANNEL_ENTRIES, header_at::CHANNELS_REFUSED),
    ];
    let region = |index: usize| header_at::REGIONS + region_at::LEN * index;
    let regions = (0..REGIONS).map(|index| (region(index), region(index) + region_at::USED));
    let sum = parts.into_iter().chain(regions).fold(0, |sum, (from, to)| with_piece(sum, &header[from..to]));
    u64::from(sum as u32 | 1)
}

/// Returns the meta word of an entry of a held-lock table, from its lock's word and its own without the lowest 8 bits.
pub fn held_meta(lock: u64, meta: u64) -> u64 {
    let pc = meta << 8 >> 16;
    let hash = lock.wrapping_add(pc).wrapping_mul(FACTOR).to_be_bytes()[0];
    meta | u64::from(hash ^ meta.to_be_bytes()[0])
}

/// Returns the third word of an entry of a held-lock table, with its checksum in the upper 4 bits.
pub fn held_since(since: u64) -> u64 {
    let nibbles = (0..15).map(|index| since >> (4 * index) & 15);
    since | nibbles.fold(0, |sum, nibble| sum ^ nibble) << 60
}

/// Returns the second word of a sampled time, with its checksum in the upper 16 bits.
pub fn sampled_time(sequence: u64, ticks: u64) -> u64 {
    let mixed = (FACTOR.wrapping_mul(sequence) ^ ticks).wrapping_add(1);
    ticks | FACTOR.wrapping_mul(mixed) >> 48 << 48
}

#[cfg(test)]
mod tests {
    use librip_format::Checksum;

    use super::*;

    #[test]
    fn they_are_as_in_the_format_crate() {
        let bytes: Vec<u8> = (0..4000u32).map(|n| (n * 7 + n / 256) as u8).collect();
        for len in (4..40).chain([2360]) {
            let entry = &bytes[..len];
            assert_eq!(state(entry), Checksum::new().with(&entry[4..]).state());
            let text = Checksum::new().with(&bytes[..len / 2]);
            let expected = Checksum::new().with(&entry[4..]).with_sum(text).state();
            assert_eq!(state_with_text(entry, &bytes[..len / 2]), expected);
        }
        assert_eq!(of_header(&bytes), librip_format::header_checksum(|at, len| &bytes[at..at + len]));
    }

    #[test]
    fn each_changed_bit_changes_them() {
        let entry: Vec<u8> = (0..48).collect();
        for bit in 32..8 * entry.len() {
            let mut changed = entry.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(state(&changed), state(&entry), "{bit}");
        }
    }

    #[test]
    fn those_of_held_locks_are_as_in_the_format_crate() {
        let words = [0, 1, 0x7fff_1234_5678_9ab0, 0xdead_beef_0bad_f00d, u64::MAX];
        for (lock, word) in words.iter().flat_map(|&lock| words.map(|word| (lock, word))) {
            let (pc, bits) = (word << 8 >> 16, word >> 56 << 56);
            assert_eq!(held_meta(lock, word & !0xff), librip_format::held_meta(lock, pc, 0, bits));
            let (ticks, recursion) = (word << 16 >> 16, word >> 48 & 4095);
            assert_eq!(held_since(word << 4 >> 4), librip_format::held_since(ticks, recursion));
        }
    }
}
