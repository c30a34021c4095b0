//! Locks that a thread other than their holder has released, and the places where they had been acquired.
//!
//! A history of events is short. What is remembered here stays: a lock that was handed over once, and every lock that
//! is acquired at such a place, may be handed over again. So the reader does not conclude from a hold of such a lock
//! that only the holder can release it.
//!
//! The control block has the table, and the file a copy. An entry is written once and never removed.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::Ring;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It is in the table since now.
    New,
    Known,
    NoRoom,
}

pub(super) fn note_lock(ring: &Ring, lock: u64) -> Noted {
    note(&ring.control.counters().handed_over_locks, &ring.header().handed_over_locks, lock)
}

/// Notes that a lock that was acquired at this place was handed over.
pub(super) fn note_place(ring: &Ring, place: u64) -> Noted {
    note(&ring.control.counters().handed_over_places, &ring.header().handed_over_places, place)
}

fn note(own: &[AtomicU64], file: &[AtomicU64], value: u64) -> Noted {
    for (own, file) in own.iter().zip(file) {
        // ORDERING: relaxed throughout: a value stands for itself.
        let before = match own.load(Relaxed) {
            0 => own.compare_exchange(0, value, Relaxed, Relaxed).unwrap_or_else(|other| other),
            known => known,
        };
        if before == 0 {
            file.store(value, Relaxed);
            return Noted::New;
        }
        if before == value {
            return Noted::Known;
        }
    }
    Noted::NoRoom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_noted_once_and_never_replaced() {
        let [own, file]: [[AtomicU64; 2]; 2] = Default::default();
        let noted = [7, 7, 8, 7, 9].map(|value| note(&own, &file, value));
        assert_eq!(noted, [Noted::New, Noted::Known, Noted::New, Noted::Known, Noted::NoRoom]);
        assert_eq!(file.map(AtomicU64::into_inner), [7, 8]);
    }
}
