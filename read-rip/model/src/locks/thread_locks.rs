//! A thread as values: what it holds, what it waits for, what it did.

use std::num::NonZeroU64;

use read_rip_evidence::standing::Inward;
use read_rip_evidence::waits::{LockManager, Trying, Worker};
use read_rip_ring::Position;
use serde::Serialize;

use super::{Hold, LockId, Peer, Steps, TaskFacts, ThreadId, Wait};
use crate::locations::LocationId;
use crate::threads::ThreadState;

/// What the kernel says of a thread, as far as analyses want to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which of the processes that were seen has it.
    pub process: u32,
    /// Its index among the threads of that process.
    pub index: usize,
    /// Where it stands in the program.
    pub place: Option<LocationId>,
    /// What it does.
    pub doing: Doing,
    /// Whether it stood still between two readings; `None` if there was one.
    pub is_still: Option<bool>,
    /// For how long it has not run, ns, at least, if it stood still; `None` if that is not known.
    pub asleep_ns: Option<NonZeroU64>,
    /// Whether its sleep ends by itself after a time.
    pub is_timed: bool,
    /// For how long it sleeps at most, ns, if its call has a time limit that is known.
    pub limit_ns: Option<NonZeroU64>,
    /// Whether it sleeps for a time and waits for no descriptor, or did so a moment before.
    pub is_at_timer: bool,
    /// Whether it is in a call that only lets time pass.
    pub is_in_pause: bool,
    /// Whether it waits for no other thread, and neither it nor any other such thread of its process comes to code that
    /// may wake a thread.
    pub wakes_nobody: bool,
    /// Whether it reads from a connection: who uses one waits for an answer, or for what one client wants.
    pub reads_connection: bool,
    /// Whether it has nothing to do, by the function of the library in which it waits, or by that of another thread.
    pub is_idle: bool,
    /// The job in which it waits, if all workers of its pool wait within jobs.
    pub job: Option<Job>,
    /// What it is for an executor of async tasks, as far as its stack says so.
    pub worker: Option<Worker>,
    /// What keeps the lock for which it waits, if that is a database.
    pub manager: Option<LockManager>,
    /// Whether it polls a task of tokio, and so no other one.
    pub is_in_poll: bool,
    /// Whether it asks the kernel for events of many descriptors.
    pub is_in_epoll: bool,
    /// Whether it waits within the runtime of its language, recorded or not.
    pub is_in_runtime: bool,
    /// What it does within the runtime of its language, if only that could judge it.
    pub inward: Option<Inward>,
    /// Whether it ran all the time between two readings, and did nothing that the kernel counts: it computes, or waits
    /// in a loop.
    pub runs_on: bool,
}

impl Seen {
    /// Whether it may wait for work, as the threads of a pool do that have none.
    pub fn may_wait_for_work(&self) -> bool {
        match self.doing {
            Doing::WaitsOutside => !self.is_in_pause && !self.reads_connection,
            Doing::WaitsInside | Doing::WaitsInSharedMemory | Doing::WaitsForData => true,
            // It does something for which it needs what it waits for.
            Doing::WaitsForLock
            | Doing::WaitsForThread
            | Doing::WaitsForCalls
            | Doing::WaitsForObject
            | Doing::WaitsForManagedLock
            | Doing::WaitsForChild
            | Doing::WaitsForProcess
            | Doing::WaitsForFileLock
            | Doing::WaitsToWrite
            | Doing::WaitsToOpen
            | Doing::WaitsToConnect
            | Doing::Kernel
            | Doing::Runs
            | Doing::Starves
            | Doing::Stopped
            | Doing::Unknown => false,
        }
    }
}

/// A job of a pool of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Where the function begins that runs the jobs of the pool.
    pub pool: u64,
    /// Where that function has called the job.
    pub at: LocationId,
}

/// What a thread did to condition variables, besides waiting.
#[derive(Clone, Debug, Default)]
pub struct ConditionCalls {
    /// The last signal of each condition variable that it signalled, as far as known.
    pub signals: Vec<Signal>,
    /// The condition variables that it destroyed while a thread waited on them, or was just being woken.
    pub ended: Vec<EndOfCondition>,
}

