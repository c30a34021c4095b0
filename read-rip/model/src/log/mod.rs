//! Events with values, and spans, of all threads in one order.
//!
//! It decodes and orders; it makes no sentences, except for the text of an event, which the program has written.
//!
//! # The order
//!
//! Events have times of one clock. If two are some microseconds apart, they are in the right order. If they are of
//! different threads and closer, they may be in the wrong one: an event reads the counter without a fence, so its
//! processor may do that before it has got a value that another thread handed over. `scripts/bench order` has two
//! threads on two processors hand a value to each other. In 240 million hand-overs between the processors of a virtual
//! machine (AMD EPYC), the later reading was the smaller one in 0.16 %, in 19 by more than 100 ns, and at most by 1.15
//! microseconds. With fences it was never the smaller one, so the counters themselves agree.
//!
//! An event without a time comes after the last one of its thread that has a time. `locations::whens` knows its bounds.

mod captures;
mod cause;
mod format;
mod printf;
mod spans;
mod usage;

use std::borrow::Cow;

use read_rip_ring::events::{self, Event, Leftover};
use read_rip_ring::{Level, OperandType, Site, SiteKind, Slot, Snapshot, StaticTexts, Syntax, Value};

use crate::locations::{Horizon, Location, Locations, MARKS_MAX, When, whens};

pub use captures::{
    Blame, Capture, CycleStep, CycleStepKind, Holder, SlowCycle, SlowCycles, captures, holder,
};
pub use cause::Cause;
pub use spans::{Ended, Longest, OpenSpan, Span, UsageOfSpans, slowest, spans};
pub use usage::Usage;

/// Something that a thread recorded with values.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The thread's slot, as an index into those of the snapshot.
    pub slot: usize,
    /// Its words.
    pub event: Event,
    /// What it says.
    pub kind: EntryKind,
    /// When it was.
    pub when: When,
    /// What the thread used in the span that has ended, if the span asked the kernel.
    pub usage: Option<Box<Usage>>,
    /// Its place in the order.
    order: (u64, usize, u64),
}

/// What an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Something happened.
    Event(Level),
    /// A span begins.
    Begin,
    /// A span has ended. How long it took, ns, if its times are known.
    End(Option<u64>),
}

/// All entries of these slots, in order, and the words that belong to none.
pub fn entries(
    snapshot: &Snapshot,
    slots: impl Iterator<Item = usize>,
    locations: &Locations<'_>,
    horizon: Horizon,
) -> (Vec<Entry>, Leftover) {
    let mut entries = Vec::new();
    let mut leftover = Leftover::default();
    for index in slots {
        let slot = snapshot.recorded(index);
        let (mut events, of_slot) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
        // A recording has words before those of a history, for an event that begins there.
        events.retain(|event| event.sequence >= slot.first_sequence);
        if slot.words_from >= slot.first_sequence {
            leftover += of_slot;
        }
        let whens = whens(slot, events.iter(), locations, horizon);
        let mut last_ns = 0;
        let mut last_end: Option<usize> = None;
        for (event, when) in events.into_iter().zip(whens) {
            last_ns = when.time_ns.unwrap_or(last_ns);
            if let Some(kind) = kind_of(slot, &event, locations, when.time_ns, horizon.now_ns) {
                let order = (last_ns, index, event.sequence);
                match kind {
                    EntryKind::End(_) => last_end = Some(entries.len()),
                    EntryKind::Event(_) => {
                        let usage = last_end.and_then(|end| usage_of(slot, &event, &entries[end], locations));
                        if let Some((end, usage)) = last_end.zip(usage) {
                            entries[end].usage = Some(usage);
                        }
                    }
                    EntryKind::Begin => {}
                }
                entries.push(Entry { slot: index, event, kind, when, usage: None, order });
            }
        }
    }
    entries.sort_by_key(|entry| entry.order);
    (entries, leftover)
}

/// What an event says of the usage in the span that ended last.
fn usage_of(slot: &Slot, event: &Event, end: &Entry, locations: &Locations<'_>) -> Option<Box<Usage>> {
    if !locations.meaning(slot.pid, event.pc)?.flags().is_usage() {
        return None;
    }
    let name = &locations.site(locations.site_at(slot.pid, end.event.pc)?).label;
    Usage::of_named(slot, event, (name, &end.event), locations).map(Box::new)
}

