//! [`MadePlace`]: a place in the source of another language, and what a binding for that language records there.
//!
//! A mark is an instruction of a compiled program. A language without these has only places, which a binding learns
//! when the program runs. Each use of a place is a site of the process, which is entered in the ring at its first use:
//! see "Sites of processes" in `librip_format::site`. The binding records all that is done with its locks, so they
//! count as those of wrappers, unless it says that a lock is marked by hand.
//!
//! The ring may become full of sites between an acquisition and its release. The release is recorded then all the same,
//! at a site of this library: no lock stays held for ever.
//!
//! It acquires no lock and formats nothing.
//!
//! # Orderings
//!
//! As in [`bridge`](crate::bridge): who records an event of a site knows that the site is complete in the ring.

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use librip_format::{
    KIND_EVENT, KIND_LOCK_ACQUIRED, KIND_LOCK_RELEASED, KIND_LOCK_TRY_FAILED, KIND_LOCK_WAIT, KIND_SNAP,
    KIND_SPAN_BEGIN, KIND_SPAN_END, LOCK_TYPE_MUTEX, OPERAND_LOCK, OPERAND_SHAPE, OPERAND_SINCE,
    OPERAND_TIME, PAYLOAD_MASK, SITE_LEVEL, SITE_LOCK_TYPE_SHIFT, SITE_OWNED, SITE_OWNED_BY_RULE,
    SITE_REENTRANT, SITE_TRY, SITE_WRAPPER,
};

use crate::event::by_hand::SpanByHand;
use crate::event::packed::PackedValues;
use crate::event::record;
use crate::lock::by_hand;
use crate::process::instance;
use crate::process::slot::Slot;
use crate::ring::process_sites::NewSite;
use crate::start::plan;

/// The acquisition ends after a time, or does not block: [`SITE_TRY`].
const PLACE_TRY: u32 = SITE_TRY as u32;
/// The owner may acquire the lock again, and only the owner can release it.
const PLACE_REENTRANT: u32 = SITE_REENTRANT as u32;
/// Whoever acquired the lock releases it: by a rule of the language, as that of a block.
const PLACE_OWNED: u32 = 32;
/// The program does things with the lock that are not recorded.
const PLACE_BY_HAND: u32 = 64;

/// What a use of a place records.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Use {
    Snap,
    Wait,
    Acquired,
    AcquiredTimed,
    Released,
    ReleasedTimed,
    TryFailed,
    Event,
    SpanBegin,
    SpanEnd,
}

/// Each use has so many sites, for as many combinations of flags.
const FLAGS: usize = 16;
const USES: usize = Use::SpanEnd as usize + 1;

const NEW: u8 = 0;
const ENTERED: u8 = 1;
const REFUSED: u8 = 2;

/// A place in the source of a language whose code has no marks. It must last as long as the process: readers know its
/// sites by addresses in it.
#[derive(Debug)]
pub struct MadePlace {
    /// File, function, label, and the format of spans, separated by zero bytes.
    text: Box<str>,
    /// Where the label ends.
    label_end: usize,
    line: u32,
    /// The state of each site, and the address that the ring knows it by.
    sites: [AtomicU8; USES * FLAGS],
}

impl MadePlace {
    /// A place. The label is the class of the locks that are used there, the format of its events, or the name of its
    /// spans. `format` is that of its spans.
    pub fn new(file: &str, line: u32, function: &str, label: &str, format: &str) -> MadePlace {
        // The parts of the text end with zero bytes, so they contain none.
        let function = if function.is_empty() { String::new() } else { format!("{function}()") };
        let parts = [file, &function, label, format].map(|part| part.replace('\0', " "));
        plan::expect_spans();
        let label_end = parts[..3].iter().map(String::len).sum::<usize>() + 2;
        let sites = [const { AtomicU8::new(NEW) }; USES * FLAGS];
        MadePlace { text: parts.join("\0").into(), label_end, line, sites }
    }

    /// The thread was here.
    pub fn snap(&self) {
        if let Some((slot, pc)) = self.site(Use::Snap, 0) {
            slot.event(([], [], []), pc);
        }
    }

