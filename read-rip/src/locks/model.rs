//! Locks as values: who holds what, who waits for what, and what each thread did with its locks.
//!
//! It defines what `build` makes out of a snapshot, and `findings` and `report` read. No input, no output, no
//! guesses: what is not known is `None`, absent, or counted as such.

use std::collections::HashSet;

use crate::locations::LocationId;
use crate::ring::LockType;
use crate::threads::ThreadState;

/// An index into [`LockModel::locks`].
pub type LockId = usize;
/// An index into [`LockModel::threads`].
pub type ThreadId = usize;

/// All locks and threads of a ring at one moment, with the history that is known.
#[derive(Debug, Default)]
pub struct LockModel {
    /// Every lock that an entry of a held-lock table or an event names.
    pub locks: Vec<Lock>,
    /// Every slot that was ever used, by process and thread id.
    pub threads: Vec<ThreadLocks>,
    /// The process that made the ring; others in it are children that were forked.
    pub pid: u32,
    /// Whether nothing can change any more: the process is dead.
    pub is_final: bool,
    /// The moment of the reading, ns since boot; for a dead process its end, or the last time in the ring.
    pub now_ns: Option<u64>,
    /// For a living process: how long before this reading there was another one, ns.
    pub window_ns: Option<u64>,
    /// Whether the program has marks of progress at all.
    pub has_progress_sites: bool,
    /// Acquisitions that found no room in their thread's held-lock table, ever.
    pub held_overflows: u64,
    /// Releases by threads other than the holder that could not be told to the holder's table.
    pub releases_unmatched: u64,
    /// Threads that recorded nowhere.
    pub threads_refused: u64,
    /// Slots that were given to other threads: what their owners before had done is not known.
    pub slots_reused: u64,
    /// Processes that were forked and have ended: what they held is nobody's trouble.
    pub ended: HashSet<u32>,
}

/// A lock: an address in a process.
#[derive(Clone, Debug)]
pub struct Lock {
    /// The process.
    pub pid: u32,
    /// Its address.
    pub address: u64,
    /// What it is called.
    pub name: LockName,
    /// What kind of lock it is, as far as the sites that use it say.
    pub nature: Nature,
    /// Those that have it, for certain.
    pub holders: Vec<Hold>,
    /// Those that may have it: just taking it, giving it up, or back from a condition.
    pub possible_holders: Vec<Hold>,
    /// Those that wait for it.
    pub waiters: Vec<Wait>,
    /// Threads that wait on a condition variable and have released the lock meanwhile.
    pub condition_waiters: Vec<ThreadId>,
    /// Threads that wait for a unit of this semaphore.
    pub semaphore_waiters: Vec<ThreadId>,
    /// What the histories say of it.
    pub record: Record,
}

/// What a lock is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockName {
    /// The program gave it this name.
    Given(String),
    /// It lies in this static.
    Symbol(String),
    /// Neither: it is known by the location where it was first seen to be taken.
    Location(LocationId),
    /// Not even that.
    None,
}

/// What kind of lock it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// Mutex, readers-writer lock, ...
    pub lock_type: LockType,
    /// Its owner may take it again.
    pub is_reentrant: bool,
    /// Whether readers pass writers who wait; `None`: not known.
    pub readers_first: Option<bool>,
    /// All known operations are those of wrappers, which record everything that is done with the lock.
    pub is_wrapped: bool,
    /// Only the thread that took it can give it up. Not so for locks whose guards may be sent to other threads.
    pub is_owned: bool,
    /// It lies in memory that processes share, or may lie there: who has it may be a process that is not in the ring.
    pub is_process_shared: bool,
}

/// A thread that has a lock, or may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Who.
    pub thread: ThreadId,
    /// Which lock.
    pub lock: LockId,
    /// In shared mode.
    pub is_shared: bool,
    /// In shared mode that may become exclusive: a lock grants it to one at a time.
    pub is_upgradable: bool,
    /// Where it was taken.
    pub location: LocationId,
    /// Since when, ns since boot; `None`: not recorded.
    pub since_ns: Option<u64>,
    /// How often its owner has taken it again.
    pub recursion: u16,
    /// What it says exactly.
    pub state: HoldState,
    /// The entry was there in the earlier reading already, unchanged. True for dead processes.
    pub is_steady: bool,
}

