//! A slot's held-lock table: which of its entries can be believed.
//!
//! It knows no history and no sites, and does not conclude what an entry means for the lock.
//!
//! # Why a believed entry was in the table
//!
//! An entry is three words: `lock`, `meta` and `since`. Its owner enters a lock in this order: first `meta`, in the
//! state ACQUIRING, which reserves the entry; then `lock`, with the new sequence. A change of state writes `meta`
//! again. A time goes into `since`, then `meta` says that it is there. The owner frees the entry by storing zero in
//! `meta` alone. So:
//!
//! * A checksum in `meta` covers `lock` and `meta`. If it does not fit in the state ACQUIRING, the owner is entering a
//!   lock. The entry is counted as in flux: the owner may be about to acquire the lock or, with marks by hand, hold it.
//! * In any other state `lock` was there before. So if the checksum does not fit, the entry is damaged.
//! * If it fits, `lock` belongs to `meta`, unless two checksums of 8 bits are equal by accident: that of the entry's
//!   previous lock, and the owner is between two stores. The state is ACQUIRING then, so the previous lock would be
//!   reported as one that the thread may hold.
//! * `since` has a checksum of its own, because it changes on its own.
//! * All three words are the same in two copies. `lock` carries 15 bits of a sequence that only grows. So `lock`
//!   did not change between the moments at which it was copied (unless the owner wrote a multiple of 2^15 words in
//!   between, and entered the same lock again). `meta` and `since` were copied between these moments, so they
//!   belong to it.
//! * `copy` says why no word is a mixture of two.
//!
//! The entries of a slot that changes come from slightly different moments. Each was in the table at some moment of
//! the reading.

use std::mem::{offset_of, size_of};

use librip_format::{HeldLock as Raw, SlotHeader};

use super::bytes::Bytes;
use super::{SequenceBits, SiteFlags, Word};

/// A slot's held-lock table has this many entries.
pub const HELD_LOCKS_MAX: usize = librip_format::HELD_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    pub index: u8,
    pub lock: u64,
    /// Actual address of the mark that entered the lock, or a return address, or a call.
    pub pc: u64,
    /// The flags of the call, if `pc` is one.
    pub call: Option<SiteFlags>,
    /// Whether `pc` is a return address: an interposer entered the lock.
    pub is_caller: bool,
    /// With `is_caller`: whether the attempt ends by itself.
    pub is_try: bool,
    /// Whether the lock is, or may be, in memory that processes share.
    pub is_process_shared: bool,
    /// What the owner does with the lock.
    pub state: HeldState,
    /// Whether the lock is acquired in shared mode.
    pub is_shared: bool,
    /// When the wait or the hold began, ticks; `None` if that was not recorded.
    pub since_ticks: Option<u64>,
    /// How often the owner has acquired the lock again. At a barrier: how many threads a round takes, 0 if that is not
    /// known.
    pub recursion: u16,
    /// Whether a future has the entry, and not the code that runs on a thread.
    pub is_of_future: bool,
    /// The sequence of the event that entered the lock.
    pub sequence: SequenceBits,
}

/// What the owner of an entry does with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldState {
    /// Tries to acquire the lock, and may hold it already.
    Acquiring,
    Waiting,
    Held,
    /// Releases the lock, and may have done so already.
    Releasing,
    /// Waits on a condition variable without the lock, or waits to reacquire the lock.
    ConditionWait,
    /// Held the lock when it was destroyed.
    Destroyed,
    /// Waits for a unit of a semaphore, which nobody holds.
    SemaphoreWait,
    /// Waits for the end of a thread. The entry has its id in place of the address of a lock.
    ThreadWait,
    /// Waits for other threads at a barrier.
    BarrierWait,
    /// Waits for a message, for room for one, or to be woken by another thread.
    MessageWait,
}

impl HeldState {
    /// Whether the owner blocks on something that nobody holds.
    pub fn is_blocked(self) -> bool {
        use HeldState::{BarrierWait, MessageWait, SemaphoreWait, ThreadWait};
        matches!(self, SemaphoreWait | ThreadWait | BarrierWait | MessageWait)
    }

    /// Decodes the state in a `meta` word; `None` for a free entry.
    fn from_meta(meta: u64) -> Option<HeldState> {
        Some(match librip_format::held_state(meta) {
            librip_format::HELD_NONE => return None,
            librip_format::HELD_ACQUIRING => HeldState::Acquiring,
            librip_format::HELD_WAITING => HeldState::Waiting,
            librip_format::HELD_HELD => HeldState::Held,
            librip_format::HELD_RELEASING => HeldState::Releasing,
            librip_format::HELD_COND_WAIT => HeldState::ConditionWait,
            librip_format::HELD_DESTROYED => HeldState::Destroyed,
            // HELD_SEM_WAIT, the last value of three bits.
            _ => match meta & librip_format::HELD_FOR {
                librip_format::HELD_FOR_THREAD => HeldState::ThreadWait,
                librip_format::HELD_FOR_BARRIER => HeldState::BarrierWait,
                librip_format::HELD_FOR_MESSAGE => HeldState::MessageWait,
                _ => HeldState::SemaphoreWait,
            },
        })
    }
}

