//! Where each thread of a target stands: its stack, what it waits for, and whether it moved between two readings.
//!
//! It puts together what `target`, `stacks` and `waits` say. It reads the target's memory through [`Memory`], and makes
//! no text. Where an address is in the source is `locations`' question.
//!
//! A living process moves while it is looked at. A thread *stood still* between two readings if the kernel gave it no
//! processor in between, and if it slept in the same call at the same place in both. What such a thread waits for
//! counts as the same if the memory said the same in both readings.
//!
//! | file | what it has |
//! |---|---|
//! | `activity` | what a thread does, in one value |
//! | `bystanders` | whether threads that wait for no other one may wake one |
//! | `inner_holders` | who has locks of a language, by the functions of its threads |
//! | `inward` | what threads do within a runtime that native evidence cannot judge |
//! | `jobs` | which threads wait within jobs that they run for a pool |
//! | `last_calls` | what threads called last that run without pause |
//! | `takers` | which threads have taken units of semaphores that others wait for |
//! | `scheduled` | how much of a processor a thread got, and whether that was too little |

mod activity;
mod bystanders;
mod inner_holders;
mod inward;
mod jobs;
mod last_calls;
mod scheduled;
mod takers;

pub use activity::Activity;
pub use inward::Inward;
pub use jobs::Job;
pub use last_calls::LastCalls;
pub use scheduled::{Load, Scheduled, WINDOW_MIN_NS};

use std::collections::BTreeMap;
use std::time::Duration;

use foldhash::{HashMap, HashSet};
use read_rip_symbols::FunctionNames;
use serde::{Deserialize, Serialize};

use crate::runtimes::{Interior, Runtime, TOKIO_APART_NS, TokioLists, TokioTasks};
use crate::stacks::{Called, Frame, Group, Stack, Unwinder, group};
use crate::target::{
    Connections, Descriptor, Freezer, Helper, KernelWait, Memory, Need, Registers, RunState, Sleep, Target,
    Task, Unstopped,
};
use crate::waits::{
    Clue, FutexWait, LockManager, Owner, Presumption, Runner, Runners, UnknownOwner, WaitKind, Waits, Worker,
    executor_of, holders, is_in_poll, unowned_lock,
};

/// The package of tokio.
const TOKIO: &str = "tokio";
/// What each program has a function of that uses a `LocalSet`.
const LOCAL_SET: &str = "tokio::task::local::LocalSet";

/// How many functions of a stack may say something about a wait.
const NAMES_MAX: usize = 32;
/// How many of the outermost functions of a stack may say whose worker the thread is.
const OUTERMOST_MAX: usize = 64;

/// No name of a thread has more characters.
const THREAD_NAME_MAX: usize = 64;

/// The stacks of no more threads are read in the second reading.
const CAUGHT_UP_MAX: usize = 64;
/// A thread that waits for input or for a time, and has done so for less than this, counts as one that moves. No thread
/// is presumed to have a lock before another one has waited for it for so long.
pub const LATELY_NS: u64 = 1_000_000_000;

