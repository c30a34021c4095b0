//! The threads, locks and locations that a finding mentions.
//!
//! It makes no text. Suppressions, the JSON output and later analyses ask what a finding is about.

use foldhash::HashSet;

use super::evidence::{
    Blocker, Evidence, FailedTries, HoldFact, JoinFact, LockEdge, OrderEdge, WaitEdge, WaitFact, Waiters,
};
use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId};

/// Threads, locks and locations, each once, in the order in which the text of the finding names them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mentions {
    /// The threads.
    pub threads: Vec<ThreadId>,
    /// The locks.
    pub locks: Vec<LockId>,
    /// The locations.
    pub locations: Vec<LocationId>,
}

impl Mentions {
    /// What this evidence mentions.
    pub(super) fn of(evidence: &Evidence) -> Mentions {
        let mut all = Mentions::default();
        all.add(evidence);
        for ids in [&mut all.threads, &mut all.locks, &mut all.locations] {
            let mut seen = HashSet::default();
            ids.retain(|&id| seen.insert(id));
        }
        all
    }

    fn add(&mut self, evidence: &Evidence) {
        match evidence {
            Evidence::WaitCycle(cycle) => cycle.edges.iter().for_each(|edge| self.wait_edge(edge)),
            Evidence::DeadHolder(holder) => {
                self.hold(&holder.hold);
                self.waiters(&holder.waiters);
            }
            Evidence::Orphan(orphan) => {
                self.locks.push(orphan.lock);
                self.waiters(&orphan.waiters);
                orphan.parent.iter().for_each(|hold| self.hold(hold));
            }
            Evidence::DestroyedWhileHeld(destroyed) => self.hold(&destroyed.hold),
            Evidence::RefusedCall(call) => {
                self.threads.extend(call.thread);
                self.locks.push(call.lock);
                self.locations.push(call.location);
            }
            Evidence::StrayRelease(release) => self.one(release.thread, release.lock, [release.location]),
            Evidence::SecondAcquisition(second) => {
                self.one(second.thread, second.lock, second.second.into_iter().chain([second.first]));
            }
            Evidence::OrderCycle(cycle) => cycle.edges.iter().for_each(|edge| self.order_edge(edge)),
            Evidence::NestedReads(reads) => {
                self.one(reads.thread, reads.lock, [reads.second, reads.first]);
                self.passed(reads.writer, [reads.written]);
            }
            Evidence::MutualFailure(failure) => failure.tries.iter().for_each(|tries| self.tries(tries)),
            Evidence::BusyLoops(loops) => {
                loops.loops.iter().for_each(|one| self.passed(one.thread, one.last));
            }
            Evidence::Standstill(standstill) => {
                self.locks.push(standstill.lock);
                if let Some(holder) = &standstill.holder {
                    self.hold(&holder.hold);
                    self.locations.extend(holder.last);
                    if let Some(sleep) = &holder.sleep {
                        self.one(holder.hold.thread, sleep.lock, [sleep.location]);
                    }
                    holder.join.iter().for_each(|join| self.join(join));
                }
                self.waiters(&standstill.waiters);
            }
            Evidence::Stall(stall) => {
                stall.first.iter().for_each(|fact| self.passed(fact.thread, fact.location));
            }
            Evidence::Abandoned(abandoned) => {
                abandoned.first.iter().for_each(|one| self.one(one.thread, one.lock, [one.location]));
            }
            Evidence::Unheard(unheard) => {
                self.one(unheard.first.thread, unheard.first.lock, [unheard.first.location]);
                self.passed(unheard.signaller, [unheard.signalled_at]);
            }
            Evidence::BusyRuntime(busy) => {
                for poll in &busy.polls {
                    self.passed(poll.task, poll.place());
                    self.threads.extend(poll.thread);
                }
                self.threads.extend(busy.ready.first.iter().map(|ready| ready.task));
            }
            Evidence::Unpolled(unpolled) => {
                self.threads.extend(unpolled.ready.first.iter().map(|ready| ready.task));
                self.threads.extend(unpolled.outer);
            }
            Evidence::NeverWoken(sleepers) => {
                for one in &sleepers.first {
                    self.passed(one.task, one.suspended.location);
                    self.locks.push(one.lock);
                }
            }
            Evidence::FullChannel(channel) => {
                channel.first.iter().for_each(|one| self.one(one.thread, one.lock, [one.location]));
            }
            Evidence::Queue(queue) => {
                self.locks.push(queue.lock);
                if let Some(holder) = &queue.holder {
                    self.hold(&holder.hold);
                    self.locations.extend(holder.last);
                }
                self.waiters(&queue.waiters);
            }
            Evidence::IdleHolder(holder) => {
                self.hold(&holder.hold);
                self.locations.extend(holder.last);
                self.waiters(&holder.waiters);
            }
            Evidence::Overtaken(overtaken) => {
                self.locks.push(overtaken.lock);
                overtaken.first.iter().for_each(|one| self.wait(&one.wait));
            }
            Evidence::Contended(contended) => {
                self.locks.push(contended.lock);
                contended.holder.iter().for_each(|hold| self.hold(hold));
                self.waiters(&contended.waiters);
            }
            Evidence::CrowdedLine(line) => {
                self.passed(line.example, line.last);
                for holder in &line.first_holders {
                    self.passed(holder.thread, [holder.location].into_iter().chain(holder.last));
                }
            }
        }
    }

    fn wait_edge(&mut self, edge: &WaitEdge) {
        match edge {
            WaitEdge::Lock(LockEdge { wait, blocker }) => {
                self.wait(wait);
                match blocker {
                    Blocker::Holder(hold) => self.hold(hold),
                    Blocker::QueuedWriter(writer) => self.threads.push(*writer),
                    Blocker::LeftOut(wait) => self.wait(wait),
                }
            }
            WaitEdge::Channel { channel } => {
                self.one(channel.thread, channel.lock, [channel.location]);
                self.threads.push(channel.peer);
            }
            WaitEdge::Join { join } => self.join(join),
            WaitEdge::Worker { worker } => {
                self.threads.extend([worker.task, worker.worker]);
                self.threads.extend(worker.polled);
            }
        }
    }

    fn join(&mut self, join: &JoinFact) {
        self.passed(join.thread, [join.location]);
        self.threads.push(join.joined);
    }

    fn order_edge(&mut self, edge: &OrderEdge) {
        self.one(edge.thread, edge.acquired.lock, [edge.acquired.location]);
        self.one(edge.thread, edge.held.lock, [edge.held.location]);
    }

    fn tries(&mut self, tries: &FailedTries) {
        self.one(tries.thread, tries.lock, [tries.location]);
        self.threads.extend(tries.other);
    }

    fn passed(&mut self, thread: ThreadId, locations: impl IntoIterator<Item = LocationId>) {
        self.threads.push(thread);
        self.locations.extend(locations);
    }

    fn one(&mut self, thread: ThreadId, lock: LockId, locations: impl IntoIterator<Item = LocationId>) {
        self.locks.push(lock);
        self.passed(thread, locations);
    }

    fn hold(&mut self, hold: &HoldFact) {
        self.one(hold.thread, hold.lock, hold.location);
    }

    fn wait(&mut self, wait: &WaitFact) {
        self.one(wait.thread, wait.lock, [wait.location]);
    }

    fn waiters(&mut self, waiters: &Waiters) {
        waiters.first.iter().for_each(|wait| self.wait(wait));
    }
}
