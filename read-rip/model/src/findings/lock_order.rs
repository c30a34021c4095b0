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
//! Semaphores of one unit and locks that are handed over are gates too: see `gates`. A lock at whose address another
//! one was initialised or destroyed adds no edges. Where a task may have acquired the two locks in two of its futures,
//! there is no edge: see `branches`.
//!
//! # Blind spots
//!
//! Threads that cannot run at the same time look like threads that did not: the finding is suspected if one thread had
//! exited before another one recorded anything, and if the main thread, if it was the first to record, did its part for
//! the last time before that. Where it is known that one thread created or joined the other, `kin` says what it did
//! before and after, and there is no finding. A reader that queues after a waiting writer adds no edge: `deadlock`
//! reports such a cycle if it happens. A lock at the address of an earlier lock has the earlier one's history, if
//! nothing shows where that one ended: so the finding is suspected if a lock is in memory that the program may use for
//! others, and neither its beginning nor a name is known. A semaphore with several units of which no history shows two
//! at once looks like a gate. What was overwritten has no edges. If there are too many orders, or too many ways to
//! combine them, only a part is searched, and the analysis says so.
//!
//! # Example output
//!
//! ```text
//! potential lock-order: 2 threads acquire two locks in opposite orders
//!     saver[123] acquired SAVINGS at transfer bank.rs:37 while it held CURRENT, acquired at transfer bank.rs:35
//!     spender[124] acquired CURRENT at transfer bank.rs:37 while it held SAVINGS, acquired at transfer bank.rs:35
//! ```

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use serde::Serialize;

use super::branches::Branches;
use super::finding::locks_of;
use super::gates::{self, Gates};
use super::graph::{Edge, Graph};
use super::history::{self, Held};
use super::kin::Kin;
use super::nesting::{Mode, NOTHING, Nesting, Node};
use super::replaced::{may_be_several, replaced};
use super::words::in_parentheses;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Limit, Paragraph, View, Words,
};
use crate::locations::LocationId;
use crate::locks::{LockId, LockName, Step, StepKind, ThreadId};
use crate::units::agree;

/// See the file's description.
pub(super) struct LockOrder;

/// At most this many findings are made.
const FINDINGS_MAX: usize = 20;
/// Steps of the search for cycles, in one component and in all.
const SEARCH_STEPS: usize = 50_000;
const SEARCH_STEPS_ALL: usize = 1_000_000;

/// Threads that acquire locks in orders that form a cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderCycle {
    /// In the order of the cycle: each edge acquires the lock that the next one holds.
    pub edges: Vec<OrderEdge>,
    /// How many more sets of locks with the same names form such a cycle.
    pub similar: usize,
    /// How many more cycles no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}

/// A thread that acquired one lock while it held another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OrderEdge {
    /// The thread.
    pub thread: ThreadId,
    /// What it held.
    pub held: Acquisition,
    /// What it acquired while it held that.
    pub acquired: Acquisition,
}

/// A lock, and where and how it was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Acquisition {
    /// The lock.
    pub lock: LockId,
    /// Where.
    pub location: LocationId,
    /// In shared mode.
    #[serde(rename = "shared")]
    pub is_shared: bool,
}

