//! A short look at a living process, twice: what of it may be stuck, at the cost of a few files of `/proc`.
//!
//! The first reading takes the threads alone. Stacks, names and memory are read with the second one, and only if a
//! thread slept in a futex in both, or was kept from running, and was given no processor in between. The stack of such
//! a thread is what it was in the first reading. The stack of a thread that moved is that of the second one, and read
//! only if the process is recorded, since the thread may hold a lock, or if the thread sleeps for a time.
//!
//! No descriptor stays open between the readings: a machine may have more processes than this program may open files.

use std::time::Instant;

use read_rip_evidence::process::live::{self, LiveTarget};
use read_rip_evidence::runtimes::TokioTasks;
use read_rip_evidence::stacks::Unwinder;
use read_rip_evidence::standing::{Standing, Standings, sleeps_at_same_place, stood_still};
use read_rip_evidence::target::{CallKind, Hidden, RunState, Sleep, Target, Task};
use read_rip_evidence::waits::Owner;
use read_rip_model::findings::Unseen;
use read_rip_model::locks::{Doing, doing, halts, pool_awaits, used_up_permits};
use read_rip_symbols::{self as symbols, FunctionNames};

use crate::Options;
use crate::inspection::{SETTLED, awaits_pool_lately, describe, read_last_calls};
use crate::options::files_of;

/// What came of the second look at a process.
pub enum Second {
    /// It may be stuck, or it is recorded: its threads.
    Seen(Box<Standings>),
    /// Nothing is wrong as far as this reader sees, and it does not see all: the process's name, its pid here and in
    /// its own namespace, and what is not seen.
    Unseen(String, u32, u32, Unseen),
}

/// A living process, after the first of two readings.
pub struct Triage {
    /// Its id.
    pub pid: u32,
    /// Why its memory cannot be read; `None` if it can.
    pub hidden: Option<Hidden>,
    tasks: Vec<Task>,
    is_frozen: bool,
    /// Whether the program has locks that stacks alone show, and waits for them in any call.
    is_server: bool,
    /// The moment, ns since boot.
    taken_ns: Option<u64>,
    taken: Instant,
}

impl Triage {
    /// Reads the threads of a process.
    pub fn first(live: &LiveTarget) -> Result<Triage, live::Error> {
        let (taken_ns, taken) = (live::boottime_ns(), Instant::now());
        let hidden = live.hidden().cloned();
        let is_frozen = live.freezer().is_some_and(|freezer| freezer.thaw().is_some());
        let is_server = live.is_server();
        Ok(Triage { pid: live.pid(), hidden, tasks: live.tasks()?, is_frozen, is_server, taken_ns, taken })
    }

    /// Its threads.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Whether its control group is frozen.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// How many threads the process has.
    pub fn threads(&self) -> usize {
        self.tasks.len()
    }

    /// Whether a thread sleeps in a futex, where all locks of user space sleep, or something keeps it from running, or
    /// threads run that may wait for one another in loops.
    fn may_wait(&self) -> bool {
        self.tasks.iter().any(|task| self.counts(task)) || self.tasks.iter().filter(runs).count() > 1
    }

    /// Whether this thread alone is a reason to read the process again.
    fn counts(&self, task: &Task) -> bool {
        waits_in_futex(task) || self.is_halted(task) || self.is_server
    }

    /// Whether something keeps the thread from running that may be no other thread: see [`halts`].
    fn is_halted(&self, task: &Task) -> bool {
        self.is_frozen
            || task.is_in_call(CallKind::File)
            || matches!(task.state, RunState::Stopped | RunState::Traced | RunState::DiskSleep)
    }

