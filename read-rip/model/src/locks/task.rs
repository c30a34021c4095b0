//! A task as values: whether it is polled, by whom, since when, and what its futures wait for and hold.
//!
//! A task is a [`ThreadLocks`](super::ThreadLocks) with these facts: it holds locks and waits for them as a thread
//! does. What differs is who can let it go on, and that it may wait in several places at once.

use read_rip_ring::{Runtime, TaskKind};

use super::{Hold, LockId, ThreadId, Wait};
use crate::locations::LocationId;

#[derive(Clone, Debug, Default)]
pub struct TaskFacts {
    pub number: u32,
    pub kind: TaskKind,
    /// Whether only one thread polls it.
    pub is_local: bool,
    /// Whether its name says what kind of task it is, as those of requests do.
    pub is_of_kind: bool,
    /// Its executor, if that is known. A poll that has left its worker is one of no executor.
    pub runtime: Option<Runtime>,
    /// Where it was made, if that is known.
    pub made_at: Option<LocationId>,
    pub is_polled: bool,
    /// How often it was polled, the present poll included.
    pub polls: u64,
    /// When its last poll began or ended, ns since boot; `None` if that was not recorded. A task that was never polled
    /// is there since it was made.
    pub since_ns: Option<u64>,
    /// Whether the poll that it is in has given its place as a worker to another thread.
    pub is_off_worker: bool,
    /// Whether that time is exact. Otherwise it may be too early.
    pub is_since_exact: bool,
    /// The thread that polls it, or polled it last.
    pub thread: Option<ThreadId>,
    /// The task whose poll polls it, or did so last, if it is part of another task.
    pub outer: Option<ThreadId>,
    pub counts_wakes: bool,
    /// How often it was woken since its last poll began, if wakes are counted.
    pub wakes: u64,
    /// When the first of these wakes was, ns since boot.
    pub woken_ns: Option<u64>,
    /// Whether it was in the same turn in an earlier reading. True for a dead process.
    pub is_steady: bool,
    /// How many could wake it when its last poll ended; `None` if that is not known.
    pub wakers: Option<u32>,
    /// Its futures that the program has named.
    pub futures: Vec<TaskFuture>,
    /// How many more futures there are, for which the record has no room.
    pub left_out: u64,
    pub waits: Vec<TaskWait>,
    /// Waits of its futures for the ends of threads or tasks.
    pub joins: Vec<TaskJoin>,
    /// The index of the named future whose wait for an end stands for the task.
    pub joins_in: Option<usize>,
    /// The locks that its futures hold.
    pub holds: Vec<TaskHold>,
}

/// A future within a task that the program has named, and that is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFuture {
    /// Its index in the table of the task.
    pub index: usize,
    /// Where it is awaited.
    pub location: LocationId,
    /// The index of the future that polled it first.
    pub outer: Option<usize>,
    /// Whether it was polled in the last poll of the task; `None` if that is not known.
    pub is_polled: Option<bool>,
}

/// A wait of a future of a task: for a lock, or for something that nobody holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskWait {
    pub wait: Wait,
    /// Whether the future that waits was polled in the last poll of the task; `None` if that is not known.
    pub is_polled: Option<bool>,
    /// Whether it was polled with the task's own waker.
    pub is_direct: bool,
    /// Whether it waits for a lock, which somebody holds.
    pub is_for_lock: bool,
    /// The index of the named future that it is part of.
    pub future: Option<usize>,
    /// The index of its entry in the held-lock table.
    pub entry: u8,
}

/// A wait of a future of a task for the end of a thread or task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskJoin {
    /// Whether the future that waits was polled in the last poll of the task; `None` if that is not known.
    pub is_polled: Option<bool>,
    /// Whether it was polled with the task's own waker.
    pub is_direct: bool,
}

/// A lock that a future of a task holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskHold {
    pub lock: LockId,
    pub hold: Hold,
    /// The index of the named future that it is part of.
    pub future: Option<usize>,
}

impl TaskFacts {
    /// A task of an executor with two workers, suspended since then, that nobody has woken and one can wake.
    #[cfg(test)]
    pub(crate) fn suspended(number: u32, since_ns: u64) -> TaskFacts {
        TaskFacts {
            number,
            runtime: Some(Runtime { number: 1, workers: 2 }),
            polls: 3,
            since_ns: Some(since_ns),
            is_since_exact: true,
            counts_wakes: true,
            is_steady: true,
            wakers: Some(1),
            ..TaskFacts::default()
        }
    }

    pub fn future(&self, index: usize) -> Option<&TaskFuture> {
        self.futures.iter().find(|future| future.index == index)
    }