impl Analysis for LockOrder {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let _ = self.run_bounded(view, found);
    }

    fn run_bounded(&self, view: &View<'_>, found: &mut Vec<Finding>) -> Option<Limit> {
        let kin = Kin::of(view.now);
        let Orders { edges, nesting, mut is_cut } = Orders::of(view, &kin);
        let graph = Graph::new(view.now.locks.len(), &edges.keys().copied().collect::<Vec<Edge>>());
        let known = locks_of(found, &[Kind::Deadlock, Kind::Futurelock]);
        // Cycles of locks with the same names are one finding: the first of them, and how many there are.
        let mut groups: BTreeMap<Vec<String>, (Cycle, usize)> = BTreeMap::new();
        let mut steps_all = SEARCH_STEPS_ALL;
        for component in graph.cyclic_components() {
            let steps = SEARCH_STEPS.min(steps_all);
            let mut search = Search::new(view, &kin, (&edges, &graph, &nesting), steps);
            let cycles = search.cycles(&component);
            is_cut |= search.is_cut;
            steps_all -= steps - search.steps;
            for cycle in cycles {
                if cycle.iter().all(|occurrence| known.contains(&occurrence.held.lock)) {
                    continue;
                }
                let mut names: Vec<String> =
                    cycle.iter().map(|occurrence| group_name(view, occurrence.held.lock)).collect();
                names.sort_unstable();
                let is_harmless = |cycle: &Cycle| is_one_after_the_other(view, cycle);
                let (first, count) = groups.entry(names).or_insert_with(|| (cycle.clone(), 0));
                *count += 1;
                if is_harmless(first) && !is_harmless(&cycle) {
                    *first = cycle;
                }
            }
        }
        let all = groups.len();
        for (at, (cycle, count)) in groups.into_values().take(FINDINGS_MAX).enumerate() {
            let unlisted = if at + 1 == FINDINGS_MAX { all - FINDINGS_MAX } else { 0 };
            found.push(finding(view, cycle, count - 1, unlisted));
        }
        is_cut.then_some(Limit::LockOrders)
    }
}

/// The name of the group that a lock is reported with: the name of the lock, or the location of its acquisition.
pub(super) fn group_name(view: &View<'_>, lock: LockId) -> String {
    match &view.now.locks[lock].name {
        LockName::Given(name) | LockName::Symbol(name) => name.clone(),
        LockName::Location(location) => format!("\0{location}"),
        LockName::None => format!("\0\0{lock}"),
    }
}

fn finding(view: &View<'_>, cycle: Cycle, similar: usize, unlisted: usize) -> Finding {
    let mut locks = cycle.iter().map(|of| of.held.lock);
    let (confidence, doubt) = match () {
        () if is_one_after_the_other(view, &cycle) => (Confidence::Suspected, Doubt::OneAfterTheOther),
        () if locks.any(|lock| may_be_several(view, lock)) => (Confidence::Suspected, Doubt::AddressReused),
        () => (Confidence::Potential, Doubt::MaybeNeverConcurrent),
    };
    let edges: Vec<OrderEdge> = cycle
        .into_iter()
        .map(|Occurrence { thread, held, acquired, .. }| OrderEdge { thread, held, acquired })
        .collect();
    let threads_hurt = edges.len();
    let evidence = OrderCycle { edges, similar, unlisted };
    let mut finding = Finding::new(Kind::LockOrder, confidence, evidence, Advice::OneOrder);
    finding.threads_hurt = threads_hurt;
    finding.doubts = vec![doubt];
    finding
}

/// At most this many occurrences of an edge are kept; they differ in thread, modes or gates.
const OCCURRENCES_MAX: usize = 16;
/// At most this many of them are of one thread in the same modes; they differ in whom it had created and joined before.
const STRETCHES_MAX: usize = 4;
/// At most this many occurrences of all edges are kept. If there are more, those from the outer ones of many held locks
/// are left out.
const OCCURRENCES_ALL: usize = 100_000;
/// Lists of held locks, in addition to one for each step of a history.
const NODES_SPARE: usize = 1 << 16;

/// A thread that acquired one lock while it held another.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Occurrence {
    thread: ThreadId,
    held: Acquisition,
    acquired: Acquisition,
    /// All that it held.
    gates: Node,
    /// The sequence of the first time that it acquired the lock that it held.
    first: u64,
    /// The sequence of the last time that it acquired the other one.
    last: u64,
    /// How many of the locks that it held it acquired after `held`.
    inner: usize,
}

/// The occurrences of each edge. Ordered, so that the output is the same each time.
type Edges = BTreeMap<(LockId, LockId), Vec<Occurrence>>;

/// The orders in which threads acquired locks, as far as they can be part of a cycle.
struct Orders {
    edges: Edges,
    nesting: Nesting,
    /// A limit was reached: some orders are left out.
    is_cut: bool,
}

