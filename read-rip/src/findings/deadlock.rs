//! Deadlocks: threads that wait for one another in a cycle.
//!
//! # Question
//!
//! Which threads can never continue, because each waits for a lock that another of them holds?
//!
//! # Method
//!
//! A wait-for graph. Its nodes are the threads and what a thread can wait for: *all* holders of a lock (to acquire
//! it exclusively), its *exclusive* holder (to acquire it shared), its *upgradable* holder (to acquire it
//! upgradable too), and the *queue* of its waiting writers (to acquire it shared where readers do not overtake
//! writers). So the graph has as many edges as there are waits and holds, however many readers meet however many
//! writers. Cycles are in its strongly connected components (Tarjan). The evidence is the shortest cycle of each
//! component. The search runs three times: with the proven edges, then with the potential ones too, then with all. A
//! weaker cycle is reported only where there is no stronger one.
//!
//! A cycle is a deadlock only if all of its waits and holds existed at one moment. For a living process, the graph
//! uses only entries that are equal in two readings. An entry contains the sequence of the event that made it, and a
//! thread that recorded a whole lap of sequences between the readings is left out. So an equal entry existed
//! throughout, and all of them existed together between the end of the first reading and the beginning of the second,
//! however long each reading took. The last state of a dead process is one moment by itself.
//!
//! An entry that says *waits* may be a few instructions early or late: the thread may not have begun to wait, or
//! may have acquired the lock. Neither breaks the cycle. The thread cannot have acquired a lock that another thread
//! of the cycle holds. And whether it already blocks or is about to block, the threads that could let it continue are
//! waiting too. A queue of writers is different, because it has no entry: see `is_certainly_queued`.
//!
//! A thread that waits on a condition variable needs the condition's lock to return: after a signal, when its time is
//! up, and when it is cancelled. So it waits for the thread that holds that lock, and this edge is as certain as that
//! of an ordinary wait. Who could signal is another question: see `long_wait`.
//!
//! A thread that waits for the end of another thread is an edge too: the other one has to continue.
//!
//! So is a task that waits at a channel, if the other side has one end that one task or thread alone has used: that one
//! has to continue, unless the end has moved to a task that has not used it yet. Such a cycle is potential, and if a
//! sender is on it, suspected. A thread that blocks at a channel in a call of its own has no such edge.
//!
//! # Who can release a lock
//!
//! A hold is a certain edge if only the holder can release the lock: the standard library's locks, and recursive,
//! error-checking, robust and priority-inheriting mutexes. It is also one if only the holder *may* release the lock:
//! POSIX leaves it undefined what an unlock by another thread does, and the guards of `lock_api` say whether they can
//! be sent. The finding names that premise. It does not hold any more once a thread was seen to release another
//! thread's lock: that lock, and locks that are acquired where it was acquired or initialised where it was
//! initialised, are in suspected cycles only. A lock whose guard can be sent to another thread is in potential cycles
//! only.
//!
//! # Blind spots
//!
//! A wait for something else (the signal of a condition, a channel with several ends or users) is not in the graph.
//! Cycles through locks that are marked by hand are potential. A copy may have been made while its process ran, and
//! does not show one moment: see `doubt_copy`.
//!
//! # Example output
//!
//! ```text
//! proven deadlock: 2 threads wait for one another, for 12 s
//!     saver[123] waits for SAVINGS at transfer bank.rs:37, held by spender[124] for 12 s, acquired at ...
//!     spender[124] waits for CURRENT at transfer bank.rs:37, held by saver[123] for 12 s, acquired at ...
//!     14 more threads are blocked by them
//! ```

use super::evidence::{Blocker, ChannelFact, Evidence, LockEdge, WaitCycle, WaitEdge, WorkerFact};
use super::finding::{Analysis, Finding};
use super::graph::{Edge, Graph};
use super::history::HandedOver;
use super::kind::{Advice, Confidence, Doubt, Kind, Premise};
use super::task_waits::{self, BlockedRuntime, Wakers};
use super::view::View;
use crate::hash::HashSet;
use crate::locks::{Hold, HoldState, Join, Lock, LockId, Ownership, ThreadId, Wait};
use crate::ring::{LockType, Runtime, SequenceBits};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct Deadlock;

