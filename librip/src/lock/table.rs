//! The held-lock table of the calling thread's slot.
//!
//! It writes what it is given. It knows neither locks nor marks. `librip_format` defines what the bytes mean.
//!
//! # Invariants
//!
//! * Only the thread that owns a slot writes here. A thread that releases another thread's lock goes through
//!   `ring::remote_tables`.
//! * The first store to an entry, its meta word, reserves it. A signal handler that acquires locks of its own then
//!   finds the entry in use and takes the next one. Between our look at a free entry and that store, a handler can
//!   use the same entry, but it frees the entry before we go on. If the handler returns with a lock that it acquired
//!   exactly there, that lock loses its entry. The window is one instruction wide, and no program should do that.
//! * What is read from the table may have been scribbled on. It decides what is recorded, and nothing else: each loop
//!   here ends after [`HELD_MAX`](librip_format::HELD_MAX) entries, and each store goes to an entry of this slot.
//!
//! # Orderings
//!
//! The reader is another process. It copies the table twice and cannot synchronise with us. Stores to an entry are
//! releases, so that they become visible in program order (on x86-64 all stores do): a state is not visible before the
//! sequence that it belongs to. Loads are relaxed, because they read this thread's own stores.

#![allow(
    unsafe_code,
    reason = "a slot is reached through the thread's cursor, a raw pointer into the mapping"
)]

use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::arch;
use crate::process::instance::{self, Request};
pub(crate) use crate::process::slot::Slot;
use librip_format::{
    HELD_ACQUIRING, HELD_DESTROYED, HELD_FLAGS, HELD_HELD, HELD_RELEASING, HELD_SINCE, HELD_STATE_SHIFT,
    HeldLock, PAYLOAD_MASK, SlotHeader, held_change, held_meta, held_pc, held_recursion, held_since,
    held_state, is_operand, pack, payload,
};

/// In the flags of a new entry, not in those of the file: the entry has a call in place of a PC.
pub(crate) const IS_CALL: u64 = 1;