impl Orders {
    /// Looks at the threads twice. A thread that acquires N locks one inside the other makes N*N/2 edges, and mostly
    /// none of them is in a cycle. So the first look finds the locks that are in cycles, and only the second collects
    /// edges.
    fn of(view: &View<'_>, kin: &Kin<'_>) -> Orders {
        let steps = view.now.threads.iter().map(|thread| thread.steps.len()).sum::<usize>();
        let mut nesting = Nesting::new(NODES_SPARE + steps);
        let mut is_cut = false;
        let (replaced, gates, branches) = (replaced(view), Gates::new(view), Branches::of(view));
        let mut nested = Vec::new();
        for id in (0..view.now.threads.len()).filter(|&id| view.is_nesting(id)) {
            let mut is_nested = false;
            acquisitions(view, (&gates, &branches), id, |acquired, held, passed, _| {
                match nesting.node(modes(held, passed)) {
                    Some(node) => {
                        is_nested |= node != NOTHING;
                        if !replaced.contains(&acquired.lock) {
                            nesting.acquired(node, acquired.lock);
                        }
                    }
                    None => is_cut = true,
                }
            });
            if is_nested {
                nested.push(id);
            }
        }
        let mut edges = CyclicEdges::of(&nesting.cyclic_locks(view.now.locks.len()), kin);
        for id in nested {
            acquisitions(view, (&gates, &branches), id, |acquired, held, passed, sequence| {
                if let Some(node) = nesting.node(modes(held, passed)) {
                    edges.add(id, (acquired, sequence), held, node);
                }
            });
        }
        Orders { nesting, is_cut: is_cut || edges.is_cut(), edges: edges.edges }
    }
}

/// What a thread holds, or passed, that keeps others out.
fn modes(held: &[Held], passed: &[Mode]) -> impl Iterator<Item = Mode> {
    let held = held.iter().filter(|held| !held.is_in_condition_wait);
    held.map(|held| (held.lock, held.is_shared)).chain(passed.iter().copied())
}

/// Visits each acquisition of a thread that gives its locks an order, with what the thread held and which gates it had
/// passed.
fn acquisitions(
    view: &View<'_>,
    (gates, branches): (&Gates<'_>, &Branches),
    id: ThreadId,
    mut visit: impl FnMut(Acquisition, &[Held], &[Mode], u64),
) {
    let thread = &view.now.threads[id];
    if !history::is_complete(thread) {
        return;
    }
    let passages = gates.passages(thread);
    // A thread has no branches, and nobody else of its task runs while it waits for a lock of threads.
    let is_of_futures = |lock: LockId| thread.task.is_some() && view.now.locks[lock].nature.is_of_futures;
    let mut visit = |acquired: Acquisition, held: &[Held], sequence: u64| {
        // A thread that holds the lock already adds no order when it acquires it again.
        if modes(held, &[]).any(|(lock, _)| lock == acquired.lock) || gates.is_handed_over(acquired.lock) {
            return;
        }
        let mut passed: Vec<Mode> = gates::passed(&passages, sequence).collect();
        // What another branch of the task may hold gives no order, as what somebody else may release.
        let is_branching = |held: &Held| {
            is_of_futures(held.lock)
                && is_of_futures(acquired.lock)
                && branches.may_have(view, held.location, acquired.location)
        };
        let is_loose = |held: &&Held| gates.is_handed_over(held.lock) || is_branching(held);
        let (handed_over, own): (Vec<Held>, Vec<Held>) = held.iter().partition(is_loose);
        if handed_over.is_empty() {
            visit(acquired, held, &passed, sequence);
        } else {
            passed.extend(modes(&handed_over, &[]));
            visit(acquired, &own, &passed, sequence);
        }
    };
    let blocks = |step: &Step| history::is_acquisition(step) && !step.is_try;
    let held = history::replay(thread, |step, held| {
        let Some(lock) = step.lock.filter(|_| !held.is_empty()) else { return };
        let (is_shared, location) = (step.is_shared, step.location);
        if blocks(step) {
            visit(Acquisition { lock, location, is_shared }, held, step.sequence);
        } else if step.kind == StepKind::ConditionWoken {
            // The end of a condition wait acquires the lock again.
            let others: Vec<Held> = held.iter().filter(|held| held.lock != lock).copied().collect();
            visit(Acquisition { lock, location, is_shared: false }, &others, step.sequence);
        }
    });
    let Some(wait) = view.wait(id).filter(|wait| !wait.is_timed) else { return };
    // The table is exact about the present. Releases by other threads are not in this thread's history.
    let is_held = |held: &&Held| thread.holds.iter().any(|hold| hold.lock == held.lock);
    let mut held: Vec<Held> =
        held.iter().filter(is_held).filter(|held| held.lock != wait.lock).copied().collect();
    for hold in &thread.holds {
        if hold.lock != wait.lock
            && !held.iter().any(|held| held.lock == hold.lock)
            && let Some(location) = hold.location
        {
            let (lock, is_shared) = (hold.lock, hold.is_shared);
            let (times, is_in_condition_wait, since, is_older) = (1, false, 0, true);
            held.push(Held { lock, is_shared, location, times, is_in_condition_wait, since, is_older });
        }
    }
    let acquired = Acquisition { lock: wait.lock, location: wait.location, is_shared: wait.is_shared };
    visit(acquired, &held, u64::MAX);
}

/// Collects the edges between locks of one group of cyclic locks.
struct CyclicEdges<'a> {
    kin: &'a Kin<'a>,
    edges: Edges,
    occurrences: usize,
    /// The group of each cyclic lock.
    groups: HashMap<LockId, usize>,
    /// An edge leads from each of this many innermost held locks.
    reach: usize,
    is_full: bool,
}

