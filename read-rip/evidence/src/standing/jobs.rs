//! Which threads wait within jobs that they run for a pool of threads, when no thread of the pool is free.
//!
//! # Method
//!
//! A worker of a pool goes round in one function: it waits for a job there, and runs it. So a thread is in a job if a
//! function on its stack
//!
//! * has called, in a loop, what a register says: a closure, a virtual function; or a function of the program; and
//! * also calls, directly or through others, a function in which threads wait for what others bring: before that call,
//!   unless a register says what that calls.
//!
//! The outermost such function is that of the pool. The workers of the pool are the threads that have this function on
//! their stacks. If one of them is in no job, or its stack is not known, nothing is said of the pool. The first thread
//! of the process is no worker: it mostly waits for the end. Nor is one that runs async tasks, or calls for them.
//!
//! Where the code of the program is in a function of its language, as that which begins a thread, no name tells the
//! function of the pool. A thread that waits for a lock there, while another one waits for work in the same function,
//! waits for its turn.
//!
//! # Blind spots
//!
//! Code of x86-64 is searched for calls and jumps without decoding it, so a thread may seem to be in a job that has
//! none. What waits in a loop for two things in turn looks like a worker in a job. So this is no proof of anything.

use std::ops::Range;

use foldhash::{HashMap, HashSet};
use read_rip_symbols::FunctionNames;

use super::{Standing, Standings};
use crate::stacks::{Callee, Flow, Group, Stack};
use crate::target::{Memory, RunState};
use crate::waits::{FutexWait, Role, calls_closure, is_of_library, waits_for_work};

/// The stacks of no more groups of threads are looked at.
const GROUPS_MAX: usize = 256;
/// The code of no more functions is searched.
const FUNCTIONS_MAX: usize = 4000;
/// A function waits if it calls one that waits, over so many calls.
const DEPTH_MAX: u32 = 5;
/// A closure is called by so many functions of its language, one by the other.
const WRAPPERS_MAX: usize = 4;

impl Standings {
    /// Finds the threads that wait within jobs, of pools no thread of which is free.
    pub fn find_jobs(&mut self, memory: &dyn Memory, names: &mut FunctionNames) {
        // A worker of tasks may be a job of the pool for calls, and have nothing to do.
        let is_idle = |wait: &FutexWait| wait.construct.is_some_and(|of| of.role == Role::Idle);
        let waits = |thread: &Standing| {
            let is_open = |wait: &FutexWait| !wait.is_timed && !is_idle(wait);
            thread.is_still == Some(true)
                && thread.worker.is_none()
                && thread.wait.as_ref().is_some_and(is_open)
        };
        if self.stacks.len() > GROUPS_MAX || !self.threads.iter().any(waits) {
            return;
        }
        let may_wait: Vec<bool> = self.threads.iter().map(waits).collect();
        let is_first = |task: usize| self.target.tasks[task].tid == self.target.pid;
        let mut search = Search::new(Flow::new(&self.target, memory), names);
        // The function that runs the job, and where, of each group.
        let jobs: Vec<Option<Job>> = self
            .stacks
            .iter()
            .map(|group| {
                let is_worker = group.tasks.iter().any(|&task| may_wait[task] && !is_first(task));
                if is_worker { search.job_of(&group.stack) } else { None }
            })
            .collect();
        let pools: HashMap<u64, Range<u64>> =
            jobs.iter().flatten().map(|job| (job.function.start, job.function.clone())).collect();
        let mut free: HashSet<u64> = HashSet::default();
        let has_ended =
            |&task: &usize| matches!(self.target.tasks[task].state, RunState::Zombie | RunState::Dead);
        for (group, job) in self.stacks.iter().zip(&jobs) {
            if group.tasks.iter().all(has_ended) {
                continue;
            }
            let own = job.as_ref().map(|job| job.function.start);
            let are_all_waiting = group.tasks.iter().all(|&task| may_wait[task]);
            for (&pool, code) in &pools {
                let is_in = group.stack.frames.iter().any(|frame| code.contains(&frame.lookup()));
                let may_be_in = is_in || !group.stack.is_complete();
                if may_be_in && !(own == Some(pool) && are_all_waiting) {
                    free.insert(pool);
                }
            }
        }
        let shells: Vec<Option<u64>> =
            self.stacks.iter().map(|group| search.shell_of(&group.stack)).collect();
        let waits_for_lock = |task: usize| {
            let construct = self.threads[task].wait.as_ref().and_then(|wait| wait.construct);
            may_wait[task] && construct.is_some_and(|construct| construct.role == Role::Lock)
        };
        let groups = || self.stacks.iter().zip(&shells).filter_map(|(group, shell)| Some((group, (*shell)?)));
        let waits_for_work =
            |group: &Group| group.tasks.iter().all(|&task| may_wait[task] && !waits_for_lock(task));
        let of_pools: HashSet<u64> =
            groups().filter(|(group, _)| waits_for_work(group)).map(|(_, shell)| shell).collect();
        let in_turn: Vec<usize> = groups()
            .filter(|(_, shell)| of_pools.contains(shell))
            .flat_map(|(group, _)| group.tasks.iter().copied())
            .filter(|&task| waits_for_lock(task))
            .collect();
        in_turn.into_iter().for_each(|task| self.threads[task].waits_for_turn = true);
        for (group, job) in self.stacks.iter().zip(jobs) {
            let Some(job) = job.filter(|job| !free.contains(&job.function.start)) else { continue };
            for &task in group.tasks.iter().filter(|&&task| !is_first(task)) {
                self.threads[task].job = Some(job.at);
            }
        }
    }
}

