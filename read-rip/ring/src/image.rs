//! Copies the bytes of a ring while its owners write, so that the copy can be read later as the ring can be read now.
//!
//! It copies words and entries, and interprets neither. Its output is a ring: the file itself, but for what changed.
//!
//! # Why every word of the copy was recorded
//!
//! Each slot is copied twice. The result is the first copy, without the words that differ between the two, and without
//! those whose sequence is not the one that the first copy's count implies. What is left was the same in both copies:
//! so no word is a mixture of two, by the argument in `copy`. A reader of the copy sees the others as not written. An
//! entry of the held-lock table that differs gets a sequence that contradicts itself, and counts as one in flux. An
//! open span that differs is left out: it began or ended meanwhile. If the second copy has the same owner, the header
//! in the first copy is that owner's.

use std::io::{self, Write};
use std::mem::{offset_of, size_of};
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};

use librip_format::{
    CURSOR_TO_COUNT_BYTES, HeldLock, HistoryHeader, LockName, NAME_CLAIMED, OpenSpan, SlotHeader,
};

use super::bytes::Bytes;
use super::copy::ADVANCE_MAX;
use super::owner::is_same_owner;
use super::{HELD_LOCKS_MAX, Header, Region, SequenceBits, Source, Word};

/// Bytes are copied this many at a time, if they are not slots.
const CHUNK_BYTES: u64 = 1 << 20;
/// Slots are copied until about this many bytes are in one piece.
const SLOTS_BYTES: u64 = 1 << 16;
/// A slot that changes owners is copied again, this many times.
const ATTEMPTS: u32 = 100;

const HEADER_LEN: usize = size_of::<SlotHeader>();
const HISTORY_HEADER_LEN: usize = size_of::<HistoryHeader>();
/// The part of a history's header that changes with its owner.
const HISTORY_OWNER_LEN: usize = offset_of!(HistoryHeader, reserved);

/// What takes an image, from its beginning to its end. Most of it is zeros.
pub trait ImageOutput {
    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// Those of the output.
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Takes so many zeros.
    ///
    /// # Errors
    ///
    /// Those of the output.
    fn zeros(&mut self, count: u64) -> io::Result<()>;
}

impl<W: Write + ?Sized> ImageOutput for W {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn zeros(&mut self, count: u64) -> io::Result<()> {
        io::copy(&mut io::Read::take(io::repeat(0), count), self).map(drop)
    }
}

/// Writes the image of a ring. Returns its length, bytes.
///
/// # Errors
///
/// Those of reading the ring and of `out`.
pub fn write_image(source: &Source, header: Option<&Header>, out: &mut dyn ImageOutput) -> io::Result<u64> {
    let end = source.len_bytes();
    let mut image = Image { source, out, first: Vec::new(), second: Vec::new() };
    // Only a living ring of the present format has parts that change.
    let header = header.filter(|_| source.may_change());
    let part = |region: fn(&Header) -> &Region| header.map_or(end..end, |header| used(region(header), end));
    // Regions do not overlap; the reader has checked that. They may have any order.
    let mut parts = [
        (part(|header| &header.lock_names), Part::Names),
        (part(|header| &header.histories), Part::Histories),
        (part(|header| &header.slots), Part::Slots),
    ];
    parts.sort_by_key(|(part, _)| part.start);
    let mut at = 0;
    for (part, kind) in parts {
        image.plain(at..part.start)?;
        at = part.end;
        match (kind, header) {
            (Part::Names, _) => image.names(part)?,
            (Part::Histories, _) => image.histories(part)?,
            (Part::Slots, Some(header)) => image.slots(part, header)?,
            (Part::Slots, None) => {}
        }
    }
    image.plain(at..end)?;
    Ok(end)
}

/// The used part of a region, within the file.
fn used(region: &Region, end: u64) -> Range<u64> {
    let begin = region.offset.min(end);
    begin..begin.saturating_add(region.used.saturating_mul(region.entry_len_bytes)).min(end)
}

