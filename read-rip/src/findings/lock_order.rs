//! Lock-order inversions: deadlocks that did not happen, but can.
//!
//! # Question
//!
//! Do threads take the same locks in different orders?
//!
//! # Method
//!
//! There is an edge from A to B when a thread that holds A blocks for B or takes it. A try that does not block adds
//! no edge to what it got, but what it got is held and has outgoing edges; the same with waits of limited time that
//! failed. A cycle of edges is an inversion if each is of another thread, if no two of those threads held a common
//! gate lock (one that excludes: a gate shared by both lets both in), and if at each lock the way in which one thread
//! holds it and the way in which the other takes it exclude each other. That is the lock-order graph with the filters
//! of Bensalem and Havelund, "Reducing False Positives in Runtime Analysis of Deadlocks", and the strong paths of
//! the kernel's lockdep for locks that can be shared. It is decided for each lock, and reported for each group of
//! locks of the same names: thousands of accounts are one finding.
//!
//! What a thread held when its known history begins follows from the rest of it and from its table; see `history`.
//! Threads whose table was incomplete add no edges: a gate lock may be missing.
//!
//! # Blind spots
//!
//! Threads that cannot run at the same time (one starts the other when it is done) look like others. Readers that
//! block behind queued writers are left to `deadlock`, when it happens. A lock that is made where another
//! one was has its history. What was overwritten has no edges. Long cycles are looked for with limited effort.
//!
//! # Example output
//!
//! ```text
//! potential lock-order: 2 threads take 2 locks in opposite orders
//!     saver[123] took SAVINGS at transfer bank.rs:37 while it had CURRENT, taken at transfer bank.rs:35
//!     spender[124] took CURRENT at transfer bank.rs:37 while it had SAVINGS, taken at transfer bank.rs:35
//! ```

use std::collections::{BTreeMap, HashSet};

use super::graph::Graph;
use super::history::{self, Held};
use super::{Analysis, Confidence, Finding, Part, View, locks_of, parts};
use crate::locations::LocationId;
use crate::locks::{LockId, LockName, Step, StepKind, ThreadId};

/// See the file's description.
pub(super) struct LockOrder;

const KIND: &str = "lock-order";
/// As many occurrences of an edge are kept; they differ in thread, modes or gates.
const OCCURRENCES_MAX: usize = 16;
/// As many findings are made.
const FINDINGS_MAX: usize = 20;
/// Steps of the search for cycles, in each component and in all.
const SEARCH_STEPS: usize = 50_000;
const SEARCH_STEPS_ALL: usize = 1_000_000;
/// Longer cycles are not looked for.
const LENGTH_MAX: usize = 50;

/// A thread that took one lock while it had another.
#[derive(Clone, Debug, PartialEq)]
struct Occurrence {
    thread: ThreadId,
    held_shared: bool,
    held_meta: LocationId,
    taken_shared: bool,
    taken_place: LocationId,
    /// All that it held, with whether that was shared.
    gates: Vec<(LockId, bool)>,
}

/// Locks, and the occurrences of the edges from each to the next.
type Cycle = Vec<(LockId, Occurrence)>;

/// The occurrences of each edge. Ordered, so that the output is the same each time.
type Edges = BTreeMap<(LockId, LockId), Vec<Occurrence>>;

impl Analysis for LockOrder {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let edges = edges(view);
        let mut graph = Graph::new(view.now.locks.len());
        edges.keys().for_each(|&(from, to)| graph.add(from, to));
        let known = locks_of(found, &["deadlock"]);
        let mut groups: BTreeMap<Vec<String>, (Cycle, usize)> = BTreeMap::new();
        let mut steps_all = SEARCH_STEPS_ALL;
        for component in graph.cyclic_components() {
            let mut search =
                Search { edges: &edges, graph: &graph, steps: SEARCH_STEPS.min(steps_all), path: Vec::new() };
            let before = search.steps;
            let cycles = search.cycles(&component);
            steps_all -= before - search.steps;
            for cycle in cycles {
                if cycle.iter().all(|(lock, _)| known.contains(lock)) {
                    continue;
                }
                let mut class: Vec<String> = cycle.iter().map(|&(lock, _)| class(view, lock)).collect();
                class.sort_unstable();
                groups.entry(class).or_insert_with(|| (cycle, 0)).1 += 1;
            }
        }
        let untold = groups.len().saturating_sub(FINDINGS_MAX);
        let told = found.len();
        found.extend(groups.into_values().take(FINDINGS_MAX).map(|(cycle, count)| tell(&cycle, count)));
        if let Some(last) = found[told..].last_mut().filter(|_| untold > 0) {
            last.evidence.push(parts![format!("{untold} more inversions are not listed")]);
        }
    }
}

