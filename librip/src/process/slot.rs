//! The calling thread's slot: its words.
//!
//! It writes what it is given, and knows no kind of event. A history of a channel is written in the same way.
//! `librip_format` defines what the words mean. The tables in a slot have files of their own: `lock::table` and
//! `event::span`.
//!
//! Only the thread that owns a slot writes here. A mask in private memory keeps each store within the slot's words,
//! whatever somebody has written over the count.

#![allow(
    unsafe_code,
    reason = "a slot is reached through the thread's cursor, a raw pointer into the mapping"
)]

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::channels::Channels;
use super::clock;
use crate::arch::{self, DUE_AFTER_THIS, DUE_NOW};
use librip_format::{OpenSpan, SEQUENCE_SHIFT, SlotHeader, pack, payload};

/// The calling thread's slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The thread's cursor, or the words of one of its histories.
    words: NonNull<u64>,
    /// The number of words minus one, from private memory.
    mask: u64,
}

impl Slot {
    /// The slot. `None` before there is a ring, and for threads that do not record.
    #[inline(always)]
    pub(crate) fn current() -> Option<Slot> {
        Slot::existing().or_else(Slot::claim)
    }

    /// The slot, if the thread has one already.
    #[inline(always)]
    pub(crate) fn existing() -> Option<Slot> {
        Slot::at(arch::cursor())
    }

    /// The slot whose words are there, which is the calling thread's; `None` if the pointer is null.
    #[inline(always)]
    pub(crate) fn at(words: *mut u64) -> Option<Slot> {
        NonNull::new(words).map(|words| Slot { words, mask: mask() })
    }

    /// Claims a slot, at the thread's first mark. `None` for threads that do not record.
    #[cold]
    #[inline(never)]
    fn claim() -> Option<Slot> {
        if !arch::module().is_open() || arch::thread_block().is_absent.get() != 0 {
            return None;
        }
        arch::enter();
        Slot::existing()
    }

    #[inline(always)]
    pub(crate) fn header(self) -> &'static SlotHeader {
        // SAFETY: a cursor points right after the header of a slot, in a mapping that stays. All fields are atomics.
        unsafe { &*self.begin() }
    }

    #[inline(always)]
    pub(crate) fn begin(self) -> *const SlotHeader {
        self.words.as_ptr().wrapping_byte_sub(size_of::<SlotHeader>()).cast()
    }

    /// Records an event and returns the sequence of its PC word. The operands come in three parts, in this order.
    #[inline(always)]
    pub(crate) fn event<const A: usize, B, const C: usize>(
        self,
        (first, second, third): ([u64; A], B, [u64; C]),
        pc: u64,
    ) -> u64
    where
        B: IntoIterator<Item = u64, IntoIter: ExactSizeIterator>,
    {
        let second = second.into_iter();
        let words = self.reserve((A + second.len() + C) as u64 + 1);
        if words.next >= arch::thread_block().due.get() {
            time_is_due();
        }
        words.event((first, second, third), pc)
    }

    /// Records an event of a thread that [reads no clock](Slot::reads_clock) for it.
    #[inline(always)]
    pub(crate) fn plain_event<B, const C: usize>(self, (second, third): (B, [u64; C]), pc: u64) -> u64
    where
        B: IntoIterator<Item = u64, IntoIter: ExactSizeIterator>,
    {
        let second = second.into_iter();
        self.reserve((second.len() + C) as u64 + 1).event(([], second, third), pc)
    }

    #[inline(always)]
    pub(crate) fn reserve(self, count: u64) -> Words {
        // SAFETY: a cursor of this thread.
        let next = unsafe { arch::reserve(self.words.as_ptr(), count) };
        Words { slot: self, next }
    }
    #[inline(always)]
    pub(crate) fn len(self) -> u64 {
        self.mask + 1
    }

    /// The entry for the thread's history in a channel; `None` if the ring does not have the channel.
    #[inline(always)]
    pub(crate) fn history_entry(self, channels: &Channels, channel: u64) -> Option<u64> {
        if !channels.has(channel) {
            return None;
        }
        let entry = self.spans().as_ptr_range().end.cast::<u64>().wrapping_add(channel as usize);
        // SAFETY: each slot has entries for all channels of the ring after its open spans, in a mapping that stays.
        // ORDERING: relaxed: this thread's own store.
        Some(unsafe { AtomicU64::from_ptr(entry.cast_mut()) }.load(Relaxed))
    }

    /// The history that an entry refers to, if it can be one of so many words, a power of two. Events are recorded
    /// there as in a slot.
    #[inline(always)]
    pub(crate) fn history(channels: &Channels, entry: u64, words: u64) -> Option<Slot> {
        channels.history(entry, words).map(|words_at| Slot { words: words_at, mask: words - 1 })
    }

    /// The table of open spans, free entries included. It is empty if the ring has none.
    #[inline(always)]
    pub(crate) fn spans(self) -> &'static [OpenSpan] {
        let spans = self.words.as_ptr().wrapping_add(self.len() as usize);
        // SAFETY: in a mapping that stays, each slot has this many entries after its words. The numbers of words and
        // entries are in private memory. All fields are atomics.
        unsafe { core::slice::from_raw_parts(spans.cast(), arch::module().span_entries()) }
    }

    #[inline(always)]
    pub(crate) fn cursor(self) -> *mut u64 {
        self.words.as_ptr()
    }

    /// Whether every lock event has a time.
    #[inline(always)]
    pub(crate) fn times_all(self) -> bool {
        clock::times_all()
    }

    /// Whether events of locks read the clock: each of them, or one from time to time.
    #[inline(always)]
    pub(crate) fn reads_clock(self) -> bool {
        clock::samples()
    }

    /// The present time as an operand; 0 if times are off. For events that are rare or slow anyway.
    pub(crate) fn time(self) -> u64 {
        clock::operand()
    }

    /// Whether it is still the calling thread's slot. It is not in a child that a signal handler forked.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        arch::cursor() == self.words.as_ptr()
    }

    /// The payloads of the thread's last words, at most this many, in any order. They may be anything.
    pub(crate) fn last_payloads(self, at_most: u64) -> impl Iterator<Item = u64> {
        let mask = self.mask;
        (0..=mask.min(at_most - 1)).map(move |index| {
            // ORDERING: relaxed: this thread's own stores.
            let last = self.header().count.load(Relaxed).wrapping_sub(1);
            let word_at = self.words.as_ptr().wrapping_add((last.wrapping_sub(index) & mask) as usize);
            // SAFETY: the mask keeps the index within the slot's words, which are in a mapping that stays.
            payload(unsafe { AtomicU64::from_ptr(word_at) }.load(Relaxed))
        })
    }
}