    /// The thread is about to block until it gets the lock. Recorded only if there is room for the end of the wait too.
    pub fn wait(&self, lock: u64, flags: u32) {
        let has_ends = [Use::Acquired, Use::AcquiredTimed, Use::TryFailed]
            .into_iter()
            .all(|end| self.site(end, flags).is_some());
        if has_ends && let Some((_, pc)) = self.site(Use::Wait, flags) {
            by_hand::wait(core::ptr::without_provenance::<u8>(lock as usize), pc, site_flags(flags));
        }
    }

    /// The thread has acquired the lock, with or without a wait.
    pub fn acquired(&self, lock: u64, flags: u32) {
        let sites = self.site(Use::Acquired, flags).zip(self.site(Use::AcquiredTimed, flags));
        if let Some(((_, pc), (_, timed))) = sites {
            let lock = core::ptr::without_provenance::<u8>(lock as usize);
            by_hand::acquired(lock, pc, timed, site_flags(flags));
        }
    }

    /// The thread is about to release the lock.
    pub fn released(&self, lock: u64, flags: u32) {
        let address = core::ptr::without_provenance::<u8>(lock as usize);
        match self.site(Use::Released, flags).zip(self.site(Use::ReleasedTimed, flags)) {
            Some(((_, pc), (_, timed))) => by_hand::released(address, pc, timed),
            None if self.has_recorded_acquisitions() || by_hand::is_known(lock) => {
                by_hand::released_here(address)
            }
            None => {}
        }
    }

    /// A wait has ended without the lock.
    pub fn try_failed(&self, lock: u64, flags: u32) {
        let address = core::ptr::without_provenance::<u8>(lock as usize);
        match self.site(Use::TryFailed, flags) {
            Some((_, pc)) => by_hand::try_failed(address, pc),
            None if by_hand::is_known(lock) => by_hand::try_failed_here(address),
            None => {}
        }
    }

    /// Whether a lock may count as held that was acquired here.
    #[cold]
    fn has_recorded_acquisitions(&self) -> bool {
        let first = Use::Acquired as usize * FLAGS;
        // ORDERING: relaxed, no site is used.
        self.sites[first..first + FLAGS].iter().any(|state| state.load(Relaxed) == ENTERED)
    }

    /// Something happened, with these values. `level`: a `LEVEL_*`.
    pub fn event(&self, level: u32, values: PackedValues<'_>) {
        if let Some((_, pc)) = self.site(Use::Event, level & u32::from(SITE_LEVEL)) {
            record::event(pc, values);
        }
    }

    /// Begins a span. All zeros if the thread does not record.
    pub fn span(&self, values: PackedValues<'_>) -> SpanByHand {
        let Some((_, pc)) = self.site(Use::SpanBegin, 0) else { return SpanByHand::default() };
        match self.site(Use::SpanEnd, 0) {
            Some((_, pc_end)) => SpanByHand::begin(pc, pc_end, values),
            None => SpanByHand::default(),
        }
    }

    /// The site of a use, which is in the ring now. `None` if the thread does not record, or if there is no room.
    #[inline(always)]
    fn site(&self, of: Use, flags: u32) -> Option<(Slot, u64)> {
        let slot = Slot::current()?;
        let index = of as usize * FLAGS + row(of, flags);
        let state = &self.sites[index];
        let pc = core::ptr::from_ref(state).addr() as u64 & PAYLOAD_MASK;
        // ORDERING: acquire, pairs with the release in `enter`.
        let is_entered = state.load(Acquire) == ENTERED || self.enter(of, flags, state, pc);
        is_entered.then_some((slot, pc))
    }

