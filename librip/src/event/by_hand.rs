//! Spans that a program in C begins and ends by calls: plain data, which the program keeps.
//!
//! # Invariants
//!
//! * Nothing here is an address that is followed. A program may overwrite the data, or end a span in another thread:
//!   that decides which entry of the calling thread's own table is looked at, and what an event says.
//! * An entry is freed only if it still has the word that began this span: see [`span`](super::span).

use librip_format::pack;

use super::channel_by_hand::{ChannelByHand, HistoryPlace};
use super::record::{self, Time};
use super::span;
use super::values::Values;
use crate::process::slot::Slot;

/// [`SpanByHand::entry`]: the span has no entry.
const NO_ENTRY: u32 = u32::MAX;

/// A span that is open. All zeros: none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanByHand {
    /// The PC word of the beginning; 0 if there is no span.
    begin: u64,
    /// Ticks, or 0.
    since: u64,
    /// The site of the end.
    pc_end: u64,
    /// The address of the words of the thread's slot.
    cursor: u64,
    /// The index of the entry in the slot's table, or [`NO_ENTRY`].
    entry: u32,
    /// The history of a channel, in which the span is: see [`HistoryPlace::to_bits`]; 0 if it is in none.
    history: u32,
}

impl SpanByHand {
    /// Begins a span.
    #[inline]
    pub fn begin<V: Values>(pc: u64, pc_end: u64, values: V) -> SpanByHand {
        let Some(slot) = Slot::current() else { return SpanByHand::default() };
        SpanByHand::write(slot, (slot, 0), (pc, pc_end), &values)
    }

    /// Begins a span in a channel.
    ///
    /// # Safety
    ///
    /// As [`ChannelByHand::takes`].
    #[allow(unsafe_code, reason = "the name of the channel is a text of a program in C")]
    #[inline]
    pub unsafe fn begin_in<V: Values>(
        channel: &ChannelByHand,
        pc: u64,
        pc_end: u64,
        values: V,
    ) -> SpanByHand {
        let Some(slot) = Slot::current() else { return SpanByHand::default() };
        // SAFETY: the caller's promise.
        let Some((history, place)) = (unsafe { channel.history(slot) }) else { return SpanByHand::default() };
        SpanByHand::write(slot, (history, place.to_bits()), (pc, pc_end), &values)
    }

    #[inline(always)]
    fn write<V: Values>(
        slot: Slot,
        (words, history): (Slot, u32),
        (pc, pc_end): (u64, u64),
        values: &V,
    ) -> SpanByHand {
        let time = Time::now();
        let begin = pack(record::write(words, time, values, pc), pc, false);
        let since = time.ticks();
        let entry = span::enter(slot, begin, since, values.first());
        let entry = entry.map_or(NO_ENTRY, |(index, _)| index as u32);
        SpanByHand { begin, since, pc_end, cursor: address(slot), entry, history }
    }

    /// Ends the span.
    pub fn end(self) {
        if self.begin == 0 {
            return;
        }
        let Some(slot) = Slot::current() else { return };
        let mut words = slot;
        // In a child that was forked meanwhile, the thread has another slot, and the entry is its parent's. The end is
        // in the child's slot then, also if the span began in a channel.
        if address(slot) == self.cursor {
            if let Some(entry) = slot.spans().get(self.entry as usize) {
                span::leave(entry, self.begin);
            }
            if self.history != 0 {
                words = HistoryPlace::find(self.history, slot).unwrap_or(slot);
            }
        }
        words.event(([Time::now().ticks(), self.since], [], []), self.pc_end);
    }
}

const _: () = assert!(size_of::<SpanByHand>() == 40, "the header says 40");

fn address(slot: Slot) -> u64 {
    slot.cursor().addr() as u64
}