/// A wait that was marked this long ago has begun: the scheduler does not delay a thread for this long between a mark
/// and the call after it. Only conclusions about queues of writers depend on this.
const BEGUN_NS: u64 = 100_000_000;
/// A thread that recorded this many words may have an entry with the sequence of an earlier one.
const LAP_WORDS: u64 = SequenceBits::PERIOD;
/// After this many edges, the search for a shorter cycle ends.
const SEARCH_EDGES: usize = 1_000_000;
/// At most this many edges of a cycle are evidence.
const EDGES_MAX: usize = 50;

/// A cycle: its level, the component that it is in, and its nodes.
type Found = (Confidence, Vec<usize>, Vec<usize>);

impl Analysis for Deadlock {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let waits_for = WaitsFor::new(view);
        let cycles = waits_for.cycles();
        if cycles.is_empty() {
            return;
        }
        let groups: Vec<Vec<usize>> = cycles.iter().map(|(_, component, _)| component.clone()).collect();
        let mut stuck = vec![0; groups.len()];
        let leading_to = waits_for.graph(Confidence::Suspected).leading_to(&groups);
        leading_to[..view.now.threads.len()].iter().flatten().for_each(|&group| stuck[group] += 1);
        for ((level, _, cycle), stuck) in cycles.into_iter().zip(stuck) {
            found.push(waits_for.finding(level, &cycle, stuck));
        }
    }
}

/// Who waits for whom, and how certain each part of that is.
struct WaitsFor<'a> {
    view: &'a View<'a>,
    handed_over: &'a HandedOver,
    /// One for each lock: computed once, because a lock can have thousands of readers.
    locks: Vec<LockState>,
    /// The executors whose workers are all blocked, in an order of their own.
    runtimes: Vec<((u32, Runtime), BlockedRuntime)>,
}

/// What is known of a lock's holders and waiters.
#[derive(Clone, Copy)]
struct LockState {
    /// A thread held it exclusively throughout.
    is_exclusive: bool,
    /// A thread held it upgradable throughout.
    is_upgradable: bool,
    /// It has an exclusive holder and a second holder, which is impossible.
    is_contradictory: bool,
    /// A thread has waited for long to acquire it exclusively.
    has_queued_writer: bool,
    /// Nobody holds it, and a future that its task leaves out is first in line.
    left_out: Option<Wait>,
}

/// How certain something is, and if it is not, why.
type Grade = (Confidence, Option<Doubt>);

const CERTAIN: Grade = (Confidence::Proven, None);

impl<'a> WaitsFor<'a> {
    fn new(view: &'a View<'a>) -> WaitsFor<'a> {
        let state = |(id, lock): (LockId, &Lock)| {
            let held = || lock.holders.iter().filter(|hold| hold.state == HoldState::Held);
            let mut exclusive = held().filter(|hold| !hold.is_shared).peekable();
            LockState {
                is_contradictory: exclusive.peek().is_some() && held().nth(1).is_some(),
                is_exclusive: exclusive.any(|hold| hold.is_steady),
                is_upgradable: held().any(|hold| hold.is_upgradable && hold.is_steady),
                has_queued_writer: view.waits(id).any(|wait| !wait.is_shared && has_begun(view, wait)),
                left_out: task_waits::left_out(view, id),
            }
        };
        let locks = view.now.locks.iter().enumerate().map(state).collect();
        let runtimes = task_waits::blocked_runtimes(view).into_iter().collect();
        WaitsFor { view, handed_over: view.handed_over(), locks, runtimes }
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

    /// The node for the threads that wait to acquire a lock exclusively.
    fn queue(&self, lock: LockId) -> usize {
        self.exclusive(lock) + self.view.now.locks.len()
    }

    /// The node for the upgradable holder of a lock.
    fn upgradable(&self, lock: LockId) -> usize {
        self.queue(lock) + self.view.now.locks.len()
    }

    /// The node for the workers of an executor, by its position in the list.
    fn workers(&self, runtime: usize) -> usize {
        self.upgradable(0) + self.view.now.locks.len() + runtime
    }

    /// The executor, by its position, without which a task that holds a lock does not go on.
    fn needed_workers(&self, thread: ThreadId) -> Option<usize> {
        let needed = task_waits::needs_worker(&self.view.now.threads[thread])?;
        self.runtimes.iter().position(|(runtime, _)| *runtime == needed)
    }

    /// Whether all workers of each executor in a component are stuck in it. One that returns polls whatever is there.
    fn has_all_workers(&self, component: &[usize]) -> bool {
        let runtimes = (0..self.runtimes.len()).filter(|&at| component.contains(&self.workers(at)));
        runtimes.into_iter().all(|at| {
            let polls = &self.runtimes[at].1.polls;
            polls.iter().all(|(task, _)| component.binary_search(task).is_ok())
        })
    }

