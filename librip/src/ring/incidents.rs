//! Incidents: the first callers of each kind, in the header. See [`librip_format::Incident`].
//!
//! The control block says which callers have an entry; the file has a copy of that, with the rest. An entry is handed
//! out once. Nothing here blocks or allocates, so a signal handler may cause an incident.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use librip_format::{INCIDENT_KINDS, INCIDENTS_OF_KIND};

use super::Ring;
use crate::sys;

/// Notes an incident of this kind, `INCIDENT_*`, or counts it if there was one at this caller. Without room, and for
/// a kind that the format does not have, it is dropped.
pub(crate) fn note(ring: &Ring, kind: u32, lock: u64, caller: u64) {
    let first = (kind as usize).wrapping_sub(1).wrapping_mul(INCIDENTS_OF_KIND);
    if kind as usize > INCIDENT_KINDS || kind == 0 {
        return;
    }
    let callers = &ring.control.counters().incidents[first..first + INCIDENTS_OF_KIND];
    let Some((at, is_new)) = place(callers, caller) else { return };
    let entry = &ring.header().incidents[first + at];
    // ORDERING: relaxed throughout, but for the kind: an entry has one writer, and a count is a statistic.
    if entry.count.load(Relaxed) < u32::MAX {
        entry.count.fetch_add(1, Relaxed);
    }
    if is_new {
        entry.pid.store(sys::pid(), Relaxed);
        entry.tid.store(sys::tid(), Relaxed);
        entry.lock.store(lock, Relaxed);
        entry.caller.store(caller, Relaxed);
        entry.boottime_ns.store(sys::boottime_ns(), Relaxed);
        // ORDERING: release: a reader that sees the kind sees the fields above.
        entry.kind.store(kind, Release);
    }
}

/// The place of a caller among those of a kind, and whether it is new there. `None` if there is no room.
fn place(callers: &[AtomicU64], caller: u64) -> Option<(usize, bool)> {
    callers.iter().enumerate().find_map(|(at, known)| {
        // ORDERING: relaxed: the exchange decides who gets the entry, and a caller stands for itself.
        let before = match known.load(Relaxed) {
            0 => known.compare_exchange(0, caller, Relaxed, Relaxed).unwrap_or_else(|other| other),
            before => before,
        };
        match before {
            0 => Some((at, true)),
            before => (before == caller).then_some((at, false)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_one_place_and_keeps_it() {
        let callers: [AtomicU64; 2] = Default::default();
        let places = [7, 7, 8, 7, 9].map(|caller| place(&callers, caller));
        let (first, second) = ((0, false), (1, true));
        assert_eq!(places, [Some((0, true)), Some(first), Some(second), Some(first), None]);
    }
}
