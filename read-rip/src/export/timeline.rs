//! What a thread did, as slices of time: its waits, its holds, its spans.
//!
//! A slice has a begin and an end that were recorded. One that goes on ends at the time of the reading, or of the
//! process's end. What lacks a time is counted as undated.

use std::collections::HashMap;

use crate::locations::LocationId;
use crate::locks::{LockId, LockModel, StepKind, ThreadId, ThreadLocks};

/// What a slice is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceKind {
    /// The thread waits for the lock.
    Wait(LockId),
    /// The thread holds the lock.
    Hold(LockId),
    /// The thread waits on a condition variable, and has released the lock meanwhile.
    Condition(LockId),
    /// The thread waits for a unit of a semaphore, at a barrier, or for a message.
    Sleep(LockId),
    /// The thread waits for the end of another one.
    Join(ThreadId),
    /// The thread is in a span, of this name.
    Span(String),
}

/// A length of time in which a thread did one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// What it did.
    pub kind: SliceKind,
    /// From when on, ns since boot.
    pub begin_ns: u64,
    /// Until when, ns since boot.
    pub end_ns: u64,
    /// Whether it goes on.
    pub is_open: bool,
    /// Where it began; `None` if that is not known.
    pub location: Option<LocationId>,
}

/// What a thread said with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The thread's slot, as an index into those of the snapshot.
    pub slot: usize,
    /// Its text: that of an event, or the name of a span, with its values.
    pub text: String,
    /// `file:line`, as the compiler knew it; empty if unknown.
    pub place: String,
    /// Which of them it is.
    pub kind: SaidKind,
}

/// What the owner of a slot said, if all that was said is ordered by slots.
pub fn of_slot(said: &[Said], slot: Option<usize>) -> &[Said] {
    let Some(slot) = slot else { return &[] };
    let from = said.partition_point(|one| one.slot < slot);
    let until = said.partition_point(|one| one.slot <= slot);
    &said[from..until]
}

/// When something was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidKind {
    /// An event, at this time, ns since boot; `None` if only its bounds are known.
    Event(Option<u64>),
    /// A span that has ended: its begin and end.
    Span(Option<(u64, u64)>),
    /// A span that is open since then.
    Open(Option<u64>),
}

/// The slices of one thread, by their begins, and how much has no time.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Ordered by begin; of two that begin together, the longer one comes first.
    pub slices: Vec<Slice>,
    /// Waits, holds and spans that were recorded without a begin or an end.
    pub undated: usize,
}

impl Timeline {
    /// The timeline of a thread, with the spans among what it said.
    pub fn of(thread: &ThreadLocks, said: &[Said], model: &LockModel) -> Timeline {
        let mut timeline = Timeline::default();
        let end_ns = thread.exited_ns.or(model.now_ns);
        let mut waits = HashMap::new();
        for step in &thread.steps {
            let Some(lock) = step.lock else { continue };
            match step.kind {
                StepKind::Wait | StepKind::ConditionWait => {
                    waits.insert(lock, (step.time_ns, step.location));
                }
                StepKind::Acquired | StepKind::UnitTaken | StepKind::TryFailed => {
                    timeline.end_wait(&mut waits, lock, step.time_ns);
                }
                StepKind::Released => {
                    timeline.end_wait(&mut waits, lock, step.since_ns);
                    timeline.add(SliceKind::Hold(lock), step.since_ns, step.time_ns, None);
                }
                StepKind::ConditionWoken => {
                    if let Some((begin_ns, location)) = waits.remove(&lock) {
                        timeline.add(SliceKind::Condition(lock), begin_ns, step.time_ns, Some(location));
                    }
                }
                _ => {}
            }
        }
        for hold in &thread.holds {
            timeline.end_wait(&mut waits, hold.lock, hold.since_ns);
            timeline.add_open(SliceKind::Hold(hold.lock), hold.since_ns, end_ns, hold.location);
        }
        if let Some(wait) = &thread.wait {
            timeline.add_open(SliceKind::Wait(wait.lock), wait.since_ns, end_ns, Some(wait.location));
        }
        if let Some(sleep) = &thread.sleep {
            let kind = match thread.condition_wait {
                Some(lock) => SliceKind::Condition(lock),
                None => SliceKind::Sleep(sleep.lock),
            };
            timeline.add_open(kind, sleep.since_ns, end_ns, Some(sleep.location));
        }
        if let Some(join) = &thread.join {
            timeline.add_open(SliceKind::Join(join.joined), join.since_ns, end_ns, Some(join.location));
        }
        for said in said {
            let kind = || SliceKind::Span(said.text.clone());
            match said.kind {
                SaidKind::Event(_) => {}
                SaidKind::Span(times) => {
                    let (begin_ns, span_end_ns) = times.unzip();
                    timeline.add(kind(), begin_ns, span_end_ns, None);
                }
                SaidKind::Open(begin_ns) => timeline.add_open(kind(), begin_ns, end_ns, None),
            }
        }
        timeline.slices.sort_by_key(|slice| (slice.begin_ns, std::cmp::Reverse(slice.end_ns)));
        timeline
    }

