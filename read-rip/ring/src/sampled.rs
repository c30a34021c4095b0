//! A slot's sampled times: which of them can be believed.
//!
//! It knows no history. A time has two words. They belong together if the checksum fits both. An entry that changed
//! while it was read is left out: the others are as good.

use std::mem::{offset_of, size_of};

use librip_format::{SAMPLED_BETWEEN, SampledTime as Raw, SampledTimes};

use super::bytes::Bytes;

/// When a slot's owner recorded one word, or a moment between two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledTime {
    /// The sequence of the word, or of the first one after the moment.
    pub sequence: u64,
    /// The time, ticks.
    pub ticks: u64,
    /// It is the time of the word, and not of a moment between two.
    pub is_of_word: bool,
}

impl SampledTime {
    /// Whether an event whose last word has this sequence comes after the time.
    pub fn is_before(&self, sequence: u64) -> bool {
        if self.is_of_word { self.sequence < sequence } else { self.sequence <= sequence }
    }
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
            let is_of_word = sequence & SAMPLED_BETWEEN == 0;
            let sequence = sequence & !SAMPLED_BETWEEN;
            (sequence >= first_sequence).then_some(SampledTime { sequence, ticks, is_of_word })
        })
        .collect();
    times.sort_unstable_by_key(|time| (time.sequence, time.is_of_word));
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
    fn a_time_between_two_words_comes_before_that_of_the_second() {
        let table = table(&[entry(20, 5), entry(20 | SAMPLED_BETWEEN, 4), entry(21 | SAMPLED_BETWEEN, 6)]);
        let times = read(&Bytes(&table), &Bytes(&table), 10);
        assert_eq!(times.iter().map(|time| time.ticks).collect::<Vec<_>>(), [4, 5, 6]);
        // The event with sequence 20 comes after the first, has the second, and comes before the third.
        assert_eq!(times.iter().map(|time| time.is_before(20)).collect::<Vec<_>>(), [true, false, false]);
        assert_eq!(times.iter().map(|time| time.is_before(21)).collect::<Vec<_>>(), [true, true, true]);
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