/// A part of the ring that changes.
#[derive(Clone, Copy)]
enum Part {
    Names,
    Histories,
    Slots,
}

struct Image<'a> {
    source: &'a Source,
    out: &'a mut dyn ImageOutput,
    first: Vec<u8>,
    second: Vec<u8>,
}

impl Image<'_> {
    /// Copies bytes as they are. Holes become zeros.
    fn plain(&mut self, part: Range<u64>) -> io::Result<()> {
        let mut at = part.start;
        while at < part.end {
            let (begin, end) = self.source.next_data(at).unwrap_or((part.end, part.end));
            self.zeros(begin.min(part.end) - at)?;
            at = begin.min(part.end);
            while at < end.min(part.end) {
                let to = (at + CHUNK_BYTES).min(end).min(part.end);
                self.copy_twice(at..to, 1)?;
                self.out.bytes(&self.first)?;
                at = to;
            }
        }
        Ok(())
    }

    fn zeros(&mut self, count: u64) -> io::Result<()> {
        self.out.zeros(count)
    }

    /// Copies a part once or twice. What a truncation has removed meanwhile is zeros.
    fn copy_twice(&mut self, part: Range<u64>, copies: usize) -> io::Result<()> {
        for copy in [&mut self.first, &mut self.second].into_iter().take(copies) {
            copy.clear();
            copy.resize((part.end - part.start) as usize, 0);
            self.source.read_at(copy, part.start)?;
            // ORDERING: as in `copy::CopiedBytes::take`.
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    /// Copies names of locks. One that changes is as one that is being written.
    fn names(&mut self, part: Range<u64>) -> io::Result<()> {
        const LEN: usize = size_of::<LockName>();
        for begin in part.clone().step_by(CHUNK_BYTES as usize) {
            self.copy_twice(begin..(begin + CHUNK_BYTES).min(part.end), 2)?;
            for (first, second) in self.first.chunks(LEN).zip(self.second.chunks_mut(LEN)) {
                let state = offset_of!(LockName, state);
                if first != second && second.len() == LEN {
                    second[state..state + 4].copy_from_slice(&NAME_CLAIMED.to_le_bytes());
                }
            }
            self.out.bytes(&self.second)?;
        }
        Ok(())
    }

    /// Copies histories of channels, one after the other. Each says how long it is.
    fn histories(&mut self, part: Range<u64>) -> io::Result<()> {
        let mut at = part.start;
        while at + HISTORY_HEADER_LEN as u64 <= part.end {
            self.copy_twice(at..at + HISTORY_HEADER_LEN as u64, 1)?;
            let words = u64::from(Bytes(&self.first).u32(offset_of!(HistoryHeader, words)));
            let end = at + HISTORY_HEADER_LEN as u64 + 8 * words;
            if !words.is_power_of_two() || end > part.end {
                // It is being made, or is damaged. So it is not known where the next one begins.
                break;
            }
            self.copy_twice(at..end, 2)?;
            let (first, second) = (&mut self.first, &self.second);
            if first[..HISTORY_OWNER_LEN] == second[..HISTORY_OWNER_LEN] {
                keep_common_words(words, HISTORY_HEADER_LEN, first, second);
            } else {
                // It has another owner meanwhile. The reader sees that its generation is none.
                first.fill(0);
                first[offset_of!(HistoryHeader, words)..][..4].copy_from_slice(&(words as u32).to_le_bytes());
            }
            self.out.bytes(&self.first)?;
            at = end;
        }
        self.plain(at..part.end)
    }

    fn slots(&mut self, part: Range<u64>, header: &Header) -> io::Result<()> {
        let slot_len = header.slots.entry_len_bytes;
        if slot_len < HEADER_LEN as u64 {
            return self.plain(part);
        }
        let piece = (SLOTS_BYTES / slot_len).max(1) * slot_len;
        let mut at = part.start;
        while at < part.end {
            let Some((data, _)) = self.source.next_data(at).filter(|&(data, _)| data < part.end) else {
                return self.zeros(part.end - at);
            };
            // From the start of the slot that has the data.
            let begin = at + (data - at) / slot_len * slot_len;
            self.zeros(begin - at)?;
            let end = (begin + piece).min(part.end);
            self.copy_twice(begin..end, 2)?;
            let len = slot_len as usize;
            for index in 0..self.first.len() / len {
                let slot = index * len..(index + 1) * len;
                if self.first[slot.clone()] != self.second[slot.clone()] {
                    let (first, second) = (&mut self.first[slot.clone()], &mut self.second[slot]);
                    sound(self.source, begin + (index * len) as u64, header, first, second)?;
                }
            }
            self.out.bytes(&self.first)?;
            at = end;
        }
        Ok(())
    }
}

/// Makes the first copy of a slot sound, if the second differs from it.
fn sound(
    source: &Source,
    offset: u64,
    header: &Header,
    first: &mut [u8],
    second: &mut [u8],
) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        if is_same_owner(&Bytes(first), &Bytes(second)) {
            keep_common(u64::from(header.slot_words), header.span_entries as usize, first, second);
            return Ok(());
        }
        first.copy_from_slice(second);
        source.read_at(second, offset)?;
        fence(Ordering::SeqCst);
    }
    // As a slot that nobody has used.
    first.fill(0);
    Ok(())
}

