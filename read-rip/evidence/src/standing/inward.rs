//! What threads do within a runtime that native evidence cannot judge.

use super::Standings;
use crate::runtimes::{InnerDoing, Runtime};
use crate::target::{RunState, Task};
use crate::waits::{FutexWait, Owner, PYTHON_LOCK, Role};

/// Who has waited for so long may not get a lock soon, although its holder goes on.
const LONG_NS: u64 = 10_000_000_000;

/// What a thread does within its runtime, so that native evidence does not tell whether it is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inward {
    /// It waits for a lock of the language, which does not store its owner, without a time limit.
    WaitsForLock,
    /// It runs an event loop. The tasks of the loop are not seen.
    RunsLoop,
}

/// Whether a thread waits for a lock of its language.
pub(super) fn is_for_inner_lock(wait: &FutexWait) -> bool {
    wait.construct.is_some_and(|of| of.role == Role::Lock && of.name == PYTHON_LOCK)
}

impl Standings {
    /// What a thread does within its runtime; `None` if native evidence says it all, or if the thread moves.
    pub fn inward(&self, thread: usize) -> Option<Inward> {
        let (task, standing) = (&self.target.tasks[thread], &self.threads[thread]);
        let interior = self.interior.as_ref()?;
        let doing = interior.thread(task.own_tid)?.doing;
        if standing.is_still == Some(false) {
            return None;
        }
        // A thread that holds the lock, and runs or is ready to, soon releases it.
        let is_about_to_get = |wait: &FutexWait| {
            let holder = interior.holder(wait.futex).map(|hold| hold.tid);
            let is_ready = |task: &Task| holder == Some(task.own_tid) && task.state == RunState::Running;
            standing.asleep_ns.is_none_or(|asleep_ns| asleep_ns < LONG_NS)
                && self.target.tasks.iter().any(is_ready)
        };
        let waits_for_lock = || {
            let wait = standing.wait.as_ref().filter(|wait| !wait.is_timed);
            wait.is_some_and(|wait| {
                is_for_inner_lock(wait) && !matches!(wait.owner, Owner::Tid(_)) && !is_about_to_get(wait)
            })
        };
        match doing {
            Some(InnerDoing::EventLoop) => Some(Inward::RunsLoop),
            Some(InnerDoing::WaitsForOthers) => None,
            None => waits_for_lock().then_some(Inward::WaitsForLock),
        }
    }

    /// The runtime, if something of it is not seen that may be stuck.
    pub fn unseen(&self) -> Option<Runtime> {
        let runtime = self.runtime?;
        let is_inward = || (0..self.threads.len()).any(|thread| self.inward(thread).is_some());
        (!self.understands_runtime() || is_inward()).then_some(runtime)
    }

    /// Whether all that may be stuck within the runtime is known to wait in it.
    pub fn understands_runtime(&self) -> bool {
        self.interior.is_some() && self.runtime == Some(Runtime::Python)
    }
}
