//! Whether the threads that wait for no other one come to code that wakes another thread.
//!
//! # Method
//!
//! The code of each function on the stack of such a thread is followed, from where the thread returns to it: through
//! all jumps, and through the functions that it calls. Functions of the C library and of languages are known by their
//! names, and not followed. The thread may wake another one if this way leads to
//!
//! * a function that wakes threads or starts them, or that calls what the program gives it;
//! * a call or a jump through a register, as those of closures and virtual functions;
//! * code that is not read, or has no name.
//!
//! # Blind spots
//!
//! What runs only after an exception, or when the process ends, is not followed. Nor are stores: a thread that waits in
//! a loop for a word of memory needs no function that wakes it. On other machines than x86-64 each thread may wake
//! others.

use foldhash::HashSet;
use read_rip_files::Module;
use read_rip_symbols::{FunctionNames, Whose};

use super::jobs::Search;
use super::{Standing, Standings};
use crate::stacks::{Callee, Flow, Frame, Stack};
use crate::target::{Architecture, CallKind, Memory, RunState, Sleep};
use crate::waits::{FutexWait, Owner, Role, WaitKind, is_closed, may_wake, unlocks};

/// The stacks of no more groups of such threads are followed.
const GROUPS_MAX: usize = 32;

impl Standings {
    /// Finds out whether threads that wait for no other one may wake one, where all threads of a process sleep, or run
    /// without pause.
    /// `handles_signals`: whether the process has a handler of a signal, which may give a unit of a semaphore.
    pub fn find_bystanders(&mut self, memory: &dyn Memory, names: &mut FunctionNames, handles_signals: bool) {
        self.threads.iter_mut().for_each(|thread| thread.wakes_nobody = false);
        let Some((inside, others)) = self.sides() else { return };
        // A handler may act for a thread that waits for signals.
        let is_for_signal = |&at: &usize| self.target.tasks[at].is_in_call(CallKind::SignalWait);
        if handles_signals && others.iter().any(is_for_signal) {
            return;
        }
        // The threads of a library's own pool, as that of OpenMP, may have nothing to do any more.
        let is_program = |frame: &Frame| {
            let mut modules = self.target.modules.iter();
            modules.any(|of| of.relative(frame.lookup()).is_some() && is_of_program(of))
        };
        let is_of_library = |&at: &usize| !self.stack(at).frames.iter().any(is_program);
        let is_any_running = self.threads.iter().any(Standing::runs_on);
        if !is_any_running && inside.iter().all(is_of_library) {
            return;
        }
        let waits = || inside.iter().filter_map(|&at| self.threads[at].wait.as_ref());
        if handles_signals && waits().any(is_for_unit) {
            return;
        }
        // Who runs without pause may try a lock again and again.
        let counts_unlocks = waits().any(has_unknown_owner) || is_any_running;
        let stacks: HashSet<usize> = others.iter().map(|&at| self.threads[at].stack).collect();
        if stacks.len() > GROUPS_MAX {
            return;
        }
        let modules = &self.target.modules;
        let search = Search::new(Flow::new(&self.target, memory), names);
        let mut ways = Ways { search, modules, counts_unlocks, known: HashSet::default() };
        let wake_nobody =
            stacks.iter().all(|&stack| ways.wake_nobody(&self.stacks[stack].stack) == Some(true));
        others.into_iter().for_each(|at| self.threads[at].wakes_nobody = wake_nobody);
    }

    /// Whether [`Standings::find_bystanders`] may find any.
    pub fn may_have_bystanders(&self) -> bool {
        self.sides().is_some()
    }

    /// The threads that wait for another one, and all others but those that run without pause, if all of the others
    /// sleep, and threads wait or run.
    fn sides(&self) -> Option<(Vec<usize>, Vec<usize>)> {
        let is_foreign = self.runtime.is_some() || self.executor().is_some() || self.hides_tokio;
        if is_foreign || self.target.architecture != Architecture::X86_64 || self.target.hidden.is_some() {
            return None;
        }
        let is_over = |at: &usize| matches!(self.target.tasks[*at].state, RunState::Zombie | RunState::Dead);
        let runs_on = |at: &usize| self.threads[*at].runs_on();
        let living = (0..self.threads.len()).filter(|at| !is_over(at) && !runs_on(at));
        let (inside, others): (Vec<usize>, Vec<usize>) =
            living.partition(|&at| waits_inside(&self.threads[at]));
        let sleeps = |at: &usize| matches!(self.target.tasks[*at].sleep, Some(Sleep::Call(_)));
        let is_any_busy = !inside.is_empty() || self.threads.iter().any(Standing::runs_on);
        let is_one = is_any_busy && !others.is_empty() && others.iter().all(sleeps);
        is_one.then_some((inside, others))
    }
}

