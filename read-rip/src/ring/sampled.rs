//! A slot's sampled times: which of them can be believed.
//!
//! It knows no history. A time has two words. They belong together if the checksum fits both. An entry that changed
//! while it was read is left out: the others are as good.

use std::mem::{offset_of, size_of};

use librip_format::{SampledTime as Raw, SampledTimes};

use super::bytes::Bytes;

/// When a slot's owner recorded one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledTime {
    /// The sequence of the word.
    pub sequence: u64,
    /// The time, ticks.
    pub ticks: u64,
}

/// An entry is these two words.
const _: () = assert!(offset_of!(Raw, sequence) == 0 && offset_of!(Raw, time) == 8 && size_of::<Raw>() == 16);

/// Reads a slot's times from two copies of them, oldest first. Those before the owner's first sequence are a
/// predecessor's.
pub(super) fn read(first: &Bytes<'_>, second: &Bytes<'_>, first_sequence: u64) -> Vec<SampledTime> {
    let entries = (offset_of!(SampledTimes, times)..first.0.len()).step_by(size_of::<Raw>());
    let mut times: Vec<SampledTime> = entries
        .filter_map(|at| first.same_words(second, at))
        .filter_map(|[sequence, time]| {
            let ticks = librip_format::sampled_ticks(sequence, time)?;
            (sequence >= first_sequence).then_some(SampledTime { sequence, ticks })
        })
        .collect();
    times.sort_unstable_by_key(|time| time.sequence);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(u64, u64)]) -> Vec<u8> {
        let mut words = vec![entries.len() as u64];
        words.extend(entries.iter().flat_map(|&(sequence, time)| [sequence, time]));
        words.resize(size_of::<SampledTimes>() / 8, 0);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn entry(sequence: u64, ticks: u64) -> (u64, u64) {
        (sequence, librip_format::sampled_time(sequence, ticks))
    }

    fn sequences(first: &[u8], second: &[u8]) -> Vec<u64> {
        read(&Bytes(first), &Bytes(second), 10).iter().map(|time| time.sequence).collect()
    }

    #[test]
    fn times_are_in_the_order_of_their_sequences_and_a_predecessors_are_left_out() {
        let table = table(&[entry(30, 7), entry(9, 1), entry(10, 2), entry(20, 5)]);
        assert_eq!(sequences(&table, &table), [10, 20, 30]);
    }

    #[test]
    fn an_entry_that_changed_or_contradicts_itself_is_left_out() {
        let old = table(&[entry(11, 3), entry(12, 4), (13, entry(14, 5).1)]);
        let new = table(&[entry(11, 3), entry(28, 8), (13, entry(14, 5).1)]);
        assert_eq!(sequences(&old, &new), [11]);
        assert_eq!(sequences(&new, &new), [11, 28]);
        assert_eq!(sequences(&[], &[]), [0; 0]);
    }
}
