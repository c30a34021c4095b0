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

mod budget;
mod cell;
mod find;
mod list;
mod names;
mod values;

use std::time::Duration;

use foldhash::{HashMap, HashSet};
use read_rip_symbols::FunctionNames;

use self::budget::Budget;
use self::cell::{Member, Program};
use self::list::List;
pub use values::{PolledFunction, TaskStage, TokioTask, TokioTasks};

use super::pages::Pages;
use crate::target::{Memory, Target};

/// No more tasks of a process are read.
const TASKS_MAX: usize = 200_000;
/// After this time of a processor for a step, the rest is counted alone.
const PATIENCE: Duration = Duration::from_millis(500);
/// What is the same in two readings that are less than this apart may be so by chance.
pub(crate) const APART_MIN_NS: u64 = 10_000_000;
/// How often a list is read that changes meanwhile.
const ATTEMPTS: usize = 3;

/// What of a process's memory leads to the tasks of tokio; kept from one reading to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokioLists {
    lists: Vec<List>,
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
        let lists = TokioLists { lists };
        let mut tasks = lists.read(target, memory);
        names::name(&mut tasks, target, memory, names);
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
        let later = lists.read(target, memory);
        let by_identity: HashMap<(u64, u64), usize> =
            later.tasks.iter().enumerate().map(|(at, task)| (task.identity(), at)).collect();
        let before = std::mem::take(&mut self.tasks);
        self.apart_ns = Some(apart_ns).filter(|&apart_ns| apart_ns >= APART_MIN_NS);
        let mut kept: HashMap<usize, usize> = HashMap::default();
        for task in before {
            let Some(&at) = by_identity.get(&task.identity()) else { continue };
            let now = &later.tasks[at];
            let is_still = now.stage == TaskStage::Suspended && now.is_same_as(&task);
            kept.insert(at, self.tasks.len());
            let is_still = self.apart_ns.map(|_| is_still);
            self.tasks.push(TokioTask { function: task.function, is_still, ..now.clone() });
        }
        for task in &mut self.tasks {
            task.wakes = task.wakes.and_then(|at| kept.get(&at).copied());
        }
        self.unread = later.unread + (later.tasks.len() - self.tasks.len());
        self.runtimes = later.runtimes;
    }
}

impl TokioLists {
    /// Reads the tasks of all lists.
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
