//! The protocol of a lock: which events an operation has, and how the held-lock table follows it.
//!
//! One protocol for wrapped locks (`record`), interposed ones (`interposed`), and marks by hand where they can share it
//! (`by_hand`). It touches no lock. The caller says what it is about to do and what the outcome was, in this order:
//!
//! ```text
//! Acquisition::begin -> try -> acquired                                   the lock was free
//!                           -> begin_wait -> lock -> acquired_after_wait  it was not
//!                                                 -> failed               the wait had a time limit, or was refused
//!                           -> failed                                     a try
//! Release::begin -> unlock -> done                                        or FastRelease, in the usual case
//!                          -> restore                                     the C library refused
//! CondWait::begin -> wait -> end
//! ```
//!
//! # What the critical section pays
//!
//! Between the acquisition of a free lock and the program's work, [`Acquisition::acquired`] stores one word. Before the
//! unlock, a release stores one word. Everything else is stored before the lock is touched, or after it was released.
//! Only a thread that has waited also reads the clock, and stores the time.
//!
//! # Why an entry in HELD is exact
//!
//! The thread that has acquired the lock stores it, and replaces it before it releases the lock. So at any instant,
//! even that of death, every lock in HELD is held. A lock that is held but not in HELD is in ACQUIRING or RELEASING,
//! for a few instructions.
//!
//! # Nothing has a destructor
//!
//! `pthread_cancel` and `pthread_exit` unwind the interposer's frames by force, and such frames must have nothing to
//! clean up. A wrapper that needs a destructor adds its own.
//!
//! # A release by a thread that does not hold the lock
//!
//! The holder's entry is searched for *before* the lock is released. Afterwards the entry that is found may be the next
//! owner's.

#![cfg_attr(
    not(feature = "interpose"),
    allow(unreachable_pub, reason = "with that feature, `interpose` exports these types")
)]

use crate::lock::site::Origin;
use crate::lock::table::{Entry, FastEntry, Slot};
use crate::process::instance::{self, Request};
use librip_format::{HELD_COND_WAIT, HELD_HELD, HELD_OF_FUTURE, HELD_RELEASING, HELD_SINCE, HELD_WAITING};

pub(crate) fn is_held(state: u64) -> bool {
    state == HELD_HELD
}

/// An acquisition that has begun.
///
/// Empty for threads that do not record, and for a lock that found no room in the table. It is small, because it
/// lives in registers while the lock's own code runs. The slow paths look the slot up again.
#[derive(Clone, Copy, Debug)]
pub struct Acquisition(Option<Entry>);

impl Acquisition {
    /// Before the lock is touched. `flags` are those of the entry. `pc` and `pc_timed` are sites of the kind
    /// ACQUIRE_BEGIN, without and with a time.
    #[inline(always)]
    pub(crate) fn begin<O: Origin>(
        origin: O,
        lock: u64,
        flags: u64,
        pc: u64,
        pc_timed: impl FnOnce() -> u64,
    ) -> Acquisition {
        match Slot::existing() {
            Some(slot) if !slot.reads_clock() => {
                // Unoptimised programs have time too.
                if cfg!(debug_assertions) {
                    origin.note(slot);
                }
                let sequence = origin.begin_event(slot, lock, pc, false);
                Acquisition(slot.enter_lock(lock, sequence, origin.entry_pc(pc), flags))
            }
            _ => begin_slowly(origin, lock, flags, pc, pc_timed()),
        }
    }

    #[cfg(feature = "interpose")]
    pub(crate) fn of(entry: Entry) -> Acquisition {
        Acquisition(Some(entry))
    }

    /// One that has begun with this entry, or with none.
    pub(crate) fn of_entry(entry: Option<Entry>) -> Acquisition {
        Acquisition(entry)
    }

    pub(crate) fn entry(self) -> Option<Entry> {
        self.0
    }

    /// Acquired without waiting.
    #[inline(always)]
    pub fn acquired(self) {
        if let Some(entry) = self.0 {
            entry.acquired();
        }
    }

