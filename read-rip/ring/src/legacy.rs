//! Rings of the C header that preceded librip: 320 bytes a slot, no magic.
//!
//! It produces slots only: such a ring has no header, modules or sites.
//!
//! A slot is a name of 64 bytes and 32 little-endian words. A word is an 8-bit counter above a 56-bit PC, or all
//! ones: then the thread exited. The slot's index is the thread id. Counter and word index started where the
//! program wanted, usually both at 0. Each word advances both by one; an exit word advances the index alone.
//!
//! The reader of that header was wrong in three cases that this one reads correctly: an exit word at the first index
//! after a wrap, more than one discontinuity (an exit, and a later owner of the slot), and a thread with a single
//! snapshot.
//!
//! # Limits of 8 bits
//!
//! The last 32 words and their order are known. How many words came before is not: sequences are the counter's values.

use super::bytes::Bytes;
use super::{Defect, Error, Slot, SlotState, Snapshot, Source, Word};

const NAME_LEN: usize = 64;
const WORDS: usize = 32;
const SLOT_LEN: usize = NAME_LEN + 8 * WORDS;
const EXIT: u64 = u64::MAX;
const PC_MASK: u64 = (1 << 56) - 1;
/// The C header supported x86-64 only, where the addresses of user programs have 47 bits.
const PC_MAX: u64 = 1 << 47;
/// At most this many sequences of a slot are kept. Its 32 words span more only if the program set the counter
/// several times. Each word of a damaged file could claim a jump, and each jump takes memory.
const SPAN_MAX: usize = 512;
/// Slots are copied this many at a time.
const AT_ONCE: u64 = 4096;

/// Whether the bytes can be a legacy ring: the length is right, and the words can be PCs.
pub(super) fn is_legacy(source: &Source) -> bool {
    let len = source.len_bytes();
    if len == 0 || !len.is_multiple_of(SLOT_LEN as u64) {
        return false;
    }
    let mut start = [0; 12];
    if source.read_at(&mut start, 0).is_err() || start.starts_with(&librip_format::MAGIC) {
        return false;
    }
    // An unfinished ring of librip. No name begins with a zero byte and continues.
    if start[..8] == [0; 8] && start[8..] != [0; 4] {
        return false;
    }
    // The first used slots decide.
    const SAMPLE: usize = 16;
    let mut seen = 0;
    let mut is_plausible = true;
    let _ = each(source, &mut |_, bytes| {
        let words = || (0..WORDS).map(|index| bytes.u64(NAME_LEN + 8 * index)).filter(|&word| word != 0);
        if words().any(|word| word != EXIT) {
            seen += 1;
            is_plausible &= words().all(|word| word == EXIT || word & PC_MASK < PC_MAX);
        }
        is_plausible && seen < SAMPLE
    });
    is_plausible && seen > 0
}

pub(super) fn read(source: &Source) -> Result<Snapshot, Error> {
    let mut slots = Vec::new();
    let mut defects = Vec::from_iter(source.cut());
    let mut jumping: Option<(u64, u64)> = None;
    let result = each(source, &mut |index, bytes| {
        let slot = slot(index, bytes);
        if slot.as_ref().is_some_and(|slot| slot.damaged > 0) {
            jumping = Some(jumping.map_or((1, index), |(count, first)| (count + 1, first)));
        }
        slots.extend(slot);
        true
    });
    if let Some((count, first)) = jumping {
        defects.push(Defect::Slots { count, first, what: "counters that jump too often to be ordered" });
    }
    if let Err(error) = result {
        defects.push(Defect::Io { offset: 0, what: error.to_string() });
    }
    Ok(Snapshot { slots, defects, sequence_mask: 0xff, ..Snapshot::of_modules(Vec::new()) })
}

