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
//! A task that waits for the answer to a request waits for the task that alone receives what it has sent since it made
//! the channel for the answer. That is suspected, because the request may have been in another message, or have been
//! handed on. It is no edge if that task waits for messages itself: then it has no request in hand.
//!
//! # Who can release a lock
//!
//! A hold is a certain edge if only the holder can release the lock: the standard library's locks, and recursive,
//! error-checking, robust and priority-inheriting mutexes. It is also one if only the holder *may* release the lock:
//! POSIX leaves it undefined what an unlock by another thread does, and the guards of `lock_api` say whether they can
//! be sent. The finding names that premise. It does not hold any more once a thread was seen to release another
//! thread's lock: that lock, and locks that are acquired where it was acquired or initialised where it was
//! initialised, are in suspected cycles only. A lock whose guard can be sent to another thread is in suspected cycles
//! only: another thread may have the guard, and be about to drop it. Whoever takes a permit and waits for one more can
//! get stuck, wherever the first one is by then, so cycles through permits are potential. A borrowed guard of a static
//! can be sent to another task too: if a task waits for such a lock and has acquired it itself, that is potential.
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
//!     saver[123] holds CURRENT for 12 s, acquired at transfer bank.rs:34
//!     saver[123] waits for SAVINGS at transfer bank.rs:37
//!     spender[124] holds SAVINGS for 12 s, acquired at transfer bank.rs:34
//!     spender[124] waits for CURRENT at transfer bank.rs:37
//!     14 more threads are blocked by them
//! ```

use foldhash::HashSet;
use read_rip_ring::{LockType, TaskKind};
use serde::Serialize;

use super::pollers::Pollers;
use super::waits_for::{WaitsFor, grade_left_out};
use super::words::{in_parentheses, limit, shared};
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, HoldFact, JoinFact, Kind, Paragraph, Premise,
    View, WaitFact, Words, task_waits,
};
use crate::locations::LocationId;
use crate::locks::{LockId, TaskFacts, ThreadId};
use crate::units::agree;

/// See the file's description.
pub(super) struct Deadlock;

/// After this many edges, the search for a shorter cycle ends.
const SEARCH_EDGES: usize = 1_000_000;
/// At most this many edges of a cycle are evidence.
const EDGES_MAX: usize = 50;
/// The text has no more of them, unless all is to be said.
const EDGES_SAID_MAX: usize = 8;

/// A cycle: its level, the component that it is in, and its nodes.
type Found = (Confidence, Vec<usize>, Vec<usize>);

/// Threads that wait for one another in a cycle. One edge: a thread that waits for a lock that it holds itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitCycle {
    /// How many threads are on the cycle.
    pub threads: usize,
    /// For how long all of them have waited; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// Each thread of the cycle and what blocks it, in the order of the cycle. A long cycle has its first ones only.
    pub edges: Vec<WaitEdge>,
    /// How many threads outside the cycle can never continue either.
    pub also_blocked: usize,
}

/// A thread of a cycle, and the next thread, which blocks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum WaitEdge {
    /// It waits for a lock.
    Lock(LockEdge),
    /// It waits for the end of the next thread.
    Join {
        /// The wait.
        join: JoinFact,
    },
    /// It waits for a message of the next one, or for room that the next one can make.
    Channel {
        /// The wait.
        channel: ChannelFact,
    },
    /// It is a task that no worker of its executor can poll.
    Worker {
        /// The edge.
        worker: WorkerFact,
    },
}

impl WaitEdge {
    /// The thread or task that waits.
    pub fn thread(&self) -> ThreadId {
        match self {
            WaitEdge::Lock(edge) => edge.wait.thread,
            WaitEdge::Join { join } => join.thread,
            WaitEdge::Channel { channel } => channel.thread,
            WaitEdge::Worker { worker } => worker.task,
        }
    }

    /// The wait for a lock, if it is one.
    pub fn of_lock(&self) -> Option<&LockEdge> {
        match self {
            WaitEdge::Lock(edge) => Some(edge),
            WaitEdge::Join { .. } | WaitEdge::Channel { .. } | WaitEdge::Worker { .. } => None,
        }
    }

    /// The hold that blocks it, if that is one.
    fn hold(&self) -> Option<&HoldFact> {
        match &self.of_lock()?.blocker {
            Blocker::Holder(hold) => Some(hold),
            Blocker::QueuedWriter(_) | Blocker::LeftOut(_) => None,
        }
    }

