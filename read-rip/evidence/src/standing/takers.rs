//! Which thread has taken a unit of a semaphore that another one waits for.
//!
//! # Method
//!
//! A semaphore stores no owner. But where it is used as a lock, one function takes a unit, and gives it back later. So
//! a thread is presumed to have taken the unit of a semaphore if a function on its stack
//!
//! * waits for another semaphore now, by a function that it has called before, on some way to this call;
//! * passes no call on that way which may give the unit back; and
//! * calls a function later that wakes threads, with the argument that it has passed to the earlier call.
//!
//! The arguments are addresses, known by the code and by what is left of the registers. So the same is true of objects
//! that programs make of a condition variable, in a function of their own.
//!
//! Such threads are named where all of them wait for one another: each for what one of them has.
//!
//! # Blind spots
//!
//! A semaphore may have more units, or a third thread may give one. A function that was inlined is no call. Two
//! threads that have taken units of one semaphore are not told apart, and neither is named. On other machines than
//! x86-64 nobody is.

use foldhash::{HashMap, HashSet};
use read_rip_symbols::FunctionNames;

use super::inner_holders::wait_for_one_another;
use super::jobs::{Calls, Search};
use super::{LATELY_NS, Standing, Standings};
use crate::stacks::{Callee, Flow, Unwinder};
use crate::target::Memory;
use crate::waits::{FutexWait, Owner, Presumption, Role, WaitKind, is_of_library};

/// So many of the innermost functions of a stack may be the one that takes units.
const FRAMES_MAX: usize = 8;
/// A function gives a unit back if it calls one that wakes threads, over so many calls.
const DEPTH_MAX: u32 = 3;
/// What a thread waits for is no farther from the begin of the object that its function names.
const OBJECT_MAX_BYTES: u64 = 4096;
/// No more threads are looked at.
const THREADS_MAX: usize = 1000;

/// Whether a thread waits for a unit, or at a condition variable, until another one brings what it waits for.
fn awaits_unit(wait: &FutexWait) -> bool {
    let is_bringer = |role| matches!(role, Role::Semaphore | Role::Condition);
    let is_open = match wait.kind {
        WaitKind::Semaphore { .. } | WaitKind::Condition { .. } => true,
        WaitKind::Opaque => wait.construct.is_some_and(|construct| is_bringer(construct.role)),
        _ => false,
    };
    is_open && wait.is_private && !wait.is_timed && !matches!(wait.owner, Owner::Tid(_))
}

impl Standings {
    /// Whether threads may be presumed to have taken units: one waits for a unit, and another one for something else.
    pub fn may_presume_takers(&self) -> bool {
        let waits = |at: usize| self.threads[at].wait.as_ref();
        let awaited: HashSet<u64> = self.units_awaited().filter_map(|at| waits(at)?.object).collect();
        let is_owned = |at: usize| waits(at).is_some_and(|wait| matches!(wait.owner, Owner::Tid(_)));
        awaited.len() > 1 || !awaited.is_empty() && (0..self.threads.len()).any(is_owned)
    }

    /// The threads that wait for units, and stand still.
    fn units_awaited(&self) -> impl Iterator<Item = usize> {
        let waits = |thread: &Standing| {
            thread.is_still == Some(true) && thread.wait.as_ref().is_some_and(awaits_unit)
        };
        (0..self.threads.len()).filter(move |&at| waits(&self.threads[at]))
    }

