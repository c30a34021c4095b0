//! What keeps threads from running that wait for no other thread: a signal, a tracer, the freezer of control groups, or
//! the kernel itself.
//!
//! It says what is so, and not whether that is wrong: `findings::halted` does.

use std::collections::BTreeMap;

use read_rip_evidence::standing::{Activity, Standings};
use read_rip_evidence::target::{CallKind, Freezer, KernelWait, RunState};

use super::ThreadId;

/// What keeps some threads of a process from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    pub cause: HaltCause,
    pub threads: Vec<ThreadId>,
}

/// What keeps threads from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HaltCause {
    /// A signal has stopped them.
    Signal,
    /// Their tracer has stopped them: its pid and its name, as far as they are known.
    Tracer(Option<u32>, Option<String>),
    /// The freezer of control groups.
    Freezer(Freezer),
    /// The kernel: they sleep in it, mostly for a disk or for a server.
    Kernel(KernelWait),
}

impl HaltCause {
    /// The tracer that has stopped threads, if it is known.
    pub fn tracer(&self) -> Option<u32> {
        match self {
            HaltCause::Tracer(tracer, _) => *tracer,
            _ => None,
        }
    }
}

/// What keeps threads of a process from running that stood still between two readings: the causes, and the indices of
/// the threads.
pub fn halts(seen: &Standings) -> Vec<(HaltCause, Vec<usize>)> {
    let still = || (0..seen.threads.len()).filter(|&at| seen.threads[at].is_still == Some(true));
    if seen.is_final {
        return Vec::new();
    }
    if let Some(freezer) = seen.target.freezer.as_ref().filter(|freezer| freezer.thaw().is_some()) {
        // Whoever runs is about to be frozen, or was thawed in between. A thread that was frozen outside of a call is
        // in a sleep in which no registers are compared.
        let all: Vec<usize> = (0..seen.threads.len()).collect();
        let is_asleep = |&at: &usize| seen.target.tasks[at].state == RunState::DiskSleep;
        let is_still = |at: &usize| seen.threads[*at].is_still == Some(true);
        let is_whole = all.iter().all(|at| is_still(at) || is_asleep(at));
        return is_whole.then(|| (HaltCause::Freezer(freezer.clone()), all)).into_iter().collect();
    }
    let mut stopped = Vec::new();
    let mut traced: BTreeMap<Option<u32>, Vec<usize>> = BTreeMap::new();
    let mut inside: Vec<(KernelWait, Vec<usize>)> = Vec::new();
    for at in still() {
        match seen.activity(at) {
            Activity::IsStopped => stopped.push(at),
            Activity::IsTraced(tracer) => traced.entry(tracer).or_default().push(at),
            activity => {
                let Some(wait) = seen.kernel.get(&at) else { continue };
                // The parent of a `vfork` sleeps so until its child runs a program or ends.
                let task = &seen.target.tasks[at];
                if task.is_in_call(CallKind::Spawn)
                    || !matches!(activity, Activity::DiskSleep(_)) && !wait.awaits_server()
                {
                    continue;
                }
                match inside.iter_mut().find(|(known, _)| known == wait) {
                    Some((_, threads)) => threads.push(at),
                    None => inside.push((wait.clone(), vec![at])),
                }
            }
        }
    }
    let stopped = (!stopped.is_empty()).then_some((HaltCause::Signal, stopped));
    let traced = traced.into_iter().map(|(tracer, threads)| {
        let name = tracer.and_then(|pid| seen.tracers.get(&pid)).cloned();
        (HaltCause::Tracer(tracer, name), threads)
    });
    let inside = inside.into_iter().map(|(wait, threads)| (HaltCause::Kernel(wait), threads));
    stopped.into_iter().chain(traced).chain(inside).collect()
}
