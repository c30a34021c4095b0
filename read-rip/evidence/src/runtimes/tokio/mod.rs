//! tokio: the tasks of its runtimes, what they do, and which of them the end of another one wakes, from memory.
//!
//! A runtime has a list of all tasks that it owns. The list is found by its shape, from the stacks of the threads that
//! poll tasks, and believed only if each task that it leads to belongs to it: see [`Member`](cell::Member). Nothing
//! depends on a version number. A version whose structures have another shape is not understood. A program without
//! symbols is, but its tasks have no names.
//!
//! Nothing is stopped, so lists change while they are read. A list that does not fit together is read again, and what
//! could not be reached is counted.
//!
//! | file | what it has |
//! |---|---|
//! | `values` | the values: tasks, and the functions that they run |
//! | `cell` | a task in memory: its state, its table of functions, its links |
//! | `list` | the lists of tasks: their shapes, and their members |
//! | `find` | where lists are: from the stacks of threads |
//! | `budget` | how long a step may take |
//! | `names` | the function that a task runs |
//! | `places` | the values: where tasks are suspended, and which locks they hold and await |
//! | `pools` | whether a task awaits an object of a pool |
//! | `futures` | the future of a task in memory: where it is suspended, by the types of its debug information |

mod budget;
mod cell;
mod find;
mod futures;
mod list;
mod names;
mod places;
mod pools;
mod values;

use std::sync::Arc;
use std::time::Duration;

use foldhash::{HashMap, HashSet};
use read_rip_symbols::{FunctionNames, KnownTypes, TypeId};

use self::budget::Budget;
use self::cell::{Member, Program};
use self::futures::{Found, Layouts, Walk};
use self::list::List;
pub use places::{AwaitChain, AwaitStep, AwaitedLock, HeldLock, TokioLock, TokioLockKind, UsedUp};
pub use pools::{PoolWait, pools_among};
pub use values::{PolledFunction, TaskStage, TokioTask, TokioTasks};

use super::pages::Pages;
use crate::target::{Memory, Target};

/// No more tasks of a process are read.
const TASKS_MAX: usize = 200_000;
/// After this time of a processor for a step, the rest is counted alone.
const PATIENCE: Duration = Duration::from_millis(500);
/// What is the same in two readings that are less than this apart may be so by chance.
pub(crate) const APART_MIN_NS: u64 = 10_000_000;
/// The variable of the function that polls a task whose type says what the task is.
const HARNESS: &str = "harness";
/// How often a list is read that changes meanwhile.
const ATTEMPTS: usize = 3;

/// What of a process's memory leads to the tasks of tokio; kept from one reading to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokioLists {
    lists: Vec<List>,
    futures: Arc<Futures>,
}

/// The types of the futures that tasks are.
#[derive(Debug, Default)]
struct Futures {
    /// For each function that polls, by its address: the type of what it polls through.
    harnesses: HashMap<u64, TypeId>,
    types: KnownTypes,
    unwinds: bool,
}

impl TokioTasks {
    /// Finds the runtimes of a process, and reads their tasks. `threads`: those that poll tasks, by their indices.
    /// `None` if no runtime is found whose structures are understood.
    pub(crate) fn find(
        target: &Target,
        threads: &[usize],
        memory: &dyn Memory,
        names: &mut FunctionNames,
    ) -> Option<(TokioTasks, TokioLists)> {
        // Lists change while they are looked for.
        let found = (0..ATTEMPTS).map(|_| find::lists(target, threads, memory));
        let lists = found.into_iter().find(|lists| !lists.is_empty())?;
        let mut lists = TokioLists { lists, futures: Arc::default() };
        let mut tasks = lists.read(target, memory);
        names::name(&mut tasks, target, memory, names);
        lists.futures = Arc::new(tasks.place(memory, names));
        Some((tasks, lists))
    }

