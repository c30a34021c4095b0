//! The locks that were met so far, by process and address, and what is known of each.
//!
//! It is filled in by `build` and `replay`, thread by thread, and decides nothing.

use std::collections::HashMap;

use super::marks::Mark;
use super::{Lock, LockId, LockName, Nature, Record, ThreadId};
use crate::locations::{LocationId, Locations};
use crate::ring::{Clock, LockType, SiteKind, Slot, Snapshot};

/// All locks of a snapshot.
#[derive(Debug)]
pub(super) struct Ledger<'s> {
    pub(super) locks: Vec<Lock>,
    /// Beside each lock: what is not worth keeping.
    notes: Vec<Notes>,
    by_address: HashMap<(u32, u64), LockId>,
    clock: Option<&'s Clock>,
    now_ns: Option<u64>,
}

/// What is needed only until all threads have been seen.
#[derive(Debug, Default)]
struct Notes {
    /// The location where it was first seen to be taken, and the location where it was first seen at all.
    taken_at: Option<LocationId>,
    seen_at: Option<LocationId>,
    /// The last thread that was seen to have it.
    owner: Option<ThreadId>,
    by_hand: bool,
    /// Some site does not say that only the owner gives the lock up.
    may_be_sent: bool,
    passing_readers: bool,
    queueing_readers: bool,
}

impl<'s> Ledger<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, now_ns: Option<u64>) -> Ledger<'s> {
        let clock = snapshot.header.as_ref().and_then(|header| header.clock.as_ref());
        Ledger { locks: Vec::new(), notes: Vec::new(), by_address: HashMap::new(), clock, now_ns }
    }

    /// The lock at an address of a process, which a mark uses.
    pub(super) fn lock(&mut self, pid: u32, address: u64, mark: &Mark) -> LockId {
        let id = *self.by_address.entry((pid, address)).or_insert_with(|| {
            self.locks.push(Lock {
                pid,
                address,
                name: LockName::None,
                nature: Nature::default(),
                holders: Vec::new(),
                possible_holders: Vec::new(),
                waiters: Vec::new(),
                condition_waiters: Vec::new(),
                semaphore_waiters: Vec::new(),
                record: Record::default(),
            });
            self.notes.push(Notes::default());
            self.locks.len() - 1
        });
        let (nature, notes) = (&mut self.locks[id].nature, &mut self.notes[id]);
        let lock_type = mark.flags.lock_type();
        if lock_type != LockType::Unknown {
            nature.lock_type = lock_type;
        }
        nature.is_reentrant |= mark.flags.is_reentrant();
        // All locks end in the same location, which says nothing of them.
        if mark.kind != SiteKind::LockDestroyed {
            notes.by_hand |= !mark.flags.is_wrapper();
            notes.may_be_sent |= !mark.flags.is_owned();
        }
        let is_acquisition =
            matches!(mark.kind, SiteKind::LockAcquireBegin | SiteKind::LockAcquired | SiteKind::LockWait);
        if is_acquisition {
            notes.taken_at = notes.taken_at.or(Some(mark.location));
            if mark.flags.is_readers_first() {
                notes.passing_readers = true;
            } else if mark.flags.is_shared() && mark.flags.is_wrapper() {
                notes.queueing_readers = true;
            }
        }
        notes.seen_at = notes.seen_at.or(Some(mark.location));
        id
    }

    /// A recorded time, ns since boot.
    pub(super) fn time_ns(&self, slot: &Slot, ticks: u64) -> Option<u64> {
        self.clock?.boottime_ns(ticks, slot.claimed_boottime_ns, self.now_ns)
    }

    /// A thread has it, or had it.
    pub(super) fn owned(&mut self, lock: LockId, thread: ThreadId) {
        if self.notes[lock].owner.replace(thread) != Some(thread) {
            self.locks[lock].record.owners += 1;
        }
    }

    /// A thread got it.
    pub(super) fn acquired(&mut self, lock: LockId, thread: ThreadId, is_contended: bool) {
        self.owned(lock, thread);
        let record = &mut self.locks[lock].record;
        record.acquisitions += 1;
        record.contended += u64::from(is_contended);
    }

    /// A try failed, or a wait of limited time.
    pub(super) fn failed(&mut self, lock: LockId) {
        self.locks[lock].record.failed_tries += 1;
    }

    /// It was waited for so long, and then had.
    pub(super) fn waited(&mut self, lock: LockId, wait_ns: u64) {
        self.locks[lock].record.waits_ns.push(wait_ns);
    }

    /// It was held so long.
    pub(super) fn held(&mut self, lock: LockId, hold_ns: u64) {
        self.locks[lock].record.holds_ns.push(hold_ns);
    }

    /// All locks, with their names, once all threads have been seen.
    pub(super) fn close(mut self, snapshot: &Snapshot, locations: &mut Locations<'_>) -> Vec<Lock> {
        for (lock, notes) in self.locks.iter_mut().zip(&self.notes) {
            lock.record.waits_ns.sort_unstable();
            lock.record.holds_ns.sort_unstable();
            lock.nature.is_wrapped = !notes.by_hand;
            lock.nature.is_owned = !notes.by_hand && !notes.may_be_sent;
            // Where readers were seen that do not pass, some may queue.
            lock.nature.readers_first = match (notes.queueing_readers, notes.passing_readers) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            };
            let given = snapshot.lock_names.get(&(lock.pid, lock.address)).cloned().map(LockName::Given);
            let symbol = || locations.symbol_of(lock.pid, lock.address).map(LockName::Symbol);
            let location = || notes.taken_at.or(notes.seen_at).map(LockName::Location);
            lock.name = given.or_else(symbol).or_else(location).unwrap_or(LockName::None);
        }
        self.locks
    }
}
