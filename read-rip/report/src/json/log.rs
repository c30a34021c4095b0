//! Events with values, and spans, as JSON. It computes nothing.

use std::io::{self, Write};

use read_rip_model::log::{Entry, EntryKind, Span, shown};
use read_rip_ring::{Slot, Snapshot, Syntax, Value};
use serde::Serialize;

use super::writer::{Json, moment};
use crate::log::{level_name, realtime_ns};

#[derive(Serialize)]
struct JsonEntry<'a> {
    kind: &'a str,
    thread: JsonThread<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    sequence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before_boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    realtime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ns: Option<u64>,
    text: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    span: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    syntax: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<JsonValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
struct JsonThread<'a> {
    name: &'a str,
    pid: u32,
    tid: u32,
}

/// A value: a number, a truth value, or a text.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonValue {
    Unsigned(u64),
    Signed(i64),
    Float32(f32),
    Float64(f64),
    Bool(bool),
    Text(String),
}

#[derive(Serialize)]
struct JsonSpan<'a> {
    name: &'a str,
    file: &'a str,
    line: u32,
    ended: u64,
    total_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p90_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    longest: Option<JsonLongest<'a>>,
    open: Vec<JsonOpen<'a>>,
}

#[derive(Serialize)]
struct JsonLongest<'a> {
    thread: JsonThread<'a>,
    ended_boottime_ns: String,
}

#[derive(Serialize)]
struct JsonOpen<'a> {
    thread: JsonThread<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since_boottime_ns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<JsonValue>,
}

/// What an entry says: its text, the name of its span, its format, its values, and its place.
#[derive(Debug)]
pub struct Said<'a> {
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
    pub fn entry(&mut self, entry: &Entry, said: &Said<'_>, snapshot: &Snapshot) -> io::Result<()> {
        let slot = snapshot.recorded(entry.slot);
        let (after_ns, before_ns) = entry.when.bounds();
        let (kind, level, took_ns) = match entry.kind {
            EntryKind::Event(level) => ("event", Some(level_name(level)), None),
            EntryKind::Begin => ("begin", None, None),
            EntryKind::End(took_ns) => ("end", None, took_ns),
        };
        self.line(
            "event",
            JsonEntry {
                kind,
                thread: json_thread(slot),
                channel: slot.channel().and_then(|channel| snapshot.channel_name(channel)),
                sequence: entry.event.sequence,
                boottime_ns: entry.when.time_ns.map(moment),
                after_boottime_ns: after_ns.map(moment),
                before_boottime_ns: before_ns.map(moment),
                realtime_ns: entry.when.time_ns.and_then(|ns| realtime_ns(snapshot, ns)).map(moment),
                level,
                took_ns,
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
            },
        )
    }

    /// All spans of one place.
    #[expect(clippy::missing_errors_doc, reason = "see `ring`")]
    pub fn span(&mut self, span: &Span, snapshot: &Snapshot) -> io::Result<()> {
        let of = |slot: usize| snapshot.recorded(slot);
        let took = span.took.as_ref();
        self.line(
            "span",
            JsonSpan {
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
                    thread: json_thread(of(longest.slot)),
                    ended_boottime_ns: moment(longest.ended_ns),
                }),
                open: span
                    .open
                    .iter()
                    .map(|open| JsonOpen {
                        thread: json_thread(of(open.slot)),
                        since_boottime_ns: open.since_ns.map(moment),
                        value: open
                            .value
                            .as_ref()
                            .map(|value| json_value(value, of(open.slot).pid, snapshot)),
                    })
                    .collect(),
            },
        )
    }
}

fn json_thread(slot: &Slot) -> JsonThread<'_> {
    JsonThread { name: &slot.name, pid: slot.pid, tid: slot.tid }
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