/// What is known of all threads of a target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Standings {
    /// The target, at the last reading.
    pub target: Target,
    /// Different stacks, the most frequent first. Their tasks are indices of [`Target::tasks`].
    pub stacks: Vec<Group>,
    /// One for each task.
    pub threads: Vec<Standing>,
    /// The descriptors that threads wait for, by number. Those that were not looked up are missing.
    pub descriptors: BTreeMap<u32, Descriptor>,
    /// The names of the processes that trace threads, as far as they were asked for.
    pub tracers: BTreeMap<u32, String>,
    /// What threads are in in the kernel, by their indices: those in a disk sleep, those whose file another program
    /// answers for, and those that open a FIFO.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel: BTreeMap<usize, KernelWait>,
    /// What threads need from other processes, by their indices, as far as that was asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub needs: BTreeMap<usize, Need>,
    /// The threads whose waits one other process alone can end, by their indices, as far as that was asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub helpers: BTreeMap<usize, Helper>,
    /// What threads of those helpers wait for that are servers with locks of their own, by their pids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub servers: BTreeMap<u32, ServerWaits>,
    /// How busy the machine was, if that was asked for.
    pub load: Option<Load>,
    /// The time between the two readings, ns; `None` if there was one.
    pub window_ns: Option<u64>,
    /// Why threads were not stopped, if the user asked for that.
    pub unstopped: Option<Unstopped>,
    /// Whether nothing can move: the target is a core file.
    pub is_final: bool,
    /// The runtime of a language that the program has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// What the runtime's own data say, if they are understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interior: Option<Interior>,
    /// The tasks of tokio by its own memory; `None` if it has none, or none whose structures are understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokio: Option<TokioTasks>,
    /// Whether the program has tokio, and stacks do not tell which threads poll tasks: its functions have no names, or
    /// tasks are in a `LocalSet` that a function of the program polls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_tokio: bool,
    /// The connections of a living process that polls tasks of an executor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connections: Vec<Connections>,
    /// Where these tasks are. Nobody needs it after the readings.
    #[serde(skip)]
    tokio_lists: TokioLists,
    /// Of no use after the readings.
    #[serde(skip)]
    clues: Vec<Clue>,
    /// Who runs the initialisations that threads wait for, by the stacks of the first reading.
    #[serde(skip)]
    runners: Runners,
    /// What the memory says of the waits for which [`Standings::presume_holders`] has named owners.
    #[serde(skip)]
    unpresumed: Vec<(usize, FutexWait)>,
}

/// Threads of a server that wait for locks which it keeps in structures of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerWaits {
    /// The server's pid in its own PID namespace.
    pub own_pid: u32,
    /// For which locks most of them wait.
    pub manager: LockManager,
    /// How many threads.
    pub threads: usize,
    /// How many threads the server has.
    pub of: usize,
}

/// What is known of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// Its stack's index in [`Standings::stacks`].
    pub stack: usize,
    /// What it is for an executor of async tasks, by the functions of its stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<Worker>,
    /// What keeps the lock for which it waits, by the functions of its stack; after two readings, if it waits there in
    /// both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manager: Option<LockManager>,
    /// Whether it polls a task of tokio, and so no other one, by the functions of its stack.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_poll: bool,
    /// What it waits for, if it sleeps in a futex.
    pub wait: Option<FutexWait>,
    /// For how long it sleeps at most, ns, counted from the begin of its call; `None` if there is no such limit, or if
    /// it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ns: Option<u64>,
    /// Whether it sleeps for a time and waits for no descriptor; after two readings, also if it did so in the first one
    /// and runs in the second one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_at_timer: bool,
    /// Whether it stood still between two readings; `None` if there was one. In a core file: whether it slept. A thread
    /// that woke only to look whether a lock of its runtime is free, which its owner kept throughout, stood still.
    pub is_still: Option<bool>,
    /// Whether what it waits for was the same in both readings.
    pub is_steady: bool,
    /// Its processor time between the two readings; `None` if there was one, or if the kernel keeps no account.
    pub scheduled: Option<Scheduled>,
    /// For how long it has not run, ns, at least; `None` if it did not stand still, or if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep_ns: Option<u64>,
    /// The job in which it waits, if all workers of its pool wait within jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Job>,
    /// Whether it waits for a lock in a function in which another thread waits for work, and which has no name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_turn: bool,
    /// Whether nobody outside of the process can end the call that it sleeps in: a `pause` without a handler, a read of
    /// a timer that is not armed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_in_silent_call: bool,
    /// Whether it waits for no other thread, and neither it nor any other such thread of the process comes to code that
    /// may wake a thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wakes_nobody: bool,
    /// What it called last, if it runs without pause and that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_calls: Option<LastCalls>,
}

impl Standing {
    /// Whether it ran all the time between the two readings, and did nothing that the kernel counts.
    pub fn runs_on(&self) -> bool {
        self.scheduled.is_some_and(|scheduled| scheduled.runs_on)
    }
}