    /// One cycle for each component of the graph that has any, the most certain first.
    fn cycles(&self) -> Vec<Found> {
        let mut cycles = Vec::new();
        let mut known = HashSet::default();
        // What is more certain has a part of these edges.
        if self.graph(Confidence::Suspected).cyclic_components().is_empty() {
            return cycles;
        }
        for level in [Confidence::Proven, Confidence::Potential, Confidence::Suspected] {
            let graph = self.graph(level);
            for component in graph.cyclic_components() {
                if component.iter().any(|node| known.contains(node)) || !self.has_all_workers(&component) {
                    continue;
                }
                let is_thread = |node: &usize| *node < self.view.now.threads.len();
                let starts = component.iter().copied().filter(is_thread);
                let cycle = graph.shortest_cycle(&component, starts, SEARCH_EDGES);
                if !cycle.is_empty() {
                    known.extend(component.iter().copied());
                    cycles.push((level, component, cycle));
                }
            }
        }
        cycles
    }

    /// The graph of all that is at least this certain.
    fn graph(&self, level: Confidence) -> Graph {
        let model = self.view.now;
        let mut edges: Vec<Edge> = Vec::new();
        for thread in 0..model.threads.len() {
            if let Some(wait) = self.steady_wait(thread).filter(|wait| self.grade_wait(wait).0 >= level) {
                edges.extend(self.target(wait, level).map(|target| (thread, target)));
            }
            if let Some(runtime) = self.needed_workers(thread) {
                edges.push((thread, self.workers(runtime)));
            }
            if let Some(join) = self.steady_join(thread).filter(|join| grade_join(join).0 >= level) {
                edges.push((thread, join.joined));
            }
            if let Some((channel, _)) = self.channel_wait(thread).filter(|(_, grade)| grade.0 >= level) {
                edges.push((thread, channel.peer));
            }
        }
        for (id, lock) in model.locks.iter().enumerate() {
            if lock.waiters.is_empty() && lock.condition_waiters.is_empty() {
                continue;
            }
            if let Some(left_out) = &self.locks[id].left_out {
                edges.push((self.all(id), left_out.thread));
            }
            for hold in steady_holds(lock).filter(|hold| self.grade_hold(hold).0 >= level) {
                edges.push((self.all(id), hold.thread));
                if !hold.is_shared {
                    edges.push((self.exclusive(id), hold.thread));
                }
                if hold.is_upgradable {
                    edges.push((self.upgradable(id), hold.thread));
                }
            }
            for wait in self.view.waits(id).filter(|wait| !wait.is_shared && wait.is_steady) {
                if self.grade_wait(wait).0 >= level {
                    edges.push((self.queue(id), wait.thread));
                }
            }
        }
        for (at, (_, runtime)) in self.runtimes.iter().enumerate() {
            edges.extend(runtime.polls.iter().map(|&(task, _)| (self.workers(at), task)));
        }
        Graph::new(model.threads.len() + 4 * model.locks.len() + self.runtimes.len(), &edges)
    }

    /// The node that a wait is for.
    fn target(&self, wait: &Wait, level: Confidence) -> Option<usize> {
        let state = self.locks[wait.lock];
        if !wait.is_shared || state.left_out.is_some() {
            Some(self.all(wait.lock))
        } else if state.is_exclusive {
            Some(self.exclusive(wait.lock))
        } else if wait.is_upgradable && state.is_upgradable {
            Some(self.upgradable(wait.lock))
        } else {
            let may_queue = self.view.now.locks[wait.lock].nature.readers_first != Some(true);
            (may_queue && self.grade_queue(wait).0 >= level).then(|| self.queue(wait.lock))
        }
    }

    /// The wait of a thread, if it lasted throughout.
    fn steady_wait(&self, thread: ThreadId) -> Option<&Wait> {
        let wait = self.view.wait(thread).or_else(|| self.relock(thread)).filter(|wait| wait.is_steady)?;
        if !self.is_same_lap(thread) {
            return None;
        }
        // The holder of a recursive lock does not wait for it.
        let is_recursive = self.view.now.locks[wait.lock].nature.is_reentrant;
        let is_own = is_recursive && self.own_hold(thread, wait.lock).is_some();
        (!is_own).then_some(wait)
    }

