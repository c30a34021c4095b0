//! Locks as values: which thread holds or waits for which lock, and what each thread did with its locks.
//!
//! It defines what `build` makes of a snapshot, and what `findings` and `report` read. Nothing is guessed: what is
//! not known is `None`, absent, or counted.

use std::collections::HashSet;

use serde::Serialize;

use super::Steps;
use crate::hash::HashMap;
use crate::locations::LocationId;
use crate::ring::{IncidentKind, LockType, Position};
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
    /// The time of the reading, ns since boot. For a dead process, the time of its end or the last time in the ring.
    pub now_ns: Option<u64>,
    /// Whether `now_ns` is only the last recorded moment of a process that died later. Lengths of time up to `now_ns`
    /// are lower bounds then.
    pub is_end_unknown: bool,
    /// If `is_end_unknown`: the latest moment at which the process can have died, ns since boot; `None` if that is not
    /// known either.
    pub latest_end_ns: Option<u64>,
    /// The number of threads of the living process that have recorded nothing; `None` if its threads are not known.
    pub unrecorded: Option<usize>,
    /// For a living process, the time between an earlier reading and this one, ns.
    pub window_ns: Option<u64>,
    /// Whether the program has progress marks.
    pub has_progress_sites: bool,
    /// The number of acquisitions so far that found no free entry in their thread's held-lock table.
    pub held_overflows: u64,
    /// The number of releases by threads other than the holder that could not be recorded in the holder's table.
    pub releases_unmatched: u64,
    /// The number of threads that did not record.
    pub threads_refused: u64,
    /// The number of slots that were given to other threads. The histories of their previous owners are lost.
    pub slots_reused: u64,
    /// Calls on locks that failed, or that are forbidden.
    pub incidents: Vec<LockIncident>,
    /// Forked processes that have ended. The locks that they held are ignored.
    pub ended: HashSet<u32>,
    /// The threads about which the kernel was asked, by their ids.
    pub seen: HashMap<u32, ThreadId>,
}

impl LockModel {
    /// Whether anything of it was recorded, and not only seen by the kernel and in memory.
    pub fn is_recorded(&self) -> bool {
        self.threads.iter().any(|thread| thread.slot.is_some())
    }

    /// How long after `now_ns` the process may have lived, ns, if its end is not known.
    pub fn later_ns(&self) -> Option<u64> {
        self.latest_end_ns.filter(|_| self.is_end_unknown)?.checked_sub(self.now_ns?)
    }

    /// The threads of the process that exist.
    pub fn present(&self) -> impl Iterator<Item = (ThreadId, &ThreadLocks)> {
        let threads = self.threads.iter().enumerate();
        threads.filter(|(_, thread)| thread.pid == self.pid && thread.state == ThreadState::Present)
    }
}

/// A lock: an address in a process.
#[derive(Clone, Debug)]
pub struct Lock {
    /// The process.
    pub pid: u32,
    /// The address.
    pub address: u64,
    /// What the lock is called.
    pub name: LockName,
    /// The class of the lock, if its marks say one.
    pub class: Option<String>,
    /// The properties of the lock, as far as its sites say.
    pub nature: Nature,
    /// The threads that hold the lock for certain.
    pub holders: Vec<Hold>,
    /// The threads that may hold the lock: they are acquiring or releasing it, or held it when it was destroyed.
    pub possible_holders: Vec<Hold>,
    /// The threads that wait for the lock.
    pub waiters: Vec<Wait>,
    /// The threads that have released the lock while they wait on a condition variable.
    pub condition_waiters: Vec<Wait>,
    /// The threads that wait for a unit of this semaphore, at this barrier, or for a message of this channel.
    pub semaphore_waiters: Vec<Wait>,
    /// Where the lock was initialised, as far as known.
    pub initialised_at: Option<LocationId>,
    /// Whether the recorder remembers that a thread other than its holder released it.
    pub is_handed_over: bool,
    /// Whether the holder is known from the process's memory alone.
    pub is_from_memory: bool,
    /// What the known histories say of the lock.
    pub record: Record,
}

impl Lock {
    /// A lock of which nothing is known yet.
    pub fn at(pid: u32, address: u64) -> Lock {
        Lock {
            pid,
            address,
            name: LockName::None,
            class: None,
            nature: Nature::default(),
            holders: Vec::new(),
            possible_holders: Vec::new(),
            waiters: Vec::new(),
            condition_waiters: Vec::new(),
            semaphore_waiters: Vec::new(),
            initialised_at: None,
            is_handed_over: false,
            is_from_memory: false,
            record: Record::default(),
        }
    }
}

/// What a lock is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockName {
    /// The program gave the lock this name.
    Given(String),
    /// The lock is in this static.
    Symbol(String),
    /// The lock has neither. It is identified by the location of the first acquisition that was seen.
    Location(LocationId),
    /// Nothing identifies the lock.
    None,
}