impl Standings {
    /// Unwinds the stacks of a target's threads, and examines what they wait for.
    pub fn new(
        target: Target,
        memory: &dyn Memory,
        unwinder: &mut Unwinder<'_>,
        functions: &mut FunctionNames,
    ) -> Standings {
        let stacks: Vec<Stack> =
            target.tasks.iter().map(|task| unwinder.stack(task.registers.as_ref())).collect();
        Standings::of_stacks(target, memory, stacks, functions)
    }

    /// As [`Standings::new`], with the stacks of the target's tasks.
    pub fn of_stacks(
        target: Target,
        memory: &dyn Memory,
        stacks: Vec<Stack>,
        functions_of: &mut FunctionNames,
    ) -> Standings {
        let mut name = |address| functions_of.at(address);
        let stacks = group(stacks);
        let runtime = Runtime::of(&target, memory);
        let interior = runtime.and_then(|runtime| runtime.interior(&target, memory));
        let mut names: HashMap<u64, String> = HashMap::default();
        let mut called = Called::new(&target, memory);
        let clues = stacks.iter().map(|group| clue(&group.stack, &mut names, &mut name, &mut called));
        let clues: Vec<Clue> = clues.collect();
        let mut known = HashMap::default();
        let workers = stacks.iter().map(|group| worker(&group.stack, &mut known, &mut name));
        let workers: Vec<Option<Worker>> = workers.collect();
        let program = target.modules.iter().find(|module| module.is_executable);
        let program = program.and_then(|program| program.path.file_name()?.to_str());
        let managers = stacks.iter().map(|group| manager(&group.stack, program, &names));
        let managers: Vec<Option<LockManager>> = managers.collect();
        let in_poll = stacks.iter().zip(&workers).map(|(group, worker)| {
            matches!(worker, Some(Worker::OfTasks(_))) && polls_task(&group.stack, &mut name)
        });
        let in_poll: Vec<bool> = in_poll.collect();
        let mut stack_of = vec![0; target.tasks.len()];
        for (at, group) in stacks.iter().enumerate() {
            group.tasks.iter().for_each(|&task| stack_of[task] = at);
        }
        let standing = |stack: usize| Standing {
            stack,
            worker: workers[stack],
            manager: managers[stack],
            is_in_poll: in_poll[stack],
            ..Standing::default()
        };
        let threads = stack_of.into_iter().map(standing).collect();
        let mut standings = Standings {
            target,
            stacks,
            threads,
            descriptors: BTreeMap::new(),
            tracers: BTreeMap::new(),
            kernel: BTreeMap::new(),
            needs: BTreeMap::new(),
            helpers: BTreeMap::new(),
            servers: BTreeMap::new(),
            load: None,
            window_ns: None,
            unstopped: None,
            is_final: false,
            runtime,
            interior,
            tokio: None,
            hides_tokio: false,
            connections: Vec::new(),
            tokio_lists: TokioLists::default(),
            clues,
            runners: Runners::default(),
            unpresumed: Vec::new(),
        };
        standings.name_threads();
        let mut waits = standings.waits(memory);
        let functions = |stack: &Stack| functions(stack, usize::MAX, &mut names, &mut name, &mut called);
        standings.runners = Runners::of(&standings.target, memory, &standings.stacks, &waits, functions);
        for (thread, wait) in waits.iter_mut().enumerate() {
            *wait = wait.take().map(|wait| standings.with_runner(thread, wait));
        }
        for (thread, wait) in standings.threads.iter_mut().zip(waits) {
            thread.wait = wait;
        }
        standings
    }

