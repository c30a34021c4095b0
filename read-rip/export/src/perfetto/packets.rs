//! Packets, one after the other: what is interned, and where it was logged first.
//!
//! It knows nothing of locks. It keeps one packet at a time, and the numbers of what is interned.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use prost::Message;
use read_rip_model::locations::{LocationId, is_no_function};
use read_rip_report::LockNames;
use read_rip_report::printable;

use super::messages::*;

/// The sequence of all packets. Each writer of a trace has one; the recording services of Perfetto count from 1. So a
/// file of theirs and this one can be joined.
const SEQUENCE: u32 = 0x0072_6970;

/// What an event is about. The numbers are those by which packets name the categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Wait = 1,
    Hold = 2,
    Span = 3,
    Event = 4,
    Holder = 5,
    Task = 6,
}

const CATEGORIES: [(Category, &str); 6] = [
    (Category::Wait, "wait"),
    (Category::Hold, "hold"),
    (Category::Span, "span"),
    (Category::Event, "event"),
    (Category::Holder, "holder"),
    (Category::Task, "task"),
];

impl Category {
    pub(super) fn of(name: &str) -> Category {
        CATEGORIES.iter().find(|(_, known)| *known == name).map_or(Category::Event, |(category, _)| *category)
    }
}

/// An argument of an event, by the number of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Argument {
    Location = 1,
    Open = 2,
    Place = 3,
    Usage = 4,
}

const ARGUMENTS: [(Argument, &str); 4] = [
    (Argument::Location, "location"),
    (Argument::Open, "open"),
    (Argument::Place, "place"),
    (Argument::Usage, "usage"),
];

/// Numbers for values, in the order in which they come.
struct Numbers<K> {
    known: HashMap<K, u64>,
}

impl<K: Eq + Hash> Numbers<K> {
    fn new() -> Numbers<K> {
        Numbers { known: HashMap::new() }
    }

    /// The number of a value, and whether it is new. 0 means nothing in the format.
    fn of(&mut self, value: K) -> (u64, bool) {
        let next = self.known.len() as u64 + 1;
        let number = *self.known.entry(value).or_insert(next);
        (number, number == next)
    }
}

/// Something that happened, without its times.
#[derive(Clone, Debug, Default)]
pub(super) struct What {
    pub(super) name: String,
    /// Whether many events have that name.
    pub(super) is_common: bool,
    pub(super) category: Option<Category>,
    /// Where it began.
    pub(super) location: Option<LocationId>,
    /// Where, as a text; empty if unknown.
    pub(super) place: String,
    pub(super) is_open: bool,
    /// What the thread used in a span; empty if unknown.
    pub(super) usage: String,
    /// The arrows that begin here.
    pub(super) arrows_from: Vec<u64>,
    /// The arrows that end here.
    pub(super) arrows_to: Vec<u64>,
}

pub(super) struct Packets<'w> {
    out: &'w mut dyn Write,
    bytes: Vec<u8>,
    names: Numbers<String>,
    locations: Numbers<LocationId>,
    /// What the next packet introduces.
    introduces: InternedData,
}

