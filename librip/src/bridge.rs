//! For bridges from other interfaces of tracing and logging: sites that are made when the program runs.
//!
//! A mark like [`rip_event!`](crate::rip_event) is a *site*: a place in the source, with a level and a format, which
//! the linker keeps. An interface that knows its places only when the program runs makes a [`Callsite`] for each of
//! them. The first event of a callsite enters it in the ring. From then on, an event costs about what one of
//! `rip_event!` does. `read-rip` shows both alike.
//!
//! This module formats nothing and keeps no callsites: the bridge does. `librip-tracing` is such a bridge, for the
//! crates `tracing` and `log`.
//!
//! # Examples
//!
//! ```
//! use librip::bridge::{AnyValue, Callsite, Level, Place};
//!
//! // Something that lasts as long as the program, and that no other callsite has.
//! static STARTED: [u8; 1] = [0];
//! let place = Place { file: "src/script.lua", line: 7, module_path: "script" };
//! let started = Callsite::event(&STARTED, 0, place, Level::Info, "started {} of {} workers");
//!
//! started.record(&[AnyValue::U64(3), AnyValue::U64(8)])?;
//! # Ok::<(), librip::bridge::NoRoom>(())
//! ```

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Release};

use librip_format::{
    KIND_EVENT, KIND_SPAN_BEGIN, KIND_SPAN_END, LEVEL_DEBUG, LEVEL_ERROR, LEVEL_INFO, LEVEL_TRACE,
    LEVEL_WARN, OPERAND_SHAPE, OPERAND_SINCE, OPERAND_TIME, PAYLOAD_MASK,
};

pub use crate::event::any_value::AnyValue;
use crate::event::{record, span};
use crate::process::instance;
use crate::process::slot::Slot;
use crate::ring::process_sites::NewSite;

/// The level of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The finest.
    Trace,
    /// For who debugs the program.
    Debug,
    /// The usual one.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something has failed.
    Error,
}

impl Level {
    const fn flags(self) -> u16 {
        match self {
            Level::Trace => LEVEL_TRACE,
            Level::Debug => LEVEL_DEBUG,
            Level::Info => LEVEL_INFO,
            Level::Warn => LEVEL_WARN,
            Level::Error => LEVEL_ERROR,
        }
    }
}

/// A place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file.
    pub file: &'a str,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The module path, or empty.
    pub module_path: &'a str,
}

/// The ring has no room for another site. The header of the ring counts such callsites, and `read-rip` mentions them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the ring has no room for another site")
    }
}

impl core::error::Error for NoRoom {}

/// Whether the calling thread records. Its first mark claims a slot; this is a mark.
///
/// A bridge asks it before it formats anything.
#[inline]
pub fn is_recording_here() -> bool {
    Slot::current().is_some()
}

/// A place of the program that records events or spans.
///
/// The ring knows it by an address: that of a byte of `identity`, which is anything that lasts as long as the program.
/// No two callsites may have the same byte. If they do, `read-rip` shows what both say.
#[derive(Debug)]
pub struct Callsite {
    pc: u64,
    /// File, module path and label, separated by zero bytes.
    text: Box<str>,
    line: u32,
    kind: Kind,
    /// [`NEW`], [`ENTERED`] or [`REFUSED`].
    state: AtomicU8,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Event(Level),
    Span,
}

const NEW: u8 = 0;
const ENTERED: u8 = 1;
const REFUSED: u8 = 2;

impl Callsite {
    /// A callsite of events. `format` is one as for [`rip_event!`](crate::rip_event), with as many places as an event
    /// has values; places have no names.
    ///
    /// The address of the byte `index` of `identity` is the callsite's.
    ///
    /// # Panics
    ///
    /// If `identity` has no such byte.
    pub fn event<I: Sync>(
        identity: &'static I,
        index: usize,
        place: Place<'_>,
        level: Level,
        format: &str,
    ) -> Callsite {
        assert!(index < size_of::<I>(), "each callsite has a byte of its own");
        Callsite::new(address(identity, index), place, &[format], Kind::Event(level))
    }

    /// A callsite of spans, with a name, and a format for the values.
    ///
    /// The addresses of the bytes `index` and `index + 1` of `identity` are the callsite's.
    ///
    /// # Panics
    ///
    /// If `identity` has no such bytes.
    pub fn span<I: Sync>(
        identity: &'static I,
        index: usize,
        place: Place<'_>,
        name: &str,
        format: &str,
    ) -> Callsite {
        assert!(index + 1 < size_of::<I>(), "each callsite has bytes of its own");
        Callsite::new(address(identity, index), place, &[name, format], Kind::Span)
    }

    fn new(pc: u64, place: Place<'_>, label: &[&str], kind: Kind) -> Callsite {
        // The parts of the text end with zero bytes, so they contain none.
        let parts = [place.file, place.module_path].into_iter().chain(label.iter().copied());
        let parts: Vec<String> = parts.map(|part| part.replace('\0', " ")).collect();
        let text = parts.join("\0").into_boxed_str();
        Callsite { pc, text, line: place.line, kind, state: AtomicU8::new(NEW) }
    }

