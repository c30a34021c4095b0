//! The condensed view of tasks: where they are suspended, and where they are polled.
//!
//! # Question
//!
//! What do all tasks wait for, in as few lines as possible?
//!
//! # Method
//!
//! Tasks are grouped by what they do and where. A suspended task is at the lock or object for which a future waits that
//! was polled last; else at the innermost named future that was polled last; else at its last mark; else where it was
//! made. The groups with the most tasks come first.
//!
//! Each request may have a channel of its own for the answer. So tasks that wait in one place for different channels,
//! or other things that nobody holds, are one group, unless these have names.
//!
//! # Blind spots
//!
//! A task that waits for something that is not recorded, such as a socket, and has no marks is where it was made.

use std::mem::{Discriminant, discriminant};

use foldhash::HashMap;
use read_rip_ring::{LockType, TaskKind};

use super::{
    Lock, LockId, LockModel, LockName, Object, TaskFacts, TaskFuture, TaskWait, ThreadId, ThreadLocks,
};
use crate::locations::LocationId;
use crate::threads::ThreadState;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskDoes {
    /// It is polled, or its call runs.
    Runs,
    /// It was woken, or made, and waits to be polled.
    Ready,
    /// It is suspended, and nobody has woken it.
    Suspended,
    Ended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaskPlace {
    /// The place in the source, if any is known.
    pub location: Option<LocationId>,
    pub object: Option<Object>,
    /// Whether it is the await. Otherwise it is the last mark before, or where the task was made.
    pub is_await: bool,
    /// Whether the place is only where the task was made.
    pub is_where_made: bool,
}

/// Tasks that do the same at the same place.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    pub kind: TaskKind,
    pub does: TaskDoes,
    pub place: TaskPlace,
    /// For which locks or objects they wait there. If there are several, nobody holds any of them.
    pub locks: Vec<LockId>,
    /// The tasks. The one that has been there longest is the first.
    pub tasks: Vec<ThreadId>,
}

pub fn task_does(thread: &ThreadLocks, task: &TaskFacts) -> TaskDoes {
    match () {
        () if thread.state != ThreadState::Present => TaskDoes::Ended,
        () if task.is_polled => TaskDoes::Runs,
        () if task.is_ready() => TaskDoes::Ready,
        () => TaskDoes::Suspended,
    }
}

/// Since when a task does what it does, ns since boot, and whether it may be shorter: the clock was read before.
pub fn task_since(thread: &ThreadLocks, task: &TaskFacts) -> (Option<u64>, bool) {
    match task_does(thread, task) {
        TaskDoes::Ready => (task.ready_ns(thread.claimed_ns), false),
        TaskDoes::Ended => (thread.exited_ns, false),
        TaskDoes::Runs | TaskDoes::Suspended => (task.since_ns, !task.is_since_exact),
    }
}

/// The awaits around the place of a task, from the outermost on, and the place. There are none if no await is known.
pub fn task_awaits(thread: &ThreadLocks, task: &TaskFacts) -> Vec<LocationId> {
    let place = task_place(thread, task);
    let Some(at) = place.location.filter(|_| place.is_await) else { return Vec::new() };
    let within = match place.object {
        Some(Object::End(_)) => task.joins_in,
        Some(object) => {
            let is_this = |own: &&TaskWait| Some(own.wait.lock) == object.lock() && own.wait.location == at;
            let of_wait = task.waits.iter().filter(is_this);
            of_wait.max_by_key(|own| own.is_polled != Some(false)).and_then(|own| own.future)
        }
        None => innermost(task).and_then(|future| future.outer),
    };
    let mut awaits = vec![at];
    awaits.extend(task.outwards(within).map(|future| future.location));
    awaits.reverse();
    awaits
}

/// The named future that was polled last and that no other such future is part of.
fn innermost(task: &TaskFacts) -> Option<&TaskFuture> {
    let polled = || task.futures.iter().filter(|future| future.is_polled != Some(false));
    let is_outer = |index| polled().any(|future| future.outer == Some(index));
    polled().find(|future| !is_outer(future.index))
}

pub fn task_place(thread: &ThreadLocks, task: &TaskFacts) -> TaskPlace {
    let at = |location| TaskPlace { location, ..TaskPlace::default() };
    let awaits = |location| TaskPlace { is_await: true, ..at(Some(location)) };
    if let Some(awaited) = thread.awaited()
        && let Some(location) = awaited.location()
    {
        return TaskPlace { object: Some(awaited.object()), ..awaits(location) };
    }
    if let Some(innermost) = innermost(task) {
        return awaits(innermost.location);
    }
    match thread.last {
        Some(last) => at(Some(last)),
        None => TaskPlace { is_where_made: true, ..at(task.made_at) },
    }
}

