//! The locks seen so far, by process and address, and what is known of each.
//!
//! `build` and `replay` fill it in, thread by thread. It does not interpret entries or events itself.

use foldhash::HashMap;
use read_rip_ring::{Clock, HandedOver, LockType, SiteFlags, SiteKind, Slot, Snapshot};

use super::marks::Mark;
use super::{Lock, LockId, LockName, Ownership, ThreadId};
use crate::locations::{Horizon, Limits, LocationId, Locations};

/// All locks of a snapshot.
#[derive(Debug)]
pub(super) struct Ledger<'s> {
    pub(super) locks: Vec<Lock>,
    /// For each lock, what is needed only until all threads have been seen.
    notes: Vec<Notes>,
    by_address: HashMap<(u32, u64), LockId>,
    clock: Option<&'s Clock>,
    handed_over: Option<&'s HandedOver>,
    pub(super) horizon: Horizon,
    /// The time that is counted.
    pub(super) limits: Limits,
    /// Whether words that were recorded between two readings are not known.
    pub(super) has_lost_between: bool,
    /// For how many new words each known one of the present thread stands.
    pub(super) words_for_each: f64,
}

/// What the marks of a lock say, from which its name and nature follow.
#[derive(Debug, Default)]
struct Notes {
    /// The location of the first acquisition that was seen.
    first_acquired_at: Option<LocationId>,
    /// The location of the first mark that was seen.
    first_seen_at: Option<LocationId>,
    /// The location of a mark that says of which class the lock is.
    class_at: Option<LocationId>,
    /// The last owner that was seen. Threads are added one at a time, so a different thread is a new owner.
    last_owner: Option<ThreadId>,
    /// Some mark of the lock is by hand.
    is_by_hand: bool,
    /// Who can release the lock, by the sites of its acquisitions. If they differ, the least certain.
    ownership_when_acquired: Option<Ownership>,
    /// The same by all other sites. They count where no acquisition is known.
    ownership_otherwise: Option<Ownership>,
    /// Some readers pass waiting writers.
    has_passing_readers: bool,
    /// Some readers may queue after waiting writers.
    has_queueing_readers: bool,
}

