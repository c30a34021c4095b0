//! Where tasks of tokio are suspended, and which of its locks they hold and await: values.

use serde::{Deserialize, Serialize};

use super::values::{TaskStage, TokioTask, TokioTasks};

/// Async functions, each of which awaits the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AwaitChain {
    /// The functions, outermost first.
    pub steps: Vec<AwaitStep>,
    /// The type of what the last one awaits; empty if that is not known.
    pub awaited: String,
    /// Whether what it awaits may have futures inside that are not known: one behind a `dyn`, or a closure that polls
    /// several, as `select!` makes.
    pub is_open: bool,
}

/// An async function, and where it is suspended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AwaitStep {
    /// The function, as symbols call it.
    pub function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokioLock {
    pub address: u64,
    pub kind: TokioLockKind,
    /// How many permits are free.
    pub free: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokioLockKind {
    Mutex,
    RwLock,
    Semaphore,
    /// Something else, such as a channel.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitedLock {
    /// The lock: an index of [`TokioTasks::locks`].
    pub lock: usize,
    /// How many permits it needs yet.
    pub permits: u64,
    /// Whether nothing else makes the task go on: each of its functions awaits the next one alone.
    pub is_alone: bool,
}

/// A guard or a permit that a suspended function has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldLock {
    /// The lock: an index of [`TokioTasks::locks`].
    pub lock: usize,
    pub variable: String,
    /// The function: an index of [`AwaitChain::steps`].
    pub step: usize,
    /// Whether nobody else can have the lock meanwhile.
    pub is_exclusive: bool,
    /// Whether the guard lives for certain. The compiler leaves the bytes of a guard in place that was moved or dropped
    /// before.
    pub is_certain: bool,
}

/// A semaphore without permits, and the tasks that hold some and await more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedUp {
    /// The semaphore: an index of [`TokioTasks::locks`].
    pub lock: usize,
    /// The tasks: indices of [`TokioTasks::tasks`].
    pub tasks: Vec<usize>,
    /// How many tasks await permits: these, and others.
    pub awaiting: usize,
}

impl TokioTasks {
    /// Where a task is suspended.
    pub fn chain(&self, task: &TokioTask) -> Option<&AwaitChain> {
        self.chains.get(task.chain?)
    }

