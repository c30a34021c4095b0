//! Decodes words into events.
//!
//! An event is a PC word and the operand words directly before it. The caller says how many operand words the site
//! of a PC has; this file does not know what they mean. Incomplete events are left out and counted; missing
//! operands are never guessed.

use std::ops::Range;

use crate::{OperandWords, Slot, shape_words};

/// A mark that a thread passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The sequence of the PC word.
    pub sequence: u64,
    /// Actual address of the mark.
    pub pc: u64,
    /// The operand words, as a range of indices into the slot's words.
    pub operands: Range<usize>,
}

/// The words that are not part of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftover {
    /// PC words with too few operand words before them.
    pub incomplete_events: u64,
    /// Operand words that belong to no event: the PC word is missing, or a crash kept it from being written.
    pub stray_operands: u64,
}

impl std::ops::AddAssign for Leftover {
    fn add_assign(&mut self, other: Leftover) {
        self.incomplete_events += other.incomplete_events;
        self.stray_operands += other.stray_operands;
    }
}

/// All events of a slot, oldest first. `operand_words` says how many operand words the
/// site of a PC has.
pub fn events(slot: &Slot, mut operand_words: impl FnMut(u64) -> OperandWords) -> (Vec<Event>, Leftover) {
    let (events, leftover) = events_with(slot, |pc| (operand_words(pc), ()));
    (events.into_iter().map(|(event, ())| event).collect(), leftover)
}

/// Like [`events`]. `look_up` also says something else about a PC, which is returned with each of its events.
pub fn events_with<T>(
    slot: &Slot,
    mut look_up: impl FnMut(u64) -> (OperandWords, T),
) -> (Vec<(Event, T)>, Leftover) {
    // There are at most as many events as words.
    let mut events = Vec::with_capacity(slot.words.len());
    let mut leftover = Leftover::default();
    // The number of operand words directly before the current word.
    let mut pending = 0usize;
    let mut next = 0;
    for (index, word) in slot.words.iter() {
        if index != next {
            // The words in between are missing.
            leftover.stray_operands += std::mem::take(&mut pending) as u64;
        }
        next = index + 1;
        if word.is_operand() {
            pending += 1;
            continue;
        }
        if !word.is_missing() {
            let pc = word.payload();
            let (words, found) = look_up(pc);
            match before(slot, index, words).filter(|&wanted| wanted <= pending) {
                Some(wanted) => {
                    let (sequence, operands) = (slot.words_from + index as u64, index - wanted..index);
                    events.push((Event { sequence, pc, operands }, found));
                    pending -= wanted;
                }
                None => {
                    leftover.incomplete_events += 1;
                    pending = 0;
                }
            }
        }
        leftover.stray_operands += pending as u64;
        pending = 0;
    }
    leftover.stray_operands += pending as u64;
    (events, leftover)
}

pub fn last_event(slot: &Slot, mut operand_words: impl FnMut(u64) -> OperandWords) -> Option<Event> {
    (0..slot.words.len()).rev().find_map(|index| {
        let word = slot.words.get(index)?;
        if word.is_missing() || word.is_operand() {
            return None;
        }
        let pc = word.payload();
        let begin = index.checked_sub(before(slot, index, operand_words(pc))?)?;
        let is_complete =
            (begin..index).all(|index| slot.words.get(index).is_some_and(|word| word.is_operand()));
        is_complete.then(|| Event { sequence: slot.words_from + index as u64, pc, operands: begin..index })
    })
}

