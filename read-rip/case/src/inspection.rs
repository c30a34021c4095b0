//! A living process is inspected from outside, in two readings: by the kernel's account and in its memory.
//!
//! `standing` and `locks::observe` say what that means. Nothing of the process is stopped or changed, unless the user
//! asks for it (`stopped`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use read_rip_evidence::patience::patiently;
use read_rip_evidence::process::live::{self, LiveMemory, LiveTarget, Machine};
use read_rip_evidence::process::{Liveness, RunControl, children_in, ready_threads, thread_name};
use read_rip_evidence::runtimes::Runtime;
use read_rip_evidence::stacks::{self, Unwinder};
use read_rip_evidence::standing::{Activity, Load, Standing, Standings, WINDOW_MIN_NS};
use read_rip_evidence::target::{CallKind, DescriptorKind, Hidden, KernelWait, Need, RunState, Sleep, Task};
use read_rip_evidence::waits::{FutexWait, LockManager, Owner, WaitKind};
use read_rip_files::Module;
use read_rip_model::findings::{LATELY_NS, Outcome, run_on};
use read_rip_model::locations::Locations;
use read_rip_model::locks::{Doing, doing, pool_awaits, used_up_permits};
use read_rip_report::{ObjectName, SeenNames};
use read_rip_ring::Snapshot;
use read_rip_symbols::{self as symbols, FunctionNames};

use crate::reading::Reading;
use crate::stopped::StoppedStacks;
use crate::{Error, Options, Subject};

/// The time between two looks where no finding depends on it: a shorter one would not tell a thread that gets no
/// processor from one that had no turn.
const WINDOW: Duration = Duration::from_nanos(WINDOW_MIN_NS);
/// Whoever has not run for so long is not about to go on.
pub(crate) const SETTLED: Duration = Duration::from_nanos(LATELY_NS);
/// What is known of the time for which a thread has not run is too little by at most this, mostly.
const MARGIN: Duration = Duration::from_millis(20);
/// The reader asks for at most so many threads how long they have not run.
pub(crate) const ASLEEP_MAX: usize = 4096;
/// No more forked children of a process are inspected.
const CHILDREN_MAX: usize = 32;
/// What more threads are in in the kernel is not asked.
const KERNEL_WAITS_MAX: usize = 1000;
/// More descriptors are not looked up.
const DESCRIPTORS_MAX: usize = 100;

/// A living process, after the first of two readings.
pub struct Inspection {
    live: LiveTarget,
    of_files: symbols::Options,
    memory: LiveMemory,
    seen: Standings,
    taken: Instant,
    settles: bool,
    /// Since when threads have slept that were stopped for a moment, at the latest, by thread id.
    asleep_since: HashMap<u32, Instant>,
}

impl Inspection {
    /// Reads a process for the first time. If it does not answer, what is known without its memory.
    ///
    /// # Errors
    ///
    /// [`Error::Process`] if there is no such process, or if nothing of it may be read.
    pub fn begin(pid: u32, options: &Options) -> Result<Inspection, Error> {
        let of_files = options.of_files_of(pid);
        let begun = if options.stops_threads {
            // Whoever has stopped a thread must let it run again.
            Inspection::begin_here(pid, of_files, true)
        } else {
            let own = of_files.clone();
            patiently(pid, move || Inspection::begin_here(pid, own, false))
                .unwrap_or_else(|| Inspection::begin_here(pid, of_files, false))
        };
        Ok(Inspection { settles: options.settles, ..begun? })
    }

