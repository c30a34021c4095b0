//! What is known of a process at one moment, as rows of text that can be shown, sorted and filtered.
//!
//! A picture does not change. All of its texts are printable.

use foldhash::HashMap;
use read_rip_model::findings::Confidence;
use read_rip_model::locks::{Quantiles, Rate};

/// How bad the worst finding is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// There is no finding.
    #[default]
    None,
    /// A finding that may be wrong.
    Suspected,
    /// Something that can happen, and has not happened.
    Potential,
    /// It has happened.
    Proven,
}

impl From<Confidence> for Severity {
    fn from(confidence: Confidence) -> Severity {
        match confidence {
            Confidence::Suspected => Severity::Suspected,
            Confidence::Potential => Severity::Potential,
            Confidence::Proven => Severity::Proven,
        }
    }
}

/// Which lock, in all pictures of a process: the process and the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct LockKey {
    pub pid: u32,
    pub address: u64,
}

/// Which thread or task, in all pictures of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ThreadKey {
    pub pid: u32,
    pub tid: u32,
}

/// A process or a ring of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRow {
    /// What names it on the command line: a pid, or the path of a ring.
    pub name: String,
    /// The program, with the pid.
    pub program: String,
    /// How bad its worst finding is.
    pub severity: Severity,
    /// Whether it could not be judged.
    pub is_unjudged: bool,
    /// The worst finding, or how the process is.
    pub text: String,
}

/// The processes of this machine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessTable {
    /// Those with findings first, the most certain ones on top.
    pub rows: Vec<ProcessRow>,
    /// What was looked at, and what was not, a line each.
    pub examined: Vec<String>,
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockRow {
    /// Which one.
    pub key: LockKey,
    /// What it is called.
    pub name: String,
    /// How many threads and tasks wait for it.
    pub waiters: usize,
    /// The longest of these waits, ns; `None` if no time was recorded.
    pub longest_ns: Option<u64>,
    /// How many known acquisitions there are.
    pub acquisitions: u64,
    /// How many of them came after a wait.
    pub contended: u64,
    /// How often it was acquired between the last two readings; `None` if there were no two of its process.
    pub rate: Option<Rate>,
    /// The lengths of waits for it, as far as recorded.
    pub waits: Option<Quantiles>,
    /// The lengths of holds, as far as recorded.
    pub holds: Option<Quantiles>,
    /// The thread or task that holds the lock, and where it acquired it.
    pub held: String,
    /// The first holder.
    pub holder: Option<ThreadKey>,
    /// Everything that `read-rip locks` says of it, a line each.
    pub lines: Vec<String>,
}

/// What a thread had of the processors between the two looks of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorUse {
    /// Its time on processors, percent of one.
    pub percent: u16,
    /// The processor on which it ran last; `None` if that is not known.
    pub last: Option<u16>,
}

/// A thread or a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadRow {
    /// Which one.
    pub key: ThreadKey,
    /// `name[tid]`, or `name[task 7]`.
    pub name: Box<str>,
    /// Whether it is a task.
    pub is_task: bool,
    /// What it does, an index into [`Picture::texts`].
    pub doing: u32,
    /// Where it is, an index into [`Picture::texts`].
    pub place: u32,
    /// Whether it waits for a lock, for another thread, or for what another thread brings.
    pub is_blocked: bool,
    /// How many locks it holds.
    pub holds: u32,
    /// How many words it has recorded between two readings; `None` if that is not known.
    pub advanced: Option<u64>,
    /// What it had of the processors; `None` if that is not known.
    pub processor: Option<ProcessorUse>,
}

/// A process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// When it was taken, ns since 1970.
    pub taken_ns: u64,
    /// The process, its threads and its tasks, in a line.
    pub heading: String,
    /// What `check` says, in a sentence.
    pub verdict: String,
    /// How bad that is.
    pub severity: Severity,
    /// What the threads and tasks do, in a line; empty if that is not known.
    pub doing: String,
    /// Whether the process is dead, so that no other picture follows.
    pub is_final: bool,
    /// Which slow cycles the ring has kept; empty if there are none.
    pub slow_cycles: String,
    /// Everything that `check` says, a line each.
    pub findings: Vec<String>,
    /// The locks, those that hurt most first.
    pub locks: Vec<LockRow>,
    /// How many locks are left out, which are idle or after those that hurt most.
    pub more_locks: usize,
    /// The threads and tasks that exist, those that wait or hold something first.
    pub threads: Vec<ThreadRow>,
    /// The texts of their rows, each once.
    pub texts: Vec<Box<str>>,
    /// How many words all threads have recorded in a second; `None` if that is not known.
    pub words_per_second: Option<u64>,
    /// Whether later words have replaced some, so that lengths are known of a part of the waits and holds.
    pub is_partial: bool,
}

impl Picture {
    /// Whether there are tasks among the threads.
    pub fn has_tasks(&self) -> bool {
        self.threads.iter().any(|row| row.is_task)
    }

    /// A text of a thread's row.
    pub fn text(&self, index: u32) -> &str {
        self.texts.get(index as usize).map_or("", |text| text)
    }

    /// How much memory it takes, bytes, about.
    pub fn bytes(&self) -> usize {
        let lines =
            |lines: &[String]| lines.iter().map(|line| line.len() + size_of::<String>()).sum::<usize>();
        let of_lock =
            |lock: &LockRow| size_of::<LockRow>() + lock.name.len() + lock.held.len() + lines(&lock.lines);
        let locks: usize = self.locks.iter().map(of_lock).sum();
        let threads: usize =
            self.threads.iter().map(|thread| size_of::<ThreadRow>() + thread.name.len()).sum();
        let texts: usize = self.texts.iter().map(|text| size_of::<Box<str>>() + text.len()).sum();
        size_of::<Picture>() + self.heading.len() + lines(&self.findings) + locks + threads + texts
    }
}

/// Texts, each once, by numbers.
#[derive(Debug, Default)]
pub struct Texts {
    all: Vec<Box<str>>,
    known: HashMap<String, u32>,
}

impl Texts {
    /// The number of a text.
    pub fn add(&mut self, text: String) -> u32 {
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        if let Some(&at) = self.known.get(&text) {
            return at;
        }
        self.all.push(text.as_str().into());
        self.known.insert(text, next);
        next
    }

    /// All texts, in the order of their numbers.
    pub fn into_all(self) -> Vec<Box<str>> {
        self.all
    }
}
