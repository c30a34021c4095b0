//! The layer for `tracing-subscriber`.

use std::fmt;

use librip::bridge::{self, Callsite, Place};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::event_site::{EventSite, Parts, escaped};
use crate::fields::{Fields, First, Kept, Stored, VALUES_MAX};
use crate::spans;
use crate::table::Table;

/// A layer that records all events and spans that it is given: see the [crate](crate).
#[derive(Clone, Copy, Debug, Default)]
pub struct Layer {
    _private: (),
}

/// Returns a layer for `tracing-subscriber`, which records all events and spans that it is given.
///
/// It does not start the recording: the program calls [`librip::init`]. Which events and spans the layer is given is up
/// to filters.
pub fn layer() -> Layer {
    Layer::default()
}

/// The callsites that have recorded something.
static CALLSITES: Table<Known> = Table::new();

struct Known {
    metadata: &'static Metadata<'static>,
    site: Site,
    message: Option<usize>,
    /// How many values an event has.
    values: usize,
}

enum Site {
    Event(EventSite),
    Span(Callsite),
}

fn hash(metadata: &'static Metadata<'static>) -> u64 {
    std::ptr::from_ref(metadata).addr() as u64 >> 3
}

#[inline]
fn find(metadata: &'static Metadata<'static>) -> Option<&'static Known> {
    CALLSITES.find(hash(metadata), |known| std::ptr::eq(known.metadata, metadata))
}

fn message_of(metadata: &Metadata<'_>) -> Option<usize> {
    let is_message = |field: &Field| field.name() == "message";
    metadata.fields().iter().find(is_message).filter(|_| metadata.is_event()).map(|field| field.index())
}

/// Adds a callsite. `first` is its first message, if that may be one without arguments.
#[cold]
#[inline(never)]
fn add(metadata: &'static Metadata<'static>, first: Option<&str>) -> Option<&'static Known> {
    let message = message_of(metadata);
    let place = Place {
        file: metadata.file().unwrap_or(metadata.target()),
        line: metadata.line().unwrap_or(0),
        module_path: metadata.module_path().unwrap_or(""),
    };
    let names: Vec<String> = metadata
        .fields()
        .iter()
        .filter(|field| Some(field.index()) != message)
        .map(|field| escaped(field.name().trim_start_matches("r#")))
        .collect();
    let recorded = names.len().min(VALUES_MAX - usize::from(message.is_some()));
    let mut fields: String = names[..recorded].iter().map(|name| format!(" {name}={{}}")).collect();
    if recorded < names.len() {
        fields += &format!(" (not recorded: {})", names[recorded..].join(", "));
    }
    let site = if metadata.is_span() {
        Site::Span(Callsite::span(metadata, 0, place, metadata.name(), fields.trim_start()))
    } else {
        let (level, target, has_message) = (level(*metadata.level()), metadata.target(), message.is_some());
        let parts = Parts { place, level, target, has_message, fields: &fields };
        Site::Event(EventSite::new(metadata, parts, first))
    };
    let values = recorded + usize::from(message.is_some());
    let known = Known { metadata, site, message, values };
    CALLSITES.insert(hash(metadata), known, |known| std::ptr::eq(known.metadata, metadata))
}

fn level(level: Level) -> bridge::Level {
    match level {
        Level::ERROR => bridge::Level::Error,
        Level::WARN => bridge::Level::Warn,
        Level::INFO => bridge::Level::Info,
        Level::DEBUG => bridge::Level::Debug,
        Level::TRACE => bridge::Level::Trace,
    }
}

/// Takes the values of an event or of a span.
struct Values<'a> {
    fields: &'a mut Fields,
    message: Option<usize>,
    /// What becomes of the message.
    first: Option<First<'a>>,
    is_known: bool,
}

