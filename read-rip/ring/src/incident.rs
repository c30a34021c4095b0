//! Incidents: calls on locks that failed, or that are forbidden, as the header lists them.
//!
//! It does not know the lock or the thread: it reads a table. An entry of a kind that the reader does not know is left
//! out, and so is one that is not complete, or is not in the place of its kind.

use std::mem::{offset_of, size_of};

use librip_format::{Header as Raw, Incident as RawIncident};

use super::bytes::Bytes;

/// An incident: what happened at a caller for the first time, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incident {
    pub kind: IncidentKind,
    /// How often it happened at this caller.
    pub count: u32,
    pub pid: u32,
    pub tid: u32,
    pub lock: u64,
    pub caller: u64,
    /// When, ns since boot.
    pub boottime_ns: u64,
}

/// What happened, in the order of the format's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IncidentKind {
    /// A lock was refused: its owner is the caller, or waits for the caller.
    Relock,
    /// An unlock was refused: the caller does not own the lock.
    Unlock,
    /// A lock was not destroyed: it is in use.
    Destroy,
    /// A robust lock was acquired whose owner has ended.
    OwnerDied,
    /// A robust lock was refused, because nobody repaired it.
    NotRecoverable,
    /// A lock was refused: it is held as often as it can be.
    TooOften,
    /// A call was refused: the lock was destroyed.
    Destroyed,
    /// A unit was refused: the semaphore has as many as it can have.
    SemaphoreFull,
    /// A wait on a condition variable with a mutex that the caller did not hold.
    WaitWithoutLock,
}

impl IncidentKind {
    fn from_raw(raw: u32) -> Option<IncidentKind> {
        Some(match raw {
            librip_format::INCIDENT_RELOCK => IncidentKind::Relock,
            librip_format::INCIDENT_UNLOCK => IncidentKind::Unlock,
            librip_format::INCIDENT_DESTROY => IncidentKind::Destroy,
            librip_format::INCIDENT_OWNER_DIED => IncidentKind::OwnerDied,
            librip_format::INCIDENT_NOT_RECOVERABLE => IncidentKind::NotRecoverable,
            librip_format::INCIDENT_TOO_OFTEN => IncidentKind::TooOften,
            librip_format::INCIDENT_DESTROYED => IncidentKind::Destroyed,
            librip_format::INCIDENT_SEMAPHORE_FULL => IncidentKind::SemaphoreFull,
            librip_format::INCIDENT_WAIT_WITHOUT_LOCK => IncidentKind::WaitWithoutLock,
            _ => return None,
        })
    }
}

pub(super) fn read(header: &Bytes<'_>) -> Vec<Incident> {
    let entry = |index| {
        let at = offset_of!(Raw, incidents) + index * size_of::<RawIncident>();
        let incident = Incident {
            kind: IncidentKind::from_raw(header.u32(at + offset_of!(RawIncident, kind)))?,
            count: header.u32(at + offset_of!(RawIncident, count)),
            pid: header.u32(at + offset_of!(RawIncident, pid)),
            tid: header.u32(at + offset_of!(RawIncident, tid)),
            lock: header.u64(at + offset_of!(RawIncident, lock)),
            caller: header.u64(at + offset_of!(RawIncident, caller)),
            boottime_ns: header.u64(at + offset_of!(RawIncident, boottime_ns)),
        };
        let is_in_place = incident.kind as usize == index / librip_format::INCIDENTS_OF_KIND;
        let is_complete = incident.count > 0 && incident.lock != 0 && incident.caller != 0;
        (is_in_place && is_complete).then_some(incident)
    };
    (0..librip_format::INCIDENTS_MAX).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header in which the entry at this index is of this kind.
    fn header(index: usize, kind: u32) -> Vec<u8> {
        let mut header = vec![0; size_of::<Raw>()];
        let at = offset_of!(Raw, incidents) + index * size_of::<RawIncident>();
        header[at + offset_of!(RawIncident, kind)..][..4].copy_from_slice(&kind.to_ne_bytes());
        for field in
            [offset_of!(RawIncident, count), offset_of!(RawIncident, pid), offset_of!(RawIncident, tid)]
        {
            header[at + field] = 7;
        }
        for field in [offset_of!(RawIncident, lock), offset_of!(RawIncident, caller)] {
            header[at + field + 1] = 0x10;
        }
        header
    }

    #[test]
    fn incidents_are_read_from_the_places_of_their_kinds() {
        for (kind, at) in (1..=librip_format::INCIDENT_KINDS as u32).zip(0..) {
            let found = read(&Bytes(&header(at * librip_format::INCIDENTS_OF_KIND + 1, kind)));
            assert_eq!((found.len(), found[0].kind as usize), (1, at));
            assert_eq!((found[0].count, found[0].lock, found[0].caller), (7, 0x1000, 0x1000));
        }
    }

    #[test]
    fn what_is_in_another_place_unknown_or_incomplete_is_left_out() {
        for (index, kind) in [(0, 2), (0, 0), (35, 10), (35, u32::MAX)] {
            assert_eq!(read(&Bytes(&header(index, kind))), []);
        }
        let at = offset_of!(Raw, incidents);
        for field in
            [offset_of!(RawIncident, count), offset_of!(RawIncident, lock), offset_of!(RawIncident, caller)]
        {
            let mut header = header(0, 1);
            header[at + field..][..2].fill(0);
            assert_eq!(read(&Bytes(&header)), []);
        }
    }
}
