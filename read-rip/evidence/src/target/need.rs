//! What a thread needs from others before it can go on, by the kernel's account, and which processes can bring it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a thread needs from others. One of those who can bring it is enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    pub what: Needed,
    /// Who can bring it, by pid. Empty: nobody is known who can.
    pub by: Vec<Party>,
    /// Who can end the wait in another way: who has the same end of a socket may shut it down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Party>,
    /// Who else may bring it, and is not known.
    pub others: Others,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Needed {
    /// Somebody has to read from a pipe that is full.
    RoomInPipe,
    /// Somebody has to write to a pipe that is empty, or all who can must close it.
    DataInPipe,
    /// Somebody has to read from the other end of a socket that is full.
    RoomInSocket,
    /// Somebody has to write to the other end of a socket, or to close it.
    DataInSocket,
    /// Somebody has to add to an eventfd that is 0.
    Event,
    /// One of so many descriptors has to become ready.
    OneOfMany(u32),
    /// The program behind the FUSE file system at this path has to answer.
    Answer(PathBuf),
    /// Somebody has to open the other end of the FIFO at this path.
    OpenFifo(PathBuf),
    EndOfChild,
    /// Somebody has to release a lock on the file at this path.
    FileLock(PathBuf, FileLockKind),
    /// A thread of another process has to release the lock at this address, which processes share.
    SharedLock(u64),
    /// Some process has to change a semaphore of System V: this one of the set with this id. It names nobody: the
    /// process that changed it last may have what is missing.
    SystemSemaphore {
        set: u32,
        number: u16,
    },
    /// Somebody has to send to this message queue, which is empty or has no message of the wanted type.
    DataInQueue(MessageQueue),
    /// Somebody has to receive from this message queue, which is full.
    RoomInQueue(MessageQueue),
    /// Some process has to post, signal or arrive at an object that processes share, and that names nobody.
    SharedObject {
        address: u64,
        object: SharedObject,
    },
    /// A thread has to release the lock at this address, which processes share, and it has ended.
    LostLock {
        address: u64,
        owner: u32,
        /// Whether only forks of one process can have the memory.
        of_forks: bool,
    },
}

/// A message queue. Anybody with the rights may send to it and receive from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageQueue {
    /// One of System V, by its id. It says who sent and who received last.
    SystemV(u32),
    /// One of POSIX, by its name.
    Posix(String),
}

/// What processes share that names nobody who has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SharedObject {
    /// A POSIX semaphore.
    Semaphore,
    /// A POSIX condition variable.
    Condition,
    /// A POSIX barrier.
    Barrier,
    /// A POSIX readers-writer lock that readers have.
    ReadWriteLock,
    /// A word of memory, whatever that means to the program.
    Word,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileLockKind {
    /// `flock`: whoever has the file description can release it.
    Flock,
    /// `fcntl` with `F_SETLKW`: the process that acquired it can release it.
    Posix,
    /// `fcntl` with `F_OFD_SETLKW`: whoever has the file description can release it.
    OpenFileDescription,
}

/// A process, or a thread, that can bring what another one needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// The process: its pid in this reader's PID namespace.
    pub pid: u32,
    /// The name of its first thread; may contain anything.
    pub name: String,
    pub descriptor: Option<u32>,
    /// The only thread that can, by its id in this reader's PID namespace; `None`: each thread of the process.
    pub tid: Option<u32>,
}

/// The only other process that can end a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Helper {
    pub party: Party,
    pub state: HelperState,
}

/// What the threads of a process do that could end a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HelperState {
    Runs,
    Sleeps,
    /// Each of its threads waits, without a time limit, for a word of memory that only the process itself changes, and
    /// the process handles no signal.
    WaitsForItself,
    Stopped,
}

/// Who may bring it besides those that are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Others {
    /// How many relatives of these processes were not searched, because this reader may not see what they have open.
    pub hidden: usize,
    /// Whether others were not searched, to whom somebody must have handed what is needed.
    pub strangers: bool,
    /// Whether anybody may open the file by its path.
    pub by_path: bool,
    /// Whether a timer may interrupt the wait: the process handles the signals of timers.
    pub timer: bool,
    /// Whether the process handles `SIGINT`.
    pub interrupt: bool,
    /// Whether it handles another signal that somebody sends, or [`Others::child`]. A process that waits for a signal
    /// often waits for nothing else.
    pub handler: bool,
    /// Whether it handles the signal of a child that may end by itself: one that is not among those who can bring it.
    #[serde(default)]
    pub child: bool,
    /// Whether processes outside of this reader's PID namespace, which it does not see, may have an end too.
    pub container: bool,
    /// Whether the wait may have a time limit of the socket, `SO_RCVTIMEO` or `SO_SNDTIMEO`, which could not be asked.
    pub limit: bool,
}

impl Others {
    /// Whether processes that are not known may bring it, or nobody has to.
    pub(crate) fn may_be_many(self) -> bool {
        self.hidden > 0 || self.by_path || self.container || self.limit
    }

    /// Who may bring one of two things.
    #[must_use]
    pub fn or(self, other: Others) -> Others {
        Others {
            // The same relatives may have either.
            hidden: self.hidden.max(other.hidden),
            strangers: self.strangers || other.strangers,
            by_path: self.by_path || other.by_path,
            timer: self.timer || other.timer,
            interrupt: self.interrupt || other.interrupt,
            handler: self.handler || other.handler,
            child: self.child || other.child,
            container: self.container || other.container,
            limit: self.limit || other.limit,
        }
    }
}
