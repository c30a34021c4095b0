//! The search for cycles in the orders in which threads acquired locks. `lock_order` says which of them count.

use foldhash::{HashMap, HashSet};

use super::View;
use super::graph::Graph;
use super::kin::Kin;
use super::nesting::Nesting;
use super::orders::{Edges, Occurrence};
use crate::locks::LockId;

/// To compare this many gates, or to look at this many edges, costs the search a step.
const LOOKS_A_STEP: usize = 64;
/// The longest cycle that is searched for.
const LENGTH_MAX: usize = 50;
/// The occurrences of the edges of a cycle.
pub(super) type Cycle = Vec<Occurrence>;

/// Whether two parts of a cycle cannot happen at the same time: one thread did its part before it created the other
/// thread, or after it had joined it.
fn is_ordered(kin: &Kin<'_>, cycle: &[Occurrence]) -> bool {
    let is_before = |one: &Occurrence, other: &Occurrence| {
        kin.is_before_creation(one.thread, one.last, other.thread)
            || kin.is_after_join(other.thread, other.first, one.thread)
    };
    cycle.iter().any(|one| cycle.iter().any(|other| one.thread != other.thread && is_before(one, other)))
}
/// Whether one thread did its part of a cycle before another one recorded anything, the last time that it did it.
pub(super) fn is_one_after_the_other(view: &View<'_>, cycle: &[Occurrence]) -> bool {
    let is_before = |one: &Occurrence, other: &Occurrence| {
        let (first, then) = (&view.now.threads[one.thread], &view.now.threads[other.thread]);
        let has_exited = first.exited_ns.is_some_and(|exited_ns| exited_ns < then.claimed_ns);
        let is_main = first.is_first && first.tid == first.pid;
        let is_earlier = is_main && first.pid == then.pid && one.last < then.first_slot_count;
        has_exited || is_earlier
    };
    cycle.iter().any(|one| cycle.iter().any(|other| one.thread != other.thread && is_before(one, other)))
}
/// Searches a component for cycles of growing length.
pub(super) struct Search<'a> {
    view: &'a View<'a>,
    kin: &'a Kin<'a>,
    edges: &'a Edges,
    graph: &'a Graph,
    nesting: &'a Nesting,
    pub(super) steps: usize,
    /// The search ended before it was complete.
    pub(super) is_cut: bool,
    path: Vec<&'a Occurrence>,
    /// The gates of all occurrences on the path: how many hold each shared, and how many exclusively.
    gates: HashMap<LockId, (usize, usize)>,
}
impl<'a> Search<'a> {
    pub(super) fn new(
        view: &'a View<'a>,
        kin: &'a Kin<'a>,
        (edges, graph, nesting): (&'a Edges, &'a Graph, &'a Nesting),
        steps: usize,
    ) -> Search<'a> {
        Search {
            view,
            kin,
            edges,
            graph,
            nesting,
            steps,
            is_cut: false,
            path: Vec::new(),
            gates: HashMap::default(),
        }
    }

    /// All shortest cycles, each once, as the occurrences of their edges.
    pub(super) fn cycles(&mut self, component: &[LockId]) -> Vec<Cycle> {
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
        self.is_cut = self.steps == 0 || (cycles.is_empty() && component.len() > LENGTH_MAX);
        cycles
    }

    /// A cycle whose least lock is `start`, if there is one of threads that ran at the same time. Depth first; the
    /// stack has the edges that are still to be tried.
    fn cycle(&mut self, start: LockId, length: usize, members: &HashSet<LockId>) -> Option<Cycle> {
        self.path.clear();
        self.gates.clear();
        let mut one_after_the_other = None;
        let mut stack = vec![self.next(start, start, length, members)];
        while let Some(untried) = stack.last_mut() {
            let Some(occurrence) = untried.pop() else {
                stack.pop();
                self.pop();
                continue;
            };
            self.spend(1);
            if self.steps == 0 {
                break;
            }
            if !self.fits(occurrence) {
                continue;
            }
            let to = occurrence.acquired.lock;
            if to != start {
                self.push(occurrence);
                let untried = self.next(to, start, length, members);
                stack.push(untried);
            } else if self.path.first().is_none_or(|first| excludes(occurrence, first)) {
                let cycle: Cycle = self.path.iter().copied().chain([occurrence]).copied().collect();
                if is_ordered(self.kin, &cycle) {
                    continue;
                }
                if !is_one_after_the_other(self.view, &cycle) {
                    return Some(cycle);
                }
                one_after_the_other.get_or_insert(cycle);
            }
        }
        one_after_the_other
    }

    /// The edges from a lock that can be next on a path: back to its start if the path is long enough, else further.
    fn next(
        &mut self,
        from: LockId,
        start: LockId,
        length: usize,
        members: &HashSet<LockId>,
    ) -> Vec<&'a Occurrence> {
        if self.path.len() + 1 == length {
            return self.edges.get(&(from, start)).into_iter().flatten().collect();
        }
        let targets = self.graph.targets(from);
        self.spend(targets.len() / LOOKS_A_STEP);
        let next = targets.iter().copied().filter(|&to| to > start && members.contains(&to));
        next.flat_map(|to| &self.edges[&(from, to)]).collect()
    }

    fn spend(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps);
    }

    fn push(&mut self, occurrence: &'a Occurrence) {
        self.path.push(occurrence);
        self.count_gates(occurrence, |count| *count += 1);
    }

    fn pop(&mut self) {
        if let Some(last) = self.path.pop() {
            self.count_gates(last, |count| *count -= 1);
        }
    }

    fn count_gates(&mut self, occurrence: &Occurrence, change: impl Fn(&mut usize)) {
        let mut gates = 0;
        for (gate, is_shared) in self.nesting.held(occurrence.gates) {
            let (shared, exclusive) = self.gates.entry(gate).or_default();
            change(if is_shared { shared } else { exclusive });
            gates += 1;
        }
        self.spend(gates / LOOKS_A_STEP);
    }

    /// Whether an occurrence can happen at the same time as those on the path, and follows the last of them.
    fn fits(&mut self, next: &Occurrence) -> bool {
        if self.path.iter().any(|other| other.thread == next.thread)
            || self.path.last().is_some_and(|last| !excludes(last, next))
        {
            return false;
        }
        let mut looks = 0;
        let shares_gate = self.nesting.held(next.gates).any(|(gate, is_shared)| {
            looks += 1;
            let (shared, exclusive) = self.gates.get(&gate).copied().unwrap_or_default();
            exclusive > 0 || (shared > 0 && !is_shared)
        });
        self.spend(looks / LOOKS_A_STEP);
        !shares_gate
    }
}
/// Whether `holder` holds what `waiter` acquires in a mode that keeps it out.
fn excludes(waiter: &Occurrence, holder: &Occurrence) -> bool {
    !(waiter.acquired.is_shared && holder.held.is_shared)
}
