//! An entry of a held-lock table, with what its mark says and whether it is still the same.

use read_rip_ring::{HeldLock, HeldState, Slot};

use super::between::Before;
use super::marks::Mark;
use super::{Hold, HoldState, LockId, ThreadId, Wait};

/// Decides whether an entry of a thread's table has stayed the same between two readings.
pub(super) struct Steadiness<'a> {
    pub(super) is_final: bool,
    /// The slot in the earlier reading.
    pub(super) earlier: Option<&'a Slot>,
    /// What of the thread is new since then; `None` if there was one reading.
    pub(super) before: Option<Before<'a>>,
}

impl Steadiness<'_> {
    /// Whether the entry was in the earlier reading too. Another acquisition of the same lock has another sequence.
    pub(super) fn is_steady(&self, held: &HeldLock) -> bool {
        self.is_final || self.earlier.is_some_and(|earlier| earlier.held.contains(held))
    }
}

/// An entry of a thread's held-lock table, with what its mark says.
pub(super) struct Entry<'a> {
    pub(super) held: &'a HeldLock,
    pub(super) mark: Mark,
    pub(super) lock: LockId,
    pub(super) since_ns: Option<u64>,
    pub(super) has_place_of_handed_over: bool,
    pub(super) is_steady: bool,
    pub(super) is_inherited: bool,
    /// A future of a task has it, and the task is polled at this moment.
    pub(super) is_being_polled: bool,
    /// A future has it that belongs to no recorded task.
    pub(super) is_unrecorded: bool,
}

impl Entry<'_> {
    pub(super) fn hold(&self, thread: ThreadId, state: HoldState) -> Hold {
        Hold {
            thread,
            lock: self.lock,
            is_shared: self.held.is_shared,
            is_upgradable: self.is_upgradable(),
            location: Some(self.mark.location),
            since_ns: self.since_ns,
            recursion: self.held.recursion,
            state,
            has_place_of_handed_over: self.has_place_of_handed_over,
            is_steady: self.is_steady,
            is_inherited: self.is_inherited,
            is_of_future: self.held.is_of_future,
            has_left: false,
        }
    }

    pub(super) fn wait(&self, thread: ThreadId) -> Wait {
        Wait {
            thread,
            lock: self.lock,
            is_shared: self.held.is_shared,
            is_upgradable: self.is_upgradable(),
            location: self.mark.location,
            since_ns: self.since_ns,
            is_timed: self.mark.flags.is_try(),
            is_relock: false,
            // A future that is polled at this moment is not asleep. Code that runs on a thread may be.
            is_steady: self.is_steady && !self.is_being_polled,
            is_of_future: self.held.is_of_future,
            is_seen: false,
        }
    }

    pub(super) fn is_upgradable(&self) -> bool {
        self.held.is_shared && self.mark.flags.is_upgradable()
    }

    /// Sorts a thread's entries by when they were made.
    ///
    /// If the event of an entry is still among the words, its full sequence is known. Other entries are older. They
    /// are sorted by time if it was recorded, and have no order otherwise.
    pub(super) fn sort_key(&self, slot: &Slot) -> (bool, u64) {
        let sequence = slot.count.checked_sub(1).and_then(|last| self.held.sequence.latest_until(last));
        match sequence.filter(|&sequence| sequence >= slot.words_from) {
            Some(sequence) => (true, sequence),
            None => (false, self.since_ns.unwrap_or(0)),
        }
    }
}

/// Whether the thread waits, by an entry of its table.
pub(super) fn is_wait(state: HeldState) -> bool {
    matches!(state, HeldState::Waiting | HeldState::ConditionWait) || state.is_blocked()
}
