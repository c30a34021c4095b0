//! What the kernel and the memory of a living process say of it: a [`Target`], and its memory.
//!
//! Nothing is stopped, traced, signalled or written, unless the user asks for it (`stop`). The process runs on, so the
//! values are of slightly different moments: what must be true at one moment takes two equal readings.
//!
//! | file | what it has |
//! |---|---|
//! | `text` | the texts of `/proc`, parsed |
//! | `folder` | a directory of `/proc`, held open |
//! | `tasks` | the threads |
//! | `last_ran` | for how long threads have not run |
//! | `maps` | the ranges of memory |
//! | `memory` | the memory |
//! | `executable` | the program's file, and the processor that it is for |
//! | `rights` | why the kernel refuses something |
//! | `descriptors`, `sockets` | what is behind its descriptors |
//! | `peers`, `unix_peers` | who has the other ends of its pipes and unix sockets |
//! | `sock_diag`, `tcp_origins` | asks the kernel for sockets, and which end began a connection |
//! | `needs` | what threads need from other processes, by the facts of the whole machine |
//! | `silent_calls` | which calls nobody outside of the process can end |
//! | `stop` | stops threads for a moment, one after the other |
//! | `freezer` | whether it is frozen |
//! | `kernel` | what a thread is in in the kernel, and who answers for a file system |
//! | `machine` | the processes of the machine, by the pids here and in containers |
//! | `error` | why a process cannot be looked at |

mod connections;
mod descriptors;
mod error;
mod executable;
mod folder;
mod freezer;
mod kernel;
mod last_ran;
mod machine;
mod maps;
mod memory;
mod needs;
mod peers;
mod rights;
mod silent_calls;
mod sock_diag;
mod sockets;
mod stop;
mod tasks;
mod tcp_origins;
mod text;
mod unix_peers;

pub use descriptors::Descriptors;
pub use error::Error;
pub use executable::root_of;
pub use machine::{processes, processes_with_pid_in_container};
pub use memory::LiveMemory;
pub use needs::Machine;
pub use stop::{Visited, resumes, stop_each};

use std::fs::File;
use std::io::Read;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use read_rip_files::Module;

use self::executable::Executable;
use self::folder::{Failure, Folder};
use self::tasks::{Common, tasks, tasks_again, tasks_at_first};
use self::text::Status;
use super::observer::observer;
use super::state::{Seen, look};
use crate::patience::{is_silent, patiently};
use crate::target::{
    Descriptor, Freezer, Hidden, KernelWait, Mapping, Memory, RunState, Target, Task, modules_of,
};
use crate::waits::LockManager;

/// No more of a command line is read.
const COMMAND_LINE_MAX_BYTES: u64 = 200;

/// How often threads that run are asked again.
const TRIES: usize = 3;
/// The time between: a thread that wakes for a moment sleeps again.
const PAUSE: Duration = Duration::from_millis(3);
/// If more threads run, they are not asked again.
const AWAKE_MAX: usize = 64;

/// A living process that is looked at.
#[derive(Debug)]
pub struct LiveTarget {
    pid: u32,
    start_ticks: u64,
    is_fork: bool,
    status: Status,
    /// `/proc/PID/task`.
    tasks: Folder,
    /// The directory of a thread that has not ended. Once the first thread has ended, `/proc/PID` has no memory and no
    /// descriptors any more.
    thread: Folder,
    executable: Executable,
    hidden: Option<Hidden>,
}

impl LiveTarget {
    /// Opens a process by its pid, as this reader's `/proc` numbers it. The id of one of its threads will do too. If
    /// there is no such process here, the one that has the pid in its container is opened.
    ///
    /// # Errors
    ///
    /// If there is no such process, if it has ended, if it is a thread of the kernel, or if `/proc` does not show it.
    /// If the kernel refuses only parts of it, that is no error: see [`Target::hidden`].
    pub fn open(pid: u32) -> Result<LiveTarget, Error> {
        match LiveTarget::open_here(pid) {
            Err(Error::NoProcess { .. }) => match processes_with_pid_in_container(pid).as_slice() {
                [] => Err(Error::NoProcess { pid }),
                &[found] => LiveTarget::open_here(found),
                found => Err(Error::Ambiguous { pid, found: found.to_vec() }),
            },
            opened => opened,
        }
    }