/// The properties of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// Mutex, readers-writer lock and so on.
    pub lock_type: LockType,
    /// Whether the owner may acquire the lock again.
    pub is_reentrant: bool,
    /// Whether readers pass waiting writers; `None` if that is not known.
    pub readers_first: Option<bool>,
    /// Whether all known operations are those of wrappers, which record everything that is done with the lock.
    pub is_wrapped: bool,
    /// Who can release the lock.
    pub ownership: Ownership,
    /// Whether it stands for a lock that the kernel has refused to the thread that waits, and holds it in this model:
    /// nobody can wake it.
    pub is_refused: bool,
    /// Whether the lock is, or may be, in memory that processes share. Its holder may be a process that is not in
    /// the ring.
    pub is_process_shared: bool,
}

/// Who can release a lock, from the least certain to the most certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ownership {
    /// Any thread: the lock is marked by hand, or its guard can be sent to another thread.
    #[default]
    Anyone,
    /// The thread that acquired it, by a rule that nothing enforces. POSIX leaves it undefined what an unlock by
    /// another thread does.
    ByRule,
    /// Only the thread that acquired it.
    Enforced,
}

/// A thread that holds a lock, or may hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Whether the lock is held in shared mode.
    pub is_shared: bool,
    /// Whether it is held in a shared mode that may become exclusive. A lock grants that mode to one thread at a time.
    pub is_upgradable: bool,
    /// The location of the acquisition; `None` if only the process's memory says that the thread holds the lock.
    pub location: Option<LocationId>,
    /// When the hold began, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
    /// How often the owner has acquired the lock again.
    pub recursion: u16,
    /// How certain it is that the thread holds the lock.
    pub state: HoldState,
    /// Whether the recorder remembers that a lock that was acquired at this place was released by another thread.
    pub has_place_of_handed_over: bool,
    /// Whether the earlier reading had the same entry. True for a dead process.
    pub is_steady: bool,
    /// Whether the thread has it since its process was forked: the thread that forked held the lock.
    pub is_inherited: bool,
}

/// How certain it is that a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// The thread tries to acquire the lock, and may hold it already.
    Acquiring,
    /// The thread holds the lock.
    Held,
    /// The thread releases the lock, and may have done so already.
    Releasing,
    /// The thread held the lock when the lock was destroyed.
    Destroyed,
}

/// A thread that waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Whether the thread wants the lock in shared mode.
    pub is_shared: bool,
    /// Whether it wants a shared mode that may become exclusive.
    pub is_upgradable: bool,
    /// The location of the wait.
    pub location: LocationId,
    /// When the wait began, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
    /// Whether the wait ends by itself after a time.
    pub is_timed: bool,
    /// Whether the thread waits on a condition variable, and needs the lock to return from that.
    pub is_relock: bool,
    /// Whether the thread waited in the earlier reading too, for the same acquisition. True for a dead process.
    pub is_steady: bool,
}

/// What the kernel says of a thread, as far as analyses want to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its index among the threads that were seen.
    pub index: usize,
    /// Where it stands in the program.
    pub place: Option<LocationId>,
    /// What it does.
    pub doing: Doing,
    /// Whether it stood still between two readings; `None` if there was one.
    pub is_still: Option<bool>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// It waits for a lock, without a time limit.
    WaitsForLock,
    /// It waits for the end of a thread, or for an initialisation that another thread runs.
    WaitsForThread,
    /// It waits for what only another thread of the process can bring: a signal on a condition variable, a unit of a
    /// semaphore, a message.
    WaitsInside,
    /// It waits for what comes from outside of the process, or for a time.
    WaitsOutside,
    /// The kernel works for it: a disk, a page of memory.
    Kernel,
    /// It runs.
    Runs,
    /// It is ready to run, and got hardly any processor between two readings.
    Starves,
    /// A signal or a tracer has stopped it.
    Stopped,
    /// Not known.
    Unknown,
}

/// A thread that waits for the end of another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// A thread and its locks.
#[derive(Clone, Debug)]
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
    /// The last signal of each condition variable that the thread signalled, as far as known.
    pub signals: Vec<Signal>,
    /// The condition variables that it destroyed while a thread waited on them, or was just being woken.
    pub ended_conditions: Vec<EndOfCondition>,
    /// The same as a wait for that lock: signalled or not, the thread returns with the lock, or not at all.
    pub relock: Option<Wait>,
    /// The semaphore, barrier or channel, if the thread waits for a unit or a message, or for others at a barrier.
    pub semaphore_wait: Option<LockId>,
    /// The wait on that condition variable, semaphore, barrier or channel, with its place and time.
    pub sleep: Option<Wait>,
    /// The thread whose end it waits for.
    pub join: Option<Join>,
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
    /// What the kernel says of it; `None` if the kernel was not asked.
    pub seen: Option<Seen>,
}

