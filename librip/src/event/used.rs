//! What a thread uses in a span that asks for it, and the event that says it, of cycles too.
//!
//! `process::usage` asks the kernel, and `capture` decides which cycles have the event.
//!
//! # The order
//!
//! The kernel is asked before the span begins and after its end, so the span's own times have nothing of that. The
//! event is the first one of its thread after the span's end, unless a signal handler has recorded something between.

use core::marker::PhantomData;

use super::record::{self, Time};
use super::span::{Open, Span};
use crate::process::instance;
use crate::process::slot::Slot;
use crate::process::usage::{self, Measured, Used};
use crate::sys;

/// Answers that are younger than this stand for those at the beginning of a span: of spans that follow one another at
/// once, the end of one is the beginning of the next.
const AGE_MAX_NS: u64 = 10_000;

/// Records what a thread has used in a cycle or span, if that is wanted and known.
pub(super) fn record(words: Slot, pc_usage: u64, before: &Measured, took_us: u64) -> bool {
    if !usage::is_asked() {
        return false;
    }
    let Some(used) = before.until(&instance::measure(0)) else { return false };
    let Used { time_ns, on_cpu_ns, system_us, ready_ns, counts } = used;
    let small = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    let us = |ns: u64| small(ns / 1000);
    let ready_us = ready_ns.map_or(-1, |ns| i32::try_from(ns / 1000).unwrap_or(i32::MAX));
    let [voluntary, involuntary, minor, major] = counts.map(small);
    // The order is that of `librip_format::usage`.
    let values = (
        small(took_us),
        us(time_ns).saturating_sub(small(took_us)),
        us(on_cpu_ns),
        small(system_us),
        ready_us,
        voluntary,
        involuntary,
        minor,
        major,
    );
    record::write(words, Time::now(), &values, pc_usage);
    true
}

/// What a thread had used before a span. All zeros: that is not wanted, or not known.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    /// When the span began, on the system's monotonic clock.
    begun_ns: u64,
    used: Measured,
}

impl Before {
    /// Asks the kernel, unless that is not wanted. What [`rip_span!`](crate::rip_span) calls before the span begins.
    /// `takes`: whether the span is recorded.
    #[inline(always)]
    pub fn ask(takes: bool) -> Before {
        if takes && usage::is_asked() { Before::asked() } else { Before::default() }
    }

    #[cold]
    #[inline(never)]
    fn asked() -> Before {
        // Where a thread's answers are is known from its first mark on, which this may be.
        if Slot::current().is_none() {
            return Before::default();
        }
        let used = instance::measure(AGE_MAX_NS);
        Before { begun_ns: sys::clock_ns(libc::CLOCK_MONOTONIC), used }
    }

    /// Ends the span, and records what the thread has used in it. `words` is where the end is, if that is known before.
    #[inline(always)]
    pub(super) fn end(&self, pc_usage: u64, words: Option<Slot>, end: impl FnOnce()) {
        let ended_ns = if self.begun_ns == 0 { 0 } else { sys::clock_ns(libc::CLOCK_MONOTONIC) };
        end();
        if let Some(words) = words.filter(|_| self.begun_ns != 0) {
            self.record(words, pc_usage, ended_ns);
        }
    }

    #[cold]
    #[inline(never)]
    fn record(&self, words: Slot, pc_usage: u64, ended_ns: u64) {
        record(words, pc_usage, &self.used, ended_ns.saturating_sub(self.begun_ns) / 1000);
    }
}

/// A span that is open, and that says at its end what the thread has used in it: [`rip_span!`](crate::rip_span) returns
/// it if its first word is `usage`. The span ends when it is dropped.
///
/// It stays in its thread. A future that holds one over an `await` cannot be sent to another thread.
#[must_use = "the span ends when this is dropped"]
#[derive(Debug)]
pub struct MeasuredSpan {
    open: Option<Open>,
    before: Before,
    pc_usage: u64,
    /// It is neither `Send` nor `Sync`.
    _of_this_thread: PhantomData<*const ()>,
}

/// What [`rip_span!`](crate::rip_span) calls for a span that asks for usage. `pc_usage` is the site of the event.
#[inline(always)]
pub fn measured(before: Before, pc_usage: u64, span: Span) -> MeasuredSpan {
    MeasuredSpan { open: span.into_open(), before, pc_usage, _of_this_thread: PhantomData }
}

impl Drop for MeasuredSpan {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = self.open {
            self.before.end(self.pc_usage, open.words(), || open.end());
        }
    }
}
