//! What threads called last that run without pause.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Standings;
use crate::stacks::{Cut, End, LastCall, Stack, Unwinder};
use crate::target::Memory;
use crate::waits::{Trying, stacks_of};

/// The stacks of no more threads are looked at.
const THREADS_MAX: usize = 16;
/// How often each stack is looked at, and the time between.
const LOOKS: usize = 5;
const PAUSE: Duration = Duration::from_millis(2);

/// What a thread called last that runs without pause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LastCalls {
    /// The functions that were on its stack whenever it was looked at, from the innermost on. It is in one of them,
    /// or in what the first one has called.
    pub stack: Stack,
    /// What it tried, if that was its last call whenever it was looked at, in one and the same function. A try counts
    /// if the code after it leads back to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trying: Option<Trying>,
}

impl Standings {
    /// Looks at the stacks of threads that run without pause, a few times. `name` gives the name of the function at an
    /// address, demangled.
    pub fn read_last_calls(
        &mut self,
        memory: &dyn Memory,
        unwinder: &mut Unwinder<'_>,
        mut name: impl FnMut(u64) -> Option<String>,
    ) {
        let runs_on = |&at: &usize| self.threads[at].runs_on() && self.stack(at).frames.is_empty();
        let running: Vec<usize> = (0..self.threads.len()).filter(runs_on).take(THREADS_MAX).collect();
        let tids: Vec<u32> = running.iter().map(|&at| self.target.tasks[at].own_tid).collect();
        let stacks = stacks_of(&self.target, memory, &tids);
        let mut looks: Vec<Vec<Vec<LastCall>>> = vec![Vec::new(); running.len()];
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            for (tid, looks) in tids.iter().zip(&mut looks) {
                looks.extend(stacks.get(tid).map(|stack| unwinder.last_calls(stack.clone())));
            }
        }
        for (&at, looks) in running.iter().zip(&mut looks) {
            looks.iter_mut().for_each(|calls| leave_out_linker(calls, &mut name));
            self.threads[at].last_calls = LastCalls::of(looks, &mut name);
        }
    }
}

impl LastCalls {
    /// What several looks at one stack have in common.
    fn of(looks: &[Vec<LastCall>], name: &mut impl FnMut(u64) -> Option<String>) -> Option<LastCalls> {
        let (first, rest) = looks.split_first()?;
        // The outermost call is the last one.
        let depth = |other: &Vec<LastCall>| {
            let pairs = first.iter().rev().zip(other.iter().rev());
            pairs.take_while(|(one, other)| one.frame == other.frame).count()
        };
        let common = rest.iter().map(depth).min().unwrap_or(0);
        let frames: Vec<_> = first[first.len() - common..].iter().map(|call| call.frame).collect();
        if frames.is_empty() {
            return None;
        }
        let tries: Option<Vec<(u64, Trying)>> = looks.iter().map(|calls| try_of(calls, name)).collect();
        let trying = tries.and_then(|tries| {
            let (function, _) = *tries.first()?;
            let is_one = tries.iter().all(|&(of, _)| of == function);
            let trying = tries.iter().map(|&(_, trying)| trying).find(|&trying| trying != Trying::Yield);
            trying.filter(|_| is_one)
        });
        let stack = Stack { frames, inferred_from: Some(0), end: End::Cut(Cut::NoRegisters) };
        Some(LastCalls { stack, trying })
    }
}

/// Leaves out what the dynamic linker has called to find a function. It jumps to that then, so what has called it may
/// have called nothing since.
fn leave_out_linker(calls: &mut Vec<LastCall>, name: &mut impl FnMut(u64) -> Option<String>) {
    let mut is_of_linker = |call: &LastCall| name(call.function).is_some_and(|name| name.starts_with("_dl_"));
    let own = calls.iter().rposition(&mut is_of_linker).map_or(0, |at| at + 1);
    calls.drain(..own);
}

/// The function that tries something by its last call, and what.
fn try_of(calls: &[LastCall], name: &mut impl FnMut(u64) -> Option<String>) -> Option<(u64, Trying)> {
    let innermost = calls.first()?;
    let trying = Trying::of_function(&name(innermost.called?)?)?;
    (trying == Trying::SpinLock || innermost.is_in_loop).then_some((innermost.function, trying))
}