/// Notes the time as that of the event that is being recorded, unless the event has a time of its own.
#[cold]
#[inline(never)]
fn time_is_due() {
    let due = &arch::thread_block().due;
    if due.get() == DUE_AFTER_THIS {
        due.set(DUE_NOW);
    } else {
        arch::enter();
    }
}

/// The number of words of a slot minus one.
#[inline(always)]
fn mask() -> u64 {
    // ORDERING: relaxed: written before there was a cursor.
    arch::module().mask.load(Relaxed)
}

/// The reserved words of an event, which are written one after the other.
#[derive(Debug)]
pub(crate) struct Words {
    slot: Slot,
    /// The sequence of the next word.
    next: u64,
}

impl Words {
    /// Writes the operands, which come in three parts, and the PC. Returns its sequence.
    #[inline(always)]
    fn event<const A: usize, const C: usize>(
        mut self,
        (first, second, third): ([u64; A], impl Iterator<Item = u64>, [u64; C]),
        pc: u64,
    ) -> u64 {
        // Three loops, which the compiler unrolls; it does not unroll one over a chain.
        first.into_iter().for_each(|operand| self.operand(operand));
        second.for_each(|operand| self.operand(operand));
        third.into_iter().for_each(|operand| self.operand(operand));
        self.end(pc)
    }

    /// Writes an operand, of which the lower 48 bits count.
    #[inline(always)]
    pub(crate) fn operand(&mut self, operand: u64) {
        self.store(pack(self.next, operand, true));
        // Wrapping, because somebody may have scribbled on the count.
        self.next = self.next.wrapping_add(1);
    }

    /// Writes the PC, which is the last word. Returns its sequence.
    #[inline(always)]
    pub(crate) fn end(self, pc: u64) -> u64 {
        // A PC has at most 48 bits, so it needs no mask.
        self.store(self.next << SEQUENCE_SHIFT | pc);
        self.next
    }

    #[inline(always)]
    fn store(&self, word: u64) {
        let word_at = self.slot.words.as_ptr().wrapping_add((self.next & self.slot.mask) as usize);
        // SAFETY: the mask keeps the index within the slot's words, which are in a mapping that stays.
        let target = unsafe { AtomicU64::from_ptr(word_at) };
        // ORDERING: relaxed: every word carries its sequence.
        target.store(word, Relaxed);
    }
}
