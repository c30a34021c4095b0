//! What a process has that nobody sees: the locks of a language's runtime, and async tasks of an executor, which are
//! values of the program's own types.

use read_rip_evidence::runtimes::Runtime;
use read_rip_evidence::standing::Standings;
use read_rip_evidence::waits::executor_of;

use crate::locks::{LockModel, ThreadLocks};

/// What a process has that this reader does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The locks of this runtime.
    Locks(Runtime),
    /// The async tasks of this executor.
    Tasks(&'static str),
}

impl Unseen {
    /// What a process has that nobody recorded, by its modules and threads.
    pub fn of(seen: &Standings) -> Option<Unseen> {
        seen.unseen().map(Unseen::Locks).or_else(|| seen.executor().map(Unseen::Tasks))
    }
}

/// The executor whose tasks a thread polls: by the thread's name, or by its stack, which also knows the threads that
/// the executor has for other things.
pub fn executor(thread: &ThreadLocks) -> Option<&'static str> {
    executor_of(&thread.name, thread.seen.and_then(|seen| seen.worker))
}

/// The executors of the threads that poll tasks, one for each thread, or the one that the program has if no such thread
/// is known.
pub fn executors(model: &LockModel) -> impl Iterator<Item = &'static str> {
    model.present().filter_map(|(_, thread)| executor(thread)).chain(model.hidden_executor)
}