/// How many operand words stand before the PC word at an index; `None` if the word that says it is missing.
fn before(slot: &Slot, index: usize, words: OperandWords) -> Option<usize> {
    match words {
        OperandWords::Fixed(count) => Some(count as usize),
        OperandWords::Shaped => {
            let shape = slot.words.get(index.checked_sub(1)?)?;
            shape.is_operand().then(|| 1 + shape_words(shape.payload()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Word, Words};

    const SNAP: u64 = 0x1000;
    /// Has two operand words.
    const LOCK: u64 = 0x2000;
    /// Has a shape.
    const EVENT: u64 = 0x3000;

    fn slot(words: &[(u64, bool)]) -> Slot {
        let word = |(&(payload, is_operand), sequence)| match (payload, is_operand) {
            (0, _) => Word::MISSING,
            (operand, true) => Word::operand(sequence, operand),
            (pc, false) => Word::pc(sequence, pc),
        };
        let words: Words = words.iter().zip(100..).map(word).collect();
        Slot { count: 100 + words.len() as u64, words_from: 100, words, ..Slot::default() }
    }

    fn operand_words(pc: u64) -> OperandWords {
        match pc {
            LOCK => OperandWords::Fixed(2),
            EVENT => OperandWords::Shaped,
            _ => OperandWords::Fixed(0),
        }
    }

    /// The shape of an event with this many words before it.
    fn shape(words: u64) -> u64 {
        words << librip_format::SHAPE_WORDS_SHIFT
    }

    #[test]
    fn a_shape_says_how_many_words_belong_to_its_event() {
        let slot = slot(&[
            (9, true),
            (7, true),
            (8, true),
            (shape(2), true),
            (EVENT, false),
            (6, true),
            (shape(1), true),
            (EVENT, false),
        ]);
        let (events, leftover) = events(&slot, operand_words);
        assert_eq!(events.iter().map(|event| event.operands.clone()).collect::<Vec<_>>(), [1..4, 5..7]);
        assert_eq!(leftover, Leftover { incomplete_events: 0, stray_operands: 1 });
        assert_eq!(last_event(&slot, operand_words).unwrap().operands, 5..7);
    }

    #[test]
    fn an_event_whose_shape_or_words_are_missing_is_left_out() {
        let slot =
            slot(&[(7, true), (shape(2), true), (EVENT, false), (7, true), (0, false), (EVENT, false)]);
        let (events, leftover) = events(&slot, operand_words);
        assert!(events.is_empty());
        assert_eq!(leftover, Leftover { incomplete_events: 2, stray_operands: 1 });
        assert_eq!(last_event(&slot, operand_words), None);
    }

    #[test]
    fn operands_belong_to_the_pc_after_them() {
        let slot = slot(&[(SNAP, false), (7, true), (8, true), (LOCK, false), (SNAP, false)]);
        let (events, leftover) = events(&slot, operand_words);
        let seen: Vec<_> = events.iter().map(|e| (e.sequence, e.pc, e.operands.clone())).collect();
        assert_eq!(seen, [(100, SNAP, 0..0), (103, LOCK, 1..3), (104, SNAP, 4..4)]);
        assert_eq!(leftover, Leftover::default());
        assert_eq!(last_event(&slot, operand_words).unwrap().sequence, 104);
    }

    #[test]
    fn an_event_without_all_of_its_operands_is_left_out_and_counted() {
        // The first event lacks an overwritten operand, the second a missing one. A crash prevented the last PC word.
        let slot = slot(&[(8, true), (LOCK, false), (0, false), (8, true), (LOCK, false), (7, true)]);
        let (events, leftover) = events(&slot, operand_words);
        assert!(events.is_empty());
        assert_eq!(leftover, Leftover { incomplete_events: 2, stray_operands: 1 });
        assert_eq!(last_event(&slot, operand_words), None);
    }

    #[test]
    fn operands_before_a_mark_without_operands_are_strays() {
        let slot = slot(&[(8, true), (SNAP, false), (1, true), (7, true), (8, true), (LOCK, false)]);
        let (events, leftover) = events(&slot, operand_words);
        assert_eq!(events.iter().map(|event| event.pc).collect::<Vec<_>>(), [SNAP, LOCK]);
        assert_eq!(events[1].operands, 3..5);
        assert_eq!(leftover, Leftover { incomplete_events: 0, stray_operands: 2 });
    }
}
