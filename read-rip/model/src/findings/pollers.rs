//! Which threads may poll a task, and polls that keep them.
//!
//! A task that is spawned onto an executor may be polled by each of its workers. The future of a `block_on`, or a task
//! of a `LocalSet`, is polled by one thread alone, which is no worker if the executor has several: it neither needs a
//! worker nor keeps one. A future that the program has made a task of by itself may be either, so nothing is concluded
//! from it.
//!
//! # Workers that were handed over
//!
//! A poll may hand its worker over to another thread, and go on (`block_in_place` of tokio). If more threads have
//! polled tasks of an executor than it has workers, that has happened, or several threads take turns at an executor of
//! one thread. Then nobody knows whether all workers are kept, and nothing is proven.

use foldhash::{HashMap, HashSet};
use read_rip_ring::{Runtime, TaskKind};

use super::View;
use super::task_waits::task_of;
use crate::locks::ThreadId;

/// The threads of which any one may poll a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Pollers {
    /// The workers of this executor of a process.
    Workers(u32, Runtime),
    /// One thread, which is no worker.
    Thread(ThreadId),
}

/// Tasks within tasks are followed so far: damaged slots may name one another.
const DEPTH_MAX: usize = 64;

impl Pollers {
    /// Those of a task; `None` if they are not known.
    pub(super) fn of(view: &View<'_>, task: ThreadId) -> Option<Pollers> {
        let mut at = task;
        for _ in 0..DEPTH_MAX {
            let facts = task_of(&view.now.threads[at])?;
            // What is part of another task is polled wherever that one is.
            let outer = facts.outer.filter(|&outer| task_of(&view.now.threads[outer]).is_some());
            match outer {
                Some(outer) => at = outer,
                None if facts.kind != TaskKind::Async => return None,
                None => {
                    let runtime = facts.runtime.filter(|runtime| runtime.workers > 0);
                    let workers = runtime.map(|runtime| Pollers::Workers(view.now.threads[at].pid, runtime));
                    let thread = facts.thread.filter(|_| facts.is_local).map(Pollers::Thread);
                    return workers.or(thread);
                }
            }
        }
        None
    }

    /// Whether these are the workers of an executor, and more threads have polled its tasks than it has workers.
    pub(super) fn are_overstaffed(self, view: &View<'_>) -> bool {
        let Pollers::Workers(pid, runtime) = self else { return false };
        view.memo.overstaffed.get_or_init(|| overstaffed(view)).contains(&(pid, runtime))
    }

    /// Those that the poll of a task by this thread keeps.
    pub(super) fn kept_by(
        view: &View<'_>,
        task: ThreadId,
        thread: ThreadId,
    ) -> impl Iterator<Item = Pollers> {
        let workers = Pollers::of(view, task).filter(|of| matches!(of, Pollers::Workers(..)));
        workers.into_iter().chain([Pollers::Thread(thread)])
    }

    /// How many threads that are.
    pub(super) fn count(self) -> usize {
        match self {
            Pollers::Workers(_, runtime) => runtime.workers as usize,
            Pollers::Thread(_) => 1,
        }
    }
}

/// The executors with more threads that have polled their tasks than workers.
fn overstaffed(view: &View<'_>) -> HashSet<(u32, Runtime)> {
    let mut threads: HashMap<(u32, Runtime), HashSet<ThreadId>> = HashMap::default();
    for (id, thread) in view.now.threads.iter().enumerate() {
        let poller = task_of(thread).and_then(|task| task.thread);
        if let (Some(poller), Some(Pollers::Workers(pid, runtime))) = (poller, Pollers::of(view, id)) {
            threads.entry((pid, runtime)).or_default().insert(poller);
        }
    }
    threads.retain(|(_, runtime), threads| threads.len() > runtime.workers as usize);
    threads.into_keys().collect()
}

/// Threads all of which are in polls that wait for a lock by blocking them.
#[derive(Debug)]
pub(super) struct Blocked {
    /// What blocks, and the thread that it blocks: the task that the thread polls, or the thread itself.
    pub(super) waits: Vec<(ThreadId, ThreadId)>,
    /// Whether no other thread can have taken over what they are for.
    pub(super) is_certain: bool,
}

/// Whose threads are all blocked, of those without which a task that holds a lock does not go on.
pub(super) fn blocked(view: &View<'_>) -> Vec<(Pollers, Blocked)> {
    let threads = &view.now.threads;
    let needed: HashSet<Pollers> = (0..threads.len()).filter_map(|id| needed(view, id)).collect();
    if needed.is_empty() {
        return Vec::new();
    }
    let mut waits: HashMap<Pollers, Vec<(ThreadId, ThreadId)>> = HashMap::default();
    for (id, thread) in threads.iter().enumerate() {
        if thread.wait.as_ref().is_none_or(|wait| wait.is_of_future || !wait.is_steady) {
            continue;
        }
        let mut add = |of: Pollers, blocked: ThreadId| {
            if needed.contains(&of) {
                waits.entry(of).or_default().push((id, blocked));
            }
        };
        match (&thread.task, task_of(thread).filter(|task| task.is_polled && task.is_steady)) {
            (None, _) => add(Pollers::Thread(id), id),
            (Some(_), Some(task)) => {
                let Some(worker) = task.thread else { continue };
                Pollers::kept_by(view, id, worker).for_each(|of| add(of, worker));
            }
            (Some(_), None) => {}
        }
    }
    let are_all = |(of, waits): &(Pollers, Vec<(ThreadId, ThreadId)>)| {
        waits.iter().map(|&(_, thread)| thread).collect::<HashSet<_>>().len() >= of.count()
    };
    let all = waits.into_iter().filter(are_all);
    all.map(|(of, waits)| (of, Blocked { waits, is_certain: !of.are_overstaffed(view) })).collect()
}

/// The threads without which a task does not go on: it is suspended, and holds a lock.
pub(super) fn needed(view: &View<'_>, task: ThreadId) -> Option<Pollers> {
    let thread = &view.now.threads[task];
    let of = task_of(thread).filter(|task| !task.is_polled && task.is_steady)?;
    let is_needed = !thread.holds.is_empty() && of.kind == TaskKind::Async;
    Pollers::of(view, task).filter(|_| is_needed)
}
