//! The orders in which threads acquired locks, as far as they can be part of a cycle. `lock_order` says what an order
//! is. It makes no findings.

use std::collections::BTreeMap;

use foldhash::HashMap;

use super::View;
use super::gates::{self, Gates};
use super::history::{self, Held};
use super::kin::Kin;
use super::lock_order::Acquisition;
use super::nesting::{Mode, NOTHING, Nesting, Node};
use super::replaced::replaced;
use crate::locks::{LockId, Step, StepKind, ThreadId};

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
pub(super) struct Occurrence {
    pub(super) thread: ThreadId,
    pub(super) held: Acquisition,
    pub(super) acquired: Acquisition,
    /// All that it held.
    pub(super) gates: Node,
    /// The sequence of the first time that it acquired the lock that it held.
    pub(super) first: u64,
    /// The sequence of the last time that it acquired the other one.
    pub(super) last: u64,
    /// How many of the locks that it held it acquired after `held`.
    pub(super) inner: usize,
}
/// The occurrences of each edge. Ordered, so that the output is the same each time.
pub(super) type Edges = BTreeMap<(LockId, LockId), Vec<Occurrence>>;

/// The orders in which threads acquired locks, as far as they can be part of a cycle.
pub(super) struct Orders {
    pub(super) edges: Edges,
    pub(super) nesting: Nesting,
    /// A limit was reached: some orders are left out.
    pub(super) is_cut: bool,
}
impl Orders {
    /// Looks at the threads twice. A thread that acquires N locks one inside the other makes N*N/2 edges, and mostly
    /// none of them is in a cycle. So the first look finds the locks that are in cycles, and only the second collects
    /// edges.
    pub(super) fn of(view: &View<'_>, kin: &Kin<'_>) -> Orders {
        let steps = view.now.threads.iter().map(|thread| thread.steps.len()).sum::<usize>();
        let mut nesting = Nesting::new(NODES_SPARE + steps);
        let mut is_cut = false;
        let (replaced, gates) = (replaced(view), Gates::new(view));
        let mut nested = Vec::new();
        for id in (0..view.now.threads.len()).filter(|&id| view.is_nesting(id)) {
            let mut is_nested = false;
            acquisitions(view, &gates, id, |acquired, held, passed, _| {
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
            acquisitions(view, &gates, id, |acquired, held, passed, sequence| {
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
    gates: &Gates<'_>,
    id: ThreadId,
    mut visit: impl FnMut(Acquisition, &[Held], &[Mode], u64),
) {
    let thread = &view.now.threads[id];
    if !history::is_complete(thread) {
        return;
    }
    let passages = gates.passages(thread);
    let mut visit = |acquired: Acquisition, held: &[Held], sequence: u64| {
        // A thread that holds the lock already adds no order when it acquires it again.
        if modes(held, &[]).any(|(lock, _)| lock == acquired.lock) || gates.is_handed_over(acquired.lock) {
            return;
        }
        let mut passed: Vec<Mode> = gates::passed(&passages, sequence).collect();
        let (handed_over, own): (Vec<Held>, Vec<Held>) =
            held.iter().partition(|held| gates.is_handed_over(held.lock));
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
