//! Which threads wait within jobs that they run for a pool of threads, if the pool has no free thread.
//!
//! # Method
//!
//! A worker of a pool goes round in one function: it waits for a job there, and runs it. So a thread is in a job if a
//! function on its stack
//!
//! * has called, in a loop, what a register says: a closure, a virtual function. Up to three functions may lie between
//!   that are of the program, or that call closures for its language;
//! * may also call a function in which threads wait for what others bring, directly or through others, before it makes
//!   that call for the first time.
//!
//! The outermost such function is that of the pool. The workers of the pool are the threads that have this function on
//! their stacks. If one of them is in no job, nothing is said of the pool. If the stack of a thread is not known to its
//! begin, nothing is said of any pool. The first thread of the process is no worker, because it mostly waits for the
//! end. A thread that runs async tasks, or calls for them, is none either.
//!
//! Where the code of the program is in a function of its language, as that which begins a thread, no name tells the
//! function of the pool. A thread that waits for a lock there, while another one waits for work in the same function,
//! waits for its turn, if all threads that wait for locks there wait for one lock.
//!
//! # Blind spots
//!
//! What waits in a loop for two things in turn, for the second one by a virtual function, looks like a worker in a job.
//! So this is no proof of anything. A pool whose function calls its handler by name is not known, nor one that gets its
//! jobs by a virtual function. In a function without a name, threads that wait for one lock of another kind look as if
//! they waited for their turn.

use std::ops::Range;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use read_rip_symbols::FunctionNames;
use serde::{Deserialize, Serialize};

use super::{Standing, Standings};
use crate::stacks::{Body, Callee, FUNCTION_MAX_BYTES, Flow, Frame, Group, Stack};
use crate::target::{Memory, RunState};
use crate::waits::{FutexWait, Role, brings, calls_closure, is_of_library, waits_for_work, wakes};

/// The stacks of no more groups of threads are looked at.
const GROUPS_MAX: usize = 256;
/// The code of no more functions is searched.
const FUNCTIONS_MAX: usize = 4000;
/// No more code is searched: what hostile symbols claim may overlap.
const CODE_MAX_BYTES: u64 = 4 << 20;
/// No more functions are looked up by an address.
const LOOKUPS_MAX: usize = 40_000;
/// The function of a pool is among so many outermost ones of a stack.
const FRAMES_MAX: usize = 64;
/// A function waits if it calls one that waits, over so many calls.
const DEPTH_MAX: u32 = 5;
/// A closure is called by so many functions of its language, one by the other.
const WRAPPERS_MAX: usize = 4;

/// A job of a pool of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Where the function begins that runs the jobs of the pool.
    pub pool: u64,
    /// Where the job returns to.
    pub at: u64,
}

