//! What an interposer records around the locks of the C library: as `wrap` does, with the caller in every event.
//!
//! It touches no lock, and knows none of the C library's types. Its sites are one for each operation and kind of lock;
//! where in the program that was says the operand CALLER, a return address, which is an entry's place in the
//! held-lock table too.
//!
//! # What differs from `wrap`
//!
//! * Nothing here has a destructor. `pthread_cancel` and `pthread_exit` unwind the interposer's frames by force, and
//!   such frames must have nothing to clean up: what must happen then is a cleanup handler's.
//! * An operation may fail: an unlock by a thread that is not the owner, a second lock of an error-checking mutex.
//!   Then everything is put back, and there is no event, or a TRY_FAILED.
//! * A lock that may be given up by any thread, and is given up by one that has not got it, is searched for *before* it
//!   is given up: afterwards the entry found might be the next owner's.
//! * Nobody holds a semaphore. WAIT says that a thread is about to block on it, ACQUIRED that it has taken one of its
//!   units, RELEASED that it has given one. In the table a thread that blocks is in the state UNIT: it waits for
//!   others to do something, and for no owner.

#![allow(unsafe_code, reason = "sites are assembly")]

use crate::lock::by_hand;
use crate::lock::table::{Entry, Near, Slot, held_flags};
use crate::lock::wrap::wrapper_site;
use crate::process::instance::{self, Request};
use librip_format::{
    HELD_CALLER, HELD_COND_WAIT, HELD_HELD, HELD_PROCESS_SHARED, HELD_RELEASING, HELD_SEM_WAIT, HELD_SHARED,
    HELD_TRY, HELD_WAITING, LOCK_TYPE_MUTEX, LOCK_TYPE_RWLOCK, LOCK_TYPE_SEMAPHORE, LOCK_TYPE_SPIN,
    SITE_LOCK_TYPE_SHIFT, SITE_READERS_FIRST, SITE_REENTRANT, SITE_SHARED, SITE_TRY,
};

/// What distinguishes the sites of one operation: `SITE_*` and a `LOCK_TYPE_*`.
pub type Flags = u16;

/// A mutex that is no recursive one.
pub const MUTEX: Flags = LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT;
/// See [`SITE_TRY`].
pub const MUTEX_TRY: Flags = MUTEX | SITE_TRY;
/// A recursive mutex.
pub const RECURSIVE: Flags = MUTEX | SITE_REENTRANT;
/// See [`SITE_TRY`].
pub const RECURSIVE_TRY: Flags = RECURSIVE | SITE_TRY;
/// A lock that is written.
pub const WRITE: Flags = LOCK_TYPE_RWLOCK << SITE_LOCK_TYPE_SHIFT;
/// See [`SITE_TRY`].
pub const WRITE_TRY: Flags = WRITE | SITE_TRY;
/// A lock that is read, behind writers who wait.
pub const READ: Flags = WRITE | SITE_SHARED;
/// See [`SITE_TRY`].
pub const READ_TRY: Flags = READ | SITE_TRY;
/// A lock that is read, past writers who wait.
pub const READ_FIRST: Flags = READ | SITE_READERS_FIRST;
/// See [`SITE_TRY`].
pub const READ_FIRST_TRY: Flags = READ_FIRST | SITE_TRY;
/// A spin lock.
pub const SPIN: Flags = LOCK_TYPE_SPIN << SITE_LOCK_TYPE_SHIFT;
/// See [`SITE_TRY`].
pub const SPIN_TRY: Flags = SPIN | SITE_TRY;
/// A semaphore.
pub const SEMAPHORE: Flags = LOCK_TYPE_SEMAPHORE << SITE_LOCK_TYPE_SHIFT;
/// See [`SITE_TRY`].
pub const SEMAPHORE_TRY: Flags = SEMAPHORE | SITE_TRY;

fn is_held(state: u64) -> bool {
    state == HELD_HELD
}

/// Gives the calling thread its slot now, rather than at its first operation.
pub fn enter() {
    Slot::current();
}

