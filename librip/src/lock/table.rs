//! The calling thread's slot as lock events see it: the words, and the held-lock table.
//!
//! It writes what it is told and knows neither locks nor marks; `layout` says what the bytes mean.
//!
//! # Invariants
//!
//! * Only the thread that owns a slot writes here; a thread that gives up another's lock goes through
//!   `elsewhere`.
//! * An entry is reserved by its place, which is stored first: a signal handler that takes locks of its own finds
//!   it taken, and uses the next one. Between our look at a free entry and that store, a handler can use the
//!   entry too, but has given it back when we go on. A handler that leaves with a lock it has taken just there
//!   loses its entry: one instruction wide, for what no program should do.
//!
//! # Orderings
//!
//! The reader is another process that copies the table twice and has no way to synchronise. Stores to an entry are
//! releases, so that they become visible in program order (on x86-64 all stores are): a state is not seen
//! before the sequence that it belongs to. Loads are relaxed: this thread's own stores.

#![allow(
    unsafe_code,
    reason = "a slot is reached through the thread's cursor, a raw pointer into the mapping"
)]

use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::arch;
use crate::process::clock;
use crate::process::instance::{self, Request};
use librip_format::{
    HELD_ACQUIRING, HELD_DESTROYED, HELD_FLAGS, HELD_HELD, HELD_NONE, HELD_RECURSION_SHIFT, HELD_RELEASING,
    HELD_SEQUENCE_SHIFT, HELD_SHARED, HELD_SINCE, HELD_STATE_SHIFT, HeldLock, PAYLOAD_MASK, SEQUENCE_SHIFT,
    SITE_SHARED, SlotHeader, held_state, pack, payload,
};

/// The calling thread's slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The thread's cursor.
    words: NonNull<u64>,
}

impl Slot {
    /// The slot; `None` before there is a ring, and for threads that record nowhere.
    #[inline(always)]
    pub(crate) fn current() -> Option<Slot> {
        Slot::existing().or_else(Slot::enter)
    }

    /// The slot that the thread has already.
    #[inline(always)]
    pub(crate) fn existing() -> Option<Slot> {
        NonNull::new(arch::cursor()).map(|words| Slot { words })
    }

    /// The thread's first mark, or a thread that records nowhere.
    #[cold]
    #[inline(never)]
    fn enter() -> Option<Slot> {
        if !arch::module().is_open() || arch::thread_block().is_absent.get() != 0 {
            return None;
        }
        arch::enter();
        Slot::existing()
    }