    /// Records an event. The first ten values count. It does nothing for threads that do not record.
    ///
    /// # Errors
    ///
    /// If the ring has no room for the callsite. Then nothing is recorded.
    ///
    /// # Panics
    ///
    /// If it is a callsite of spans.
    #[inline]
    pub fn record(&self, values: &[AnyValue<'_>]) -> Result<(), NoRoom> {
        assert!(matches!(self.kind, Kind::Event(_)), "a span is not recorded but begun");
        if is_recording_here() {
            self.enter()?;
            record::event(self.pc, values);
        }
        Ok(())
    }

    /// Begins a span of the calling thread. `None` for threads that do not record.
    ///
    /// # Errors
    ///
    /// If the ring has no room for the callsite. Then nothing is recorded.
    ///
    /// # Panics
    ///
    /// If it is a callsite of events.
    #[inline]
    pub fn begin(&self, values: &[AnyValue<'_>]) -> Result<Option<OpenSpan>, NoRoom> {
        assert!(matches!(self.kind, Kind::Span), "an event has no end");
        if !is_recording_here() {
            return Ok(None);
        }
        self.enter()?;
        let open = span::open(self.pc, self.pc + 1, values);
        Ok(open.map(|open| OpenSpan { open, _of_this_thread: PhantomData }))
    }

    /// Enters the callsite in the ring, unless it is there.
    #[inline(always)]
    fn enter(&self) -> Result<(), NoRoom> {
        // ORDERING: acquire, pairs with the release in `enter_new`: who records an event of the site knows that the
        // site is complete in the ring, so no reader finds the event without its site.
        match self.state.load(Acquire) {
            ENTERED => Ok(()),
            _ => self.enter_new(),
        }
    }

    /// Threads that come here at once do not wait for one another: each enters the site, and readers know that both are
    /// the same. A child that was forked meanwhile enters it too.
    #[cold]
    #[inline(never)]
    fn enter_new(&self) -> Result<(), NoRoom> {
        if self.state.load(Acquire) == REFUSED {
            return Err(NoRoom);
        }
        let site = |pc, kind, flags, operands| NewSite::new(pc, &self.text, self.line, kind, flags, operands);
        let is_entered = match self.kind {
            Kind::Event(level) => {
                instance::enter_site(&site(self.pc, KIND_EVENT, level.flags(), &[OPERAND_SHAPE]))
            }
            Kind::Span => {
                let end = site(self.pc + 1, KIND_SPAN_END, 0, &[OPERAND_TIME, OPERAND_SINCE]);
                instance::enter_site(&site(self.pc, KIND_SPAN_BEGIN, 0, &[OPERAND_SHAPE]))
                    && instance::enter_site(&end)
            }
        };
        // ORDERING: release, pairs with the acquire in `enter`.
        self.state.store(if is_entered { ENTERED } else { REFUSED }, Release);
        if is_entered { Ok(()) } else { Err(NoRoom) }
    }
}

/// The address of a byte, without what some processors allow above the 48 bits of an address.
fn address<I>(identity: &'static I, index: usize) -> u64 {
    (core::ptr::from_ref(identity).addr() + index) as u64 & PAYLOAD_MASK
}

/// A span that has begun. It has no guard: [`OpenSpan::end`] ends it, in the same thread.
///
/// If it is dropped, the span stays open as long as its thread lives.
#[must_use = "the span ends when `end` is called"]
#[derive(Debug)]
pub struct OpenSpan {
    open: span::Open,
    /// It is neither `Send` nor `Sync`.
    _of_this_thread: PhantomData<*const ()>,
}

impl OpenSpan {
    /// Ends the span.
    #[inline]
    pub fn end(self) {
        self.open.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place { file: "a\0b.rs", line: 3, module_path: "a" };

    #[test]
    fn a_zero_byte_in_a_name_separates_no_parts() {
        static IDENTITY: u16 = 0;
        let span = Callsite::span(&IDENTITY, 0, PLACE, "na\0me", "{}");
        assert_eq!(&*span.text, "a b.rs\0a\0na me\0{}");
    }

    #[test]
    #[should_panic(expected = "bytes of its own")]
    fn a_span_needs_two_bytes() {
        static IDENTITY: u16 = 0;
        drop(Callsite::span(&IDENTITY, 1, PLACE, "", ""));
    }

    #[test]
    fn without_a_ring_nothing_is_entered() {
        static IDENTITY: u16 = 0;
        let event = Callsite::event(&IDENTITY, 1, PLACE, Level::Warn, "{}");
        assert_eq!(event.record(&[AnyValue::Bool(true)]), Ok(()));
        assert_eq!(event.state.into_inner(), NEW);
        let span = Callsite::span(&IDENTITY, 0, PLACE, "", "");
        assert!(matches!(span.begin(&[]), Ok(None)));
    }
}
