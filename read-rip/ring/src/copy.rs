//! Copies slots while their owners write: each word gets its full sequence, or is given up.
//!
//! It does not interpret words, and leaves the entries of held-lock tables to `held`.
//!
//! # Why every word of the result was recorded
//!
//! A word *w* carries the low 15 bits of its sequence. The slot carries the full count *C*, which its owner
//! advances before it writes a word. So the question is always: which full sequence do the 15 bits stand for?
//!
//! **A slot that does not change.** It is copied twice. If both copies are equal, the count included, then nothing
//! was reserved between the end of the first copy of the count and the second, because the count only grows. The
//! word at index *i* must have the largest sequence below *C* that is *i* mod *N*. If its bits agree, it is that
//! word. If they are those of an earlier lap, or the word is zero, then the word is missing: it was reserved and not
//! written, or an event that signal handlers had interrupted for longer than a lap has written its own word over it.
//! Anything else is damage, and so is a slot in which no word has the sequence that the count demands.
//!
//! **A slot that changes.** A piece of it is copied twice. The count is read before, as *C0*, and after, as *C1*. Let δ
//! be the number of words by which a word can become visible before or after the count that reserved it. δ is zero on
//! x86-64, which keeps stores in order. On aarch64 it is no more than a store buffer holds, far below the 2^12 used
//! here. A word in the piece had a sequence from C0 - N - δ (the oldest that may not have been replaced) to C1 + δ.
//! Those are fewer than 2^15 numbers if C1 - C0 < 2^15 - N - 2δ, which is 2^13 for the largest N = 2^14. Then 15
//! bits name one of them. The code requires exactly that. It uses no clock: the count says how far the writer got.
//! So a reader that is preempted in the middle notices it, and tries again.
//!
//! The words of a changing slot come from different moments. Each is an event that was recorded at its sequence.
//! The words between them are missing, and so is every word more than *N* before the newest.
//!
//! **The owner of the words.** A slot may change owners. Its header is copied before and after the words. State,
//! generation and ids must be the same in both copies. Sequences before the owner's first are those of a
//! predecessor.
//!
//! # Why no word is a mixture of two
//!
//! FOLKLORE: one would expect `pread` to copy an aligned 64-bit word by one access. It does not. Linux uses `rep
//! movsb` where that is fast, and the processor splits such a copy as it likes. On Ice Lake under Linux 6.18, the
//! last byte of a word was seen to be newer than the other seven: at the borders of the destination's cache lines
//! and pages, at the end of a copy, and 256 bytes after its beginning. An unaligned buffer gave thousands of mixtures a
//! second, the best aligned one about one a minute. Their sequences were plausible.
//!
//! So a word counts if both copies have it. Its sequence only grows, and by less than 2^15 here. If its sequence
//! bits are the same in both copies, the word did not change between the moments at which these bits were copied.
//! In at least one of the copies, the payload was copied between these moments: after the bits in the first copy,
//! or before them in the second, provided that both copies take the parts of a word in the same order. That copy
//! has the payload that belongs to the sequence, and the other copy has the same. A count that is a mixture is
//! wrong by 2^8, which δ covers, or by 2^16 and more, which the difference from the other count reveals.
//!
//! The price: a word that is replaced between the copies, within some hundred nanoseconds, is given up. Little is
//! known of a thread while it fills its whole slot in less time than that, such as 64 words with a mark every ten
//! nanoseconds.

use std::io;
use std::mem::{offset_of, size_of};
use std::ops::Range;
use std::sync::atomic::{Ordering, fence};
use std::sync::mpsc::{channel, sync_channel};
use std::thread::{Builder, scope};

use librip_format::SlotHeader;

use super::bytes::Bytes;
use super::owner::{is_same_owner, owner};
use super::task::SlotsAt;
use super::{
    Defect, Header, Region, SequenceBits, Slot, SlotKind, SlotState, Source, Word, Words, held, rest,
    sampled, span, task,
};

