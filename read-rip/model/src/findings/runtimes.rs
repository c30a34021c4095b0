//! What a process has that nobody sees: the locks of a language's runtime, and async tasks of an executor, which are
//! values of the program's own types.

use read_rip_evidence::runtimes::Runtime;
use read_rip_evidence::standing::Standings;
use read_rip_evidence::waits::executor_of;

use crate::locks::ThreadLocks;

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
        let threads = seen.target.tasks.iter().zip(&seen.threads);
        let tasks = || threads.filter_map(|(task, standing)| executor_of(&task.name, standing.worker)).next();
        seen.unseen().map(Unseen::Locks).or_else(|| tasks().map(Unseen::Tasks))
    }
}

/// The executor whose tasks a thread polls: by the thread's name, or by its stack, which also knows the threads that
/// the executor has for other things.
pub fn executor(thread: &ThreadLocks) -> Option<&'static str> {
    executor_of(&thread.name, thread.seen.and_then(|seen| seen.worker))
}
