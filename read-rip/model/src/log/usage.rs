//! What a thread used in a cycle or span, as the kernel counted it: processor time, switches and page faults.
//!
//! It reads the event that the recorder makes of that (`librip_format::usage`), and concludes nothing.

use librip_format::{
    USAGE_AROUND, USAGE_INVOLUNTARY, USAGE_MAJOR, USAGE_MINOR, USAGE_ON_CPU, USAGE_READY, USAGE_SYSTEM,
    USAGE_TOOK, USAGE_VALUES, USAGE_VOLUNTARY,
};
use read_rip_ring::events::Event;
use read_rip_ring::{SiteKind, Slot, Value};

use crate::locations::Locations;

/// What the format of the event begins with after the name of the cycle or span, in Rust and in C.
const FORMATS: [&str; 2] = [": {} us, and {} us around it: ", ": %u us, and %u us around it: "];

/// What a thread used in a cycle or span, and in a time around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How long the cycle or span took, ns.
    pub took_ns: u64,
    /// How long the thread was not in it, ns, while the kernel counted the rest.
    pub around_ns: u64,
    /// How long it ran on a processor, ns.
    pub on_cpu_ns: u64,
    /// How much of that it was in the kernel, ns.
    pub system_ns: u64,
    /// How long it was ready and had no processor, ns; `None` if the kernel was not asked.
    pub ready_ns: Option<u64>,
    /// How often it gave up its processor.
    pub voluntary: u64,
    /// How often its processor was taken from it.
    pub involuntary: u64,
    /// Page faults without reading from a disk.
    pub minor_faults: u64,
    /// Page faults with reading from a disk.
    pub major_faults: u64,
}

impl Usage {
    /// What an event says of a cycle or span, and its name; `None` if it is another event.
    pub(super) fn of<'l>(
        slot: &Slot,
        event: &Event,
        locations: &'l Locations<'_>,
    ) -> Option<(&'l str, Usage)> {
        let site = locations.site(locations.site_at(slot.pid, event.pc)?);
        if site.kind != SiteKind::Event || !site.flags.is_usage() {
            return None;
        }
        let name = FORMATS.iter().find_map(|format| Some(site.format.split_once(format)?.0))?;
        let values = slot.values(event.operands.clone())?.values;
        if values.len() != USAGE_VALUES {
            return None;
        }
        let number = |index: usize| match values[index] {
            Value::Unsigned(number) => Some(number),
            _ => None,
        };
        let ns = |index: usize| number(index)?.checked_mul(1000);
        let ready_ns = match values[USAGE_READY] {
            Value::Signed(us, _) => u64::try_from(us).ok().and_then(|us| us.checked_mul(1000)),
            _ => return None,
        };
        let usage = Usage {
            took_ns: ns(USAGE_TOOK)?,
            around_ns: ns(USAGE_AROUND)?,
            on_cpu_ns: ns(USAGE_ON_CPU)?,
            system_ns: ns(USAGE_SYSTEM)?,
            ready_ns,
            voluntary: number(USAGE_VOLUNTARY)?,
            involuntary: number(USAGE_INVOLUNTARY)?,
            minor_faults: number(USAGE_MINOR)?,
            major_faults: number(USAGE_MAJOR)?,
        };
        Some((name, usage))
    }

    /// What an event says, if it is of the cycle or span of this name that the other event ends: they have one place.
    pub(super) fn of_named(
        slot: &Slot,
        event: &Event,
        (name, end): (&str, &Event),
        locations: &Locations<'_>,
    ) -> Option<Usage> {
        let (of, usage) = Usage::of(slot, event, locations)?;
        let place = |event: &Event| {
            let site = locations.site(locations.site_at(slot.pid, event.pc)?);
            Some((&site.file, site.line))
        };
        (of == name && place(event)? == place(end)?).then_some(usage)
    }

    /// How long the thread had no processor, and was not ready for one or was not asked whether it was, ns.
    pub fn off_cpu_ns(&self) -> u64 {
        let all_ns = self.took_ns.saturating_add(self.around_ns);
        all_ns.saturating_sub(self.on_cpu_ns).saturating_sub(self.ready_ns.unwrap_or(0))
    }

    /// Adds what was used in another one. The time of being ready is known if it is known of both.
    pub(super) fn add(&mut self, other: &Usage) {
        let both = |one: u64, other: u64| one.saturating_add(other);
        *self = Usage {
            took_ns: both(self.took_ns, other.took_ns),
            around_ns: both(self.around_ns, other.around_ns),
            on_cpu_ns: both(self.on_cpu_ns, other.on_cpu_ns),
            system_ns: both(self.system_ns, other.system_ns),
            ready_ns: self.ready_ns.zip(other.ready_ns).map(|(one, other)| both(one, other)),
            voluntary: both(self.voluntary, other.voluntary),
            involuntary: both(self.involuntary, other.involuntary),
            minor_faults: both(self.minor_faults, other.minor_faults),
            major_faults: both(self.major_faults, other.major_faults),
        };
    }
}
