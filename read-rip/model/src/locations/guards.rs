//! Where a dropped guard came from.
//!
//! A guard's destructor does not know its caller. Where debug information does not say it either, the line of a release
//! is that of the acquisition whose guard was dropped. This file follows the events of one thread, in order.

use foldhash::HashMap;
use read_rip_ring::events::{self, Event, Leftover};
use read_rip_ring::{SiteKind, Slot};

use super::{LocationId, Locations};

/// The acquisitions of one thread so far.
#[derive(Debug, Default)]
pub struct Guards {
    /// The location of the last acquisition of each lock.
    acquired: HashMap<u64, LocationId>,
}

/// All events of a slot, oldest first, with their locations, and the words that belong to none.
pub fn history(slot: &Slot, locations: &mut Locations<'_>) -> (Vec<(Event, LocationId)>, Leftover) {
    let (events, leftover) = events::events(slot, |pc| locations.operand_words(slot.pid, pc));
    let mut guards = Guards::default();
    let with_location = |event: Event| {
        let location = guards.find(slot, &event, locations);
        (event, location)
    };
    (events.into_iter().map(with_location).collect(), leftover)
}

impl Guards {
    /// The location of the next event of the thread.
    pub fn find(&mut self, slot: &Slot, event: &Event, locations: &mut Locations<'_>) -> LocationId {
        let location = locations.find(slot, event);
        let meaning = locations.meaning(slot.pid, event.pc);
        let Some(kind) = meaning.filter(|meaning| meaning.is_wrapper()).and_then(|meaning| meaning.kind)
        else {
            return location;
        };
        let lock = locations.lock_of(slot, event);
        self.follow(kind, lock, location, locations)
    }

    /// The location of an event of a wrapper whose own location is `location`.
    pub fn follow(
        &mut self,
        kind: SiteKind,
        lock: Option<u64>,
        location: LocationId,
        locations: &mut Locations<'_>,
    ) -> LocationId {
        let Some(lock) = lock else { return location };
        match kind {
            SiteKind::LockAcquireBegin => {
                self.acquired.insert(lock, location);
                location
            }
            SiteKind::LockReleased => match self.acquired.get(&lock) {
                Some(&acquired) => locations.of_guard(location, acquired),
                None => location,
            },
            _ => location,
        }
    }
}