    /// Whether the thread recorded so little between the readings that its entries are those of the first one.
    fn is_same_lap(&self, thread: ThreadId) -> bool {
        self.view.now.threads[thread].advanced.is_none_or(|words| words < LAP_WORDS)
    }

    /// The wait of a thread for the end of another one, if it lasted throughout.
    fn steady_join(&self, thread: ThreadId) -> Option<&Join> {
        self.view.join(thread).filter(|join| join.is_steady && self.is_same_lap(thread))
    }

    /// The wait of a thread for the lock of its condition, if that lock is not its own meanwhile.
    fn relock(&self, thread: ThreadId) -> Option<&Wait> {
        let wait = self.view.relock(thread)?;
        self.own_hold(thread, wait.lock).is_none().then_some(wait)
    }

    /// The wait of a thread or task at a channel, if it lasted throughout, and only one other can end it.
    fn channel_wait(&self, thread: ThreadId) -> Option<(ChannelFact, Grade)> {
        let of = &self.view.now.threads[thread];
        let peer = of.peer.as_deref().filter(|_| of.state == ThreadState::Present)?;
        let wait = of.sleep.as_deref().filter(|wait| wait.is_steady && !wait.is_timed)?;
        let peer_of = peer.present.filter(|_| of.waits_only_at(wait) && self.is_same_lap(thread))?;
        let channel = ChannelFact {
            thread,
            lock: wait.lock,
            location: wait.location,
            for_ns: self.view.ago_ns(wait.since_ns),
            peer: peer_of,
            is_for_room: peer.receives,
        };
        // A receiver is used through a unique reference, a sender through a shared one.
        let confidence = if peer.receives { Confidence::Potential } else { Confidence::Suspected };
        Some((channel, (confidence, Some(Doubt::EndMayMove))))
    }

    fn grade_wait(&self, wait: &Wait) -> Grade {
        if wait.is_timed {
            return (Confidence::Potential, Some(Doubt::TimedWait));
        }
        match task_waits::wakers(&self.view.now.threads[wait.thread], wait.is_of_future) {
            Wakers::None => {}
            Wakers::Others => return (Confidence::Potential, Some(Doubt::OtherBranch)),
            Wakers::Untraced => return (Confidence::Suspected, Some(Doubt::UntracedFuture)),
        }
        let nature = &self.view.now.locks[wait.lock].nature;
        match self.own_hold(wait.thread, wait.lock) {
            Some(own) if !nature.is_wrapped && own.is_shared && !wait.is_shared => {
                (Confidence::Suspected, Some(Doubt::MaybeUpgradable))
            }
            Some(_) if !nature.is_wrapped => (Confidence::Suspected, Some(Doubt::MaybeRecursive)),
            Some(own) if !own.is_shared && nature.ownership == Ownership::Anyone => {
                (Confidence::Potential, Some(Doubt::MaybeGate))
            }
            _ => CERTAIN,
        }
    }

    fn grade_hold(&self, hold: &Hold) -> Grade {
        let nature = &self.view.now.locks[hold.lock].nature;
        let is_enforced = nature.ownership == Ownership::Enforced;
        let is_of_task = self.view.now.threads[hold.thread].task.is_some();
        if hold.is_of_future && !is_of_task {
            (Confidence::Suspected, Some(Doubt::UntracedFuture))
        } else if self.locks[hold.lock].is_contradictory {
            (Confidence::Suspected, Some(Doubt::TwoHolders))
        } else if !is_enforced && self.handed_over.includes(hold) {
            (Confidence::Suspected, Some(Doubt::HandedOver))
        } else if !is_enforced && self.view.now.releases_unmatched > 0 {
            (Confidence::Suspected, Some(Doubt::UnmatchedReleases))
        } else if !nature.is_wrapped {
            (Confidence::Potential, Some(Doubt::MarkedByHand))
        } else if nature.ownership == Ownership::Anyone {
            (Confidence::Potential, Some(Doubt::MaybeSent))
        } else {
            CERTAIN
        }
    }

    /// Whether a reader that waits for a lock waits for the writers in its queue.
    fn grade_queue(&self, wait: &Wait) -> Grade {
        match self.view.now.locks[wait.lock].nature.readers_first {
            Some(false) if self.is_certainly_queued(wait) => CERTAIN,
            Some(false) => (Confidence::Potential, Some(Doubt::QueueOrderUnknown)),
            Some(true) | None => (Confidence::Suspected, Some(Doubt::QueueRuleUnknown)),
        }
    }

