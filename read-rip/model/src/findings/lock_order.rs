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
//! one was initialised or destroyed adds no edges.
//!
//! # Blind spots
//!
//! Threads that cannot run at the same time look like threads that did not: the finding is suspected if one thread had
//! exited before another one recorded anything, and if the main thread, if it was the first to record, did its part for
//! the last time before that. Where it is known that one thread created or joined the other, `kin` says what it did
//! before and after, and there is no finding. A reader that queues after a waiting writer adds no edge: `deadlock`
//! reports such a cycle if it happens. A lock at the address of an earlier lock has the earlier one's history, if
//! nothing shows where that one ended. A semaphore with several units of which no history shows two at once looks like
//! a gate. What was overwritten has no edges. If there are too many orders, or too many ways to combine them, only a
//! part is searched, and the analysis says so.
//!
//! # Example output
//!
//! ```text
//! potential lock-order: 2 threads acquire two locks in opposite orders
//!     saver[123] acquired SAVINGS at transfer bank.rs:37 while it held CURRENT, acquired at transfer bank.rs:35
//!     spender[124] acquired CURRENT at transfer bank.rs:37 while it held SAVINGS, acquired at transfer bank.rs:35
//! ```

use std::collections::BTreeMap;

use serde::Serialize;

use super::finding::locks_of;
use super::graph::{Edge, Graph};
use super::kin::Kin;
use super::order_cycles::{Cycle, Search, is_one_after_the_other};
use super::orders::{Occurrence, Orders};
use super::words::in_parentheses;
use super::{
    Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Limit, Mentions, Paragraph, Roles, View, Words,
};
use crate::locations::LocationId;
use crate::locks::{LockId, LockName, ThreadId};
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
fn group_name(view: &View<'_>, lock: LockId) -> String {
    match &view.now.locks[lock].name {
        LockName::Given(name) | LockName::Symbol(name) => name.clone(),
        LockName::Location(location) => format!("\0{location}"),
        LockName::None => format!("\0\0{lock}"),
    }
}
fn finding(view: &View<'_>, cycle: Cycle, similar: usize, unlisted: usize) -> Finding {
    let (confidence, doubt) = match is_one_after_the_other(view, &cycle) {
        true => (Confidence::Suspected, Doubt::OneAfterTheOther),
        false => (Confidence::Potential, Doubt::MaybeNeverConcurrent),
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

impl Basis for OrderCycle {
    fn mentions(&self, all: &mut Mentions) {
        for OrderEdge { thread, held, acquired } in &self.edges {
            all.one(*thread, acquired.lock, [acquired.location]);
            all.one(*thread, held.lock, [held.location]);
        }
    }

    fn roles(&self, all: &mut Roles<'_>) {
        for OrderEdge { thread, held, acquired } in &self.edges {
            let thread = all.words.thread(*thread);
            let [first, second] = [held, acquired].map(|of| all.words.short_lock(of.lock));
            all.other(held.location, format!("{thread} acquires {first} here"));
            all.main(acquired.location, format!("{thread} acquires {second} here"));
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
