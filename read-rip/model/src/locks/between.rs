//! What was done between two readings of a ring: which acquisitions are new, and whether all new words are known.
//!
//! It counts acquisitions at the moment of success. An acquisition that waited in the earlier reading and has succeeded
//! since is new, although its events are older.

use read_rip_ring::{HeldLock, HeldState, SequenceBits, Slot, SlotState, Snapshot};

use super::Record;

/// How often a lock was acquired between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Acquisitions in a second.
    pub acquired: u64,
    /// Acquisitions after a wait, in a second.
    pub contended: u64,
    /// Whether words were lost, so that these are estimates.
    pub is_estimate: bool,
}

impl Rate {
    /// The rates by the record of a lock. `period_ns` is the time between the readings.
    pub fn of(record: &Record, period_ns: u64, is_estimate: bool) -> Rate {
        let counts = match (is_estimate, record.probably_between) {
            (true, (acquired, contended)) => [acquired.round() as u64, contended.round() as u64],
            (false, _) => [record.acquired_between, record.contended_between],
        };
        let [acquired, contended] = counts.map(|count| per_second(count, period_ns));
        Rate { acquired, contended, is_estimate }
    }
}

/// How many of something there were in a second, if there were so many in this time.
pub fn per_second(count: u64, period_ns: u64) -> u64 {
    let period_ns = u128::from(period_ns.max(1));
    u64::try_from((u128::from(count) * 1_000_000_000 + period_ns / 2) / period_ns).unwrap_or(u64::MAX)
}

/// What the earlier reading says of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before<'a> {
    /// The first sequence that is new.
    from: u64,
    /// The owner's held-lock table then.
    held: &'a [HeldLock],
    /// Whether all earlier owners that recorded something new are known.
    is_whole: bool,
}

impl<'a> Before<'a> {
    /// The same slot in the earlier reading, `same` if it had the same owner.
    pub(super) fn of(earlier: &Snapshot, same: Option<&'a Slot>, slot: &Slot) -> Before<'a> {
        if let Some(same) = same {
            return Before { from: same.count, held: &same.held, is_whole: true };
        }
        // All words of a new owner are new. So were those of owners between the two.
        let position = earlier.slots.binary_search_by_key(&slot.index, |slot| slot.index);
        let is_whole = match position.map(|position| &earlier.slots[position]) {
            Ok(last) => last.state == SlotState::Exited && slot.generation == last.generation.wrapping_add(1),
            Err(_) => slot.generation <= 1,
        };
        Before { from: slot.first_sequence, held: &[], is_whole }
    }

    /// Whether an attempt to acquire a lock, which has succeeded, succeeded after the earlier reading. `begin` and
    /// `last` are the sequences of its first and its last event. A mark by hand is the success itself: `is_marked`.
    pub(super) fn is_new(&self, lock: u64, begin: u64, last: u64, is_marked: bool) -> bool {
        let is_of_attempt = |held: &&HeldLock| {
            let sequences = [begin, last].map(SequenceBits::of);
            held.lock == lock && is_pending(held) && sequences.contains(&held.sequence)
        };
        last >= self.from || (!is_marked && self.held.iter().any(|held| is_of_attempt(&held)))
    }

    /// For how many words that the slot's owner recorded since the earlier reading each known one of them stands.
    pub(super) fn words_for_each(&self, slot: &Slot) -> f64 {
        let all = slot.count.saturating_sub(self.from);
        let is_new = |at: usize| slot.words_from + at as u64 >= self.from;
        let known = slot.words.iter().filter(|(at, word)| is_new(*at) && !word.is_missing()).count();
        if known == 0 { 1.0 } else { (all as f64 / known as f64).max(1.0) }
    }

    /// Whether the ring no longer has all words that say what the thread did since the earlier reading. `known_from` is
    /// the sequence of the first known word.
    pub(super) fn has_lost(&self, known_from: u64) -> bool {
        // An attempt of that time may have succeeded since.
        let attempts = self.held.iter().filter(|held| is_pending(held));
        let sequences = attempts.filter_map(|held| held.sequence.latest_until(self.from));
        !self.is_whole || known_from > sequences.fold(self.from, u64::min)
    }
}

fn is_pending(held: &HeldLock) -> bool {
    matches!(held.state, HeldState::Acquiring | HeldState::Waiting)
}