impl Slot {
    /// Enters a lock into the table, as ACQUIRING. `None` if the table is full, which is counted: then
    /// [`enter_last`](Slot::enter_last) has room for a wait. `flags` may have [`IS_CALL`].
    #[inline(always)]
    pub(crate) fn enter_lock(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Option<Entry> {
        let first = &self.header().held[0];
        if !is_used(first) {
            return Some(Entry::enter(first, lock, sequence, pc, flags));
        }
        self.enter_lock_further(lock, sequence, pc, flags)
    }

    /// Like [`enter_lock`](Slot::enter_lock) where the first entry is in use: the thread has other locks.
    #[inline(never)]
    fn enter_lock_further(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Option<Entry> {
        // Few threads have three locks. A search needs more registers.
        let second = &self.header().held[1];
        if !is_used(second) {
            return Some(Entry::enter(second, lock, sequence, pc, flags));
        }
        self.enter_lock_anywhere(lock, sequence, pc, flags)
    }

    /// Like [`enter_lock`](Slot::enter_lock) where the first two entries are in use.
    #[inline(never)]
    fn enter_lock_anywhere(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Option<Entry> {
        let header = self.header();
        let [_, others @ .., _] = &header.held;
        let is_destroyed = |held: &&HeldLock| meta_of(held).state() == HELD_DESTROYED;
        // A destroyed lock makes room for one that exists.
        let free = others.iter().find(|held| !is_used(held)).or_else(|| others.iter().find(is_destroyed));
        if free.is_none() {
            header.held_overflowed.fetch_add(1, Relaxed);
            instance::request(Request::TABLE_OVERFLOWED, 0);
        }
        Some(Entry::enter(free?, lock, sequence, pc, flags))
    }

    /// Enters a lock that the thread waits for into the last entry, in this state. `None` if another wait is there:
    /// that of the code which a signal handler has interrupted.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_last(
        self,
        lock: u64,
        sequence: u64,
        pc: u64,
        flags: u64,
        state: u64,
    ) -> Option<Entry> {
        let [.., last] = &self.header().held;
        if is_used(last) {
            return None;
        }
        let mut entry = Entry::enter(last, lock, sequence, pc, flags);
        entry.set_state(state);
        Some(entry)
    }

    /// One of the first two entries, if it is free. `None` also if the first one is this lock's.
    #[cfg(feature = "interpose")]
    #[inline(always)]
    pub(crate) fn fast_free(self, lock: u64) -> Option<FastEntry> {
        let [first, second, ..] = &self.header().held;
        if !is_used(first) {
            return Some(FastEntry(first));
        }
        (!is_used(second) && !is_of(first, lock)).then_some(FastEntry(second))
    }

    /// Like [`fast_free`](Slot::fast_free) for a lock that the thread may hold already: `None` if it does, or if that
    /// takes longer to find out.
    #[inline(always)]
    pub(crate) fn fast_free_if_new(self, lock: u64) -> Option<FastEntry> {
        let [first, second, third, ..] = &self.header().held;
        // ORDERING: relaxed: this thread's own store.
        let has_used_three = third.lock.load(Relaxed) != 0;
        let has_entry = |held| is_of(held, lock) && is_used(held);
        if has_used_three || has_entry(first) || has_entry(second) {
            return None;
        }
        if !is_used(first) {
            return Some(FastEntry(first));
        }
        (!is_used(second)).then_some(FastEntry(second))
    }

    /// The first entry, if the thread holds no lock and never held two at a time.
    #[inline(always)]
    pub(crate) fn fast_free_if_only(self) -> Option<FastEntry> {
        let [first, second, ..] = &self.header().held;
        // ORDERING: relaxed: this thread's own store.
        let has_used_two = second.lock.load(Relaxed) != 0 || is_used(second);
        (!is_used(first) && !has_used_two).then_some(FastEntry(first))
    }

    /// If this entry is this lock's, in HELD, and without a time, changes it to RELEASING. Returns whether it did.
    #[inline(always)]
    pub(crate) fn fast_release<const INDEX: usize>(self, lock: u64) -> bool {
        let held = &self.header().held[INDEX];
        let Some(meta) = plain_meta(held, lock) else { return false };
        held.meta.store(meta.changed(HELD_HELD, HELD_RELEASING).0, Release);
        true
    }

    /// If the first entry is this lock's, in HELD, and without a time, frees it. Returns whether it did.
    #[inline(always)]
    pub(crate) fn fast_clear(self, lock: u64) -> bool {
        let is_plain = plain_meta(&self.header().held[0], lock).is_some();
        if is_plain {
            self.clear::<0>();
        }
        is_plain
    }

    /// Frees this entry.
    #[inline(always)]
    pub(crate) fn clear<const INDEX: usize>(self) {
        self.header().held[INDEX].meta.store(0, Release);
    }

    /// This entry.
    #[inline(always)]
    pub(crate) fn entry<const INDEX: usize>(self) -> Entry {
        let held = &self.header().held[INDEX];
        Entry { held, meta: meta_of(held) }
    }

    /// The entry of a lock, if the thread has one in a state that `is_wanted`. If there are several, any of them.
    #[inline(always)]
    pub(crate) fn find(self, lock: u64, is_wanted: fn(u64) -> bool) -> Option<Entry> {
        let first = &self.header().held[0];
        let meta = meta_of(first);
        if is_of(first, lock) && is_wanted(meta.state()) {
            return Some(Entry { held: first, meta });
        }
        // Most threads never have two locks.
        let second = &self.header().held[1];
        // ORDERING: relaxed: this thread's own store.
        if second.lock.load(Relaxed) == 0 && !is_used(second) {
            return None;
        }
        self.find_further(lock, is_wanted)
    }

    /// Like [`find`](Slot::find), for all entries but the first.
    #[inline(never)]
    fn find_further(self, lock: u64, is_wanted: fn(u64) -> bool) -> Option<Entry> {
        for held in &self.header().held[1..] {
            let meta = meta_of(held);
            if is_of(held, lock) && is_wanted(meta.state()) {
                return Some(Entry { held, meta });
            }
            // ORDERING: relaxed: this thread's own store.
            if held.lock.load(Relaxed) == 0 && meta.0 == 0 {
                // The table has never been this full.
                return None;
            }
        }
        None
    }

    /// Whether the thread holds a lock that has no entry.
    pub(crate) fn has_overflowed(self) -> bool {
        // ORDERING: relaxed: only this thread writes it.
        self.header().held_overflowed.load(Relaxed) > 0
    }

    /// The calls of the thread's entries.
    pub(crate) fn calls(self) -> impl Iterator<Item = u64> {
        let entries = self.header().held.iter();
        // ORDERING: relaxed: this thread's own stores.
        let lock = |held: &HeldLock| held.lock.load(Relaxed);
        let entered = entries.take_while(move |held| lock(held) != 0 || is_used(held));
        entered
            .filter(move |held| is_used(held) && !is_operand(lock(held)))
            .map(|held| held_pc(meta_of(held).0))
    }

    /// Counts one overflowed lock less. Returns whether there was one: a lock that has no entry may be that one.
    pub(crate) fn forget_overflowed(self) -> bool {
        let overflowed = &self.header().held_overflowed;
        // ORDERING: relaxed: only this thread writes it.
        let count = overflowed.load(Relaxed);
        overflowed.store(count.saturating_sub(1), Relaxed);
        count > 0
    }
}

/// One of the first two entries of the calling thread's table. Nearly all locks find one of them free.
///
/// It is one word, and needs one register while a lock's own code runs. Everything else is read from the table again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastEntry(&'static HeldLock);

impl FastEntry {
    /// Enters a lock as ACQUIRING.
    #[inline(always)]
    pub(crate) fn enter(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Entry {
        Entry::enter(self.0, lock, sequence, pc, flags)
    }

    /// The entry.
    #[cfg(feature = "interpose")]
    #[inline(always)]
    pub(crate) fn entry(self) -> Entry {
        Entry { held: self.0, meta: meta_of(self.0) }
    }
}

/// [`HeldLock::meta`], as the thread has it.
#[derive(Clone, Copy, Debug)]
struct Meta(u64);

const _: () = assert!(HELD_SINCE >> HELD_STATE_SHIFT == 8, "`plain_meta` tests both");

impl Meta {
    #[inline(always)]
    fn state(self) -> u64 {
        held_state(self.0)
    }

    /// With another state, if it has the one that the caller knows.
    #[inline(always)]
    fn changed(self, from: u64, to: u64) -> Meta {
        Meta(self.0 ^ held_change((from ^ to) << HELD_STATE_SHIFT))
    }
}

// ORDERING: relaxed, here and below: this thread's own stores.
#[inline(always)]
fn meta_of(held: &HeldLock) -> Meta {
    Meta(held.meta.load(Relaxed))
}

#[inline(always)]
fn is_used(held: &HeldLock) -> bool {
    // A free entry is zero. The whole word takes fewer instructions than the state.
    meta_of(held).0 != 0
}

#[inline(always)]
fn is_of(held: &HeldLock, lock: u64) -> bool {
    payload(held.lock.load(Relaxed) ^ lock) == 0
}

/// The meta word of an entry, if the entry is this lock's, in HELD, and without a time.
#[inline(always)]
fn plain_meta(held: &HeldLock, lock: u64) -> Option<Meta> {
    let meta = meta_of(held);
    // The state is next to the flag on top.
    let is_plain = meta.0 >> HELD_STATE_SHIFT == HELD_HELD;
    (is_plain && is_of(held, lock)).then_some(meta)
}

/// Whether an entry is in the slot with this cursor, by its distance. Never with a null cursor.
#[inline(always)]
fn is_near(cursor: *mut u64, held: &HeldLock) -> bool {
    cursor.addr().wrapping_sub(core::ptr::from_ref(held).addr()) <= size_of::<SlotHeader>()
}

/// An entry of the calling thread's held-lock table.
///
/// It remembers the meta word that was found, so that a change of state is one store and no load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    held: &'static HeldLock,
    meta: Meta,
}

impl Entry {
    /// The entry in the file.
    pub(crate) fn held(self) -> &'static HeldLock {
        self.held
    }

    /// The words of the slot in which the calling thread records, if the entry is in that slot.
    pub(crate) fn slot_words(self) -> *mut u64 {
        if self.is_current() { arch::cursor() } else { core::ptr::null_mut() }
    }

    /// With the meta word that it has now. This thread has written it.
    pub(crate) fn reread(self) -> Entry {
        Entry { meta: meta_of(self.held), ..self }
    }

    /// [`HeldLock::lock`].
    pub(crate) fn word(self) -> u64 {
        // ORDERING: relaxed: this thread's own store.
        self.held.lock.load(Relaxed)
    }

    /// Whether it was not changed since, and not entered again. `word` is the lock word that it had.
    pub(crate) fn is_same(self, word: u64) -> bool {
        // ORDERING: relaxed: whoever has the entry was synchronised with the thread that made it.
        self.held.lock.load(Relaxed) == word && meta_of(self.held).0 == self.meta.0
    }

    /// Frees the entry, which may be in another slot, if it is still the same. Returns whether it was.
    pub(crate) fn free_elsewhere(self, word: u64) -> bool {
        // ORDERING: release, as for all stores to an entry.
        self.is_same(word) && self.held.meta.compare_exchange(self.meta.0, 0, Release, Relaxed).is_ok()
    }

    /// Fills a free entry.
    #[inline(always)]
    fn enter(held: &'static HeldLock, lock: u64, sequence: u64, pc: u64, flags: u64) -> Entry {
        // The meta word first: it reserves the entry. Until the lock is there too, the checksum does not fit.
        // A PC has at most 48 bits.
        let is_call = flags & IS_CALL != 0;
        let lock = pack(sequence, lock, !is_call);
        let meta = Meta(held_meta(lock, pc, HELD_ACQUIRING, flags & !IS_CALL));
        held.meta.store(meta.0, Release);
        held.lock.store(lock, Release);
        // The old value of `since` means nothing: the meta word does not have HELD_SINCE.
        Entry { held, meta }
    }

    /// Whether it is in the calling thread's slot.
    ///
    /// It is not in a child that a signal handler forked: the interrupted code goes on in the child with an entry of
    /// the parent's slot, where the child must not write.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        is_near(arch::cursor(), self.held)
    }

