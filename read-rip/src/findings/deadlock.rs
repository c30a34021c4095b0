//! Deadlocks: threads that wait for one another in a circle.
//!
//! # Question
//!
//! Which threads can never go on, because each waits for a lock that another of them has?
//!
//! # Method
//!
//! A wait-for graph, with nodes for threads and for what one can wait for: *all* holders of a lock (to have it
//! alone), its *exclusive* holder (to share it), its *upgradable* one (to share it in that way too), the *queue* of
//! those who wait to have it alone (to share a lock whose readers do not pass writers). So there are as many edges as waits and holds, however many readers meet however
//! many writers. Cycles are in its strongly connected components (Tarjan); of each the shortest one is the
//! evidence. That is done three times, with the edges that are certain, then with those that have a doubt: a weaker
//! cycle is reported only where there is no stronger one.
//!
//! A cycle needs one moment at which all of it was so. In a living process each wait and hold on it was there in two
//! readings, as the same entry: the sequence of the event that entered it is part of it, and a thread that has
//! gone on by a whole lap of sequences is left out. An entry seen before and after was there all the while, so all of them were there together between the end of the first reading and the
//! beginning of the second, however long each reading took. What is not in both readings is not looked at. Of a dead
//! process the last state is one moment by itself.
//!
//! An entry that says *waits* may be a few instructions early or late: the thread may not have begun yet, or have got
//! the lock. Neither opens the cycle. It cannot have got a lock that another one on the cycle has; and whether it
//! blocks already or will in a moment, those who could let it pass wait themselves. Only behind a queued writer that
//! is not so, for a queue has no entry: see `is_certainly_queued`.
//!
//! # Blind spots
//!
//! Waiting that is not for a lock (a channel, a join, a condition) is not in the graph. A lock that is released by
//! others than its holder opens a cycle; where that was seen, or may have been, the cycle is suspected only. A thread that
//! waits for itself, with a lock that any thread may release, may use it as a gate: that is potential. Locks that
//! are marked by hand are taken at their word no further than that: their cycles are potential. A file
//! that was copied while its process lived is no single moment, and does not say so.
//!
//! # Example output
//!
//! ```text
//! proven deadlock: 2 threads wait for one another, for 12 s
//!     saver[123] waits for SAVINGS at transfer bank.rs:37, which spender[124] has had for 12 s, taken at transfer bank.rs:35
//!     spender[124] waits for CURRENT at transfer bank.rs:37, which saver[123] has had for 12 s, taken at transfer bank.rs:35
//!     14 more threads wait behind them
//! ```

use std::collections::HashSet;

use super::graph::Graph;
use super::{Analysis, Confidence, Finding, Part, View, add_duration, history, more_threads, parts};
use crate::locks::{Hold, HoldState, Lock, LockId, ThreadId, Wait};
use crate::ring::SequenceBits;

/// See the file's description.
pub(super) struct Deadlock;

const KIND: &str = "deadlock";
/// A wait that has lasted so long has begun: a thread is not kept from running for so long between a mark and
/// the call after it. Only what a queue of writers does depends on it.
const BEGUN_NS: u64 = 100_000_000;
/// A thread that went on by so many words may have an entry with the sequence of an earlier one.
const LAP_WORDS: u64 = SequenceBits::PERIOD;
/// How many edges to follow in search of a still shorter cycle.
const SEARCH_EDGES: usize = 1_000_000;
/// A longer cycle is told in part.
const TOLD_MAX: usize = 50;

impl Analysis for Deadlock {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let judge = Judge::new(view);
        let mut reported: Vec<(Confidence, Vec<usize>, Vec<usize>)> = Vec::new();
        let mut known = HashSet::new();
        for level in [Confidence::Proven, Confidence::Potential, Confidence::Suspected] {
            let graph = judge.graph(level);
            for component in graph.cyclic_components() {
                if component.iter().any(|node| known.contains(node)) {
                    continue;
                }
                let starts = component.iter().copied().filter(|&node| node < view.now.threads.len());
                let cycle = graph.shortest_cycle(&component, starts, SEARCH_EDGES);
                if !cycle.is_empty() {
                    known.extend(component.iter().copied());
                    reported.push((level, component, cycle));
                }
            }
        }
        if reported.is_empty() {
            return;
        }
        let groups: Vec<Vec<usize>> = reported.iter().map(|(_, component, _)| component.clone()).collect();
        let mut stuck = vec![0; groups.len()];
        let leading_to = judge.graph(Confidence::Suspected).leading_to(&groups);
        leading_to[..view.now.threads.len()].iter().flatten().for_each(|&group| stuck[group] += 1);
        for ((level, _, cycle), stuck) in reported.into_iter().zip(stuck) {
            found.push(judge.tell(level, &cycle, stuck));
        }
    }
}