/// Whether another thread must do something before a thread goes on.
fn waits_inside(thread: &Standing) -> bool {
    thread.is_still == Some(true) && thread.wait.as_ref().is_some_and(|wait| !wait.is_timed)
}

fn is_for_unit(wait: &FutexWait) -> bool {
    let is_semaphore = wait.construct.is_some_and(|construct| construct.role == Role::Semaphore);
    is_semaphore || matches!(wait.kind, WaitKind::Semaphore { .. } | WaitKind::Unknown)
}

fn has_unknown_owner(wait: &FutexWait) -> bool {
    let is_lock = wait.construct.is_some_and(|construct| construct.role == Role::Lock);
    let is_object = matches!(
        wait.kind,
        WaitKind::Condition { .. } | WaitKind::Semaphore { .. } | WaitKind::Barrier { .. } | WaitKind::Join
    );
    !matches!(wait.owner, Owner::Tid(_)) && (is_lock || !is_object)
}

/// The ways of threads through the code of their program.
struct Ways<'a, 'm> {
    search: Search<'a, 'm>,
    modules: &'a [Module],
    /// Whether a function that releases a lock counts as one that wakes threads.
    counts_unlocks: bool,
    /// The functions whose ways have been followed.
    known: HashSet<u64>,
}

impl Ways<'_, '_> {
    /// Whether no way from the functions of a stack leads to code that may wake a thread. `None`: it is not known.
    fn wake_nobody(&mut self, stack: &Stack) -> Option<bool> {
        if !stack.is_complete() {
            return None;
        }
        let mut is_any_own = false;
        for frame in stack.frames.iter().filter(|frame| frame.is_return_address) {
            if self.is_of_system(frame.pc) {
                continue;
            }
            is_any_own = true;
            let function = self.search.function(frame.lookup())?;
            let mut calls: Vec<Callee> = match is_closed(&function.0) {
                true => Vec::new(),
                false => self.search.body(&function.1)?.calls_from(frame.pc)?.collect(),
            };
            while let Some(callee) = calls.pop() {
                if self.known.insert(callee.begin) {
                    calls.extend(self.behind(callee)?);
                }
            }
        }
        // A thread that a library has started may do what the program has asked it for.
        Some(is_any_own)
    }

    /// What a function may call; `None` if it may wake a thread.
    fn behind(&mut self, Callee { begin, word, .. }: Callee) -> Option<Vec<Callee>> {
        let imported = word.and_then(|word| self.search.imported_at(word));
        if imported.as_ref().is_some_and(|name| self.may_wake(name)) {
            return None;
        }
        let function = self.search.function(begin);
        let Some((name, code)) = function.as_deref() else {
            // The loader has not filled in the address yet, or the library does not say its name.
            let are_all_known = || self.modules.iter().all(|of| of.is_executable || is_of_system(of));
            let is_plain = self.is_of_system(begin) || imported.is_some() && are_all_known();
            return is_plain.then(Vec::new);
        };
        if self.may_wake(name) {
            return None;
        }
        if self.is_of_system(begin) || is_closed(name) {
            return Some(Vec::new());
        }
        Some(self.search.body(code)?.calls_from(begin)?.collect())
    }

    fn may_wake(&self, name: &str) -> bool {
        may_wake(name) || self.counts_unlocks && unlocks(name)
    }

    fn is_of_system(&self, address: u64) -> bool {
        self.modules.iter().any(|module| module.relative(address).is_some() && is_of_system(module))
    }
}

/// Whether a module is the program, or a part of it that comes with no package.
fn is_of_program(module: &Module) -> bool {
    matches!(Whose::of_module(module), Whose::User | Whose::Unknown)
}

/// Whether a module is the C library, that of a language, or one that records what these do.
fn is_of_system(module: &Module) -> bool {
    match Whose::of_module(module) {
        Whose::System => true,
        Whose::Runtime(name) => !module.is_executable && matches!(&*name, "libstdc++" | "std"),
        Whose::Library(name) => &*name == "librip",
        Whose::User | Whose::Unknown => false,
    }
}