    /// Reads the tasks of tokio, if threads poll such tasks. In a core file, threads have no names, and their stacks
    /// may be cut, and functions may have no names: then all are looked at. `is_core`: it is one.
    pub fn read_tasks(&mut self, memory: &dyn Memory, names: &mut FunctionNames, is_core: bool) {
        let polls = |&at: &usize| self.is_of_tokio(at);
        let mut threads: Vec<usize> = (0..self.threads.len()).filter(polls).collect();
        let may_search = threads.is_empty() && self.target.hidden.is_none();
        let is_named = may_search && names.has_path(TOKIO);
        self.hides_tokio = may_search && !is_named && names.has_package(TOKIO);
        // A `LocalSet` may be polled by any function that polls futures. While its thread sleeps there, nothing of
        // tokio is on the stack.
        let may_have_set = is_named && names.has_path(LOCAL_SET);
        if threads.is_empty() && (is_core || self.hides_tokio || may_have_set) {
            threads = (0..self.threads.len()).collect();
        }
        if threads.is_empty() {
            return;
        }
        let found = TokioTasks::find(&self.target, &threads, memory, names);
        if let Some((tasks, lists)) = found.filter(|(tasks, _)| !may_have_set || !tasks.tasks.is_empty()) {
            self.hides_tokio |= may_have_set;
            (self.tokio, self.tokio_lists) = (Some(tasks), lists);
        }
    }

    /// Reads the tasks of tokio twice, if threads are known now that poll such tasks, and were not at the first
    /// reading: the names of threads come with the second one.
    pub fn read_tasks_late(&mut self, memory: &dyn Memory, names: &mut FunctionNames) {
        if self.tokio.is_some() {
            return;
        }
        self.read_tasks(memory, names, false);
        if let Some(tasks) = &mut self.tokio {
            std::thread::sleep(Duration::from_nanos(TOKIO_APART_NS));
            tasks.compare(&self.tokio_lists, &self.target, memory, TOKIO_APART_NS);
        }
    }