    /// What a task holds of a lock; the most certain one.
    pub fn held<'a>(&self, task: &'a TokioTask, lock: usize) -> Option<&'a HeldLock> {
        task.holds.iter().filter(|held| held.lock == lock).max_by_key(|held| held.is_certain)
    }

    /// The tasks that are known to hold a lock.
    pub fn holders(&self, lock: usize) -> impl Iterator<Item = (usize, &HeldLock)> {
        let tasks = self.tasks.iter().enumerate();
        tasks.filter_map(move |(at, task)| Some((at, self.held(task, lock)?)))
    }

    /// Whether all indices of places and locks lead somewhere.
    pub(super) fn places_are_consistent(&self) -> bool {
        self.tasks.iter().all(|task| {
            let steps = self.chain(task).map_or(0, |chain| chain.steps.len());
            task.chain.is_none_or(|chain| chain < self.chains.len())
                && task.awaits.iter().all(|awaited| awaited.lock < self.locks.len())
                && task.holds.iter().all(|held| held.lock < self.locks.len() && held.step < steps)
        })
    }

    /// The circles of tasks that stand still, are suspended, await a mutex or a lock for readers and writers and
    /// nothing else, and cannot get it before the next one gives it back, which holds it for certain. After the last
    /// task of a circle comes the first.
    pub fn lock_circles(&self, is_final: bool) -> Vec<Vec<usize>> {
        let mut holders: Vec<Vec<(usize, &HeldLock)>> = vec![Vec::new(); self.locks.len()];
        for (at, task) in self.tasks.iter().enumerate() {
            task.holds
                .iter()
                .filter(|held| held.is_certain)
                .for_each(|held| holders[held.lock].push((at, held)));
        }
        let next = |at: usize| -> Option<usize> {
            let task = &self.tasks[at];
            let is_still = task.stage == TaskStage::Suspended && task.is_still.unwrap_or(is_final);
            let awaited = task.awaits.as_ref().filter(|awaited| awaited.is_alone && is_still)?;
            self.blocker(awaited, &holders[awaited.lock])
        };
        // 0: not visited, else the walk that has visited it.
        let mut visited = vec![0; self.tasks.len()];
        let mut circles = Vec::new();
        for begin in 0..self.tasks.len() {
            let (walk, mut at) = (begin + 1, begin);
            let mut path = Vec::new();
            while visited[at] == 0 {
                visited[at] = walk;
                path.push(at);
                let Some(after) = next(at) else { break };
                at = after;
            }
            // This walk has come back to a task of it, unless it ended there.
            let first = path.iter().position(|&member| member == at);
            let is_closed = path.last().and_then(|&last| next(last)) == Some(at);
            circles.extend(first.filter(|_| is_closed).map(|first| path.split_off(first)));
        }
        circles
    }

    /// The semaphores without permits whose known holders all await more of them. Nothing of these tasks changed
    /// between two readings.
    pub fn used_up(&self, is_final: bool) -> Vec<UsedUp> {
        let is_empty = |lock: &TokioLock| lock.kind == TokioLockKind::Semaphore && lock.free == 0;
        let used_up = |lock: usize| {
            let awaits = |task: &TokioTask| task.awaits.as_ref().is_some_and(|awaited| awaited.lock == lock);
            let is_stuck = |task: &TokioTask| awaits(task) && task.is_still.unwrap_or(is_final);
            let (stuck, others): (Vec<_>, Vec<_>) =
                self.holders(lock).partition(|&(at, _)| is_stuck(&self.tasks[at]));
            let tasks = stuck.iter().filter(|(_, held)| held.is_certain).map(|&(at, _)| at).collect();
            let awaiting = self.tasks.iter().filter(|task| awaits(task)).count();
            others.is_empty().then_some(UsedUp { lock, tasks, awaiting })
        };
        let all = self.locks.iter().enumerate().filter(|(_, lock)| is_empty(lock));
        all.filter_map(|(at, _)| used_up(at)).filter(|of| !of.tasks.is_empty()).collect()
    }

    /// A holder without which nobody gets what is awaited; among readers, one that awaits a lock itself.
    fn blocker(&self, awaited: &AwaitedLock, holders: &[(usize, &HeldLock)]) -> Option<usize> {
        let lock = &self.locks[awaited.lock];
        // A reader waits for a writer, and a writer for all.
        let blocks = |held: &HeldLock| match lock.kind {
            TokioLockKind::Mutex => lock.free == 0,
            TokioLockKind::RwLock => held.is_exclusive || awaited.permits > 1,
            TokioLockKind::Semaphore | TokioLockKind::Other => false,
        };
        let blocking = || holders.iter().filter(|(_, held)| blocks(held));
        // Two that hold it alone contradict one another.
        let first = blocking().find(|(_, held)| held.is_exclusive).map(|of| of.0);
        if blocking().any(|&(at, held)| held.is_exclusive && Some(at) != first) {
            return None;
        }
        blocking().max_by_key(|of| self.tasks[of.0].awaits.is_some()).map(|of| of.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks, the lock that each awaits, and those that each holds for certain.
    fn tasks(all: &[(usize, &[usize])], kind: TokioLockKind) -> TokioTasks {
        let lock = |at: u64| TokioLock { address: 64 * at, kind, free: 0 };
        let held = |&lock: &usize| HeldLock {
            lock,
            variable: String::new(),
            step: 0,
            is_exclusive: true,
            is_certain: true,
        };
        let task = |(id, &(awaited, holds)): (usize, &(usize, &[usize]))| TokioTask {
            id: id as u64,
            is_still: Some(true),
            wakers: 1,
            awaits: Some(AwaitedLock { lock: awaited, permits: 1, is_alone: true }),
            holds: holds.iter().map(held).collect(),
            ..TokioTask::default()
        };
        TokioTasks {
            tasks: all.iter().enumerate().map(task).collect(),
            locks: (0..4).map(lock).collect(),
            ..TokioTasks::default()
        }
    }

    #[test]
    fn tasks_that_hold_what_they_await_are_circles() {
        let circles = |all: &[(usize, &[usize])]| tasks(all, TokioLockKind::Mutex).lock_circles(false);
        assert_eq!(circles(&[(1, &[0]), (0, &[1])]), [[0, 1]]);
        assert_eq!(circles(&[(0, &[0])]), [[0]]);
        // The first task leads into the circle, and is not part of it.
        assert_eq!(circles(&[(1, &[]), (2, &[1]), (1, &[2]), (0, &[0])]), [vec![1, 2], vec![3]]);
        assert_eq!(circles(&[(1, &[0]), (2, &[1])]), [[0; 0]; 0]);
        // Two hold one mutex: that cannot be.
        assert_eq!(circles(&[(1, &[0]), (0, &[1]), (2, &[1])]), [[0; 0]; 0]);
    }

    #[test]
    fn what_may_go_on_is_in_no_circle() {
        let changes: [fn(&mut TokioTasks); 7] = [
            |all| all.tasks[1].is_still = Some(false),
            |all| all.tasks[1].stage = TaskStage::Ready,
            |all| all.tasks[0].holds[0].is_certain = false,
            |all| all.tasks[0].awaits.iter_mut().for_each(|of| of.is_alone = false),
            |all| all.locks[1].free = 1,
            |all| all.locks[1].kind = TokioLockKind::Semaphore,
            |all| all.locks[1].kind = TokioLockKind::Other,
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut all = tasks(&[(1, &[0]), (0, &[1])], TokioLockKind::Mutex);
            change(&mut all);
            assert_eq!(all.lock_circles(false), [[0; 0]; 0], "{at}");
        }
    }

    #[test]
    fn readers_let_one_another_pass() {
        let mut all = tasks(&[(1, &[0]), (0, &[1])], TokioLockKind::RwLock);
        assert_eq!(all.lock_circles(false).len(), 1);
        all.tasks.iter_mut().for_each(|task| task.holds[0].is_exclusive = false);
        assert_eq!(all.lock_circles(false), [[0; 0]; 0], "both want to read what is read");
        let wants_to_write =
            |task: &mut TokioTask| task.awaits.iter_mut().for_each(|of| of.permits = 1 << 29);
        all.tasks.iter_mut().for_each(wants_to_write);
        assert_eq!(all.lock_circles(false).len(), 1);
    }

    #[test]
    fn a_semaphore_is_used_up_if_all_who_have_it_await_it() {
        let used_up = |change: fn(&mut TokioTasks), is_final| {
            let mut all = tasks(&[(0, &[0]), (0, &[0]), (0, &[])], TokioLockKind::Semaphore);
            change(&mut all);
            all.used_up(is_final)
        };
        let two = [UsedUp { lock: 0, tasks: vec![0, 1], awaiting: 3 }];
        assert_eq!(used_up(|_| {}, false), two);
        assert_eq!(
            used_up(|all| all.tasks.iter_mut().for_each(|task| task.is_still = None), true),
            two,
            "a core"
        );
        let first = [UsedUp { tasks: vec![0], ..two[0].clone() }];
        assert_eq!(used_up(|all| all.tasks[1].holds[0].is_certain = false, false), first);
        let healthy: [fn(&mut TokioTasks); 6] = [
            |all| all.locks[0].free = 1,
            |all| all.locks[0].kind = TokioLockKind::Other,
            |all| all.tasks[1].awaits = None,
            |all| all.tasks[1].is_still = Some(false),
            |all| (all.tasks[1].awaits, all.tasks[1].holds[0].is_certain) = (None, false),
            |all| all.tasks.iter_mut().for_each(|task| task.holds.clear()),
        ];
        for (at, change) in healthy.into_iter().enumerate() {
            assert_eq!(used_up(change, false), [], "{at}");
        }
    }
}
