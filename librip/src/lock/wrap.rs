//! What a wrapper records around the lock that it wraps.
//!
//! It touches no lock. The wrapper says what it is about to do and what came of it, in this order:
//!
//! ```text
//! Attempt::begin   ->  try the lock  ->  has                          the lock was free
//!                                    ->  waits  ->  lock  ->  has     it was not
//!                                    ->  failed                       a try, or a wait of limited time
//! Release::begin   ->  unlock        ->  done
//! ```
//!
//! # What the critical section pays
//!
//! Between taking a free lock and returning, `has` stores one word; before unlocking, `Release::begin` stores one.
//! All else is written before the lock is touched, or after it has been given up. Only a thread that has waited
//! reads the clock too, and stores what it says.
//!
//! # Why an entry in HELD is the truth
//!
//! It is stored by the thread that has got the lock, and replaced by the same thread before it gives the lock
//! up. So at any instant, that of death included, every lock in HELD is held; a lock that is held but not in HELD is in
//! TAKING or RELEASING, for the few instructions in between.

use core::panic::Location;

use crate::lock::table::{Entry, Slot, held_flags};
use librip_format::{HELD_COND_WAIT, HELD_HELD, HELD_RELEASING, HELD_SHARED, HELD_SINCE, HELD_WAITING};

/// Expands to the PC of a site in a wrapper.
///
/// `wrapper_site!(KIND, FLAGS, [OPERANDS])`: constants of `layout`. A location as the last argument keeps it apart
/// from sites that other callers inline: see [`apart`].
macro_rules! wrapper_site {
    ($kind:ident, $flags:expr, [$($operand:ident),*], $location:expr) => {
        $crate::lock::wrap::apart($crate::lock::wrap::wrapper_site!($kind, $flags, [$($operand),*]), $location)
    };
    ($kind:ident, $flags:expr, [$($operand:ident),*]) => {{
        const TEXT: &str = ::core::concat!(::core::file!(), "\0", ::core::module_path!(), "\0");
        static BYTES: [u8; TEXT.len()] = $crate::marks::text_bytes(TEXT);
        $crate::__rip_site!(
            BYTES,
            TEXT.len(),
            $crate::__private::format::$kind,
            $flags | $crate::__private::format::SITE_WRAPPER,
            &[$($crate::__private::format::$operand),*]
        )
    }};
}
pub(crate) use wrapper_site;

/// Expands to [`Attempt::begin`] with the sites of an acquisition: `attempt!(LOCK, FLAGS, LOCATION)`.
macro_rules! attempt {
    ($lock:expr, $flags:expr, $location:expr) => {
        $crate::lock::wrap::Attempt::begin(
            $lock,
            $flags,
            #[inline(always)]
            || $crate::lock::wrap::wrapper_site!(KIND_LOCK_ACQUIRE_BEGIN, $flags, [OPERAND_LOCK], $location),
            #[inline(always)]
            || {
                $crate::lock::wrap::wrapper_site!(
                    KIND_LOCK_ACQUIRE_BEGIN,
                    $flags,
                    [OPERAND_TIME, OPERAND_LOCK],
                    $location
                )
            },
        )
    };
}
pub(crate) use attempt;

/// Keeps the sites of two calls apart that are inlined into one function.
///
/// LLVM merges the ends of blocks that are equal, assembly included, and both sites would have one PC and the line of
/// one of them, or none. Here the blocks differ behind the site: each has its caller's location to load.
#[inline(always)]
#[allow(unsafe_code, reason = "an empty piece of assembly")]
pub(crate) fn apart(pc: u64, location: &'static Location<'static>) -> u64 {
    let mut pc = pc;
    // SAFETY: does nothing. Not `pure`, so that it stays where it is.
    unsafe {
        core::arch::asm!(
            "/* {pc} {location} */",
            pc = inout(reg) pc,
            location = in(reg) core::ptr::from_ref(location).addr(),
            options(nomem, nostack, preserves_flags),
        );
    }
    pc
}

/// An acquisition that has begun.
///
/// `None` for threads that record nowhere, and for a lock that found no room in the table. Small, because it lives in
/// registers across the lock's own code; where the slot is needed again, something slow has happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt(Option<Entry>);

