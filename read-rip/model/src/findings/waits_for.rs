//! Who waits for whom: the graph of waits, and how certain each of its edges is.
//!
//! `deadlock` describes it, and looks for cycles in it.

use read_rip_evidence::waits::Presumption;
use read_rip_ring::SequenceBits;

use super::deadlock::ChannelFact;
use super::graph::{Edge, Graph};
use super::history::HandedOver;
use super::pollers::{self, Blocked, Pollers};
use super::task_waits;
use super::view::Length;
use super::{Confidence, Doubt, View};
use crate::locks::{Hold, HoldState, Join, Lock, LockId, LockName, Ownership, TaskWait, ThreadId, Wait};
use crate::threads::ThreadState;

/// A wait that was marked this long ago has begun: the scheduler does not delay a thread for this long between a mark
/// and the call after it. Only conclusions about queues of writers depend on this.
const BEGUN_NS: u64 = 100_000_000;
/// A thread that recorded this many words may have an entry with the sequence of an earlier one.
pub(super) const LAP_WORDS: u64 = SequenceBits::PERIOD;

/// Who waits for whom, and how certain each part of that is.
pub(super) struct WaitsFor<'a> {
    pub(super) view: &'a View<'a>,
    handed_over: &'a HandedOver,
    /// One for each lock: computed once, because a lock can have thousands of readers.
    pub(super) locks: Vec<LockState>,
    /// Those that are all blocked although a task needs one of them, in an order of their own.
    pub(super) pollers: Vec<(Pollers, Blocked)>,
}

/// What is known of a lock's holders and waiters.
#[derive(Clone, Copy)]
pub(super) struct LockState {
    /// A thread held it exclusively throughout.
    is_exclusive: bool,
    /// A thread held it upgradable throughout.
    is_upgradable: bool,
    /// It has an exclusive holder and a second holder, which is impossible.
    is_contradictory: bool,
    /// A thread has waited for long to acquire it exclusively.
    has_queued_writer: bool,
    /// Nobody holds it, and a future that its task leaves out is first in line.
    pub(super) left_out: Option<Wait>,
}

/// How certain something is, and if it is not, why.
pub(super) type Grade = (Confidence, Option<Doubt>);

const CERTAIN: Grade = (Confidence::Proven, None);