/// What locks have in common that are reported as one: the name, or the location where they are taken.
fn class(view: &View<'_>, lock: LockId) -> String {
    match &view.now.locks[lock].name {
        LockName::Given(name) | LockName::Symbol(name) => name.clone(),
        LockName::Location(location) => format!("\0{location}"),
        LockName::None => format!("\0\0{lock}"),
    }
}

fn edges(view: &View<'_>) -> Edges {
    let mut edges = Edges::new();
    let mut seen = HashSet::new();
    // Of an address at which a lock has ended, it is not known which thread meant which lock there.
    let ended: HashSet<LockId> = view
        .now
        .threads
        .iter()
        .flat_map(|thread| &thread.steps)
        .filter(|step| step.kind == StepKind::Destroyed)
        .filter_map(|step| step.lock)
        .collect();
    for (id, thread) in view.now.threads.iter().enumerate().filter(|(_, thread)| history::is_complete(thread))
    {
        let mut add = |lock: LockId, shared: bool, location: LocationId, held: &[Held]| {
            let held = || held.iter().filter(|held| !held.is_lent);
            // Who has a lock already adds no order by taking it again.
            if held().any(|held| held.lock == lock) {
                return;
            }
            let gates = || held().map(|held| (held.lock, held.is_shared)).collect::<Vec<_>>();
            for from in held().filter(|from| !ended.contains(&from.lock) && !ended.contains(&lock)) {
                if !seen.insert((from.lock, from.is_shared, lock, shared, id, gates())) {
                    continue;
                }
                let occurrences = edges.entry((from.lock, lock)).or_default();
                if occurrences.len() < OCCURRENCES_MAX {
                    occurrences.push(Occurrence {
                        thread: id,
                        held_shared: from.is_shared,
                        held_meta: from.location,
                        taken_shared: shared,
                        taken_place: location,
                        gates: gates(),
                    });
                }
            }
        };
        let blocks = |step: &Step| history::is_acquisition(step) && !step.is_try;
        let held = history::replay(thread, |step, held| {
            let woken = step.kind == StepKind::ConditionWoken;
            if let Some(lock) = step.lock.filter(|_| blocks(step)) {
                add(lock, step.is_shared, step.location, held);
            } else if let Some(lock) = step.lock.filter(|_| woken) {
                // To get a lent lock back is to take it.
                let others: Vec<Held> = held.iter().filter(|held| held.lock != lock).copied().collect();
                add(lock, false, step.location, &others);
            }
        });
        if let Some(wait) = view.wait(id).filter(|wait| !wait.is_timed) {
            // The table says exactly what is held now; the history may lack releases by others.
            let now = |held: &&Held| thread.holds.iter().any(|hold| hold.lock == held.lock);
            let mut held: Vec<Held> =
                held.iter().filter(now).filter(|held| held.lock != wait.lock).copied().collect();
            for hold in &thread.holds {
                if hold.lock != wait.lock && !held.iter().any(|held| held.lock == hold.lock) {
                    let (lock, is_shared, location) = (hold.lock, hold.is_shared, hold.location);
                    held.push(Held { lock, is_shared, location, times: 1, is_lent: false, is_older: true });
                }
            }
            add(wait.lock, wait.is_shared, wait.location, &held);
        }
    }
    edges
}

/// Looks for cycles in a component, of growing length.
struct Search<'a> {
    edges: &'a Edges,
    graph: &'a Graph,
    steps: usize,
    path: Vec<(LockId, &'a Occurrence)>,
}

