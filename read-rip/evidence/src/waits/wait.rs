//! The values: a wait, its kind, its owner.

use serde::{Deserialize, Serialize};

use super::construct::Construct;

/// What a thread waits for, and who has it, at one moment.
///
/// Two readings of one wait are equal if nothing has changed that matters: counts of other waiters are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FutexWait {
    /// What kind of object it is.
    pub kind: WaitKind,
    /// The address of the object; `None` if it is not known. It can differ from the futex's.
    pub object: Option<u64>,
    /// The address at which the thread sleeps. Waits with one futex are waits for one object.
    pub futex: u64,
    /// Who has the object, or must end, before the thread can go on.
    pub owner: Owner,
    /// Whether the thread wants the object for itself alone. A reader does not.
    pub is_exclusive: bool,
    /// Whether the wait ends by itself after a time.
    pub is_timed: bool,
    /// Whether only threads of this process can wake it.
    pub is_private: bool,
    /// How the kind is known.
    pub basis: Basis,
    /// What the function names of the stack say that the object is for.
    pub construct: Option<Construct>,
    /// Why the owner is presumed; `None` if it is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presumption: Option<Presumption>,
}

impl FutexWait {
    /// The address that stands for the object: its own, or that of the futex if its own is not known.
    pub fn address(&self) -> u64 {
        self.object.unwrap_or(self.futex)
    }
}

/// What kind of object a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitKind {
    /// A POSIX mutex.
    Mutex {
        /// What happens if its owner locks it again.
        of_type: MutexType,
        /// Whether it notices the death of its owner.
        is_robust: bool,
        /// What it does to the priority of its owner.
        protocol: Protocol,
        /// Whether several processes may use it. Then its owner may be in another one.
        is_shared: bool,
    },
    /// A POSIX readers-writer lock.
    ReadWriteLock {
        /// How many readers have it.
        readers: u32,
        /// Whom it lets in first; `None` where it is not stored.
        preference: Option<Preference>,
    },
    /// A POSIX condition variable.
    Condition {
        /// The mutex that the thread locks when it wakes. Only glibc before 2.25 stores it.
        mutex: Option<u64>,
    },
    /// A POSIX semaphore, and its value.
    Semaphore {
        /// How often it can be taken.
        value: u32,
    },
    /// A POSIX barrier.
    Barrier {
        /// How many threads have arrived, and how many it takes; `None` where they are not at the futex.
        arrived: Option<(u32, u32)>,
    },
    /// An initialisation that another thread runs: `pthread_once`, or a static variable of C++.
    Once,
    /// The end of a thread, which is the owner.
    Join,
    /// A lock of the C library's own, as that of a stream or of `malloc`.
    LibraryLock,
    /// A lock of the kernel's priority inheritance, and no mutex that is known.
    PiFutex,
    /// A mutex with priority inheritance that the kernel has refused, because to wait for it would be a deadlock, or
    /// because its owner has ended. Nothing wakes the thread but its time limit. Which mutex it is is not known; the
    /// object is a word on the thread's own stack.
    Refused,
    /// A lock of a language's runtime that stores its owner: see [`FutexWait::construct`].
    RuntimeLock,
    /// An object of another library or language: see [`FutexWait::construct`].
    Opaque,
    /// Not known.
    Unknown,
}

/// What a POSIX mutex does if its owner locks it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MutexType {
    /// It deadlocks: the default.
    Normal,
    /// It counts.
    Recursive,
    /// It returns an error.
    ErrorChecking,
    /// It deadlocks, and spins before it sleeps.
    Adaptive,
}

/// What a POSIX mutex does to the priority of its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Protocol {
    /// Nothing.
    None,
    /// The owner inherits the priority of the threads that wait.
    Inherit,
    /// The owner gets the priority of the mutex.
    Protect,
}

/// Whom a readers-writer lock lets in first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Preference {
    /// Readers.
    Readers,
    /// Readers too: glibc treats `PTHREAD_RWLOCK_PREFER_WRITER_NP` like the default.
    WritersInName,
    /// Writers: a reader waits behind a writer that waits.
    Writers,
}

/// Who has what a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// This thread, by its id in its own PID namespace.
    Tid(u32),
    /// Nobody: such an object has no owner, or its owner has died and the next one may take it.
    Nobody,
    /// Somebody, and it is not known who.
    Unknown(UnknownOwner),
}

/// Why a thread is presumed to be an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presumption {
    /// It alone is in the function that initialises the object, or that writes to the stream.
    InFunction,
    /// It has the address of the lock, and all that have the addresses of such locks wait for one another.
    HasAddress,
    /// It is in a block of its language that has acquired the lock, and all such threads wait for one another.
    InBlock,
    /// It has taken a unit of the semaphore, in a function that gives the unit back later, and all such threads wait
    /// for one another.
    HasTaken,
}

impl Presumption {
    /// Whether the thread is presumed to have a lock, which it may have released.
    pub fn is_of_holder(self) -> bool {
        matches!(self, Presumption::HasAddress | Presumption::InBlock | Presumption::HasTaken)
    }
}

/// Why an owner is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnknownOwner {
    /// Objects of this kind do not store who has them.
    NotStored,
    /// This many readers have it, and which ones is not stored.
    Readers(u32),
    /// It changed while it was read, or is being handed over: the wait is about to end, or another one to begin.
    Changing,
    /// The object names this thread, which is no living thread of the process.
    ///
    /// It ended without a release, or is a thread of another process if the object is shared.
    NotHere(u32),
    /// The memory at the futex cannot be read. The kernel has seen it when the thread fell asleep.
    Absent,
    /// The stack names a function of the object, and the bytes make no sense, or cannot be read.
    Senseless,
    /// Neither the stack nor the bytes tell what it is.
    Unrecognised,
}

/// How the kind of a wait is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// The stack says it, and the bytes agree.
    Stack,
    /// The bytes alone say it.
    Bytes,
    /// The system call says it: the kernel defines what the word means.
    Call,
    /// It is not known.
    None,
}