/// What an event says, if it is one with values, or of a span. `time_ns` is its time.
pub fn kind_of(
    slot: &Slot,
    event: &Event,
    locations: &Locations<'_>,
    time_ns: Option<u64>,
    now_ns: Option<u64>,
) -> Option<EntryKind> {
    let meaning = locations.meaning(slot.pid, event.pc)?;
    match meaning.kind? {
        SiteKind::Event => Some(EntryKind::Event(meaning.flags().level())),
        SiteKind::SpanBegin => Some(EntryKind::Begin),
        SiteKind::SpanEnd => {
            let since = locations.operand(slot, event, OperandType::Since);
            let since_ns = since.and_then(|ticks| locations.moment(slot, ticks, now_ns));
            Some(EntryKind::End(time_ns.zip(since_ns).and_then(|(end, begin)| end.checked_sub(begin))))
        }
        _ => None,
    }
}

/// The text of an entry: the name of its span, or its values in its format, or both. If the linker has folded several
/// marks into one, it is not known which of them the thread passed: then it has what each of them says.
pub fn text(
    kind: EntryKind,
    slot: &Slot,
    event: &Event,
    location: &Location,
    locations: &Locations<'_>,
) -> String {
    let mut texts: Vec<String> = Vec::new();
    for &site in location.sites.iter().take(MARKS_MAX) {
        let text = text_of(kind, slot, event, locations.site(site), locations.static_texts());
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(" | ")
}

/// What an event says if it is of this site.
fn text_of(kind: EntryKind, slot: &Slot, event: &Event, site: &Site, texts: &StaticTexts) -> String {
    let (name, format) = (&*site.label, &*site.format);
    match kind {
        EntryKind::Event(_) => {}
        EntryKind::Begin if !format.is_empty() => {}
        EntryKind::Begin | EntryKind::End(_) => return name.to_owned(),
    }
    let said = match slot.values(event.operands.clone()) {
        Some(values) if values.is_left_out => {
            format!("{format} (its values were not recorded: they need more words than a slot has)")
        }
        Some(values) => formatted(format, site.flags.syntax(), &values.values, slot.pid, texts),
        None => format!("{format} (its values are damaged)"),
    };
    if kind == EntryKind::Begin { format!("{name}: {said}") } else { said }
}

/// A value whose text is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Known<'a> {
    /// A value that is no text.
    Value(&'a Value),
    /// A text, which may be cut.
    Text {
        /// What is known of it.
        text: Cow<'a, str>,
        /// Whether there is more.
        is_cut: bool,
        /// Whether it is the name of a variant.
        is_name: bool,
    },
}

/// The text of a format with these values, of a process whose texts are these.
pub fn formatted(format: &str, syntax: Syntax, values: &[Value], pid: u32, texts: &StaticTexts) -> String {
    let values: Vec<Known<'_>> = values.iter().map(|value| known(value, pid, texts)).collect();
    match syntax {
        Syntax::Rust => format::rust(format, &values),
        Syntax::Printf => printf::printf(format, &values),
    }
}

fn known<'a>(value: &'a Value, pid: u32, texts: &'a StaticTexts) -> Known<'a> {
    match *value {
        Value::Bytes(ref bytes, len) => {
            let is_cut = (bytes.len() as u64) < len;
            Known::Text { text: whole_letters(bytes, is_cut), is_cut, is_name: false }
        }
        Value::Text { address, len, is_name } => match texts.get(pid, address, len) {
            Some(found) => Known::Text { text: Cow::Borrowed(&found.text), is_cut: found.is_cut, is_name },
            None => Known::Text {
                text: Cow::Owned(format!("text at {address:#x}, not in the ring")),
                is_cut: false,
                is_name: true,
            },
        },
        _ => Known::Value(value),
    }
}

/// The text of some bytes. If the text goes on, its last letter may be cut: then it is left out.
fn whole_letters(bytes: &[u8], is_cut: bool) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Err(error) if is_cut && error.error_len().is_none() => {
            String::from_utf8_lossy(&bytes[..error.valid_up_to()])
        }
        _ => String::from_utf8_lossy(bytes),
    }
}

/// A value as `{}` shows it.
pub fn shown(value: &Value, pid: u32, texts: &StaticTexts) -> String {
    format::rust("{}", &[known(value, pid, texts)])
}