    #[cold]
    #[inline(never)]
    fn enter(&self, of: Use, flags: u32, state: &AtomicU8, pc: u64) -> bool {
        if state.load(Acquire) == REFUSED {
            return false;
        }
        let of_lock = |kind, operands: &'static [u8]| (kind, site_flags(flags), operands);
        let (kind, site_flags, operands) = match of {
            Use::Snap => (KIND_SNAP, 0, &[][..]),
            Use::Wait => of_lock(KIND_LOCK_WAIT, &[OPERAND_TIME, OPERAND_LOCK]),
            Use::Acquired => of_lock(KIND_LOCK_ACQUIRED, &[OPERAND_LOCK]),
            Use::AcquiredTimed => of_lock(KIND_LOCK_ACQUIRED, &[OPERAND_TIME, OPERAND_LOCK]),
            Use::Released => of_lock(KIND_LOCK_RELEASED, &[OPERAND_LOCK]),
            Use::ReleasedTimed => of_lock(KIND_LOCK_RELEASED, &[OPERAND_TIME, OPERAND_SINCE, OPERAND_LOCK]),
            Use::TryFailed => of_lock(KIND_LOCK_TRY_FAILED, &[OPERAND_LOCK]),
            Use::Event => (KIND_EVENT, flags as u16, &[OPERAND_SHAPE][..]),
            Use::SpanBegin => (KIND_SPAN_BEGIN, 0, &[OPERAND_SHAPE][..]),
            Use::SpanEnd => (KIND_SPAN_END, 0, &[OPERAND_TIME, OPERAND_SINCE][..]),
        };
        // The label of a span has two parts.
        let text = if kind == KIND_SPAN_BEGIN { &self.text } else { &self.text[..self.label_end] };
        let is_entered = instance::enter_site(&NewSite::new(pc, text, self.line, kind, site_flags, operands));
        // ORDERING: release, pairs with the acquire in `site`.
        state.store(if is_entered { ENTERED } else { REFUSED }, Release);
        is_entered
    }
}

/// Which of a use's sites has these flags: for a lock those of [`PLACE_TRY`], [`PLACE_REENTRANT`],
/// [`PLACE_OWNED`] and [`PLACE_BY_HAND`].
#[inline(always)]
fn row(of: Use, flags: u32) -> usize {
    let bit = |flag: u32| usize::from(flags & flag != 0);
    match of {
        Use::Event => (flags as usize).min(FLAGS - 1),
        _ => {
            let [tries, reenters, owned, by_hand] =
                [PLACE_TRY, PLACE_REENTRANT, PLACE_OWNED, PLACE_BY_HAND].map(bit);
            tries | reenters << 1 | owned << 2 | by_hand << 3
        }
    }
}

fn site_flags(flags: u32) -> u16 {
    let is_reentrant = flags & PLACE_REENTRANT != 0;
    let owned = match flags & PLACE_OWNED != 0 {
        _ if is_reentrant => SITE_REENTRANT | SITE_OWNED,
        true => SITE_OWNED_BY_RULE,
        false => 0,
    };
    let tries = if flags & PLACE_TRY != 0 { SITE_TRY } else { 0 };
    let wrapper = if flags & PLACE_BY_HAND == 0 { SITE_WRAPPER } else { 0 };
    wrapper | LOCK_TYPE_MUTEX << SITE_LOCK_TYPE_SHIFT | owned | tries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_combination_of_flags_has_a_site_of_its_own() {
        let flags = [PLACE_TRY, PLACE_REENTRANT, PLACE_OWNED, PLACE_BY_HAND];
        let all = (0..16_u32).map(|set| (0..4).filter(|bit| set >> bit & 1 == 1).map(|bit| flags[bit]).sum());
        let mut rows: Vec<usize> = all.map(|flags: u32| row(Use::Acquired, flags)).collect();
        rows.sort_unstable();
        assert_eq!(rows, (0..FLAGS).collect::<Vec<usize>>());
        assert_eq!(row(Use::Event, 3), 3);
    }

    #[test]
    fn a_place_without_a_ring_enters_nothing() {
        let place = MadePlace::new("a\0b.py", 3, "f", "l", "{}");
        assert_eq!(&*place.text, "a b.py\0f()\0l\0{}");
        assert_eq!(&place.text[..place.label_end], "a b.py\0f()\0l");
        place.wait(64, 0);
        place.acquired(64, 0);
        place.released(64, 0);
        place.try_failed(64, PLACE_TRY);
        place.snap();
        assert!(place.sites.iter().all(|state| state.load(Acquire) == NEW));
    }
}