/// Slots are copied this many bytes at a time. A processor's cache has room for both copies.
const CHUNK_BYTES: u64 = 256 << 10;
/// So many copies are made before they are looked at.
const COPIES_AHEAD: usize = 2;
/// A file can claim any number of slots. For more than these, memory is taken when they are read.
const RESERVED_MAX: u64 = 1 << 16;
/// Fewer pieces than this are not worth a thread.
const PIECES_MIN: usize = 8;
/// A changing slot is copied in pieces of this many words: well below a microsecond each.
const PIECE_WORDS: usize = 128;
/// δ of the [module's](self) argument.
const DELTA: u64 = 1 << 12;
/// How many words the owner may write while a piece is copied.
pub(super) const ADVANCE_MAX: u64 = 1 << 13;
/// A piece, or a slot that changes owners, is given up after this many attempts.
const ATTEMPTS: u32 = 100;

const HEADER_LEN: usize = size_of::<SlotHeader>();

const _: () = assert!(
    ADVANCE_MAX + librip_format::SLOT_WORDS_MAX as u64 + 2 * DELTA <= SequenceBits::PERIOD,
    "fifteen bits must name one of the possible sequences"
);

/// Copies all slots that were ever used. Also returns their entries for channels that are not 0: the slot, by its
/// position in the result, the channel, and the entry.
pub(super) fn slots(
    source: &Source,
    header: &Header,
    defects: &mut Vec<Defect>,
) -> (Vec<Slot>, Vec<(usize, usize, u64)>) {
    let region = header.slots;
    let len = region.entry_len_bytes;
    let parts = header.slot_parts();
    let [spans_from, channels_from, times_from, task_from, end] = [
        parts.spans_at_bytes(),
        parts.channels_at_bytes(),
        parts.times_at_bytes(),
        parts.task_at_bytes(),
        parts.len_bytes(),
    ]
    .map(|at| at as usize);
    let pieces = used_slots(source, region);
    let mut reader = SlotReader {
        source,
        len: len as usize,
        words: header.slot_words as usize,
        spans: spans_from..channels_from,
        channels: channels_from..times_from,
        times: times_from..task_from,
        task: task_from..end,
        slots_at: SlotsAt { entry_len_bytes: len, used: region.used },
        slots: Vec::new(),
        histories: Vec::new(),
        damaged: Damaged::default(),
    };
    let most: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
    reader.slots.reserve(most.min(RESERVED_MAX) as usize);
    each_copy(source, region, &pieces, |piece, copied| match copied {
        Ok(both) => reader.piece(region.offset, piece, both),
        Err(error) => {
            let offset = region.offset + piece.start * len;
            defects.push(Defect::Io { offset, what: error.to_string() });
        }
    });
    reader.damaged.report(defects);
    (reader.slots, reader.histories)
}

/// Two copies of a piece, one after the other; or one copy of what does not change.
#[derive(Default)]
struct Both {
    first: CopiedBytes,
    second: CopiedBytes,
    /// How much of each was copied, bytes.
    len: usize,
    /// Whether there is one copy.
    is_one: bool,
}

impl Both {
    fn take(&mut self, source: &Source, offset: u64, len: usize) -> io::Result<()> {
        self.is_one = !source.may_change();
        self.len = self.first.take(source, offset, len)?;
        if !self.is_one {
            self.len = self.len.min(self.second.take(source, offset, len)?);
        }
        Ok(())
    }
}