/// Whether there may be many like it, of which a reader need not know which is which.
fn is_one_of_many(lock: &Lock) -> bool {
    lock.nature.lock_type.is_unowned() && matches!(lock.name, LockName::Location(_) | LockName::None)
}

pub fn task_groups(model: &LockModel, is_wanted: impl Fn(ThreadId) -> bool) -> Vec<TaskGroup> {
    let mut groups: HashMap<(TaskDoes, TaskPlace, Discriminant<TaskKind>, LockType), TaskGroup> =
        HashMap::default();
    for (id, thread) in model.threads.iter().enumerate() {
        let Some(task) = thread.task.as_deref().filter(|_| is_wanted(id)) else { continue };
        let (does, mut place) = (task_does(thread, task), task_place(thread, task));
        // Each task of a group may wait for the end of another one.
        place.object = place.object.filter(|object| object.lock().is_some());
        let lock = place.object.and_then(Object::lock);
        let lock_type = lock.map_or(LockType::Unknown, |lock| model.locks[lock].nature.lock_type);
        let is_alike = lock.is_some_and(|lock| is_one_of_many(&model.locks[lock]));
        let key_place = if is_alike { TaskPlace { object: None, ..place } } else { place };
        let new = || TaskGroup { kind: task.kind, does, place, locks: Vec::new(), tasks: Vec::new() };
        let group = groups.entry((does, key_place, discriminant(&task.kind), lock_type)).or_insert_with(new);
        group.tasks.push(id);
        group.locks.extend(lock);
    }
    let mut groups: Vec<TaskGroup> = groups.into_values().collect();
    let since = |&id: &ThreadId| {
        let thread = &model.threads[id];
        let since_ns = thread.task.as_deref().and_then(|task| task_since(thread, task).0);
        (since_ns.unwrap_or(u64::MAX), id)
    };
    for group in &mut groups {
        group.tasks.sort_by_key(since);
        group.locks.sort_unstable();
        group.locks.dedup();
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(group.tasks.len()), group.does, group.tasks[0]));
    groups
}

#[cfg(test)]
mod tests {
    use super::super::{Join, Wait};
    use super::*;

    fn wait(lock: LockId, location: LocationId) -> Wait {
        Wait { lock, location, is_steady: true, is_of_future: true, ..Wait::default() }
    }

    fn task_wait(wait: Wait, future: usize, is_polled: bool) -> TaskWait {
        TaskWait {
            wait,
            is_polled: Some(is_polled),
            is_direct: true,
            is_for_lock: true,
            future: Some(future),
            entry: 0,
        }
    }

    /// A task that polled `serve` (10) and in it `save` (11), and not `log` (12), which is within `save`.
    fn task() -> (ThreadLocks, TaskFacts) {
        let mut facts = TaskFacts::suspended(7, 0);
        let future = |index, outer, is_polled| TaskFuture {
            index,
            location: 10 + index,
            outer,
            is_polled: Some(is_polled),
        };
        facts.futures = vec![future(0, None, true), future(1, Some(0), true), future(2, Some(1), false)];
        (ThreadLocks::unrecorded(1, 7, String::new()), facts)
    }

    #[test]
    fn the_awaits_of_a_task_lead_from_the_outermost_to_its_place() {
        let (mut thread, mut facts) = task();
        assert_eq!(task_awaits(&thread, &facts), [10, 11], "the innermost future that was polled");
        let join = Join { location: 30, is_steady: true, is_of_future: true, ..Join::default() };
        (thread.join, facts.joins_in) = (Some(Box::new(join)), Some(0));
        assert_eq!(task_awaits(&thread, &facts), [10, 30]);
        let own = wait(5, 20);
        thread.wait = Some(own);
        // The same wait in a future that was left out is not the one that stands for the task.
        facts.waits = vec![task_wait(own, 1, true), task_wait(own, 2, false)];
        assert_eq!(task_awaits(&thread, &facts), [10, 11, 20]);
        facts.waits.clear();
        assert_eq!(task_awaits(&thread, &facts), [20], "in which future it waits is not known");
    }

    #[test]
    fn a_task_without_a_known_await_has_none_and_a_circle_of_futures_ends() {
        let (mut thread, mut facts) = task();
        facts.futures[0].outer = Some(1);
        thread.wait = Some(wait(5, 20));
        facts.waits = vec![task_wait(wait(5, 20), 1, true)];
        assert_eq!(task_awaits(&thread, &facts), [11, 10, 11, 20]);
        facts.futures.clear();
        (thread.wait, thread.last) = (None, Some(40));
        assert!(task_awaits(&thread, &facts).is_empty());
        assert_eq!(task_place(&thread, &facts).location, Some(40));
    }
}