    #[inline(always)]
    pub(crate) fn header(self) -> &'static SlotHeader {
        // SAFETY: a cursor points right after the header of a slot, in a mapping that stays. All fields are atomics.
        unsafe { &*self.words.as_ptr().wrapping_byte_sub(size_of::<SlotHeader>()).cast::<SlotHeader>() }
    }

    /// Records an event and returns the sequence of its PC word.
    #[inline(always)]
    pub(crate) fn event<const N: usize>(self, operands: [u64; N], pc: u64) -> u64 {
        // SAFETY: a cursor of this thread.
        let first = unsafe { arch::reserve(self.words.as_ptr(), N as u64 + 1) };
        // ORDERING: relaxed: written before there was a cursor.
        let mask = arch::module().mask.load(Relaxed);
        let store = |sequence: u64, word: u64| {
            let word_at = self.words.as_ptr().wrapping_add((sequence & mask) as usize);
            // SAFETY: the mask keeps the index within the slot's words, which are in a mapping that stays.
            let target = unsafe { AtomicU64::from_ptr(word_at) };
            // ORDERING: relaxed: every word carries its sequence.
            target.store(word, Relaxed);
        };
        // Wrapping, because somebody may have scribbled on the count.
        for (index, operand) in operands.into_iter().enumerate() {
            let sequence = first.wrapping_add(index as u64);
            store(sequence, pack(sequence, operand, true));
        }
        let last = first.wrapping_add(N as u64);
        // A PC has no more than 48 bits, so that there is nothing to mask.
        store(last, last << SEQUENCE_SHIFT | pc);
        last
    }

    /// Whether it is the calling thread's still: a signal handler may have forked.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        arch::cursor() == self.words.as_ptr()
    }

    /// Whether every lock event has a time.
    #[inline(always)]
    pub(crate) fn times_all(self) -> bool {
        clock::times_all()
    }

    /// The present time as an operand; 0 if times are off. For events that are rare or slow anyway.
    pub(crate) fn time(self) -> u64 {
        clock::operand()
    }

    /// Enters a lock into the table, as being taken. `None` when the table is full, which is counted.
    #[inline(always)]
    pub(crate) fn enter_lock(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Option<Entry> {
        let first = &self.header().held[0];
        if place_of(first).state() == HELD_NONE {
            return Some(Entry::enter(first, lock, sequence, pc, flags));
        }
        self.enter_further(lock, sequence, pc, flags)
    }

    /// The same where the first entry is not free: the thread has other locks.
    #[inline(never)]
    fn enter_further(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Option<Entry> {
        let header = self.header();
        let in_state = |state| header.held[1..].iter().find(move |held| place_of(held).state() == state);
        // What is gone makes room for what is there.
        let free = in_state(HELD_NONE).or_else(|| in_state(HELD_DESTROYED));
        if free.is_none() {
            header.held_overflowed.fetch_add(1, Relaxed);
            instance::request(Request::TABLE_OVERFLOWED, 0);
        }
        Some(Entry::enter(free?, lock, sequence, pc, flags))
    }

    /// One of the first two entries, if it is free. `None` also where the other one says that the thread has this lock.
    #[inline(always)]
    pub(crate) fn near_free(self, lock: u64) -> Option<Near> {
        let [first, second, ..] = &self.header().held;
        if place_of(first).state() == HELD_NONE {
            return Some(Near(first));
        }
        (place_of(second).state() == HELD_NONE && !is_of(first, lock)).then_some(Near(second))
    }

    /// The same for a lock that the thread may have already: `None` if it has, or if that takes longer to find out.
    #[inline(always)]
    pub(crate) fn near_free_if_new(self, lock: u64) -> Option<Near> {
        let [first, second, third, ..] = &self.header().held;
        // ORDERING: relaxed: this thread's own store.
        let has_had_three = third.lock.load(Relaxed) != 0;
        if has_had_three || is_of(first, lock) && is_used(first) || is_of(second, lock) && is_used(second) {
            return None;
        }
        self.near_free(lock)
    }

    /// One of the first two entries, if it is this lock's, in HELD and without a time. It goes over to RELEASING.
    #[inline(always)]
    pub(crate) fn near_releases(self, lock: u64) -> Option<Near> {
        let [first, second, ..] = &self.header().held;
        if release_plain(first, lock) {
            return Some(Near(first));
        }
        release_plain(second, lock).then_some(Near(second))
    }

    /// The first entry, if the thread has no lock and never had two at a time.
    #[inline(always)]
    pub(crate) fn only_free(self) -> Option<Near> {
        let [first, second, ..] = &self.header().held;
        // ORDERING: relaxed: this thread's own store.
        let has_had_two = second.lock.load(Relaxed) != 0 || place_of(second).state() != HELD_NONE;
        (place_of(first).state() == HELD_NONE && !has_had_two).then_some(Near(first))
    }

    /// If the first entry is this lock's, in HELD and without a time, it goes over to RELEASING.
    #[inline(always)]
    pub(crate) fn releases_first(self, lock: u64) -> bool {
        release_plain(&self.header().held[0], lock)
    }

    /// If the first entry is this lock's, in HELD and without a time, it is freed.
    #[inline(always)]
    pub(crate) fn has_released_first(self, lock: u64) -> bool {
        let is_first = plain_place(&self.header().held[0], lock).is_some();
        if is_first {
            self.clear_first();
        }
        is_first
    }

    /// Frees the first entry.
    #[inline(always)]
    pub(crate) fn clear_first(self) {
        self.header().held[0].meta.store(0, Release);
    }

    /// The entry of a lock, if the thread has one in a state that `is_wanted`; any, should there be several.
    #[inline(always)]
    pub(crate) fn find(self, lock: u64, is_wanted: fn(u64) -> bool) -> Option<Entry> {
        let first = &self.header().held[0];
        let place = place_of(first);
        if is_of(first, lock) && is_wanted(place.state()) {
            return Some(Entry { held: first, place });
        }
        // Most threads never have two locks.
        let second = &self.header().held[1];
        // ORDERING: relaxed: this thread's own store.
        if second.lock.load(Relaxed) == 0 && place_of(second).state() == HELD_NONE {
            return None;
        }
        self.find_further(lock, is_wanted)
    }

    /// The same for all entries but the first.
    #[inline(never)]
    fn find_further(self, lock: u64, is_wanted: fn(u64) -> bool) -> Option<Entry> {
        for held in &self.header().held[1..] {
            let place = place_of(held);
            if is_of(held, lock) && is_wanted(place.state()) {
                return Some(Entry { held, place });
            }
            // ORDERING: relaxed: this thread's own store.
            if held.lock.load(Relaxed) == 0 && place.state() == HELD_NONE {
                // The table has never been this full.
                return None;
            }
        }
        None
    }

    /// A lock was given up that is not in the table: whether it may be one of those that found no room.
    pub(crate) fn was_beyond(self) -> bool {
        let beyond = &self.header().held_overflowed;
        // ORDERING: relaxed: only this thread writes it.
        let count = beyond.load(Relaxed);
        beyond.store(count.saturating_sub(1), Relaxed);
        count > 0
    }
}

/// One of the first two entries of the calling thread's table, which nearly all locks find free: as little of it as
/// must be kept while a lock's own code runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Near(&'static HeldLock);

impl Near {
    /// Enters a lock as being taken.
    #[inline(always)]
    pub(crate) fn enter(self, lock: u64, sequence: u64, pc: u64, flags: u64) -> Entry {
        Entry::enter(self.0, lock, sequence, pc, flags)
    }

    /// The entry.
    #[inline(always)]
    pub(crate) fn entry(self) -> Entry {
        Entry { held: self.0, place: place_of(self.0) }
    }

    /// Its lock.
    #[cfg(feature = "interpose")]
    #[inline(always)]
    pub(crate) fn lock(self) -> u64 {
        self.entry().lock()
    }
}

/// [`HeldLock::place`], as the thread has it.
#[derive(Clone, Copy, Debug)]
struct Place(u64);

impl Place {
    #[inline(always)]
    fn state(self) -> u64 {
        held_state(self.0)
    }

    #[inline(always)]
    fn with_state(self, state: u64) -> Place {
        Place(self.0 & !(7 << HELD_STATE_SHIFT) | state << HELD_STATE_SHIFT)
    }
}

// ORDERING: relaxed in both: this thread's own stores.
#[inline(always)]
fn place_of(held: &HeldLock) -> Place {
    Place(held.meta.load(Relaxed))
}

#[inline(always)]
fn is_used(held: &HeldLock) -> bool {
    place_of(held).state() != HELD_NONE
}

#[inline(always)]
fn is_of(held: &HeldLock, lock: u64) -> bool {
    payload(held.lock.load(Relaxed) ^ lock) == 0
}

/// If an entry is this lock's, in HELD and without a time, it goes over to RELEASING.
#[inline(always)]
fn release_plain(held: &HeldLock, lock: u64) -> bool {
    let Some(Place(place)) = plain_place(held, lock) else { return false };
    held.meta.store(place ^ (HELD_HELD ^ HELD_RELEASING) << HELD_STATE_SHIFT, Release);
    true
}

/// The place of an entry, if that is this lock's, in HELD and without a time.
#[inline(always)]
fn plain_place(held: &HeldLock, lock: u64) -> Option<Place> {
    let place = place_of(held);
    let is_plain = place.0 & (7 << HELD_STATE_SHIFT | HELD_SINCE) == HELD_HELD << HELD_STATE_SHIFT;
    (is_plain && is_of(held, lock)).then_some(place)
}

/// What an entry says of the flags of a site.
#[inline(always)]
pub(crate) const fn held_flags(site_flags: u16) -> u64 {
    if site_flags & SITE_SHARED != 0 { HELD_SHARED } else { 0 }
}

/// An entry of the calling thread's held-lock table.
///
/// It remembers what the place was when it was looked up, so that a change of state is one store and no load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    held: &'static HeldLock,
    place: Place,
}