impl<'w> Packets<'w> {
    /// Writes the first packet. `clock`: a moment, as ns since boot and ns since 1970.
    pub(super) fn new(out: &'w mut dyn Write, clock: Option<(u64, u64)>) -> io::Result<Packets<'w>> {
        let mut packets = Packets {
            out,
            bytes: Vec::new(),
            names: Numbers::new(),
            locations: Numbers::new(),
            introduces: InternedData::default(),
        };
        let interned = |iid: u64, text: &str| Interned { iid, text: text.to_owned() };
        let categories = CATEGORIES.iter().map(|(category, name)| interned(*category as u64, name));
        let arguments = ARGUMENTS.iter().map(|(argument, name)| interned(*argument as u64, name));
        let (boot_ns, date) = clock.map_or((0, None), |(boot_ns, real_ns)| (boot_ns, Some(real_ns)));
        let boot = Clock { clock_id: BOOTTIME, timestamp: time(boot_ns) };
        let date = date.map(|real_ns| Clock { clock_id: REALTIME, timestamp: time(real_ns) });
        let snapshot = ClockSnapshot {
            clocks: std::iter::once(boot).chain(date).collect(),
            primary_trace_clock: BOOTTIME,
        };
        packets.packet(&TracePacket {
            sequence_flags: INCREMENTAL_STATE_CLEARED,
            first_packet_on_sequence: true,
            interned_data: Some(InternedData {
                event_categories: categories.collect(),
                debug_annotation_names: arguments.collect(),
                ..InternedData::default()
            }),
            trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: BOOTTIME }),
            // A clock that no snapshot has is unknown, and all its times are.
            data: Some(Data::ClockSnapshot(snapshot)),
            ..empty()
        })?;
        Ok(packets)
    }

    fn packet(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.bytes).map_err(io::Error::other)?;
        self.out.write_all(&self.bytes)
    }

    /// Introduces a track.
    pub(super) fn track(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.packet(&TracePacket { data: Some(Data::TrackDescriptor(track)), ..empty() })
    }

    /// What the kernel said of a processor. Its events have times of their own, ns since boot.
    pub(super) fn ftrace(&mut self, bundle: FtraceEventBundle) -> io::Result<()> {
        self.packet(&TracePacket { data: Some(Data::FtraceEvents(bundle)), ..empty() })
    }

    fn event(&mut self, at_ns: u64, event: TrackEvent) -> io::Result<()> {
        let introduces = std::mem::take(&mut self.introduces);
        self.packet(&TracePacket {
            timestamp: Some(time(at_ns)),
            interned_data: (introduces != InternedData::default()).then_some(introduces),
            data: Some(Data::TrackEvent(event)),
            ..empty()
        })
    }

    pub(super) fn begin(
        &mut self,
        track_uuid: u64,
        at_ns: u64,
        what: What,
        names: &LockNames<'_>,
    ) -> io::Result<()> {
        self.say(EventType::SliceBegin, track_uuid, at_ns, what, names)
    }

    /// Ends the innermost slice of a track.
    pub(super) fn end(&mut self, track_uuid: u64, at_ns: u64) -> io::Result<()> {
        let r#type = EventType::SliceEnd.into();
        self.event(at_ns, TrackEvent { r#type, track_uuid, ..TrackEvent::default() })
    }

    /// Something that took no time.
    pub(super) fn instant(
        &mut self,
        track_uuid: u64,
        at_ns: u64,
        what: What,
        names: &LockNames<'_>,
    ) -> io::Result<()> {
        self.say(EventType::Instant, track_uuid, at_ns, what, names)
    }

    pub(super) fn count(&mut self, track_uuid: u64, at_ns: u64, count: usize) -> io::Result<()> {
        let counter_value = Some(i64::try_from(count).unwrap_or(i64::MAX));
        let r#type = EventType::Counter.into();
        self.event(at_ns, TrackEvent { r#type, track_uuid, counter_value, ..TrackEvent::default() })
    }

    fn say(
        &mut self,
        r#type: EventType,
        track_uuid: u64,
        at_ns: u64,
        what: What,
        names: &LockNames<'_>,
    ) -> io::Result<()> {
        let argument =
            |argument: Argument, value| DebugAnnotation { name_iid: argument as u64, value: Some(value) };
        let mut event = TrackEvent {
            r#type: r#type.into(),
            track_uuid,
            category_iids: what.category.map(|category| category as u64).into_iter().collect(),
            flow_ids: what.arrows_from,
            terminating_flow_ids: what.arrows_to,
            ..TrackEvent::default()
        };
        event.name = Some(if what.is_common { self.common(what.name) } else { Name::Text(what.name) });
        if let Some(location) = what.location {
            let (iid, has_source) = self.location(location, names);
            event.source_location_iid = has_source.then_some(iid);
            event.debug_annotations.push(argument(Argument::Location, Value::Interned(iid)));
        }
        if !what.place.is_empty() {
            event.debug_annotations.push(argument(Argument::Place, Value::Text(what.place)));
        }
        if !what.usage.is_empty() {
            event.debug_annotations.push(argument(Argument::Usage, Value::Text(what.usage)));
        }
        if what.is_open {
            event.debug_annotations.push(argument(Argument::Open, Value::Bool(true)));
        }
        self.event(at_ns, event)
    }

    /// A name that many events have.
    fn common(&mut self, name: String) -> Name {
        let (iid, is_new) = self.names.of(name.clone());
        if is_new {
            self.introduces.event_names.push(Interned { iid, text: name });
        }
        Name::Interned(iid)
    }

    /// The number of a location, of its text and of its line, and whether it has a line.
    fn location(&mut self, id: LocationId, names: &LockNames<'_>) -> (u64, bool) {
        let (iid, is_new) = self.locations.of(id);
        let location = names.locations.get(id);
        if is_new {
            let text = names.location(id);
            self.introduces.debug_annotation_string_values.push(Interned { iid, text });
            if let Some((file, line)) = location.users_source() {
                let function = location.users_function();
                let function = if is_no_function(&function) { "" } else { &*function };
                self.introduces.source_locations.push(SourceLocation {
                    iid,
                    file_name: printable(file).into_owned(),
                    function_name: printable(function).into_owned(),
                    line_number: line,
                });
            }
        }
        (iid, location.users_source().is_some())
    }
}

/// A packet without a content.
fn empty() -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: SEQUENCE,
        sequence_flags: NEEDS_INCREMENTAL_STATE,
        ..TracePacket::default()
    }
}

/// A time as readers have it: they compute with signed numbers.
fn time(at_ns: u64) -> u64 {
    at_ns.min(i64::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_number_which_is_never_zero() {
        let mut numbers = Numbers::new();
        assert_eq!([numbers.of("a"), numbers.of("b"), numbers.of("a")], [(1, true), (2, true), (1, false)]);
    }
}