/// Says how certain each part of the graph is.
struct Judge<'a> {
    view: &'a View<'a>,
    handed_over: HashSet<LockId>,
    /// For each lock, so that nothing is looked for among thousands of readers again and again.
    locks: Vec<Sums>,
}

/// What is known of a lock's holders and waiters.
#[derive(Clone, Copy)]
struct Sums {
    /// Somebody had it alone all the while.
    is_exclusive: bool,
    /// Somebody shared it all the while in the way that only one can.
    is_upgradable: bool,
    /// It has a holder beside the one that has it alone, which cannot be.
    is_contradictory: bool,
    /// Somebody waits to have it alone, for long.
    is_queued_for: bool,
}

/// How certain something is, and if not, why.
type Grade = (Confidence, Option<&'static str>);

const CERTAIN: Grade = (Confidence::Proven, None);

impl<'a> Judge<'a> {
    fn new(view: &'a View<'a>) -> Judge<'a> {
        let sum = |(id, lock): (LockId, &Lock)| {
            let held = || lock.holders.iter().filter(|hold| hold.state == HoldState::Held);
            let mut exclusive = held().filter(|hold| !hold.is_shared).peekable();
            Sums {
                is_contradictory: exclusive.peek().is_some() && held().nth(1).is_some(),
                is_exclusive: exclusive.any(|hold| hold.is_steady),
                is_upgradable: held().any(|hold| hold.is_upgradable && hold.is_steady),
                is_queued_for: view.waiters(id).any(|wait| !wait.is_shared && has_begun(view, wait)),
            }
        };
        let locks = view.now.locks.iter().enumerate().map(sum).collect();
        Judge { view, handed_over: history::handed_over(view.now), locks }
    }

    /// A thread's own hold on a lock.
    fn own_hold(&self, thread: ThreadId, lock: LockId) -> Option<&Hold> {
        let mut holds = self.view.now.threads[thread].holds.iter();
        holds.find(|hold| hold.lock == lock && hold.state == HoldState::Held && hold.is_steady)
    }

    /// The node for all holders of a lock.
    fn all(&self, lock: LockId) -> usize {
        self.view.now.threads.len() + lock
    }

    /// The node for the exclusive holder of a lock.
    fn exclusive(&self, lock: LockId) -> usize {
        self.all(lock) + self.view.now.locks.len()
    }

    /// The node for those who wait to have a lock alone.
    fn queue(&self, lock: LockId) -> usize {
        self.exclusive(lock) + self.view.now.locks.len()
    }

    /// The node for the upgradable holder of a lock.
    fn upgradable(&self, lock: LockId) -> usize {
        self.queue(lock) + self.view.now.locks.len()
    }

    /// The graph of what is at least so certain.
    fn graph(&self, level: Confidence) -> Graph {
        let model = self.view.now;
        let mut graph = Graph::new(model.threads.len() + 4 * model.locks.len());
        for thread in 0..model.threads.len() {
            let Some(wait) = self.steady_wait(thread) else { continue };
            let lock = &model.locks[wait.lock];
            if self.wait(wait).0 < level {
                continue;
            }
            if !wait.is_shared {
                graph.add(thread, self.all(wait.lock));
            } else if self.locks[wait.lock].is_exclusive {
                graph.add(thread, self.exclusive(wait.lock));
            } else if wait.is_upgradable && self.locks[wait.lock].is_upgradable {
                graph.add(thread, self.upgradable(wait.lock));
            } else if self.queued(wait).0 >= level && lock.nature.readers_first != Some(true) {
                graph.add(thread, self.queue(wait.lock));
            }
        }
        for (id, lock) in model.locks.iter().enumerate() {
            if lock.waiters.is_empty() {
                continue;
            }
            for hold in steady_holds(lock).filter(|hold| self.hold(hold).0 >= level) {
                graph.add(self.all(id), hold.thread);
                if !hold.is_shared {
                    graph.add(self.exclusive(id), hold.thread);
                }
                if hold.is_upgradable {
                    graph.add(self.upgradable(id), hold.thread);
                }
            }
            for wait in self.view.waiters(id).filter(|wait| !wait.is_shared && wait.is_steady) {
                if self.wait(wait).0 >= level {
                    graph.add(self.queue(id), wait.thread);
                }
            }
        }
        graph
    }

    /// What a thread waits for, if it did so all the while.
    fn steady_wait(&self, thread: ThreadId) -> Option<&Wait> {
        let wait = self.view.wait(thread).filter(|wait| wait.is_steady)?;
        let is_same_lap = self.view.now.threads[thread].advanced.is_none_or(|words| words < LAP_WORDS);
        if !is_same_lap {
            return None;
        }
        let lock = &self.view.now.locks[wait.lock];
        // Who has a lock that can be taken again does not wait for it.
        let has_it = lock.nature.is_reentrant && self.own_hold(thread, wait.lock).is_some();
        (!has_it).then_some(wait)
    }

    fn wait(&self, wait: &Wait) -> Grade {
        if wait.is_timed {
            return (Confidence::Potential, Some("a wait on it has a time limit, so it resolves itself"));
        }
        let lock = &self.view.now.locks[wait.lock];
        match self.own_hold(wait.thread, wait.lock) {
            Some(own) if !lock.nature.is_wrapped && own.is_shared && !wait.is_shared => (
                Confidence::Suspected,
                Some("the lock is marked by hand and may be one that can be upgraded"),
            ),
            Some(_) if !lock.nature.is_wrapped => (
                Confidence::Suspected,
                Some(
                    "the lock is marked by hand: it may be one that can be taken again, or a release have no mark",
                ),
            ),
            Some(own) if !own.is_shared && !lock.nature.is_owned => (
                Confidence::Potential,
                Some("the lock may be a gate: one that another thread releases, to let this one go on"),
            ),
            _ => CERTAIN,
        }
    }

    fn hold(&self, hold: &Hold) -> Grade {
        let lock = &self.view.now.locks[hold.lock];
        if self.locks[hold.lock].is_contradictory {
            (Confidence::Suspected, Some("two threads are recorded to have the same lock, which cannot be"))
        } else if !lock.nature.is_owned && self.view.now.releases_unmatched > 0 {
            (
                Confidence::Suspected,
                Some("some releases could not be told to a holder: a lock on it may be free"),
            )
        } else if self.handed_over.contains(&hold.lock) {
            (
                Confidence::Suspected,
                Some("a lock on it was seen to be released by another thread than its holder"),
            )
        } else if !lock.nature.is_wrapped {
            (Confidence::Potential, Some("a lock on it is marked by hand: a release may have no mark"))
        } else {
            CERTAIN
        }
    }

    /// Whether one who waits to share a lock waits for the writers in its queue.
    fn queued(&self, wait: &Wait) -> Grade {
        match self.view.now.locks[wait.lock].nature.readers_first {
            Some(false) if self.is_certainly_queued(wait) => CERTAIN,
            Some(false) => (
                Confidence::Potential,
                Some("it is not certain that the writer was in the queue before the reader came"),
            ),
            Some(true) | None => (
                Confidence::Suspected,
                Some("whether readers of this lock wait for writers in its queue is not known"),
            ),
        }
    }

    /// A wrapper waits only after a try has failed. If the reader has the lock itself, nobody had it alone then, so
    /// that the try failed because of a writer in the queue; who still waits, for this reader. Otherwise both
    /// must have waited for long enough to have begun.
    fn is_certainly_queued(&self, wait: &Wait) -> bool {
        let lock = &self.view.now.locks[wait.lock];
        let is_own = self.own_hold(wait.thread, wait.lock).is_some();
        let is_long = has_begun(self.view, wait) && self.locks[wait.lock].is_queued_for;
        lock.nature.is_wrapped && (is_own || is_long)
    }

    /// The finding for a cycle, given as nodes; `stuck` threads are on it or wait behind it.
    fn tell(&self, level: Confidence, cycle: &[usize], stuck: usize) -> Finding {
        let model = self.view.now;
        let threads: Vec<ThreadId> =
            cycle.iter().copied().filter(|&node| node < model.threads.len()).collect();
        let (mut evidence, mut doubts) = (Vec::new(), Vec::new());
        let mut waits = Vec::new();
        let mut is_queue = false;
        for (at, &thread) in threads.iter().enumerate() {
            let next = threads[(at + 1) % threads.len()];
            let Some(wait) = self.steady_wait(thread) else { continue };
            waits.push(wait);
            doubts.extend(self.wait(wait).1);
            let step = cycle.iter().position(|&node| node == thread).map(|at| cycle[(at + 1) % cycle.len()]);
            let hold = self.own_hold(next, wait.lock);
            let mut line = self.waiting(wait);
            match hold.filter(|_| step != Some(self.queue(wait.lock))) {
                Some(hold) => {
                    doubts.extend(self.hold(hold).1);
                    self.having(&mut line, hold, thread);
                }
                None => {
                    is_queue = true;
                    doubts.extend(self.queued(wait).1);
                    line.extend(parts![", behind ", Part::Thread(next), ", who waits to have it alone"]);
                }
            }
            evidence.push(line);
        }
        if evidence.len() > TOLD_MAX {
            let more = evidence.len() - TOLD_MAX;
            evidence.truncate(TOLD_MAX);
            evidence.push(parts!["and so on, for ", more_threads(more), ", round to the first"]);
        }
        let behind = stuck.saturating_sub(threads.len());
        if behind > 0 {
            let verb = if behind == 1 { " waits behind " } else { " wait behind " };
            evidence.push(parts![more_threads(behind), verb, if threads.len() == 1 { "it" } else { "them" }]);
        }
        let since_ns = waits.iter().map(|wait| wait.since_ns).collect::<Option<Vec<u64>>>();
        let since_ns = since_ns.and_then(|all| all.into_iter().max());
        let mut summary = match threads[..] {
            [thread] => parts![Part::Thread(thread), " waits for a lock that it has itself"],
            _ => parts![Part::Threads(threads.len()), " wait for one another"],
        };
        add_duration(&mut summary, ", for ", self.view.ago_ns(since_ns));
        let mut finding = Finding::new(KIND, level, summary, evidence);
        doubts.sort_unstable();
        doubts.dedup();
        finding.doubt = (!doubts.is_empty()).then(|| doubts.join("; "));
        finding.threads_hurt = stuck.max(threads.len());
        finding.since_ns = since_ns;
        finding.advice = if is_queue {
            "do not take a lock to share it while holding it already: a writer that comes between stops both; or \
             read once and pass the result on"
        } else if threads.len() == 1 {
            "release the lock before the call that takes it again, or hand the guard on to it"
        } else {
            "take these locks in one order everywhere, or let go of the first before waiting for the second"
        }
        .into();
        if level == Confidence::Proven {
            finding.advice.push_str("; nothing but ending the process frees these threads");
        }
        finding
    }

    fn waiting(&self, wait: &Wait) -> Vec<Part> {
        let verb = if wait.is_shared { " waits to share " } else { " waits for " };
        let mut line = parts![
            Part::Thread(wait.thread),
            verb,
            Part::Lock(wait.lock),
            " at ",
            Part::Location(wait.location)
        ];
        if wait.is_timed {
            line.push(", for a limited time".into());
        }
        line
    }

    fn having(&self, line: &mut Vec<Part>, hold: &Hold, waiter: ThreadId) {
        let held_ns = self.view.ago_ns(hold.since_ns);
        let how = match (hold.is_shared, held_ns) {
            (true, Some(_)) => "has shared",
            (true, None) => "shares",
            (false, Some(_)) => "has had",
            (false, None) => "has",
        };
        if hold.thread == waiter {
            line.push(format!(", which it {how} itself").into());
        } else {
            line.extend(parts![", which ", Part::Thread(hold.thread), format!(" {how}")]);
        }
        add_duration(line, " for ", held_ns);
        line.extend(parts![", taken at ", Part::Location(hold.location)]);
    }
}

/// Those who had a lock all the while, for certain.
fn steady_holds(lock: &Lock) -> impl Iterator<Item = &Hold> {
    lock.holders.iter().filter(|hold| hold.state == HoldState::Held && hold.is_steady)
}

fn has_begun(view: &View<'_>, wait: &Wait) -> bool {
    view.ago_ns(wait.since_ns).is_some_and(|waited_ns| waited_ns >= BEGUN_NS)
}

#[cfg(test)]
#[path = "deadlock_tests.rs"]
mod tests;