    /// Whether it is in this slot.
    pub(crate) fn is_of(self, slot: Slot) -> bool {
        is_near(slot.cursor(), self.held)
    }

    /// The lock was acquired without waiting.
    #[inline(always)]
    pub(crate) fn acquired(mut self) {
        if !self.is_current() {
            return self.acquired_in_child();
        }
        self.change_state(HELD_ACQUIRING, HELD_HELD);
    }

    /// A signal handler has forked, and this is the child.
    #[cold]
    #[inline(never)]
    fn acquired_in_child(self) {
        if let Some(mut entry) = Slot::current().and_then(|slot| self.within(slot)) {
            entry.set_state(HELD_HELD);
        }
    }

    /// Whether it is the last entry of this slot, which is for a wait only.
    pub(crate) fn is_last_of(self, slot: Slot) -> bool {
        let [.., last] = &slot.header().held;
        core::ptr::eq(self.held, last)
    }

    /// The same acquisition in this slot: the entry itself, or a new one in a child that a signal handler forked.
    pub(crate) fn within(self, slot: Slot) -> Option<Entry> {
        if self.is_of(slot) {
            return Some(self);
        }
        // ORDERING: relaxed: this thread's own.
        let sequence = slot.header().count.load(Relaxed);
        slot.enter_lock(self.lock(), sequence, self.pc(), self.flags())
    }