    fn begin_here(pid: u32, of_files: symbols::Options, stops_threads: bool) -> Result<Inspection, Error> {
        let live = LiveTarget::open(pid).map_err(Error::Process)?;
        let stopped = match stops_threads {
            true => StoppedStacks::of(&live, &of_files),
            false => StoppedStacks::default(),
        };
        let mut target = live.target_at_first().map_err(Error::Process)?;
        stopped.restore_calls(&mut target.tasks);
        let asleep_since = stopped.asleep_since(&target.tasks);
        let memory = live.memory(&target.mappings);
        let mut stacks = stacks::all(&target, &memory, &of_files);
        for (stack, task) in stacks.iter_mut().zip(&target.tasks) {
            if let Some(exact) = stopped.stack(task) {
                stack.clone_from(exact);
            }
        }
        let mut names = FunctionNames::new(&target.modules, of_files.clone());
        let mut seen = Standings::of_stacks(target, &memory, stacks, &mut names);
        seen.read_tasks(&memory, &mut names, false);
        seen.unstopped = stopped.unstopped;
        let (taken, settles) = (Instant::now(), false);
        Ok(Inspection { live, of_files, memory, seen, taken, settles, asleep_since })
    }

    /// Reads processes for the first time: those that there are and of which something may be read.
    pub fn begin_all(pids: &[u32], options: &Options) -> Vec<Inspection> {
        pids.iter().filter_map(|&pid| Inspection::begin(pid, options).ok()).collect()
    }

    /// Reads it again, and compares. It reads a third time if that may change what is known: see [`Options::settles`].
    /// `None` if the process does not answer any more.
    pub fn end(self) -> Option<Standings> {
        let second = self.again()?;
        let rest = unsettled(&second.seen).max(awaits_pool_lately(&second.seen).then_some(SETTLED));
        match rest.filter(|_| second.settles) {
            Some(rest) => {
                std::thread::sleep(rest);
                Some(second.again()?.seen)
            }
            None => Some(second.seen),
        }
    }

    /// Reads processes of a ring again, and compares: those that answer. The record says since when threads wait. It
    /// does not say so of tasks that await an object of a pool, nor of threads of whose waits the code may say more:
    /// such a process is read a third time.
    pub fn end_all(inspections: Vec<Inspection>) -> Vec<Standings> {
        Inspection::end_all_at(inspections).into_iter().map(|(seen, _)| seen).collect()
    }

    /// The same, with the moment of each last reading.
    pub(crate) fn end_all_at(inspections: Vec<Inspection>) -> Vec<(Standings, Instant)> {
        let second: Vec<Inspection> = inspections.into_iter().filter_map(Inspection::again).collect();
        let rest = |second: &Inspection| {
            let of_pool = awaits_pool_lately(&second.seen).then_some(SETTLED);
            let of_code = is_open(&second.seen).then(|| unsettled(&second.seen)).flatten();
            of_pool.max(of_code).filter(|_| second.settles)
        };
        let rests: Vec<Option<Duration>> = second.iter().map(rest).collect();
        if let Some(rest) = rests.iter().flatten().max() {
            std::thread::sleep(*rest);
        }
        let last = |(second, rest): (Inspection, Option<Duration>)| match rest {
            Some(_) => second.again(),
            None => Some(second),
        };
        second.into_iter().zip(rests).filter_map(last).map(|last| (last.seen, last.taken)).collect()
    }

    /// Whether a thread waits for a lock of a database.
    pub(crate) fn waits_for_manager(&self) -> bool {
        self.seen.threads.iter().any(|thread| thread.manager.is_some())
    }

    /// Its pid, and what its threads need from other processes now.
    pub(crate) fn needs(&self, machine: &Machine) -> (u32, BTreeMap<usize, Need>) {
        (self.live.pid(), machine.needs_of(&self.live, &self.seen))
    }

    fn again(self) -> Option<Inspection> {
        match self.live.hidden() {
            Some(Hidden::Silent) => Some(self.again_here()),
            _ => patiently(self.live.pid(), || self.again_here()),
        }
    }

