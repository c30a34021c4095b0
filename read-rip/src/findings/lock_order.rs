//! Lock-order inversions: deadlocks that did not happen, but can.
//!
//! # Question
//!
//! Do threads acquire the same locks in different orders?
//!
//! # Method
//!
//! There is an edge from A to B when a thread that holds A blocks for B or acquires it. A try that does not block
//! adds no edge to the lock that it acquires, but the lock is then held and has outgoing edges. The same applies
//! to waits with a time limit that failed. A cycle of edges is an inversion if each edge is of another thread, if
//! no two of those threads held a common gate lock (one that excludes: a gate that both hold shared lets both in),
//! and if at each lock the mode in which one thread holds it excludes the mode in which the other acquires it. That
//! is the lock-order graph with the filters of Bensalem and Havelund, "Reducing False Positives in Runtime Analysis
//! of Deadlocks", and the strong paths of the kernel's lockdep for shared locks. Each lock is judged by itself, and
//! each group of locks with the same names is reported once: thousands of accounts are one finding.
//!
//! What a thread held when its known history begins follows from the rest of the history and from its table; see
//! `history`. Threads whose table was incomplete add no edges: a gate lock may be missing.
//!
//! # Blind spots
//!
//! Threads that cannot run at the same time (one starts the other when it is done) look like threads that can.
//! A reader that queues after a waiting writer adds no edge: `deadlock` reports such a cycle if it happens. A lock at
//! the address of an earlier lock has the earlier one's history. What was overwritten has no edges. The search for
//! long cycles is limited.
//!
//! # Example output
//!
//! ```text
//! potential lock-order: 2 threads acquire two locks in opposite orders
//!     saver[123] acquired SAVINGS at transfer bank.rs:37 while it held CURRENT, acquired at transfer bank.rs:35
//!     spender[124] acquired CURRENT at transfer bank.rs:37 while it held SAVINGS, acquired at transfer bank.rs:35
//! ```

use std::collections::{BTreeMap, HashSet};

use super::evidence::{Acquisition, Evidence, OrderCycle, OrderEdge};
use super::finding::{Analysis, Finding, locks_of};
use super::graph::Graph;
use super::history::{self, Held};
use super::kind::{Advice, Confidence, Doubt, Kind};
use super::view::View;
use crate::locks::{LockId, LockName, Step, StepKind, ThreadId, ThreadLocks};

/// See the file's description.
pub(super) struct LockOrder;

/// At most this many occurrences of an edge are kept; they differ in thread, modes or gates.
const OCCURRENCES_MAX: usize = 16;
/// At most this many findings are made.
const FINDINGS_MAX: usize = 20;
/// Steps of the search for cycles, in one component and in all.
const SEARCH_STEPS: usize = 50_000;
const SEARCH_STEPS_ALL: usize = 1_000_000;
/// The longest cycle that is searched for.
const LENGTH_MAX: usize = 50;

/// A thread that acquired one lock while it held another.
#[derive(Clone, Debug, PartialEq)]
struct Occurrence {
    thread: ThreadId,
    held: Acquisition,
    acquired: Acquisition,
    /// All that it held.
    gates: Vec<Mode>,
}

/// A lock, and whether it is shared.
type Mode = (LockId, bool);

/// The occurrences of the edges of a cycle.
type Cycle = Vec<Occurrence>;

/// The occurrences of each edge. Ordered, so that the output is the same each time.
type Edges = BTreeMap<(LockId, LockId), Vec<Occurrence>>;

impl Analysis for LockOrder {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let edges = Collector::of(view);
        let mut graph = Graph::new(view.now.locks.len());
        edges.keys().for_each(|&(from, to)| graph.add(from, to));
        let known = locks_of(found, &[Kind::Deadlock]);
        // Cycles of locks with the same names are one finding: the first of them, and how many there are.
        let mut groups: BTreeMap<Vec<String>, (Cycle, usize)> = BTreeMap::new();
        let mut steps_all = SEARCH_STEPS_ALL;
        for component in graph.cyclic_components() {
            let steps = SEARCH_STEPS.min(steps_all);
            let mut search = Search { edges: &edges, graph: &graph, steps, path: Vec::new() };
            let cycles = search.cycles(&component);
            steps_all -= steps - search.steps;
            for cycle in cycles {
                if cycle.iter().all(|occurrence| known.contains(&occurrence.held.lock)) {
                    continue;
                }
                let mut names: Vec<String> =
                    cycle.iter().map(|occurrence| group_name(view, occurrence.held.lock)).collect();
                names.sort_unstable();
                groups.entry(names).or_insert_with(|| (cycle, 0)).1 += 1;
            }
        }
        let all = groups.len();
        for (at, (cycle, count)) in groups.into_values().take(FINDINGS_MAX).enumerate() {
            let unlisted = if at + 1 == FINDINGS_MAX { all - FINDINGS_MAX } else { 0 };
            found.push(finding(cycle, count - 1, unlisted));
        }
    }
}