    /// The wait at a channel, if it is one.
    pub fn of_channel(&self) -> Option<&ChannelFact> {
        match self {
            WaitEdge::Channel { channel } => Some(channel),
            WaitEdge::Lock(_) | WaitEdge::Join { .. } | WaitEdge::Worker { .. } => None,
        }
    }
}

/// A thread of a cycle that waits for a lock, and the next thread, which blocks it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockEdge {
    /// The wait.
    pub wait: WaitFact,
    /// What blocks it.
    #[serde(flatten)]
    pub blocker: Blocker,
}

/// What blocks a wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// A thread holds the lock.
    Holder(HoldFact),
    /// This thread waits to acquire the lock exclusively, and later readers queue after it.
    QueuedWriter(ThreadId),
    /// Nobody holds the lock. The first in line is a future of this task, which the task does not poll.
    LeftOut(WaitFact),
}

/// A thread or task that waits at a channel for who uses its other side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChannelFact {
    /// The thread or task.
    pub thread: ThreadId,
    /// The channel.
    pub lock: LockId,
    /// Where it waits.
    pub location: LocationId,
    /// For how long; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The thread or task that alone has used the only end of the other side.
    pub peer: ThreadId,
    /// It waits for room, so that end receives. Otherwise it waits for a message, and that end sends.
    #[serde(rename = "for_room")]
    pub is_for_room: bool,
    /// It waits for the answer to a request. Nobody has used that end: the peer alone receives what it
    /// has sent since it made the channel.
    #[serde(rename = "for_answer", skip_serializing_if = "std::ops::Not::not")]
    pub is_for_answer: bool,
}

/// A task that has to be polled, and a thread that may poll it, but waits for a lock. All others that may do so, too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerFact {
    /// The task that has to be polled.
    pub task: ThreadId,
    /// The thread.
    pub worker: ThreadId,
    /// The task that it polls, from whose poll it does not return; `None` if it waits outside of recorded tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled: Option<ThreadId>,
    /// How many workers the executor has; `None` if no worker polls the task, but this thread alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
}

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