    fn again_here(self) -> Inspection {
        let Inspection { live, of_files, memory, mut seen, taken, settles, mut asleep_since } = self;
        let window_ns = u64::try_from(taken.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let taken = Instant::now();
        seen.compare(live.tasks_again(&seen.target.tasks), &memory, window_ns);
        if seen.target.hidden.is_none() {
            let mut unwinder = Unwinder::new(&seen.target, &memory, of_files.clone());
            seen.catch_up(|registers| unwinder.stack(Some(registers)));
        }
        let mut names = FunctionNames::new(&seen.target.modules, of_files.clone());
        if seen.has_strange_tokio() {
            seen.read_tasks_late(&memory, &mut names);
        }
        describe(&live, &mut seen, &memory);
        for (task, thread) in seen.target.tasks.iter().zip(&mut seen.threads) {
            if thread.is_still != Some(true) {
                asleep_since.remove(&task.tid);
            } else if let Some(since) = asleep_since.get(&task.tid) {
                let asleep_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
                thread.asleep_ns = thread.asleep_ns.max(Some(asleep_ns));
            }
        }
        seen.presume_holders(&memory, &mut names);
        presume_takers(&mut seen, &memory, &of_files, &mut names);
        seen.find_jobs(&memory, &mut names);
        seen.find_bystanders(&memory, &mut names, !live.handles_nothing());
        read_last_calls(&mut seen, &memory, &of_files, &mut names);
        Inspection { live, of_files, memory, seen, taken, settles, asleep_since }
    }
}

/// Whether tasks await objects of a pool, or permits that only they have, and are not known to have done so for
/// [`SETTLED`].
pub(crate) fn awaits_pool_lately(seen: &Standings) -> bool {
    let permits_ns = used_up_permits(seen).into_iter().filter_map(|of| of.for_ns);
    let all_ns = pool_awaits(seen).and_then(|of| of.for_ns).into_iter().chain(permits_ns);
    all_ns.min().is_some_and(|for_ns| Duration::from_nanos(for_ns) < SETTLED)
}

/// Whether the code of a program may say more of waits, once they have lasted for [`SETTLED`].
fn is_open(seen: &Standings) -> bool {
    seen.may_presume_takers() || seen.threads.iter().any(|thread| thread.wakes_nobody)
}

/// Until when all threads that wait for locks, or for what comes from outside, have done so for [`SETTLED`]; `None` if
/// none waits for a lock for less than that. So it is with threads that wait for one another in any way, if the code of
/// their program may say more of these waits.
///
/// Locks of languages that are made of condition variables do not count: who waits for a monitor of Java wakes once a
/// second to look.
fn unsettled(seen: &Standings) -> Option<Duration> {
    let is_condition = |at: usize| {
        seen.threads[at].wait.as_ref().is_some_and(|wait| matches!(wait.kind, WaitKind::Condition { .. }))
    };
    let is_open = is_open(seen);
    let waits_for_lock = |at: usize| match doing(seen, at) {
        Doing::WaitsForLock => !is_condition(at),
        doing => is_open && doing == Doing::WaitsInside,
    };
    let waiting: HashSet<u32> = (0..seen.threads.len())
        .filter(|&at| waits_for_lock(at))
        .map(|at| seen.target.tasks[at].own_tid)
        .collect();
    let polls = |at: usize| seen.threads[at].manager.is_some_and(LockManager::polls);
    // Its owner is not about to release the lock: it waits for one itself.
    let waits_for_waiter = |at: usize| match seen.threads[at].wait.as_ref() {
        Some(FutexWait { owner: Owner::Tid(owner), .. }) => waiting.contains(owner),
        _ => false,
    };
    let may_end = |at: usize| waits_for_lock(at) && !waits_for_waiter(at);
    let counts = |at: usize| may_end(at) || doing(seen, at).is_outside();
    let asleep = |is_wanted: &dyn Fn(usize) -> bool| {
        let threads = (0..seen.threads.len()).filter(|&at| is_wanted(at));
        threads.filter_map(|at| seen.threads[at].asleep_ns).min().map(Duration::from_nanos)
    };
    let is_any_running = seen.threads.iter().any(Standing::runs_on);
    let waits_for_database = |at: usize| doing(seen, at) == Doing::WaitsForManagedLock && !polls(at);
    // Nobody but threads that run without pause can end these waits.
    let may_end = |at: usize| {
        may_end(at) || waits_for_database(at) || is_any_running && doing(seen, at) == Doing::WaitsForThread
    };
    let counts = |at: usize| may_end(at) || counts(at);
    asleep(&may_end).filter(|&asleep| asleep < SETTLED)?;
    Some(SETTLED.saturating_sub(asleep(&counts)?) + MARGIN)
}

/// What threads are in in the kernel that stood still: those in a disk sleep, and those whose call another program or a
/// server may have to answer.
fn kernel_waits(live: &LiveTarget, seen: &Standings, memory: &LiveMemory) -> BTreeMap<usize, KernelWait> {
    let is_of_file = |at: usize| match seen.activity(at) {
        Activity::DiskSleep(_) => true,
        Activity::Calls(call) => match call.descriptor().and_then(|number| seen.descriptors.get(&number)) {
            Some(descriptor) => matches!(descriptor.kind, DescriptorKind::File(_)),
            None => matches!(call.kind, CallKind::File | CallKind::Sync | CallKind::Memory | CallKind::Exec),
        },
        Activity::Faults => true,
        _ => false,
    };
    let still = seen.still_threads(KERNEL_WAITS_MAX).into_iter().filter(|&at| is_of_file(at));
    let waits = still.filter_map(|at| {
        let task = &seen.target.tasks[at];
        let descriptor = match task.sleep {
            Some(Sleep::Call(call)) => call.descriptor().and_then(|number| seen.descriptors.get(&number)),
            _ => None,
        };
        let wait = live.kernel_wait(task, descriptor, memory)?;
        let counts = task.state == RunState::DiskSleep || wait.awaits_server() || wait.is_fifo_open();
        counts.then_some((at, wait))
    });
    waits.collect()
}

/// Adds for how long threads have not run, what is behind the descriptors that they wait for, who traces them, what
/// they are in in the kernel, and how busy the machine is.
pub(crate) fn describe(live: &LiveTarget, seen: &mut Standings, memory: &LiveMemory) {
    let called = seen.target.tasks.iter().filter_map(|task| match task.sleep {
        Some(Sleep::Call(call)) => call.descriptor(),
        _ => None,
    });
    let numbers: BTreeSet<u32> = called.collect();
    let descriptors = live.descriptors().get_with_peers(numbers.into_iter().take(DESCRIPTORS_MAX));
    seen.descriptors = descriptors.into_iter().map(|descriptor| (descriptor.number, descriptor)).collect();
    let tracers: BTreeSet<u32> = seen.target.tasks.iter().filter_map(|task| task.tracer).collect();
    seen.tracers = tracers.into_iter().filter_map(|pid| Some((pid, thread_name(pid, pid)?))).collect();
    // Whoever looks from time to time whether a lock is free has waited for longer than it has slept.
    let only_looks =
        |at: &usize| seen.threads[*at].wait.as_ref().is_some_and(|wait| wait.kind == WaitKind::RuntimeLock);
    let asleep: Vec<usize> =
        seen.still_threads(ASLEEP_MAX).into_iter().filter(|at| !only_looks(at)).collect();
    for task in asleep {
        seen.threads[task].asleep_ns = live.not_run_for(&seen.target.tasks[task]);
    }
    if seen.executor().is_some() && seen.target.hidden.is_none() {
        seen.connections = live.descriptors().connections();
    }
    seen.kernel = kernel_waits(live, seen, memory);
    seen.needs = Machine::shared_locks(seen);
    for (thread, is_silent) in seen.threads.iter_mut().zip(live.silent_calls(&seen.target.tasks)) {
        thread.is_in_silent_call = is_silent;
    }
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    seen.load = ready_threads().map(|ready| Load { ready, processors });
}

/// Looks for the threads that have taken units of semaphores for which others wait.
pub(crate) fn presume_takers(
    seen: &mut Standings,
    memory: &LiveMemory,
    of_files: &symbols::Options,
    names: &mut FunctionNames,
) {
    if seen.may_presume_takers() && seen.target.hidden.is_none() {
        let mut unwinder = Unwinder::new(&seen.target, memory, of_files.clone());
        seen.presume_takers(memory, &mut unwinder, names);
    }
}

/// Reads what threads called last that run without pause, if all others wait for one another. Whether that is so.
pub(crate) fn read_last_calls(
    seen: &mut Standings,
    memory: &LiveMemory,
    of_files: &symbols::Options,
    names: &mut FunctionNames,
) -> bool {
    let is_running = run_on(seen).is_some();
    if is_running && seen.target.hidden.is_none() {
        let mut unwinder = Unwinder::new(&seen.target, memory, of_files.clone());
        seen.read_last_calls(memory, &mut unwinder, |address| names.at(address));
    }
    is_running
}

impl Reading {
    /// Inspects a process without a ring, with a pause between the two readings of it.
    pub(crate) fn of_living(pid: u32, pause: Duration, options: &Options) -> Result<Reading, Error> {
        let inspect = || -> Result<Option<Standings>, Error> {
            let inspection = Inspection::begin(pid, options)?;
            std::thread::sleep(pause);
            Ok(inspection.end())
        };
        let seen = match inspect()? {
            Some(seen) => seen,
            // It does not answer any more. What is left is known without its memory.
            None => inspect()?.ok_or_else(|| Error::Process(live::Error::silent(pid)))?,
        };
        Reading::of_inspected(seen)
    }

