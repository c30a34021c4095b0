//! The messages of a Perfetto trace, as far as this writer needs them. The numbers are those of Perfetto's
//! `protos/perfetto/trace/*.proto`.
//!
//! Perfetto declares no repeated number as packed, and its reader expects each one with a tag of its own.

use prost::{Message, Oneof};

/// The clock of all times: ns since boot.
pub(super) const BOOTTIME: u32 = 6;
/// The clock that tells the date: ns since 1970.
pub(super) const REALTIME: u32 = 1;

/// Flag of a packet: what earlier packets of its sequence have interned is forgotten.
pub(super) const INCREMENTAL_STATE_CLEARED: u32 = 1;
/// Flag of a packet: it means nothing without what earlier packets have interned.
pub(super) const NEEDS_INCREMENTAL_STATE: u32 = 2;

/// A field of `Trace` with a packet: number 1, with a length.
pub(super) const PACKET_TAG: u8 = 1 << 3 | 2;

/// Defines messages: each field has its attribute of `prost` before it.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* [$($prost:tt)*] $field:ident: $type:ty,)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Message)]
        pub(super) struct $name {
            $($(#[$field_doc])* #[prost($($prost)*)] pub(super) $field: $type,)*
        }
    )*};
}

messages! {
    TracePacket {
        [uint64, optional, tag = "8"] timestamp: Option<u64>,
        [uint32, tag = "10"] trusted_packet_sequence_id: u32,
        [message, optional, tag = "12"] interned_data: Option<InternedData>,
        [uint32, tag = "13"] sequence_flags: u32,
        [message, optional, tag = "59"] trace_packet_defaults: Option<TracePacketDefaults>,
        [bool, tag = "87"] first_packet_on_sequence: bool,
        [oneof = "Data", tags = "1, 6, 11, 60"] data: Option<Data>,
    }

    TracePacketDefaults {
        [uint32, tag = "58"] timestamp_clock_id: u32,
    }

    /// Several clocks at one moment.
    ClockSnapshot {
        [message, repeated, tag = "1"] clocks: Vec<Clock>,
        [uint32, tag = "2"] primary_trace_clock: u32,
    }

    Clock {
        [uint32, tag = "1"] clock_id: u32,
        [uint64, tag = "2"] timestamp: u64,
    }

    /// A line of the picture.
    TrackDescriptor {
        [uint64, tag = "1"] uuid: u64,
        [string, optional, tag = "2"] name: Option<String>,
        [message, optional, tag = "3"] process: Option<ProcessDescriptor>,
        [message, optional, tag = "4"] thread: Option<ThreadDescriptor>,
        [uint64, optional, tag = "5"] parent_uuid: Option<u64>,
        [message, optional, tag = "8"] counter: Option<CounterDescriptor>,
        [enumeration = "ChildOrdering", optional, tag = "11"] child_ordering: Option<i32>,
        [int32, optional, tag = "12"] sibling_order_rank: Option<i32>,
        [enumeration = "SiblingMerge", optional, tag = "15"] sibling_merge_behavior: Option<i32>,
        [uint64, optional, tag = "17"] sibling_merge_key_int: Option<u64>,
    }

    ProcessDescriptor {
        [int32, tag = "1"] pid: i32,
        [string, tag = "6"] process_name: String,
    }

    ThreadDescriptor {
        [int32, tag = "1"] pid: i32,
        [int32, tag = "2"] tid: i32,
        [string, tag = "5"] thread_name: String,
    }

    CounterDescriptor {
        [string, tag = "6"] unit_name: String,
    }

    TrackEvent {
        [uint64, repeated, packed = "false", tag = "3"] category_iids: Vec<u64>,
        [message, repeated, tag = "4"] debug_annotations: Vec<DebugAnnotation>,
        [enumeration = "EventType", tag = "9"] r#type: i32,
        [uint64, tag = "11"] track_uuid: u64,
        [oneof = "Name", tags = "10, 23"] name: Option<Name>,
        [int64, optional, tag = "30"] counter_value: Option<i64>,
        [uint64, optional, tag = "34"] source_location_iid: Option<u64>,
        /// The arrows that begin, continue or end here.
        [fixed64, repeated, packed = "false", tag = "47"] flow_ids: Vec<u64>,
        /// The arrows that end here.
        [fixed64, repeated, packed = "false", tag = "48"] terminating_flow_ids: Vec<u64>,
    }

    DebugAnnotation {
        [uint64, tag = "1"] name_iid: u64,
        [oneof = "Value", tags = "2, 6, 17"] value: Option<Value>,
    }

    InternedData {
        [message, repeated, tag = "1"] event_categories: Vec<Interned>,
        [message, repeated, tag = "2"] event_names: Vec<Interned>,
        [message, repeated, tag = "3"] debug_annotation_names: Vec<Interned>,
        [message, repeated, tag = "4"] source_locations: Vec<SourceLocation>,
        [message, repeated, tag = "29"] debug_annotation_string_values: Vec<Interned>,
    }

    /// `EventCategory`, `EventName`, `DebugAnnotationName` and `InternedString`, which have the same fields.
    Interned {
        [uint64, tag = "1"] iid: u64,
        [string, tag = "2"] text: String,
    }

    SourceLocation {
        [uint64, tag = "1"] iid: u64,
        [string, tag = "2"] file_name: String,
        [string, tag = "3"] function_name: String,
        [uint32, tag = "4"] line_number: u32,
    }

    /// What the kernel said of one processor. Perfetto needs the numbers that are 0 too.
    FtraceEventBundle {
        [uint32, optional, tag = "1"] cpu: Option<u32>,
        [message, repeated, tag = "2"] event: Vec<FtraceEvent>,
    }

    FtraceEvent {
        [uint64, optional, tag = "1"] timestamp: Option<u64>,
        /// The thread that had the processor.
        [uint32, optional, tag = "2"] pid: Option<u32>,
        [oneof = "Event", tags = "4, 20"] event: Option<Event>,
    }

    SchedSwitch {
        [string, tag = "1"] prev_comm: String,
        [int32, tag = "2"] prev_pid: i32,
        [int32, tag = "3"] prev_prio: i32,
        [int64, tag = "4"] prev_state: i64,
        [string, tag = "5"] next_comm: String,
        [int32, tag = "6"] next_pid: i32,
        [int32, tag = "7"] next_prio: i32,
    }

    SchedWaking {
        [string, tag = "1"] comm: String,
        [int32, tag = "2"] pid: i32,
        [int32, tag = "3"] prio: i32,
        [int32, tag = "4"] success: i32,
    }
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Data {
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    #[prost(message, tag = "6")]
    ClockSnapshot(ClockSnapshot),
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// How the tracks below one are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum ChildOrdering {
    Unknown = 0,
    /// By their ranks.
    Explicit = 3,
}

/// Which tracks below one parent are drawn as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum SiblingMerge {
    Unspecified = 0,
    /// None but itself.
    None = 2,
    /// Those with the same key.
    ByKey = 3,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Name {
    #[prost(uint64, tag = "10")]
    Interned(u64),
    #[prost(string, tag = "23")]
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(super) enum EventType {
    Unspecified = 0,
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(string, tag = "6")]
    Text(String),
    #[prost(uint64, tag = "17")]
    Interned(u64),
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Event {
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "20")]
    SchedWaking(SchedWaking),
}
