//! A thread that blocks on something that nobody holds: a semaphore, the end of a thread, a barrier, a message.
//!
//! It records the event of the wait and the entry of the held-lock table. How the wait ends is an event of its own,
//! which the callers record.

use crate::lock::site::Origin;
use crate::lock::table::{Entry, Slot};
use librip_format::HELD_SEM_WAIT;

/// The entry of a thread that blocks. Empty if the thread does not record, or its table has no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked(Option<Entry>);

impl Blocked {
    /// Before the thread blocks on `object`. `flags` are those of the entry, with one of `HELD_FOR_*`. `pc` is a site
    /// of the kind WAIT.
    #[inline(never)]
    pub(crate) fn begin<O: Origin>(origin: O, object: u64, flags: u64, pc: u64) -> Blocked {
        let Some(slot) = Slot::current() else { return Blocked(None) };
        origin.note(slot);
        let time = slot.time();
        let sequence = origin.event(slot, [time], [object], pc);
        let place = origin.entry_pc(pc);
        let mut entry = slot.enter_lock(object, sequence, place, flags).or_else(|| {
            // Nobody holds it, so it does not count as overflowed.
            slot.forget_overflowed();
            slot.enter_last(object, sequence, place, flags, HELD_SEM_WAIT)
        });
        if let Some(entry) = &mut entry {
            entry.set_since(time, 0);
            entry.set_state(HELD_SEM_WAIT);
        }
        Blocked(entry)
    }

    /// The thread no longer blocks.
    pub(crate) fn end(self) {
        if let (Some(entry), Some(slot)) = (self.0, Slot::existing()) {
            entry.clear_within(slot);
        }
    }
}
