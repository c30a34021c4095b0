//! Spans, and the calling thread's table of open ones: see `librip_format::span`.
//!
//! # Invariants
//!
//! * Only the thread that owns a slot writes to its table. A guard cannot be sent to another thread.
//! * A signal handler may open and close spans at any instruction. It leaves the table as it found it, so an entry that
//!   was free before it is free after it.
//! * What is read from the table may have been scribbled on. It decides which entry is used, and nothing else.
//!
//! # Orderings
//!
//! As in `lock::table`: stores are releases, so that they become visible in program order.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Relaxed, Release};

use librip_format::{LEVEL_INFO, OpenSpan, pack, span_since};

use super::channel::Channel;
use super::record::{self, Time};
use super::values::Values;
use crate::process::instance::{self, Request};
use crate::process::slot::Slot;

/// A span that is open: [`rip_span!`](crate::rip_span) returns it. The span ends when it is dropped.
///
/// It stays in its thread. A future that holds one over an `await` cannot be sent to another thread.
#[must_use = "the span ends when this is dropped"]
#[derive(Debug)]
pub struct Span {
    open: Option<Open>,
    /// It is neither `Send` nor `Sync`.
    _of_this_thread: PhantomData<*const ()>,
}

/// An open span without a guard: who has it ends it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    slot: Slot,
    /// Where its words are: the slot, or a history of a channel.
    history: Slot,
    entry: Option<&'static OpenSpan>,
    /// The PC word of the beginning.
    begin: u64,
    /// Ticks, or 0.
    since: u64,
    pc_end: u64,
}

/// What [`rip_span!`](crate::rip_span) calls. `pc_end` is the site of the end.
#[inline(always)]
pub fn begin<V: Values>(pc: u64, pc_end: u64, values: V) -> Span {
    Span { open: open(pc, pc_end, values), _of_this_thread: PhantomData }
}

/// Begins a span. `None` for threads that do not record.
#[inline(always)]
pub(crate) fn open<V: Values>(pc: u64, pc_end: u64, values: V) -> Option<Open> {
    Slot::current().map(|slot| open_in(slot, slot, (pc, pc_end), &values))
}

/// What [`rip_span!`](crate::rip_span) calls for a span in a channel.
#[inline(always)]
pub fn begin_in<V: Values>(channel: &Channel, pc: u64, pc_end: u64, values: V) -> Span {
    let slot = if channel.takes(LEVEL_INFO) { Slot::current() } else { None };
    let open = slot.and_then(|slot| Some(open_in(slot, channel.history(slot)?, (pc, pc_end), &values)));
    Span { open, _of_this_thread: PhantomData }
}

#[inline(always)]
fn open_in<V: Values>(slot: Slot, history: Slot, (pc, pc_end): (u64, u64), values: &V) -> Open {
    let time = Time::now();
    let begin = pack(record::write(history, time, values, pc), pc, false);
    let since = time.ticks();
    let entry = enter(slot, begin, since, values.first()).map(|(_, entry)| entry);
    Open { slot, history, entry, begin, since, pc_end }
}

/// Enters an open span, if there is room. Returns the entry and its index.
#[inline(always)]
pub(super) fn enter(
    slot: Slot,
    begin: u64,
    since: u64,
    (value_type, value): (u64, u64),
) -> Option<(usize, &'static OpenSpan)> {
    // ORDERING: relaxed: this thread's own stores.
    let mut spans = slot.spans().iter().enumerate();
    let Some((index, entry)) = spans.find(|(_, span)| span.begin.load(Relaxed) == 0) else {
        overflowed();
        return None;
    };
    entry.value.store(value, Release);
    entry.since.store(span_since(begin, since, value_type, value), Release);
    entry.begin.store(begin, Release);
    Some((index, entry))
}

/// Frees the entry of a span, unless it is another span's by now.
#[inline(always)]
pub(super) fn leave(entry: &OpenSpan, begin: u64) {
    if entry.begin.load(Relaxed) == begin {
        entry.begin.store(0, Release);
    }
}

#[cold]
#[inline(never)]
fn overflowed() {
    instance::count(Request::SPANS_OVERFLOWED);
}

impl Span {
    /// The span without its guard.
    #[inline(always)]
    pub(super) fn into_open(mut self) -> Option<Open> {
        self.open.take()
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = self.open {
            open.end();
        }
    }
}

impl Open {
    /// Where its end will be; `None` if it ends in another slot.
    #[inline(always)]
    pub(super) fn words(&self) -> Option<Slot> {
        self.slot.is_current().then_some(self.history)
    }

    #[inline(always)]
    pub(crate) fn end(self) {
        if !self.slot.is_current() {
            return self.end_elsewhere();
        }
        if let Some(entry) = self.entry {
            leave(entry, self.begin);
        }
        self.history.event(([Time::now().ticks(), self.since], [], []), self.pc_end);
    }

    /// The span ends in a child that was forked meanwhile, or in a thread that has given up its slot. Its end is in the
    /// present slot then, also if it began in a channel.
    #[cold]
    #[inline(never)]
    fn end_elsewhere(self) {
        if let Some(slot) = Slot::current() {
            slot.event(([Time::now().ticks(), self.since], [], []), self.pc_end);
        }
    }
}
