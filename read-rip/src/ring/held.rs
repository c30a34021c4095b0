//! A slot's held-lock table: which of its entries can be believed.
//!
//! It knows no history and no sites. What an entry means for the lock is decided later.
//!
//! # Why an entry that is believed was so
//!
//! An entry is three words: lock, place and since. Its owner enters a lock in this order: `place` with its state and
//! the new sequence, which reserves the entry; `since`; then `lock` with the same sequence. Changes of state write
//! `place` again with that sequence, and leaving writes `place` alone, to zero. So:
//!
//! * An entry whose `place` and `lock` have different sequences is being entered. It is counted as unclear, for
//!   its owner may be about to take the lock or, with marks by hand, have it.
//! * Otherwise `lock` belongs to `place`, but for the chance that 8 bits are equal by accident: the entry's former lock
//!   was entered a multiple of 256 words ago, and the owner is between two stores. Then the state is TAKING: that lock
//!   would be one that the thread may have.
//! * All three words are the same in two copies. `lock` carries 15 bits of a sequence that only grows; so it did not
//!   change between the moments at which it was copied (but for a multiple of 2^15 words in between, and then
//!   with the same lock). `place` and `since` were copied between these moments, so they belong to it.
//! * That no word is a mixture of two is argued in `copy`.
//!
//! The entries of a slot that moves are of slightly different moments: each was so at some moment of the reading.

use std::mem::{offset_of, size_of};

use librip_format::{HeldLock as Raw, SlotHeader};

use super::parse::Bytes;
use super::{SequenceBits, Word};

/// A slot's held-lock table has this many entries.
pub const HELD_LOCKS_MAX: usize = librip_format::HELD_MAX;

/// An entry of a held-lock table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// The lock's address.
    pub lock: u64,
    /// Actual address of the mark that entered it, or the return address of a call.
    pub pc: u64,
    /// It is a return address: an interposer has entered it.
    pub is_caller: bool,
    /// With that: the attempt ends by itself.
    pub is_try: bool,
    /// The lock lies, or may lie, in memory that processes share.
    pub is_process_shared: bool,
    /// What its owner does with it.
    pub state: HeldState,
    /// In shared mode.
    pub is_shared: bool,
    /// When waiting or holding began, ticks; `None`: not recorded.
    pub since_ticks: Option<u64>,
    /// How often it was taken again.
    pub recursion: u16,
    /// The low 15 bits of the sequence of the event that entered it.
    pub sequence: SequenceBits,
}

/// What the owner of an entry does with the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldState {
    /// Tries to get it, and may have it.
    Acquiring,
    /// Waits for it.
    Waiting,
    /// Has it.
    Held,
    /// Gives it up, and may have done so.
    Releasing,
    /// Waits for a condition, without the lock, or to get it back.
    ConditionWait,
    /// It was destroyed while it was held.
    Destroyed,
    /// Waits for a unit of a semaphore, which nobody holds.
    SemaphoreWait,
}

/// What a slot's table says.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) locks: Vec<HeldLock>,
    /// Entries that were being written.
    pub(super) in_flux: u32,
    /// Entries that contradict themselves.
    pub(super) damaged: u32,
}

/// Reads the table out of two copies of a slot's header.
pub(super) fn read(bytes: &Bytes<'_>, again: &Bytes<'_>) -> Table {
    let mut table = Table::default();
    for index in 0..librip_format::HELD_MAX {
        let at = offset_of!(SlotHeader, held) + index * size_of::<Raw>();
        let words = |bytes: &Bytes<'_>| {
            [offset_of!(Raw, lock), offset_of!(Raw, meta), offset_of!(Raw, since)]
                .map(|field| bytes.u64(at + field))
        };
        let entry = words(bytes);
        if entry != words(again) {
            table.in_flux += 1;
        } else {
            table.enter(entry);
        }
    }
    table
}