impl Attempt {
    /// Before the lock is touched. `pc` and `pc_timed` are sites of the kind TAKES, without and with a time.
    #[inline(always)]
    pub(crate) fn begin(
        lock: u64,
        site_flags: u16,
        pc: impl FnOnce() -> u64,
        pc_timed: impl FnOnce() -> u64,
    ) -> Attempt {
        let flags = held_flags(site_flags);
        // One site for both ways.
        let pc = pc();
        match Slot::existing() {
            Some(slot) if !slot.times_all() => {
                let sequence = slot.event([lock], pc);
                Attempt(slot.enter_lock(lock, sequence, pc, flags))
            }
            _ => begin_slowly(lock, flags, pc, pc_timed()),
        }
    }

    /// The lock was free, and is had.
    #[inline(always)]
    pub(crate) fn has(self) {
        if let Some(entry) = self.0 {
            entry.has();
        }
    }

    /// The same, of a lock that turned out to be poisoned. Apart, so that the usual way runs straight through.
    #[cold]
    #[inline(never)]
    pub(crate) fn has_poisoned(self) {
        self.has();
    }

    /// The lock was not free. `pc` is a site of the kind WAIT. Call `has`, or `failed`, on what is returned.
    #[cold]
    #[inline(never)]
    pub(crate) fn waits(mut self, lock: u64, pc: u64) -> Waiting {
        if let Some(slot) = Slot::existing() {
            let time = slot.time();
            slot.event([time, lock], pc);
            self.0 = self.0.and_then(|entry| entry.within(slot));
            if let Some(entry) = &mut self.0 {
                entry.set_since(time, 0);
                entry.set_pc(pc);
                entry.set_state(HELD_WAITING);
            }
        }
        Waiting { attempt: self }
    }

    /// The lock was not got. `pc` is a site of the kind TRY_FAILED.
    #[cold]
    #[inline(never)]
    pub(crate) fn failed(self, lock: u64, pc: u64) {
        self.forget();
        if let Some(slot) = Slot::existing() {
            slot.event([lock], pc);
        }
    }

    /// Takes a lock out of the table that has not been got.
    fn forget(self) {
        match (self.0, Slot::existing()) {
            (Some(entry), Some(slot)) => entry.clear_within(slot),
            (Some(_), None) => {}
            // It was counted as one that is held beyond the table.
            (None, Some(slot)) => drop(slot.was_beyond()),
            (None, None) => {}
        }
    }
}

/// The thread's first event, or one with a time, or a thread that records nowhere.
#[cold]
#[inline(never)]
fn begin_slowly(lock: u64, flags: u64, pc: u64, pc_timed: u64) -> Attempt {
    let Some(slot) = Slot::current() else { return Attempt(None) };
    if !slot.times_all() {
        let sequence = slot.event([lock], pc);
        return Attempt(slot.enter_lock(lock, sequence, pc, flags));
    }
    let time = slot.time();
    let sequence = slot.event([time, lock], pc_timed);
    let mut entry = slot.enter_lock(lock, sequence, pc_timed, flags);
    if let Some(entry) = &mut entry {
        // When it was asked for: nanoseconds before it is had, if it is free.
        entry.set_since(time, 0);
    }
    Attempt(entry)
}

/// An acquisition that waits. Should the lock's own code panic, nothing waits any more.
#[derive(Debug)]
pub(crate) struct Waiting {
    attempt: Attempt,
}

impl Waiting {
    /// The lock is had.
    #[inline(never)]
    pub(crate) fn has(self) {
        let attempt = self.attempt;
        core::mem::forget(self);
        let (Some(entry), Some(slot)) = (attempt.0, Slot::current()) else { return };
        if let Some(mut entry) = entry.within(slot) {
            // First what others must know. For a moment the time is when the waiting began: too early.
            entry.set_state(HELD_HELD);
            entry.set_since(slot.time(), 0);
        }
    }

    /// The time was up. `pc` is a site of the kind TRY_FAILED.
    #[cfg(any(feature = "lock_api", feature = "lock_api_05"))]
    pub(crate) fn failed(self, lock: u64, pc: u64) {
        let attempt = self.attempt;
        core::mem::forget(self);
        attempt.failed(lock, pc);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.attempt.forget();
    }
}