    /// The entry of the same held lock in this slot: the entry itself, or in such a child the inherited one.
    pub(crate) fn held_within(self, slot: Slot) -> Option<Entry> {
        if self.is_of(slot) {
            return Some(self);
        }
        slot.find(self.lock(), |state| state == HELD_HELD)
    }

    #[inline(always)]
    fn set_meta(&mut self, meta: Meta) {
        self.meta = meta;
        self.held.meta.store(meta.0, Release);
    }

    /// `HELD_*`.
    #[inline(always)]
    pub(crate) fn state(self) -> u64 {
        self.meta.state()
    }

    /// Changes the state: one store.
    #[inline(always)]
    pub(crate) fn set_state(&mut self, state: u64) {
        self.change_state(self.state(), state);
    }

    /// Changes the state from a known one: one instruction less before the store.
    ///
    /// The known state is not asserted. A meta word that was read again may have been scribbled on; then the new
    /// state is a wrong one.
    #[inline(always)]
    pub(crate) fn change_state(&mut self, from: u64, to: u64) {
        self.set_meta(self.meta.changed(from, to));
    }

    /// Whether any of these bits is set in the meta word.
    #[inline(always)]
    pub(crate) fn has_flag(self, flag: u64) -> bool {
        self.meta.0 & flag != 0
    }

