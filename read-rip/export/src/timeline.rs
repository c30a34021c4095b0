//! What a thread or task did, as slices of time: its waits, its holds, its spans, and what a task does now.
//!
//! A slice has a begin and an end that were recorded. One that goes on ends at the time of the reading, or of the
//! process's end. What lacks a time is counted as undated.

use std::collections::{BTreeSet, HashMap};

use read_rip_model::findings::{HeldSince, Pasts};
use read_rip_model::locations::LocationId;
use read_rip_model::locks::{
    LockId, LockModel, Object, StepKind, ThreadId, ThreadLocks, task_place, task_since,
};
use read_rip_model::log::Usage;
use read_rip_model::threads::ThreadState;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceKind {
    Wait(Object),
    Hold(LockId),
    /// The thread holds the lock. When that began is not recorded.
    UndatedHold {
        lock: LockId,
        /// It began when the slice does, or earlier. Otherwise it began about then.
        is_or_earlier: bool,
    },
    /// The thread is in a span, of this name.
    Span(String),
    /// The thread waited for the lock of this name: a capture says so, and its history has no trace of it any more.
    Kept(String),
    /// What this task does now: it is suspended, ready or polled.
    Task(ThreadId),
}

/// A length of time in which a thread did one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub kind: SliceKind,
    /// From when on, ns since boot.
    pub begin_ns: u64,
    /// Until when, ns since boot.
    pub end_ns: u64,
    pub is_open: bool,
    /// Where it began; `None` if that is not known.
    pub location: Option<LocationId>,
    /// What the thread used in a span, if the span asked the kernel.
    pub usage: Option<Box<Usage>>,
}

/// What a thread said with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The thread's slot, as an index into those of the snapshot.
    pub slot: usize,
    /// Its text: that of an event, or the name of a span, with its values.
    pub text: String,
    /// `file:line`, as the compiler knew it; empty if unknown.
    pub place: String,
    pub kind: LoggedKind,
    /// What the thread used in a span, if the span asked the kernel.
    pub usage: Option<Box<Usage>>,
}

impl Logged {
    /// When it was, ns since boot, if it is an event and its time is known.
    pub fn at_ns(&self) -> Option<u64> {
        match self.kind {
            LoggedKind::Event(at_ns) => at_ns,
            LoggedKind::Span(_) | LoggedKind::Open(_) | LoggedKind::Wait(..) => None,
        }
    }
}

/// What the owner of a slot logged, if all that was said is ordered by slots.
pub fn of_slot(logged: &[Logged], slot: Option<usize>) -> &[Logged] {
    let Some(slot) = slot else { return &[] };
    let from = logged.partition_point(|one| one.slot < slot);
    let until = logged.partition_point(|one| one.slot <= slot);
    &logged[from..until]
}

/// When something was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedKind {
    /// An event, at this time, ns since boot; `None` if only its bounds are known.
    Event(Option<u64>),
    /// A span that has ended: its begin and end.
    Span(Option<(u64, u64)>),
    /// A span that is open since then.
    Open(Option<u64>),
    /// A wait that a capture has: its begin and end. The text is what the lock is called.
    Wait(u64, u64),
}

/// The slices of one thread or task, by their begins, and how much has no time.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Ordered by begin; of two that begin together, the longer one comes first.
    pub slices: Vec<Slice>,
    /// Waits, holds and spans that were recorded without a begin or an end.
    pub undated: usize,
}

