//! Writes the words of an event with values: see `librip_format::event`.

use librip_format::{
    BYTES_KEPT_MAX, BYTES_KEPT_MAX_OF_MANY, BYTES_PER_WORD, SHAPE_LEFT_OUT, SHAPE_TIME, SHAPE_WORDS_MAX,
    SHAPE_WORDS_SHIFT,
};

use super::values::Values;
use crate::process::clock;
use crate::process::slot::Slot;

/// What [`rip_event!`](crate::rip_event) calls.
#[inline(always)]
pub fn event<V: Values>(pc: u64, values: V) {
    if let Some(slot) = Slot::current() {
        write(slot, Time::now(), &values, pc);
    }
}

/// The time of an event, if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    /// Known before the clock has answered, so that nothing but the word with the time waits for the clock.
    is_known: bool,
    ticks: u64,
}

impl Time {
    #[inline(always)]
    pub(super) fn now() -> Time {
        let is_known = clock::times_events();
        Time { is_known, ticks: if is_known { clock::of_event() } else { 0 } }
    }

    /// 0 if it is not known.
    #[inline(always)]
    pub(super) fn ticks(self) -> u64 {
        self.ticks
    }
}

/// Writes an event and returns the sequence of its PC word.
///
/// Texts are cut shorter if the event does not fit otherwise. If it still does not fit, its values are left out.
#[inline(always)]
pub(super) fn write<V: Values>(slot: Slot, time: Time, values: &V, pc: u64) -> u64 {
    values.prepare();
    let time_words = usize::from(time.is_known);
    // An event has a shape and a PC besides.
    let room = SHAPE_WORDS_MAX.min(slot.len() - 2) as usize - time_words;
    let mut kept_max = V::KEPT_MAX;
    let mut value_words = values.words(kept_max);
    if value_words > room {
        kept_max = shorter(values, room);
        value_words = values.words(kept_max);
        if value_words > room {
            return write_without_values(slot, time, values.types(), pc);
        }
    }
    let operands = (value_words + time_words) as u64;
    let mut words = slot.reserve(operands + 2);
    let mut shape = values.types() | operands << SHAPE_WORDS_SHIFT;
    if time.is_known {
        words.operand(time.ticks);
        shape |= SHAPE_TIME;
    }
    values.write(kept_max, &mut words);
    words.operand(shape);
    words.end(pc)
}

/// How many bytes of each text are kept of an event that has no room for more. The message is cut first.
#[cold]
#[inline(never)]
fn shorter<V: Values>(values: &V, room: usize) -> usize {
    let more_words = (V::KEPT_MAX - BYTES_KEPT_MAX) / BYTES_PER_WORD;
    let mut lengths = (0..=more_words).rev().map(|words| BYTES_KEPT_MAX + words * BYTES_PER_WORD);
    lengths.find(|&kept_max| values.words(kept_max) <= room).unwrap_or(BYTES_KEPT_MAX_OF_MANY)
}

#[cold]
#[inline(never)]
fn write_without_values(slot: Slot, time: Time, types: u64, pc: u64) -> u64 {
    let shape = types | SHAPE_LEFT_OUT;
    if time.is_known {
        return slot.event(([time.ticks], [], [shape | SHAPE_TIME | 1 << SHAPE_WORDS_SHIFT]), pc);
    }
    slot.event(([], [], [shape]), pc)
}
