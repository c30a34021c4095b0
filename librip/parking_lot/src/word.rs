//! A lock in one word: exclusive, shared or upgradable, with or without a time limit. It knows no trait.
//!
//! The algorithm is Howard Hinnant's `upgrade_mutex` (WG21 paper N3427) with its two gates, and the queues are those of
//! `parking_lot_core`:
//!
//! * At the *first gate* wait threads that may not enter. It is closed for readers while there is a writer, and for
//!   writers and upgradable readers while there is one of either.
//! * A writer that has passed the first gate keeps all others out. It waits at the *second gate* until the last reader
//!   has left. A thread that upgrades its read goes there directly.
//!
//! A mutex is such a lock that only writers use.
//!
//! # Invariants
//!
//! * `PARKED` is set if a thread is in the queue of the first gate. It is cleared under the lock of that queue only.
//! * If a thread is in that queue, there is a writer or an upgradable reader, or a thread was woken and has not tried
//!   yet. So each wake-up that leaves threads behind wakes one that becomes a writer or an upgradable reader.
//! * `DRAINING` is set if the writer is in the queue of the second gate.
//!
//! # Orderings
//!
//! A thread that enters acquires what the thread released that left before it. A thread that was handed the lock has
//! synchronised with the former owner in the queue. A writer that waited for readers acquires at the second gate.

#![allow(unsafe_code, reason = "the queues of `parking_lot_core` are unsafe")]

use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use parking_lot_core::{
    DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN, FilterOp, ParkResult, ParkToken, SpinWait, UnparkToken,
};

use crate::deadlock::{acquire_resource, release_resource};
use crate::fairness::is_fair_by_itself;

const PARKED: u32 = 1;
const DRAINING: u32 = 2;
const UPGRADABLE: u32 = 4;
const WRITER: u32 = 8;
const READER: u32 = 16;
const READERS: u32 = !(READER - 1);

/// A woken thread has the lock already.
pub(crate) const HANDED_OVER: UnparkToken = UnparkToken(1);
/// A woken thread has to try again.
pub(crate) const TRY_AGAIN: UnparkToken = DEFAULT_UNPARK_TOKEN;

// With its path, because another crate has this file as a module of its own.
#[cfg(test)]
#[path = "word/tests.rs"]
mod tests;

/// How a thread holds the lock, or wants to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Exclusive,
    Shared,
    /// Shared, and a writer that waits for readers does not keep the thread out.
    Recursive,
    Upgradable,
}

impl Mode {
    /// What a thread adds to the word when it enters.
    const fn bits(self) -> u32 {
        match self {
            Mode::Exclusive => WRITER,
            Mode::Shared | Mode::Recursive => READER,
            Mode::Upgradable => UPGRADABLE | READER,
        }
    }

    /// Whether the first gate is open.
    const fn may_enter(self, word: u32) -> bool {
        match self {
            Mode::Exclusive | Mode::Upgradable => word & (WRITER | UPGRADABLE) == 0,
            Mode::Shared => word & WRITER == 0,
            Mode::Recursive => word & WRITER == 0 || word & READERS != 0,
        }
    }

    /// Whether a thread gets the lock without waiting.
    const fn is_free(self, word: u32) -> bool {
        self.may_enter(word) && (!matches!(self, Mode::Exclusive) || word & READERS == 0)
    }

    /// The word with one more thread that has entered.
    fn entered(self, word: u32) -> u32 {
        word.checked_add(self.bits()).expect("a lock has at most 268435455 readers")
    }

    /// What the queue knows of a thread.
    pub(crate) const fn token(self) -> ParkToken {
        ParkToken(self as usize)
    }

    const fn of(token: ParkToken) -> Mode {
        match token.0 {
            0 => Mode::Exclusive,
            1 => Mode::Shared,
            2 => Mode::Recursive,
            _ => Mode::Upgradable,
        }
    }
}

/// The word. It does not check that the caller holds what it releases: that is a rule of `lock_api`.
#[derive(Debug)]
pub(crate) struct Word(AtomicU32);

impl Word {
    pub(crate) const fn new() -> Word {
        Word(AtomicU32::new(0))
    }

