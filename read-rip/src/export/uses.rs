//! What timelines say of locks: who held and who awaited each one, and which release ended which wait. It also has the
//! words for slices. So all formats of timelines say the same.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::timeline::{Said, Slice, SliceKind, Timeline};
use crate::locks::{LockId, ThreadId};
use crate::printable::printable;
use crate::report::LockNames;

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
    /// Whether it goes on.
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
                SliceKind::Wait(lock) => locks.entry(lock).or_default().waits.push(one),
                SliceKind::Hold(lock) => locks.entry(lock).or_default().holds.push(one),
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
    pub(super) fn waiters(&self) -> Vec<(u64, usize)> {
        let mut changes: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for wait in &self.waits {
            changes.entry(wait.begin_ns).or_default().0 += 1;
            if !wait.is_open {
                changes.entry(wait.end_ns).or_default().1 += 1;
            }
        }
        let counts = changes.into_iter().scan(0, |waiting, (at_ns, (begun, ended))| {
            *waiting += begun;
            *waiting -= ended;
            Some((at_ns, *waiting))
        });
        counts.collect()
    }

    /// The releases that ended waits. A wait that ended without the lock has none.
    pub(super) fn arrows(&self) -> Vec<Arrow> {
        let mut releases: Vec<&Use> = self.holds.iter().filter(|hold| !hold.is_open).collect();
        releases.sort_by_key(|hold| hold.end_ns);
        let mut arrows = Vec::new();
        for wait in self.waits.iter().filter(|wait| !wait.is_open) {
            let from = self.holds.partition_point(|hold| hold.begin_ns < wait.end_ns);
            let at_end = self.holds[from..].iter().take_while(|hold| hold.begin_ns == wait.end_ns);
            let acquired = at_end.into_iter().find(|hold| hold.thread == wait.thread);
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

/// What a slice is called, and its category.
pub(super) fn slice_words<'a>(slice: &'a Slice, names: &LockNames<'_>) -> (Cow<'a, str>, &'static str) {
    let lock = |id: LockId| names.lock(&names.model.locks[id]);
    let (name, category) = match &slice.kind {
        SliceKind::Wait(id) | SliceKind::Sleep(id) => (format!("waits for {}", lock(*id)), "wait"),
        SliceKind::Hold(id) => (format!("holds {}", lock(*id)), "hold"),
        SliceKind::Condition(id) => (format!("waits on a condition variable, with {}", lock(*id)), "wait"),
        SliceKind::Join(id) => (format!("waits for the end of {}", names.thread(*id)), "wait"),
        SliceKind::Span(name) => return (printable(name), "span"),
    };
    (name.into(), category)
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
    said: &[Said],
    now_ns: Option<u64>,
) -> Option<RangeInclusive<u64>> {
    let slices = || threads.iter().flat_map(|(_, timeline)| &timeline.slices);
    let events = || said.iter().filter_map(Said::at_ns).chain(now_ns);
    let first_ns = slices().map(|slice| slice.begin_ns).chain(events()).min()?;
    let last_ns = slices().map(|slice| slice.end_ns).chain(events()).max()?;
    Some(first_ns..=last_ns)
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

    #[test]
    fn a_wait_that_ends_as_it_begins_leaves_no_negative_number_of_waiters() {
        let waits = vec![of(1, 5, 5), of(2, 5, 9), Use { is_open: true, ..of(3, 9, 20) }];
        let uses = LockUses { waits, holds: Vec::new() };
        assert_eq!(uses.waiters(), [(5, 1), (9, 1)]);
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
