//! Locks as values: which thread holds or waits for which lock, and what each thread did with its locks.
//!
//! It defines what `build` makes of a snapshot, and what `findings` and `report` read; `lock`, `hold`, `thread_locks`
//! and `step` have the parts. Nothing is guessed: what is not known is `None`, absent, or counted.

use std::collections::HashSet;

use foldhash::HashMap;
use read_rip_evidence::runtimes::{InnerWait, Runtime};
use read_rip_ring::IncidentKind;

use super::tokio_tasks::{PoolAwaits, UsedUpPermits};
use super::{
    AwaitCircle, EndCircle, FormerClients, Halt, Hold, Knot, LastCall, Lock, LostLock, OnlyHelper,
    StoppedPartners, TaskFacts, ThreadLocks, Unserved,
};
use crate::locations::LocationId;
use crate::threads::ThreadState;

/// An index into [`LockModel::locks`].
pub type LockId = usize;
/// An index into [`LockModel::threads`].
pub type ThreadId = usize;

/// All locks and threads of a ring at one moment, with the known history.
#[derive(Debug, Default)]
pub struct LockModel {
    /// Every lock that an event or an entry of a held-lock table names.
    pub locks: Vec<Lock>,
    /// Every slot that was ever used, by process and thread id.
    pub threads: Vec<ThreadLocks>,
    /// The process that made the ring. Other processes in it are forked children.
    pub pid: u32,
    /// Whether the process is dead, so that nothing can change any more.
    pub is_final: bool,
    /// The time of the reading, ns since boot. For a dead process, the time of its end, or the last moment at which it
    /// is known to have lived.
    pub now_ns: Option<u64>,
    /// Whether `now_ns` is only the last moment at which the process is known to have lived. Lengths of time up to
    /// `now_ns` are lower bounds then.
    pub is_end_unknown: bool,
    /// The number of threads of the living process that have recorded nothing; `None` if its threads are not known.
    pub unrecorded: Option<usize>,
    /// For a living process, the time between an earlier reading and this one, ns.
    pub window_ns: Option<u64>,
    /// Whether words that were recorded between the two readings are not known; false if there was one reading.
    pub has_lost_between: bool,
    /// Whether the program has progress marks.
    pub has_progress_sites: bool,
    /// Processes with threads that hold more locks than their tables have room for.
    pub full: HashSet<u32>,
    /// The number of acquisitions so far that found no free entry in their thread's held-lock table.
    pub held_overflows: u64,
    /// The number of releases by threads other than the holder that could not be recorded in the holder's table.
    pub releases_unmatched: u64,
    /// The number of threads that did not record.
    pub threads_refused: u64,
    /// How many of its threads are tasks, those that have ended included.
    pub tasks: usize,
    /// The number of tasks that have no slot.
    pub tasks_refused: u64,
    /// The number of slots that were given to other threads. The histories of their previous owners are lost.
    pub slots_reused: u64,
    /// Calls on locks that failed, or that are forbidden.
    pub incidents: Vec<LockIncident>,
    /// Forked processes that have ended. The locks that they held are ignored.
    pub ended: HashSet<u32>,
    /// What keeps threads from running that wait for no other thread.
    pub halts: Vec<Halt>,
    /// Locks in shared memory whose owners have ended.
    pub lost_locks: Vec<LostLock>,
    /// Threads of several processes that wait for one another.
    pub knots: Vec<Knot>,
    /// Processes each of which alone can end waits.
    pub only_helpers: Vec<OnlyHelper>,
    /// Threads that wait for processes which do not run.
    pub stopped_partners: Vec<StoppedPartners>,
    /// Goroutines that wait for mutexes which only others of them are known to have.
    pub inner_waits: Vec<InnerWait>,
    /// Tasks that nobody recorded and that wait for one another's ends.
    pub end_circles: Vec<EndCircle>,
    /// Tasks that nobody recorded and that await locks which others of them hold.
    pub await_circles: Vec<AwaitCircle>,
    /// The executor that the program has if no thread is known that polls its tasks, because functions have no names.
    pub hidden_executor: Option<&'static str>,
    /// Whether the memory says where tasks are suspended that nobody recorded.
    pub knows_awaits: bool,
    /// Tasks that await objects of a pool, by the memory.
    pub pool_awaits: Option<PoolAwaits>,
    /// Tasks that hold permits and await more, by the memory.
    pub used_up_permits: Vec<UsedUpPermits>,
    /// What waits in the connections of a process that polls tasks.
    pub unserved: Unserved,
    /// Connections of a process that polls tasks, and listens no more where they came in.
    pub former_clients: Option<FormerClients>,
    /// The last calls of threads that run without pause.
    pub last_calls: HashMap<ThreadId, LastCall>,
    /// The threads about which the kernel was asked, by their ids.
    pub seen: HashMap<u32, ThreadId>,
    /// The runtime of a language that the program has, if something of it may be stuck that is not in this model.
    pub runtime: Option<Runtime>,
    /// The forked child of which that is so; `None`: the process itself.
    pub runtime_pid: Option<u32>,
}
impl LockModel {
    /// Whether anything of it was recorded, and not only seen by the kernel and in memory.
    pub fn is_recorded(&self) -> bool {
        self.threads.iter().any(|thread| thread.slot.is_some())
    }