impl Entry {
    /// Fills a free entry.
    #[inline(always)]
    fn enter(held: &'static HeldLock, lock: u64, sequence: u64, pc: u64, flags: u64) -> Entry {
        // The place first: it reserves the entry. Until the lock is there too, the sequences differ.
        // A PC has no more than 48 bits, so that there is nothing to mask.
        let place = Place(sequence << HELD_SEQUENCE_SHIFT | HELD_ACQUIRING << HELD_STATE_SHIFT | flags | pc);
        held.meta.store(place.0, Release);
        held.lock.store(pack(sequence, lock, true), Release);
        // What is left in `since` means nothing: `place` does not say HELD_SINCE.
        Entry { held, place }
    }

    /// Whether it is in this slot. If a signal handler has forked, what the interrupted code goes on with in the child
    /// is its parent's, where nothing may be written.
    pub(crate) fn is_of(self, slot: Slot) -> bool {
        slot.header().held.as_ptr_range().contains(&core::ptr::from_ref(self.held))
    }

    /// The lock was free, and is had.
    #[inline(always)]
    pub(crate) fn has(mut self) {
        if !self.is_current() {
            return self.has_in_a_child();
        }
        self.change_state(HELD_ACQUIRING, HELD_HELD);
    }

    /// A signal handler has forked, and this is the child.
    #[cold]
    #[inline(never)]
    fn has_in_a_child(self) {
        if let Some(mut entry) = Slot::current().and_then(|slot| self.within(slot)) {
            entry.set_state(HELD_HELD);
        }
    }