/// Whether the calling thread has a lock, and shares it with nobody.
pub fn holds_alone(lock: u64) -> bool {
    let entry = Slot::existing().and_then(|slot| slot.find(lock, is_held));
    entry.is_some_and(|entry| !entry.has_flag(HELD_SHARED))
}

/// An acquisition, or a release, by a thread that has a slot, notes no times and has at most one other lock: the usual
/// case.
///
/// While the lock's own code runs, only this is kept, in one register. What else may be needed is in the table.
#[derive(Clone, Copy, Debug)]
pub struct Plain(Near);

impl Plain {
    /// Before the lock is touched. `None`: it is no such case, and nothing was recorded.
    #[inline(always)]
    pub fn takes<const FLAGS: Flags>(lock: u64, caller: u64) -> Option<Plain> {
        Plain::takes_into::<FLAGS>(lock, caller, Slot::near_free)
    }

    /// The same of a lock that the thread may have already, which is no such case either.
    #[inline(always)]
    pub fn takes_if_new<const FLAGS: Flags>(lock: u64, caller: u64) -> Option<Plain> {
        Plain::takes_into::<FLAGS>(lock, caller, Slot::near_free_if_new)
    }

    #[inline(always)]
    fn takes_into<const FLAGS: Flags>(
        lock: u64,
        caller: u64,
        free: impl FnOnce(Slot, u64) -> Option<Near>,
    ) -> Option<Plain> {
        let slot = Slot::existing()?;
        if slot.times_all() {
            return None;
        }
        let entry = free(slot, lock)?;
        let pc = wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
        let sequence = slot.event([caller, lock], pc);
        // Free a moment ago; a handler that came between has given it back.
        entry.enter(lock, sequence, caller, entry_flags(FLAGS));
        Some(Plain(entry))
    }

    /// The lock was free, and is had.
    #[inline(always)]
    pub fn has(self) {
        self.0.entry().has();
    }

    /// The lock was not free. Also says where it was asked for.
    #[inline]
    pub fn attempt(self) -> (Attempt, u64) {
        let entry = self.0.entry();
        (Attempt(Some(entry)), entry.pc())
    }

    /// Before the lock is given up. `None`: it is no such case, and nothing was recorded.
    #[inline(always)]
    pub fn releases(lock: u64) -> Option<Plain> {
        Slot::existing()?.near_releases(lock).map(Plain)
    }

    /// The lock has been given up.
    #[inline(always)]
    pub fn released<const FLAGS: Flags>(self, caller: u64) {
        let entry = self.0.entry();
        let lock = self.0.lock();
        if entry.is_current() {
            entry.clear();
        }
        if let Some(slot) = Slot::existing() {
            let pc = wrapper_site!(KIND_LOCK_RELEASED, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
            slot.event([caller, lock], pc);
        }
    }

    /// The lock has not been given up.
    #[cold]
    pub fn kept(self) {
        Release::of(self.0.entry()).failed();
    }
}

/// An acquisition that has begun.
///
/// Empty for threads that record nowhere, and for a lock that found no room in the table.
#[derive(Clone, Copy, Debug)]
pub struct Attempt(Option<Entry>);

impl Attempt {
    /// Before the lock is touched. `is_process_shared`: see [`HELD_PROCESS_SHARED`].
    #[inline(always)]
    pub fn begin<const FLAGS: Flags>(lock: u64, caller: u64, is_process_shared: bool) -> Attempt {
        let flags = entry_flags(FLAGS) | if is_process_shared { HELD_PROCESS_SHARED } else { 0 };
        match Slot::existing() {
            Some(slot) if !slot.times_all() => {
                let pc = wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
                let sequence = slot.event([caller, lock], pc);
                Attempt(slot.enter_lock(lock, sequence, caller, flags))
            }
            _ => Attempt::begin_slowly::<FLAGS>(lock, caller, flags),
        }
    }

    /// The thread's first event, or one with a time, or a thread that records nowhere.
    #[cold]
    #[inline(never)]
    fn begin_slowly<const FLAGS: Flags>(lock: u64, caller: u64, flags: u64) -> Attempt {
        let Some(slot) = Slot::current() else { return Attempt(None) };
        let (sequence, time) = takes::<FLAGS>(slot, lock, caller);
        let mut entry = slot.enter_lock(lock, sequence, caller, flags);
        if let Some(entry) = &mut entry
            && time != 0
        {
            entry.set_since(time, 0);
        }
        Attempt(entry)
    }

