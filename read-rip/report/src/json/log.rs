//! Events with values, and spans, as JSON. It computes nothing.

use std::io::{self, Write};

use read_rip_model::log::{Entry, EntryKind, Span, shown};
use read_rip_ring::{Snapshot, Syntax, Value};
use serde::Serialize;

use super::threads::JsonUsage;
use super::values::{JsonThread, Moment};
use super::{Json, Line};
use crate::log::{level_name, realtime_ns};

/// `log`: what a thread said with values, or the beginning or the end of a span.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Entry"))]
pub(super) struct JsonEntry<'a> {
    /// What it is.
    #[cfg_attr(test, schemars(extend("enum" = ["event", "begin", "end"])))]
    kind: &'a str,
    /// The thread.
    thread: JsonThread<'a>,
    /// The channel that it is in, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    /// The number of its last word in its thread, or in its channel.
    sequence: u64,
    /// Its time, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    boottime_ns: Option<Moment>,
    /// If it has no time: it was not before this, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    after_boottime_ns: Option<Moment>,
    /// If it has no time: it was not after this, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    before_boottime_ns: Option<Moment>,
    /// Its time, ns since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    realtime_ns: Option<Moment>,
    /// How important an event is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = ["trace", "debug", "info", "warn", "error"])))]
    level: Option<&'a str>,
    /// How long the span took.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ns: Option<u64>,
    /// What the thread used in the span, if the span asked the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<JsonUsage>,
    /// The values in their format, or the name of the span.
    text: &'a str,
    /// The name of the span.
    #[serde(skip_serializing_if = "str::is_empty")]
    span: &'a str,
    /// The format of the values, as the program has it.
    #[serde(skip_serializing_if = "str::is_empty")]
    format: &'a str,
    /// The language of the format: that of Rust's `std::fmt`, or that of C's `printf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(extend("enum" = ["rust", "printf"])))]
    syntax: Option<&'static str>,
    /// The values, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<JsonValue>,
    /// The source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// A value of an event. Integers beyond 2^53, addresses, and floats that are not finite are strings.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Value"))]
#[serde(untagged)]
enum JsonValue {
    Unsigned(u64),
    Signed(i64),
    Float32(f32),
    Float64(f64),
    Bool(bool),
    Text(String),
}

/// `spans`: all spans of one place.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Span"))]
pub(super) struct JsonSpan<'a> {
    /// The name.
    name: &'a str,
    /// The source file.
    file: &'a str,
    /// The line, from 1.
    line: u32,
    /// How many ends the record still has.
    ended: u64,
    /// How long those took together whose times are known.
    total_ns: u64,
    /// Half of them took no longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ns: Option<u64>,
    /// 90 of 100 took no longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    p90_ns: Option<u64>,
    /// 99 of 100 took no longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ns: Option<u64>,
    /// How long the longest took.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ns: Option<u64>,
    /// The one that took the longest.
    #[serde(skip_serializing_if = "Option::is_none")]
    longest: Option<JsonLongest<'a>>,
    /// How many of them asked the kernel what the thread used, if some did.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<u64>,
    /// What threads used in these, together.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<JsonUsage>,
    /// Those that are open, or were when the process ended, the oldest first.
    open: Vec<JsonOpen<'a>>,
}

/// The span that took the longest.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "LongestSpan"))]
struct JsonLongest<'a> {
    /// Its thread.
    thread: JsonThread<'a>,
    /// When it ended, ns since boot.
    ended_boottime_ns: Moment,
    /// What the thread used in it, if it asked the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<JsonUsage>,
}

/// An open span.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "OpenSpan"))]
struct JsonOpen<'a> {
    /// Its thread.
    thread: JsonThread<'a>,
    /// When it began, ns since boot.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<Moment>,
    /// Its first value. A text has at most 8 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<JsonValue>,
}

