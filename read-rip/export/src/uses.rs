//! What timelines say of locks: who held and who awaited each one, and which release ended which wait. It also has the
//! words for slices. So all formats of timelines say the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;

use read_rip_model::locks::{LockId, Object, ThreadId};
use read_rip_report::printable;
use read_rip_report::{LockNames, awaited_words, task_doing_at};

use super::timeline::{Logged, Slice, SliceKind, Timeline};

/// A wait for a lock that has ended or goes on, or a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// Who waited or held.
    pub(super) thread: ThreadId,
    /// Its index among the slices of that thread.
    pub(super) slice: usize,
    /// From when on, ns since boot.
    pub(super) begin_ns: u64,
    /// Until when, ns since boot.
    pub(super) end_ns: u64,
    pub(super) is_open: bool,
    /// Whether it ends before all slices of the thread end in which it begins.
    pub(super) is_nested: bool,
}

/// How threads used one lock.
#[derive(Debug, Default)]
pub(super) struct LockUses {
    /// Ordered by begin.
    pub(super) holds: Vec<Use>,
    /// Ordered by begin.
    pub(super) waits: Vec<Use>,
}

/// A release that ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arrow {
    /// The hold that the release ended.
    pub(super) released: Use,
    /// The wait that ended.
    pub(super) wait: Use,
    /// The hold that began as the wait ended.
    pub(super) acquired: Use,
}

/// How all threads contended for each lock, whether they are shown or not.
#[derive(Debug, Default)]
pub struct Contention(HashMap<LockId, OfLock>);

/// How all threads contended for one lock.
#[derive(Debug, Default)]
struct OfLock {
    waiters: Vec<(u64, usize)>,
    arrows: Vec<Arrow>,
}

impl Contention {
    /// That of all these threads.
    pub fn of(threads: &[(ThreadId, Timeline)]) -> Contention {
        let of = |(lock, uses): (LockId, LockUses)| {
            (lock, OfLock { waiters: uses.waiters(), arrows: uses.arrows() })
        };
        Contention(lock_uses(threads).into_iter().map(of).collect())
    }

    /// How many threads waited for a lock, from each moment on at which that changed.
    pub(super) fn waiters(&self, lock: LockId) -> &[(u64, usize)] {
        self.0.get(&lock).map_or(&[], |of| &of.waiters)
    }

    /// The releases of a lock that ended waits, where both threads are among these.
    pub(super) fn arrows<'a>(
        &'a self,
        lock: LockId,
        threads: &'a HashSet<ThreadId>,
    ) -> impl Iterator<Item = &'a Arrow> {
        let all = self.0.get(&lock).map_or(&[][..], |of| &of.arrows);
        let ends = |arrow: &Arrow| [arrow.released.thread, arrow.acquired.thread];
        all.iter().filter(move |arrow| ends(arrow).iter().all(|thread| threads.contains(thread)))
    }
}

/// The locks of these timelines, and how they were used.
pub(super) fn lock_uses(threads: &[(ThreadId, Timeline)]) -> BTreeMap<LockId, LockUses> {
    let mut locks: BTreeMap<LockId, LockUses> = BTreeMap::new();
    for (thread, timeline) in threads {
        for ((slice, of), is_nested) in timeline.slices.iter().enumerate().zip(timeline.nested()) {
            let one = Use {
                thread: *thread,
                slice,
                begin_ns: of.begin_ns,
                end_ns: of.end_ns,
                is_open: of.is_open,
                is_nested,
            };
            match of.kind {
                SliceKind::Wait(Object::Lock(lock)) => locks.entry(lock).or_default().waits.push(one),
                SliceKind::Hold(lock) | SliceKind::UndatedHold { lock, .. } => {
                    locks.entry(lock).or_default().holds.push(one)
                }
                _ => {}
            }
        }
    }
    for uses in locks.values_mut() {
        uses.holds.sort_by_key(|hold| (hold.begin_ns, std::cmp::Reverse(hold.end_ns)));
        uses.waits.sort_by_key(|wait| wait.begin_ns);
    }
    locks
}

