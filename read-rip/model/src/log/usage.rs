//! What a thread used in a cycle, as the kernel counted it: processor time, switches and page faults.
//!
//! It reads the event that the recorder makes of that (`librip_format::usage`), and concludes nothing.

use librip_format::{
    USAGE_AROUND, USAGE_INVOLUNTARY, USAGE_MAJOR, USAGE_MINOR, USAGE_ON_CPU, USAGE_READY, USAGE_SYSTEM,
    USAGE_TOOK, USAGE_VALUES, USAGE_VOLUNTARY,
};
use read_rip_ring::events::Event;
use read_rip_ring::{SiteKind, Slot, Value};

use crate::locations::Locations;

/// What the format of the event begins with after the name of the cycle, in Rust and in C.
const FORMATS: [&str; 2] = [": {} us, and {} us around it: ", ": %u us, and %u us around it: "];

/// What a thread used in a cycle, and in a time around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// How long the cycle took, ns.
    pub took_ns: u64,
    /// How long the thread was not in the cycle, ns, while the kernel counted the rest.
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
    /// What an event says of a cycle, and the name of the cycle; `None` if it is another event.
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
}