    /// A process without a ring that was inspected.
    ///
    /// # Errors
    ///
    /// If it has ended meanwhile: nothing of it is left that could be judged.
    fn of_inspected(seen: Standings) -> Result<Reading, Error> {
        let is_over = |task: &Task| matches!(task.state, RunState::Zombie | RunState::Dead);
        match seen.target.tasks.iter().all(is_over) {
            true => Err(Error::Process(live::Error::Ended { pid: seen.target.pid })),
            false => Ok(Reading::of_process(seen)),
        }
    }

    /// A process without a ring.
    pub fn of_process(seen: Standings) -> Reading {
        let snapshot = Snapshot::of_modules(seen.target.modules.clone());
        let pid = i32::try_from(seen.target.pid).unwrap_or(0);
        let path = Subject::Process(seen.target.pid).path().into_owned();
        Reading {
            liveness: Some(Liveness::Alive { pid, control: RunControl::default() }),
            now_ns: seen.target.taken_ns,
            asks_kernel: true,
            seen: Some(seen),
            ..Reading::dead(&path, snapshot)
        }
    }

    /// Reads a ring, and inspects its process if that lives here and may be inspected. The ring is read at the end of
    /// the time between the two readings of the process.
    ///
    /// # Errors
    ///
    /// Those of [`Reading::of`].
    pub fn with_process(subject: &Subject, options: &Options) -> Result<Reading, Error> {
        let reading = Reading::of(subject, options)?;
        let inspections = Inspection::begin_all(&reading.living_processes(), options);
        if inspections.is_empty() {
            return Ok(reading);
        }
        std::thread::sleep(WINDOW);
        // A program that ends well removes its ring.
        let Ok(mut reading) = Reading::of(subject, options) else { return Ok(reading) };
        if !reading.living_processes().is_empty() {
            Inspection::end_all(inspections).into_iter().for_each(|seen| reading.add_seen(seen));
        }
        Ok(reading)
    }