impl Table {
    fn enter(&mut self, [lock, place, since]: [u64; 3]) {
        let state = match librip_format::held_state(place) {
            librip_format::HELD_NONE => return,
            librip_format::HELD_ACQUIRING => HeldState::Acquiring,
            librip_format::HELD_WAITING => HeldState::Waiting,
            librip_format::HELD_HELD => HeldState::Held,
            librip_format::HELD_RELEASING => HeldState::Releasing,
            librip_format::HELD_COND_WAIT => HeldState::ConditionWait,
            librip_format::HELD_DESTROYED => HeldState::Destroyed,
            // Three bits: there is no other.
            _ => HeldState::SemaphoreWait,
        };
        let sequence = Word::from_raw(lock).sequence();
        let place_sequence_mask = (1 << (u64::BITS - librip_format::HELD_SEQUENCE_SHIFT)) - 1;
        // A lock that was never written is one that is just being entered, whatever its zeros look like.
        if lock == 0
            || librip_format::sequence_bits(lock) & place_sequence_mask
                != place >> librip_format::HELD_SEQUENCE_SHIFT
        {
            self.in_flux += 1;
            return;
        }
        if !librip_format::is_operand(lock) || librip_format::payload(lock) == 0 {
            self.damaged += 1;
            return;
        }
        let since = if place & librip_format::HELD_SINCE != 0 { since } else { 0 };
        let ticks = since & librip_format::PAYLOAD_MASK;
        self.locks.push(HeldLock {
            lock: librip_format::payload(lock),
            pc: librip_format::payload(place),
            is_caller: place & librip_format::HELD_CALLER != 0,
            is_try: place & librip_format::HELD_TRY != 0,
            is_process_shared: place & librip_format::HELD_PROCESS_SHARED != 0,
            state,
            is_shared: place & librip_format::HELD_SHARED != 0,
            since_ticks: (ticks != 0).then_some(ticks),
            recursion: (since >> librip_format::HELD_RECURSION_SHIFT) as u16,
            sequence,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entry: [u64; 3]) -> Table {
        let mut table = Table::default();
        table.enter(entry);
        table
    }

    #[test]
    fn an_entry_is_believed_when_its_sequences_agree() {
        let lock = librip_format::pack(5000, 0x7000, true);
        let place =
            librip_format::held_meta(5000, 0x1234, librip_format::HELD_HELD, librip_format::HELD_SHARED);
        let found = table([lock, place, 3 << 48 | 77]).locks;
        let expected = HeldLock {
            lock: 0x7000,
            pc: 0x1234,
            is_caller: false,
            is_try: false,
            is_process_shared: false,
            state: HeldState::Held,
            is_shared: true,
            since_ticks: None,
            recursion: 0,
            sequence: SequenceBits::of(5000),
        };
        assert_eq!(found, [expected]);
        let timed = table([lock, place | librip_format::HELD_SINCE, 3 << 48 | 77]).locks;
        assert_eq!((timed[0].since_ticks, timed[0].recursion), (Some(77), 3));
        let flags = librip_format::HELD_CALLER | librip_format::HELD_TRY | librip_format::HELD_PROCESS_SHARED;
        let called =
            table([lock, librip_format::held_meta(5000, 0x1234, librip_format::HELD_SEM_WAIT, flags), 0])
                .locks;
        let expected = HeldLock {
            is_caller: true,
            is_try: true,
            is_process_shared: true,
            state: HeldState::SemaphoreWait,
            is_shared: false,
            ..expected
        };
        assert_eq!(called, [expected]);
    }

    #[test]
    fn an_entry_in_motion_and_a_damaged_one_are_counted_and_not_believed() {
        let lock = librip_format::pack(4999, 0x7000, true);
        let place = librip_format::held_meta(5000, 0x1234, librip_format::HELD_ACQUIRING, 0);
        for entry in
            [[lock, place, 0], [0, librip_format::held_meta(0, 0x1234, librip_format::HELD_HELD, 0), 0]]
        {
            let table = table(entry);
            assert_eq!((table.locks.len(), table.in_flux, table.damaged), (0, 1, 0));
        }
        let lock = librip_format::pack(5000, 0x7000, true);
        let table = table([lock & !librip_format::OPERAND_FLAG, place, 0]);
        assert_eq!((table.locks.len(), table.in_flux, table.damaged), (0, 0, 1));
    }

    #[test]
    fn an_entry_that_is_free_means_nothing_whatever_is_left_in_it() {
        let table = table([librip_format::pack(5000, 0x7000, true), 0, u64::MAX]);
        assert_eq!((table.locks.len(), table.in_flux, table.damaged), (0, 0, 0));
    }
}