impl WaitsFor<'_> {
    /// Whether all threads that may poll a task of a component are stuck in it. One that returns polls whatever is
    /// there.
    fn has_all_pollers(&self, component: &[usize]) -> bool {
        let mut pollers = (0..self.pollers.len()).filter(|&at| component.contains(&self.pollers(at)));
        pollers.all(|at| {
            let waits = &self.pollers[at].1.waits;
            waits.iter().all(|(waiting, _)| component.binary_search(waiting).is_ok())
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
                if component.iter().any(|node| known.contains(node)) || !self.has_all_pollers(&component) {
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
                doubts.extend(self.grade_join(join).1);
                edges.push(WaitEdge::Join { join: self.view.join_fact(join) });
                continue;
            }
            let channel = self.channel_wait(thread).filter(|(channel, _)| channel.peer == next);
            if let Some((channel, grade)) = channel {
                let wait = self.view.now.threads[thread].sleep.as_deref();
                since.push(wait.and_then(|wait| wait.since_ns));
                doubts.extend(grade.1);
                doubts.extend(wait.and_then(|wait| self.grade_wakers(thread, wait.is_of_future).1));
                edges.push(WaitEdge::Channel { channel });
                continue;
            }
            if let Some((worker, doubt)) = self.worker_edge(cycle, thread, next) {
                premises.extend(worker.workers.map(|_| Premise::WorkersBlock));
                doubts.extend(doubt);
                edges.push(WaitEdge::Worker { worker });
                continue;
            }
            let Some(wait) = self.steady_wait(thread) else { continue };
            since.push(wait.since_ns);
            doubts.extend(self.grade_wait(wait).1);
            let is_queued = self.leads_to_queue(cycle, thread, wait.lock);
            if let Some(left_out) = &self.locks[wait.lock].left_out {
                doubts.extend(grade_left_out(&self.view.now.locks[wait.lock]).1);
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
        let is_of_library = of_locks().any(|edge| self.view.now.locks[edge.wait.lock].nature.is_of_library);
        let has_once = of_locks().any(|edge| lock_type(edge) == LockType::Once);
        let has_worker = edges.iter().any(|edge| matches!(edge, WaitEdge::Worker { .. }));
        let is_futurelock = self.is_futurelock(&edges);
        // A task that waits for itself by blocking its thread: another future of it holds the lock, or its own caller.
        let task = |id: ThreadId| self.view.now.threads[id].task.as_deref();
        let is_in_poll = |task: &TaskFacts| task.is_polled && task.kind != TaskKind::Coroutine;
        let is_blocked_task = threads.len() == 1 && task(threads[0]).is_some_and(is_in_poll);
        let has_suspended = threads.iter().any(|&id| task(id).is_some_and(|task| !task.is_polled));
        let is_dropped_alone = |task: &TaskFacts| !task.is_polled && task.is_part();
        let has_part = threads.iter().any(|&id| task(id).is_some_and(is_dropped_alone));
        premises.extend(has_part.then_some(Premise::NotDropped));
        premises.extend((has_suspended && !has_part).then_some(Premise::NotAborted));
        let channels = || edges.iter().filter_map(WaitEdge::of_channel);
        let advice = match threads.len() {
            _ if channels().any(|channel| channel.is_for_answer) => Advice::AnswerFirst,
            1 if channels().any(|channel| !channel.is_for_room) => Advice::DropOwnSender,
            _ if channels().any(|channel| channel.is_for_room) => Advice::SplitEnds,
            _ if channels().next().is_some() => Advice::SendFirst,
            _ if is_futurelock => Advice::PollOrDrop,
            _ if has_worker || is_blocked_task => Advice::NoThreadLocksOverAwait,
            _ if has_queue => Advice::NoNestedReads,
            _ if has_once => Advice::NoWaitsInOnce,
            _ if has_join && of_locks().next().is_none() => Advice::NoJoinCircle,
            _ if has_join => Advice::NoLocksInJoin,
            _ if of_locks().any(|edge| edge.wait.is_relock) => Advice::NoLocksInWait,
            1 if is_of_library => Advice::NoAllocationInHandler,
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
        let evidence = WaitCycle {
            threads: threads.len(),
            for_ns: self.view.ago_ns(since_ns),
            edges,
            also_blocked: stuck.saturating_sub(threads.len()),
        };
        let kind = if is_futurelock { Kind::Futurelock } else { Kind::Deadlock };
        let mut finding = Finding::new(kind, level, evidence, advice);
        (finding.doubts, finding.premises) = (doubts, premises);
        finding.threads_hurt = stuck.max(threads.len());
        finding.since_ns = since_ns;
        if level == Confidence::Proven {
            // A task that is suspended can be dropped, and with it its guards. A thread cannot. Whoever is called at
            // night can end a process, and not change the program.
            if has_suspended && !has_worker {
                finding.advice.push(Advice::AbortATask);
            } else if self.view.may_still_run() {
                finding.advice.insert(0, Advice::EndTheProcess);
            }
        }
        finding
    }

    /// The edge from a task that has to be polled to what blocks a thread that may poll it, if the cycle goes that way.
    fn worker_edge(
        &self,
        cycle: &[usize],
        thread: ThreadId,
        next: ThreadId,
    ) -> Option<(WorkerFact, Option<Doubt>)> {
        let pollers = self.needed_pollers(thread)?;
        let at = cycle.iter().position(|&node| node == thread)?;
        let leads_there = cycle[(at + 1) % cycle.len()] == self.pollers(pollers);
        let (of, blocked) = &self.pollers[pollers];
        let &(waiting, worker) = blocked.waits.iter().find(|wait| wait.0 == next).filter(|_| leads_there)?;
        let workers = matches!(of, Pollers::Workers(..)).then(|| of.count());
        let polled = (waiting != worker).then_some(waiting);
        Some((WorkerFact { task: thread, worker, polled, workers }, self.grade_pollers(pollers).1))
    }

    /// Whether a cycle goes through a future that its task leaves out: one that is first in line for a lock, or that
    /// holds one. A future that holds the lock for which another one of its task waits was left out since, if that was
    /// in one poll.
    fn is_futurelock(&self, edges: &[WaitEdge]) -> bool {
        edges.iter().filter_map(WaitEdge::of_lock).any(|edge| match &edge.blocker {
            Blocker::LeftOut(_) => true,
            Blocker::QueuedWriter(_) => false,
            Blocker::Holder(hold) => {
                let Some(task) = task_waits::task_of(&self.view.now.threads[hold.thread]) else {
                    return false;
                };
                let waits = || task.waits.iter().filter(|wait| wait.wait.lock == hold.lock);
                let is_own = edge.wait.thread == hold.thread;
                let mut holds = task.holds.iter().filter(|own| own.lock == hold.lock && !task.is_polled);
                holds.any(|own| {
                    let is_beside = || waits().any(|wait| task.are_apart(own.future, wait.future));
                    task.is_left_out(own.future) || is_own && is_beside()
                })
            }
        })
    }

    /// Whether a cycle goes from a thread to the queue of a lock.
    fn leads_to_queue(&self, cycle: &[usize], thread: ThreadId, lock: LockId) -> bool {
        let at = cycle.iter().position(|&node| node == thread);
        at.is_some_and(|at| cycle[(at + 1) % cycle.len()] == self.queue(lock))
    }
}

impl Basis for WaitCycle {
    fn about(&self, all: &mut About<'_>) {
        for edge in &self.edges {
            match edge {
                WaitEdge::Lock(LockEdge { wait, blocker }) => {
                    all.wait(wait);
                    match blocker {
                        Blocker::Holder(hold) => all.hold(hold),
                        Blocker::QueuedWriter(writer) => all.thread(*writer, None),
                        Blocker::LeftOut(first) => {
                            all.thread_and_lock(first.thread, first.lock, [first.location]);
                            all.main(first.location, |words| {
                                let thread = words.thread(first.thread);
                                format!("another future of {thread} is first in line here")
                            });
                        }
                    }
                }
                WaitEdge::Channel { channel } => {
                    all.thread_and_lock(channel.thread, channel.lock, [channel.location]);
                    all.thread(channel.peer, None);
                    all.main(channel.location, |words| {
                        let (thread, lock) = (words.thread(channel.thread), words.short_lock(channel.lock));
                        let what = if channel.is_for_room { "room in" } else { "a message of" };
                        format!("{thread} waits for {what} {lock} here")
                    });
                }
                WaitEdge::Join { join } => all.join(join),
                // It has no line of its own: the next edge has that of the poll.
                WaitEdge::Worker { worker } => {
                    let threads = [worker.task, worker.worker].into_iter().chain(worker.polled);
                    threads.for_each(|thread| all.thread(thread, None));
                }
            }
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let lasting = words.lasting(", for ", self.for_ns);
        let summary = match &self.edges[..] {
            [edge] if self.threads == 1 => format!("{}{lasting}", edge.alone(words)),
            edges => {
                let members: Vec<ThreadId> = edges.iter().map(WaitEdge::thread).collect();
                format!("{} wait for one another{lasting}", words.members(&members, self.threads))
            }
        };
        let said_max = if words.is_verbose() { EDGES_MAX } else { EDGES_SAID_MAX };
        let said = &self.edges[..self.edges.len().min(said_max)];
        let members: Vec<ThreadId> = said.iter().map(WaitEdge::thread).collect();
        let mut evidence = Vec::new();
        for edge in said {
            // What a thread holds stands before what it waits for.
            let held =
                self.edges.iter().filter_map(WaitEdge::hold).filter(|hold| hold.thread == edge.thread());
            evidence.extend(held.map(|hold| words.holds(hold)));
            evidence.push(edge.line(&members, words));
        }
        let unlisted = self.threads.saturating_sub(said.len());
        if unlisted > 0 {
            evidence.push(format!("and so on: {} close the cycle", words.more_threads(unlisted)));
        }
        if self.also_blocked > 0 {
            evidence.push(format!(
                "{} {} blocked by {}",
                words.more_threads(self.also_blocked),
                agree(self.also_blocked, "is", "are"),
                agree(self.threads, "it", "them")
            ));
        }
        Paragraph { summary, evidence }
    }
}

impl WaitEdge {
    /// A thread that waits for itself.
    fn alone(&self, words: &Words<'_>) -> String {
        let thread = words.thread(self.thread());
        match self {
            WaitEdge::Lock(LockEdge { blocker: Blocker::LeftOut(_), .. }) => {
                format!("{thread} waits for a lock that is promised to another of its futures")
            }
            WaitEdge::Lock(edge) if words.lock_of(edge.wait.lock).nature.is_refused => {
                format!("the kernel has refused a mutex to {thread}, which sleeps for good")
            }
            WaitEdge::Lock(edge) if words.is_once(edge.wait.lock) => {
                format!("{thread} waits for an initialisation that it runs itself")
            }
            WaitEdge::Lock(_) => format!("{thread} waits for a lock that it holds itself"),
            WaitEdge::Join { .. } => format!("{thread} waits for its own end"),
            WaitEdge::Channel { channel } if channel.is_for_room => {
                format!("{thread} waits for room that only it can make")
            }
            WaitEdge::Channel { .. } => {
                format!("{thread} waits for a message that only it can send")
            }
            WaitEdge::Worker { .. } => format!("{thread} waits for the worker that polls it"),
        }
    }

    /// What the thread waits for. These `members` of the cycle have lines that say what they hold.
    fn line(&self, members: &[ThreadId], words: &mut Words<'_>) -> String {
        match self {
            WaitEdge::Lock(edge) => edge.line(members, words),
            WaitEdge::Join { join } => words.join(join),
            WaitEdge::Channel { channel } => channel.line(words),
            WaitEdge::Worker { worker } => worker.line(words),
        }
    }
}

impl LockEdge {
    fn line(&self, members: &[ThreadId], words: &mut Words<'_>) -> String {
        let LockEdge { wait, blocker } = self;
        let (thread, location) = (words.thread(wait.thread), words.location(wait.location));
        if words.lock_of(wait.lock).nature.is_refused {
            let limit = if wait.is_timed { " until a time limit ends" } else { "" };
            return format!(
                "{thread} sleeps{limit} at {location}: to wait for the mutex, which has priority inheritance, would \
                 be a deadlock, or its owner has ended"
            );
        }
        let (lock, mode) = (words.lock(wait.lock), in_parentheses(wait.is_shared));
        let other = |id: ThreadId, own: &str| match id == wait.thread {
            true => own.to_owned(),
            false => words.thread(id),
        };
        let blocked_by = match blocker {
            Blocker::Holder(hold) if members.contains(&hold.thread) => String::new(),
            Blocker::Holder(hold) => {
                let (shared, held) = (shared(hold.is_shared), words.verbs(hold.lock).held);
                format!(", {held}{shared} by {}", words.thread(hold.thread))
            }
            Blocker::LeftOut(first) => {
                let is_certain = words.lock_of(wait.lock).is_held_where_recorded();
                let known = if is_certain { "holds" } else { "is known to hold" };
                format!(
                    ", which nobody {known}: the first in line is another future of {}, which waits at {}{}, and is \
                     not polled",
                    other(first.thread, "it"),
                    words.location(first.location),
                    words.lasting(" for ", first.for_ns)
                )
            }
            Blocker::QueuedWriter(writer) => {
                format!(", queued after {}, which waits to acquire it exclusively", words.thread(*writer))
            }
        };
        if wait.is_relock {
            return format!(
                "{thread} waits on a condition at {location} and needs {lock} to return{blocked_by}"
            );
        }
        let (limit, but) = (limit(wait.is_timed), words.contradiction(wait.thread));
        format!("{thread} waits for {lock}{mode} at {location}{limit}{blocked_by}{but}")
    }
}

impl ChannelFact {
    fn line(&self, words: &mut Words<'_>) -> String {
        let lock = words.lock(self.lock);
        let peer = match self.peer == self.thread {
            true => "it".to_owned(),
            false => words.thread(self.peer),
        };
        let (what, whose) = match () {
            () if self.is_for_answer => {
                ("the answer at", format!("{peer} received the request, it is presumed"))
            }
            () if self.is_for_room => ("room in", format!("only {peer} has received from it")),
            () => ("a message of", format!("it has one sender, which only {peer} has used")),
        };
        format!(
            "{} waits for {what} {lock} at {}{}: {whose}",
            words.thread(self.thread),
            words.location(self.location),
            words.lasting(", for ", self.for_ns)
        )
    }
}

impl WorkerFact {
    fn line(&self, words: &Words<'_>) -> String {
        let worker = words.thread(self.worker);
        let by = match self.workers {
            None => format!("{worker} polls it, which"),
            Some(1) => format!("a worker of its executor polls it, and the only worker, {worker},"),
            Some(all) => {
                format!("a worker of its executor polls it, and all {all} workers are stuck; one, {worker},")
            }
        };
        let why = match self.polled {
            Some(polled) => format!("does not return from the poll of {}", words.thread(polled)),
            None => "waits itself".to_owned(),
        };
        format!("{} goes on only if {by} {why}", words.thread(self.task))
    }
}

#[cfg(test)]
#[path = "deadlock_tests.rs"]
mod tests;
