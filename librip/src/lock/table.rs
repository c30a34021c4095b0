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
//!   exactly there, that lock loses its entry. The window is a few instructions wide, and no program should do that.
//! * No entry from [`SlotHeader::held_end`] on is in use, but for the last one. It grows before an entry is entered
//!   there. It shrinks when a lock is acquired or released. A search leaves it, because a handler that searches may
//!   have interrupted the code that has made it grow.
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

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::arch;
use crate::process::instance::{self, Request};
pub(crate) use crate::process::slot::Slot;
use librip_format::{
    HELD_ACQUIRING, HELD_DESTROYED, HELD_FLAGS, HELD_HELD, HELD_MAX, HELD_RELEASING, HELD_SINCE,
    HELD_STATE_SHIFT, HeldLock, PAYLOAD_MASK, SlotHeader, held_change, held_meta, held_pc, held_recursion,
    held_since, held_state, is_operand, pack, payload,
};

/// The first entries, which are looked at without a search.
const FAST: usize = 2;
/// The entries that are searched. The last one is for a wait that finds no other.
const SEARCHED: usize = HELD_MAX - 1;

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
        let second = &self.header().held[1];
        let free = if is_used(second) { self.free_on_top() } else { Some(second) };
        if let Some(held) = free {
            return Some(Entry::enter(held, lock, sequence, pc, flags));
        }
        self.enter_lock_anywhere(lock, sequence, pc, flags)
    }

    /// The entry after those that are in use, if it is free: locks are mostly released in the reverse order of their
    /// acquisition. It counts as in use from now on.
    #[inline(always)]
    fn free_on_top(self) -> Option<&'static HeldLock> {
        let end = self.end_of_used();
        let held = self.header().held[..SEARCHED].get(end).filter(|held| !is_used(held))?;
        self.set_end(end + 1);
        Some(held)
    }

    /// Like [`enter_lock`](Slot::enter_lock), with a search.
    #[cold]
    #[inline(never)]
    fn enter_lock_anywhere(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Option<Entry> {
        let held = &self.header().held[..SEARCHED];
        let find = |is_wanted: fn(&HeldLock) -> bool| held[FAST..].iter().position(is_wanted);
        // A destroyed lock makes room for one that exists.
        let free = find(|held| !is_used(held))
            .or_else(|| find(|held| meta_of(held).state() == HELD_DESTROYED))
            .map(|index| FAST + index);
        let Some(free) = free else {
            self.header().held_overflowed.fetch_add(1, Relaxed);
            instance::count(Request::TABLE_OVERFLOWED);
            return None;
        };
        // First this, as above.
        self.set_end(self.end().max(free + 1));
        Some(Entry::enter(&held[free], lock, sequence, pc, flags))
    }

    /// See [`SlotHeader::held_end`]: between [`FAST`] and [`SEARCHED`].
    #[inline(always)]
    fn end(self) -> usize {
        // ORDERING: relaxed: this thread's own store.
        usize::from(self.header().held_end.load(Relaxed)).clamp(FAST, SEARCHED)
    }

    #[inline(always)]
    fn set_end(self, end: usize) {
        // ORDERING: relaxed: only this thread reads it.
        self.header().held_end.store(end as u16, Relaxed);
    }

    /// The end of what is in use now. It is not stored. A handler may search while the interrupted code has chosen an
    /// entry and not yet entered it. The stored end must stay after that entry.
    #[inline(always)]
    fn end_of_used(self) -> usize {
        let mut end = self.end();
        while end > FAST && !is_used(&self.header().held[end - 1]) {
            end -= 1;
        }
        end
    }

    /// Whether only the first entries are in use.
    #[inline(always)]
    fn has_only_first(self) -> bool {
        self.end() <= FAST || self.shrinks()
    }

    /// Stores the end of what is in use, and returns whether only the first entries are. If all of these are in use, it
    /// does nothing: a handler may have interrupted code that has chosen an entry after them.
    #[cold]
    #[inline(never)]
    fn shrinks(self) -> bool {
        if self.header().held[..FAST].iter().all(is_used) {
            return false;
        }
        let end = self.end_of_used();
        self.set_end(end);
        end <= FAST
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

    /// One of the first two entries or the one after those in use, if it is free. `None` also if one of the first two
    /// is this lock's: it is held again, or somebody has released it and left the entry.
    #[cfg(feature = "interpose")]
    #[inline(always)]
    pub(crate) fn fast_free(self, lock: u64) -> Option<FastEntry> {
        let first = &self.header().held[0];
        if is_used(first) { self.fast_free_further(lock) } else { Some(FastEntry(first)) }
    }

    #[cfg(feature = "interpose")]
    #[inline(never)]
    fn fast_free_further(self, lock: u64) -> Option<FastEntry> {
        let [first, second, ..] = &self.header().held;
        if is_of(first, lock) {
            return None;
        }
        if !is_used(second) {
            return Some(FastEntry(second));
        }
        if is_of(second, lock) { None } else { self.free_on_top().map(FastEntry) }
    }

    /// Like [`fast_free`](Slot::fast_free) for a lock that the thread may hold already: `None` if it does, or if that
    /// takes longer to find out.
    #[inline(always)]
    pub(crate) fn fast_free_if_new(self, lock: u64) -> Option<FastEntry> {
        let [first, second, ..] = &self.header().held;
        let has_entry = |held| is_of(held, lock) && is_used(held);
        if has_entry(first) || has_entry(second) || !self.has_only_first() {
            return None;
        }
        if !is_used(first) {
            return Some(FastEntry(first));
        }
        (!is_used(second)).then_some(FastEntry(second))
    }

    /// The first entry, if the thread holds no lock.
    #[inline(always)]
    pub(crate) fn fast_free_if_only(self) -> Option<FastEntry> {
        let [first, second, ..] = &self.header().held;
        let is_empty = !is_used(first) && !is_used(second) && self.has_only_first();
        is_empty.then_some(FastEntry(first))
    }

    /// If the first entry or the last one in use is this lock's, in HELD, and without a time, changes it to RELEASING.
    #[inline(always)]
    pub(crate) fn fast_release(self, lock: u64) -> Option<FastEntry> {
        let first = &self.header().held[0];
        let Some(meta) = plain_meta(first, lock) else { return self.fast_release_on_top(lock) };
        first.meta.store(meta.changed(HELD_HELD, HELD_RELEASING).0, Release);
        Some(FastEntry(first))
    }

    /// Like [`fast_release`](Slot::fast_release), for the last of the entries in use.
    #[inline(never)]
    fn fast_release_on_top(self, lock: u64) -> Option<FastEntry> {
        let end = self.end_of_used();
        let held = &self.header().held[end - 1];
        let meta = plain_meta(held, lock)?;
        // In a handler too: it has acquired this lock itself, so the entry that the interrupted code has chosen is this
        // one, or is before it.
        self.set_end(end);
        held.meta.store(meta.changed(HELD_HELD, HELD_RELEASING).0, Release);
        Some(FastEntry(held))
    }

    /// Frees an entry, if there is one and it is in this slot. Returns whether it was.
    #[inline(always)]
    pub(crate) fn clear_own(self, entry: Option<FastEntry>) -> bool {
        let held = entry.map_or(core::ptr::null(), |FastEntry(held)| core::ptr::from_ref(held));
        // No entry is far away, because the cursor is not null. So this is one comparison.
        let is_own = is_near(self.cursor(), held);
        if is_own {
            // SAFETY: so it is an entry: see above. Entries are in a mapping that stays.
            unsafe { &*held }.meta.store(0, Release);
        }
        is_own
    }

    /// If the first entry is this lock's, in HELD, and without a time, frees it. Returns whether it did.
    #[inline(always)]
    pub(crate) fn fast_clear(self, lock: u64) -> bool {
        let is_plain = plain_meta(&self.header().held[0], lock).is_some();
        if is_plain {
            self.header().held[0].meta.store(0, Release);
        }
        is_plain
    }

    /// The entry of a lock, if the thread has one in a state that `is_wanted`. If there are several, any of them.
    #[inline(always)]
    pub(crate) fn find(self, lock: u64, is_wanted: fn(u64) -> bool) -> Option<Entry> {
        let first = &self.header().held[0];
        let meta = meta_of(first);
        if is_of(first, lock) && is_wanted(meta.state()) {
            return Some(Entry { held: first, meta });
        }
        self.find_further(lock, is_wanted)
    }

    /// Like [`find`](Slot::find), for all entries but the first. Those that were entered last come first.
    #[inline(never)]
    fn find_further(self, lock: u64, is_wanted: fn(u64) -> bool) -> Option<Entry> {
        let [first @ .., last] = &self.header().held;
        let searched = first[1..self.end_of_used()].iter().rev().chain([last]);
        searched
            .map(|held| Entry { held, meta: meta_of(held) })
            .find(|entry| is_of(entry.held, lock) && is_wanted(entry.meta.state()))
    }

    /// Whether the thread holds a lock that has no entry.
    pub(crate) fn has_overflowed(self) -> bool {
        // ORDERING: relaxed: a number for the reader.
        self.header().held_overflowed.load(Relaxed) > 0
    }

    /// The calls of the thread's entries.
    pub(crate) fn calls(self) -> impl Iterator<Item = u64> {
        // ORDERING: relaxed: this thread's own stores.
        let lock = |held: &HeldLock| held.lock.load(Relaxed);
        self.header()
            .held
            .iter()
            .filter(move |held| is_used(held) && !is_operand(lock(held)))
            .map(|held| held_pc(meta_of(held).0))
    }

    /// Counts one overflowed lock less. Returns whether there was one: a lock that has no entry may be that one.
    pub(crate) fn forget_overflowed(self) -> bool {
        one_less(&self.header().held_overflowed)
    }

    /// Counts a lock that a future holds and that has no entry, until [`Unlisted::forget`].
    #[cold]
    #[inline(never)]
    pub(crate) fn count_unlisted(self) -> Unlisted {
        let header = self.header();
        // ORDERING: relaxed, as for all numbers of this kind.
        header.held_overflowed.fetch_add(1, Relaxed);
        Unlisted { header, generation: header.generation.load(Relaxed) }
    }
}

/// A lock without an entry that is counted in a slot. The guard remembers it, because any thread may release the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unlisted {
    header: &'static SlotHeader,
    /// Which of its owners the slot had.
    generation: u32,
}