    /// The lock was not free, and the thread is about to wait for it. `flags` are those of the entry, as in
    /// [`begin`](Acquisition::begin). `pc` is a site of the kind WAIT. Continue with what is returned.
    #[cold]
    #[inline(never)]
    pub fn begin_wait<O: Origin>(self, origin: O, lock: u64, flags: u64, pc: u64) -> Acquisition {
        self.begin_wait_as(origin, lock, flags, pc, 0)
    }

    /// The same for a future, whose poll is about to return without the lock.
    #[cold]
    #[inline(never)]
    pub(crate) fn begin_wait_of_future<O: Origin>(
        self,
        origin: O,
        lock: u64,
        flags: u64,
        pc: u64,
    ) -> Acquisition {
        self.begin_wait_as(origin, lock, flags, pc, HELD_OF_FUTURE)
    }

    /// `who` is [`HELD_OF_FUTURE`], or 0. The entry says so before it says that it waits: the process may be killed in
    /// between, and code that waits blocks its thread.
    #[inline(always)]
    fn begin_wait_as<O: Origin>(
        mut self,
        origin: O,
        lock: u64,
        flags: u64,
        pc: u64,
        who: u64,
    ) -> Acquisition {
        let Some(slot) = Slot::existing() else { return self };
        origin.note(slot);
        let time = slot.time();
        let sequence = origin.event(slot, [time], [lock], pc);
        self.0 = match self.0 {
            Some(entry) => entry.within(slot),
            None => slot.enter_last(lock, sequence, origin.entry_pc(pc), flags, HELD_WAITING),
        };
        if let Some(entry) = &mut self.0 {
            entry.set_since(time, who);
            entry.set_pc(origin.entry_pc(pc));
            entry.set_state(HELD_WAITING);
        }
        self
    }

    /// The thread waits from now on if the lock is not free, which cannot be seen. Only the table says so.
    #[cold]
    pub(crate) fn may_wait(&mut self) {
        let Some(slot) = Slot::existing() else { return };
        if let Some(entry) = &mut self.0 {
            entry.set_since(slot.time(), 0);
            entry.set_state(HELD_WAITING);
        }
    }

    /// Acquired after a wait.
    #[cold]
    #[inline(never)]
    pub fn acquired_after_wait(self) {
        let (Some(entry), Some(slot)) = (self.0, Slot::current()) else { return };
        if entry.is_last_of(slot) {
            // The thread holds the lock now, and the table has no room for that.
            entry.clear();
            return;
        }
        if let Some(mut entry) = entry.within(slot) {
            // The state first: other threads depend on it. For a moment the time is that of the wait, which is too
            // early.
            entry.set_state(HELD_HELD);
            entry.set_since(slot.time(), 0);
        }
    }

    /// The lock was not acquired. `pc` is a site of the kind TRY_FAILED.
    #[cold]
    #[inline(never)]
    pub fn failed<O: Origin>(self, origin: O, lock: u64, pc: u64) {
        self.forget();
        if let Some(slot) = Slot::existing() {
            origin.event(slot, [], [lock], pc);
        }
    }

    /// Removes the lock from the table. It was not acquired.
    pub(crate) fn forget(self) {
        let Some(slot) = Slot::existing() else { return };
        // Without an entry, or with the last one, it was counted as overflowed.
        if self.0.is_none_or(|entry| entry.is_last_of(slot)) {
            slot.forget_overflowed();
        }
        if let Some(entry) = self.0 {
            entry.clear_within(slot);
        }
    }
}

/// Like [`Acquisition::begin`], in all cases: also for the thread's first event, an event with a time, and a thread
/// that does not record.
#[cold]
#[inline(never)]
fn begin_slowly<O: Origin>(origin: O, lock: u64, flags: u64, pc: u64, pc_timed: u64) -> Acquisition {
    let Some(slot) = Slot::current() else { return Acquisition(None) };
    origin.note(slot);
    if !slot.times_all() {
        let sequence = origin.begin_event(slot, lock, pc, true);
        return Acquisition(slot.enter_lock(lock, sequence, origin.entry_pc(pc), flags));
    }
    let time = slot.time();
    let sequence = origin.event(slot, [time], [lock], pc_timed);
    let mut entry = slot.enter_lock(lock, sequence, origin.entry_pc(pc_timed), flags);
    if let Some(entry) = &mut entry
        && time != 0
    {
        // When the acquisition began. A free lock is held nanoseconds later.
        entry.set_since(time, 0);
    }
    Acquisition(entry)
}

