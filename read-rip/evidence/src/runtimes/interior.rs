//! What a runtime's own data say of a process: values.

use serde::{Deserialize, Serialize};

use crate::waits::Owner;

/// What a runtime's own data say of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interior {
    /// The version of the runtime, as `3.11`; empty if that is not known.
    pub version: String,
    /// Its threads, as far as they are known.
    pub threads: Vec<InnerThread>,
    /// Its locks that store their owners.
    #[serde(skip)]
    pub locks: Vec<InnerLock>,
    /// Its locks whose holders its functions tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<InnerHold>,
    /// Its tasks, as goroutines, in groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<InnerTasks>,
    /// Its tasks that wait for locks without owners, channels and the like, which only others of them are known to
    /// have. After two readings, those that both have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<InnerWait>,
}

/// A task of a runtime that waits for a lock, or for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerWait {
    pub task: u64,
    /// The lock, the channel, or whatever it waits for; 0 if there is none.
    pub lock: u64,
    /// What it does, in the words of the runtime: `chan send`.
    pub state: String,
    /// Where it waits in the program; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<SourceFrame>,
}

/// A lock of a runtime that a thread has, by its functions or by the lock itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerHold {
    /// The id of the system's thread, in its own PID namespace.
    pub tid: u32,
    /// Where threads sleep that wait for the lock.
    pub word: u64,
    /// Where the block begins in which the thread has it; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<SourceFrame>,
    /// Whether the lock stores its owner. Otherwise the thread may have released it within the block.
    pub is_stored: bool,
}

/// Tasks of a runtime that do the same at the same place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerTasks {
    /// How many they are.
    pub count: usize,
    /// What they do, in the words of the runtime: `chan receive`.
    pub state: String,
    /// Where they are in the program; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<SourceFrame>,
    /// Where they were made, as far as that is known. Of many places some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_at: Vec<SourceFrame>,
}

/// A thread, as its runtime knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InnerThread {
    /// The id of the system's thread, in its own PID namespace.
    pub tid: u32,
    /// What the program calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The functions of the language that it is in, the innermost first. Further ones may be missing.
    pub frames: Vec<SourceFrame>,
    /// What these functions say that it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<InnerDoing>,
    /// The thread for whose end it waits, if the functions say that it waits for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<u32>,
}

/// What a thread does, by the functions of its language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InnerDoing {
    /// It runs an event loop, on which tasks wait.
    EventLoop,
    /// It waits for a signal, a message or the end of a thread, and for no lock.
    WaitsForOthers,
}

/// A function of a language, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceFrame {
    pub function: String,
    /// The file, as the runtime names it.
    pub file: String,
    /// The line, from 1; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A lock of a runtime that stores its owner. Whoever waits for it sleeps at a word within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerLock {
    pub address: u64,
    pub len_bytes: u64,
    pub owner: Owner,
}

impl InnerLock {
    /// Whether a word of memory is part of it.
    pub(crate) fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.len_bytes
    }
}

impl Interior {
    /// Compares with a later reading: if all wait as before, they are stuck, and if one does not, none is.
    pub(crate) fn compare_waits(&mut self, later: Option<Interior>) {
        if later.is_none_or(|later| later.waits != self.waits) {
            self.waits.clear();
        }
    }

    /// The only thread that may have the lock at this word; `None` too if there are several.
    pub fn holder(&self, word: u64) -> Option<&InnerHold> {
        let mut holds = self.holds.iter().filter(|hold| hold.word == word);
        let first = holds.next()?;
        holds.all(|other| other.tid == first.tid).then_some(first)
    }

    pub fn thread(&self, tid: u32) -> Option<&InnerThread> {
        self.threads.iter().find(|thread| thread.tid == tid)
    }
}