    /// Looks for the threads that are presumed to have taken units of semaphores, if all of them have waited for
    /// [`LATELY_NS`] for one another, or in a core file. They are the owners then.
    pub fn presume_takers(
        &mut self,
        memory: &dyn Memory,
        unwinder: &mut Unwinder<'_>,
        names: &mut FunctionNames,
    ) {
        let is_long = |at: &usize| self.threads[*at].asleep_ns.is_some_and(|ns| ns >= LATELY_NS);
        let waiting = self.units_awaited().filter(|at| self.is_final || is_long(at));
        let waiting: HashSet<usize> = waiting.take(THREADS_MAX).collect();
        if waiting.is_empty() {
            return;
        }
        let mut search = Search::new(Flow::new(&self.target, memory), names);
        let mut takers: HashMap<u64, Option<usize>> = HashMap::default();
        for &at in &waiting {
            if let Some(taken) = self.taken(at, unwinder, &mut search) {
                takers.entry(taken).and_modify(|taker| *taker = None).or_insert(Some(at));
            }
        }
        if takers.is_empty() {
            return;
        }
        let tasks = self.target.tasks.iter().enumerate();
        let indices: HashMap<u32, usize> = tasks.map(|(at, task)| (task.own_tid, at)).collect();
        let blocked = |at: usize| {
            let standing = &self.threads[at];
            let wait = standing.wait.as_ref().filter(|wait| !wait.is_timed)?;
            if let Owner::Tid(owner) = wait.owner {
                let owner = indices.get(&owner).filter(|_| standing.is_still == Some(true));
                return Some((*owner?, wait.clone()));
            }
            let taker = takers.get(&wait.object.filter(|_| waiting.contains(&at))?).copied().flatten()?;
            let owner = Owner::Tid(self.target.tasks[taker].own_tid);
            let presumption = Some(Presumption::HasTaken);
            Some((taker, FutexWait { owner, presumption, ..wait.clone() }))
        };
        let stuck = wait_for_one_another((0..self.threads.len()).map(blocked).collect());
        for (at, wait) in stuck.into_iter().filter(|(_, of)| of.presumption == Some(Presumption::HasTaken)) {
            if let Some(before) = self.threads[at].wait.replace(wait) {
                self.unpresumed.push((at, before));
            }
        }
    }

    /// The object of which a thread has taken a unit that it gives back after it has got what it waits for.
    fn taken(&self, at: usize, unwinder: &mut Unwinder<'_>, search: &mut Search<'_, '_>) -> Option<u64> {
        let object = self.threads[at].wait.as_ref()?.object?;
        let given = self.target.tasks[at].registers.as_ref()?;
        let stack = self.stack(at);
        let known = stack.inferred_from.unwrap_or(stack.frames.len());
        let frames = stack.frames[..known].iter().enumerate();
        let calls = frames.filter(|(_, frame)| frame.is_return_address).take(FRAMES_MAX);
        for (depth, frame) in calls {
            let Some(function) = search.function(frame.lookup()) else { continue };
            let (name, code) = &*function;
            let Some(body) = search.body(code).filter(|_| !is_of_library(name)) else { continue };
            let Some(current) = body.calls.iter().find(|callee| callee.end == frame.pc) else { continue };
            let is_same = |begin: u64| begin == current.begin;
            let mut earlier = body.calls_before(frame.pc).filter(|callee| is_same(callee.begin)).peekable();
            if earlier.peek().is_none() {
                continue;
            }
            let registers = unwinder.registers_in(depth, given)?;
            let argument = |search: &Search<'_, '_>, end: u64| search.flow.argument(code, end, &registers);
            let Some(here) = argument(search, frame.pc) else { continue };
            let Some(distance) = object.checked_sub(here).filter(|&of| of < OBJECT_MAX_BYTES) else {
                continue;
            };
            for call in earlier {
                let Some(taken) = argument(search, call.end).filter(|&taken| taken != here) else { continue };
                let others = body.calls.iter().filter(|other| !is_same(other.begin));
                let others: Vec<Callee> =
                    others.filter(|other| argument(search, other.end) == Some(taken)).copied().collect();
                let gives = others.into_iter().filter(|&other| search.calls(other, DEPTH_MAX, Calls::Wakes));
                let gives: HashSet<u64> = gives.map(|other| other.end).collect();
                let mut later = body.calls_between(frame.pc, call.end);
                if later.any(|later| gives.contains(&later.end))
                    && body.leads(call.end, frame.pc, |end| gives.contains(&end))
                {
                    return taken.checked_add(distance);
                }
            }
        }
        None
    }
}