    /// The key of the queue at the first gate.
    pub(crate) fn first_gate(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// The key of the queue at the second gate. No other queue has it: the word has four bytes.
    fn second_gate(&self) -> usize {
        self.first_gate() + 1
    }

    pub(crate) fn is_locked(&self) -> bool {
        // ORDERING: relaxed: the answer is old when the caller has it.
        self.0.load(Relaxed) & (WRITER | READERS) != 0
    }

    pub(crate) fn is_exclusive(&self) -> bool {
        // ORDERING: relaxed, as above.
        let word = self.0.load(Relaxed);
        word & WRITER != 0 && word & READERS == 0
    }

    #[inline]
    pub(crate) fn try_lock(&self, mode: Mode) -> bool {
        // ORDERING: acquire: see the module. Pairs with the releases in `unlock` and `leave`.
        let entered =
            self.0.fetch_update(Acquire, Relaxed, |word| mode.is_free(word).then(|| mode.entered(word)));
        if entered.is_ok() {
            self.own(mode.bits());
        }
        entered.is_ok()
    }

    /// Locks, or returns `false` when the time is up.
    #[inline]
    pub(crate) fn lock(&self, mode: Mode, until: Option<Instant>) -> bool {
        self.try_lock(mode) || self.lock_slow(mode, until)
    }

    #[cold]
    fn lock_slow(&self, mode: Mode, until: Option<Instant>) -> bool {
        if !self.pass_first_gate(mode, until) {
            return false;
        }
        self.own(mode.bits());
        if mode == Mode::Exclusive && !self.pass_second_gate(until) {
            self.unlock(Mode::Exclusive, None, false);
            return false;
        }
        true
    }

    fn pass_first_gate(&self, mode: Mode, until: Option<Instant>) -> bool {
        let mut spin = SpinWait::new();
        loop {
            // ORDERING: relaxed: what follows from it is done by an exchange or checked again in the queue.
            let word = self.0.load(Relaxed);
            if mode.may_enter(word) {
                // ORDERING: acquire, as in `try_lock`.
                if self.0.compare_exchange_weak(word, mode.entered(word), Acquire, Relaxed).is_ok() {
                    return true;
                }
                spin.spin_no_yield();
                continue;
            }
            if word & PARKED == 0 {
                // ORDERING: relaxed: the lock of the queue orders it with who clears it.
                if spin.spin() || self.0.compare_exchange_weak(word, word | PARKED, Relaxed, Relaxed).is_err()
                {
                    continue;
                }
            }
            let is_shut = || {
                let word = self.0.load(Relaxed);
                word & PARKED != 0 && !mode.may_enter(word)
            };
            let time_is_up = |_, is_last| {
                if is_last {
                    self.0.fetch_and(!PARKED, Relaxed);
                }
            };
            // SAFETY: the key is an address of this object, and none of the closures panics or uses a queue.
            let result = unsafe {
                parking_lot_core::park(self.first_gate(), is_shut, || {}, time_is_up, mode.token(), until)
            };
            match result {
                ParkResult::Unparked(HANDED_OVER) => return true,
                ParkResult::Unparked(_) | ParkResult::Invalid => spin.reset(),
                ParkResult::TimedOut => return false,
            }
        }
    }

    /// A writer waits until the last reader has left.
    fn pass_second_gate(&self, until: Option<Instant>) -> bool {
        let mut spin = SpinWait::new();
        loop {
            // ORDERING: acquire: pairs with the releases of the readers in `unlock_shared`.
            let word = self.0.load(Acquire);
            if word & READERS == 0 {
                return true;
            }
            if word & DRAINING == 0 {
                // ORDERING: relaxed, as for `PARKED`.
                if spin.spin()
                    || self.0.compare_exchange_weak(word, word | DRAINING, Relaxed, Relaxed).is_err()
                {
                    continue;
                }
            }
            let is_shut = || {
                let word = self.0.load(Relaxed);
                word & DRAINING != 0 && word & READERS != 0
            };
            let time_is_up = |_, _| {
                self.0.fetch_and(!DRAINING, Relaxed);
            };
            // SAFETY: as above.
            let result = unsafe {
                parking_lot_core::park(
                    self.second_gate(),
                    is_shut,
                    || {},
                    time_is_up,
                    DEFAULT_PARK_TOKEN,
                    until,
                )
            };
            if result == ParkResult::TimedOut {
                // ORDERING: acquire, as above.
                return self.0.load(Acquire) & READERS == 0;
            }
            spin.reset();
        }
    }

    /// Unlocks what is held in this mode, and keeps the lock in another one, if any.
    ///
    /// `is_fair`: who waits gets the lock before a thread that comes now.
    #[inline]
    pub(crate) fn unlock(&self, held: Mode, kept: Option<Mode>, is_fair: bool) {
        let kept = kept.map_or(0, Mode::bits);
        self.disown(held.bits());
        self.own(kept);
        // ORDERING: release: see the module. Pairs with the acquisitions in `try_lock` and at both gates.
        let leave = |word| (word & PARKED == 0).then(|| word - held.bits() + kept);
        if self.0.fetch_update(Release, Relaxed, leave).is_err() {
            self.leave(held.bits(), kept, is_fair);
        }
    }

    /// Unlocks, and wakes threads at the first gate. Not for shared mode: see the invariants.
    #[cold]
    fn leave(&self, held: u32, kept: u32, is_fair: bool) {
        // The modes that stay, and those of the woken threads.
        let entered = Cell::new(kept);
        let choose = |token| {
            let (mode, now) = (Mode::of(token), entered.get());
            if mode.may_enter(now) {
                entered.set(now + mode.bits());
                FilterOp::Unpark
            } else if now & WRITER != 0 && now & READERS == 0 {
                // Nobody can enter any more.
                FilterOp::Stop
            } else {
                FilterOp::Skip
            }
        };
        let leave = |result: parking_lot_core::UnparkResult| {
            let is_handed_over = (is_fair || is_fair_by_itself(&result)) && result.unparked_threads > 0;
            let next = if is_handed_over { entered.get() } else { kept };
            let parked = if result.have_more_threads { !0 } else { !PARKED };
            // ORDERING: release, as in `unlock`. Readers may come and go meanwhile.
            let _ = self.0.fetch_update(Release, Relaxed, |word| Some((word - held + next) & parked));
            if is_handed_over { HANDED_OVER } else { TRY_AGAIN }
        };
        // SAFETY: the key is an address of this object, and none of the closures panics or uses a queue.
        unsafe { parking_lot_core::unpark_filter(self.first_gate(), choose, leave) };
    }

    /// Unlocks in shared mode. It wakes nobody at the first gate: a reader alone shuts it for nobody.
    #[inline]
    pub(crate) fn unlock_shared(&self) {
        self.disown(READER);
        // ORDERING: release: pairs with the acquisition at the second gate.
        let before = self.0.fetch_sub(READER, Release);
        if before & READERS == READER && before & DRAINING != 0 {
            self.wake_writer();
        }
    }

    #[cold]
    fn wake_writer(&self) {
        let clear = |_| {
            // ORDERING: relaxed: under the lock of the queue.
            self.0.fetch_and(!DRAINING, Relaxed);
            TRY_AGAIN
        };
        // SAFETY: the key is an address of this object, and the closure neither panics nor uses a queue.
        unsafe { parking_lot_core::unpark_one(self.second_gate(), clear) };
    }

    /// Upgrades an upgradable read if there is no other reader.
    #[inline]
    pub(crate) fn try_upgrade(&self) -> bool {
        let upgraded = |word| (word & READERS == READER).then(|| word - Mode::Upgradable.bits() + WRITER);
        // ORDERING: acquire: pairs with the releases of the readers in `unlock_shared`.
        let is_upgraded = self.0.fetch_update(Acquire, Relaxed, upgraded).is_ok();
        if is_upgraded {
            self.disown(READER);
        }
        is_upgraded
    }

    /// Upgrades an upgradable read, or returns `false` when the time is up: the read stays.
    pub(crate) fn upgrade(&self, until: Option<Instant>) -> bool {
        // From now on no reader enters.
        // ORDERING: relaxed: the second gate acquires.
        self.0.fetch_sub(Mode::Upgradable.bits() - WRITER, Relaxed);
        self.disown(READER);
        let is_upgraded = self.pass_second_gate(until);
        if !is_upgraded {
            self.unlock(Mode::Exclusive, Some(Mode::Upgradable), false);
        }
        is_upgraded
    }

    /// Announces a thread at the first gate if the lock is held in exclusive mode. For condition variables, which move
    /// their threads there.
    pub(crate) fn announce_if_locked(&self) -> bool {
        let announced = |word| (word & WRITER != 0).then_some(word | PARKED);
        // ORDERING: relaxed: under the lock of the queue.
        self.0.fetch_update(Relaxed, Relaxed, announced).is_ok()
    }

    /// Announces a thread at the first gate, whose queue another one will find that is about to lock.
    pub(crate) fn announce(&self) {
        // ORDERING: relaxed, as above.
        self.0.fetch_or(PARKED, Relaxed);
    }

    /// A condition variable's thread was handed the lock.
    pub(crate) fn own_exclusive(&self) {
        self.own(WRITER);
    }

    /// Tells the detector of deadlocks what the thread holds: who waits at the first gate waits for writers and
    /// upgradable readers, and who waits at the second one for readers.
    #[inline]
    fn own(&self, bits: u32) {
        if bits & (WRITER | UPGRADABLE) != 0 {
            acquire_resource(self.first_gate());
        }
        if bits & READERS != 0 {
            acquire_resource(self.second_gate());
        }
    }

    /// The opposite of [`own`](Word::own).
    #[inline]
    fn disown(&self, bits: u32) {
        if bits & (WRITER | UPGRADABLE) != 0 {
            release_resource(self.first_gate());
        }
        if bits & READERS != 0 {
            release_resource(self.second_gate());
        }
    }
}