impl Standings {
    /// Finds the threads that wait within jobs, if no thread of their pool is free, and those that wait for their turn.
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
        let mut search = Search::new(Flow::new(&self.target, memory), names);
        self.find_turns(&may_wait, &mut search);
        self.find_full_pools(&may_wait, &mut search);
    }

    fn find_turns(&mut self, may_wait: &[bool], search: &mut Search<'_, '_>) {
        let waits_for_lock = |task: usize| {
            let construct = self.threads[task].wait.as_ref().and_then(|wait| wait.construct);
            may_wait[task] && construct.is_some_and(|construct| construct.role == Role::Lock)
        };
        if !(0..self.threads.len()).any(waits_for_lock) {
            return;
        }
        let shells: Vec<Option<u64>> =
            self.stacks.iter().map(|group| search.shell_of(&group.stack)).collect();
        let groups = || self.stacks.iter().zip(&shells).filter_map(|(group, shell)| Some((group, (*shell)?)));
        let waits_for_work =
            |group: &Group| group.tasks.iter().all(|&task| may_wait[task] && self.waits_for_work(task));
        let of_pools: HashSet<u64> =
            groups().filter(|(group, _)| waits_for_work(group)).map(|(_, shell)| shell).collect();
        // The word of the lock for which threads wait in each function; `None` if they wait for several ones.
        let mut turns: HashMap<u64, Option<u64>> = HashMap::default();
        let mut waiting: Vec<(usize, u64)> = Vec::new();
        for (group, shell) in groups().filter(|(_, shell)| of_pools.contains(shell)) {
            for &task in group.tasks.iter().filter(|&&task| waits_for_lock(task)) {
                let Some(word) = self.threads[task].wait.as_ref().map(|wait| wait.futex) else { continue };
                let known = turns.entry(shell).or_insert(Some(word));
                *known = known.filter(|&known| known == word);
                waiting.push((task, shell));
            }
        }
        for (task, shell) in waiting {
            self.threads[task].waits_for_turn = turns[&shell].is_some();
        }
    }

    /// Whether a thread waits for what another one brings.
    fn waits_for_work(&self, task: usize) -> bool {
        let construct = self.threads[task].wait.as_ref().and_then(|wait| wait.construct);
        construct.is_some_and(|construct| construct.role == Role::Channel || brings(construct.role))
    }

    fn find_full_pools(&mut self, may_wait: &[bool], search: &mut Search<'_, '_>) {
        let is_first = |task: usize| self.target.tasks[task].tid == self.target.pid;
        let has_ended =
            |&task: &usize| matches!(self.target.tasks[task].state, RunState::Zombie | RunState::Dead);
        let living = || self.stacks.iter().filter(|group| !group.tasks.iter().all(has_ended));
        // A thread whose stack is not known may be a free worker of any pool.
        if living().any(|group| !group.stack.is_complete()) {
            return;
        }
        // The function that runs the job, and where, of each group.
        let jobs: Vec<Option<(Job, Range<u64>)>> = living()
            .map(|group| {
                let is_worker = group.tasks.iter().any(|&task| may_wait[task] && !is_first(task));
                if is_worker { search.job_of(&group.stack) } else { None }
            })
            .collect();
        let pools: HashMap<u64, Range<u64>> =
            jobs.iter().flatten().map(|(job, code)| (job.pool, code.clone())).collect();
        let mut free: HashSet<u64> = HashSet::default();
        for (group, job) in living().zip(&jobs) {
            let own = job.as_ref().map(|(job, _)| job.pool);
            let are_all_waiting = group.tasks.iter().all(|&task| may_wait[task]);
            for (&pool, code) in &pools {
                let is_in = group.stack.frames.iter().any(|frame| code.contains(&frame.lookup()));
                if is_in && !(own == Some(pool) && are_all_waiting) {
                    free.insert(pool);
                }
            }
        }
        let mut found = Vec::new();
        for (group, job) in living().zip(&jobs) {
            let Some((job, _)) = job.as_ref().filter(|(job, _)| !free.contains(&job.pool)) else { continue };
            found.extend(group.tasks.iter().filter(|&&task| !is_first(task)).map(|&task| (task, *job)));
        }
        found.into_iter().for_each(|(task, job)| self.threads[task].job = Some(job));
    }
}

/// What a function does for threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Calls {
    /// Threads wait in it for what others bring.
    Waits,
    /// It wakes a thread that waits for a unit of a semaphore, or at a condition variable.
    Wakes,
}

impl Calls {
    fn is(self, name: &str) -> bool {
        match self {
            Calls::Waits => waits_for_work(name),
            Calls::Wakes => wakes(name),
        }
    }
}

/// The name of a function, and its code.
type Function = Rc<(String, Range<u64>)>;

pub(super) struct Search<'a, 'm> {
    pub(super) flow: Flow<'m>,
    names: &'a mut FunctionNames,
    /// By addresses in their code.
    functions: HashMap<u64, Option<Function>>,
    /// By the addresses where functions begin.
    bodies: HashMap<u64, Rc<Body>>,
    /// How much more code is searched.
    left_bytes: u64,
    /// Whether a function calls one of this kind, over at most so many calls.
    calls: HashMap<(u64, u32, Calls), bool>,
}

impl<'a, 'm> Search<'a, 'm> {
    pub(super) fn new(flow: Flow<'m>, names: &'a mut FunctionNames) -> Search<'a, 'm> {
        let (functions, bodies) = (HashMap::default(), HashMap::default());
        Search { flow, names, functions, bodies, left_bytes: CODE_MAX_BYTES, calls: HashMap::default() }
    }

    /// The outermost job that a thread with this stack is in, and the code of the pool's function.
    fn job_of(&mut self, stack: &Stack) -> Option<(Job, Range<u64>)> {
        let calls: Vec<Frame> =
            stack.frames.iter().copied().filter(|frame| frame.is_return_address).collect();
        (0..calls.len()).rev().take(FRAMES_MAX).find_map(|at| self.job_at(&calls, at))
    }