/// Copies the pieces, and hands the copies over in the order of the pieces. A thread of its own copies the next one
/// while `take` looks at the one before. Both copies of a piece are made by one thread, as the module's argument wants;
/// the channel orders them before what `take` does with them.
fn each_copy(
    source: &Source,
    region: Region,
    pieces: &[Range<u64>],
    mut take: impl FnMut(&Range<u64>, io::Result<&Both>),
) {
    let copy = |piece: &Range<u64>, both: &mut Both| {
        let (offset, slots) = (region.offset + piece.start * region.entry_len_bytes, piece.end - piece.start);
        both.take(source, offset, slots as usize * region.entry_len_bytes as usize)
    };
    let ahead = scope(|scope| {
        let (send, copied) = sync_channel(COPIES_AHEAD);
        let (give_back, spare) = channel::<Both>();
        let copies = move || {
            for piece in pieces {
                let mut both = spare.try_recv().unwrap_or_default();
                let done = copy(piece, &mut both);
                if send.send((done, both)).is_err() {
                    return;
                }
            }
        };
        if pieces.len() < PIECES_MIN || Builder::new().spawn_scoped(scope, copies).is_err() {
            return false;
        }
        for piece in pieces {
            let Ok((done, both)) = copied.recv() else { break };
            take(piece, done.map(|()| &both));
            // Nobody takes it back if it was the last one.
            let _ = give_back.send(both);
        }
        true
    });
    if !ahead {
        let mut both = Both::default();
        for piece in pieces {
            let done = copy(piece, &mut both);
            take(piece, done.map(|()| &both));
        }
    }
}

/// The slots of a region that are no hole, in pieces of at most [`CHUNK_BYTES`].
fn used_slots(source: &Source, region: Region) -> Vec<Range<u64>> {
    let len = region.entry_len_bytes;
    let at_once = (CHUNK_BYTES / len.max(1)).max(1);
    let mut found = Vec::new();
    let end = region.offset + region.used * len;
    let mut offset = region.offset;
    while region.used > 0
        && let Some((begin, data_end)) = source.next_data(offset).filter(|&(begin, _)| begin < end)
    {
        let first = (begin - region.offset) / len;
        let last = (data_end.min(end) - region.offset).div_ceil(len);
        found.extend((first..last).step_by(at_once as usize).map(|from| from..(from + at_once).min(last)));
        offset = region.offset + last * len;
    }
    found
}

/// A copy of a part of the ring.
#[derive(Default)]
pub(super) struct CopiedBytes(Vec<u8>);

impl CopiedBytes {
    /// Copies `len` bytes from `offset` of the ring. Returns the number of bytes copied.
    fn take(&mut self, source: &Source, offset: u64, len: usize) -> io::Result<usize> {
        self.0.resize(len, 0);
        let got = source.read_at(&mut self.0, offset)?;
        // ORDERING: keeps the loads of the next copy after those of this one on machines that reorder loads. The
        // writer has no fence to pair with: the module's argument allows for late stores by δ.
        fence(Ordering::SeqCst);
        Ok(got)
    }

    /// Copies exactly `len` bytes.
    pub(super) fn take_all(&mut self, source: &Source, offset: u64, len: usize) -> io::Result<Bytes<'_>> {
        if self.take(source, offset, len)? < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Bytes(&self.0))
    }

    pub(super) fn as_bytes(&self) -> Bytes<'_> {
        Bytes(&self.0)
    }

    /// The copied bytes as words.
    fn words(&self) -> impl Iterator<Item = Word> {
        let (words, _) = self.0.as_chunks();
        words.iter().map(|&bytes| Word::from_raw(u64::from_le_bytes(bytes)))
    }
}

struct SlotReader<'a> {
    source: &'a Source,
    len: usize,
    words: usize,
    /// Where the table of open spans is, bytes from the start of a slot.
    spans: Range<usize>,
    /// Where its entries for channels are.
    channels: Range<usize>,
    /// Where its sampled times are; empty if there are none.
    times: Range<usize>,
    /// Where its part for tasks is; empty if there is none.
    task: Range<usize>,
    slots_at: SlotsAt,
    slots: Vec<Slot>,
    /// The entries for channels that are not 0.
    histories: Vec<(usize, usize, u64)>,
    damaged: Damaged,
}

/// Slots that contradict themselves: for each kind of contradiction, how many and the first.
#[derive(Default)]
struct Damaged {
    state: Option<(u64, u64)>,
    sequence: Option<(u64, u64)>,
    words: Option<(u64, u64)>,
    held: Option<(u64, u64)>,
    spans: Option<(u64, u64)>,
}

impl Damaged {
    fn note(found: &mut Option<(u64, u64)>, index: u64) {
        let (count, first) = found.unwrap_or((0, index));
        *found = Some((count + 1, first));
    }