impl<'a> CyclicEdges<'a> {
    fn of(groups: &[Vec<LockId>], kin: &'a Kin<'a>) -> CyclicEdges<'a> {
        let mut group_of = HashMap::default();
        for (group, locks) in groups.iter().enumerate() {
            group_of.extend(locks.iter().map(|&lock| (lock, group)));
        }
        let (edges, reach) = (Edges::new(), usize::MAX);
        CyclicEdges { kin, edges, occurrences: 0, groups: group_of, reach, is_full: false }
    }

    fn is_cut(&self) -> bool {
        self.is_full || self.reach < usize::MAX
    }

    /// Adds the edges from all that a thread holds to what it acquires.
    fn add(&mut self, thread: ThreadId, (acquired, last): (Acquisition, u64), held: &[Held], gates: Node) {
        let Some(&group) = self.groups.get(&acquired.lock) else { return };
        let innermost = held.iter().rev().filter(|held| !held.is_in_condition_wait).enumerate();
        for (inner, from) in innermost.take(self.reach) {
            if self.groups.get(&from.lock) != Some(&group) {
                continue;
            }
            self.is_full = self.occurrences >= OCCURRENCES_ALL && self.reach == 1;
            if self.is_full {
                return;
            }
            let held = Acquisition { lock: from.lock, location: from.location, is_shared: from.is_shared };
            let new = Occurrence { thread, held, acquired, gates, first: from.since, last, inner };
            let occurrences = self.edges.entry((from.lock, acquired.lock)).or_default();
            if let Some(at) = place_of(occurrences, &new, self.kin) {
                let known = &mut occurrences[at];
                known.last = known.last.max(last);
                known.first = known.first.min(from.since);
            } else if occurrences.len() < OCCURRENCES_MAX {
                occurrences.push(new);
                self.occurrences += 1;
            }
        }
        while self.occurrences > OCCURRENCES_ALL && self.reach > 1 {
            self.shorten();
        }
    }

    /// Leaves out the outer half of the locks from which edges lead.
    fn shorten(&mut self) {
        let occurrences = || self.edges.values().flatten();
        let longest = occurrences().map(|occurrence| occurrence.inner + 1).max().unwrap_or(1);
        self.reach = (longest / 2).max(1);
        let reach = self.reach;
        self.edges.values_mut().for_each(|of_edge| of_edge.retain(|occurrence| occurrence.inner < reach));
        self.edges.retain(|_, of_edge| !of_edge.is_empty());
        self.occurrences = self.edges.values().map(Vec::len).sum();
    }
}

