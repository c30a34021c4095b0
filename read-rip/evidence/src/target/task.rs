//! A thread of the target, at one moment.

use serde::{Deserialize, Serialize};

use super::{Call, CallKind, Memory};

/// A thread, as the kernel or a core file describes it.
///
/// What could not be read is `None`: [`Task::hidden`] says whether rights were missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id in this reader's PID namespace. In a core file: the id that the file has.
    pub tid: u32,
    /// Its id in its own PID namespace. The target's memory has this one.
    pub own_tid: u32,
    /// What the kernel calls it now; may contain anything.
    pub name: String,
    /// Whether it runs, sleeps, is stopped and so on.
    pub state: RunState,
    /// When it started, clock ticks since boot. With `tid` this identifies it. 0: only the second reading says it.
    pub start_ticks: u64,
    /// The processor on which it ran last; `None` if only the second reading says it.
    #[serde(skip)]
    pub processor: Option<usize>,
    /// What it sleeps in; `None` if it runs, or if that is not known.
    pub sleep: Option<Sleep>,
    /// Its registers; `None` if it runs, or if they are not known.
    pub registers: Option<Registers>,
    /// The kernel's account of its processor time.
    pub schedule: Option<Schedule>,
    /// How often it has gone to sleep so far, if it runs or is ready to run, and that is known.
    pub sleeps: Option<u64>,
    /// What the kernel has counted of its work so far, if it runs or is ready to run, and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// Its nice value, from -20 to 19.
    pub nice: Option<i32>,
    pub tracer: Option<u32>,
    /// The function of the kernel that it sleeps in, where the system call says little: it is in a disk sleep, in no
    /// system call, or this reader may not know the system call. `None` otherwise, and if that is not known.
    pub wchan: Option<String>,
    /// Whether the kernel refused to say what the thread sleeps in, because this reader lacks the rights.
    pub hidden: bool,
}

impl Task {
    /// A thread of which nothing else is known.
    pub(crate) fn new(tid: u32, state: RunState) -> Task {
        Task {
            tid,
            own_tid: tid,
            name: String::new(),
            state,
            start_ticks: 0,
            processor: None,
            sleep: None,
            registers: None,
            schedule: None,
            sleeps: None,
            work: None,
            nice: None,
            tracer: None,
            wchan: None,
            hidden: false,
        }
    }

    /// Whether it sleeps in a system call of this kind.
    pub fn is_in_call(&self, kind: CallKind) -> bool {
        matches!(self.sleep, Some(Sleep::Call(call)) if call.kind == kind)
    }

    /// Whether it only lets time pass.
    pub fn is_in_pause(&self) -> bool {
        matches!(self.sleep, Some(Sleep::Call(call)) if call.is_pause())
    }

    /// Whether it sleeps for a time, and waits for no descriptor. Another thread may wake it all the same.
    pub fn is_at_timer(&self) -> bool {
        matches!(self.sleep, Some(Sleep::Call(call)) if call.is_at_timer())
    }

    /// For how long it sleeps at most, ns, counted from the begin of its call. See [`Call::limit_ns`].
    pub fn limit_ns(&self, memory: &dyn Memory) -> Option<u64> {
        match self.sleep? {
            Sleep::Call(call) => call.limit_ns(memory),
            Sleep::Fault => None,
        }
    }
}

/// What the kernel's scheduler says of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// It runs, or is ready to run: `R`.
    Running,
    /// It sleeps, and a signal wakes it: `S`.
    Sleeping,
    /// It sleeps, mostly for a disk, and no signal wakes it: `D`.
    DiskSleep,
    /// A signal has stopped it: `T`.
    Stopped,
    /// Its tracer has stopped it: `t`.
    Traced,
    /// It has ended, and its parent has not asked for it yet: `Z`.
    Zombie,
    /// It is ending: `X`.
    Dead,
    /// A thread of the kernel that has nothing to do: `I`.
    Idle,
    /// Another letter. In a core file: not known.
    Unknown(char),
}

impl From<char> for RunState {
    /// Decodes the third field of `/proc/PID/stat`.
    fn from(letter: char) -> RunState {
        match letter {
            'R' => RunState::Running,
            'S' => RunState::Sleeping,
            'D' => RunState::DiskSleep,
            'T' => RunState::Stopped,
            't' => RunState::Traced,
            'Z' => RunState::Zombie,
            'X' | 'x' => RunState::Dead,
            'I' => RunState::Idle,
            other => RunState::Unknown(other),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sleep {
    Call(Call),
    /// The kernel, and not in a system call: a page fault.
    Fault,
}

/// The registers of a thread, as far as they are known.
///
/// The kernel shows `pc` and `sp` of a sleeping thread to anybody who may read its memory. The others take a tracer or
/// a core file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    /// The program counter: the address of the next instruction.
    pub pc: u64,
    pub sp: u64,
    /// The frame pointer: `rbp` or `x29`.
    pub fp: Option<u64>,
    /// The link register of aarch64, `x30`.
    pub lr: Option<u64>,
    /// The base of the thread's thread-local storage: `fs_base` or `tpidr_el0`.
    pub tls: Option<u64>,
    /// All general registers by their DWARF numbers, these among them; the rest of the array is 0.
    pub all: Option<[u64; 32]>,
}

/// What the kernel counts of a thread's work. A thread that computes in memory that it has, or waits in a loop, does
/// nothing that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// How often the kernel had to bring a page of memory.
    pub faults: u64,
    /// How often the thread has called to read or write.
    pub transfers: u64,
}

impl Work {
    /// Whether hardly anything was done between two readings. The kernel may take a page away now and then to see where
    /// it is used.
    pub fn is_idle_since(self, before: Work) -> bool {
        const FAULTS_MAX: u64 = 8;
        self.transfers == before.transfers && self.faults.wrapping_sub(before.faults) <= FAULTS_MAX
    }
}

/// The kernel's account of a thread's processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// How long it ran, ns.
    pub ran_ns: u64,
    /// How long it was ready to run and did not, ns.
    pub delayed_ns: u64,
    /// How often it was given a processor. If this has not changed, the thread has not run in between.
    pub turns: u64,
}