    /// The lock was free, and is had.
    #[inline(always)]
    pub fn has<const FLAGS: Flags>(self, lock: u64) {
        forget_former::<FLAGS>(lock);
        if let Some(entry) = self.0 {
            entry.has();
        }
    }

    /// The lock was not free. What is returned goes on with `has_waited`, or `failed`.
    #[cold]
    #[inline(never)]
    pub fn waits<const FLAGS: Flags>(mut self, lock: u64, caller: u64) -> Attempt {
        let Some(slot) = Slot::existing() else { return self };
        let time = slot.time();
        let pc = wrapper_site!(KIND_LOCK_WAIT, FLAGS, [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK]);
        slot.event([time, caller, lock], pc);
        self.0 = self.0.and_then(|entry| entry.within(slot));
        if let Some(entry) = &mut self.0 {
            entry.set_since(time, 0);
            entry.set_state(HELD_WAITING);
        }
        self
    }

    /// The lock is had, after whatever it took.
    #[cold]
    #[inline(never)]
    pub fn has_waited<const FLAGS: Flags>(self, lock: u64) {
        forget_former::<FLAGS>(lock);
        let (Some(entry), Some(slot)) = (self.0, Slot::current()) else { return };
        if let Some(mut entry) = entry.within(slot) {
            // First what others must know. For a moment the time is when the waiting began: too early.
            entry.set_state(HELD_HELD);
            entry.set_since(slot.time(), 0);
        }
    }

    /// The lock was not got.
    #[cold]
    #[inline(never)]
    pub fn failed<const FLAGS: Flags>(self, lock: u64, caller: u64) {
        let Some(slot) = Slot::existing() else { return };
        match self.0 {
            Some(entry) => entry.clear_within(slot),
            // It was counted as one that is held beyond the table.
            None => drop(slot.was_beyond()),
        }
        try_failed::<FLAGS>(slot, lock, caller);
    }
}

/// What an entry says of the flags of a site, and that its PC is a caller's.
const fn entry_flags(site_flags: Flags) -> u64 {
    let tries = if site_flags & SITE_TRY != 0 { HELD_TRY } else { 0 };
    // Nothing in a spin lock says whether it is for several processes: it may be.
    let is_spin = site_flags >> SITE_LOCK_TYPE_SHIFT == LOCK_TYPE_SPIN;
    held_flags(site_flags) | HELD_CALLER | tries | if is_spin { HELD_PROCESS_SHARED } else { 0 }
}

/// A lock that the calling thread shares with nobody is had. If the table says that it had it already, it was given up
/// by another thread, which has not found that entry.
#[inline(always)]
fn forget_former<const FLAGS: Flags>(lock: u64) {
    if FLAGS & (SITE_SHARED | SITE_REENTRANT) != 0 {
        return;
    }
    let Some(slot) = Slot::existing() else { return };
    // There is one such entry at most. Another one, in a table that somebody has scribbled on, stays.
    if let Some(entry) = slot.find(lock, is_held) {
        entry.clear();
    }
}

/// Records that a lock is taken; the event's sequence, and its time if it has one.
#[inline(always)]
fn takes<const FLAGS: Flags>(slot: Slot, lock: u64, caller: u64) -> (u64, u64) {
    if slot.times_all() {
        let time = slot.time();
        let pc = wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, FLAGS, [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK]);
        return (slot.event([time, caller, lock], pc), time);
    }
    let pc = wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
    (slot.event([caller, lock], pc), 0)
}

