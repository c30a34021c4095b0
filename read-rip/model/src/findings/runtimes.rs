//! Runtimes whose locks are objects of a heap that this reader does not interpret, and executors, whose tasks are
//! values of the program's own types.

use read_rip_evidence::standing::Standings;
use read_rip_evidence::waits::Worker;
use read_rip_files::Module;

use crate::locks::ThreadLocks;

/// A runtime of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagedRuntime {
    /// How the name of its library begins.
    library: &'static str,
    /// Its locks.
    pub locks: &'static str,
    /// The program that shows their owners; it takes the process's id.
    pub tool: &'static str,
}

const RUNTIMES: [ManagedRuntime; 2] = [
    ManagedRuntime { library: "libjvm.", locks: "Java's monitors and locks", tool: "jstack" },
    ManagedRuntime { library: "libcoreclr.", locks: ".NET's monitors", tool: "dotnet-stack report -p" },
];

impl ManagedRuntime {
    /// The runtime among the modules of a process.
    pub fn of(modules: &[Module]) -> Option<ManagedRuntime> {
        let names = || modules.iter().filter_map(|module| module.path.file_name()?.to_str());
        RUNTIMES.into_iter().find(|runtime| names().any(|name| name.starts_with(runtime.library)))
    }
}

/// How the names of threads begin that poll async tasks, unless the program names them, and their executor.
const EXECUTORS: &[(&str, &str)] = &[
    ("tokio-rt-worker", "tokio"),
    ("tokio-runtime-w", "tokio"),
    ("async-std/runti", "async-std"),
    ("smol-", "smol"),
    ("actix-rt|", "actix"),
];

/// What a process has that this reader does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The locks of this runtime.
    Locks(ManagedRuntime),
    /// The async tasks of this executor.
    Tasks(&'static str),
}

impl Unseen {
    /// What a process has that nobody recorded, by its modules and threads.
    pub fn of(seen: &Standings) -> Option<Unseen> {
        let threads = seen.target.tasks.iter().zip(&seen.threads);
        let tasks = || threads.filter_map(|(task, standing)| executor_of(&task.name, standing.worker)).next();
        ManagedRuntime::of(&seen.target.modules).map(Unseen::Locks).or_else(|| tasks().map(Unseen::Tasks))
    }
}

/// The executor whose tasks a thread polls: by the thread's name, or by its stack, which also knows the threads that
/// the executor has for other things.
pub fn executor(thread: &ThreadLocks) -> Option<&'static str> {
    executor_of(&thread.name, thread.seen.and_then(|seen| seen.worker))
}

fn executor_of(name: &str, worker: Option<Worker>) -> Option<&'static str> {
    let by_name = EXECUTORS.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|of| of.1);
    match worker {
        Some(Worker::OfCalls) => None,
        Some(Worker::OfTasks(executor)) => by_name.or(Some(executor)),
        None => by_name,
    }
}