    /// Whether it is in the calling thread's slot, told by its distance from the cursor.
    #[inline(always)]
    pub(crate) fn is_current(self) -> bool {
        let distance = arch::cursor().addr().wrapping_sub(core::ptr::from_ref(self.held).addr());
        distance <= size_of::<SlotHeader>()
    }

    /// The same acquisition in this slot: the entry itself, or in such a child another one.
    pub(crate) fn within(self, slot: Slot) -> Option<Entry> {
        if self.is_of(slot) {
            return Some(self);
        }
        // ORDERING: relaxed: this thread's own.
        let sequence = slot.header().count.load(Relaxed);
        slot.enter_lock(self.lock(), sequence, self.place.0 & PAYLOAD_MASK, self.place.0 & HELD_FLAGS)
    }

    /// The entry of the same lock in this slot, if it is held: the entry itself, or in such a child the inherited one.
    #[cfg(feature = "interpose")]
    pub(crate) fn held_within(self, slot: Slot) -> Option<Entry> {
        if self.is_of(slot) {
            return Some(self);
        }
        slot.find(self.lock(), |state| state == HELD_HELD)
    }

    #[inline(always)]
    fn set_place(&mut self, place: Place) {
        self.place = place;
        self.held.meta.store(place.0, Release);
    }

    /// `HELD_*`.
    #[inline(always)]
    pub(crate) fn state(self) -> u64 {
        self.place.state()
    }

    /// Goes over to another state: one store.
    #[inline(always)]
    pub(crate) fn set_state(&mut self, state: u64) {
        self.set_place(self.place.with_state(state));
    }

    /// The same where it is known which state it leaves: one instruction less on the way to the store.
    #[inline(always)]
    pub(crate) fn change_state(&mut self, from: u64, to: u64) {
        debug_assert_eq!(self.state(), from);
        self.set_place(Place(self.place.0 ^ (from ^ to) << HELD_STATE_SHIFT));
    }

    /// Whether any of these bits is set in the place.
    #[inline(always)]
    pub(crate) fn has_flag(self, flag: u64) -> bool {
        self.place.0 & flag != 0
    }

    /// Sets a flag of the place, or takes it away.
    pub(crate) fn set_flag(&mut self, flag: u64, is_set: bool) {
        let place = self.place.0 & !flag;
        self.set_place(Place(if is_set { place | flag } else { place }));
    }

    /// Where the lock was taken, if another place than that of the entry's making.
    pub(crate) fn set_pc(&mut self, pc: u64) {
        self.set_place(Place(self.place.0 & !PAYLOAD_MASK | pc & PAYLOAD_MASK));
    }

    /// Where the lock was taken.
    #[cfg(any(feature = "lock_api", feature = "lock_api_05", feature = "interpose"))]
    pub(crate) fn pc(self) -> u64 {
        self.place.0 & PAYLOAD_MASK
    }

    #[inline(always)]
    fn lock(self) -> u64 {
        // ORDERING: relaxed: this thread's own store.
        payload(self.held.lock.load(Relaxed))
    }

    /// Since when, ticks; 0 where that is not known.
    pub(crate) fn since(self) -> u64 {
        self.since_word() & PAYLOAD_MASK
    }

    /// How often the lock was taken again.
    pub(crate) fn again(self) -> u64 {
        self.since_word() >> HELD_RECURSION_SHIFT
    }

    fn since_word(self) -> u64 {
        if self.has_flag(HELD_SINCE) { self.held.since.load(Relaxed) } else { 0 }
    }

    /// Says since when, ticks, 0 for not known, and how often the lock was taken again.
    pub(crate) fn set_since(&mut self, ticks: u64, again: u64) {
        let again = again.min(u64::MAX >> HELD_RECURSION_SHIFT);
        self.held.since.store(ticks & PAYLOAD_MASK | again << HELD_RECURSION_SHIFT, Release);
        self.set_flag(HELD_SINCE, true);
    }

    /// Frees the entry, unless it is another slot's.
    pub(crate) fn clear_within(self, slot: Slot) {
        if self.is_of(slot) {
            self.clear();
        }
    }

    /// Frees the entry.
    #[inline(always)]
    pub(crate) fn clear(mut self) {
        self.set_place(Place(0));
    }
}