    fn report(self, defects: &mut Vec<Defect>) {
        for (found, what) in [
            (self.state, "an unknown state"),
            (self.sequence, "the owner's first word is after its last"),
            (self.words, "words at indices that contradict their sequences"),
            (self.held, "an entry of the held-lock table contradicts itself"),
            (self.spans, "an entry of the table of open spans contradicts itself"),
        ] {
            if let Some((count, first)) = found {
                defects.push(Defect::Slots { count, first, what });
            }
        }
    }
}

impl SlotReader<'_> {
    /// Reads the slots of a piece of the region that begins at offset `region`.
    fn piece(&mut self, region: u64, piece: &Range<u64>, both: &Both) {
        // An incomplete slot was cut off with the file, which has been reported.
        for (position, index) in piece.clone().enumerate().take(both.len / self.len) {
            let part = position * self.len..(position + 1) * self.len;
            let bytes = &both.first.0[part.clone()];
            let is_unchanged = both.is_one || *bytes == both.second.0[part];
            let bytes = Bytes(bytes);
            let slot = if is_unchanged {
                self.unchanged(index, &bytes)
            } else {
                self.changing(index, region + index * self.len as u64).unwrap_or_default()
            };
            if let Some(slot) = slot {
                // An entry that is written at this moment is seen or not.
                let entries = bytes.0.get(self.channels.clone()).unwrap_or_default().as_chunks().0;
                let entries = (0..).zip(entries.iter().map(|&entry| u64::from_le_bytes(entry)));
                let position = self.slots.len();
                let used = entries.filter(|&(_, entry)| entry != 0);
                self.histories.extend(used.map(|(channel, entry)| (position, channel, entry)));
                self.slots.push(slot);
            }
        }
    }

    /// A slot that did not change between the two copies.
    fn unchanged(&mut self, index: u64, bytes: &Bytes<'_>) -> Option<Slot> {
        let mut slot = self.owner(index, bytes)?;
        self.held(&mut slot, bytes, bytes);
        let spans = bytes.0.get(self.spans.clone()).map(Bytes);
        spans.inspect(|spans| self.open_spans(&mut slot, spans, spans));
        if let Some(times) = bytes.0.get(self.times.clone()).map(Bytes) {
            slot.sampled = sampled::read(&times, &times, slot.first_sequence);
        }
        if let Some(part) = bytes.0.get(self.task.clone()).filter(|part| !part.is_empty()).map(Bytes) {
            self.task_or_rest(&mut slot, &part, &part);
        }
        settle(&mut slot, self.words as u64, |index| bytes.u64(HEADER_LEN + 8 * index));
        if slot.damaged > 0 {
            Damaged::note(&mut self.damaged.words, index);
        }
        Some(slot)
    }

    /// A slot whose owner writes, or which changes owners, while it is copied. `None` for a slot that was never used.
    ///
    /// # Errors
    ///
    /// If the slot can no longer be read, because the file was truncated.
    fn changing(&mut self, index: u64, offset: u64) -> io::Result<Option<Slot>> {
        let (mut before, mut after) = (CopiedBytes::default(), CopiedBytes::default());
        let mut spans = [CopiedBytes::default(), CopiedBytes::default()];
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let before = before.take_all(self.source, offset, HEADER_LEN)?;
            let Some(mut slot) = self.owner(index, &before) else { return Ok(None) };
            let place = Place {
                count_at: offset + offset_of!(SlotHeader, count) as u64,
                words_at: offset + HEADER_LEN as u64,
                words: self.words,
                from: 0,
            };
            let known = known_words(self.source, &place, &mut slot)?;
            let after = after.take_all(self.source, offset, HEADER_LEN)?;
            if is_same_owner(&before, &after) {
                self.held(&mut slot, &before, &after);
                if !self.spans.is_empty() {
                    let [first, second] = &mut spans;
                    let at = offset + self.spans.start as u64;
                    let first = first.take_all(self.source, at, self.spans.len())?;
                    let second = second.take_all(self.source, at, self.spans.len())?;
                    self.open_spans(&mut slot, &first, &second);
                }
                if !self.times.is_empty() {
                    let [first, second] = &mut spans;
                    let at = offset + self.times.start as u64;
                    let first = first.take_all(self.source, at, self.times.len())?;
                    let second = second.take_all(self.source, at, self.times.len())?;
                    slot.sampled = sampled::read(&first, &second, slot.first_sequence);
                }
                if !self.task.is_empty() {
                    let [first, second] = &mut spans;
                    let at = offset + self.task.start as u64;
                    let first = first.take_all(self.source, at, self.task.len())?;
                    let second = second.take_all(self.source, at, self.task.len())?;
                    self.task_or_rest(&mut slot, &first, &second);
                }
                arrange(&mut slot, known, self.words as u64);
                return Ok(Some(slot));
            }
            slot.torn = self.words as u32;
            slot.words_from = slot.count;
            last = Some(slot);
        }
        Ok(last)
    }

    /// Reads what the slot says besides from two copies of its last part.
    fn task_or_rest(&self, slot: &mut Slot, first: &Bytes<'_>, second: &Bytes<'_>) {
        match slot.kind {
            SlotKind::Task => {
                slot.task = Some(Box::new(task::read(first, second, slot.index, self.slots_at)))
            }
            SlotKind::Thread => slot.rest = rest::read(first, second),
            _ => {}
        }
    }

    /// Reads the held-lock table from two copies of the slot's header.
    fn held(&mut self, slot: &mut Slot, first: &Bytes<'_>, second: &Bytes<'_>) {
        // While the slot changes owners, the table belongs to neither.
        if slot.state == SlotState::Claiming {
            return;
        }
        let table = held::read(first, second);
        if table.damaged > 0 {
            Damaged::note(&mut self.damaged.held, slot.index);
        }
        slot.held = table.locks;
        slot.held_in_flux = table.in_flux;
        slot.held_overflowed = first.u32(offset_of!(SlotHeader, held_overflowed));
    }

    /// Reads the open spans from two copies of their table.
    fn open_spans(&mut self, slot: &mut Slot, first: &Bytes<'_>, second: &Bytes<'_>) {
        if slot.state == SlotState::Claiming {
            return;
        }
        let table = span::read(first, second);
        if table.damaged > 0 {
            Damaged::note(&mut self.damaged.spans, slot.index);
        }
        slot.spans = table.open;
        slot.spans_in_flux = table.in_flux;
    }

    /// As [`owner`]. What contradicts itself is noted.
    fn owner(&mut self, index: u64, bytes: &Bytes<'_>) -> Option<Slot> {
        let slot = owner(index, bytes)?;
        if SlotState::from_raw(bytes.u32(offset_of!(SlotHeader, state))).is_none() {
            Damaged::note(&mut self.damaged.state, index);
        }
        if slot.first_sequence > slot.count {
            Damaged::note(&mut self.damaged.sequence, index);
        }
        Some(slot)
    }
}