    /// The job that returns to one of the calls of a stack, which begins with the innermost one.
    fn job_at(&mut self, calls: &[Frame], at: usize) -> Option<(Job, Range<u64>)> {
        let function = self.function(calls[at].lookup())?;
        let (name, code) = &*function;
        if !may_run_jobs(name) {
            return None;
        }
        let body = self.body(code)?;
        if !body.is_in_loop(calls[at].pc) {
            return None;
        }
        let from = self.indirect_call(calls, at)?;
        // A closure that was inlined into a function that calls closures may have the loop of the pool.
        if let Some(job) = (from..at).find_map(|inner| self.job_at(calls, inner)) {
            return Some(job);
        }
        // A register may also have the address of a function that waits.
        let called = calls.get(from.checked_sub(1)?)?;
        if !may_run_jobs(&self.function(called.lookup())?.0) {
            return None;
        }
        // A loop may call a function that gets jobs in two places.
        let current = self.function(calls[at - 1].lookup())?.1.start;
        let mut others = body.calls_before(calls[at].pc).filter(|callee| callee.begin != current);
        let takes_jobs = others.any(|callee| self.calls(callee, DEPTH_MAX, Calls::Waits));
        takes_jobs.then(|| (Job { pool: code.start, at: calls[at].pc }, code.clone()))
    }

    /// The outermost call through a register, of this call and of the next inner ones: those of functions that may lie
    /// between a pool and its job.
    fn indirect_call(&mut self, calls: &[Frame], at: usize) -> Option<usize> {
        for inner in (0..=at).rev().take(WRAPPERS_MAX) {
            if inner < at && !may_run_jobs(&self.function(calls[inner].lookup())?.0) {
                return None;
            }
            if self.flow.is_indirect(calls[inner].pc) {
                return Some(inner);
            }
        }
        None
    }

    /// The function of a language in which a thread waits that has the code of a closure in it, without its name.
    fn shell_of(&mut self, stack: &Stack) -> Option<u64> {
        let calls = stack.frames.iter().filter(|frame| frame.is_return_address);
        let mut functions = calls.map_while(|frame| self.function(frame.lookup()));
        let own = functions.find(|function| may_run_jobs(&function.0))?;
        let (name, code) = &*own;
        calls_closure(name).then_some(code.start)
    }

    /// Whether a function is of this kind, or calls one that is. If the loader has not filled in its address yet, its
    /// name says it.
    pub(super) fn calls(&mut self, Callee { begin, word, .. }: Callee, depth: u32, kind: Calls) -> bool {
        if let Some(&known) = self.calls.get(&(begin, depth, kind)) {
            return known;
        }
        self.calls.insert((begin, depth, kind), false);
        let function = self.function(begin);
        let calls = match function.as_deref() {
            Some((name, code)) if code.start == begin => {
                kind.is(name)
                    || depth > 1
                        && self
                            .body(code)
                            .is_some_and(|body| body.calls.iter().any(|&of| self.calls(of, depth - 1, kind)))
            }
            _ => word.and_then(|word| self.names.imported_at(word)).is_some_and(|name| kind.is(&name)),
        };
        self.calls.insert((begin, depth, kind), calls);
        calls
    }

    /// The name of the function whose address the loader writes to a word.
    pub(super) fn imported_at(&mut self, word: u64) -> Option<String> {
        self.names.imported_at(word)
    }

    pub(super) fn function(&mut self, address: u64) -> Option<Function> {
        if let Some(known) = self.functions.get(&address) {
            return known.clone();
        }
        if self.functions.len() >= LOOKUPS_MAX {
            return None;
        }
        let function = self.names.function(address).map(Rc::new);
        self.functions.insert(address, function.clone());
        function
    }

    pub(super) fn body(&mut self, code: &Range<u64>) -> Option<Rc<Body>> {
        if let Some(known) = self.bodies.get(&code.start) {
            return Some(Rc::clone(known));
        }
        if self.bodies.len() >= FUNCTIONS_MAX {
            return None;
        }
        let len_bytes = (code.end - code.start).min(FUNCTION_MAX_BYTES);
        self.left_bytes = self.left_bytes.checked_sub(len_bytes)?;
        let body = Rc::new(self.flow.body(code));
        self.bodies.insert(code.start, Rc::clone(&body));
        Some(body)
    }
}

/// Whether a function of this name may run a job, or call a closure that does.
fn may_run_jobs(name: &str) -> bool {
    !is_of_library(name) || calls_closure(name)
}