    /// Opens a process as [`LiveTarget::open`] does, and does not look for its pid in containers.
    ///
    /// # Errors
    ///
    /// Those of [`LiveTarget::open`].
    pub fn open_here(pid: u32) -> Result<LiveTarget, Error> {
        let failed = |failure| Error::of(pid, failure);
        let process = Folder::open(&format!("/proc/{pid}")).map_err(failed)?;
        let status = process.status().map_err(failed)?;
        if status.tgid != pid {
            return LiveTarget::open_here(status.tgid);
        }
        // For `stat` of the process, the kernel adds up the times of all its threads.
        let stat = process.read(&format!("task/{pid}/stat")).map_err(failed)?;
        let stat =
            text::stat(&stat).ok_or_else(|| Error::unreadable(pid, "/proc/PID/stat has an unknown form"))?;
        if stat.is_kernel_thread {
            return Err(Error::KernelThread { pid, name: stat.name });
        }
        let tasks = process.folder("task").map_err(failed)?;
        let thread = living(process, &stat).map_err(failed)?;
        let thread = thread.ok_or(Error::Zombie { pid, name: stat.name, parent: stat.parent })?;
        let executable = Executable::of(&thread);
        let hidden = match &executable.other_architecture {
            Some(other) => Some(Hidden::OtherArchitecture(other.clone())),
            None if is_silent(pid) => Some(Hidden::Silent),
            // What may be read from the memory may be read of its system calls.
            None => match thread.file("mem") {
                Err(Failure::Refused) => Some(rights::why(&thread, status.effective_uid)),
                _ => None,
            },
        };
        let text::Stat { start_ticks, is_fork, .. } = stat;
        Ok(LiveTarget { pid, start_ticks, is_fork, status, tasks, thread, executable, hidden })
    }

    /// Why its memory cannot be read; `None` if it can.
    pub fn hidden(&self) -> Option<&Hidden> {
        self.hidden.as_ref()
    }

    /// Whether one of its control groups is this one, or is below it.
    pub fn is_in_group(&self, group: &str) -> bool {
        self.thread.read("cgroup").is_ok_and(|text| text::is_in_group(&text, group))
    }

    /// The names of its program's file and of its first thread.
    pub fn names(&self) -> [Option<String>; 2] {
        let stat = self.thread.read("stat").ok().and_then(|stat| text::stat(&stat));
        [self.executable.name.clone(), stat.map(|stat| stat.name)]
    }

    /// Whether its program has locks of its own that stacks alone show.
    pub fn is_server(&self) -> bool {
        self.executable.name.as_deref().is_some_and(LockManager::is_server)
    }

    /// The beginning of its command line; may contain anything, and is empty if it may not be read.
    pub fn command_line(&self) -> String {
        let Ok(file) = self.thread.file("cmdline") else { return String::new() };
        let read = move || {
            let mut line = Vec::new();
            let read = File::from(file).take(COMMAND_LINE_MAX_BYTES).read_to_end(&mut line);
            read.map(|_| line).unwrap_or_default()
        };
        let line = patiently(self.pid, read).unwrap_or_default();
        let words = line.split(|&byte| byte == 0).filter(|word| !word.is_empty());
        let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
        words.join(" ")
    }

    /// Its pid in its own PID namespace.
    pub fn own_pid(&self) -> u32 {
        self.status.ids.last().copied().unwrap_or(self.pid)
    }

