//! A lock as values: what it is called, who can release it, who holds and waits for it.

use read_rip_evidence::waits::Presumption;
use read_rip_ring::LockType;

use super::{Hold, HoldState, ThreadId, Wait};
use crate::locations::LocationId;

/// A lock: an address in a process.
#[derive(Clone, Debug, Default)]
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
    /// The threads that may hold the lock: they are acquiring or releasing it, or held it when it was destroyed. And
    /// the futures that hold it and belong to no recorded task, each with the thread that polled it.
    pub possible_holders: Vec<Hold>,
    /// The threads that wait for the lock.
    pub waiters: Vec<Wait>,
    /// The threads that have released the lock while they wait on a condition variable.
    pub condition_waiters: Vec<Wait>,
    /// The threads that wait for a unit of this semaphore, at this barrier, or for a message of this channel.
    pub semaphore_waiters: Vec<Wait>,
    /// The waits of all these kinds by futures that belong to no recorded task. Each has the thread that polled the
    /// future.
    pub futures_waiting: Vec<Wait>,
    /// How many threads a round of this barrier takes, as far as known.
    pub threads_of_round: Option<u16>,
    /// Where the lock was initialised, as far as known.
    pub initialised_at: Option<LocationId>,
    /// Whether the recorder remembers that a thread other than its holder released it.
    pub is_handed_over: bool,
    /// Whether nothing of the lock was recorded: it is known from the process's memory alone.
    pub is_from_memory: bool,
    /// What the memory of the lock says of its owner, if a thread was seen to wait for it.
    pub owner: Option<OwnerInMemory>,
    /// The owner that the memory of the lock named throughout, if the process has no such thread.
    pub absent_owner: Option<AbsentOwner>,
    /// What the known histories say of the lock.
    pub record: Record,
}
impl Lock {
    /// A lock of which nothing is known yet.
    pub fn at(pid: u32, address: u64) -> Lock {
        Lock { pid, address, ..Lock::default() }
    }

    /// Whether nobody can hold it where that is not recorded: its guards stay in the tasks that acquired it. What has
    /// units, as a semaphore, is no such lock: there may be none of them.
    pub fn is_held_where_recorded(&self) -> bool {
        self.nature.is_wrapped && self.nature.ownership != Ownership::Anyone
    }

    /// Who can release the lock, by whichever knows more: the record, or its memory.
    pub fn ownership(&self) -> Ownership {
        self.nature.ownership.max(self.owner.map_or(Ownership::Anyone, |owner| owner.ownership))
    }

    /// Whether the memory says that the thread of this hold owns the lock, and said so throughout.
    pub fn is_owner_in_memory(&self, hold: &Hold) -> bool {
        let is_exclusive = hold.state == HoldState::Held && !hold.is_shared;
        is_exclusive && self.owner.is_some_and(|owner| owner.is_steady && owner.thread == hold.thread)
    }

    /// Whether only the memory of the lock makes certain who holds it.
    pub fn rests_on_memory(&self) -> bool {
        let is_certain = self.nature.is_wrapped && self.nature.ownership != Ownership::Anyone;
        let is_recorded = |hold: &Hold| {
            is_certain
                && hold.location.is_some()
                && self.owner.is_some_and(|owner| owner.thread == hold.thread)
        };
        self.is_from_memory || self.owner.is_some() && !self.holders.iter().any(is_recorded)
    }

    /// Whether it is a semaphore whose permits tasks hold: it is recorded as a mutex that several hold.
    pub fn has_permits(&self) -> bool {
        self.nature.lock_type == LockType::Mutex && self.holders.iter().any(|hold| hold.is_shared)
    }

    /// Whether it may be such a semaphore, while nobody holds it: a mutex whose guards may be sent looks the same then.
    pub fn may_have_permits(&self) -> bool {
        let Nature { lock_type, is_of_futures, ownership, .. } = self.nature;
        let may_be = lock_type == LockType::Mutex && is_of_futures && ownership == Ownership::Anyone;
        self.has_permits() || may_be
    }

    /// Whether its holder is only presumed, because it has the lock's address, or is in a block that acquired it.
    pub fn is_holder_presumed(&self) -> bool {
        self.owner.and_then(|owner| owner.presumption).is_some_and(Presumption::is_of_holder)
    }

