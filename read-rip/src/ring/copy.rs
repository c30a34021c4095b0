//! Slots, copied while their owners write: every word is given its full sequence, or given up.
//!
//! # Why what comes out was recorded
//!
//! A word *w* carries the low 15 bits of its sequence, and the slot carries the full count *C*, which its owner
//! advances before it writes. So the question is always: which full sequence do these 15 bits stand for?
//!
//! **A slot that stands still.** It is copied twice. If both copies are equal, count included, then nothing was
//! reserved between the end of the first copy of the count and the second, because the count only grows. The
//! word at index *i* must then have the largest sequence below *C* that is *i* mod *N*. If its bits say so, it
//! is that word. If they say one lap earlier (or it is zero), then its successor has been reserved but not
//! written: unknown. Anything else is damage.
//!
//! **A slot that moves.** A piece of it is copied twice, between two readings of the count, *C0* before and *C1*
//! behind. Let δ be how far a word may be visible ahead of the count that reserved it, or behind: zero on
//! x86-64, which keeps stores in order; on aarch64 no more than a store buffer holds, far below δ = 2^12.
//! A word that lay in the piece had a sequence from C0 - N - δ (the oldest that may not have been replaced) to
//! C1 + δ. Those are fewer than 2^15 numbers if C1 - C0 < 2^15 - N - 2δ, which for the largest N = 2^14 is
//! 2^13; then 15 bits name one of them, and we require just that. No clock is asked: the writer's own count
//! says how far it came, so a reader that is scheduled away in the middle notices, and tries again.
//!
//! The words of a moving slot come from different moments. Each is an event that was recorded at that
//! sequence; those in between are given as unknown, and so is everything more than *N* before the newest.
//!
//! **Whose words.** A slot may change owners. Its header is copied before and behind the words, and state,
//! generation and ids must be the same; sequences before the owner's first are a predecessor's.
//!
//! # Why no word is a mixture of two
//!
//! FOLKLORE: one would think that `pread` copies an aligned 64-bit word by one access. It does not. Linux uses
//! `rep movsb` where that is fast, and the processor cuts such a copy as it likes: on Ice Lake under Linux 6.18 the
//! last byte of a word was seen to be newer than the other seven, at the borders of the destination's cache
//! lines and pages, at the end of a copy, and 256 bytes behind its begin. Thousands of mixtures a second came from an
//! unaligned buffer, one in a minute or so from the best aligned one; their sequences fitted.
//!
//! So a word counts when both copies have it. Its sequence only grows, and by less than 2^15 here; so if its
//! sequence bits are the same in both, the word did not change between the moments at which these bits
//! were copied. The payload was copied behind them in the first copy, or in front of them in the second: in between
//! in one of the two, as long as both take the parts of a word in the same order. So that copy has what belongs
//! to the sequence, and the other has the same. A count that is a mixture is off by 2^8, which δ covers, or by 2^16
//! and more, which the difference to the other count betrays.
//!
//! What this costs: a word that is replaced between the copies, some hundred nanoseconds, is given up. Of a thread
//! that goes around its whole slot in less, in 64 words a mark each ten nanoseconds, little is known while it
//! does so.

use std::mem::{offset_of, size_of};
use std::sync::atomic::{Ordering, fence};

use librip_format::SlotHeader;

use super::parse::Bytes;
use super::{Defect, Header, SequenceBits, Slot, SlotKind, SlotState, Source, Word, held};

/// Slots are copied this many bytes at a time.
const CHUNK_BYTES: u64 = 1 << 20;
/// A moving slot is copied in pieces of this many words: well below a microsecond each.
const PIECE_WORDS: usize = 128;
/// See the argument above.
const DELTA: u64 = 1 << 12;
/// How far a writer may come while a piece is copied.
const ADVANCE_MAX: u64 = 1 << 13;
/// How often a piece, or a slot that changes owners, is tried before it is given up.
const ATTEMPTS: u32 = 100;

const HEADER_LEN: usize = size_of::<SlotHeader>();

const _: () = assert!(
    ADVANCE_MAX + librip_format::SLOT_WORDS_MAX as u64 + 2 * DELTA <= SequenceBits::PERIOD,
    "fifteen bits must name one sequence of those that are possible"
);

