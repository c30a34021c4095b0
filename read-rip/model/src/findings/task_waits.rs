//! What differs for tasks in the graph of waits: who can let a task go on, locks that a future stands in line for
//! without being polled, and threads that are blocked when a task needs them.
//!
//! `deadlock` has the graph. Nothing here searches for cycles.
//!
//! # When the wait of a task is certain
//!
//! A task may wait in several places at once, and the record knows the locks alone: a time limit or another branch of a
//! `select!` may wake it too. But whoever can wake a task keeps a clone of its waker. If there are no more clones than
//! futures that wait for locks, each polled last and with the task's own waker, then only these locks can wake it
//! ([`TaskFacts::has_no_other_wakers`]). The wait of a task for one lock is certain then.
//!
//! # A future that is left out
//!
//! A lock that nobody holds, and for which tasks wait, was given to the first in line. If that is a future of a task
//! which was not polled in the task's last poll, and nobody has woken the task since, then the lock is as good as held
//! by this task: only its own code can poll the future. The first in line is the wait that began first.
//!
//! # A task that nobody can poll
//!
//! A suspended task goes on only if a thread that may polls it: a worker of its executor, for most (`pollers`). If each
//! of these threads waits for a lock, the task waits for all of them to return, or for one: an edge to each poll is a
//! premise of a deadlock only if all of them are part of it, which `deadlock` checks.

use super::{SuspendedFact, View};
use crate::locks::{
    Lock, LockId, TaskFacts, TaskPlace, TaskWait, ThreadId, ThreadLocks, Wait, task_place, task_since,
};
use crate::threads::ThreadState;

/// The facts of a task that exists.
pub(super) fn task_of(thread: &ThreadLocks) -> Option<&TaskFacts> {
    thread.task.as_deref().filter(|_| thread.state == ThreadState::Present)
}

/// Where a task is suspended, and for how long; `None` if it is not, or somebody has woken it.
pub(super) fn suspended(view: &View<'_>, thread: ThreadId) -> Option<SuspendedFact> {
    let thread = &view.now.threads[thread];
    let task = task_of(thread).filter(|task| task.is_asleep() && !task.is_new())?;
    let (since_ns, is_at_most) = task_since(thread, task);
    let TaskPlace { location, is_await, .. } = task_place(thread, task);
    Some(SuspendedFact { location, is_await, for_ns: view.ago_ns(since_ns), is_at_most })
}

/// The wait that is first in line for a lock that nobody holds, if it is of a future that its task leaves out.
pub(super) fn left_out(view: &View<'_>, lock: LockId) -> Option<Wait> {
    let model = view.now;
    let of: &Lock = &model.locks[lock];
    if !model.is_for_next_in_line(lock) || view.was_held(lock) {
        return None;
    }
    // The first in line. If a time is not known, only waits of one task have an order: that of its table.
    let mut first: Option<TaskWait> = None;
    let mut tasks: Vec<ThreadId> = of.waiters.iter().map(|wait| wait.thread).collect();
    tasks.sort_unstable();
    tasks.dedup();
    let is_one = tasks.len() == 1;
    for &task in &tasks {
        let facts = task_of(&model.threads[task])?;
        for wait in facts.waits.iter().filter(|wait| wait.is_for_lock && wait.wait.lock == lock) {
            let is_earlier = match (wait.wait.since_ns, first.map(|first| first.wait.since_ns)) {
                (_, None) => true,
                (Some(since), Some(Some(first))) => since < first,
                _ if is_one => false,
                // Nobody knows who was first.
                _ => return None,
            };
            if is_earlier {
                first = Some(*wait);
            }
        }
    }
    let wait = first?;
    let facts = task_of(&model.threads[wait.wait.thread])?;
    let is_left = wait.is_polled == Some(false) || facts.is_left_out(wait.future);
    // The lock's last holder has woken the first in line. Where wakes are not counted, only a second reading shows that
    // the task did not go on.
    let is_woken = !facts.counts_wakes && model.is_final;
    (facts.is_asleep() && !is_woken && is_left && wait.wait.is_steady).then_some(wait.wait)
}

/// Whether something else than the end of its wait may let a task go on, or that is not known. `is_of_future`: it waits
/// in a future.
pub(super) fn has_other_wakers(thread: &ThreadLocks, is_of_future: bool) -> bool {
    let is_alone = |task: &TaskFacts| task.has_no_other_wakers() && task.polled_waits() == 1;
    is_of_future && !thread.task.as_deref().is_some_and(is_alone)
}