/// A release in the usual case: the lock is the thread's only one, or the one that it acquired last, was acquired once,
/// and has no time.
///
/// While the lock's own code runs, only this is kept, in one register.
#[derive(Clone, Copy, Debug)]
pub struct FastRelease(FastEntry);

impl FastRelease {
    /// Before the lock is released. `None`: it is another case, and nothing was recorded.
    #[inline(always)]
    pub fn begin(lock: u64) -> Option<FastRelease> {
        Slot::existing()?.fast_release(lock).map(FastRelease)
    }

    /// Released. `pc` and `pc_timed` are as in [`Release::done`].
    #[inline(always)]
    pub fn done<O: Origin>(self, origin: O, lock: u64, pc: u64, pc_timed: impl FnOnce() -> u64) {
        FastRelease::done_or(Some(self), Release(None), origin, lock, pc, pc_timed);
    }

    /// Released, in the usual case or else, if `fast` is `None`, in another one, by any thread.
    #[inline(always)]
    pub(crate) fn done_or<O: Origin>(
        fast: Option<FastRelease>,
        slow: Release,
        origin: O,
        lock: u64,
        pc: u64,
        pc_timed: impl FnOnce() -> u64,
    ) {
        // If a signal handler has forked meanwhile and this is the child, its table does not have the lock.
        match Slot::existing() {
            Some(slot) if slot.clear_own(fast.map(|FastRelease(entry)| entry)) => {
                if slot.reads_clock() {
                    released_with_clock(origin, slot, lock, pc);
                } else {
                    origin.plain_event(slot, [lock], pc);
                }
            }
            _ => slow.done(origin, lock, pc, pc_timed()),
        }
    }

    /// Not released.
    #[cfg(feature = "interpose")]
    #[cold]
    pub fn restore(self) {
        Release::of(Some(self.0.entry())).restore();
    }
}

#[cold]
#[inline(never)]
fn released_with_clock<O: Origin>(origin: O, slot: Slot, lock: u64, pc: u64) {
    origin.event(slot, [], [lock], pc);
}

/// A release that has begun. Empty if the table does not have the lock in HELD.
#[derive(Clone, Copy, Debug)]
pub struct Release(Option<Entry>);

impl Release {
    /// Before the lock is released. `by_anyone`: whether a thread may release it that does not hold it.
    #[inline(never)]
    pub fn begin(lock: u64, by_anyone: bool) -> Release {
        let Some(slot) = Slot::current() else { return Release(None) };
        let Some(mut entry) = slot.find(lock, is_held) else {
            if by_anyone {
                released_unknown(slot, lock);
            }
            return Release(None);
        };
        if entry.recursion() == 0 {
            entry.set_state(HELD_RELEASING);
        }
        Release(Some(entry))
    }

    /// A release of the lock that has this entry, or none.
    pub(crate) const fn of(entry: Option<Entry>) -> Release {
        Release(entry)
    }

    /// Released. `pc` and `pc_timed` are sites of the kind RELEASED, with the operands lock, and time, since and lock.
    #[inline(never)]
    pub fn done<O: Origin>(self, origin: O, lock: u64, pc: u64, pc_timed: u64) {
        let Some(slot) = Slot::current() else { return };
        let mut since = 0;
        match self.0.and_then(|entry| entry.held_within(slot)) {
            Some(mut entry) if entry.has_flag(HELD_SINCE) => {
                since = entry.since();
                match entry.recursion() {
                    0 => entry.clear(),
                    recursion => entry.set_since(since, recursion - 1),
                }
            }
            Some(entry) => entry.clear(),
            None => {}
        }
        if since != 0 || slot.times_all() {
            origin.event(slot, [slot.time(), since], [lock], pc_timed);
        } else {
            origin.event(slot, [], [lock], pc);
        }
    }