/// The name of the group that a lock is reported with: the name of the lock, or the location of its acquisition.
fn group_name(view: &View<'_>, lock: LockId) -> String {
    match &view.now.locks[lock].name {
        LockName::Given(name) | LockName::Symbol(name) => name.clone(),
        LockName::Location(location) => format!("\0{location}"),
        LockName::None => format!("\0\0{lock}"),
    }
}

/// Collects the edges of all threads.
struct Collector {
    edges: Edges,
    /// The edges that are known, with thread, modes and gates.
    seen: HashSet<(Mode, Mode, ThreadId, Vec<Mode>)>,
    /// The locks at whose address a lock was destroyed: which of two locks an event is about is not known there.
    destroyed: HashSet<LockId>,
}

impl Collector {
    fn of(view: &View<'_>) -> Edges {
        let steps = view.now.threads.iter().flat_map(|thread| &thread.steps);
        let destroyed = steps.filter(|step| step.kind == StepKind::Destroyed).filter_map(|step| step.lock);
        let destroyed = destroyed.collect();
        let mut collector = Collector { edges: Edges::new(), seen: HashSet::new(), destroyed };
        let threads = view.now.threads.iter().enumerate();
        for (id, thread) in threads.filter(|(_, thread)| history::is_complete(thread)) {
            collector.thread(view, id, thread);
        }
        collector.edges
    }

    /// Adds the edges of a thread.
    fn thread(&mut self, view: &View<'_>, id: ThreadId, thread: &ThreadLocks) {
        let blocks = |step: &Step| history::is_acquisition(step) && !step.is_try;
        let held = history::replay(thread, |step, held| {
            let Some(lock) = step.lock else { return };
            let (is_shared, location) = (step.is_shared, step.location);
            if blocks(step) {
                self.add(id, Acquisition { lock, location, is_shared }, held);
            } else if step.kind == StepKind::ConditionWoken {
                // The end of a condition wait acquires the lock again.
                let others: Vec<Held> = held.iter().filter(|held| held.lock != lock).copied().collect();
                self.add(id, Acquisition { lock, location, is_shared: false }, &others);
            }
        });
        let Some(wait) = view.wait(id).filter(|wait| !wait.is_timed) else { return };
        // The table is exact about the present. Releases by other threads are not in this thread's history.
        let is_held = |held: &&Held| thread.holds.iter().any(|hold| hold.lock == held.lock);
        let mut held: Vec<Held> =
            held.iter().filter(is_held).filter(|held| held.lock != wait.lock).copied().collect();
        for hold in &thread.holds {
            if hold.lock != wait.lock && !held.iter().any(|held| held.lock == hold.lock) {
                let (lock, is_shared, location) = (hold.lock, hold.is_shared, hold.location);
                held.push(Held {
                    lock,
                    is_shared,
                    location,
                    times: 1,
                    is_in_condition_wait: false,
                    is_older: true,
                });
            }
        }
        let acquired = Acquisition { lock: wait.lock, location: wait.location, is_shared: wait.is_shared };
        self.add(id, acquired, &held);
    }

    /// Adds the edges from all that a thread holds to what it acquires.
    fn add(&mut self, thread: ThreadId, acquired: Acquisition, held: &[Held]) {
        let held = || held.iter().filter(|held| !held.is_in_condition_wait);
        // A thread that holds the lock already adds no order when it acquires it again.
        if held().any(|held| held.lock == acquired.lock) || self.destroyed.contains(&acquired.lock) {
            return;
        }
        let gates = || held().map(|held| (held.lock, held.is_shared)).collect::<Vec<_>>();
        for from in held() {
            let modes = ((from.lock, from.is_shared), (acquired.lock, acquired.is_shared));
            let key = (modes.0, modes.1, thread, gates());
            if self.destroyed.contains(&from.lock) || !self.seen.insert(key) {
                continue;
            }
            let occurrences = self.edges.entry((from.lock, acquired.lock)).or_default();
            if occurrences.len() < OCCURRENCES_MAX {
                let held =
                    Acquisition { lock: from.lock, location: from.location, is_shared: from.is_shared };
                occurrences.push(Occurrence { thread, held, acquired, gates: gates() });
            }
        }
    }
}