    /// Whether it is a part of another task, or of what nobody recorded, and no executor polls it by itself.
    pub fn is_part(&self) -> bool {
        self.kind == TaskKind::Async
            && !self.is_local
            && self.runtime.is_none_or(|runtime| runtime.workers == 0)
    }

    /// Whether it is a request: a part whose name says what kind of task it is.
    pub fn is_request(&self) -> bool {
        self.is_of_kind && self.is_part()
    }

    /// Whether the task is suspended, and nobody has woken it.
    pub fn is_asleep(&self) -> bool {
        !self.is_polled && self.is_steady && self.wakes == 0
    }

    /// Whether the task is suspended, and nothing but what its futures wait for can let it go on: nobody has woken it,
    /// and whoever can wake it keeps a waker for one of these waits. A time limit or another branch of a `select!`
    /// would keep one too. A wait that was not polled last does not count: it may have used up its waker, as one that
    /// was given the lock has.
    pub(crate) fn has_no_other_wakers(&self) -> bool {
        let direct = self.ways_to_wait().filter(|&way| way == (Some(true), true)).count();
        self.is_asleep() && self.wakers.is_some_and(|wakers| (1..=direct).contains(&(wakers as usize)))
    }

    /// How many of its futures that were polled last wait.
    pub(crate) fn polled_waits(&self) -> usize {
        self.ways_to_wait().filter(|(is_polled, _)| *is_polled != Some(false)).count()
    }

    /// For each wait: whether it was polled last, and whether with the task's own waker.
    fn ways_to_wait(&self) -> impl Iterator<Item = (Option<bool>, bool)> {
        let joins = self.joins.iter().map(|join| (join.is_polled, join.is_direct));
        self.waits.iter().map(|wait| (wait.is_polled, wait.is_direct)).chain(joins)
    }

    /// Whether nothing but the end of this wait at an object that nobody holds can let the task go on.
    pub(crate) fn waits_only_at(&self, wait: &Wait) -> bool {
        self.waits_at(wait) && self.has_no_other_wakers()
    }

    /// Whether the task is suspended, and this wait at an object that nobody holds is the only one that is known. A
    /// time limit may wake it too.
    pub(crate) fn waits_at(&self, wait: &Wait) -> bool {
        let mut polled = self.waits.iter().filter(|own| own.is_polled != Some(false));
        let is_this = polled.next().is_some_and(|own| own.wait.lock == wait.lock && !own.is_for_lock);
        is_this && self.polled_waits() == 1 && self.is_asleep()
    }

    /// Whether it is suspended, and nobody had a waker of it when its last poll ended. What polls it may be another
    /// recorded task, which needs none.
    pub fn has_no_waker(&self) -> bool {
        self.is_asleep() && !self.is_new() && self.wakers == Some(0) && self.outer.is_none()
    }

    /// Whether a future waits that was polled in the present poll, which has not returned: for a moment, or because
    /// something in the poll blocks the thread until the future is ready, as `block_on` of another executor does.
    pub(crate) fn waits_within_poll(&self) -> bool {
        self.is_polled && self.kind == TaskKind::Async && self.ways_to_wait().any(|way| way.0 == Some(true))
    }

    /// Whether it exists and was never polled.
    pub fn is_new(&self) -> bool {
        self.polls == 0
    }

    /// Whether it was woken, or made, and waits for a thread that polls it.
    pub fn is_ready(&self) -> bool {
        !self.is_polled && (self.wakes > 0 || self.is_new())
    }

    /// When it became ready, ns since boot. `made_ns` is when it was made.
    pub(crate) fn ready_ns(&self, made_ns: u64) -> Option<u64> {
        if self.is_new() { Some(made_ns).filter(|&ns| ns > 0) } else { self.woken_ns }
    }

    /// Whether these are two named futures, neither of which is part of the other one.
    pub(crate) fn are_apart(&self, one: Option<usize>, other: Option<usize>) -> bool {
        let (Some(one), Some(other)) = (one, other) else { return false };
        let is_within = |inner, outer| self.outwards(Some(inner)).any(|future| future.index == outer);
        one != other && !is_within(one, other) && !is_within(other, one)
    }

    /// A named future, and those that it is part of, from the inside out.
    pub(super) fn outwards(&self, future: Option<usize>) -> impl Iterator<Item = &TaskFuture> {
        let first = future.and_then(|index| self.future(index));
        let outers = std::iter::successors(first, |future| self.future(future.outer?));
        // A damaged table may have a circle.
        outers.take(self.futures.len())
    }

    /// Whether a named future, or one that it is part of, was not polled in the last poll.
    pub fn is_left_out(&self, future: Option<usize>) -> bool {
        self.outwards(future).any(|future| future.is_polled == Some(false))
    }
}