/// Copies all slots that were ever used.
pub(super) fn slots(source: &Source, header: &Header, defects: &mut Vec<Defect>) -> Vec<Slot> {
    let region = header.slots;
    let len = region.entry_len_bytes;
    let mut reader = SlotReader {
        source,
        len: len as usize,
        words: header.slot_words as usize,
        has_held: true,
        slots: Vec::new(),
        damaged: Damaged::default(),
    };
    if region.used > 0 {
        let end = region.offset + region.used * len;
        let mut offset = region.offset;
        while let Some((begin, data_end)) = source.next_data(offset).filter(|&(begin, _)| begin < end) {
            let first = (begin - region.offset) / len;
            let last = (data_end.min(end) - region.offset).div_ceil(len);
            if let Err(error) = reader.range(region.offset, first, last) {
                defects.push(Defect::Io { offset: begin, what: error.to_string() });
            }
            offset = region.offset + last * len;
        }
    }
    reader.damaged.report(defects);
    reader.slots
}

/// A part of the ring, copied.
#[derive(Default)]
struct Copy(Vec<u8>);

impl Copy {
    /// Copies `len` bytes from `offset` of the ring; says how many there were.
    fn take(&mut self, source: &Source, offset: u64, len: usize) -> std::io::Result<usize> {
        self.0.resize(len, 0);
        let got = source.read_at(&mut self.0, offset)?;
        // Keeps the next copy behind this one on machines that reorder loads.
        fence(Ordering::SeqCst);
        Ok(got)
    }
}

struct SlotReader<'a> {
    source: &'a Source,
    len: usize,
    words: usize,
    /// Whether slots have held-lock tables: not before version 1.1.
    has_held: bool,
    slots: Vec<Slot>,
    damaged: Damaged,
}

/// Slots that contradict themselves: how many, and the first.
#[derive(Default)]
struct Damaged {
    state: Option<(u64, u64)>,
    sequence: Option<(u64, u64)>,
    mask: Option<(u64, u64)>,
    words: Option<(u64, u64)>,
    held: Option<(u64, u64)>,
}

impl Damaged {
    fn note(found: &mut Option<(u64, u64)>, index: u64) {
        let (count, first) = found.unwrap_or((0, index));
        *found = Some((count + 1, first));
    }

    fn report(self, defects: &mut Vec<Defect>) {
        for (found, what) in [
            (self.state, "a state that there is not"),
            (self.sequence, "an owner whose first word is behind the last"),
            (self.mask, "a mask that is not the header's"),
            (self.words, "words do not belong where they are"),
            (self.held, "a lock is held in a way that there is not"),
        ] {
            if let Some((count, first)) = found {
                defects.push(Defect::Slots { count, first, what });
            }
        }
    }
}