/// Searches a component for cycles of growing length.
struct Search<'a> {
    edges: &'a Edges,
    graph: &'a Graph,
    steps: usize,
    path: Vec<&'a Occurrence>,
}

impl<'a> Search<'a> {
    /// All shortest cycles, each once, as the occurrences of their edges.
    fn cycles(&mut self, component: &[LockId]) -> Vec<Cycle> {
        let members: HashSet<LockId> = component.iter().copied().collect();
        let mut cycles = Vec::new();
        for length in 2..=component.len().min(LENGTH_MAX) {
            for &start in component {
                if let Some(cycle) = self.cycle(start, length, &members) {
                    cycles.push(cycle);
                }
            }
            if !cycles.is_empty() || self.steps == 0 {
                break;
            }
        }
        cycles
    }

    /// A cycle whose least lock is `start`. Depth first; the stack has the edges that are still to be tried.
    fn cycle(&mut self, start: LockId, length: usize, members: &HashSet<LockId>) -> Option<Cycle> {
        self.path.clear();
        let mut stack = vec![self.next(start, start, length, members)];
        while let Some(untried) = stack.last_mut() {
            let Some(occurrence) = untried.pop() else {
                stack.pop();
                self.path.pop();
                continue;
            };
            self.steps = self.steps.checked_sub(1)?;
            if !self.fits(occurrence) {
                continue;
            }
            self.path.push(occurrence);
            let to = occurrence.acquired.lock;
            if to != start {
                let untried = self.next(to, start, length, members);
                stack.push(untried);
            } else if excludes(occurrence, self.path[0]) {
                return Some(self.path.iter().copied().cloned().collect());
            } else {
                self.path.pop();
            }
        }
        None
    }

    /// The edges from a lock that can be next on a path: back to its start if the path is long enough, else further.
    fn next(
        &self,
        from: LockId,
        start: LockId,
        length: usize,
        members: &HashSet<LockId>,
    ) -> Vec<&'a Occurrence> {
        let is_last = self.path.len() + 1 == length;
        let is_next = |to: LockId| if is_last { to == start } else { to > start && members.contains(&to) };
        let next = self.graph.targets(from).iter().copied().filter(|&to| is_next(to));
        next.flat_map(|to| &self.edges[&(from, to)]).collect()
    }

    /// Whether an occurrence can happen at the same time as those on the path, and follows the last of them.
    fn fits(&self, next: &Occurrence) -> bool {
        let together = self.path.iter().all(|other| {
            let shares_gate = other.gates.iter().any(|&(gate, shared)| {
                next.gates.iter().any(|&(other, other_shared)| gate == other && !(shared && other_shared))
            });
            other.thread != next.thread && !shares_gate
        });
        together && self.path.last().is_none_or(|last| excludes(last, next))
    }
}

/// Whether `holder` holds what `waiter` acquires in a mode that keeps it out.
fn excludes(waiter: &Occurrence, holder: &Occurrence) -> bool {
    !(waiter.acquired.is_shared && holder.held.is_shared)
}

fn finding(cycle: Cycle, similar: usize, unlisted: usize) -> Finding {
    let edges: Vec<OrderEdge> = cycle
        .into_iter()
        .map(|Occurrence { thread, held, acquired, .. }| OrderEdge { thread, held, acquired })
        .collect();
    let threads_hurt = edges.len();
    let evidence = Evidence::OrderCycle(OrderCycle { edges, similar, unlisted });
    let mut finding = Finding::new(Kind::LockOrder, Confidence::Potential, evidence, Advice::OneOrder);
    finding.threads_hurt = threads_hurt;
    finding.doubts = vec![Doubt::MaybeNeverConcurrent];
    finding
}

#[cfg(test)]
#[path = "lock_order_tests.rs"]
mod tests;