impl LockUses {
    /// The number of threads that waited, from each moment on at which it changed.
    fn waiters(&self) -> Vec<(u64, usize)> {
        let mut changes: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for wait in &self.waits {
            changes.entry(wait.begin_ns).or_default().0 += 1;
            if !wait.is_open {
                changes.entry(wait.end_ns).or_default().1 += 1;
            }
        }
        let mut waiting = 0;
        let count = |(at_ns, (begun, ended))| {
            waiting = waiting + begun - ended;
            (at_ns, waiting)
        };
        changes.into_iter().map(count).collect()
    }

    /// The releases that ended waits. A wait that ended without the lock has none.
    fn arrows(&self) -> Vec<Arrow> {
        let mut releases: Vec<&Use> = self.holds.iter().filter(|hold| !hold.is_open).collect();
        releases.sort_by_key(|hold| hold.end_ns);
        let begun: HashMap<(ThreadId, u64), &Use> =
            self.holds.iter().rev().map(|hold| ((hold.thread, hold.begin_ns), hold)).collect();
        let mut arrows = Vec::new();
        for wait in self.waits.iter().filter(|wait| !wait.is_open) {
            let acquired = begun.get(&(wait.thread, wait.end_ns)).copied();
            let until = releases.partition_point(|hold| hold.end_ns <= wait.end_ns);
            let released = releases[..until].iter().rev().find(|hold| hold.thread != wait.thread);
            let is_within = |hold: &&&Use| hold.end_ns >= wait.begin_ns && hold.begin_ns < wait.end_ns;
            if let Some((released, acquired)) = released.filter(is_within).zip(acquired) {
                arrows.push(Arrow { released: **released, wait: *wait, acquired: *acquired });
            }
        }
        arrows
    }
}

/// The name of the object of a wait: a lock, or a thread or task.
pub(super) fn object_name(object: Object, names: &LockNames<'_>) -> String {
    match object {
        Object::Lock(lock) | Object::Condition(lock) | Object::Unit(lock) => {
            names.lock(&names.model.locks[lock])
        }
        Object::End(joined) => names.thread(joined),
    }
}

/// What a slice is called, and its category.
pub(super) fn slice_words<'a>(slice: &'a Slice, names: &LockNames<'_>) -> (Cow<'a, str>, &'static str) {
    let lock = |id: LockId| names.lock(&names.model.locks[id]);
    let (name, category) = match &slice.kind {
        SliceKind::Wait(object) => (format!("waits {}", awaited_words(*object, names)), "wait"),
        SliceKind::Hold(id) => (format!("holds {}", lock(*id)), "hold"),
        SliceKind::UndatedHold { lock: id, is_or_earlier } => {
            (format!("holds {}, {}", lock(*id), since_words(*is_or_earlier)), "hold")
        }
        SliceKind::Span(name) => return (printable(name), "span"),
        SliceKind::Kept(lock) => (format!("waits for {}", printable(lock)), "wait"),
        SliceKind::Task(id) => (task_doing_at(*id, names), "task"),
    };
    (name.into(), category)
}

/// Since when a thread holds a lock, beside a slice that shows it.
pub(super) fn since_words(is_or_earlier: bool) -> &'static str {
    if is_or_earlier { "since then or earlier" } else { "since about then" }
}

/// The processes that have tasks among these threads.
pub(super) fn processes_of_tasks(threads: &[(ThreadId, Timeline)], names: &LockNames<'_>) -> BTreeSet<u32> {
    let threads = threads.iter().map(|(id, _)| &names.model.threads[*id]);
    threads.filter(|thread| thread.task.is_some()).map(|thread| thread.pid).collect()
}

/// The processes of these threads and locks, in the order of their ids.
pub(super) fn processes(
    threads: &[(ThreadId, Timeline)],
    locks: &BTreeMap<LockId, LockUses>,
    names: &LockNames<'_>,
) -> BTreeSet<u32> {
    let of_locks = locks.keys().map(|&lock| names.model.locks[lock].pid);
    threads.iter().map(|(id, _)| names.model.threads[*id].pid).chain(of_locks).collect()
}