/// What a thread that runs without pause called last, as its stack shows. It may have returned from there since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastCall {
    /// Where it made the call.
    pub location: Option<LocationId>,
    /// What it tried, if that was all that it called there.
    pub trying: Option<Trying>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It waits for a lock, without a time limit.
    WaitsForLock,
    /// It waits for the end of a thread, or for an initialisation that another thread runs.
    WaitsForThread,
    /// It waits for what only another thread of the process can bring: a signal on a condition variable, a unit of a
    /// semaphore, a message.
    WaitsInside,
    /// It waits for calls that block to end, on the pool of an executor that ends.
    WaitsForCalls,
    /// It waits, with a time limit, until an object of a pool is given back.
    WaitsForObject,
    /// It waits for a lock that a database keeps in structures of its own.
    WaitsForManagedLock,
    /// It waits for a child process.
    WaitsForChild,
    /// It waits for a lock that another process has.
    WaitsForProcess,
    /// It waits for a semaphore or the like that processes share.
    WaitsInSharedMemory,
    /// It waits for a lock on a file.
    WaitsForFileLock,
    /// It waits for data in a pipe or in a socket, and cannot get any: it is in a deadlock between processes.
    WaitsForData,
    /// It waits until there is room in a pipe or in a socket.
    WaitsToWrite,
    /// It waits until somebody opens the other end of a FIFO.
    WaitsToOpen,
    /// It waits until a socket is connected.
    WaitsToConnect,
    /// It waits for what comes from outside of the process, or for a time.
    WaitsOutside,
    /// The kernel works for it: a disk, a page of memory.
    Kernel,
    /// It runs.
    Runs,
    /// It is ready to run, and got hardly any processor between two readings.
    Starves,
    /// A signal, a tracer or the freezer of control groups has stopped it.
    Stopped,
    /// Not known.
    Unknown,
}

impl Doing {
    /// Whether it waits for what comes from outside of its process, or for a time.
    pub fn is_outside(self) -> bool {
        match self {
            Doing::WaitsForObject
            | Doing::WaitsForManagedLock
            | Doing::WaitsForChild
            | Doing::WaitsForProcess
            | Doing::WaitsInSharedMemory
            | Doing::WaitsForFileLock
            | Doing::WaitsForData
            | Doing::WaitsToWrite
            | Doing::WaitsToOpen
            | Doing::WaitsToConnect
            | Doing::WaitsOutside => true,
            Doing::WaitsForLock
            | Doing::WaitsForThread
            | Doing::WaitsForCalls
            | Doing::WaitsInside
            | Doing::Kernel
            | Doing::Runs
            | Doing::Starves
            | Doing::Stopped
            | Doing::Unknown => false,
        }
    }
}