/// Removes from the first copy of a slot with this many words and open spans what it does not have in common with the
/// second.
fn keep_common(words: u64, spans: usize, first: &mut [u8], second: &[u8]) {
    for index in 0..HELD_LOCKS_MAX {
        let at = offset_of!(SlotHeader, held) + index * size_of::<HeldLock>();
        if first[at..at + size_of::<HeldLock>()] != second[at..at + size_of::<HeldLock>()] {
            // As an entry that is being entered: its checksum does not fit.
            let lock = Bytes(first).u64(at + offset_of!(HeldLock, lock));
            let sound = librip_format::held_meta(lock, 0, librip_format::HELD_ACQUIRING, 0);
            let in_flux = sound ^ 1;
            let meta = at + offset_of!(HeldLock, meta);
            first[meta..meta + 8].copy_from_slice(&in_flux.to_le_bytes());
        }
    }
    keep_common_words(words, HEADER_LEN, first, second);
    let spans_at = HEADER_LEN + 8 * words as usize;
    let channels_at = spans_at + spans * size_of::<OpenSpan>();
    let spans = (spans_at..channels_at).step_by(size_of::<OpenSpan>()).map(|at| (at, size_of::<OpenSpan>()));
    let channels = (channels_at..first.len()).step_by(8).map(|at| (at, 8));
    for (at, len) in spans.chain(channels) {
        let entry = at.min(first.len())..(at + len).min(first.len());
        if first[entry.clone()] != second[entry.clone()] {
            // A span has begun or ended between the copies, or a history has begun: at some moment in between, the
            // entry was free.
            first[entry].fill(0);
        }
    }
}