    /// Whether a reader certainly queues after a waiting writer.
    ///
    /// A wrapper waits only after a try has failed. If the reader holds the lock itself, no thread held it
    /// exclusively at that moment. So the try failed because of a writer in the queue, and a writer that is still
    /// waiting waits for this reader. Otherwise both waits must have lasted long enough to have begun.
    fn is_certainly_queued(&self, wait: &Wait) -> bool {
        let is_own = self.own_hold(wait.thread, wait.lock).is_some();
        let is_long = has_begun(self.view, wait) && self.locks[wait.lock].has_queued_writer;
        self.view.now.locks[wait.lock].nature.is_wrapped && (is_own || is_long)
    }

    /// The finding for a cycle, given as nodes. `stuck` threads are on the cycle or blocked by it.
    fn finding(&self, level: Confidence, cycle: &[usize], stuck: usize) -> Finding {
        let is_thread = |node: &usize| *node < self.view.now.threads.len();
        let threads: Vec<ThreadId> = cycle.iter().copied().filter(is_thread).collect();
        let (mut edges, mut doubts, mut since) = (Vec::new(), Vec::new(), Vec::new());
        let mut premises = Vec::new();
        for (at, &thread) in threads.iter().enumerate() {
            let next = threads[(at + 1) % threads.len()];
            if let Some(join) = self.steady_join(thread).filter(|join| join.joined == next) {
                since.push(join.since_ns);
                doubts.extend(grade_join(join).1);
                edges.push(WaitEdge::Join { join: self.view.join_fact(join) });
                continue;
            }
            let channel = self.channel_wait(thread).filter(|(channel, _)| channel.peer == next);
            if let Some((channel, grade)) = channel {
                since.push(self.view.now.threads[thread].sleep.as_ref().and_then(|wait| wait.since_ns));
                doubts.extend(grade.1);
                edges.push(WaitEdge::Channel { channel });
                continue;
            }
            if let Some(worker) = self.worker_edge(cycle, thread, next) {
                edges.push(WaitEdge::Worker { worker });
                premises.push(Premise::WorkersBlock);
                continue;
            }
            let Some(wait) = self.steady_wait(thread) else { continue };
            since.push(wait.since_ns);
            doubts.extend(self.grade_wait(wait).1);
            let is_queued = self.leads_to_queue(cycle, thread, wait.lock);
            if let Some(left_out) = &self.locks[wait.lock].left_out {
                let blocker = Blocker::LeftOut(self.view.wait_fact(left_out));
                edges.push(WaitEdge::Lock(LockEdge { wait: self.view.wait_fact(wait), blocker }));
                continue;
            }
            let blocker = match self.own_hold(next, wait.lock).filter(|_| !is_queued) {
                Some(hold) => {
                    doubts.extend(self.grade_hold(hold).1);
                    premises.extend(self.view.premises(hold.lock));
                    Blocker::Holder(self.view.hold_fact(hold))
                }
                None => {
                    doubts.extend(self.grade_queue(wait).1);
                    Blocker::QueuedWriter(next)
                }
            };
            edges.push(WaitEdge::Lock(LockEdge { wait: self.view.wait_fact(wait), blocker }));
        }
        // All have waited since the last of them began to.
        let since_ns = since.into_iter().collect::<Option<Vec<u64>>>().and_then(|all| all.into_iter().max());
        let of_locks = || edges.iter().filter_map(WaitEdge::of_lock);
        let has_queue = of_locks().any(|edge| matches!(edge.blocker, Blocker::QueuedWriter(_)));
        let has_join = edges.iter().any(|edge| matches!(edge, WaitEdge::Join { .. }));
        let lock_type = |edge: &LockEdge| self.view.now.locks[edge.wait.lock].nature.lock_type;
        let is_refused = of_locks().any(|edge| self.view.now.locks[edge.wait.lock].nature.is_refused);
        let has_once = of_locks().any(|edge| lock_type(edge) == LockType::Once);
        let has_worker = edges.iter().any(|edge| matches!(edge, WaitEdge::Worker { .. }));
        let is_futurelock = self.is_futurelock(&edges);
        // A task that waits for itself by blocking its thread: another future of it holds the lock, or its own caller.
        let task = |id: ThreadId| self.view.now.threads[id].task.as_deref();
        let is_blocked_task = threads.len() == 1 && task(threads[0]).is_some_and(|task| task.is_polled);
        let has_suspended = threads.iter().any(|&id| task(id).is_some_and(|task| !task.is_polled));
        let channels = || edges.iter().filter_map(WaitEdge::of_channel);
        let advice = match threads.len() {
            1 if channels().any(|channel| !channel.is_for_room) => Advice::DropOwnSender,
            _ if channels().any(|channel| channel.is_for_room) => Advice::SplitEnds,
            _ if channels().next().is_some() => Advice::SendFirst,
            _ if is_futurelock => Advice::PollOrDrop,
            _ if has_worker || is_blocked_task => Advice::NoThreadLocksOverAwait,
            _ if has_queue => Advice::NoNestedReads,
            _ if has_once => Advice::NoWaitsInOnce,
            _ if has_join => Advice::NoLocksInJoin,
            _ if of_locks().any(|edge| edge.wait.is_relock) => Advice::NoLocksInWait,
            1 if !is_refused => Advice::ReleaseBeforeCall,
            _ => Advice::OneOrder,
        };
        edges.truncate(EDGES_MAX);
        doubts.sort_unstable();
        doubts.dedup();
        premises.sort_unstable();
        premises.dedup();
        // A suspicion does not rest on it.
        premises.retain(|_| level > Confidence::Suspected);
        let evidence = Evidence::WaitCycle(WaitCycle {
            threads: threads.len(),
            for_ns: self.view.ago_ns(since_ns),
            edges,
            also_blocked: stuck.saturating_sub(threads.len()),
        });
        let kind = if is_futurelock { Kind::Futurelock } else { Kind::Deadlock };
        let mut finding = Finding::new(kind, level, evidence, advice);
        (finding.doubts, finding.premises) = (doubts, premises);
        finding.threads_hurt = stuck.max(threads.len());
        finding.since_ns = since_ns;
        if level == Confidence::Proven {
            // A task that is suspended can be dropped, and with it its guards. A thread cannot.
            let can_abort = has_suspended && !has_worker;
            finding.advice.push(if can_abort { Advice::AbortATask } else { Advice::EndTheProcess });
        }
        finding
    }