    fn end_wait(
        &mut self,
        waits: &mut HashMap<LockId, (Option<u64>, LocationId)>,
        lock: LockId,
        end_ns: Option<u64>,
    ) {
        if let Some((begin_ns, location)) = waits.remove(&lock) {
            self.add(SliceKind::Wait(lock), begin_ns, end_ns, Some(location));
        }
    }

    /// Adds a slice, if its times are known and in order.
    fn add(
        &mut self,
        kind: SliceKind,
        begin_ns: Option<u64>,
        end_ns: Option<u64>,
        location: Option<LocationId>,
    ) {
        match begin_ns.zip(end_ns).filter(|(begin, end)| begin <= end) {
            Some((begin_ns, end_ns)) => {
                self.slices.push(Slice { kind, begin_ns, end_ns, is_open: false, location });
            }
            None => self.undated += 1,
        }
    }

    fn add_open(
        &mut self,
        kind: SliceKind,
        begin_ns: Option<u64>,
        end_ns: Option<u64>,
        location: Option<LocationId>,
    ) {
        let before = self.slices.len();
        // A time may be later than the reading's by as much as two clocks differ.
        self.add(kind, begin_ns, begin_ns.max(end_ns), location);
        self.slices[before..].iter_mut().for_each(|slice| slice.is_open = true);
    }

    /// For each slice, whether it ends before all slices end in which it begins. Locks may be released in any order, so
    /// not every slice does.
    pub fn nested(&self) -> Vec<bool> {
        let mut around: Vec<u64> = Vec::new();
        let is_nested = |slice: &Slice| {
            while around.last().is_some_and(|&end_ns| end_ns <= slice.begin_ns) {
                around.pop();
            }
            let is_nested = around.last().is_none_or(|&end_ns| slice.end_ns <= end_ns);
            if is_nested {
                around.push(slice.end_ns);
            }
            is_nested
        };
        self.slices.iter().map(is_nested).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(times: &[(u64, u64)]) -> Timeline {
        let slice = |&(begin_ns, end_ns)| Slice {
            kind: SliceKind::Hold(0),
            begin_ns,
            end_ns,
            is_open: false,
            location: None,
        };
        Timeline { slices: times.iter().map(slice).collect(), undated: 0 }
    }

    #[test]
    fn slices_that_overlap_the_end_of_another_one_are_not_nested() {
        let nested = |times: &[(u64, u64)]| slices(times).nested();
        assert_eq!(nested(&[(0, 10), (2, 5), (5, 10), (10, 12)]), [true; 4]);
        assert_eq!(nested(&[(0, 10), (2, 5), (4, 6), (7, 11)]), [true, true, false, false]);
        assert_eq!(nested(&[(3, 3), (3, 3)]), [true; 2]);
    }

    #[test]
    fn what_lacks_a_time_is_counted_and_a_begin_after_the_reading_is_an_open_slice_of_no_length() {
        let mut timeline = Timeline::default();
        timeline.add(SliceKind::Hold(0), Some(5), None, None);
        timeline.add(SliceKind::Hold(0), Some(5), Some(4), None);
        timeline.add_open(SliceKind::Wait(0), None, Some(9), None);
        assert_eq!((timeline.undated, timeline.slices.len()), (3, 0));
        timeline.add_open(SliceKind::Wait(0), Some(10), Some(9), None);
        let [slice] = &timeline.slices[..] else { panic!("{timeline:?}") };
        assert!((slice.begin_ns, slice.end_ns, slice.is_open) == (10, 10, true));
    }
}