impl Unlisted {
    /// It is not held any more. Nothing happens if the slot has another owner: a claim begins to count anew.
    ///
    /// A claim between the look and the change is not noticed. Then the new owner may have counted one lock less, if
    /// its table was full that soon.
    #[cold]
    #[inline(never)]
    pub(crate) fn forget(self) {
        // ORDERING: relaxed: whoever has the guard was synchronised with the thread that acquired the lock.
        if self.header.generation.load(Relaxed) == self.generation {
            one_less(&self.header.held_overflowed);
        }
    }
}

/// Counts one less. Returns whether there was one. Other threads count too: those that release a lock of a future.
fn one_less(count: &AtomicU32) -> bool {
    // ORDERING: relaxed: a number for the reader.
    count.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1)).is_ok()
}

/// An entry of the calling thread's table that is found without a search: nearly all locks have such a one.
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
fn is_near(cursor: *mut u64, held: *const HeldLock) -> bool {
    cursor.addr().wrapping_sub(held.addr()) <= size_of::<SlotHeader>()
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
    pub(crate) fn held(self) -> &'static HeldLock {
        self.held
    }

    /// The words of the slot in which the calling thread records, if the entry is in that slot.
    pub(crate) fn slot_words(self) -> *mut u64 {
        if self.is_current() { arch::cursor() } else { core::ptr::null_mut() }
    }

    /// With the meta word that it has now. This thread has written it.
    #[inline]
    pub(crate) fn reread(self) -> Entry {
        Entry { meta: meta_of(self.held), ..self }
    }

    /// [`HeldLock::lock`].
    #[inline]
    pub(crate) fn word(self) -> u64 {
        // ORDERING: relaxed: this thread's own store.
        self.held.lock.load(Relaxed)
    }

    /// Whether it was not changed since, and not entered again. `word` is the lock word that it had.
    #[inline]
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

    #[inline]
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
    #[inline]
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

    #[inline(always)]
    pub(crate) fn lock(self) -> u64 {
        // ORDERING: relaxed: this thread's own store.
        payload(self.held.lock.load(Relaxed))
    }

    /// When the wait or the hold began, ticks; 0 if that is not known.
    #[inline]
    pub(crate) fn since(self) -> u64 {
        self.since_word() & PAYLOAD_MASK
    }

    /// How many times the owner has acquired the lock again.
    pub(crate) fn recursion(self) -> u64 {
        held_recursion(self.since_word())
    }

    #[inline]
    fn since_word(self) -> u64 {
        if self.has_flag(HELD_SINCE) { self.held.since.load(Relaxed) } else { 0 }
    }

    /// Sets when the wait or the hold began, ticks, 0 for not known, and how many times the owner has acquired the lock
    /// again.
    #[inline]
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

    #[inline(always)]
    pub(crate) fn clear(mut self) {
        self.set_meta(Meta(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot that belongs to no ring.
    #[repr(C)]
    struct Memory {
        header: SlotHeader,
        words: [u64; 1],
    }

    fn on_slot(test: impl FnOnce(Slot)) {
        // SAFETY: zero is a value of each of its fields, which are atomics and numbers.
        let mut memory: Memory = unsafe { core::mem::zeroed() };
        test(Slot::at(&raw mut memory.words[0]).expect("not null"));
    }

    fn enter(slot: Slot, lock: u64) -> bool {
        let entry = slot.enter_lock(lock, 7, 0x5555_0000_1000, 0);
        entry.map(|mut entry| entry.set_state(HELD_HELD)).is_some()
    }

    fn is_held(slot: Slot, lock: u64) -> bool {
        slot.find(lock, |state| state == HELD_HELD).is_some()
    }

    #[test]
    fn the_entries_behind_the_end_are_free_and_each_lock_is_found_in_whatever_order_they_are_released() {
        on_slot(|slot| {
            let (mut held, mut random) = (Vec::new(), 1u64);
            for lock in 1..100_000u64 {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                // Up and down between an empty table and a full one.
                let is_rising = lock / 64 % 2 == 0;
                if held.len() < SEARCHED && (held.is_empty() || (random >> 60 > 5) == is_rising) {
                    assert!(enter(slot, lock), "{} locks are held", held.len());
                    held.push(lock);
                } else {
                    let index =
                        if random >> 59 & 3 == 0 { random as usize % held.len() } else { held.len() - 1 };
                    let lock = held.remove(index);
                    match slot.fast_release(lock) {
                        Some(entry) => assert!(slot.clear_own(Some(entry))),
                        None => slot.find(lock, |state| state == HELD_HELD).expect("it is held").clear(),
                    }
                }
                assert!(held.iter().all(|&lock| is_held(slot, lock)), "{held:?}");
                let used = slot.header().held.iter().filter(|held| is_used(held)).count();
                assert_eq!(used, held.len());
                let behind = &slot.header().held[slot.end()..SEARCHED];
                assert!(behind.iter().all(|held| !is_used(held)), "{} {held:?}", slot.end());
            }
        });
    }

    #[test]
    fn a_thread_that_has_held_many_locks_is_as_fast_afterwards_as_before() {
        on_slot(|slot| {
            assert!(
                (1..=15).all(|lock| enter(slot, lock)) && !enter(slot, 16),
                "the last entry is for waits"
            );
            assert!(slot.fast_free_if_new(17).is_none() && slot.fast_free_if_only().is_none());
            for lock in (1..=15).rev() {
                let entry = slot.fast_release(lock);
                assert!(entry.is_some() && slot.clear_own(entry), "{lock}");
            }
            assert!(slot.fast_free_if_new(17).is_some() && slot.fast_free_if_only().is_some());

            assert!((1..=15).all(|lock| enter(slot, lock)));
            for lock in 1..=15 {
                slot.find(lock, |_| true).expect("it is held").clear();
            }
            assert_eq!(slot.end(), SEARCHED, "a search leaves the end");
            assert!(slot.fast_free_if_only().is_some(), "the next acquisition notices what is free");
            assert_eq!(slot.end(), FAST);
        });
    }

    #[test]
    fn a_handler_that_searches_does_not_hide_the_entry_that_the_interrupted_code_enters() {
        type Handler = fn(Slot);
        let handlers: [Handler; 4] = [
            |slot| assert!(!is_held(slot, 9)),
            |slot| assert!(slot.fast_release(9).is_none()),
            |slot| {
                assert!(enter(slot, 9));
                let entry = slot.fast_release(9);
                assert!(slot.clear_own(entry), "on top");
            },
            |slot| {
                assert!(enter(slot, 8) && enter(slot, 9));
                [8, 9].into_iter().for_each(|lock| slot.find(lock, |_| true).expect("it is held").clear());
                assert!(!is_held(slot, 9));
            },
        ];
        for handler in handlers {
            on_slot(|slot| {
                assert!(enter(slot, 1) && enter(slot, 2));
                let chosen = slot.free_on_top().expect("a free entry");
                handler(slot);
                Entry::enter(chosen, 3, 7, 0x5555_0000_1000, 0).set_state(HELD_HELD);
                assert!(is_held(slot, 3));
                let entry = slot.fast_release(3);
                assert!(slot.clear_own(entry));
                assert!(is_held(slot, 1) && is_held(slot, 2));
            });
        }
    }

    #[test]
    fn an_end_that_was_scribbled_on_sends_no_store_elsewhere() {
        on_slot(|slot| {
            for end in [0, 1, 14, 15, 16, 0x7fff, u16::MAX] {
                slot.header().held_end.store(end, Relaxed);
                assert!((1..=15).all(|lock| enter(slot, lock)), "{end}");
                assert!((1..=15).all(|lock| is_held(slot, lock)), "{end}");
                slot.header().held.iter().for_each(|held| held.meta.store(0, Relaxed));
            }
        });
    }

    #[test]
    fn an_entry_of_another_slot_is_not_cleared() {
        on_slot(|slot| {
            on_slot(|other| {
                assert!(enter(other, 1));
                let entry = other.fast_release(1);
                assert!(entry.is_some() && !slot.clear_own(entry) && !slot.clear_own(None));
                assert!(is_used(&other.header().held[0]));
            });
        });
    }
}
