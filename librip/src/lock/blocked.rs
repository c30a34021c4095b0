//! A thread that blocks on something that nobody holds: a semaphore, the end of a thread, a barrier, a message.
//!
//! It records the event of the wait, the entry of the held-lock table, and how the wait ends. It waits for nothing
//! itself: wrappers (`record`) and the interposer (`interposed`) do.

#![allow(unsafe_code, reason = "sites are assembly")]

use core::panic::Location;

use crate::lock::caller::At;
use crate::lock::site::{Flags, Origin, wrapper_site};
use crate::lock::table::{Entry, Slot};
use librip_format::{
    HELD_FOR, HELD_FOR_BARRIER, HELD_FOR_MESSAGE, HELD_FOR_THREAD, HELD_FOR_UNIT, HELD_OF_FUTURE,
    HELD_SEM_WAIT, LOCK_TYPE_BARRIER, LOCK_TYPE_MESSAGE, LOCK_TYPE_THREAD, LOCK_TYPE_WAKE, held_round,
    lock_type,
};

/// The entry of a thread that blocks. Empty if the thread does not record, or its table has no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocked(Option<Entry>);

impl Blocked {
    /// Before the thread blocks on `object`. `flags` are those of the site `pc`, which is of the kind WAIT.
    #[inline(never)]
    pub(crate) fn begin<O: Origin>(origin: O, object: u64, flags: Flags, pc: u64) -> Blocked {
        Blocked::begin_as(origin, object, flags, pc, 0)
    }

    /// Before the poll of a future returns, which waits for `object`.
    #[inline(never)]
    pub(crate) fn begin_of_future<O: Origin>(origin: O, object: u64, flags: Flags, pc: u64) -> Blocked {
        Blocked::begin_as(origin, object, flags, pc, HELD_OF_FUTURE)
    }

    /// `who` is [`HELD_OF_FUTURE`], or 0. The entry says so before it says that it waits: see `protocol`.
    #[inline(always)]
    fn begin_as<O: Origin>(origin: O, object: u64, flags: Flags, pc: u64, who: u64) -> Blocked {
        let Some(slot) = Slot::current() else { return Blocked(None) };
        origin.note(slot);
        let time = slot.time();
        let sequence = origin.event(slot, [time], [object], pc);
        let (place, flags) = (origin.entry_pc(pc), O::entry_flags(flags) & !HELD_FOR | held_for(flags));
        let mut entry = slot.enter_lock(object, sequence, place, flags).or_else(|| {
            // Nobody holds it, so it does not count as overflowed.
            slot.forget_overflowed();
            slot.enter_last(object, sequence, place, flags, HELD_SEM_WAIT)
        });
        if let Some(entry) = &mut entry {
            entry.set_since(time, who);
            entry.set_state(HELD_SEM_WAIT);
        }
        Blocked(entry)
    }

    /// The thread waits at a barrier, a round of which takes so many threads.
    pub(crate) fn in_round(mut self, threads: u64) -> Blocked {
        if let Some(entry) = &mut self.0 {
            let is_of_future = entry.recursion() == HELD_OF_FUTURE;
            entry.set_since(entry.since(), held_round(threads, is_of_future));
        }
        self
    }

    pub(crate) fn entry(&self) -> Option<Entry> {
        self.0
    }

    /// The thread no longer blocks.
    pub(crate) fn end(self) {
        if let (Some(entry), Some(slot)) = (self.0, Slot::existing()) {
            entry.clear_within(slot);
        }
    }
}

/// What a site with these flags waits for: one of `HELD_FOR_*`.
const fn held_for(flags: Flags) -> u64 {
    match lock_type(flags) {
        LOCK_TYPE_THREAD => HELD_FOR_THREAD,
        LOCK_TYPE_BARRIER => HELD_FOR_BARRIER,
        LOCK_TYPE_MESSAGE | LOCK_TYPE_WAKE => HELD_FOR_MESSAGE,
        _ => HELD_FOR_UNIT,
    }
}

/// Records what is known of the other side of a channel, before a wait there: see `librip_format::peer`.
pub(crate) fn note_peer<const USE: Flags>(at: &'static Location<'static>, channel: u64, peer: u64) {
    let Some(slot) = Slot::current() else { return };
    let pc = wrapper_site!(KIND_CHANNEL_PEER, USE, [OPERAND_LOCATION, OPERAND_LOCK, OPERAND_PEER]);
    At::<USE>(at).event(slot, [], [channel, peer], pc);
}

/// The sites that say how a wait ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The thread has what it waited for: of the kind ACQUIRED.
    pub(crate) has_it: u64,
    /// The same with a time.
    pub(crate) has_it_timed: u64,
    /// It has not: of the kind TRY_FAILED.
    pub(crate) failed: u64,
}

/// The thread has waited for `object`, or has tried to have it. `has_it`: whether it has it.
#[inline(never)]
pub(crate) fn tried<O: Origin>(origin: O, object: u64, has_it: bool, ends: Ends) {
    let Some(slot) = Slot::current() else { return };
    if !has_it {
        origin.event(slot, [], [object], ends.failed);
    } else if slot.times_all() {
        origin.event(slot, [slot.time()], [object], ends.has_it_timed);
    } else {
        origin.event(slot, [], [object], ends.has_it);
    }
}