impl ThreadLocks {
    /// A thread that exists, or existed when its process died, and recorded nothing.
    pub fn unrecorded(pid: u32, tid: u32, name: String) -> ThreadLocks {
        ThreadLocks {
            slot: None,
            pid,
            tid,
            name,
            state: ThreadState::Present,
            claimed_ns: 0,
            is_first: false,
            first_slot_count: 0,
            slot_index: 0,
            first_sequence: 0,
            creator: None,
            joiner: None,
            exited_ns: None,
            holds: Vec::new(),
            wait: None,
            condition_wait: None,
            condition: None,
            signals: Vec::new(),
            ended_conditions: Vec::new(),
            relock: None,
            semaphore_wait: None,
            sleep: None,
            join: None,
            overflowed: 0,
            in_flux: 0,
            last: None,
            steps: Steps::default(),
            overwritten: 0,
            advanced: None,
            seen: None,
        }
    }

    /// Whether the kernel was asked what the thread does, and knew.
    pub fn is_doing_known(&self) -> bool {
        self.seen.is_some_and(|seen| seen.doing != Doing::Unknown)
    }

    /// Whether the thread waits: for a lock, on a condition variable, for a unit of a semaphore, at a barrier, for a
    /// message, or for the end of a thread.
    pub fn is_blocked(&self) -> bool {
        let waits = [self.wait.is_some(), self.condition_wait.is_some(), self.semaphore_wait.is_some()];
        self.join.is_some() || waits.contains(&true)
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

/// Something that a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sequence of its PC word.
    pub sequence: u64,
    /// What the thread did.
    pub kind: StepKind,
    /// The lock; `None` for progress and plain marks.
    pub lock: Option<LockId>,
    /// Whether the lock is acquired in shared mode.
    pub is_shared: bool,
    /// Whether the attempt does not block, or ends after a time.
    pub is_try: bool,
    /// Whether the thread acquires the lock shared, and passes waiting writers.
    pub is_readers_first: bool,
    /// The location.
    pub location: LocationId,
    /// When, ns since boot; `None` if that was not recorded.
    pub time_ns: Option<u64>,
    /// For a release: when the lock was acquired, ns since boot; `None` if that was not recorded.
    pub since_ns: Option<u64>,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Passed a plain mark.
    Snap,
    /// Did useful work.
    Progress,
    /// Began to wait for the lock.
    Wait,
    /// Acquired the lock: a mark by hand.
    Acquired,
    /// Acquired the lock in a wrapper, which records the start of an acquisition. It did not fail.
    AcquireBegin,
    /// Failed to acquire the lock, at once or after a wait of limited time.
    TryFailed,
    /// Released the lock.
    Released,
    /// Released the lock and waits on a condition variable.
    ConditionWait,
    /// Came back from a condition variable with the lock.
    ConditionWoken,
    /// Destroyed the lock. Another lock may be created at its address.
    Destroyed,
    /// Initialised the lock: nobody holds it. Another lock may have been at its address.
    Initialised,
    /// Took a unit of a semaphore; in shared mode if there was another one left. Nobody holds a semaphore.
    UnitTaken,
    /// Posted a unit of a semaphore.
    UnitPosted,
    /// Passed marks that the linker folded into one. They differ in meaning.
    Ambiguous,
}

impl StepKind {
    /// Whether the thread did useful work, or may have done it.
    pub fn may_be_progress(self) -> bool {
        matches!(self, StepKind::Progress | StepKind::Ambiguous)
    }
}

/// A call on a lock that failed, or that is forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockIncident {
    /// What happened.
    pub kind: IncidentKind,
    /// How often it happened at this location.
    pub count: u32,
    /// The thread that called first; `None` if its slot has another owner now.
    pub thread: Option<ThreadId>,
    /// The id of that thread.
    pub tid: u32,
    /// The lock of the first call.
    pub lock: LockId,
    /// The location of the call.
    pub location: LocationId,
    /// When the first call was, ns since boot; `None` if that is not known.
    pub at_ns: Option<u64>,
}

/// What the known histories say of a lock.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The number of acquisitions.
    pub acquisitions: u64,
    /// The number of acquisitions after a wait.
    pub contended: u64,
    /// The number of failed tries.
    pub failed_tries: u64,
    /// The lengths of waits that ended with the lock, ns, ascending.
    pub waits_ns: Vec<u64>,
    /// The lengths of holds, ns, ascending.
    pub holds_ns: Vec<u64>,
    /// The number of threads that hold the lock or have held it.
    pub owners: usize,
}