impl<'s> Ledger<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, horizon: Horizon, limits: Limits) -> Ledger<'s> {
        let header = snapshot.header.as_ref();
        let clock = header.and_then(|header| header.clock.as_ref());
        let handed_over = header.map(|header| &header.handed_over);
        Ledger {
            locks: Vec::new(),
            notes: Vec::new(),
            by_address: HashMap::default(),
            clock,
            handed_over,
            horizon,
            limits,
            has_lost_between: false,
            words_for_each: 1.0,
        }
    }

    /// The lock at an address of a process. Says nothing of it.
    pub(super) fn lock_at(&mut self, pid: u32, address: u64) -> LockId {
        *self.by_address.entry((pid, address)).or_insert_with(|| {
            let is_handed_over = self.handed_over.is_some_and(|known| known.locks.contains(&address));
            self.locks.push(Lock { is_handed_over, ..Lock::at(pid, address) });
            self.notes.push(Notes::default());
            self.locks.len() - 1
        })
    }

    /// The lock at an address of a process. Notes what `mark`, which uses the lock, says of it.
    pub(super) fn lock(&mut self, pid: u32, address: u64, mark: &Mark) -> LockId {
        let id = self.lock_at(pid, address);
        let (nature, notes) = (&mut self.locks[id].nature, &mut self.notes[id]);
        let lock_type = mark.flags.lock_type();
        // An event does not tell a notification from a semaphore.
        let is_known = nature.lock_type == LockType::Notification && lock_type == LockType::Semaphore;
        if lock_type != LockType::Unknown && !is_known {
            nature.lock_type = lock_type;
        }
        if mark.has_class {
            notes.class_at.get_or_insert(mark.location);
        }
        nature.is_reentrant |= mark.flags.is_reentrant();
        nature.is_of_futures |= mark.flags.is_of_future();
        // The mark of a beginning or an end is the same for many locks, and says nothing of this one.
        let is_limit = matches!(mark.kind, SiteKind::LockDestroyed | SiteKind::LockInitialised);
        if !is_limit {
            notes.is_by_hand |= !mark.flags.is_wrapper();
        }
        let is_acquisition =
            matches!(mark.kind, SiteKind::LockAcquireBegin | SiteKind::LockAcquired | SiteKind::LockWait);
        if !is_limit {
            let known = match is_acquisition && !mark.is_return_address {
                true => &mut notes.ownership_when_acquired,
                false => &mut notes.ownership_otherwise,
            };
            let ownership = ownership(mark.flags);
            *known = Some(known.map_or(ownership, |known| known.min(ownership)));
        }
        if is_acquisition {
            notes.first_acquired_at = notes.first_acquired_at.or(Some(mark.location));
            if mark.flags.is_readers_first() {
                notes.has_passing_readers = true;
            } else if mark.flags.is_shared() && mark.flags.is_wrapper() {
                // A raw lock of unknown type does not say what its readers do.
                notes.has_queueing_readers |= mark.flags.lock_type() != LockType::Unknown;
            }
        }
        notes.first_seen_at = notes.first_seen_at.or(Some(mark.location));
        id
    }

    /// A recorded time, ns since boot.
    pub(super) fn time_ns(&self, slot: &Slot, ticks: u64) -> Option<u64> {
        self.clock?.boottime_ns(ticks, slot.claimed_boottime_ns, self.horizon.now_ns)
    }

    /// A recorded length of time, ns; 0 if the ring has no clock.
    pub(super) fn length_ns(&self, ticks: u64) -> u64 {
        self.clock.map_or(0, |clock| clock.length_ns(ticks))
    }

    /// Whether a lock that was acquired at this place was released by another thread.
    pub(super) fn is_place_of_handed_over(&self, place: u64) -> bool {
        self.handed_over.is_some_and(|known| known.places.contains(&place))
    }

    /// A thread owns the lock, or owned it.
    pub(super) fn owned(&mut self, lock: LockId, thread: ThreadId) {
        if self.notes[lock].last_owner.replace(thread) != Some(thread) {
            self.locks[lock].record.owners += 1;
        }
    }

    /// A thread acquired the lock; if `is_new`, after the earlier of two readings.
    pub(super) fn acquired(&mut self, lock: LockId, thread: ThreadId, is_contended: bool, is_new: bool) {
        self.owned(lock, thread);
        let record = &mut self.locks[lock].record;
        record.acquisitions += 1;
        record.contended += u64::from(is_contended);
        record.acquired_between += u64::from(is_new);
        record.contended_between += u64::from(is_new && is_contended);
        let (acquired, contended) = &mut record.probably_between;
        *acquired += if is_new { self.words_for_each } else { 0.0 };
        *contended += if is_new && is_contended { self.words_for_each } else { 0.0 };
    }

    /// A thread initialised the lock here.
    pub(super) fn initialised(&mut self, lock: LockId, location: LocationId) {
        self.locks[lock].initialised_at = Some(location);
    }

    /// A try, or a wait of limited time, failed.
    pub(super) fn failed(&mut self, lock: LockId) {
        self.locks[lock].record.failed_tries += 1;
    }

    /// A wait ended with the lock.
    pub(super) fn waited(&mut self, lock: LockId, from_ns: u64, to_ns: u64) {
        if self.limits.overlap(Some(from_ns), Some(to_ns)) {
            self.locks[lock].record.waits_ns.push(to_ns.saturating_sub(from_ns));
        }
    }

    /// The lock was held between these moments.
    pub(super) fn held(&mut self, lock: LockId, from_ns: u64, to_ns: u64) {
        if self.limits.overlap(Some(from_ns), Some(to_ns)) {
            self.locks[lock].record.holds_ns.push(to_ns.saturating_sub(from_ns));
        }
    }

    /// All locks, named and classified. Call this after all threads have been added.
    pub(super) fn close(mut self, snapshot: &Snapshot, locations: &mut Locations<'_>) -> Vec<Lock> {
        for (lock, notes) in self.locks.iter_mut().zip(&self.notes) {
            lock.holders.shrink_to_fit();
            lock.waiters.shrink_to_fit();
            lock.record.waits_ns.sort_unstable();
            lock.record.holds_ns.sort_unstable();
            lock.record.waits_ns.shrink_to_fit();
            lock.record.holds_ns.shrink_to_fit();
            lock.nature.is_wrapped = !notes.is_by_hand;
            // The event of a call does not say it, and the lock may not have been released yet.
            lock.nature.is_of_futures |= lock.holders.iter().any(|hold| hold.is_of_future);
            lock.nature.is_of_futures |= lock.waiters.iter().any(|wait| wait.is_of_future);
            let known = notes.ownership_when_acquired.or(notes.ownership_otherwise);
            lock.nature.ownership = known.filter(|_| !notes.is_by_hand).unwrap_or_default();
            // Readers without the flag may queue.
            lock.nature.readers_first = match (notes.has_queueing_readers, notes.has_passing_readers) {
                (true, _) => Some(false),
                (false, true) => Some(true),
                (false, false) => None,
            };
            lock.class = notes.class_at.and_then(|at| locations.lock_class(at)).map(str::to_owned);
            let given_name = snapshot.lock_names.get(&(lock.pid, lock.address)).cloned().map(LockName::Given);
            let symbol = || locations.symbol_of(lock.pid, lock.address).map(LockName::Symbol);
            let location = || notes.first_acquired_at.or(notes.first_seen_at).map(LockName::Location);
            lock.name = given_name.or_else(symbol).or_else(location).unwrap_or(LockName::None);
        }
        self.locks
    }
}

/// Who can release a lock, by the flags of a site that uses it.
fn ownership(flags: SiteFlags) -> Ownership {
    if flags.is_owned() {
        Ownership::Enforced
    } else if flags.is_owned_by_rule() {
        Ownership::ByRule
    } else {
        Ownership::Anyone
    }
}