#[inline(always)]
fn try_failed<const FLAGS: Flags>(slot: Slot, lock: u64, caller: u64) {
    let pc = wrapper_site!(KIND_LOCK_TRY_FAILED, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
    slot.event([caller, lock], pc);
}

/// The owner of a robust mutex is dead, and the calling thread has got what that one had. To be called before `has`.
#[cold]
#[inline(never)]
pub fn owner_died(lock: u64) {
    instance::request(Request::LOCK_RELEASED, lock);
}

/// A recursive lock is taken again by the thread that has it.
#[derive(Clone, Copy, Debug)]
pub struct Again(Entry);

impl Again {
    /// `None`: the thread does not have the lock, by its table.
    pub fn begin<const FLAGS: Flags>(lock: u64, caller: u64) -> Option<Again> {
        let slot = Slot::existing()?;
        let entry = slot.find(lock, is_held)?;
        takes::<FLAGS>(slot, lock, caller);
        Some(Again(entry))
    }

    /// It has it once more.
    pub fn has(self) {
        if let Some(mut entry) = Slot::current().and_then(|slot| self.0.held_within(slot)) {
            entry.set_since(entry.since(), entry.again() + 1);
        }
    }

    /// It has it as often as before.
    #[cold]
    pub fn failed<const FLAGS: Flags>(self, lock: u64, caller: u64) {
        if let Some(slot) = Slot::existing() {
            try_failed::<FLAGS>(slot, lock, caller);
        }
    }
}

/// A release that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    entry: Option<Entry>,
    /// It may be one of the locks that found no room in the table.
    may_be_beyond: bool,
}

impl Release {
    /// Before the lock is given up. `by_anyone` is asked where the thread does not have the lock, by its table: whether
    /// it may give it up nevertheless.
    #[inline(never)]
    pub fn begin(lock: u64, by_anyone: bool) -> Release {
        let Some(slot) = Slot::current() else { return Release::unknown(false) };
        let Some(mut entry) = slot.find(lock, is_held) else {
            if by_anyone {
                by_hand::released_unknown(slot, lock);
            }
            return Release::unknown(!by_anyone);
        };
        if entry.again() == 0 {
            entry.set_state(HELD_RELEASING);
        }
        Release::of(entry)
    }

    fn of(entry: Entry) -> Release {
        Release { entry: Some(entry), may_be_beyond: false }
    }

    fn unknown(may_be_beyond: bool) -> Release {
        Release { entry: None, may_be_beyond }
    }

    /// The lock has been given up.
    #[inline(never)]
    pub fn done<const FLAGS: Flags>(self, lock: u64, caller: u64) {
        let Some(slot) = Slot::existing() else { return };
        if self.may_be_beyond {
            slot.was_beyond();
        }
        let mut since = 0;
        if let Some(mut entry) = self.entry.and_then(|entry| entry.held_within(slot)) {
            since = entry.since();
            match entry.again() {
                0 => entry.clear(),
                again => entry.set_since(since, again - 1),
            }
        }
        if since != 0 || slot.times_all() {
            let pc = wrapper_site!(
                KIND_LOCK_RELEASED,
                FLAGS,
                [OPERAND_TIME, OPERAND_SINCE, OPERAND_CALLER, OPERAND_LOCK]
            );
            slot.event([slot.time(), since, caller, lock], pc);
        } else {
            let pc = wrapper_site!(KIND_LOCK_RELEASED, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
            slot.event([caller, lock], pc);
        }
    }

    /// The lock is as it was.
    #[cold]
    #[inline(never)]
    pub fn failed(self) {
        let (Some(entry), Some(slot)) = (self.entry, Slot::current()) else { return };
        if let Some(mut entry) = entry.held_within(slot).or_else(|| entry.within(slot)) {
            entry.set_state(HELD_HELD);
        }
    }
}

/// A wait for a condition, which lends the lock.
#[derive(Clone, Copy, Debug)]
pub struct Lending {
    entry: Option<Entry>,
    lock: u64,
    condition: u64,
    caller: u64,
}

impl Lending {
    /// Before the lock is given up.
    #[inline(never)]
    pub fn begin<const FLAGS: Flags>(lock: u64, condition: u64, caller: u64) -> Lending {
        let mut lending = Lending { entry: None, lock, condition, caller };
        let Some(slot) = Slot::current() else { return lending };
        let time = slot.time();
        let pc = wrapper_site!(
            KIND_CONDITION_WAIT,
            FLAGS,
            [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK, OPERAND_CONDITION]
        );
        slot.event([time, caller, lock, condition], pc);
        // Of a mutex that was taken more than once, the C library gives up one time only: the thread keeps it.
        if let Some(mut entry) = slot.find(lock, is_held)
            && entry.again() == 0
        {
            entry.set_since(time, 0);
            entry.set_pc(caller);
            entry.set_state(HELD_COND_WAIT);
            lending.entry = Some(entry);
        }
        lending
    }