impl SlotReader<'_> {
    /// Slots `first..last`; the region begins at `region`.
    fn range(&mut self, region: u64, first: u64, last: u64) -> std::io::Result<()> {
        let at_once = (CHUNK_BYTES / self.len as u64).max(1);
        let mut both = [Copy::default(), Copy::default()];
        for from in (first..last).step_by(at_once as usize) {
            let to = (from + at_once).min(last);
            let offset = region + from * self.len as u64;
            let wanted = (to - from) as usize * self.len;
            let copies = if self.source.may_change() { 2 } else { 1 };
            let mut got = wanted;
            for copy in &mut both[..copies] {
                got = got.min(copy.take(self.source, offset, wanted)?);
            }
            let [first_copy, second_copy] = &both;
            // A slot that is not all there was cut off with the file, which has been reported.
            for (position, index) in (from..to).enumerate().take(got / self.len) {
                let part = position * self.len..(position + 1) * self.len;
                let bytes = &first_copy.0[part.clone()];
                let stands_still = copies == 1 || *bytes == second_copy.0[part];
                let bytes = Bytes(bytes);
                let slot = if stands_still {
                    self.still(index, &bytes)
                } else {
                    self.moving(index, region + index * self.len as u64)
                };
                self.slots.extend(slot);
            }
        }
        Ok(())
    }

    /// A slot of which nothing changed while it was copied.
    fn still(&mut self, index: u64, bytes: &Bytes<'_>) -> Option<Slot> {
        let mut slot = self.owner(index, bytes)?;
        let n = self.words as u64;
        if slot.state != SlotState::Claiming && bytes.u64(offset_of!(SlotHeader, mask)) != n - 1 {
            Damaged::note(&mut self.damaged.mask, index);
        }
        self.held(&mut slot, bytes, bytes);
        let from = slot.count.saturating_sub(n).max(slot.first_sequence.min(slot.count));
        slot.words_from = from;
        slot.words.reserve_exact((slot.count - from) as usize);
        for sequence in from..slot.count {
            let word = Word::from_raw(bytes.u64(HEADER_LEN + 8 * (sequence % n) as usize));
            let is_known = !word.is_missing() && word.sequence() == SequenceBits::of(sequence);
            if !is_known {
                let is_lap_before =
                    word.is_missing() || word.sequence() == SequenceBits::of(sequence.wrapping_sub(n));
                *if is_lap_before { &mut slot.unwritten } else { &mut slot.damaged } += 1;
            }
            slot.words.push(if is_known { word } else { Word::MISSING });
        }
        if slot.damaged > 0 {
            Damaged::note(&mut self.damaged.words, index);
        }
        Some(slot)
    }

    /// A slot whose owner writes, or changes, while we look.
    fn moving(&mut self, index: u64, offset: u64) -> Option<Slot> {
        let mut header = Copy::default();
        let mut header_behind = Copy::default();
        let mut best = None;
        for _ in 0..ATTEMPTS {
            if header.take(self.source, offset, HEADER_LEN).ok()? < HEADER_LEN {
                return None;
            }
            let mut slot = self.owner(index, &Bytes(&header.0))?;
            let known = self.known_words(offset, &mut slot)?;
            if header_behind.take(self.source, offset, HEADER_LEN).ok()? < HEADER_LEN {
                return None;
            }
            if is_same_owner(&Bytes(&header.0), &Bytes(&header_behind.0)) {
                self.held(&mut slot, &Bytes(&header.0), &Bytes(&header_behind.0));
                place(&mut slot, known, self.words as u64);
                return Some(slot);
            }
            slot.torn = self.words as u32;
            slot.words_from = slot.count;
            best = Some(slot);
        }
        best
    }

    /// Words of a moving slot with their full sequences, in no order.
    fn known_words(&self, offset: u64, slot: &mut Slot) -> Option<Vec<(u64, Word)>> {
        let count_offset = offset + offset_of!(SlotHeader, count) as u64;
        let n = self.words as u64;
        let mut known = Vec::with_capacity(self.words);
        let mut piece = Copy::default();
        let mut again = Copy::default();
        let mut count = Copy::default();
        let mut count_now = || {
            let got = count.take(self.source, count_offset, 8).ok()?;
            (got == 8).then(|| Bytes(&count.0).u64(0))
        };
        for first in (0..self.words).step_by(PIECE_WORDS) {
            let piece_words = PIECE_WORDS.min(self.words - first);
            let piece_offset = offset + (HEADER_LEN + 8 * first) as u64;
            let mut is_copied = false;
            for _ in 0..ATTEMPTS {
                let before = count_now()?;
                for copy in [&mut piece, &mut again] {
                    if copy.take(self.source, piece_offset, 8 * piece_words).ok()? < 8 * piece_words {
                        return None;
                    }
                }
                let behind = count_now()?;
                if behind.wrapping_sub(before) >= ADVANCE_MAX {
                    continue;
                }
                for position in 0..piece_words {
                    let raw = Bytes(&piece.0).u64(8 * position);
                    if raw != Bytes(&again.0).u64(8 * position) {
                        continue;
                    }
                    let word = Word::from_raw(raw);
                    let index = (first + position) as u64;
                    let sequence = word.sequence().latest_until(behind.saturating_add(DELTA));
                    let is_possible = !word.is_missing()
                        && sequence.is_some_and(|sequence| {
                            sequence % n == index && sequence.saturating_add(n + DELTA) >= before
                        });
                    match sequence.filter(|_| is_possible) {
                        Some(sequence) => known.push((sequence, word)),
                        None if word.is_missing() => {}
                        None => slot.damaged += 1,
                    }
                }
                is_copied = true;
                break;
            }
            if !is_copied {
                slot.torn += piece_words as u32;
            }
        }
        Some(known)
    }

    /// The held-lock table, out of two copies of the slot's header.
    fn held(&mut self, slot: &mut Slot, bytes: &Bytes<'_>, again: &Bytes<'_>) {
        // While it changes owners, the table is nobody's.
        if !self.has_held || slot.state == SlotState::Claiming {
            return;
        }
        let table = held::read(bytes, again);
        if table.damaged > 0 {
            Damaged::note(&mut self.damaged.held, slot.index);
        }
        slot.held = table.locks;
        slot.held_in_flux = table.in_flux;
        slot.held_overflowed = bytes.u32(offset_of!(SlotHeader, held_overflowed));
    }

    /// The slot's header; `None` for a slot that was never used.
    fn owner(&mut self, index: u64, bytes: &Bytes<'_>) -> Option<Slot> {
        let raw_state = bytes.u32(offset_of!(SlotHeader, state));
        let count = bytes.u64(offset_of!(SlotHeader, count));
        if raw_state == librip_format::SLOT_FREE && count == 0 {
            return None;
        }
        let state = match raw_state {
            librip_format::SLOT_LIVE => SlotState::Live,
            librip_format::SLOT_EXITED => SlotState::Exited,
            librip_format::SLOT_CLAIMING => SlotState::Claiming,
            _ => {
                Damaged::note(&mut self.damaged.state, index);
                SlotState::Live
            }
        };
        let first_sequence = match state {
            // Its ids are the next owner's already, or some of them, and that one has written nothing.
            SlotState::Claiming => count,
            SlotState::Live | SlotState::Exited => bytes.u64(offset_of!(SlotHeader, first_sequence)),
        };
        if first_sequence > count {
            Damaged::note(&mut self.damaged.sequence, index);
        }
        Some(Slot {
            index,
            state,
            kind: SlotKind::from(bytes.u32(offset_of!(SlotHeader, kind))),
            generation: bytes.u32(offset_of!(SlotHeader, generation)),
            pid: bytes.u32(offset_of!(SlotHeader, pid)),
            tid: bytes.u32(offset_of!(SlotHeader, tid)),
            pid_namespace: bytes.u64(offset_of!(SlotHeader, pid_namespace)),
            claimed_boottime_ns: bytes.u64(offset_of!(SlotHeader, claimed_boottime_ns)),
            exited_boottime_ns: bytes.u64(offset_of!(SlotHeader, exited_boottime_ns)),
            name: bytes.text(offset_of!(SlotHeader, name), librip_format::NAME_LEN_BYTES),
            held: Vec::new(),
            held_overflowed: 0,
            held_in_flux: 0,
            first_sequence,
            count,
            words_from: 0,
            words: Vec::new(),
            unwritten: 0,
            torn: 0,
            damaged: 0,
        })
    }
}

