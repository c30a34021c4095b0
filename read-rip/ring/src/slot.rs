//! A slot: one thread's history and its locks, as values.
//!
//! It reads nothing: `copy` does.

use std::ops::Range;

use super::{HeldLock, OpenSpan, RestState, SampledTime, TaskState, Values, Words};

/// What the ring says of a slot's owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotState {
    /// The owner may write.
    #[default]
    Live,
    /// The owner has announced its exit.
    Exited,
    /// The slot is changing owners.
    Claiming,
}

impl SlotState {
    /// Decodes the state of a used slot; `None` for a number that is not one.
    pub(super) fn from_raw(raw: u32) -> Option<SlotState> {
        match raw {
            librip_format::SLOT_LIVE => Some(SlotState::Live),
            librip_format::SLOT_EXITED => Some(SlotState::Exited),
            librip_format::SLOT_CLAIMING => Some(SlotState::Claiming),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotKind {
    #[default]
    Thread,
    /// Nobody: it is a copy of a thread's slot, which the program has kept.
    Capture,
    /// A task: `tid` is its id: see [`task_number`].
    Task,
    /// A thread, and these are its words in a channel, by its index.
    History(usize),
    /// A kind that this version does not know.
    Unknown(u32),
}

impl SlotKind {
    /// Whether it is the slot of a thread or of a task.
    pub fn is_recorded(self) -> bool {
        matches!(self, SlotKind::Thread | SlotKind::Task)
    }

    pub(super) fn of_id(tid: u32) -> SlotKind {
        if is_task(tid) { SlotKind::Task } else { SlotKind::Thread }
    }
}

/// Whether an id is that of a task, and not of a thread.
pub fn is_task(tid: u32) -> bool {
    task_number(tid).is_some()
}

/// The number of the task with this id; `None` if it is a thread.
pub fn task_number(tid: u32) -> Option<u32> {
    (tid & librip_format::TASK_ID != 0).then_some(tid & !librip_format::TASK_ID)
}

impl From<u32> for SlotKind {
    /// Decodes the kind of the format.
    fn from(raw: u32) -> SlotKind {
        match raw {
            librip_format::SLOT_KIND_THREAD => SlotKind::Thread,
            librip_format::SLOT_KIND_CAPTURE => SlotKind::Capture,
            librip_format::SLOT_KIND_TASK => SlotKind::Task,
            _ => SlotKind::Unknown(raw),
        }
    }
}

/// How far a thread had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The index of its slot in the ring. Later the slot may have another owner, with higher sequences.
    pub index: u64,
    /// The sequence of the next word.
    pub count: u64,
}

/// A thread's history.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    pub index: u64,
    /// What the ring says of its owner.
    pub state: SlotState,
    pub kind: SlotKind,
    /// The number of owners that the slot has had.
    pub generation: u32,
    /// The owner's process.
    pub pid: u32,
    /// The owner's thread.
    pub tid: u32,
    /// The PID namespace in which `pid` and `tid` are valid; 0 when unknown.
    pub pid_namespace: u64,
    /// When the owner claimed the slot, ns since boot; 0 when unknown.
    pub claimed_boottime_ns: u64,
    /// When the owner exited, ns since boot; 0 otherwise.
    pub exited_boottime_ns: u64,
    /// The count of the ring's first slot when the owner claimed this one; 0 if the owner's creator is known.
    pub first_slot_count: u64,
    /// How far the owner's creator had come when it created the owner; `None` if unknown.
    pub creator: Option<Position>,
    /// How far the thread that joined the owner had come when the join had returned; `None` if unknown.
    pub joiner: Option<Position>,
    /// The owner's name; may contain anything.
    pub name: String,
    /// Whether the program gave the owner this name. Otherwise it is the one of the kernel, at the time of the claim.
    pub is_named: bool,
    /// The owner's first sequence.
    pub first_sequence: u64,
    /// The locks that the owner holds or waits for, in the order of their table entries.
    pub held: Vec<HeldLock>,
    /// The number of further locks that the owner holds: its table was full.
    pub held_overflowed: u32,
    /// The number of table entries that changed while they were read.
    pub held_in_flux: u32,
    /// The owner's open spans, in the order of their table entries.
    pub spans: Vec<OpenSpan>,
    /// The number of table entries of open spans that changed while they were read.
    pub spans_in_flux: u32,
    /// What is known of it besides, if it is a task's slot.
    pub task: Option<Box<TaskState>>,
    /// When its thread sleeps, if it is a thread's slot, and an executor says so.
    pub rest: Option<RestState>,
    /// When the owner recorded some of its words, oldest first.
    pub sampled: Vec<SampledTime>,
    /// The number of words reserved in the slot when it was read: the sequence of the next word.
    pub count: u64,
    /// The sequence of `words[0]`.
    pub words_from: u64,
    /// The owner's last words, one for each sequence.
    pub words: Words,
    /// Missing words that were reserved but not written. A live writer was about to write them, or a crash
    /// prevented it. Or an older word was written over them: by an event that signal handlers had interrupted while
    /// they recorded more than the slot has words.
    pub unwritten: u32,
    /// Missing words that changed while they were read.
    pub torn: u32,
    /// Missing words that contradict their position. Memory was damaged.
    pub damaged: u32,
}

impl Slot {
    /// The values of an event whose operands are these words, as a range of indices; `None` if they are not those of an
    /// event with values, or are damaged.
    pub fn values(&self, operands: Range<usize>) -> Option<Values> {
        let operands: Option<Vec<u64>> =
            operands.map(|index| Some(self.words.get(index)?.payload())).collect();
        Values::decode(&operands?)
    }

    /// The channel to which these words belong, by its index; `None` if they are those of a slot.
    pub fn channel(&self) -> Option<usize> {
        match self.kind {
            SlotKind::History(channel) => Some(channel),
            _ => None,
        }
    }

    /// The number of the owner's words that later ones have replaced.
    pub fn overwritten(&self) -> u64 {
        self.words_from.saturating_sub(self.first_sequence)
    }
}