    /// Its pid in this reader's `/proc`.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// All that is known of the process now.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn target(&self) -> Result<Target, Error> {
        self.target_with(LiveTarget::tasks)
    }

    /// As [`LiveTarget::target`], for the first of two readings: see [`LiveTarget::tasks_at_first`].
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn target_at_first(&self) -> Result<Target, Error> {
        self.target_with(LiveTarget::tasks_at_first)
    }

    fn target_with(&self, tasks: impl Fn(&LiveTarget) -> Result<Vec<Task>, Error>) -> Result<Target, Error> {
        let taken_ns = boottime_ns();
        Ok(self.target_of(tasks(self)?, taken_ns))
    }

    /// The same with tasks that were read earlier, at this moment, ns since boot.
    pub fn target_of(&self, tasks: Vec<Task>, taken_ns: Option<u64>) -> Target {
        let mappings = self.mappings();
        let modules = self.modules(&mappings);
        Target {
            pid: self.pid,
            own_pid: self.own_pid(),
            name: self.name(&tasks),
            architecture: self.executable.architecture,
            start_ticks: Some(self.start_ticks),
            taken_ns,
            tasks,
            mappings,
            modules,
            hidden: self.hidden.clone(),
            freezer: self.freezer(),
            is_fork: Some(self.is_fork),
        }
    }

    /// Its threads now, by their ids.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn tasks(&self) -> Result<Vec<Task>, Error> {
        self.existing(tasks)
    }

    /// As [`LiveTarget::tasks`], and faster. For a thread that sleeps in a system call, it leaves out the name, the
    /// start and the nice value, and whether it sleeps for a disk or is stopped: [`LiveTarget::tasks_again`] adds them.
    /// A thread that runs is asked a few times more: one that wakes for a moment shows where it sleeps then.
    ///
    /// # Errors
    ///
    /// If the process has ended.
    pub fn tasks_at_first(&self) -> Result<Vec<Task>, Error> {
        let mut all = self.existing(tasks_at_first)?;
        let tries = if self.hidden.is_none() { TRIES } else { 0 };
        for _ in 0..tries {
            let awake = || all.iter().filter(|task| task.state == RunState::Running);
            let awake: Vec<u32> =
                awake().filter(|task| task.registers.is_none()).map(|task| task.tid).collect();
            if awake.is_empty() || awake.len() > AWAKE_MAX {
                break;
            }
            std::thread::sleep(PAUSE);
            for now in tasks_at_first(&self.tasks, &awake, self.common()) {
                let asleep = all.iter_mut().find(|task| task.tid == now.tid && now.registers.is_some());
                asleep.into_iter().for_each(|task| task.clone_from(&now));
            }
        }
        Ok(all)
    }

    fn existing(&self, read: fn(&Folder, &[u32], Common) -> Vec<Task>) -> Result<Vec<Task>, Error> {
        let tids = self.tasks.numbers().map_err(|failure| self.failed(failure))?;
        let tasks = read(&self.tasks, &tids, self.common());
        let has_ended = tasks.iter().all(|task| matches!(task.state, RunState::Zombie | RunState::Dead));
        if has_ended { Err(Error::Ended { pid: self.pid }) } else { Ok(tasks) }
    }

    /// Some of its threads now: those of these ids that have not ended, in this order.
    pub fn tasks_of(&self, tids: &[u32]) -> Vec<Task> {
        tasks(&self.tasks, tids, self.common())
    }

    /// The same threads now, those that have not ended, in this order. It does not ask again in what a thread sleeps
    /// that has not run since.
    pub fn tasks_again(&self, before: &[Task]) -> Vec<Task> {
        tasks_again(&self.tasks, before, self.common())
    }

    fn common(&self) -> Common {
        let has_other_architecture = self.executable.other_architecture.is_some();
        Common {
            has_own_ids: self.status.ids.len() > 1,
            is_traced: self.is_traced(),
            architecture: (!has_other_architecture).then_some(self.executable.architecture),
        }
    }

    /// The ranges of its memory now, by address; none if the kernel refuses them.
    pub fn mappings(&self) -> Vec<Mapping> {
        if matches!(self.hidden, Some(Hidden::OtherArchitecture(_) | Hidden::Silent)) {
            return Vec::new();
        }
        self.thread.read("maps").map(|text| maps::mappings(&text)).unwrap_or_default()
    }

    /// Its memory. Never fails: what cannot be read is said by each read.
    pub fn memory(&self, mappings: &[Mapping]) -> LiveMemory {
        let is_silent = self.hidden == Some(Hidden::Silent);
        let file = |name: &str| self.thread.file(name).ok().map(File::from).filter(|_| !is_silent);
        LiveMemory::new(self.pid, file("mem"), || file("pagemap"), mappings)
    }

    pub fn descriptors(&self) -> Descriptors<'_> {
        Descriptors::of(&self.thread)
    }

    /// What the freezer of control groups does to it; `None` if that is not known.
    pub fn freezer(&self) -> Option<Freezer> {
        freezer::freezer(&self.thread)
    }

    /// What a thread that sleeps is in in the kernel; `None` if the kernel does not show it. `descriptor` is what its
    /// call is about.
    pub fn kernel_wait(
        &self,
        task: &Task,
        descriptor: Option<&Descriptor>,
        memory: &dyn Memory,
    ) -> Option<KernelWait> {
        kernel::wait(&self.thread, &self.tasks, task, descriptor, memory)
    }

    /// For how long a thread that sleeps has not run, ns, at least; `None` if the kernel does not show it.
    pub fn not_run_for(&self, task: &Task) -> Option<u64> {
        last_ran::not_run_for(&self.tasks, task.tid, task.processor?)
    }

    /// The children of one of its threads, by their pids, as far as they are known. A thread that waits in `vfork` has
    /// one that still runs on its memory.
    pub fn children_of(&self, tid: u32) -> Vec<u32> {
        self.all_children_of(tid).unwrap_or_default()
    }

    /// As [`children_of`](LiveTarget::children_of); `None` if the kernel does not say all.
    fn all_children_of(&self, tid: u32) -> Option<Vec<u32>> {
        self.tasks.read(&format!("{tid}/children")).ok().map(|text| text::numbers(&text))
    }

    /// The children of all its threads; `None` if the kernel does not say all.
    fn children(&self) -> Option<Vec<u32>> {
        // If a thread ends meanwhile, another one has its children.
        (0..TRIES).find_map(|_| {
            let of_threads = self.tasks.numbers().ok()?.into_iter().map(|tid| self.all_children_of(tid));
            of_threads.collect::<Option<Vec<_>>>().map(|all| all.concat())
        })
    }

    /// Whether it was made by fork and has run no program since.
    pub fn is_fork(&self) -> bool {
        self.is_fork
    }

    /// Whether the process has not ended since it was opened. If so, all that was read before is this process's.
    pub fn is_there(&self) -> bool {
        self.thread.status().is_ok()
    }

    fn modules(&self, mappings: &[Mapping]) -> Vec<Module> {
        let entry = self.thread.read("auxv").ok().and_then(|auxv| executable::entry(&auxv));
        let mut modules = modules_of(mappings, &self.memory(mappings), entry);
        for module in &mut modules {
            let file = mappings.iter().find(|mapping| mapping.path.as_ref() == Some(&module.path));
            if let Some(found) = file.and_then(|mapping| executable::file_of(self.pid, mapping)) {
                (module.file_len_bytes, module.modified_ns) = found;
            }
        }
        modules
    }

    /// The name of its program; if this reader may not see that, of its first thread.
    fn name(&self, tasks: &[Task]) -> String {
        let of_thread = || tasks.first().map(|task| task.name.clone());
        self.executable.name.clone().or_else(of_thread).unwrap_or_default()
    }

    fn is_traced(&self) -> bool {
        self.thread.status().is_ok_and(|status| status.tracer != 0)
    }

    fn failed(&self, failure: Failure) -> Error {
        match failure {
            Failure::Gone => Error::Ended { pid: self.pid },
            other => Error::of(self.pid, other),
        }
    }
}