impl Timeline {
    /// The timeline of a thread or task, with the spans among what it logged.
    pub fn of(id: ThreadId, logged: &[Logged], model: &LockModel) -> Timeline {
        let thread = &model.threads[id];
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
                        let kind = SliceKind::Wait(Object::Condition(lock));
                        timeline.add(kind, begin_ns, step.time_ns, Some(location));
                    }
                }
                _ => {}
            }
        }
        for hold in model.certain_holds(thread) {
            timeline.end_wait(&mut waits, hold.lock, hold.since_ns);
            timeline.add_open(SliceKind::Hold(hold.lock), hold.since_ns, end_ns, hold.location);
        }
        for awaited in thread.all_awaited() {
            let kind = SliceKind::Wait(awaited.object());
            timeline.add_open(kind, awaited.since_ns(), end_ns, awaited.location());
        }
        timeline.add_task(id, thread, end_ns);
        for logged in logged {
            let kind = || SliceKind::Span(logged.text.clone());
            match logged.kind {
                LoggedKind::Event(_) => {}
                LoggedKind::Span(times) => {
                    let (begin_ns, span_end_ns) = times.unzip();
                    let before = timeline.slices.len();
                    timeline.add(kind(), begin_ns, span_end_ns, None);
                    if let Some(slice) = timeline.slices.get_mut(before) {
                        slice.usage.clone_from(&logged.usage);
                    }
                }
                LoggedKind::Open(begin_ns) => timeline.add_open(kind(), begin_ns, end_ns, None),
                LoggedKind::Wait(begin_ns, wait_end_ns) => {
                    let kind = SliceKind::Kept(logged.text.clone());
                    timeline.add(kind, Some(begin_ns), Some(wait_end_ns), None);
                }
            }
        }
        timeline.sort();
        timeline
    }

    /// Adds the holds that go on, and began at a time that is not recorded, if the histories show about when.
    pub fn add_earlier_holds(&mut self, id: ThreadId, model: &LockModel, pasts: &Pasts) {
        let thread = &model.threads[id];
        let undated = model.certain_holds(thread).filter(|hold| hold.since_ns.is_none());
        for (hold, since) in undated.filter_map(|hold| Some((hold, pasts.held_since(model, hold)?))) {
            let (since_ns, is_or_earlier) = match since {
                HeldSince::OrEarlier(since_ns) => (since_ns, true),
                HeldSince::About(since_ns) => (since_ns, false),
            };
            let kind = SliceKind::UndatedHold { lock: hold.lock, is_or_earlier };
            self.add_open(kind, Some(since_ns), model.now_ns, hold.location);
            self.undated -= 1;
        }
        self.sort();
    }

    fn sort(&mut self) {
        self.slices.sort_by_key(|slice| (slice.begin_ns, std::cmp::Reverse(slice.end_ns)));
    }

    /// Adds what a task does now. Its begin may be too early: then the words for the slice say so.
    fn add_task(&mut self, id: ThreadId, thread: &ThreadLocks, end_ns: Option<u64>) {
        let Some(task) = thread.task.as_deref().filter(|_| thread.state == ThreadState::Present) else {
            return;
        };
        let (since_ns, _) = task_since(thread, task);
        let place = task_place(thread, task);
        let location = place.location.filter(|_| !place.is_where_made);
        self.add_open(SliceKind::Task(id), since_ns, end_ns, location);
    }

    fn end_wait(
        &mut self,
        waits: &mut HashMap<LockId, (Option<u64>, LocationId)>,
        lock: LockId,
        end_ns: Option<u64>,
    ) {
        if let Some((begin_ns, location)) = waits.remove(&lock) {
            self.add(SliceKind::Wait(Object::Lock(lock)), begin_ns, end_ns, Some(location));
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
                self.slices.push(Slice { kind, begin_ns, end_ns, is_open: false, location, usage: None });
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

    /// For each slice its lane, so that the slices of a lane lie within each other or apart. Lane 0 has what is
    /// nested.
    pub fn lanes(&self) -> Vec<usize> {
        let nested = self.nested();
        let others = self.slices.iter().zip(&nested).filter(|(_, is_nested)| !**is_nested);
        let mut lanes = lanes(others.map(|(slice, _)| (slice.begin_ns, slice.end_ns))).into_iter();
        let lane = |is_nested| if is_nested { 0 } else { lanes.next().map_or(0, |lane| lane + 1) };
        nested.into_iter().map(lane).collect()
    }
}

/// For each length of time its lane, so that those of a lane lie within each other or apart. They come by their begins,
/// and the longer one of two that begin together comes first.
///
/// Each goes to the lane with the tightest room for it. So n of them take n log n steps.
pub(super) fn lanes(times: impl Iterator<Item = (u64, u64)>) -> Vec<usize> {
    // The ends of what is open in each lane, outermost first; and each lane by the innermost end.
    let mut open: Vec<Vec<u64>> = Vec::new();
    let mut rooms: BTreeSet<(u64, usize)> = BTreeSet::new();
    let room = |ends: &[u64]| ends.last().copied().unwrap_or(u64::MAX);
    let lane = |(begin_ns, end_ns): (u64, u64)| {
        while let Some(&(ended_ns, lane)) = rooms.first().filter(|(ended_ns, _)| *ended_ns <= begin_ns) {
            if open[lane].pop().is_none() {
                break;
            }
            rooms.remove(&(ended_ns, lane));
            rooms.insert((room(&open[lane]), lane));
        }
        let lane = rooms.range((end_ns, 0)..).next().map_or(open.len(), |&(_, lane)| lane);
        if lane == open.len() {
            open.push(Vec::new());
        }
        rooms.remove(&(room(&open[lane]), lane));
        open[lane].push(end_ns);
        rooms.insert((end_ns, lane));
        lane
    };
    times.map(lane).collect()
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
            usage: None,
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
    fn the_slices_of_a_lane_lie_within_each_other_or_apart_and_no_lane_is_wasted() {
        let of = |times: &[(u64, u64)]| lanes(times.iter().copied());
        assert_eq!(of(&[(0, 10), (2, 5), (5, 10), (10, 12)]), [0; 4]);
        assert_eq!(of(&[(0, 10), (2, 12), (3, 9), (4, 11), (12, 13)]), [0, 1, 0, 1, 0]);
        assert_eq!(of(&[(3, 3), (3, 3), (u64::MAX, u64::MAX), (u64::MAX, u64::MAX)]), [0; 4]);
        let stairs: Vec<(u64, u64)> = (0..50_000).map(|step| (step, 100_000 + step)).collect();
        assert_eq!(of(&stairs), (0..50_000).collect::<Vec<_>>());
        let timeline = slices(&[(0, 10), (2, 12), (3, 13), (4, 5), (14, 15)]);
        assert_eq!(timeline.lanes(), [0, 1, 2, 0, 0]);
    }

    #[test]
    fn what_lacks_a_time_is_counted_and_a_begin_after_the_reading_is_an_open_slice_of_no_length() {
        let mut timeline = Timeline::default();
        timeline.add(SliceKind::Hold(0), Some(5), None, None);
        timeline.add(SliceKind::Hold(0), Some(5), Some(4), None);
        timeline.add_open(SliceKind::Wait(Object::Lock(0)), None, Some(9), None);
        assert_eq!((timeline.undated, timeline.slices.len()), (3, 0));
        timeline.add_open(SliceKind::Wait(Object::Lock(0)), Some(10), Some(9), None);
        let [slice] = &timeline.slices[..] else { panic!("{timeline:?}") };
        assert!((slice.begin_ns, slice.end_ns, slice.is_open) == (10, 10, true));
    }
}
