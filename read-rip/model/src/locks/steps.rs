//! The steps of a thread, packed: a ring can have a hundred million of them.
//!
//! A step takes 12 bytes, and 8 more for each time that it has. The words that it was made of take 8 bytes each, so the
//! steps of a ring mostly take less memory than the ring. It does not interpret steps.

use super::{LockId, Step, StepKind};

/// What a thread did, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    packed: Vec<Packed>,
    /// The times of the steps, and their sequences where these do not follow from the steps before.
    extra: Vec<u64>,
    last_sequence: u64,
}

/// A step without its times.
#[derive(Clone, Copy, Debug)]
struct Packed {
    /// [`NO_LOCK`] if the step is about none.
    lock: u32,
    location: u32,
    /// The sequence, minus that of the step before.
    advance: u16,
    kind: StepKind,
    /// A set of the flags below.
    flags: u8,
}

const NO_LOCK: u32 = u32::MAX;
const SHARED: u8 = 1;
const TRY: u8 = 2;
/// The step has a time, in `extra`.
const TIME: u8 = 4;
/// The step has the time of a beginning, in `extra`.
const SINCE: u8 = 8;
/// The step's sequence is in `extra`.
const SEQUENCE: u8 = 16;
const READERS_FIRST: u8 = 32;

impl Steps {
    /// Adds a step after all others.
    pub fn push(&mut self, step: Step) {
        let mut flags = 0;
        let mut flag = |is_set: bool, flag: u8| flags |= if is_set { flag } else { 0 };
        flag(step.is_shared, SHARED);
        flag(step.is_try, TRY);
        flag(step.is_readers_first, READERS_FIRST);
        flag(step.time_ns.is_some(), TIME);
        flag(step.since_ns.is_some(), SINCE);
        let advance = step.sequence.checked_sub(self.last_sequence).and_then(|by| u16::try_from(by).ok());
        flag(advance.is_none(), SEQUENCE);
        let sequence = if advance.is_none() { Some(step.sequence) } else { None };
        self.extra.extend([sequence, step.time_ns, step.since_ns].into_iter().flatten());
        self.last_sequence = step.sequence;
        self.packed.push(Packed {
            lock: step.lock.map_or(NO_LOCK, index),
            location: index(step.location),
            advance: advance.unwrap_or(0),
            kind: step.kind,
            flags,
        });
    }

    /// Replaces all steps by these, in the memory that it has. Returns a copy, which has no more memory than it needs.
    pub(super) fn packed_anew(&mut self, steps: &[Step]) -> Steps {
        self.packed.clear();
        self.extra.clear();
        self.last_sequence = 0;
        steps.iter().for_each(|&step| self.push(step));
        self.clone()
    }

    pub fn len(&self) -> usize {
        self.packed.len()
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// All steps, oldest first.
    pub fn iter(&self) -> StepsIter<'_> {
        StepsIter { packed: self.packed.iter(), extra: self.extra.iter(), sequence: 0 }
    }

    /// The locations of all steps, and their kinds. This takes less time than `iter`, and has both ends.
    pub fn locations(&self) -> impl DoubleEndedIterator<Item = (StepKind, usize)> + Clone {
        self.packed.iter().map(|packed| (packed.kind, packed.location as usize))
    }
}

/// A number of a lock or location. There cannot be 2^32 of them: each needs memory of its own.
fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(NO_LOCK)
}

impl Packed {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Steps {
        let steps = steps.into_iter();
        let mut all = Steps { packed: Vec::with_capacity(steps.size_hint().0), ..Steps::default() };
        steps.for_each(|step| all.push(step));
        all.packed.shrink_to_fit();
        all.extra.shrink_to_fit();
        all
    }
}

impl<'a> IntoIterator for &'a Steps {
    type Item = Step;
    type IntoIter = StepsIter<'a>;

    fn into_iter(self) -> StepsIter<'a> {
        self.iter()
    }
}

/// The steps of a thread, one after the other.
#[derive(Clone, Debug)]
pub struct StepsIter<'a> {
    packed: std::slice::Iter<'a, Packed>,
    extra: std::slice::Iter<'a, u64>,
    sequence: u64,
}

impl Iterator for StepsIter<'_> {
    type Item = Step;

    // Inlined, so that a loop unpacks only what it uses.
    #[inline]
    fn next(&mut self) -> Option<Step> {
        let packed = self.packed.next()?;
        self.sequence = self.sequence.wrapping_add(u64::from(packed.advance));
        let (mut time_ns, mut since_ns) = (None, None);
        if packed.flags & (SEQUENCE | TIME | SINCE) != 0 {
            let mut extra = |flag: u8| if packed.has(flag) { self.extra.next().copied() } else { None };
            self.sequence = extra(SEQUENCE).unwrap_or(self.sequence);
            (time_ns, since_ns) = (extra(TIME), extra(SINCE));
        }
        Some(Step {
            sequence: self.sequence,
            kind: packed.kind,
            lock: (packed.lock != NO_LOCK).then_some(packed.lock as LockId),
            is_shared: packed.has(SHARED),
            is_try: packed.has(TRY),
            is_readers_first: packed.has(READERS_FIRST),
            location: packed.location as usize,
            time_ns,
            since_ns,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.packed.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_unpacked_as_they_were_packed() {
        let kinds = [StepKind::Snap, StepKind::Wait, StepKind::Released, StepKind::Ambiguous];
        let sequences = [5, 5, 6, 70_000, u64::MAX, 3];
        let times = [None, Some(0), Some(u64::MAX)];
        let steps: Vec<Step> = kinds
            .into_iter()
            .cycle()
            .take(50)
            .zip(sequences.into_iter().cycle())
            .enumerate()
            .map(|(at, (kind, sequence))| Step {
                sequence,
                kind,
                lock: (at % 2 == 0).then_some(at),
                is_shared: at % 3 == 0,
                is_try: at % 4 == 0,
                is_readers_first: at % 5 == 0,
                location: 1000 * at,
                time_ns: times[at % 3],
                since_ns: times[at / 3 % 3],
            })
            .collect();
        let packed: Steps = steps.iter().copied().collect();
        assert_eq!(packed.iter().collect::<Vec<_>>(), steps);
        assert_eq!(packed.len(), steps.len());
        let locations: Vec<_> = steps.iter().map(|step| (step.kind, step.location)).collect();
        assert_eq!(packed.locations().collect::<Vec<_>>(), locations);
    }

    #[test]
    fn a_step_takes_twelve_bytes() {
        assert_eq!(size_of::<Packed>(), 12);
    }
}