    /// The thread held the lock. If its table does not have it, the lock found no room there. To be called before
    /// `done`.
    #[cold]
    pub fn forget_overflowed(self) {
        if let (None, Some(slot)) = (self.0, Slot::existing()) {
            slot.forget_overflowed();
        }
    }

    /// Not released: the lock is held as before.
    #[cfg(feature = "interpose")]
    #[cold]
    #[inline(never)]
    pub fn restore(self) {
        let (Some(entry), Some(slot)) = (self.0, Slot::current()) else { return };
        if let Some(mut entry) = entry.held_within(slot).or_else(|| entry.within(slot)) {
            entry.set_state(HELD_HELD);
        }
    }
}

/// A thread releases a lock that it does not hold, by its table.
#[cold]
#[inline(never)]
pub(crate) fn released_unknown(slot: Slot, lock: u64) {
    if !slot.forget_overflowed() {
        instance::request(Request::LOCK_RELEASED, lock);
    }
}

/// A wait on a condition variable, which releases the lock meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct CondWait<O> {
    origin: O,
    entry: Option<Entry>,
    lock: u64,
    condition: u64,
}

impl<O: Origin> CondWait<O> {
    /// Before the lock is released. `pc` is a site of the kind CONDITION_WAIT.
    #[inline(never)]
    pub fn begin(origin: O, lock: u64, condition: u64, pc: u64) -> CondWait<O> {
        let mut wait = CondWait { origin, entry: None, lock, condition };
        let Some(slot) = Slot::current() else { return wait };
        origin.note(slot);
        let time = slot.time();
        let sequence = origin.event(slot, [time], [lock, condition], pc);
        let entry = slot.find(lock, is_held);
        if entry.is_none() && slot.has_overflowed() {
            // The mutex is probably one of those that found no entry.
            let flags = O::entry_flags(0);
            wait.entry = slot.enter_last(lock, sequence, origin.entry_pc(pc), flags, HELD_COND_WAIT);
            if let Some(entry) = &mut wait.entry {
                entry.set_since(time, 0);
            }
            return wait;
        }
        // The C library releases a mutex once. If the thread acquired it more than once, the thread keeps it.
        if let Some(mut entry) = entry
            && entry.recursion() == 0
        {
            // Otherwise the entry keeps the place of the acquisition.
            if entry.is_call() == O::IS_CALL {
                entry.set_pc(origin.entry_pc(pc));
            }
            entry.set_since(time, 0);
            entry.set_state(HELD_COND_WAIT);
            wait.entry = Some(entry);
        }
        wait
    }

    /// The same wait, whose end comes from another origin.
    pub(crate) fn with_origin<P: Origin>(self, origin: P) -> CondWait<P> {
        let CondWait { entry, lock, condition, .. } = self;
        CondWait { origin, entry, lock, condition }
    }

    /// A wait that began with another call: for marks by hand, and for `rip.hpp`.
    pub fn begun(origin: O, lock: u64, condition: u64) -> CondWait<O> {
        let entry = Slot::existing().and_then(|slot| slot.find(lock, |state| state == HELD_COND_WAIT));
        CondWait { origin, entry, lock, condition }
    }

    /// The wait has ended. `is_held`: whether the thread holds the lock, again or still. `pc` is a site of the kind
    /// CONDITION_WOKEN.
    #[inline(never)]
    pub fn end(self, is_held: bool, pc: u64) {
        let Some(slot) = Slot::current() else { return };
        let is_last = |entry: &Entry| entry.is_last_of(slot);
        if let Some(last) = self.entry.filter(is_last) {
            last.clear();
            if !is_held {
                slot.forget_overflowed();
            }
        }
        let mut entry = self.entry.filter(|entry| !is_last(entry)).and_then(|entry| entry.within(slot));
        if !is_held && let Some(entry) = entry.take() {
            entry.clear();
        }
        // The state first: other threads depend on it.
        if let Some(entry) = &mut entry {
            entry.set_state(HELD_HELD);
        }
        let time = slot.time();
        if let Some(entry) = &mut entry {
            entry.set_since(time, 0);
        }
        self.origin.event(slot, [time], [self.lock, self.condition], pc);
    }
}