/// The first and the last moment of these timelines and events, ns since boot, with the time of the reading.
pub(super) fn bounds(
    threads: &[(ThreadId, Timeline)],
    logged: &[Logged],
    now_ns: Option<u64>,
) -> Option<RangeInclusive<u64>> {
    let slices = || threads.iter().flat_map(|(_, timeline)| &timeline.slices);
    let events = || logged.iter().filter_map(Logged::at_ns).chain(now_ns);
    let first_ns = slices().map(|slice| slice.begin_ns).chain(events()).min()?;
    let last_ns = slices().map(|slice| slice.end_ns).chain(events()).max()?;
    Some(first_ns..=last_ns)
}

/// What the track of a process's tasks is called.
pub(super) fn tasks_of(program: &str) -> String {
    format!("tasks of {}", printable(program))
}

/// What the track of a process's locks is called.
pub(super) fn locks_of(program: &str) -> String {
    format!("locks of {}", printable(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(thread: ThreadId, begin_ns: u64, end_ns: u64) -> Use {
        Use { thread, slice: 0, begin_ns, end_ns, is_open: false, is_nested: true }
    }

    fn slice(kind: SliceKind, begin_ns: u64, end_ns: u64) -> Slice {
        Slice { kind, begin_ns, end_ns, is_open: false, location: None, usage: None }
    }

    #[test]
    fn a_wait_that_ends_as_it_begins_leaves_no_negative_number_of_waiters() {
        let waits = vec![of(1, 5, 5), of(2, 5, 9), Use { is_open: true, ..of(3, 9, 20) }];
        let uses = LockUses { waits, holds: Vec::new() };
        assert_eq!(uses.waiters(), [(5, 1), (9, 1)]);
    }

    #[test]
    fn a_thread_that_is_left_out_is_counted_and_no_other_one_takes_its_place_in_an_arrow() {
        let timeline = |slices| Timeline { slices, undated: 0 };
        let all = [
            (1, timeline(vec![slice(SliceKind::Hold(7), 0, 10)])),
            (
                2,
                timeline(vec![
                    slice(SliceKind::Wait(Object::Lock(7)), 5, 11),
                    slice(SliceKind::Hold(7), 11, 20),
                ]),
            ),
            (
                3,
                timeline(vec![
                    slice(SliceKind::Wait(Object::Lock(7)), 6, 21),
                    slice(SliceKind::Hold(7), 21, 30),
                ]),
            ),
        ];
        let contention = Contention::of(&all);
        let arrows = |threads: &[ThreadId]| {
            let threads: HashSet<ThreadId> = threads.iter().copied().collect();
            let ends = |arrow: &Arrow| (arrow.released.thread, arrow.acquired.thread);
            contention.arrows(7, &threads).map(ends).collect::<Vec<_>>()
        };
        assert_eq!(arrows(&[1, 2, 3]), [(1, 2), (2, 3)]);
        assert_eq!(arrows(&[1, 3]), []);
        assert_eq!(contention.waiters(7), [(5, 1), (6, 2), (11, 1), (21, 0)]);
        assert_eq!(contention.waiters(8), []);
    }

    #[test]
    fn an_arrow_needs_a_release_of_another_thread_during_the_wait_and_a_hold_after_it() {
        let holds = vec![of(1, 0, 10), of(2, 12, 20), of(3, 21, 30)];
        let wait = of(2, 5, 12);
        let uses = |waits| LockUses { holds: holds.clone(), waits };
        let expected = Arrow { released: holds[0], wait, acquired: holds[1] };
        assert_eq!(uses(vec![wait]).arrows(), [expected]);
        assert_eq!(uses(vec![of(4, 5, 12)]).arrows(), [], "it ended without the lock");
        assert_eq!(uses(vec![of(2, 11, 12)]).arrows(), [], "the lock was free");
        assert_eq!(uses(vec![Use { is_open: true, ..wait }]).arrows(), []);
    }

    #[test]
    fn the_last_release_before_the_end_of_a_wait_has_ended_it_although_the_wait_is_the_older_one() {
        let holds = vec![of(1, 0, 10), of(2, 10, 20), of(3, 20, 30)];
        let uses = LockUses { waits: vec![of(3, 5, 20)], holds: holds.clone() };
        let arrows = uses.arrows();
        assert_eq!(arrows.iter().map(|arrow| arrow.released).collect::<Vec<_>>(), [holds[1]]);
    }
}