/// A thread that waits for the end of another thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// The thread that waits.
    pub thread: ThreadId,
    /// The thread whose end it waits for.
    pub joined: ThreadId,
    /// The location of the wait.
    pub location: LocationId,
    /// When the wait began, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
    /// Whether the wait ends by itself after a time.
    pub is_timed: bool,
    /// Whether the thread waited for it in the earlier reading too. True for a dead process.
    pub is_steady: bool,
    /// Whether a future waits, and not the code that runs on the thread.
    pub is_of_future: bool,
}
/// A thread or a task, and its locks. Most threads of a large ring have few of the waits, so these are boxed.
#[derive(Clone, Debug, Default)]
pub struct ThreadLocks {
    /// Index of the thread's slot in the snapshot's list of slots; `None` if the thread recorded nothing.
    pub slot: Option<usize>,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name; may contain anything.
    pub name: String,
    /// Whether the thread is present, has exited, or disappeared.
    pub state: ThreadState,
    /// When it recorded first, ns since boot.
    pub claimed_ns: u64,
    /// Whether its slot is the ring's first one.
    pub is_first: bool,
    /// The count of the ring's first slot when it recorded first; 0 if its creator is known.
    pub first_slot_count: u64,
    /// Index of its slot in the ring.
    pub slot_index: u64,
    /// Its first sequence. Earlier ones are those of the slot's earlier owners.
    pub first_sequence: u64,
    /// How far the thread that created it had come then; `None` if unknown.
    pub creator: Option<Position>,
    /// How far the thread that joined it had come then; `None` if unknown.
    pub joiner: Option<Position>,
    /// When it exited, ns since boot; `None` if it did not, or did so unnoticed.
    pub exited_ns: Option<u64>,
    /// The locks that the thread holds for certain, in the order of acquisition.
    pub holds: Vec<Hold>,
    /// The lock for which the thread waits. If a signal handler waits too, there are two, and this is the later one.
    pub wait: Option<Wait>,
    /// The lock that the thread has released while it waits on a condition variable.
    pub condition_wait: Option<LockId>,
    /// The address of that condition variable; `None` if it is not known.
    pub condition: Option<u64>,
    /// What it did to condition variables. Most threads do nothing to them.
    pub condition_calls: Option<Box<ConditionCalls>>,
    /// The same as a wait for that lock: signalled or not, the thread returns with the lock, or not at all.
    pub relock: Option<Box<Wait>>,
    /// The semaphore, barrier or channel, if the thread waits for a unit or a message, or for others at a barrier.
    pub semaphore_wait: Option<LockId>,
    /// The wait on that condition variable, semaphore, barrier or channel, with its place and time.
    pub sleep: Option<Box<Wait>>,
    /// The other side of the channel at which it waits, if the record describes it.
    pub peer: Option<Box<Peer>>,
    /// The thread whose end it waits for.
    pub join: Option<Box<Join>>,
    /// The number of locks that the thread holds and that are not listed, because its table was full.
    pub overflowed: u32,
    /// The number of entries of its table that changed while they were read.
    pub in_flux: u32,
    /// The location of its last mark.
    pub last: Option<LocationId>,
    /// What it did with locks, and its progress, oldest first, as far as known.
    pub steps: Steps,
    /// The number of words of its history that are not among the steps because later words replaced them, or
    /// because of a gap.
    pub overwritten: u64,
    /// The number of words that it wrote between the two readings; `None` if there was one reading.
    pub advanced: Option<u64>,
    /// What futures did that belong to no recorded task and that it polled, as far as its history has it.
    pub of_futures: OfFutures,
    /// What the kernel says of it; `None` if the kernel was not asked.
    pub seen: Option<Seen>,
    /// What is known of a task besides; `None` if it is a thread.
    pub task: Option<Box<TaskFacts>>,
    /// Its sleeps, if it is a thread of an executor that reports them.
    pub rest: Option<Box<Rest>>,
}

/// The sleeps of a thread of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    pub is_asleep: bool,
    /// When its last sleep began, or when it ended, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
    /// For how long it was awake in the seconds before that, and for how long it slept, ns. Both are 0 if that is
    /// not known.
    pub awake_ns: u64,
    pub asleep_ns: u64,
}

impl Rest {
    /// Which part of the time before that it was awake, percent; `None` if that is not known.
    pub fn awake_percent(&self) -> Option<u64> {
        let all = self.awake_ns.saturating_add(self.asleep_ns);
        (all > 0).then(|| (u128::from(self.awake_ns) * 100 / u128::from(all)) as u64)
    }

    /// Whether it is awake, and had slept nearly all of the time before `until_ns`, or before it woke.
    pub fn is_rarely_awake(&self, until_ns: Option<u64>) -> bool {
        let present_ns = until_ns.zip(self.since_ns).and_then(|(until, since)| until.checked_sub(since));
        let awake_ns = self.awake_ns.saturating_add(present_ns.unwrap_or(0));
        let is_known = awake_ns.saturating_add(self.asleep_ns) >= KNOWN_MIN_NS;
        !self.is_asleep && is_known && self.asleep_ns > (AWAKE_PART - 1).saturating_mul(awake_ns)
    }
}

/// A thread that is awake for less than one part of the time in so many is one that mostly sleeps.
const AWAKE_PART: u64 = 8;

/// A shorter time says nothing of what a thread mostly does.
const KNOWN_MIN_NS: u64 = 1_000_000_000;

/// What futures that belong to no recorded task did in the polls of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfFutures {
    /// How many acquisitions and waits there are.
    pub events: u64,
    /// How many of them are at locks, which somebody may have: no waits for messages, notifications or ends of tasks.
    pub at_locks: u64,
    /// Where the last of them was.
    pub last: Option<LocationId>,
}