    /// The edge from a task that needs a worker to the task that the worker polls, if the cycle goes that way.
    fn worker_edge(&self, cycle: &[usize], thread: ThreadId, next: ThreadId) -> Option<WorkerFact> {
        let runtime = self.needed_workers(thread)?;
        let at = cycle.iter().position(|&node| node == thread)?;
        let leads_there = cycle[(at + 1) % cycle.len()] == self.workers(runtime);
        let BlockedRuntime { workers, polls } = &self.runtimes[runtime].1;
        let &(polled, worker) = polls.iter().find(|&&(task, _)| task == next).filter(|_| leads_there)?;
        Some(WorkerFact { task: thread, worker, polled, workers: *workers })
    }

    /// Whether a cycle goes through a future that its task leaves out: one that is first in line for a lock, or that
    /// holds one.
    fn is_futurelock(&self, edges: &[WaitEdge]) -> bool {
        edges.iter().filter_map(WaitEdge::of_lock).any(|edge| match &edge.blocker {
            Blocker::LeftOut(_) => true,
            Blocker::QueuedWriter(_) => false,
            Blocker::Holder(hold) => {
                let Some(task) = task_waits::task_of(&self.view.now.threads[hold.thread]) else {
                    return false;
                };
                let mut holds = task.holds.iter().filter(|own| own.lock == hold.lock);
                holds.any(|own| !task.is_polled && task.is_left_out(own.future))
            }
        })
    }

    /// Whether a cycle goes from a thread to the queue of a lock.
    fn leads_to_queue(&self, cycle: &[usize], thread: ThreadId, lock: LockId) -> bool {
        let at = cycle.iter().position(|&node| node == thread);
        at.is_some_and(|at| cycle[(at + 1) % cycle.len()] == self.queue(lock))
    }
}

/// The holds on a lock that are certain and lasted throughout.
fn steady_holds(lock: &Lock) -> impl Iterator<Item = &Hold> {
    lock.holders.iter().filter(|hold| hold.state == HoldState::Held && hold.is_steady)
}

fn grade_join(join: &Join) -> Grade {
    if join.is_timed { (Confidence::Potential, Some(Doubt::TimedWait)) } else { CERTAIN }
}

fn has_begun(view: &View<'_>, wait: &Wait) -> bool {
    view.ago_ns(wait.since_ns).is_some_and(|waited_ns| waited_ns >= BEGUN_NS)
}

#[cfg(test)]
#[path = "deadlock_tests.rs"]
mod tests;