/// A job that a thread is in.
struct Job {
    /// The code of the function that runs it.
    function: Range<u64>,
    /// Where the job returns to.
    at: u64,
}

struct Search<'a, 'm> {
    flow: Flow<'m>,
    names: &'a mut FunctionNames,
    functions: HashMap<u64, Option<(String, Range<u64>)>>,
    calls: HashMap<u64, Vec<Callee>>,
    /// Whether a function waits, over at most so many calls.
    waits: HashMap<(u64, u32), bool>,
}

impl<'a, 'm> Search<'a, 'm> {
    fn new(flow: Flow<'m>, names: &'a mut FunctionNames) -> Search<'a, 'm> {
        let (functions, calls) = (HashMap::default(), HashMap::default());
        Search { flow, names, functions, calls, waits: HashMap::default() }
    }

    /// The outermost job that a thread with this stack is in.
    fn job_of(&mut self, stack: &Stack) -> Option<Job> {
        let calls: Vec<u64> =
            stack.frames.iter().filter(|frame| frame.is_return_address).map(|frame| frame.pc).collect();
        (0..calls.len()).rev().find_map(|at| self.job_at(&calls, at))
    }

    /// The job that returns to one of the return addresses of a stack, which begins with the innermost one.
    fn job_at(&mut self, calls: &[u64], at: usize) -> Option<Job> {
        let pc = calls[at];
        let (name, function) = self.function(pc - 1)?;
        let may_run_jobs = !is_of_library(&name) || calls_closure(&name);
        if !may_run_jobs || !self.flow.is_in_loop(pc, &function) {
            return None;
        }
        // The functions of a language that call closures go in between. They run no jobs themselves.
        let wrappers = at.saturating_sub(WRAPPERS_MAX - 1)..=at;
        let indirect = wrappers.rev().find(|&inner| self.flow.is_indirect(calls[inner]));
        if let Some(job) = indirect.and_then(|from| (from..at).find_map(|inner| self.job_at(calls, inner))) {
            return Some(job);
        }
        // A register may also have the address of a function that waits. And a function may call one of several that
        // wait, as with and without a time limit.
        let called = calls.get(indirect.unwrap_or(at).checked_sub(1)?)?;
        if self.function(called - 1).is_none_or(|(name, _)| is_of_library(&name) && !calls_closure(&name)) {
            return None;
        }
        let others = self.calls_of(&function).into_iter().filter(|callee| callee.end != pc);
        let mut before = others.filter(|callee| indirect.is_some() || callee.end < pc);
        let takes_jobs = before.any(|callee| self.waits(callee, DEPTH_MAX));
        takes_jobs.then_some(Job { function, at: pc })
    }

    /// The function of a language in which a thread waits that has the code of a closure in it, without its name.
    fn shell_of(&mut self, stack: &Stack) -> Option<u64> {
        let calls = stack.frames.iter().filter(|frame| frame.is_return_address);
        let functions = calls.map_while(|frame| self.function(frame.lookup()));
        let mut own = functions.skip_while(|(name, _)| is_of_library(name) && !calls_closure(name));
        own.next().filter(|(name, _)| calls_closure(name)).map(|(_, code)| code.start)
    }

    /// Whether a function is one in which threads wait for what others bring, or calls such a function. If the loader
    /// has not filled in its address yet, its name says it.
    fn waits(&mut self, Callee { begin, word, .. }: Callee, depth: u32) -> bool {
        if let Some(&known) = self.waits.get(&(begin, depth)) {
            return known;
        }
        self.waits.insert((begin, depth), false);
        let waits = match self.function(begin) {
            Some((name, function)) if function.start == begin => {
                waits_for_work(&name)
                    || depth > 1 && self.calls_of(&function).into_iter().any(|of| self.waits(of, depth - 1))
            }
            _ => word.and_then(|word| self.names.imported_at(word)).is_some_and(|name| waits_for_work(&name)),
        };
        self.waits.insert((begin, depth), waits);
        waits
    }

    fn function(&mut self, address: u64) -> Option<(String, Range<u64>)> {
        let names = &mut self.names;
        self.functions.entry(address).or_insert_with(|| names.function(address)).clone()
    }

    fn calls_of(&mut self, function: &Range<u64>) -> Vec<Callee> {
        if !self.calls.contains_key(&function.start) && self.calls.len() < FUNCTIONS_MAX {
            let calls = self.flow.calls_in(function);
            self.calls.insert(function.start, calls);
        }
        self.calls.get(&function.start).cloned().unwrap_or_default()
    }
}