    /// The wait is over. `has` says whether the thread has the lock again, or still.
    #[inline(never)]
    pub fn ends<const FLAGS: Flags>(self, has: bool) {
        let Some(slot) = Slot::current() else { return };
        let time = slot.time();
        if let Some(mut entry) = self.entry.and_then(|entry| entry.within(slot)) {
            if has {
                entry.set_state(HELD_HELD);
                entry.set_since(time, 0);
            } else {
                entry.clear();
            }
        }
        let pc = wrapper_site!(
            KIND_CONDITION_WOKEN,
            FLAGS,
            [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK, OPERAND_CONDITION]
        );
        slot.event([time, self.caller, self.lock, self.condition], pc);
    }
}

/// A thread that blocks on a semaphore.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    entry: Option<Entry>,
    semaphore: u64,
    caller: u64,
}

impl Blocking {
    /// Before it blocks.
    #[inline(never)]
    pub fn begin<const FLAGS: Flags>(semaphore: u64, caller: u64) -> Blocking {
        let mut blocking = Blocking { entry: None, semaphore, caller };
        let Some(slot) = Slot::current() else { return blocking };
        let time = slot.time();
        let pc = wrapper_site!(KIND_LOCK_WAIT, FLAGS, [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK]);
        let sequence = slot.event([time, caller, semaphore], pc);
        match slot.enter_lock(semaphore, sequence, caller, entry_flags(FLAGS)) {
            Some(mut entry) => {
                entry.set_since(time, 0);
                entry.set_state(HELD_SEM_WAIT);
                blocking.entry = Some(entry);
            }
            // It is not held, beyond the table or elsewhere.
            None => drop(slot.was_beyond()),
        }
        blocking
    }

    /// It blocks no more, and has taken a unit or not.
    #[inline(never)]
    pub fn ends<const FLAGS: Flags>(self, has: bool) {
        if let (Some(entry), Some(slot)) = (self.entry, Slot::existing()) {
            entry.clear_within(slot);
        }
        taken::<FLAGS>(self.semaphore, self.caller, has);
    }
}

/// A unit of a semaphore was taken without blocking, or was not to be had.
#[inline(never)]
pub fn taken<const FLAGS: Flags>(semaphore: u64, caller: u64, has: bool) {
    let Some(slot) = Slot::current() else { return };
    if !has {
        try_failed::<FLAGS>(slot, semaphore, caller);
    } else if slot.times_all() {
        let pc = wrapper_site!(KIND_LOCK_ACQUIRED, FLAGS, [OPERAND_TIME, OPERAND_CALLER, OPERAND_LOCK]);
        slot.event([slot.time(), caller, semaphore], pc);
    } else {
        let pc = wrapper_site!(KIND_LOCK_ACQUIRED, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
        slot.event([caller, semaphore], pc);
    }
}

/// A unit of a semaphore was given. Safe in a signal handler.
#[inline(never)]
pub fn given(semaphore: u64, caller: u64) {
    if Slot::current().is_some() {
        Release::unknown(false).done::<SEMAPHORE>(semaphore, caller);
    }
}

/// A lock has ended, and `may_be_held`: where the C library does not refuse to end a lock that is.
#[inline(never)]
pub fn destroyed<const FLAGS: Flags>(lock: u64, caller: u64, may_be_held: bool) {
    let Some(slot) = Slot::current() else { return };
    instance::name_lock(lock, b"");
    if may_be_held {
        instance::request(Request::LOCK_DESTROYED, lock);
    }
    let pc = wrapper_site!(KIND_LOCK_DESTROYED, FLAGS, [OPERAND_CALLER, OPERAND_LOCK]);
    slot.event([caller, lock], pc);
}