impl<'a> WaitsFor<'a> {
    pub(super) fn new(view: &'a View<'a>) -> WaitsFor<'a> {
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
        WaitsFor { view, handed_over: view.handed_over(), locks, pollers: pollers::blocked(view) }
    }

    /// A thread's own hold on a lock.
    pub(super) fn own_hold(&self, thread: ThreadId, lock: LockId) -> Option<&Hold> {
        let mut holds = self.view.now.threads[thread].holds.iter();
        holds.find(|hold| hold.lock == lock && hold.state == HoldState::Held && hold.is_steady)
    }

    /// The node for all holders of a lock.
    pub(super) fn all(&self, lock: LockId) -> usize {
        self.view.now.threads.len() + lock
    }

    /// The node for the exclusive holder of a lock.
    pub(super) fn exclusive(&self, lock: LockId) -> usize {
        self.all(lock) + self.view.now.locks.len()
    }

    /// The node for the threads that wait to acquire a lock exclusively.
    pub(super) fn queue(&self, lock: LockId) -> usize {
        self.exclusive(lock) + self.view.now.locks.len()
    }

    /// The node for the upgradable holder of a lock.
    pub(super) fn upgradable(&self, lock: LockId) -> usize {
        self.queue(lock) + self.view.now.locks.len()
    }

    /// The node for threads that may poll a task, by their position in the list.
    pub(super) fn pollers(&self, at: usize) -> usize {
        self.upgradable(0) + self.view.now.locks.len() + at
    }

    /// The threads, by their position, without which a task that holds a lock does not go on.
    pub(super) fn needed_pollers(&self, task: ThreadId) -> Option<usize> {
        let needed = pollers::needed(self.view, task)?;
        self.pollers.iter().position(|(of, _)| *of == needed)
    }

    pub(super) fn grade_pollers(&self, at: usize) -> Grade {
        match self.pollers[at].1.is_certain {
            true => CERTAIN,
            false => (Confidence::Suspected, Some(Doubt::WorkerHandedOver)),
        }
    }

    /// The graph of all that is at least this certain.
    pub(super) fn graph(&self, level: Confidence) -> Graph {
        let model = self.view.now;
        let mut edges: Vec<Edge> = Vec::new();
        for thread in 0..model.threads.len() {
            if let Some(wait) = self.steady_wait(thread).filter(|wait| self.grade_wait(wait).0 >= level) {
                edges.extend(self.target(wait, level).map(|target| (thread, target)));
            }
            if let Some(at) = self.needed_pollers(thread).filter(|&at| self.grade_pollers(at).0 >= level) {
                edges.push((thread, self.pollers(at)));
            }
            if let Some(join) = self.steady_join(thread).filter(|join| self.grade_join(join).0 >= level) {
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
            if let Some(left_out) = self.locks[id].left_out.filter(|_| grade_left_out(lock).0 >= level) {
                edges.push((self.all(id), left_out.thread));
            }
            let counts = |hold: &&Hold| self.grade_hold(hold).0 >= level && !self.may_release_beside(hold);
            for hold in steady_holds(lock).filter(counts) {
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
        for (at, (_, blocked)) in self.pollers.iter().enumerate() {
            edges.extend(blocked.waits.iter().map(|&(waiting, _)| (self.pollers(at), waiting)));
        }
        Graph::new(model.threads.len() + 4 * model.locks.len() + self.pollers.len(), &edges)
    }

    /// The node that a wait is for.
    pub(super) fn target(&self, wait: &Wait, level: Confidence) -> Option<usize> {
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
    pub(super) fn steady_wait(&self, thread: ThreadId) -> Option<&Wait> {
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
    pub(super) fn is_same_lap(&self, thread: ThreadId) -> bool {
        self.view.now.threads[thread].advanced.is_none_or(|words| words < LAP_WORDS)
    }

    /// The wait of a thread for the end of another one, if it lasted throughout.
    pub(super) fn steady_join(&self, thread: ThreadId) -> Option<&Join> {
        self.view.join(thread).filter(|join| join.is_steady && self.is_same_lap(thread))
    }

    /// The wait of a thread for the lock of its condition, if that lock is not its own meanwhile.
    pub(super) fn relock(&self, thread: ThreadId) -> Option<&Wait> {
        let wait = self.view.relock(thread)?;
        self.own_hold(thread, wait.lock).is_none().then_some(wait)
    }

    /// The wait of a thread or task at a channel, if it lasted throughout, and only one other can end it.
    pub(super) fn channel_wait(&self, thread: ThreadId) -> Option<(ChannelFact, Grade)> {
        let of = &self.view.now.threads[thread];
        let is_there = of.state == ThreadState::Present && self.is_same_lap(thread);
        let (wait, side, peer) = of.waits_for_peer().filter(|_| is_there)?;
        if side.is_presumed && self.waits_for_requests(peer) {
            return None;
        }
        let channel = ChannelFact {
            thread,
            lock: wait.lock,
            location: wait.location,
            for_ns: self.view.ago_ns(wait.since_ns),
            peer,
            is_for_room: side.receives,
            is_for_answer: side.is_presumed,
        };
        // A receiver is used through a unique reference, a sender through a shared one.
        let is_alone = self.grade_wakers(thread, wait.is_of_future) == CERTAIN;
        let is_likely = side.receives && is_alone;
        let confidence = if is_likely { Confidence::Potential } else { Confidence::Suspected };
        let doubt = if side.is_presumed { Doubt::AnswererPresumed } else { Doubt::EndMayMove };
        Some((channel, (confidence, Some(doubt))))
    }

    /// Whether a thread or task waits for messages, and not for an answer: it has no request in hand, or has put it
    /// aside.
    fn waits_for_requests(&self, thread: ThreadId) -> bool {
        let own = self.view.now.threads[thread].waits_for_peer();
        own.is_some_and(|(_, side, _)| !side.receives && !side.is_presumed)
    }

    pub(super) fn grade_wait(&self, wait: &Wait) -> Grade {
        if wait.is_timed {
            return (Confidence::Potential, Some(Doubt::TimedWait));
        }
        let of_wakers = self.grade_wakers(wait.thread, wait.is_of_future);
        if of_wakers != CERTAIN {
            return of_wakers;
        }
        let lock = &self.view.now.locks[wait.lock];
        let nature = &lock.nature;
        match self.own_hold(wait.thread, wait.lock) {
            // It sleeps in the lock that it owns.
            Some(own) if wait.is_seen && lock.is_owner_in_memory(own) => CERTAIN,
            Some(own) if !nature.is_wrapped && own.is_shared && !wait.is_shared => {
                (Confidence::Suspected, Some(Doubt::MaybeUpgradable))
            }
            Some(_) if !nature.is_wrapped => (Confidence::Suspected, Some(Doubt::MaybeRecursive)),
            // That it holds the lock itself is all that there is: somebody else may have the guard by now.
            Some(own) if !own.is_shared && nature.ownership == Ownership::Anyone => {
                (Confidence::Suspected, Some(Doubt::MaybeGate))
            }
            // A guard that borrows a static can be sent to another task.
            Some(own) if own.is_of_future && matches!(lock.name, LockName::Symbol(_)) => {
                (Confidence::Potential, Some(Doubt::MaybeSent))
            }
            _ => CERTAIN,
        }
    }

    /// Whether nothing but the end of its wait can let a thread or task go on.
    pub(super) fn grade_wakers(&self, thread: ThreadId, is_of_future: bool) -> Grade {
        match task_waits::has_other_wakers(&self.view.now.threads[thread], is_of_future) {
            false => CERTAIN,
            true => (Confidence::Potential, Some(Doubt::OtherBranch)),
        }
    }

    pub(super) fn grade_join(&self, join: &Join) -> Grade {
        match join.is_timed {
            true => (Confidence::Potential, Some(Doubt::TimedWait)),
            false => self.grade_wakers(join.thread, join.is_of_future),
        }
    }

    pub(super) fn grade_hold(&self, hold: &Hold) -> Grade {
        let lock = &self.view.now.locks[hold.lock];
        let nature = &lock.nature;
        let is_enforced = lock.ownership() == Ownership::Enforced;
        // The memory says who owns the lock. A record by wrappers also says whether the owner gives it away.
        let is_in_memory = lock.is_owner_in_memory(hold);
        let is_given_away = !is_enforced && self.handed_over.includes(hold);
        if self.locks[hold.lock].is_contradictory && !is_in_memory {
            (Confidence::Suspected, Some(Doubt::TwoHolders))
        } else if is_given_away && (nature.is_wrapped || !is_in_memory) {
            (Confidence::Suspected, Some(Doubt::HandedOver))
        } else if is_in_memory {
            grade_owner(lock)
        } else if !is_enforced && self.view.now.releases_unmatched > 0 {
            (Confidence::Suspected, Some(Doubt::UnmatchedReleases))
        } else if !nature.is_wrapped {
            (Confidence::Potential, Some(Doubt::MarkedByHand))
        } else if nature.ownership == Ownership::Anyone {
            // Whoever takes a permit and waits for one more can get stuck, wherever the first one is now. But if a
            // guard was sent on, the thread holds nothing.
            let confidence = if hold.is_shared { Confidence::Potential } else { Confidence::Suspected };
            (confidence, Some(Doubt::MaybeSent))
        } else {
            CERTAIN
        }
    }

    /// Whether a future that holds a lock may go on, and release it, while another future of its task waits for that
    /// lock, as with `buffer_unordered`: the one that waits is polled by a combinator, which may poll the other one
    /// too. The two are not known to be one, and the wait is not long.
    fn may_release_beside(&self, hold: &Hold) -> bool {
        let thread = &self.view.now.threads[hold.thread];
        let Some(task) = task_waits::task_of(thread).filter(|_| hold.is_of_future) else { return false };
        let future = task.holds.iter().find(|own| own.lock == hold.lock).and_then(|own| own.future);
        let may_be_beside = |wait: &TaskWait| {
            let is_one = future.is_some() && wait.future.is_some() && !task.are_apart(future, wait.future);
            let is_long = self.view.length(wait.wait.since_ns, self.view.threshold_ns) == Length::Long;
            !wait.is_direct && wait.is_for_lock && wait.wait.lock == hold.lock && !is_one && !is_long
        };
        // Combinators poll what was woken, so none of the waits may be of the last poll.
        let is_polled = |wait: &&TaskWait| wait.is_polled != Some(false);
        let any_polled = task.waits.iter().any(|wait| is_polled(&wait));
        let mut waits = task.waits.iter().filter(|wait| is_polled(wait) || !any_polled);
        !task.is_left_out(future) && waits.any(may_be_beside)
    }

    /// Whether a reader that waits for a lock waits for the writers in its queue.
    pub(super) fn grade_queue(&self, wait: &Wait) -> Grade {
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
    pub(super) fn is_certainly_queued(&self, wait: &Wait) -> bool {
        let is_own = self.own_hold(wait.thread, wait.lock).is_some();
        let is_long = has_begun(self.view, wait) && self.locks[wait.lock].has_queued_writer;
        self.view.now.locks[wait.lock].nature.is_wrapped && (is_own || is_long)
    }
}

/// Whether the owner of a lock in memory is its owner.
pub(super) fn grade_owner(lock: &Lock) -> Grade {
    match lock.owner.and_then(|owner| owner.presumption) {
        Some(Presumption::InFunction) => (Confidence::Potential, Some(Doubt::OwnerPresumed)),
        Some(Presumption::HasAddress) => (Confidence::Suspected, Some(Doubt::HolderPresumed)),
        Some(Presumption::HasTaken) => (Confidence::Suspected, Some(Doubt::HolderHasTaken)),
        Some(Presumption::InBlock) => (Confidence::Suspected, Some(Doubt::HolderInBlock)),
        None if lock.owner.is_some_and(|owner| owner.may_be_elsewhere) => {
            (Confidence::Suspected, Some(Doubt::OwnerElsewhere))
        }
        None => CERTAIN,
    }
}

/// The holds on a lock that are certain and lasted throughout.
fn steady_holds(lock: &Lock) -> impl Iterator<Item = &Hold> {
    lock.holders.iter().filter(|hold| hold.state == HoldState::Held && hold.is_steady)
}

/// Whether a lock that nobody is known to hold is for the first in line.
pub(super) fn grade_left_out(lock: &Lock) -> Grade {
    if lock.is_held_where_recorded() {
        CERTAIN
    } else {
        (Confidence::Potential, Some(Doubt::HolderUnrecorded))
    }
}

fn has_begun(view: &View<'_>, wait: &Wait) -> bool {
    view.ago_ns(wait.since_ns).is_some_and(|waited_ns| waited_ns >= BEGUN_NS)
}