impl Error {
    /// A failure to open a process.
    fn of(pid: u32, failure: Failure) -> Error {
        let seen = match failure {
            Failure::Other(errno) => return Error::unreadable(pid, &errno.to_string()),
            Failure::Gone | Failure::Refused => {
                i32::try_from(pid).map(|pid| look(pid, observer().has_own_proc))
            }
        };
        match seen {
            Ok(Seen::Hidden | Seen::Unknown) => Error::Invisible { pid },
            _ if failure == Failure::Refused => Error::Invisible { pid },
            _ => Error::NoProcess { pid },
        }
    }

    fn unreadable(pid: u32, reason: &str) -> Error {
        Error::System { pid, reason: reason.to_owned() }
    }
}

/// The directory of a process in which the kernel shows its memory and its descriptors: its own, or if its first thread
/// has ended, that of another one. `None` if all have ended.
fn living(process: Folder, stat: &text::Stat) -> Result<Option<Folder>, Failure> {
    if stat.has_ended() { living_thread(&process.folder("task")?) } else { Ok(Some(process)) }
}

/// The same of a process by its pid. `Gone`, too, for a thread of the kernel, which has neither.
fn resources_of(pid: u32) -> Result<Folder, Failure> {
    let process = Folder::open(&format!("/proc/{pid}"))?;
    match text::stat(&process.read("stat")?) {
        Some(stat) if stat.is_kernel_thread => Err(Failure::Gone),
        Some(stat) => living(process, &stat)?.ok_or(Failure::Gone),
        None => Ok(process),
    }
}

/// The directory of a thread that has not ended.
fn living_thread(tasks: &Folder) -> Result<Option<Folder>, Failure> {
    for tid in tasks.numbers()? {
        let Ok(thread) = tasks.folder(&tid.to_string()) else { continue };
        let stat = thread.read("stat").ok().and_then(|stat| text::stat(&stat));
        if stat.is_some_and(|stat| !stat.has_ended()) {
            return Ok(Some(thread));
        }
    }
    Ok(None)
}

/// The time since boot, ns.
pub fn boottime_ns() -> Option<u64> {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?;
    u64::try_from(std::time::Duration::from(now).as_nanos()).ok()
}