    /// Reads processes again, in any thread: the second argument says whether a process is recorded. `None` too for one
    /// that neither is recorded nor has a thread that may be stuck.
    pub fn second_readings(
        options: &Options,
    ) -> impl Fn(&Triage, bool) -> Option<Second> + Clone + Send + Sync + 'static + use<> {
        let (executable, debug_dirs) = (options.executable.clone(), options.debug_dirs.clone());
        move |triage, is_recorded| {
            let of_files = files_of(triage.pid, executable.clone(), &debug_dirs);
            (is_recorded || triage.may_wait()).then(|| triage.second(is_recorded, &of_files)).flatten()
        }
    }

    /// Reads the process again, and compares. `None` if it has ended, or if no thread that may be stuck stood
    /// still. If nothing may be wrong, and nothing unseen is there, `None` too, unless the process is recorded.
    fn second(&self, is_recorded: bool, options: &symbols::Options) -> Option<Second> {
        let live = LiveTarget::open_here(self.pid).ok()?;
        let tids: Vec<u32> = self.tasks.iter().map(|task| task.tid).collect();
        let now = live.tasks_of(&tids);
        let mut tasks = self.tasks.clone();
        let mut stacks_at = Vec::with_capacity(tasks.len());
        let (mut is_any_still, mut is_any_halted, mut running) = (false, false, 0);
        let mut later = now.iter().peekable();
        for task in &mut tasks {
            // Both are in one order, and those that have ended are missing.
            let same = later.next_if(|now| now.tid == task.tid);
            let is_still = same.is_some_and(|now| stood_still(task, now));
            is_any_still |= is_still && self.counts(task);
            is_any_halted |= is_still && self.is_halted(task);
            running +=
                usize::from(runs(&&*task) && same.is_some_and(|now| runs(&now) && now.sleeps == task.sleeps));
            // It may only have looked whether a lock of its runtime is free.
            let is_there_again = same.is_some_and(|now| sleeps_at_same_place(task, now));
            stacks_at.push(match is_still || is_there_again {
                true => task.registers,
                // One that sleeps for a time may be of a pool.
                false => same.filter(|now| is_recorded || now.is_at_timer()).and_then(|now| now.registers),
            });
            if !is_still && !is_there_again {
                (task.registers, task.sleep) = (None, None);
            }
        }
        if !is_any_still && running < 2 {
            return None;
        }
        let target = live.target_of(tasks, self.taken_ns);
        let memory = live.memory(&target.mappings);
        let mut unwinder = Unwinder::new(&target, &memory, options.clone());
        let mut names = FunctionNames::new(&target.modules, options.clone());
        let stacks = stacks_at.iter().map(|registers| unwinder.stack(registers.as_ref())).collect();
        let mut seen = Standings::of_stacks(target, &memory, stacks, &mut names);
        let window_ns = u64::try_from(self.taken.elapsed().as_nanos()).unwrap_or(u64::MAX);
        seen.compare(live.tasks_of(&tids), &memory, window_ns);
        seen.read_tasks_late(&memory, &mut names);
        if awaits_pool_lately(&seen) {
            std::thread::sleep(SETTLED);
            let settled_ns = u64::try_from(SETTLED.as_nanos()).unwrap_or(u64::MAX);
            seen.compare(live.tasks_again(&seen.target.tasks), &memory, settled_ns);
        }
        seen.find_jobs(&memory, &mut names);
        // How long threads have slept takes some time to find out.
        let may_count = is_recorded
            || is_any_halted
            || seen.may_presume_holders()
            || seen.may_presume_takers()
            || seen.may_have_bystanders()
            || may_be_stuck(&seen)
            || !halts(&seen).is_empty();
        let is_any_running = seen.threads.iter().any(Standing::runs_on);
        if may_count || is_any_running {
            describe(&live, &mut seen, &memory);
            seen.presume_holders(&memory, &mut names);
            seen.presume_takers(&memory, &mut unwinder, &mut names);
            seen.find_bystanders(&memory, &mut names, !live.handles_nothing());
        }
        let is_running = read_last_calls(&mut seen, &memory, options, &mut names);
        if !is_recorded && !is_running && !may_be_stuck(&seen) && halts(&seen).is_empty() {
            let Target { name, pid, own_pid, .. } = &seen.target;
            return Unseen::of(&seen).map(|what| Second::Unseen(name.clone(), *pid, *own_pid, what));
        }
        Some(Second::Seen(Box::new(seen)))
    }
}

/// Whether something may be wrong: a thread waits for another one that the memory names, or no thread moves. Only then
/// are lines looked up and analyses run.
fn may_be_stuck(seen: &Standings) -> bool {
    let is_owned = |owner| matches!(owner, Owner::Tid(_));
    let waits = seen.threads.iter().filter_map(|thread| thread.wait.as_ref());
    if waits.into_iter().any(|wait| is_owned(wait.owner)) {
        return true;
    }
    if seen.interior.as_ref().is_some_and(|inside| !inside.waits.is_empty()) {
        return true;
    }
    let has_circle =
        |tasks: &TokioTasks| !tasks.circles(false).is_empty() || !tasks.lock_circles(false).is_empty();
    if seen.tokio.as_ref().is_some_and(has_circle) {
        return true;
    }
    if pool_awaits(seen).is_some() || !used_up_permits(seen).is_empty() {
        return true;
    }
    // A thread that waits for a pool or for a lock of a database, or ends a runtime, is stuck whether or not others
    // move.
    let waits_for_pool = |at: usize| {
        let is_still = seen.threads[at].is_still == Some(true);
        is_still
            && matches!(
                doing(seen, at),
                Doing::WaitsForObject | Doing::WaitsForCalls | Doing::WaitsForManagedLock
            )
    };
    let is_known = |of: &Standing| of.job.is_some() || of.wakes_nobody;
    if (0..seen.threads.len()).any(waits_for_pool) || seen.threads.iter().any(is_known) {
        return true;
    }
    let living = (0..seen.threads.len())
        .filter(|&at| !matches!(seen.target.tasks[at].state, RunState::Zombie | RunState::Dead));
    let (mut waits_for_lock, mut is_any_inside, mut is_all_inside) = (false, false, true);
    for at in living {
        // Whoever sleeps for a time moves, and is not known to wake the others.
        if seen.threads[at].is_at_timer {
            continue;
        }
        if seen.threads[at].is_still != Some(true) {
            return false;
        }
        match doing(seen, at) {
            Doing::WaitsForLock => waits_for_lock = true,
            Doing::WaitsForThread | Doing::WaitsInside => is_any_inside = true,
            Doing::Stopped | Doing::Unknown => return false,
            _ => is_all_inside = false,
        }
    }
    // If all wait for one another, or for what nobody is known to bring, that is not called sound.
    waits_for_lock || is_all_inside && is_any_inside
}

fn runs(task: &&Task) -> bool {
    task.state == RunState::Running
}

fn waits_in_futex(task: &Task) -> bool {
    matches!(task.sleep, Some(Sleep::Call(call)) if call.futex().is_some())
}