    /// The executor whose tasks the process has: by the names and the stacks of its threads, or because the program has
    /// it.
    pub fn executor(&self) -> Option<&'static str> {
        self.known_executor().or_else(|| self.hidden_executor())
    }

    /// The executor that the program has, if no thread is known that polls its tasks.
    pub fn hidden_executor(&self) -> Option<&'static str> {
        (self.hides_tokio && self.known_executor().is_none()).then_some(TOKIO)
    }

    fn known_executor(&self) -> Option<&'static str> {
        let mut threads = self.target.tasks.iter().zip(&self.threads);
        threads.find_map(|(task, thread)| executor_of(&task.name, thread.worker))
    }

    /// Whether a thread polls tasks of tokio. The workers of actix do.
    fn is_of_tokio(&self, thread: usize) -> bool {
        let executor = executor_of(&self.target.tasks[thread].name, self.threads[thread].worker);
        matches!(executor, Some("tokio" | "actix"))
    }

    /// Whether threads poll tasks of tokio, and where these are is not understood.
    pub fn has_strange_tokio(&self) -> bool {
        self.tokio.is_none()
            && self.target.hidden.is_none()
            && (self.hides_tokio || (0..self.threads.len()).any(|thread| self.is_of_tokio(thread)))
    }

    /// The target is a core file: nothing moves any more. But it is one moment: a thread that runs in it would have
    /// gone on, and one that sleeps for a time would have soon.
    pub fn finish(&mut self, memory: &dyn Memory) {
        self.is_final = true;
        for (thread, task) in self.threads.iter_mut().zip(&self.target.tasks) {
            (thread.is_still, thread.is_steady) = (Some(task.state != RunState::Running), true);
            thread.limit_ns = task.limit_ns(memory);
        }
    }

    /// Whether threads may be presumed to have locks: see [`Standings::presume_holders`].
    pub fn may_presume_holders(&self) -> bool {
        let has_lock = |thread: &Standing| thread.wait.as_ref().and_then(unowned_lock).is_some();
        self.threads.iter().any(has_lock) || !self.inner_waits().is_empty()
    }

    /// Looks for the threads that are presumed to have locks that store no owner: if threads have waited for these for
    /// [`LATELY_NS`], or in a core file. They are the owners then.
    pub fn presume_holders(&mut self, memory: &dyn Memory, names: &mut FunctionNames) {
        let is_long = |thread: &Standing| thread.asleep_ns.is_some_and(|asleep_ns| asleep_ns >= LATELY_NS);
        let inner = self.inner_waits();
        if self.is_final || inner.iter().any(|&(at, _)| is_long(&self.threads[at])) {
            for (at, wait) in inner {
                if let Some(before) = self.threads[at].wait.replace(wait) {
                    self.unpresumed.push((at, before));
                }
            }
        }
        let lock = |thread: &Standing| {
            let wait = thread.wait.as_ref().filter(|_| self.is_final || is_long(thread));
            wait.and_then(unowned_lock)
        };
        let locks: Vec<Option<u64>> = self.threads.iter().map(lock).collect();
        if locks.iter().all(Option::is_none) {
            return;
        }
        let waits: Vec<Option<FutexWait>> = self.threads.iter().map(|thread| thread.wait.clone()).collect();
        let stack = |at: usize| (self.threads[at].is_still == Some(true)).then(|| self.stack(at));
        let symbol = |address| names.extent(address);
        let holders = holders(&self.target, memory, stack, &waits, symbol);
        for (at, lock) in locks.into_iter().enumerate() {
            let holder = lock.and_then(|lock| holders.get(&lock));
            if let (Some(wait), Some(&holder)) = (&mut self.threads[at].wait, holder) {
                self.unpresumed.push((at, wait.clone()));
                wait.owner = Owner::Tid(self.target.tasks[holder].own_tid);
                wait.presumption = Some(Presumption::HasAddress);
            }
        }
    }

    /// Gives threads the names that the program has for them in its language, unless it has told the kernel others.
    fn name_threads(&mut self) {
        let Some(interior) = &self.interior else { return };
        let own_pid = self.target.own_pid;
        let is_main = |task: &&Task| task.own_tid == own_pid;
        let Some(of_main) = self.target.tasks.iter().find(is_main).map(|task| task.name.clone()) else {
            return;
        };
        let is_unnamed = |task: &&mut Task| task.own_tid != own_pid && task.name == of_main;
        for task in self.target.tasks.iter_mut().filter(is_unnamed) {
            let name = interior.thread(task.own_tid).and_then(|inner| inner.name.as_ref());
            if let Some(name) = name {
                task.name = name.chars().take(THREAD_NAME_MAX).collect();
            }
        }
    }

    /// Compares with a later reading of the same threads, in the same order. Threads that have ended since are missing
    /// there, and are [`RunState::Dead`] then.
    pub fn compare(&mut self, later: Vec<Task>, memory: &dyn Memory, window_ns: u64) {
        for (at, wait) in self.unpresumed.drain(..) {
            self.threads[at].wait = Some(wait);
        }
        // Who waits for the lock of a runtime wakes from time to time to ask for it.
        let is_runtime_lock = |wait: &&FutexWait| wait.kind == WaitKind::RuntimeLock;
        let waits = self.threads.iter().filter_map(|thread| thread.wait.as_ref());
        let runtime_locks: HashSet<u64> = waits.filter(is_runtime_lock).map(|wait| wait.futex).collect();
        let is_at_timer = |task: &Task| {
            let Some(Sleep::Call(call)) = task.sleep else { return false };
            let futex = call.futex().map(|futex| futex.address);
            call.is_at_timer() && !futex.is_some_and(|futex| runtime_locks.contains(&futex))
        };
        let mut later = later.into_iter().peekable();
        let mut sleeps_as_before = vec![false; self.threads.len()];
        for (at, (task, thread)) in self.target.tasks.iter_mut().zip(&mut self.threads).enumerate() {
            // Another thread with the same id has another account of the scheduler.
            let is_same = |now: &Task| task.start_ticks == 0 || now.start_ticks == task.start_ticks;
            let same = later.next_if(|now| now.tid == task.tid).filter(is_same);
            let Some(now) = same else {
                task.state = RunState::Dead;
                (task.sleep, task.registers) = (None, None);
                (thread.is_still, thread.asleep_ns, thread.wait) = (Some(false), None, None);
                thread.manager = None;
                continue;
            };
            (thread.is_still, thread.asleep_ns) = (Some(stood_still(task, &now)), None);
            sleeps_as_before[at] = sleeps_at_same_place(task, &now);
            thread.scheduled = Scheduled::between(task, &now, window_ns);
            let runs = now.state == RunState::Running;
            thread.is_at_timer = is_at_timer(&now) || runs && is_at_timer(task);
            *task = now;
        }
        self.window_ns = Some(window_ns);
        match (self.runtime, &mut self.interior) {
            // Goroutines may be many. Who waits for mutexes is compared.
            (Some(Runtime::Go), Some(interior)) if !interior.waits.is_empty() => {
                interior.compare_waits(Runtime::Go.interior(&self.target, memory));
            }
            (None | Some(Runtime::Go), _) => {}
            (Some(runtime), _) => self.interior = runtime.interior(&self.target, memory),
        }
        self.name_threads();
        if let Some(tasks) = &mut self.tokio {
            tasks.compare(&self.tokio_lists, &self.target, memory, window_ns);
        }
        let waits = self.waits(memory);
        for at in 0..self.threads.len() {
            if sleeps_as_before[at] && self.only_looked(at, waits[at].as_ref()) {
                self.threads[at].is_still = Some(true);
            }
        }
        for (thread, sleeps_as_before) in self.threads.iter_mut().zip(sleeps_as_before) {
            let is_there = |of: &LockManager| thread.is_still == Some(true) || of.polls() && sleeps_as_before;
            thread.manager = thread.manager.filter(is_there);
        }
        for (thread, wait) in self.threads.iter_mut().zip(waits) {
            thread.is_steady = thread.is_still == Some(true) && thread.wait == wait;
            // The stack of a thread that moved on is not the one that this wait was examined with.
            thread.wait = wait.filter(|_| thread.is_still == Some(true));
        }
    }

    /// Whether a thread that woke between the readings can only have looked whether a lock is free, and have gone on to
    /// sleep: in both readings it waits for a lock of its runtime, and the owner of that lock did not run in between.
    fn only_looked(&self, at: usize, now: Option<&FutexWait>) -> bool {
        let owner_stood_still = |owner: u32| {
            let owner = self.target.tasks.iter().position(|task| task.own_tid == owner);
            owner.is_some_and(|owner| owner != at && self.threads[owner].is_still == Some(true))
        };
        let before = self.threads[at].wait.as_ref();
        now.is_some_and(|now| {
            let is_owned = matches!(now.owner, Owner::Tid(owner) if owner_stood_still(owner));
            let is_same =
                before.is_some_and(|before| (before.object, before.owner) == (now.object, now.owner));
            now.kind == WaitKind::RuntimeLock && is_same && is_owned
        })
    }

    /// Some of the threads that stood still: first those whose stacks few others have, which are most telling.
    pub fn still_threads(&self, at_most: usize) -> Vec<usize> {
        let tasks = self.stacks.iter().rev().flat_map(|group| group.tasks.iter().copied());
        tasks.filter(|&task| self.threads[task].is_still == Some(true)).take(at_most).collect()
    }

    /// Adds the stacks of threads that ran in the first reading and slept in the second one, as far as these are few.
    /// `unwind` gives the stack of a thread's registers.
    pub fn catch_up(&mut self, mut unwind: impl FnMut(&Registers) -> Stack) {
        let registers = |at: usize| {
            let is_unknown = self.threads[at].is_still == Some(false) && self.stack(at).frames.is_empty();
            self.target.tasks[at].registers.filter(|_| is_unknown)
        };
        let asleep = (0..self.threads.len()).filter_map(|at| Some((at, registers(at)?)));
        let asleep: Vec<(usize, Registers)> = asleep.take(CAUGHT_UP_MAX).collect();
        if asleep.is_empty() {
            return;
        }
        let clues: HashMap<Stack, Clue> =
            self.stacks.iter().map(|group| group.stack.clone()).zip(self.clues.iter().copied()).collect();
        let mut stacks: Vec<Stack> = (0..self.threads.len()).map(|at| self.stack(at).clone()).collect();
        for (at, registers) in asleep {
            stacks[at] = unwind(&registers);
        }
        self.stacks = group(stacks);
        let clue = |group: &Group| clues.get(&group.stack).copied().unwrap_or_default();
        self.clues = self.stacks.iter().map(clue).collect();
        for (position, group) in self.stacks.iter().enumerate() {
            group.tasks.iter().for_each(|&task| self.threads[task].stack = position);
        }
    }

    /// Forgets what only its reader can use: the mappings in which no object is that a thread waits for.
    pub fn compact(&mut self) {
        let waits = self.threads.iter().filter_map(|thread| thread.wait.as_ref());
        let objects = waits.map(|wait| wait.address());
        let used = objects.filter_map(|object| Some(self.target.mapping_at(object)?.begin));
        let used: HashSet<u64> = used.collect();
        self.target.mappings.retain(|mapping| used.contains(&mapping.begin));
    }

    /// Whether all indices in it lead somewhere. A saved ring may contain anything.
    pub fn is_consistent(&self) -> bool {
        let tasks = self.target.tasks.len();
        self.threads.len() == tasks
            && self.threads.iter().all(|thread| thread.stack < self.stacks.len())
            && self.stacks.iter().flat_map(|group| &group.tasks).all(|&task| task < tasks)
            && self.tokio.as_ref().is_none_or(TokioTasks::is_consistent)
    }

    /// How many threads sleep at memory that cannot be read.
    pub fn unreadable(&self) -> usize {
        let is_absent = |wait: &FutexWait| wait.owner == Owner::Unknown(UnknownOwner::Absent);
        self.threads
            .iter()
            .filter(|thread| thread.is_steady && thread.wait.as_ref().is_some_and(is_absent))
            .count()
    }

    /// The stack of a thread.
    pub fn stack(&self, thread: usize) -> &Stack {
        &self.stacks[self.threads[thread].stack].stack
    }

    /// Takes over what a later inspection of the same process says that its threads need, of those that have not run
    /// since this one.
    pub fn adopt(&mut self, later: Standings) {
        let tasks = &self.target.tasks;
        let is_same = |at: usize| {
            let pair = tasks.get(at).zip(later.target.tasks.get(at));
            pair.is_some_and(|(before, now)| stood_still(before, now))
                && self.threads[at].is_still == Some(true)
        };
        let (steady, needs) = later.needs.into_iter().partition::<BTreeMap<_, _>, _>(|&(at, _)| is_same(at));
        // If one has run, the process could have helped, and nothing is certain.
        let is_certain = needs.is_empty() && later.target.tasks.len() == tasks.len();
        self.needs = if is_certain { steady } else { BTreeMap::new() };
        // So that all who wait together are of one moment.
        for at in self.needs.keys() {
            self.threads[*at].asleep_ns = later.threads[*at].asleep_ns;
        }
    }

    /// Whether the freezer keeps all threads from running.
    pub fn is_frozen(&self) -> bool {
        matches!(self.target.freezer, Some(Freezer::Frozen { .. }))
    }

    /// What the function names of a thread's stack say about its wait.
    pub(crate) fn clue(&self, thread: usize) -> &Clue {
        &self.clues[self.threads[thread].stack]
    }

    /// What each thread waits for now, by its index.
    fn waits(&self, memory: &dyn Memory) -> Vec<Option<FutexWait>> {
        let locks = self.interior.as_ref().map_or(&[][..], |interior| &interior.locks);
        let waits = Waits::new(&self.target, memory, locks);
        let wait = |thread: usize| Some(self.with_runner(thread, waits.of(thread, self.clue(thread))?));
        (0..self.threads.len()).map(wait).collect()
    }

    /// The same wait, with the thread that runs the initialisation, or writes to the stream, as its owner, if that is
    /// known.
    fn with_runner(&self, thread: usize, wait: FutexWait) -> FutexWait {
        let Some(Runner { task, presumption }) = self.runners.of_wait(thread, &wait) else { return wait };
        FutexWait { owner: Owner::Tid(self.target.tasks[task].own_tid), presumption, ..wait }
    }
}