/// How sure it is that a thread has a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// It tries to take the lock, and may have it already.
    Acquiring,
    /// It has the lock.
    Held,
    /// It gives the lock up, and may have done so.
    Releasing,
    /// It had the lock when the lock was destroyed.
    Destroyed,
}

/// A thread that waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who.
    pub thread: ThreadId,
    /// Which lock.
    pub lock: LockId,
    /// In shared mode.
    pub is_shared: bool,
    /// In shared mode that may become exclusive.
    pub is_upgradable: bool,
    /// Where.
    pub location: LocationId,
    /// Since when, ns since boot; `None`: not recorded.
    pub since_ns: Option<u64>,
    /// It gives up after a time by itself.
    pub is_timed: bool,
    /// It waited in the earlier reading already, for the same acquisition. True for dead processes.
    pub is_steady: bool,
}

/// A thread and its locks.
#[derive(Clone, Debug)]
pub struct ThreadLocks {
    /// Its slot's location in the snapshot's list of slots.
    pub slot: usize,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Its name; may contain anything.
    pub name: String,
    /// What became of it.
    pub state: ThreadState,
    /// The locks it has, for certain, in the order in which it took them.
    pub holds: Vec<Hold>,
    /// The lock it waits for. More than one only if a signal handler waits too: this is the last.
    pub wait: Option<Wait>,
    /// The lock that it has released while it waits on a condition variable.
    pub condition_wait: Option<LockId>,
    /// The semaphore for a unit of which it waits.
    pub semaphore_wait: Option<LockId>,
    /// Locks it holds that are not listed, because its table was full.
    pub overflowed: u32,
    /// Entries of its table that were in motion while they were read.
    pub in_flux: u32,
    /// Where it was last.
    pub last: Option<LocationId>,
    /// What it did with locks, and its progress, oldest first, as far as known.
    pub steps: Vec<Step>,
    /// Words of its history that later ones have replaced.
    pub overwritten: u64,
    /// Words that it wrote between the two readings; `None` without two.
    pub advanced: Option<u64>,
}

impl ThreadLocks {
    /// Whether the thread waits: for a lock, on a condition variable, or for a unit of a semaphore.
    pub fn is_blocked(&self) -> bool {
        self.wait.is_some() || self.condition_wait.is_some() || self.semaphore_wait.is_some()
    }
}

/// Something that a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The sequence of its PC word.
    pub sequence: u64,
    /// What.
    pub kind: StepKind,
    /// With which lock; `None` for progress and plain marks.
    pub lock: Option<LockId>,
    /// In shared mode.
    pub is_shared: bool,
    /// An attempt that does not block.
    pub is_try: bool,
    /// Where.
    pub location: LocationId,
    /// When, ns since boot.
    pub time_ns: Option<u64>,
    /// For a release: when the lock was taken. Only where that was recorded.
    pub since_ns: Option<u64>,
}

/// What a thread can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// A plain mark.
    Snap,
    /// Useful work was done.
    Progress,
    /// Begins to wait.
    Wait,
    /// Has it: marked by hand.
    Acquired,
    /// Takes it, in a wrapper, and has got it: no failure follows.
    AcquireBegin,
    /// A try, or a wait of limited time, failed.
    TryFailed,
    /// Has let go of it.
    Released,
    /// Lends the lock and waits for a condition.
    ConditionWait,
    /// Has the lock again.
    ConditionWoken,
    /// The lock ended. Another one may come to lie there.
    Destroyed,
    /// A plain mark or one of progress: the linker has made them one.
    Ambiguous,
}

/// What the histories, as far as they reach, say of a lock.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Acquisitions seen.
    pub acquisitions: u64,
    /// Of those, with a wait before them.
    pub contended: u64,
    /// Tries that failed.
    pub failed_tries: u64,
    /// Waits that ended with the lock, ns, ascending.
    pub waits_ns: Vec<u64>,
    /// Times it was held, ns, ascending.
    pub holds_ns: Vec<u64>,
    /// Threads that had or have it.
    pub owners: usize,
}