    /// The processes that record in the ring and live on this machine: the one that made it, and forked
    /// children, but not more than are inspected.
    pub fn living_processes(&self) -> Vec<u32> {
        let header = self.snapshot.header.as_ref().filter(|_| self.asks_kernel && !self.is_copy());
        let children = header.map_or_else(Vec::new, |header| children_in(header, &self.snapshot.slots));
        let living = children.into_iter().filter_map(|child| match child.liveness {
            Liveness::Alive { pid, .. } => u32::try_from(pid).ok(),
            _ => None,
        });
        self.process().into_iter().chain(living.take(CHILDREN_MAX)).collect()
    }

    /// What the kernel and the memory say of the process, and of its forked children.
    pub fn standings(&self) -> impl Iterator<Item = &Standings> {
        self.seen.iter().chain(&self.children)
    }

    /// The same, which is taken out.
    pub fn take_standings(&mut self) -> Vec<Standings> {
        self.seen.take().into_iter().chain(std::mem::take(&mut self.children)).collect()
    }

    /// The process, if it lives on this machine.
    pub fn process(&self) -> Option<u32> {
        match self.liveness {
            Some(Liveness::Alive { pid, .. }) if self.asks_kernel && !self.is_copy() => {
                u32::try_from(pid).ok()
            }
            _ => None,
        }
    }