/// Where words are that their owner writes.
pub(super) struct Place {
    /// The count, bytes from the start of the file.
    pub(super) count_at: u64,
    pub(super) words_at: u64,
    /// How many there are.
    pub(super) words: usize,
    /// Words before this sequence are not wanted.
    pub(super) from: u64,
}

/// Sets the words of a slot or history that does not change: of `n` words, `word` gives the one at an index.
pub(super) fn settle(slot: &mut Slot, n: u64, word: impl Fn(usize) -> u64) {
    let from = slot.count.saturating_sub(n).max(slot.first_sequence.min(slot.count));
    slot.words_from = from;
    let (mut unwritten, mut earlier, mut damaged) = (0, 0, 0);
    slot.words = Words::from_fn((slot.count - from) as usize, |index| {
        let sequence = from + index as u64;
        let word = Word::from_raw(word((sequence % n) as usize));
        if !word.is_missing() && word.sequence() == SequenceBits::of(sequence) {
            return word;
        }
        let is_lap_before =
            word.is_missing() || word.sequence() == SequenceBits::of(sequence.wrapping_sub(n));
        let is_lap_earlier = word.sequence().is_of_index(sequence % n, n);
        *(match (is_lap_before, is_lap_earlier) {
            (true, _) => &mut unwritten,
            (false, true) => &mut earlier,
            _ => &mut damaged,
        }) += 1;
        Word::MISSING
    });
    // If no word is of the last lap, it is the count that is wrong.
    let is_overtaken = slot.words.known() > 0;
    *(if is_overtaken { &mut unwritten } else { &mut damaged }) += earlier;
    (slot.unwritten, slot.damaged) = (unwritten, damaged);
}