impl OfFutures {
    /// Counts one more.
    pub(super) fn add(&mut self, is_at_lock: bool, location: LocationId) {
        self.events += 1;
        self.at_locks += u64::from(is_at_lock);
        self.last = Some(location);
    }
}

impl ThreadLocks {
    /// A thread that exists, or existed when its process died, and recorded nothing.
    pub fn unrecorded(pid: u32, tid: u32, name: String) -> ThreadLocks {
        ThreadLocks { pid, tid, name, ..ThreadLocks::default() }
    }

    /// The last signal of each condition variable that the thread signalled, as far as known.
    pub fn signals(&self) -> &[Signal] {
        self.condition_calls.as_ref().map_or(&[], |calls| &calls.signals)
    }

    /// The condition variables that it destroyed while a thread waited on them, or was just being woken.
    pub fn ended_conditions(&self) -> &[EndOfCondition] {
        self.condition_calls.as_ref().map_or(&[], |calls| &calls.ended)
    }

    /// Whether only the memory of a lock names the thread: nobody saw or recorded it.
    pub fn is_named_by_memory_alone(&self) -> bool {
        self.slot.is_none() && self.state != ThreadState::Present
    }

    /// Whether the kernel was asked what the thread does, and knew. A task that is suspended does nothing.
    pub(crate) fn is_doing_known(&self) -> bool {
        let is_suspended = self.task.as_deref().is_some_and(TaskFacts::is_asleep);
        is_suspended || self.seen.is_some_and(|seen| seen.doing != Doing::Unknown)
    }

    /// The wait at a channel that alone keeps the thread or task from going on, the other side of that channel, and who
    /// alone has used it, if all of that is known and lasts.
    pub fn waits_for_peer(&self) -> Option<(&Wait, &Peer, ThreadId)> {
        let wait = self.sleep.as_deref().filter(|wait| wait.is_steady && !wait.is_timed)?;
        let peer = self.peer.as_deref()?;
        let is_only_wait = match self.task.as_deref() {
            // Whoever waits for room has something to send, and a time limit gives that up. Whoever waits for messages
            // may well wait for other things too.
            Some(task) if peer.receives => task.waits_at(wait),
            Some(task) => task.waits_only_at(wait),
            None => !wait.is_of_future,
        };
        if !is_only_wait {
            return None;
        }
        Some((wait, peer, peer.present?))
    }

    /// Whether the thread waits: for a lock, on a condition variable, for a unit of a semaphore, at a barrier, for a
    /// message, or for the end of a thread.
    pub fn is_blocked(&self) -> bool {
        self.awaited().is_some()
    }
}
/// The end of a condition variable while a thread waits on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOfCondition {
    /// The condition variable's address.
    pub condition: u64,
    /// When, ns since boot; `None` if that was not recorded.
    pub at_ns: Option<u64>,
    /// The location of the call.
    pub location: LocationId,
}
/// A signal of a condition variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The condition variable's address.
    pub condition: u64,
    /// Whether a thread may have waited on it.
    pub is_heard: bool,
    /// The location of the call.
    pub location: LocationId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_awake_for_an_eighth_of_the_time_is_not_rarely_awake() {
        const SECOND: u64 = KNOWN_MIN_NS;
        let rest =
            |awake_ns, asleep_ns| Rest { is_asleep: false, since_ns: Some(SECOND), awake_ns, asleep_ns };
        assert!(rest(SECOND, 7 * SECOND + 1).is_rarely_awake(None));
        assert!(!rest(SECOND, 7 * SECOND).is_rarely_awake(None));
        let short = rest(SECOND / 10, SECOND - SECOND / 10);
        assert!(
            short.is_rarely_awake(None)
                && !Rest { asleep_ns: short.asleep_ns - 1, ..short }.is_rarely_awake(None)
        );
        let woken = rest(0, 7 * SECOND);
        assert!(woken.is_rarely_awake(Some(2 * SECOND - 1)) && !woken.is_rarely_awake(Some(2 * SECOND)));
        assert!(woken.is_rarely_awake(Some(0)), "the time of the poll is an earlier one");
        assert!(!Rest { is_asleep: true, ..woken }.is_rarely_awake(None));
    }
}