/// Whether two copies of a slot's header are of the same owner. Its name and what later versions keep there may
/// change while it owns the slot.
fn is_same_owner(one: &Bytes<'_>, other: &Bytes<'_>) -> bool {
    let same_u32 = |at| one.u32(at) == other.u32(at);
    let same_u64 = |at| one.u64(at) == other.u64(at);
    same_u32(offset_of!(SlotHeader, state))
        && same_u32(offset_of!(SlotHeader, generation))
        && same_u32(offset_of!(SlotHeader, pid))
        && same_u32(offset_of!(SlotHeader, tid))
        && same_u64(offset_of!(SlotHeader, claimed_boottime_ns))
        && same_u64(offset_of!(SlotHeader, first_sequence))
}

/// Puts words of a moving slot in order, the newest last; what is missing in between was in motion.
fn place(slot: &mut Slot, known: Vec<(u64, Word)>, n: u64) {
    let Some(newest) = known.iter().map(|&(sequence, _)| sequence).max() else {
        slot.words_from = slot.count;
        return;
    };
    slot.count = newest.saturating_add(1);
    slot.words_from = slot.count.saturating_sub(n).max(slot.first_sequence.min(slot.count));
    slot.words = vec![Word::MISSING; (slot.count - slot.words_from) as usize];
    for (sequence, word) in known {
        let at = sequence.checked_sub(slot.words_from).map(|at| at as usize);
        if let Some(place) = at.and_then(|at| slot.words.get_mut(at)) {
            *place = word;
        }
    }
    slot.torn = slot.words.iter().filter(|word| word.is_missing()).count() as u32;
}