impl<'a> Search<'a> {
    /// All shortest cycles, each once, as locks and the occurrences of the edges from them.
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

    /// A cycle whose least lock is `start`. Depth first, with the edges still to be tried as the stack.
    fn cycle(&mut self, start: LockId, length: usize, members: &HashSet<LockId>) -> Option<Cycle> {
        self.path.clear();
        let mut stack = vec![self.ways(start, start, length, members)];
        while let Some(ways) = stack.last_mut() {
            let Some((from, to, occurrence)) = ways.pop() else {
                stack.pop();
                self.path.pop();
                continue;
            };
            self.steps = self.steps.checked_sub(1)?;
            if !self.fits(occurrence) {
                continue;
            }
            self.path.push((from, occurrence));
            if to != start {
                let ways = self.ways(to, start, length, members);
                stack.push(ways);
            } else if excludes(occurrence, self.path[0].1) {
                return Some(
                    self.path.iter().map(|&(lock, occurrence)| (lock, occurrence.clone())).collect(),
                );
            } else {
                self.path.pop();
            }
        }
        None
    }

    /// The edges from a lock that can be next on a path: back to its start if it is long enough, else further.
    fn ways(
        &self,
        from: LockId,
        start: LockId,
        length: usize,
        members: &HashSet<LockId>,
    ) -> Vec<(LockId, LockId, &'a Occurrence)> {
        let is_last = self.path.len() + 1 == length;
        let is_next = |to: LockId| if is_last { to == start } else { to > start && members.contains(&to) };
        let next = self.graph.targets(from).iter().copied().filter(|&to| is_next(to));
        next.flat_map(|to| self.edges[&(from, to)].iter().map(move |occurrence| (from, to, occurrence)))
            .collect()
    }

    /// Whether an occurrence can be at the same time as those on the path, and follows the last of them.
    fn fits(&self, next: &Occurrence) -> bool {
        let together = self.path.iter().all(|&(_, other)| {
            let shares_gate = other.gates.iter().any(|&(gate, shared)| {
                next.gates.iter().any(|&(other, other_shared)| gate == other && !(shared && other_shared))
            });
            other.thread != next.thread && !shares_gate
        });
        together && self.path.last().is_none_or(|&(_, last)| excludes(last, next))
    }
}

/// Whether what `taker` takes is held by `holder` in a way that keeps it out.
fn excludes(taker: &Occurrence, holder: &Occurrence) -> bool {
    !(taker.taken_shared && holder.held_shared)
}

fn tell(cycle: &[(LockId, Occurrence)], count: usize) -> Finding {
    let summary = match cycle.len() {
        2 => parts![Part::Threads(2), " take two locks in opposite orders"],
        locks => parts![Part::Threads(locks), format!(" take {locks} locks in orders that close a circle")],
    };
    let mut evidence: Vec<Vec<Part>> = (0..cycle.len())
        .map(|at| {
            let (held, occurrence) = &cycle[at];
            let (taken, _) = cycle[(at + 1) % cycle.len()];
            let verb = if occurrence.taken_shared { " shared " } else { " took " };
            parts![
                Part::Thread(occurrence.thread),
                verb,
                Part::Lock(taken),
                " at ",
                Part::Location(occurrence.taken_place),
                if occurrence.held_shared { " while it shared " } else { " while it had " },
                Part::Lock(*held),
                ", taken at ",
                Part::Location(occurrence.held_meta),
            ]
        })
        .collect();
    if count > 1 {
        evidence.push(parts![format!("and so with {} more sets of such locks", count - 1)]);
    }
    let mut finding = Finding::new(KIND, Confidence::Potential, summary, evidence);
    finding.threads_hurt = cycle.len();
    finding.doubt = Some("it is harmless if these threads never run at the same time".into());
    finding.advice =
        "decide on one order for these locks and keep to it, or release the first before taking the second"
            .into();
    finding
}

#[cfg(test)]
#[path = "lock_order_tests.rs"]
mod tests;