    /// Sets a flag of the meta word, or clears it.
    pub(crate) fn set_flag(&mut self, flag: u64, is_set: bool) {
        if self.has_flag(flag) != is_set {
            self.set_meta(Meta(self.meta.0 ^ held_change(flag)));
        }
    }

    /// Sets where the lock was acquired or is waited for: a call if the entry [is one](Entry::is_call), a PC otherwise.
    pub(crate) fn set_pc(&mut self, pc: u64) {
        self.set_place(pc, self.flags());
    }

    /// Sets that, and the flags with which the lock was entered, in one store. Whether the entry is a call stays.
    pub(crate) fn set_place(&mut self, pc: u64, flags: u64) {
        // ORDERING: relaxed: this thread's own store.
        let lock = self.held.lock.load(Relaxed);
        let flags = self.meta.0 & HELD_SINCE | flags & HELD_FLAGS;
        self.set_meta(Meta(held_meta(lock, pc & PAYLOAD_MASK, self.state(), flags)));
    }

    /// Whether the entry has a call in place of a PC.
    pub(crate) fn is_call(self) -> bool {
        // ORDERING: relaxed: this thread's own store.
        !is_operand(self.held.lock.load(Relaxed))
    }

    /// The flags with which the lock was entered.
    pub(crate) fn flags(self) -> u64 {
        self.meta.0 & HELD_FLAGS | if self.is_call() { IS_CALL } else { 0 }
    }

    /// Where the lock was acquired or is waited for.
    pub(crate) fn pc(self) -> u64 {
        held_pc(self.meta.0)
    }

    /// The lock's address.
    #[inline(always)]
    pub(crate) fn lock(self) -> u64 {
        // ORDERING: relaxed: this thread's own store.
        payload(self.held.lock.load(Relaxed))
    }

    /// When the wait or the hold began, ticks; 0 if that is not known.
    pub(crate) fn since(self) -> u64 {
        self.since_word() & PAYLOAD_MASK
    }

    /// How many times the owner has acquired the lock again.
    pub(crate) fn recursion(self) -> u64 {
        held_recursion(self.since_word())
    }

    fn since_word(self) -> u64 {
        if self.has_flag(HELD_SINCE) { self.held.since.load(Relaxed) } else { 0 }
    }

    /// Sets when the wait or the hold began, ticks, 0 for not known, and how many times the owner has acquired the lock
    /// again.
    pub(crate) fn set_since(&mut self, ticks: u64, recursion: u64) {
        self.held.since.store(held_since(ticks, recursion), Release);
        self.set_flag(HELD_SINCE, true);
    }

    /// Frees the entry, if it is in this slot.
    pub(crate) fn clear_within(self, slot: Slot) {
        if self.is_of(slot) {
            self.clear();
        }
    }

    /// Frees the entry.
    #[inline(always)]
    pub(crate) fn clear(mut self) {
        self.set_meta(Meta(0));
    }
}