/// Whether a thread did not run between two readings, and slept in the same call in both.
pub fn stood_still(before: &Task, now: &Task) -> bool {
    let has_same_start = before.start_ticks == 0 || before.start_ticks == now.start_ticks;
    let is_same = before.tid == now.tid && has_same_start;
    let has_same_turns = match (before.schedule, now.schedule) {
        (Some(before), Some(now)) => before.turns == now.turns && before.ran_ns == now.ran_ns,
        // The kernel keeps no account. The registers do not tell a second call of the same function.
        _ => false,
    };
    let is_same_call = before.sleep == now.sleep && !matches!(now.sleep, Some(Sleep::Fault));
    is_same && has_same_turns && is_same_call && sleeps_at_same_place(before, now)
}

/// Whether a thread sleeps in both readings, at the same place. It may have run in between.
pub fn sleeps_at_same_place(before: &Task, now: &Task) -> bool {
    let is_asleep =
        matches!(now.state, RunState::Sleeping | RunState::DiskSleep | RunState::Stopped | RunState::Traced);
    is_asleep && before.registers == now.registers
}

/// Interprets the function names of a stack.
fn clue(
    stack: &Stack,
    names: &mut HashMap<u64, String>,
    name: &mut impl FnMut(u64) -> Option<String>,
    called: &mut Called<'_>,
) -> Clue {
    let frames = functions(stack, NAMES_MAX, names, name, called);
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    Clue::of(&frames)
}