impl Values<'_> {
    /// The place of a field. The message has the first one.
    #[inline]
    fn place(&self, field: &Field) -> usize {
        let index = field.index();
        index + usize::from(self.message.is_some_and(|message| index < message))
    }

    #[inline]
    fn is_message(&self, field: &Field) -> bool {
        self.message == Some(field.index())
    }

    fn set_message(&mut self, message: &dyn fmt::Debug) {
        let first = self.first.take().unwrap_or(First::Copied);
        self.is_known = self.fields.set_message(message, first);
    }

    #[inline]
    fn set(&mut self, field: &Field, value: Stored) {
        let place = if self.is_message(field) { 0 } else { self.place(field) };
        self.fields.set(place, value);
    }
}

impl Visit for Values<'_> {
    #[inline]
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Stored::F64(value));
    }

    #[inline]
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Stored::I64(value));
    }

    #[inline]
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Stored::U64(value));
    }

    #[inline]
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Stored::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.is_message(field) {
            self.set_message(&format_args!("{value}"));
        } else {
            self.fields.set_text(self.place(field), value.as_bytes(), value.len());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.is_message(field) {
            self.set_message(value);
        } else {
            self.fields.set_formatted(self.place(field), value);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Layer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        record(event);
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let count = attributes.metadata().fields().len();
        if count == 0 || !librip::is_recording() {
            return;
        }
        // Formatted before the lock of the extensions is taken.
        let kept = of_span(|values| attributes.record(values)).kept(count);
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(kept);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if !librip::is_recording() {
            return;
        }
        let new = of_span(|fields| values.record(fields));
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        match extensions.get_mut::<Kept>() {
            Some(kept) => kept.update(&new),
            // The span is older than the ring.
            None => drop(extensions.replace(new.kept(span.metadata().fields().len()))),
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if !bridge::is_recording_here() {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let extensions = span.extensions();
        enter(id.into_u64(), span.metadata(), extensions.get::<Kept>());
    }

    fn on_exit(&self, id: &Id, _context: Context<'_, S>) {
        spans::end(id.into_u64());
    }
}

fn record(event: &Event<'_>) {
    if !bridge::is_recording_here() {
        return;
    }
    let metadata = event.metadata();
    let found = find(metadata);
    let mut fields = Fields::new();
    let mut learnt = None;
    let first = match found {
        Some(Known { site: Site::Event(site), .. }) => site.known().map(First::Known),
        Some(_) => None,
        None => Some(First::Learnt(&mut learnt)),
    };
    let message = found.map_or_else(|| message_of(metadata), |known| known.message);
    let mut values = Values { fields: &mut fields, message, first, is_known: false };
    event.record(&mut values);
    let is_known = values.is_known;
    let known = found.or_else(|| add(metadata, learnt.as_deref()));
    match known {
        Some(Known { site: Site::Event(site), values, .. }) => {
            site.record(&fields, *values, is_known || site.knows(learnt.as_deref()));
        }
        _ => crate::event_site::no_room(metadata.file().unwrap_or_default(), metadata.line().unwrap_or(0)),
    }
}

fn of_span(record: impl FnOnce(&mut Values<'_>)) -> Fields {
    let mut fields = Fields::new();
    record(&mut Values { fields: &mut fields, message: None, first: None, is_known: false });
    fields
}

fn enter(id: u64, metadata: &'static Metadata<'static>, kept: Option<&Kept>) {
    if !spans::has_room() {
        return;
    }
    let begun = match find(metadata).or_else(|| add(metadata, None)) {
        Some(Known { site: Site::Span(callsite), values, .. }) => match kept {
            Some(kept) => kept.with_values(|values| callsite.begin(values)),
            None => Fields::new().with_values(0..*values, |values| callsite.begin(values)),
        },
        _ => Err(bridge::NoRoom),
    };
    match begun {
        Ok(Some(span)) => spans::push(id, span),
        Ok(None) => {}
        Err(bridge::NoRoom) => spans::no_room(metadata.name()),
    }
}
