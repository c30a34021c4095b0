//! The bytes of an event: its header, the fields that all events have, and those of its class. `metadata` describes
//! them.

use std::sync::Arc;

use foldhash::HashMap;
use read_rip_model::locations::{Dated, Location, LocationId, Locations, is_no_function};
use read_rip_model::log::{self, EntryKind};
use read_rip_report::printable;
use read_rip_report::{labels, level_name};
use read_rip_ring::{OperandType, Slot, task_number};

use super::classes::{Class, Fields};

#[derive(Debug, Default)]
pub(super) struct Places(HashMap<LocationId, Place>);

/// A location, as an event has it.
#[derive(Debug)]
struct Place {
    function: String,
    file: String,
    line: u32,
}

/// What a function or a file is called that nothing names.
const UNKNOWN: &str = "unknown";

impl Places {
    fn of(&mut self, id: LocationId, location: &Location) -> &Place {
        self.0.entry(id).or_insert_with(|| Place::of(location))
    }
}

impl Place {
    fn unknown() -> Place {
        Place { function: UNKNOWN.into(), file: UNKNOWN.into(), line: 0 }
    }

    fn of(location: &Location) -> Place {
        if location.users_line().index > 0 {
            return Place::of_user(location);
        }
        let function = match &location.module_name {
            Some(module) if location.has_no_function() && location.source.is_none() => {
                format!("{}+{:#x}", printable(module), location.address)
            }
            _ if location.has_no_function() => UNKNOWN.into(),
            _ => printable(&location.function).into_owned(),
        };
        let one = |(file, line): &(Arc<str>, u32)| format!("{}:{line}", printable(file));
        let (file, line) = match &location.source {
            Some((file, line)) if location.folded.is_empty() => (printable(file).into_owned(), *line),
            // Which of these marks the thread has passed is not known.
            Some(source) => {
                let all: Vec<String> = [source].into_iter().chain(&location.folded).map(one).collect();
                (all.join("|"), 0)
            }
            None => (UNKNOWN.into(), 0),
        };
        Place { function, file, line }
    }

    /// The place of the user's function, which has called what the thread is in.
    fn of_user(location: &Location) -> Place {
        let function = location.users_function();
        let function =
            if is_no_function(&function) { UNKNOWN.into() } else { printable(&function).into_owned() };
        let (file, line) = location.users_source().unwrap_or((UNKNOWN, 0));
        Place { function, file: printable(file).into_owned(), line }
    }
}

/// The time of an event, ns since boot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// The time that it has in the trace.
    pub(super) at_ns: u64,
    /// Whether that time was recorded. Otherwise the event was not before it.
    pub(super) is_exact: bool,
    /// The event was not after this time.
    pub(super) latest_ns: u64,
}

/// The fields of an event, one after the other.
struct Bytes<'b>(&'b mut Vec<u8>);

impl Bytes<'_> {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A text, which ends with a zero. A printable text has none.
    fn text(&mut self, text: &str) {
        self.0.extend_from_slice(printable(text).as_bytes());
        self.0.push(0);
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    pub(super) slot: &'a Slot,
    /// The name of the channel; empty for what is in none.
    pub(super) channel: &'a str,
}

/// Appends an event that says how many words are missing before the first one that is known.
pub(super) fn overwritten(out: &mut Vec<u8>, owner: Owner<'_>, moment: Moment) {
    let mut out = Bytes(out);
    let place = Place::unknown();
    common(&mut out, Class::Overwritten, owner, moment, &place, (0, owner.slot.words_from));
    out.u64(owner.slot.overwritten());
}

pub(super) fn event(
    out: &mut Vec<u8>,
    owner: Owner<'_>,
    dated: &Dated,
    moment: Moment,
    locations: &Locations<'_>,
    places: &mut Places,
    now_ns: Option<u64>,
) {
    let (Dated { event, location, when }, slot) = (dated, owner.slot);
    let mut out = Bytes(out);
    let meaning = locations.meaning(slot.pid, event.pc);
    let class = Class::of(meaning.filter(|meaning| !meaning.is_ambiguous()).and_then(|meaning| meaning.kind));
    let place = places.of(*location, locations.get(*location));
    common(&mut out, class, owner, moment, place, (event.pc, event.sequence));
    let location = locations.get(*location);
    let operand = |of: OperandType| locations.operand(slot, event, of);
    let logged = log::kind_of(slot, event, locations, when.time_ns, now_ns);
    let text = |out: &mut Bytes<'_>| {
        out.text(
            &logged.map_or_else(String::new, |logged| log::text(logged, slot, event, location, locations)),
        );
    };
    match class.fields() {
        Fields::Mark => out.text(&labels(location, locations).join("|")),
        Fields::Lock => {
            let lock = locations.lock_of(slot, event).unwrap_or(0);
            let flags = locations.flags_of(slot, event);
            out.u64(lock);
            out.text(locations.lock_name(slot.pid, lock).unwrap_or_default());
            out.u64(operand(OperandType::Condition).unwrap_or(0));
            out.u8(flags.is_shared().into());
            out.u8(flags.is_try().into());
            let since = operand(OperandType::Since).and_then(|ticks| locations.moment(slot, ticks, now_ns));
            out.u64(since.unwrap_or(0));
        }
        Fields::Event => {
            out.text(match logged {
                Some(EntryKind::Event(level)) => level_name(level),
                _ => "",
            });
            text(&mut out);
        }
        Fields::SpanBegin => text(&mut out),
        Fields::SpanEnd => {
            text(&mut out);
            out.u64(match logged {
                Some(EntryKind::End(Some(took_ns))) => took_ns,
                _ => 0,
            });
        }
        Fields::Overwritten => {}
    }
}

/// The header of an event, and the fields that all have.
fn common(
    out: &mut Bytes<'_>,
    class: Class,
    owner: Owner<'_>,
    moment: Moment,
    place: &Place,
    (pc, sequence): (u64, u64),
) {
    out.u16(class.id());
    out.u64(moment.at_ns);
    out.u32(owner.slot.pid);
    out.u32(owner.slot.tid);
    out.text(&owner.slot.name);
    // The numbers of tasks begin with 1.
    out.u32(task_number(owner.slot.tid).unwrap_or(0));
    out.text(owner.channel);
    out.text(&place.function);
    out.text(&place.file);
    out.u32(place.line);
    out.u64(pc);
    out.u64(sequence);
    out.u8(moment.is_exact.into());
    out.u64(moment.latest_ns);
}