    /// Adds what the kernel and the memory say of a process, and its modules that the ring does not have.
    pub fn add_seen(&mut self, seen: Standings) {
        let known: HashSet<(u64, PathBuf)> =
            self.snapshot.modules.iter().map(|module| (module.load_bias, module.path.clone())).collect();
        let missing = seen.target.modules.iter();
        let missing = missing.filter(|module| !known.contains(&(module.load_bias, module.path.clone())));
        // A ring says more of its modules: these come first where they overlap.
        let mut modules: Vec<Module> = missing.cloned().collect();
        modules.iter_mut().for_each(|module| module.pid = seen.target.own_pid);
        self.snapshot.modules.extend(modules);
        match self.seen {
            Some(_) => self.children.push(seen),
            None => self.seen = Some(seen),
        }
    }

    /// What follows from an analysis: of a process that may not be looked into, or whose locks are not seen, that it
    /// found nothing means nothing. So it is if what a thread waits for cannot be read.
    pub fn outcome(&self, of_analysis: Outcome, runtime: Option<Runtime>) -> Outcome {
        match of_analysis {
            Outcome::Findings | Outcome::ManagedLock => of_analysis,
            _ if self.unrecorded().is_some_and(|seen| seen.target.hidden.is_some()) => Outcome::Hidden,
            _ if runtime.is_some() => Outcome::OtherLocks,
            _ if self.seen.as_ref().is_some_and(|seen| seen.unreadable() > 0) => Outcome::Unreadable,
            other => other,
        }
    }

    /// What the kernel and the memory say of the threads, with these names of the objects that they wait for. `None` if
    /// they were not asked.
    pub fn seen_names<'a>(&'a self, objects: &'a HashMap<u64, ObjectName>) -> Option<SeenNames<'a>> {
        self.seen.as_ref().map(|standings| SeenNames { standings, others: &self.children, objects })
    }

    /// The names of the objects that threads wait for, as far as they are known.
    pub fn objects(&self, locations: &mut Locations<'_>) -> HashMap<u64, ObjectName> {
        let mut all = HashMap::new();
        for seen in self.standings() {
            all.extend(objects_of(seen, locations));
        }
        all
    }
}

/// The names of the objects that threads of a process wait for.
fn objects_of(seen: &Standings, locations: &mut Locations<'_>) -> HashMap<u64, ObjectName> {
    let waits = seen.threads.iter().filter_map(|thread| thread.wait.as_ref());
    let addresses: HashSet<u64> = waits.map(|wait| wait.address()).collect();
    let regions = seen.target.regions();
    let name = |address| {
        let symbol = locations.symbol_of(seen.target.own_pid, address);
        let symbol = symbol.map(|name| ObjectName::Symbol { name, has_namesakes: false });
        let region = || regions.of(address).map(ObjectName::Region);
        Some((address, symbol.or_else(region)?))
    };
    let mut objects: HashMap<u64, ObjectName> = addresses.into_iter().filter_map(name).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for object in objects.values() {
        if let ObjectName::Symbol { name, .. } = object {
            *counts.entry(name.clone()).or_default() += 1;
        }
    }
    for object in objects.values_mut() {
        if let ObjectName::Symbol { name, has_namesakes } = object {
            *has_namesakes = counts[name] > 1;
        }
    }
    objects
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_ends_between_two_readings_is_an_error_that_says_so() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let inspection = Inspection::begin(cat.id(), &Options::default()).expect("it lives");
        drop(cat.stdin.take());
        cat.wait().expect("it ends");
        let seen = inspection.end().expect("it answered");
        let of = Reading::of_inspected(seen).map(|_| ());
        assert!(matches!(of, Err(Error::Process(live::Error::Ended { pid })) if pid == cat.id()), "{of:?}");
    }
}