/// An entry is these three words.
const _: () = assert!(
    offset_of!(Raw, lock) == 0
        && offset_of!(Raw, meta) == 8
        && offset_of!(Raw, since) == 16
        && size_of::<Raw>() == 24
);

/// A slot's held-lock table.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) locks: Vec<HeldLock>,
    /// Entries that changed while they were read.
    pub(super) in_flux: u32,
    /// Entries that contradict themselves.
    pub(super) damaged: u32,
}

/// Reads the table from two copies of a slot's header.
pub(super) fn read(first: &Bytes<'_>, second: &Bytes<'_>) -> Table {
    let places = || {
        (0..HELD_LOCKS_MAX as u8)
            .map(|index| (index, offset_of!(SlotHeader, held) + usize::from(index) * size_of::<Raw>()))
    };
    // Most threads have one entry, or none, and there may be many threads.
    let in_use = places().filter(|&(_, at)| first.u64(at + offset_of!(Raw, meta)) != 0).count();
    let mut table = Table { locks: Vec::with_capacity(in_use), ..Table::default() };
    for (index, at) in places() {
        match first.same_words(second, at) {
            Some(entry) => table.add(index, entry),
            None => table.in_flux += 1,
        }
    }
    table
}

impl Table {
    fn add(&mut self, index: u8, [lock, meta, since]: [u64; 3]) {
        // A free entry is zero.
        if meta == 0 {
            return;
        }
        let state = HeldState::from_meta(meta);
        let is_sound = librip_format::is_held_meta_sound(lock, meta);
        if state == Some(HeldState::Acquiring) && !is_sound {
            self.in_flux += 1;
            return;
        }
        let lock = Word::from_raw(lock);
        let has = |flag: u64| meta & flag != 0;
        let is_call = !lock.is_operand();
        let is_possible = lock.payload() != 0 && !(is_call && has(librip_format::HELD_CALLER));
        let since = if has(librip_format::HELD_SINCE) { since } else { 0 };
        let is_sound = is_sound && librip_format::is_held_since_sound(since);
        let Some(state) = state.filter(|_| is_sound && is_possible) else {
            self.damaged += 1;
            return;
        };
        let ticks = Word::from_raw(since).payload();
        let recursion = librip_format::held_recursion(since);
        let (recursion, is_of_future) = match state {
            HeldState::BarrierWait => librip_format::round_of_held(recursion),
            _ if recursion == librip_format::HELD_OF_FUTURE => (0, true),
            _ => (recursion, false),
        };
        self.locks.push(HeldLock {
            index,
            lock: lock.payload(),
            pc: librip_format::held_pc(meta),
            call: is_call.then(|| {
                let (is_shared, is_owned) = (has(librip_format::HELD_SHARED), has(librip_format::HELD_OWNED));
                let call = librip_format::held_pc(meta);
                SiteFlags::from_bits(if state.is_blocked() {
                    librip_format::blocked_call_flags(call)
                } else {
                    librip_format::call_flags(call, is_shared, is_owned)
                })
            }),
            is_caller: has(librip_format::HELD_CALLER),
            is_try: !is_call && has(librip_format::HELD_TRY),
            // These bits say something else where nobody holds what the owner waits for.
            is_process_shared: !state.is_blocked() && has(librip_format::HELD_PROCESS_SHARED),
            state,
            is_shared: !state.is_blocked() && has(librip_format::HELD_SHARED),
            since_ticks: (ticks != 0).then_some(ticks),
            recursion: recursion as u16,
            is_of_future,
            sequence: lock.sequence(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LockType;
    use librip_format::{
        CALL_RWLOCK, CALL_TRY, HELD_ACQUIRING, HELD_CALLER, HELD_FOR_BARRIER, HELD_FOR_MESSAGE,
        HELD_FOR_THREAD, HELD_FOR_UNIT, HELD_HELD, HELD_NONE, HELD_OF_FUTURE, HELD_OWNED,
        HELD_PROCESS_SHARED, HELD_SEM_WAIT, HELD_SHARED, HELD_SINCE, HELD_TRY, HELD_WAITING, OPERAND_FLAG,
        held_change, held_meta, held_since, pack,
    };

    fn table(entry: [u64; 3]) -> Table {
        let mut table = Table::default();
        table.add(3, entry);
        table
    }

    #[test]
    fn an_entry_is_believed_if_its_checksums_fit() {
        let lock = pack(5000, 0x7000, true);
        let meta = held_meta(lock, 0x1234, HELD_HELD, HELD_SHARED);
        let since = held_since(77, 3);
        let found = table([lock, meta, since]).locks;
        let expected = HeldLock {
            index: 3,
            lock: 0x7000,
            pc: 0x1234,
            call: None,
            is_caller: false,
            is_try: false,
            is_process_shared: false,
            state: HeldState::Held,
            is_shared: true,
            since_ticks: None,
            recursion: 0,
            is_of_future: false,
            sequence: SequenceBits::of(5000),
        };
        assert_eq!(found, [expected]);
        let timed = table([lock, meta ^ held_change(HELD_SINCE), since]).locks;
        assert_eq!((timed[0].since_ticks, timed[0].recursion), (Some(77), 3));
        let of_future = table([lock, meta ^ held_change(HELD_SINCE), held_since(77, HELD_OF_FUTURE)]).locks;
        assert_eq!((of_future[0].recursion, of_future[0].is_of_future), (0, true));
        let flags = HELD_CALLER | HELD_TRY | HELD_PROCESS_SHARED;
        let called = table([lock, held_meta(lock, 0x1234, HELD_WAITING, flags), 0]).locks;
        let expected = HeldLock {
            is_caller: true,
            is_try: true,
            is_process_shared: true,
            state: HeldState::Waiting,
            is_shared: false,
            ..expected
        };
        assert_eq!(called, [expected]);
    }

    #[test]
    fn two_bits_say_what_a_thread_blocks_on_that_nobody_holds() {
        let lock = pack(5000, 4711, true);
        for (bits, expected) in [
            (HELD_FOR_UNIT, HeldState::SemaphoreWait),
            (HELD_FOR_THREAD, HeldState::ThreadWait),
            (HELD_FOR_BARRIER, HeldState::BarrierWait),
            (HELD_FOR_MESSAGE, HeldState::MessageWait),
        ] {
            let meta = held_meta(lock, 0x1234, HELD_SEM_WAIT, HELD_CALLER | bits);
            let [found] = table([lock, meta, 0]).locks[..] else { panic!("one entry") };
            assert_eq!((found.lock, found.state), (4711, expected));
            assert_eq!((found.is_shared, found.is_process_shared), (false, false), "{expected:?}");
        }
        let meta = held_meta(lock, 0x1234, HELD_SEM_WAIT, HELD_CALLER | HELD_SINCE | HELD_FOR_BARRIER);
        for is_of_future in [false, true] {
            let since = held_since(77, librip_format::held_round(3, is_of_future));
            let [found] = table([lock, meta, since]).locks[..] else { panic!("one entry") };
            assert_eq!((found.recursion, found.is_of_future), (3, is_of_future));
        }
    }

    #[test]
    fn entries_in_flux_and_damaged_entries_are_counted_and_not_believed() {
        let (old, new) = (pack(4999, 0x7000, true), pack(5000, 0x7000, true));
        // Being entered: the lock is that of the previous entry, or there was none.
        let meta = held_meta(new, 0x1234, HELD_ACQUIRING, 0);
        for entry in [[old, meta, 0], [0, meta, 0]] {
            let table = table(entry);
            assert_eq!((table.locks.len(), table.in_flux, table.damaged), (0, 1, 0));
        }
        let held = held_meta(new, 0x1234, HELD_HELD, 0);
        let timed = held ^ held_change(HELD_SINCE);
        for entry in [
            [old, held, 0],
            [0, held, 0],
            // Not free, and without a state.
            [new, held_meta(new, 0x1234, HELD_NONE, 0), 0],
            [new, timed, held_since(77, 3) ^ 1],
            [new & !OPERAND_FLAG, held_meta(new & !OPERAND_FLAG, 0x1234, HELD_ACQUIRING, HELD_CALLER), 0],
        ] {
            let table = table(entry);
            assert_eq!((table.locks.len(), table.in_flux, table.damaged), (0, 0, 1), "{entry:x?}");
        }
    }

    #[test]
    fn an_entry_of_a_call_has_the_flags_of_the_call() {
        let lock = pack(5000, 0x7000, false);
        let meta = held_meta(lock, 0x1230 | CALL_RWLOCK | CALL_TRY, HELD_HELD, HELD_OWNED);
        let found = table([lock, meta, 0]).locks;
        let flags = SiteFlags::WRAPPER | SiteFlags::OWNED | SiteFlags::TRY;
        assert_eq!(found[0].call, Some(flags.with_lock_type(LockType::RwLock)));
        assert_eq!((found[0].lock, found[0].is_caller, found[0].is_try), (0x7000, false, false));
        let downgraded = table([lock, meta ^ held_change(HELD_SHARED), 0]).locks;
        assert!(downgraded[0].call.unwrap().is_shared());
    }

    #[test]
    fn a_free_entry_is_ignored_whatever_its_other_words_are() {
        let table = table([pack(5000, 0x7000, true), 0, u64::MAX]);
        assert_eq!((table.locks.len(), table.in_flux, table.damaged), (0, 0, 0));
    }
}
