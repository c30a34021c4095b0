//! Tasks of tokio: values.

use serde::{Deserialize, Serialize};

use super::places::{AwaitChain, AwaitedLock, HeldLock, TokioLock};

/// What the memory of a process says of the tasks of tokio.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokioTasks {
    /// The tasks. Those of one runtime follow one another.
    pub tasks: Vec<TokioTask>,
    /// The functions that they run, each once.
    pub functions: Vec<PolledFunction>,
    /// How many runtimes, and local sets, they are of.
    pub runtimes: usize,
    /// How many more tasks there are: those that ended or began meanwhile, or too many to look at.
    pub unread: usize,
    /// Where they are suspended, each once. Empty if no debug information tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<AwaitChain>,
    /// The locks of tokio that they hold and await.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<TokioLock>,
    /// How many suspended tasks were not looked into, because that took too long.
    #[serde(default)]
    pub unplaced: usize,
    /// The time between the two readings of them, ns; `None` if there was one, or if they were close to one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ns: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokioTask {
    /// The number that tokio has given it.
    pub id: u64,
    /// The function that it runs: an index of [`TokioTasks::functions`].
    pub function: usize,
    pub stage: TaskStage,
    /// Whether it was suspended in both readings, and nothing of it had changed; `None` if there was one, or if they
    /// were close to one another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_still: Option<bool>,
    /// Whether its `JoinHandle` exists.
    pub has_handle: bool,
    /// How many wakers and abort handles of it exist. Nobody without one of them can make it go on.
    pub wakers: u64,
    /// The task that its end wakes: an index of [`TokioTasks::tasks`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wakes: Option<usize>,
    /// Where it is suspended: an index of [`TokioTasks::chains`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<AwaitedLock>,
    /// The guards of tokio's locks that it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<HeldLock>,
    /// Where it is in memory, and what is there.
    #[serde(skip)]
    pub(super) address: u64,
    #[serde(skip)]
    pub(super) content: u64,
    #[serde(skip)]
    pub(super) trailer: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStage {
    Polled,
    /// It is in a queue, to be polled.
    Ready,
    /// It waits to be woken.
    #[default]
    Suspended,
    /// It was aborted, and ends with its next poll.
    Aborted,
    Ended,
}

/// A function that tasks run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolledFunction {
    /// Where tokio's function begins that polls these tasks.
    pub address: u64,
    /// The program's function, demangled; `None` if the symbols do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl TokioTask {
    /// The same task has the same one in all readings.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.address, self.id)
    }

    /// Whether nothing of it has changed.
    pub(super) fn is_same_as(&self, other: &TokioTask) -> bool {
        (self.identity(), self.content, self.stage) == (other.identity(), other.content, other.stage)
    }
}

impl TokioTasks {
    /// The name of the function that a task runs.
    pub fn name(&self, task: &TokioTask) -> Option<&str> {
        self.functions.get(task.function)?.name.as_deref()
    }

    /// Whether all indices in it lead somewhere. A saved ring may contain anything.
    pub fn is_consistent(&self) -> bool {
        let leads = |task: &TokioTask| {
            task.function < self.functions.len() && task.wakes.is_none_or(|at| at < self.tasks.len())
        };
        self.tasks.iter().all(leads) && self.places_are_consistent()
    }

    /// The tasks, each of which only the end of the next one can make go on, and of the last one that of the first:
    /// they stand still, are suspended, and the one waker of each is where the end of the next one takes it from.
    pub fn circles(&self, is_final: bool) -> Vec<Vec<usize>> {
        let is_stuck = |at: usize| {
            let task = &self.tasks[at];
            let is_still = task.is_still.unwrap_or(is_final);
            task.stage == TaskStage::Suspended && is_still && task.wakers == 1
        };
        // 0: not visited, else the walk that has visited it.
        let mut visited = vec![0; self.tasks.len()];
        let mut circles = Vec::new();
        for begin in 0..self.tasks.len() {
            let (walk, mut at) = (begin + 1, begin);
            while visited[at] == 0 && is_stuck(at) {
                visited[at] = walk;
                let Some(next) = self.tasks[at].wakes else { break };
                at = next;
            }
            if visited[at] != walk || self.tasks[at].wakes.is_none() {
                continue;
            }
            // This walk has come back to `at`, unless it ended there.
            let mut circle = vec![at];
            let mut next = self.tasks[at].wakes;
            while let Some(member) = next.filter(|&member| member != at && visited[member] == walk) {
                circle.push(member);
                next = self.tasks[member].wakes;
            }
            if next == Some(at) {
                // The end of each wakes the one before it.
                circle.reverse();
                circles.push(circle);
            }
        }
        circles
    }
}