    /// The threads and tasks that hold it, and are not only presumed to.
    pub fn certain_holders(&self) -> &[Hold] {
        if self.is_holder_presumed() { &[] } else { &self.holders }
    }

    /// How many threads, tasks and futures of no recorded task hold it for certain.
    pub fn holding(&self) -> usize {
        self.certain_holders().len() + self.holds_of_futures().count()
    }

    /// How many threads, tasks and futures of no recorded task wait for it.
    pub fn waiting(&self) -> usize {
        let is_for_lock = !self.nature.lock_type.is_unowned();
        self.waiters.len() + if is_for_lock { self.futures_waiting.len() } else { 0 }
    }

    /// The holds of futures that belong to no recorded task. Each has the thread that polled the future.
    pub fn holds_of_futures(&self) -> impl Iterator<Item = &Hold> {
        self.possible_holders.iter().filter(|hold| hold.state == HoldState::OfFuture)
    }

    /// Whether no holder is recorded, and only futures of tasks wait for it.
    pub(super) fn has_only_futures_in_line(&self) -> bool {
        self.holders.is_empty()
            && self.futures_waiting.is_empty()
            && self.possible_holders.iter().all(|hold| hold.state == HoldState::Destroyed)
            && !self.waiters.is_empty()
            && self.waiters.iter().all(|wait| wait.is_of_future)
    }
}
/// The owner of a lock, by the lock's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerInMemory {
    /// The thread.
    pub thread: ThreadId,
    /// The address of what stores the owner. It differs from the lock's if the lock is a wrapper with a mutex inside.
    pub address: u64,
    /// Who can release that.
    pub ownership: Ownership,
    /// Whether the memory said the same in both readings. True for a core file.
    pub is_steady: bool,
    /// Why the thread is only presumed to own it, if it is.
    pub presumption: Option<Presumption>,
    /// The memory may be shared with processes of other PID namespaces, where other threads have these ids.
    pub may_be_elsewhere: bool,
}

/// The owner of a lock that only threads of one process can release, by the lock's memory: no thread of that process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsentOwner {
    /// The id of the thread.
    pub tid: u32,
    /// Whether the process is a fork that runs the program of its parent: then the thread may be one of its parent's.
    /// `None`: not known.
    pub is_of_fork: Option<bool>,
}
/// What a lock is called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LockName {
    /// The program gave the lock this name.
    Given(String),
    /// The lock is in this static.
    Symbol(String),
    /// The lock has neither. It is identified by the location of the first acquisition that was seen.
    Location(LocationId),
    /// Nothing identifies the lock.
    #[default]
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
    /// Whether futures acquire it: several of one task may, and wait for one another without blocking it.
    pub is_of_futures: bool,
    /// Whether it stands for a lock that the kernel has refused to the thread that waits, and holds it in this model:
    /// nobody can wake it.
    pub is_refused: bool,
    /// Whether the lock is, or may be, in memory that processes share. Its holder may be a process that is not in
    /// the ring.
    pub is_process_shared: bool,
    /// Whether the C library has the lock for itself, to protect its allocator or a stream.
    pub is_of_library: bool,
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
/// What the known histories say of a lock.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The number of acquisitions.
    pub acquisitions: u64,
    /// The number of acquisitions after a wait.
    pub contended: u64,
    /// The number of acquisitions since the earlier of two readings, as far as known; 0 if there was one reading.
    pub acquired_between: u64,
    /// The number of these that came after a wait.
    pub contended_between: u64,
    /// The two numbers as they probably were: each thread's known new words stand for all of its new words.
    pub probably_between: (f64, f64),
    /// The number of failed tries.
    pub failed_tries: u64,
    /// The lengths of waits that ended with the lock, ns, ascending.
    pub waits_ns: Vec<u64>,
    /// The lengths of holds, ns, ascending.
    pub holds_ns: Vec<u64>,
    /// The number of threads that hold the lock or have held it.
    pub owners: usize,
}
impl Record {
    /// How long the waits that ended with the lock took together, ns.
    pub fn waited_ns(&self) -> u64 {
        total(&self.waits_ns)
    }

    /// How long the holds took together, ns.
    pub fn held_ns(&self) -> u64 {
        total(&self.holds_ns)
    }
}

/// The sum of lengths of time. Those of a damaged ring may be too long for it.
fn total(lengths_ns: &[u64]) -> u64 {
    lengths_ns.iter().fold(0, |sum, &ns| sum.saturating_add(ns))
}