/// The same for words, which begin at an offset, right after their count.
///
/// The words of the first copy were copied between the two counts. If the owner wrote too many meanwhile, 15 bits do
/// not say which lap a word is of, and no word is kept: see `copy`.
fn keep_common_words(words: u64, words_at: usize, first: &mut [u8], second: &[u8]) {
    let [count, later] = [&*first, second].map(|copy| Bytes(copy).u64(words_at - CURSOR_TO_COUNT_BYTES));
    let is_bounded = later.wrapping_sub(count) < ADVANCE_MAX;
    for index in 0..words {
        let at = words_at + 8 * index as usize;
        let word = Word::from_raw(Bytes(first).u64(at));
        // The latest sequence below the count at this index.
        let laps = count.saturating_sub(index + 1) / words;
        let is_expected = index < count && word.sequence() == SequenceBits::of(index + laps * words);
        if !is_bounded || !is_expected || first[at..at + 8] != second[at..at + 8] {
            first[at..at + 8].fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use librip_format::{
        HELD_ACQUIRING, HELD_HELD, SEQUENCE_BITS, held_meta, held_state, is_held_meta_sound, pack,
        sequence_bits,
    };

    const WORDS: u64 = 16;

    fn slot(count: u64) -> Vec<u8> {
        let mut slot = vec![0; HEADER_LEN + 8 * WORDS as usize];
        let at = offset_of!(SlotHeader, count);
        slot[at..at + 8].copy_from_slice(&count.to_le_bytes());
        for sequence in count.saturating_sub(WORDS)..count {
            let at = HEADER_LEN + 8 * (sequence % WORDS) as usize;
            slot[at..at + 8].copy_from_slice(&pack(sequence, 0x5000 + sequence, false).to_le_bytes());
        }
        slot
    }

    fn sequences(slot: &[u8]) -> Vec<u64> {
        let word = |index: u64| Bytes(slot).u64(HEADER_LEN + 8 * index as usize);
        let mut found: Vec<u64> = (0..WORDS).map(word).filter(|&word| word != 0).map(sequence_bits).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn words_that_both_copies_have_are_kept() {
        for (before, after) in [(100, 100), (100, 103), (5, 9), (100, 115), (100, 200), (0, 3)] {
            let mut copy = slot(before);
            keep_common(WORDS, 0, &mut copy, &slot(after));
            let oldest = before.saturating_sub(WORDS).max(after.saturating_sub(WORDS));
            let expected: Vec<u64> = (oldest..before).collect();
            assert_eq!(sequences(&copy), expected, "{before} {after}");
        }
    }

    #[test]
    fn a_word_that_is_newer_than_the_count_of_the_copy_is_left_out() {
        // The count was copied before the words.
        let (mut first, second) = (slot(103), slot(103));
        let at = offset_of!(SlotHeader, count);
        first[at..at + 8].copy_from_slice(&100u64.to_le_bytes());
        keep_common(WORDS, 0, &mut first, &second);
        assert_eq!(sequences(&first), (87..100).collect::<Vec<u64>>());
    }

    #[test]
    fn words_are_left_out_if_the_owner_may_have_come_to_another_lap_with_the_same_bits() {
        // The reader stood still between the count and the words of the first copy, for as long as the bits of a
        // sequence take to come again.
        let mut first = slot(100 + (1 << SEQUENCE_BITS));
        let second = first.clone();
        let at = offset_of!(SlotHeader, count);
        first[at..at + 8].copy_from_slice(&100u64.to_le_bytes());
        keep_common(WORDS, 0, &mut first, &second);
        assert!(sequences(&first).is_empty());
    }

    #[test]
    fn an_entry_that_changed_is_in_flux() {
        let with_entry = |sequence: u64| {
            let mut slot = slot(20);
            let at = offset_of!(SlotHeader, held);
            let lock = pack(sequence, 0x7000, true);
            let meta = held_meta(lock, 0x5000, HELD_HELD, 0);
            slot[at..at + 8].copy_from_slice(&lock.to_le_bytes());
            slot[at + 8..at + 16].copy_from_slice(&meta.to_le_bytes());
            slot
        };
        let mut copy = with_entry(10);
        keep_common(WORDS, 0, &mut copy, &with_entry(12));
        let at = offset_of!(SlotHeader, held);
        let (lock, meta) = (Bytes(&copy).u64(at), Bytes(&copy).u64(at + 8));
        assert_eq!(held_state(meta), HELD_ACQUIRING);
        assert!(!is_held_meta_sound(lock, meta));
        let mut same = with_entry(12);
        keep_common(WORDS, 0, &mut same, &with_entry(12));
        assert_eq!(same, with_entry(12));
    }

    #[test]
    fn open_spans_after_the_words_are_kept_if_both_copies_have_them() {
        let with_spans = |spans: [u8; 2]| {
            let mut slot = slot(100);
            spans.iter().for_each(|&byte| slot.extend([byte; size_of::<OpenSpan>()]));
            slot
        };
        let mut copy = with_spans([1, 2]);
        keep_common(WORDS, 2, &mut copy, &with_spans([1, 3]));
        assert_eq!(copy, with_spans([1, 0]));
    }
}