/// What an entry says: its text, the name of its span, its format, its values, and its place.
#[derive(Debug)]
pub struct LogText<'a> {
    /// The text that the program would have written.
    pub text: &'a str,
    /// The name of the span; empty for an event.
    pub span: &'a str,
    /// The format; may be empty.
    pub format: &'a str,
    /// The language of the format.
    pub syntax: Syntax,
    /// The values.
    pub values: &'a [Value],
    /// The source file and line.
    pub place: Option<(&'a str, u32)>,
}

impl<W: Write> Json<W> {
    /// An event with values, or the beginning or the end of a span.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn entry(&mut self, entry: &Entry, said: &LogText<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let slot = snapshot.recorded(entry.slot);
        let (after_ns, before_ns) = entry.when.bounds();
        let (kind, level, took_ns) = match entry.kind {
            EntryKind::Event(level) => ("event", Some(level_name(level)), None),
            EntryKind::Begin => ("begin", None, None),
            EntryKind::End(took_ns) => ("end", None, took_ns),
        };
        self.line(Line::Event(JsonEntry {
            kind,
            thread: slot.into(),
            channel: slot.channel().and_then(|channel| snapshot.channel_name(channel)),
            sequence: entry.event.sequence,
            boottime_ns: entry.when.time_ns.map(Moment),
            after_boottime_ns: after_ns.map(Moment),
            before_boottime_ns: before_ns.map(Moment),
            realtime_ns: entry.when.time_ns.and_then(|ns| realtime_ns(snapshot, ns)).map(Moment),
            level,
            took_ns,
            usage: entry.usage.as_deref().map(JsonUsage::from),
            text: said.text,
            span: said.span,
            format: said.format,
            syntax: (!said.format.is_empty()).then_some(match said.syntax {
                Syntax::Rust => "rust",
                Syntax::Printf => "printf",
            }),
            values: said.values.iter().map(|value| json_value(value, slot.pid, snapshot)).collect(),
            file: said.place.map(|(file, _)| file),
            line: said.place.map(|(_, line)| line),
        }))
    }

    /// All spans of one place.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn span(&mut self, span: &Span, snapshot: &Snapshot) -> io::Result<()> {
        let of = |slot: usize| snapshot.recorded(slot);
        let took = span.took.as_ref();
        self.line(Line::Span(JsonSpan {
            name: &span.name,
            file: &span.place.0,
            line: span.place.1,
            ended: span.ended,
            total_ns: span.total_ns,
            p50_ns: took.map(|took| took.p50_ns),
            p90_ns: took.map(|took| took.p90_ns),
            p99_ns: took.map(|took| took.p99_ns),
            max_ns: took.map(|took| took.max_ns),
            longest: span.longest.as_ref().map(|longest| JsonLongest {
                thread: of(longest.slot).into(),
                ended_boottime_ns: Moment(longest.ended_ns),
                usage: longest.usage.as_ref().map(JsonUsage::from),
            }),
            measured: span.usage.as_ref().map(|of| of.count),
            usage: span.usage.as_ref().map(|of| JsonUsage::from(&of.sum)),
            open: span
                .open
                .iter()
                .map(|open| JsonOpen {
                    thread: of(open.slot).into(),
                    since_boottime_ns: open.since_ns.map(Moment),
                    value: open.value.as_ref().map(|value| json_value(value, of(open.slot).pid, snapshot)),
                })
                .collect(),
        }))
    }
}

/// Integers beyond 2^53, and floats that are not finite, are texts: not every parser of JSON reads them.
fn json_value(value: &Value, pid: u32, snapshot: &Snapshot) -> JsonValue {
    const EXACT_MAX: u64 = 1 << 53;
    match *value {
        Value::Unsigned(number) if number <= EXACT_MAX => JsonValue::Unsigned(number),
        Value::Signed(number, _) if number.unsigned_abs() <= EXACT_MAX => JsonValue::Signed(number),
        Value::Float32(number) if number.is_finite() => JsonValue::Float32(number),
        Value::Float64(number) if number.is_finite() => JsonValue::Float64(number),
        Value::Bool(truth) => JsonValue::Bool(truth),
        _ => JsonValue::Text(shown(value, pid, &snapshot.static_texts)),
    }
}