/// Which of the known occurrences of an edge a new one is like: of the same thread, in the same modes, and between the
/// same creations and joins of threads. If there are many such stretches of time, the last one takes the others in.
fn place_of(known: &[Occurrence], new: &Occurrence, kin: &Kin<'_>) -> Option<usize> {
    let alike = || known.iter().enumerate().filter(|(_, known)| known.is_alike(new));
    let stretch = |of: &Occurrence| (kin.stretch(of.thread, of.first), kin.stretch(of.thread, of.last));
    let same = alike().find(|(_, known)| stretch(known) == stretch(new));
    same.or_else(|| alike().nth(STRETCHES_MAX - 1)).map(|(at, _)| at)
}

impl Occurrence {
    /// Whether the same thread did the same, maybe elsewhere in the source.
    fn is_alike(&self, other: &Occurrence) -> bool {
        let modes = |occurrence: &Occurrence| (occurrence.held.is_shared, occurrence.acquired.is_shared);
        self.thread == other.thread && modes(self) == modes(other) && self.gates == other.gates
    }
}

/// To compare this many gates, or to look at this many edges, costs the search a step.
const LOOKS_A_STEP: usize = 64;
/// The longest cycle that is searched for.
const LENGTH_MAX: usize = 50;
/// The occurrences of the edges of a cycle.
type Cycle = Vec<Occurrence>;

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
fn is_one_after_the_other(view: &View<'_>, cycle: &[Occurrence]) -> bool {
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
struct Search<'a> {
    view: &'a View<'a>,
    kin: &'a Kin<'a>,
    edges: &'a Edges,
    graph: &'a Graph,
    nesting: &'a Nesting,
    steps: usize,
    /// The search ended before it was complete.
    is_cut: bool,
    path: Vec<&'a Occurrence>,
    /// The gates of all occurrences on the path: how many hold each shared, and how many exclusively.
    gates: HashMap<LockId, (usize, usize)>,
}

impl<'a> Search<'a> {
    fn new(
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

impl Basis for OrderCycle {
    fn about(&self, all: &mut About<'_>) {
        for &OrderEdge { thread, held, acquired } in &self.edges {
            all.thread_and_lock(thread, acquired.lock, [acquired.location]);
            all.thread_and_lock(thread, held.lock, [held.location]);
            let acquires = |words: &Words<'_>, of: Acquisition| {
                format!("{} acquires {} here", words.thread(thread), words.short_lock(of.lock))
            };
            all.other(held.location, |words| acquires(words, held));
            all.main(acquired.location, |words| acquires(words, acquired));
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let is_one = self.edges.windows(2).all(|edges| edges[0].thread == edges[1].thread);
        let summary = match self.edges.len() {
            2 if is_one => "a thread acquires two locks in opposite orders".to_owned(),
            2 => "2 threads acquire two locks in opposite orders".to_owned(),
            locks => format!("{} acquire {locks} locks in orders that form a cycle", words.threads(locks)),
        };
        let line = |OrderEdge { thread, held, acquired }: &OrderEdge| {
            format!(
                "{} acquired {}{} at {} while it held {}{}, acquired at {}",
                words.thread(*thread),
                words.lock(acquired.lock),
                in_parentheses(acquired.is_shared),
                words.location(acquired.location),
                words.lock(held.lock),
                in_parentheses(held.is_shared),
                words.location(held.location)
            )
        };
        let mut evidence: Vec<String> = self.edges.iter().map(line).collect();
        if self.similar > 0 {
            let (sets, form) = (agree(self.similar, "set", "sets"), agree(self.similar, "forms", "form"));
            let similar = self.similar;
            evidence.push(format!("{similar} more {sets} of locks with the same names {form} such a cycle"));
        }
        if self.unlisted > 0 {
            let inversions = agree(self.unlisted, "inversion is", "inversions are");
            evidence.push(format!("{} more {inversions} not listed", self.unlisted));
        }
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
#[path = "lock_order_tests.rs"]
mod tests;
