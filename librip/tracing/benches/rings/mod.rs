//! What a user of `tracing` may write to have the last events of each thread in memory: a ring of text, and a ring of
//! values. Both have a fixed size, are lost with the process, and are read by nobody here.

use std::cell::RefCell;
use std::fmt::{self, Write};
use std::hint::black_box;
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// A thread's last events, in either form.
const EVENTS: usize = 1024;
/// A thread's last lines.
const TEXT_BYTES: usize = 64 << 10;

thread_local! {
    static LINES: RefCell<Lines> = RefCell::new(Lines { bytes: vec![0; TEXT_BYTES].into(), at: 0 });
    static RECORDS: RefCell<Records> = RefCell::new(Records { events: vec![Kept::default(); EVENTS].into(), at: 0 });
}

/// Formats each event with its time, level, target, message and fields, as a logger does that prints nothing.
pub(crate) struct TextRing;

/// The last bytes that a thread has written.
struct Lines {
    bytes: Box<[u8]>,
    at: usize,
}

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.as_bytes().chunks(self.bytes.len()) {
            let (end, len) = (self.bytes.len(), part.len());
            let first = len.min(end - self.at);
            self.bytes[self.at..][..first].copy_from_slice(&part[..first]);
            self.bytes[..len - first].copy_from_slice(&part[first..]);
            self.at = (self.at + len) % end;
        }
        Ok(())
    }
}

impl Visit for Lines {
    fn record_u64(&mut self, field: &Field, value: u64) {
        let _ = write!(self, " {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self, " {value:?}"),
            name => write!(self, " {name}={value:?}"),
        };
    }
}

impl<S: Subscriber> Layer<S> for TextRing {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        LINES.with_borrow_mut(|lines| {
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let metadata = event.metadata();
            let (seconds, micros) = (time.as_secs(), time.subsec_micros());
            let _ = write!(lines, "{seconds}.{micros:06} {} {}:", metadata.level(), metadata.target());
            event.record(lines);
            let _ = lines.write_str("\n");
            black_box(&lines.bytes);
        });
    }
}

/// Copies each event as it is: its time, where it is, and up to four numbers. It keeps no message and no span.
pub(crate) struct ValueRing;

#[derive(Clone, Default)]
struct Kept {
    time: Option<SystemTime>,
    place: Option<&'static Metadata<'static>>,
    values: [u64; 4],
    count: usize,
}

/// The last events of a thread.
struct Records {
    events: Box<[Kept]>,
    at: usize,
}

impl Visit for Kept {
    fn record_u64(&mut self, _field: &Field, value: u64) {
        if let Some(kept) = self.values.get_mut(self.count) {
            *kept = value;
            self.count += 1;
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn fmt::Debug) {}
}

impl Subscriber for ValueRing {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        RECORDS.with_borrow_mut(|records| {
            let at = records.at;
            records.at = (at + 1) % EVENTS;
            let kept = &mut records.events[at];
            (kept.time, kept.place, kept.count) = (Some(SystemTime::now()), Some(event.metadata()), 0);
            event.record(kept);
            black_box(kept);
        });
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