    /// What a thread or task holds, and is not only presumed to.
    pub fn certain_holds<'a>(&'a self, thread: &'a ThreadLocks) -> impl Iterator<Item = &'a Hold> {
        thread.holds.iter().filter(|hold| !self.locks[hold.lock].is_holder_presumed())
    }

    /// Whether the record has all holders of a lock: each use of the lock is that of a wrapper, and no thread or table
    /// is known to have lacked room.
    pub fn has_all_holds_of(&self, lock: LockId) -> bool {
        let of = &self.locks[lock];
        of.nature.is_wrapped && self.threads_refused == 0 && !self.full.contains(&of.pid)
    }

    /// Whether nobody is known to hold a lock, and only futures of tasks wait for it. If anybody who holds locks
    /// records it, a fair lock belongs to the first in line then. Another one is free, and the first in line was told
    /// so. The task has to be polled.
    pub fn is_for_next_in_line(&self, lock: LockId) -> bool {
        let of = &self.locks[lock];
        self.threads_refused == 0 && of.has_only_futures_in_line() && !self.full.contains(&of.pid)
    }

    /// The task that a thread polls. A task that is polled within another one says more than that one.
    pub fn polled_by(&self, thread: ThreadId) -> Option<ThreadId> {
        let facts = |id: ThreadId| self.threads[id].task.as_deref();
        let is_polled = |task: &TaskFacts| task.is_polled && task.thread == Some(thread);
        let polled: Vec<ThreadId> = (0..self.threads.len())
            .filter(|&id| self.threads[id].state == ThreadState::Present && facts(id).is_some_and(is_polled))
            .collect();
        let outer = |id: ThreadId| facts(id).and_then(|task| task.outer);
        polled.iter().copied().find(|&id| polled.iter().all(|&other| outer(other) != Some(id)))
    }

    /// Whether there is a task, which may have ended.
    pub fn has_tasks(&self) -> bool {
        self.tasks > 0
    }

    /// The threads of the process that exist, without tasks.
    pub fn present(&self) -> impl Iterator<Item = (ThreadId, &ThreadLocks)> {
        let threads = self.threads.iter().enumerate().filter(|(_, thread)| thread.task.is_none());
        threads.filter(|(_, thread)| thread.pid == self.pid && thread.state == ThreadState::Present)
    }
}
/// A call on a lock that failed, or that is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockIncident {
    pub kind: IncidentKind,
    /// How often it happened at this location.
    pub count: u32,
    /// The thread that called first; `None` if its slot has another owner now.
    pub thread: Option<ThreadId>,
    pub tid: u32,
    /// The lock of the first call.
    pub lock: LockId,
    pub location: LocationId,
    /// When the first call was, ns since boot; `None` if that is not known.
    pub at_ns: Option<u64>,
}