/// The names of so many functions of a stack, the innermost first. A function without a name has that of the function
/// that was called, which has ended with a jump to it. `names` has those that are known.
fn functions(
    stack: &Stack,
    at_most: usize,
    names: &mut HashMap<u64, String>,
    name: &mut impl FnMut(u64) -> Option<String>,
    called: &mut Called<'_>,
) -> Vec<String> {
    let mut name = |address| {
        let known = names.entry(address);
        known.or_insert_with(|| name(address).unwrap_or_default()).clone()
    };
    let callers = stack.frames.iter().skip(1).map(Some).chain([None]);
    stack
        .frames
        .iter()
        .zip(callers)
        .take(at_most)
        .map(|(frame, caller)| match name(frame.lookup()) {
            unknown if unknown.is_empty() => {
                let caller = caller.filter(|caller| caller.is_return_address);
                caller.and_then(|caller| called.by(caller.pc)).map(&mut name).unwrap_or_default()
            }
            known => known,
        })
        .collect()
}

/// What keeps the lock for which a thread waits, by the innermost functions of its stack, whose names are known.
fn manager(stack: &Stack, program: Option<&str>, names: &HashMap<u64, String>) -> Option<LockManager> {
    let innermost = stack.frames.iter().take(NAMES_MAX);
    let functions = innermost.map(|frame| names.get(&frame.lookup()).map_or("", String::as_str));
    LockManager::of_stack(program, functions)
}

/// Interprets the outermost functions of a stack: they begin what a worker does. `known` has what their names say.
fn worker(
    stack: &Stack,
    known: &mut HashMap<u64, Option<Worker>>,
    name: &mut impl FnMut(u64) -> Option<String>,
) -> Option<Worker> {
    Worker::of_stack(outermost(stack).iter().map(|frame| frame.lookup()).filter_map(|address| {
        let known = known.entry(address);
        *known.or_insert_with(|| name(address).and_then(|name| Worker::of_function(&name)))
    }))
}

/// Whether a thread with this stack polls a task of tokio, and so no other one.
fn polls_task(stack: &Stack, name: &mut impl FnMut(u64) -> Option<String>) -> bool {
    let functions: Vec<String> = outermost(stack).iter().filter_map(|frame| name(frame.lookup())).collect();
    is_in_poll(functions.iter().map(String::as_str))
}

fn outermost(stack: &Stack) -> &[Frame] {
    &stack.frames[stack.frames.len().saturating_sub(OUTERMOST_MAX)..]
}