/// The words of a changing slot or history with their full sequences, in no order.
pub(super) fn known_words(source: &Source, place: &Place, slot: &mut Slot) -> io::Result<Vec<(u64, Word)>> {
    let n = place.words as u64;
    let mut known = Vec::with_capacity(place.words);
    let mut copies = [CopiedBytes::default(), CopiedBytes::default()];
    for first in (0..place.words).step_by(PIECE_WORDS) {
        let piece = first..place.words.min(first + PIECE_WORDS);
        if !has_wanted(&piece, place, slot.count) {
            continue;
        }
        let Some((before, after)) = copy_piece(source, place, &piece, &mut copies)? else {
            slot.torn += piece.len() as u32;
            continue;
        };
        let [first_words, second_words] = copies.each_ref().map(CopiedBytes::words);
        for (index, (word, second)) in piece.zip(first_words.zip(second_words)) {
            if word != second || word.is_missing() {
                continue;
            }
            let sequence = word.sequence().latest_until(after.saturating_add(DELTA));
            let is_possible = |&sequence: &u64| {
                sequence % n == index as u64 && sequence.saturating_add(n + DELTA) >= before
            };
            match sequence.filter(is_possible) {
                Some(sequence) => known.push((sequence, word)),
                // It was written over by an older word.
                None if word.sequence().is_of_index(index as u64, n) => {}
                None => slot.damaged += 1,
            }
        }
    }
    Ok(known)
}

/// Whether a piece has words from the first wanted one up to this count.
fn has_wanted(piece: &Range<usize>, place: &Place, count: u64) -> bool {
    let n = place.words as u64;
    let oldest = place.from.max(count.saturating_sub(n));
    // The first sequence from the oldest on that is in the piece.
    let first = oldest + (piece.start as u64 + n - oldest % n) % n;
    (piece.contains(&((oldest % n) as usize)) && oldest < count) || first < count
}

/// Copies some words of a slot twice. Returns the slot's count before and after; `None` if its owner was too
/// fast in all attempts.
fn copy_piece(
    source: &Source,
    place: &Place,
    piece: &Range<usize>,
    copies: &mut [CopiedBytes; 2],
) -> io::Result<Option<(u64, u64)>> {
    let mut count = CopiedBytes::default();
    let mut count_now = || count.take_all(source, place.count_at, size_of::<u64>()).map(|bytes| bytes.u64(0));
    let at = place.words_at + 8 * piece.start as u64;
    for _ in 0..ATTEMPTS {
        let before = count_now()?;
        for copy in &mut *copies {
            copy.take_all(source, at, 8 * piece.len())?;
        }
        let after = count_now()?;
        if after.wrapping_sub(before) < ADVANCE_MAX {
            return Ok(Some((before, after)));
        }
    }
    Ok(None)
}

/// Puts the words of a changing slot in order, the newest last. The words that are missing between them changed while
/// they were read.
pub(super) fn arrange(slot: &mut Slot, known: Vec<(u64, Word)>, n: u64) {
    let Some(newest) = known.iter().map(|&(sequence, _)| sequence).max() else {
        slot.words_from = slot.count;
        return;
    };
    slot.count = newest.saturating_add(1);
    slot.words_from = slot.count.saturating_sub(n).max(slot.first_sequence.min(slot.count));
    slot.words = Words::missing((slot.count - slot.words_from) as usize);
    for (sequence, word) in known {
        if let Some(at) = sequence.checked_sub(slot.words_from) {
            slot.words.set(at as usize, word);
        }
    }
    slot.torn = (slot.words.len() - slot.words.known()) as u32;
}