    /// Compares with a later reading of the same lists. Tasks that have ended since are left out, and so are new ones,
    /// which are counted.
    pub(crate) fn compare(
        &mut self,
        lists: &TokioLists,
        target: &Target,
        memory: &dyn Memory,
        apart_ns: u64,
    ) {
        // Where tasks are is read before what shows that they did not move.
        let before = self.tasks.clone();
        let (chains, locks) = (std::mem::take(&mut self.chains), std::mem::take(&mut self.locks));
        let futures = &lists.futures;
        self.walk(&mut &futures.types, &futures.harnesses, futures.unwinds, memory);
        let is_same_place = |before: &TokioTask, now: &TokioTask| {
            let of = |locks: &[TokioLock], of: &TokioTask| -> Vec<u64> {
                let awaited = of.awaits.iter().map(|awaited| awaited.lock);
                awaited.chain(of.holds.iter().map(|held| held.lock)).map(|lock| locks[lock].address).collect()
            };
            let is_same_chain = before.chain.map(|at| &chains[at]) == now.chain.map(|at| &self.chains[at]);
            is_same_chain && of(&locks, before) == of(&self.locks, now)
        };
        let is_same: Vec<bool> =
            before.iter().zip(&self.tasks).map(|(before, now)| is_same_place(before, now)).collect();
        let later = lists.read(target, memory);
        let by_identity: HashMap<(u64, u64), usize> =
            later.tasks.iter().enumerate().map(|(at, task)| (task.identity(), at)).collect();
        let before = std::mem::take(&mut self.tasks);
        self.apart_ns = Some(apart_ns).filter(|&apart_ns| apart_ns >= APART_MIN_NS);
        let mut kept: HashMap<usize, usize> = HashMap::default();
        for (task, is_same) in before.into_iter().zip(is_same) {
            let Some(&at) = by_identity.get(&task.identity()) else { continue };
            let now = &later.tasks[at];
            let is_suspended = now.stage == TaskStage::Suspended;
            let is_still = is_suspended && now.is_same_as(&task) && is_same;
            kept.insert(at, self.tasks.len());
            let is_still = self.apart_ns.map(|_| is_still);
            let place = is_suspended.then_some((task.chain, task.awaits, task.holds));
            let (chain, awaits, holds) = place.unwrap_or_default();
            let function = task.function;
            self.tasks.push(TokioTask { function, is_still, chain, awaits, holds, ..now.clone() });
        }
        for task in &mut self.tasks {
            task.wakes = task.wakes.and_then(|at| kept.get(&at).copied());
        }
        self.unread = later.unread + (later.tasks.len() - self.tasks.len());
        self.runtimes = later.runtimes;
    }
}

impl TokioTasks {
    /// Finds where tasks are suspended, and what they hold and await, if there is debug information of types.
    fn place(&mut self, memory: &dyn Memory, names: &FunctionNames) -> Futures {
        let mut types = names.types();
        let polls: Vec<u64> = self.functions.iter().map(|function| function.address).collect();
        let found = types.of_variable(&polls, HARNESS);
        let found = polls.iter().copied().zip(found).filter_map(|(poll, of)| Some((poll, of?)));
        let harnesses: HashMap<u64, TypeId> = found.collect();
        if harnesses.is_empty() {
            return Futures::default();
        }
        let unwinds = harnesses.keys().any(|&poll| types.unwinds(poll));
        self.walk(&mut types, &harnesses, unwinds, memory);
        Futures { harnesses, types: types.known(), unwinds }
    }

    /// Looks into the suspended tasks.
    fn walk(
        &mut self,
        layouts: &mut dyn Layouts,
        harnesses: &HashMap<u64, TypeId>,
        unwinds: bool,
        memory: &dyn Memory,
    ) {
        let (budget, pages) = (Budget::of(PATIENCE), Pages::new(memory));
        let mut found = Found::default();
        self.unplaced = 0;
        for task in &mut self.tasks {
            (task.chain, task.awaits) = (None, None);
            task.holds.clear();
            let harness = harnesses.get(&self.functions[task.function].address);
            let Some(&harness) = harness.filter(|_| task.stage == TaskStage::Suspended) else { continue };
            if budget.is_over() {
                self.unplaced += 1;
                continue;
            }
            let mut walk = Walk { layouts, memory: &pages, found: &mut found, unwinds, left: 0 };
            if let Some(place) = walk.place(task.address, task.trailer, harness) {
                (task.chain, task.awaits, task.holds) = (place.chain, place.awaits, place.holds);
            }
        }
        (self.chains, self.locks) = (found.chains, found.locks);
    }
}

impl TokioLists {
    fn read(&self, target: &Target, memory: &dyn Memory) -> TokioTasks {
        let budget = Budget::of(PATIENCE);
        let (mut members, mut unread): (Vec<Member>, usize) = (Vec::new(), 0);
        let mut known = HashSet::default();
        for list in &self.lists {
            let mut best: Option<list::Read> = None;
            for _ in 0..ATTEMPTS {
                let pages = Pages::new(memory);
                let program = Program::new(target, &pages);
                let read = list.members(&program, TASKS_MAX.saturating_sub(members.len()), &budget);
                let is_better = best.as_ref().is_none_or(|best| read.members.len() > best.members.len());
                let is_whole = read.is_whole;
                if is_better || is_whole {
                    best = Some(read);
                }
                if is_whole || budget.is_over() {
                    break;
                }
            }
            let Some(read) = best else { continue };
            unread += read.unread;
            members.extend(read.members.into_iter().filter(|member| known.insert(member.address)));
        }
        let positions: HashMap<u64, usize> =
            members.iter().enumerate().map(|(at, member)| (member.address, at)).collect();
        let mut functions: HashMap<u64, usize> = HashMap::default();
        let mut tasks = TokioTasks { unread, runtimes: self.lists.len(), ..TokioTasks::default() };
        for member in members {
            let function = *functions.entry(member.poll).or_insert_with(|| {
                tasks.functions.push(PolledFunction { address: member.poll, name: None });
                tasks.functions.len() - 1
            });
            let wakes = member.wakes.and_then(|address| positions.get(&address).copied());
            tasks.tasks.push(member.task(function, wakes));
        }
        tasks
    }
}

#[cfg(test)]
mod tests;