/// A release that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    /// The lock is the first in the table of this slot, taken once, at a time that nobody asked for.
    plain: Option<Slot>,
    /// Where it is otherwise.
    entry: Option<Entry>,
}

impl Release {
    /// Before the lock is given up.
    #[inline(always)]
    pub(crate) fn begin(lock: u64) -> Release {
        match Slot::existing() {
            Some(slot) if slot.releases_first(lock) => Release { plain: Some(slot), entry: None },
            _ => Release { plain: None, entry: begin_release(lock) },
        }
    }

    /// The lock has been given up. `pc` and `pc_timed` are sites of the kind RELEASED, with the operands lock, and
    /// time, since and lock.
    #[inline(always)]
    pub(crate) fn done(self, lock: u64, pc: impl FnOnce() -> u64, pc_timed: impl FnOnce() -> u64) {
        // One site for both ways.
        let pc = pc();
        if let Some(slot) = self.plain.filter(|slot| slot.is_current()) {
            slot.clear_first();
            slot.event([lock], pc);
        } else {
            end_release(lock, self.entry, pc, pc_timed());
        }
    }
}

/// Drops a guard, which unlocks, and records that. `pc` and `pc_timed` are as in [`Release::done`].
///
/// Not inlined, so that the destructor that calls it is: a compiler that finds it too large would put the sites, too,
/// where no caller is known.
#[inline(never)]
pub(crate) fn drop_guard<G>(lock: u64, guard: G, pc: u64, pc_timed: u64) {
    let release = Release::begin(lock);
    drop(guard);
    release.done(lock, || pc, || pc_timed);
}

/// A lock that is not the thread's first one, or whose time is known, or that this thread does not have.
#[inline(never)]
fn begin_release(lock: u64) -> Option<Entry> {
    let mut entry = Slot::existing()?.find(lock, |state| state == HELD_HELD)?;
    entry.set_state(HELD_RELEASING);
    Some(entry)
}

/// See [`begin_release`].
#[inline(never)]
fn end_release(lock: u64, entry: Option<Entry>, pc: u64, pc_timed: u64) {
    let Some(slot) = Slot::current() else { return };
    let Some(entry) = entry.filter(|entry| entry.is_of(slot)) else {
        slot.event([lock], pc);
        super::by_hand::released_unknown(slot, lock);
        return;
    };
    if entry.has_flag(HELD_SINCE) {
        let since = entry.since();
        entry.clear();
        slot.event([slot.time(), since, lock], pc_timed);
    } else {
        entry.clear();
        slot.event([lock], pc);
    }
}

/// A wait for a condition, which lends the lock.
#[derive(Debug)]
pub(crate) struct Lending {
    lock: u64,
    condition: u64,
    entry: Option<Entry>,
}

impl Lending {
    /// Before the lock is given up. `pc` is a site of the kind CONDITION_WAIT.
    pub(crate) fn begin(lock: u64, condition: u64, pc: u64) -> Lending {
        let Some(slot) = Slot::current() else { return Lending { lock, condition, entry: None } };
        let time = slot.time();
        slot.event([time, lock, condition], pc);
        let mut entry = slot.find(lock, |state| state == HELD_HELD);
        if let Some(entry) = &mut entry {
            entry.set_pc(pc);
            entry.set_since(time, 0);
            entry.set_state(HELD_COND_WAIT);
        }
        Lending { lock, condition, entry }
    }

    /// The lock is had again. `pc` is a site of the kind CONDITION_WOKEN.
    pub(crate) fn ends(mut self, pc: u64) {
        let Some(slot) = Slot::current() else { return };
        self.entry = self.entry.and_then(|entry| entry.within(slot));
        if let Some(entry) = &mut self.entry {
            entry.set_state(HELD_HELD);
        }
        let time = slot.time();
        slot.event([time, self.lock, self.condition], pc);
        if let Some(entry) = &mut self.entry {
            entry.set_since(time, 0);
        }
    }
}

/// A lock in exclusive mode goes over to shared mode, without being given up.
pub(crate) fn downgraded(lock: u64) {
    let entry = Slot::current().and_then(|slot| slot.find(lock, |state| state == HELD_HELD));
    if let Some(mut entry) = entry {
        entry.set_flag(HELD_SHARED, true);
    }
}