/// Calls `visit` with each slot that is not a hole in the file, until `visit` returns false.
fn each(source: &Source, visit: &mut dyn FnMut(u64, &Bytes<'_>) -> bool) -> std::io::Result<()> {
    let len = SLOT_LEN as u64;
    let mut buffer = vec![0; AT_ONCE as usize * SLOT_LEN];
    let mut next = 0;
    while let Some((begin, end)) = source.next_data(next * len) {
        next = next.max(begin / len);
        let last = end.div_ceil(len);
        while next < last {
            let count = AT_ONCE.min(last - next);
            let got = source.read_at(&mut buffer[..count as usize * SLOT_LEN], next * len)?;
            for slot in buffer[..got].chunks_exact(SLOT_LEN) {
                if !visit(next, &Bytes(slot)) {
                    return Ok(());
                }
                next += 1;
            }
            if got < count as usize * SLOT_LEN {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn slot(index: u64, bytes: &Bytes<'_>) -> Option<Slot> {
    let raw: [u64; WORDS] = std::array::from_fn(|index| bytes.u64(NAME_LEN + 8 * index));
    if raw.iter().all(|&word| word == 0) {
        return None;
    }
    let (history, is_exited) = in_order(&raw);
    // Packs the words as words of the present format. Where the counter jumps, words are missing.
    let mut first = history.first().map_or(0, |&word| word >> 56);
    let mut words: Vec<Word> = Vec::new();
    let mut dropped = 0;
    for word in history {
        let gap = (word >> 56).wrapping_sub(first + words.len() as u64) & 0xff;
        if words.len() + gap as usize >= SPAN_MAX {
            dropped += words.iter().filter(|word| !word.is_missing()).count() as u32;
            words.clear();
            first = word >> 56;
        } else {
            words.resize(words.len() + gap as usize, Word::MISSING);
        }
        words.push(Word::pc(first + words.len() as u64, word & PC_MASK));
    }
    Some(Slot {
        index,
        state: if is_exited { SlotState::Exited } else { SlotState::Live },
        generation: 1,
        tid: index as u32,
        name: bytes.text(0, NAME_LEN),
        is_named: true,
        first_sequence: first,
        count: first + words.len() as u64,
        words_from: first,
        words: words.into_iter().collect(),
        damaged: dropped,
        ..Slot::default()
    })
}

/// Returns the words in the order in which they were written, without exit words, and whether the last one was an
/// exit word.
///
/// The words are filled in circularly, so the question is which word is the newest. While some index is unwritten,
/// the newest word is before the gap. Later it is the word whose successor does not continue the counter: with *e*
/// exit words among the 32, the oldest word has the newest one's counter minus 31 - *e*. If the counter breaks at
/// several indices, because the program set it, the break of exactly that width counts.
///
/// One case is ambiguous: an exit word may be the newest word, or the oldest word of a thread that made 31 marks
/// after its exit. The code assumes the former, because a thread should exit last.
fn in_order(words: &[u64; WORDS]) -> (Vec<u64>, bool) {
    let at = |index: usize| words[index % WORDS];
    let newest = if words.contains(&0) {
        // An undamaged ring has one gap. If there are more, the longest run of words counts.
        let run_before = |end: usize| (0..WORDS).take_while(|&back| at(end + WORDS - back) != 0).count();
        (0..WORDS).filter(|&index| at(index) != 0 && at(index + 1) == 0).max_by_key(|&end| run_before(end))
    } else {
        let exits = words.iter().filter(|&&word| word == EXIT).count() as u64;
        let counter_step = |index: usize| {
            let next = (index + 1..index + WORDS).map(at).find(|&word| word != EXIT)?;
            Some(((next >> 56).wrapping_sub(at(index) >> 56)) & 0xff)
        };
        let breaks = || {
            (0..WORDS)
                .filter(|&index| at(index) != EXIT)
                .filter_map(|index| Some((index, counter_step(index)?)))
                .filter(|&(_, step)| step != 1)
        };
        let last_marked = breaks()
            .find(|&(_, step)| step == (256 - (WORDS as u64 - 1) + exits) & 0xff)
            .or_else(|| breaks().next_back())
            .map(|(index, _)| index);
        // An exit word at the break was written after the last mark.
        last_marked.map(|index| if at(index + 1) == EXIT { index + 1 } else { index })
    };
    let Some(newest) = newest else { return (Vec::new(), false) };
    let history: Vec<u64> = (newest + 1..=newest + WORDS)
        .map(at)
        .collect::<Vec<_>>()
        .rsplit(|&word| word == 0)
        .next()
        .unwrap_or_default()
        .iter()
        .copied()
        .filter(|&word| word != EXIT)
        .collect();
    (history, at(newest) == EXIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that the C header would write. `None` is its exit call.
    fn written(start: (u8, u8), marks: impl IntoIterator<Item = Option<u64>>) -> [u64; WORDS] {
        let (mut index, mut counter) = start;
        let mut words = [0; WORDS];
        for mark in marks {
            words[usize::from(index) % WORDS] = match mark {
                Some(pc) => {
                    counter = counter.wrapping_add(1);
                    u64::from(counter.wrapping_sub(1)) << 56 | pc
                }
                None => EXIT,
            };
            index = index.wrapping_add(1);
        }
        words
    }

    fn pcs(words: &[u64; WORDS]) -> (Vec<u64>, bool) {
        let (history, is_exited) = in_order(words);
        (history.iter().map(|word| word & PC_MASK).collect(), is_exited)
    }

    #[test]
    fn any_number_of_marks_from_any_start_is_read_in_order() {
        for start in [(0, 0), (7, 250), (31, 31)] {
            for marks in 1..600u64 {
                let expected: Vec<u64> = (1..=marks).skip(marks.saturating_sub(32) as usize).collect();
                assert_eq!(
                    pcs(&written(start, (1..=marks).map(Some))),
                    (expected, false),
                    "{start:?} {marks}"
                );
            }
        }
    }

    #[test]
    fn an_exit_is_found_wherever_the_ring_wraps() {
        for marks in 0..600u64 {
            let words = written((0, 0), (1..=marks).map(Some).chain([None]));
            let expected: Vec<u64> = (1..=marks).skip(marks.saturating_sub(31) as usize).collect();
            assert_eq!(pcs(&words), (expected, true), "{marks}");
        }
    }

    #[test]
    fn a_thread_that_marks_after_its_exit_is_alive() {
        for before in 1..70u64 {
            for after in 1..31u64 {
                let marks = (1..=before).map(Some).chain([None]).chain((1..=after).map(|pc| Some(1000 + pc)));
                let (history, is_exited) = pcs(&written((0, 0), marks));
                assert_eq!((history.last(), is_exited), (Some(&(1000 + after)), false), "{before} {after}");
            }
        }
    }

    #[test]
    fn marks_before_a_reset_of_the_counter_are_read() {
        let mut words = written((0, 0), (1..=6).map(Some));
        let rest = written((6, 0), (101..=104).map(Some));
        for (word, other) in words.iter_mut().zip(rest) {
            *word |= other;
        }
        assert_eq!(pcs(&words), (vec![1, 2, 3, 4, 5, 6, 101, 102, 103, 104], false));
    }
}
