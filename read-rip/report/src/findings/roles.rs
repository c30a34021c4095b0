//! What the threads of a finding do at its source lines, as labels. It shows no lines: `snippets` does.

use read_rip_model::findings::{
    Asleep, Blocker, Evidence, FailedTries, Finding, HoldFact, HolderSleep, JoinFact, NestedReads, OrderEdge,
    RefusedCall, SecondAcquisition, SleepFact, WaitEdge, WaitFact, Waiters,
};
use read_rip_model::locations::LocationId;
use read_rip_model::locks::{LockId, ThreadId};

use super::words::{Words, shared};
use crate::doing::doing;
use crate::names::LockNames;

/// What happens at a line.
pub(super) struct Role {
    pub(super) location: LocationId,
    /// Whether a thread is stuck there, or does there what is wrong.
    pub(super) is_main: bool,
    pub(super) label: String,
}

/// The roles of a finding, in the order of its text.
pub(super) fn roles(finding: &Finding, names: &LockNames<'_>) -> Vec<Role> {
    let mut roles = Roles { words: Words::new(names, &finding.mentions.locks), all: Vec::new() };
    roles.add_all(&finding.evidence);
    roles.all
}

struct Roles<'a> {
    words: Words<'a>,
    all: Vec<Role>,
}

impl Roles<'_> {
    fn add_all(&mut self, evidence: &Evidence) {
        match evidence {
            Evidence::WaitCycle(cycle) => cycle.edges.iter().for_each(|edge| self.wait_edge(edge)),
            Evidence::OrderCycle(cycle) => cycle.edges.iter().for_each(|edge| self.order_edge(edge)),
            Evidence::DeadHolder(holder) => {
                self.hold(&holder.hold);
                self.waiters(&holder.waiters);
            }
            Evidence::IdleHolder(holder) => {
                self.hold(&holder.hold);
                self.last(holder.hold.thread, holder.last);
                self.waiters(&holder.waiters);
            }
            Evidence::Orphan(orphan) => {
                self.waiters(&orphan.waiters);
                orphan.parent.iter().for_each(|hold| self.hold(hold));
            }
            Evidence::DestroyedWhileHeld(destroyed) => self.hold(&destroyed.hold),
            Evidence::RefusedCall(call) => self.refused_call(call),
            Evidence::StrayRelease(release) => {
                let (thread, lock) = (self.words.thread(release.thread), self.words.short_lock(release.lock));
                self.main(release.location, format!("{thread} releases {lock} here"));
            }
            Evidence::SecondAcquisition(second) => self.second_acquisition(second),
            Evidence::NestedReads(reads) => self.nested_reads(reads),
            Evidence::MutualFailure(failure) => failure.tries.iter().for_each(|tries| self.tries(tries)),
            Evidence::BusyLoops(loops) => {
                loops.loops.iter().for_each(|one| self.last(one.thread, one.last));
            }
            Evidence::Standstill(standstill) => {
                if let Some(holder) = &standstill.holder {
                    self.hold(&holder.hold);
                    match (&holder.sleep, &holder.join) {
                        (Some(sleep), _) => self.holder_sleep(holder.hold.thread, sleep),
                        (None, Some(join)) => self.holder_join(join),
                        (None, None) => self.last(holder.hold.thread, holder.last),
                    }
                }
                self.waiters(&standstill.waiters);
            }
            Evidence::Stall(stall) => {
                for fact in &stall.first {
                    let thread = self.words.thread(fact.thread);
                    let label = format!("{thread} {} here", doing(fact.doing, 1));
                    fact.location.iter().for_each(|&location| self.main(location, label.clone()));
                }
            }
            Evidence::Abandoned(abandoned) => abandoned.first.iter().for_each(|one| self.sleep(one)),
            Evidence::Unheard(unheard) => {
                self.sleep(&unheard.first);
                let thread = self.words.thread(unheard.signaller);
                self.other(unheard.signalled_at, format!("{thread} signals it here, and nobody waits"));
            }
            Evidence::BusyRuntime(busy) => {
                for poll in &busy.polls {
                    let task = self.words.thread(poll.task);
                    poll.location
                        .iter()
                        .for_each(|&at| self.main(at, format!("{task} was last here, in its poll")));
                    poll.made_at.iter().for_each(|&at| self.main(at, format!("{task} was made here")));
                }
            }
            Evidence::Unpolled(_) => {}
            Evidence::NeverWoken(sleepers) => {
                for one in &sleepers.first {
                    let task = self.words.thread(one.task);
                    let label = format!("{task} was last here, and nobody can wake it");
                    one.suspended.location.iter().for_each(|&at| self.main(at, label.clone()));
                }
            }
            Evidence::FullChannel(channel) => {
                for one in &channel.first {
                    let (task, lock) = (self.words.thread(one.thread), self.words.short_lock(one.lock));
                    self.main(one.location, format!("{task} waits for room in {lock} here"));
                }
            }
            Evidence::Queue(queue) => {
                queue.holder.iter().for_each(|holder| self.hold(&holder.hold));
                self.waiters(&queue.waiters);
            }
            Evidence::Overtaken(overtaken) => {
                overtaken.first.iter().take(1).for_each(|one| self.wait(&one.wait));
            }
            Evidence::Contended(contended) => {
                contended.holder.iter().for_each(|hold| self.hold(hold));
                self.waiters(&contended.waiters);
            }
            Evidence::CrowdedLine(line) => {
                if let Some(location) = line.last {
                    let thread = self.words.thread(line.example);
                    self.main(location, format!("{thread} was last here, in front of the lock"));
                }
                for holder in &line.first_holders {
                    let thread = self.words.thread(holder.thread);
                    self.other(holder.location, format!("{thread} seems to hold a lock since here"));
                }
            }
        }
    }

    fn main(&mut self, location: LocationId, label: String) {
        self.add(Role { location, is_main: true, label });
    }

    fn other(&mut self, location: LocationId, label: String) {
        self.add(Role { location, is_main: false, label });
    }

    fn add(&mut self, role: Role) {
        self.all.push(role);
    }

    fn wait_edge(&mut self, edge: &WaitEdge) {
        match edge {
            WaitEdge::Lock(edge) => {
                self.wait(&edge.wait);
                match &edge.blocker {
                    Blocker::Holder(hold) => self.hold(hold),
                    Blocker::LeftOut(first) => {
                        let label = format!(
                            "another future of {} is first in line here",
                            self.words.thread(first.thread)
                        );
                        self.main(first.location, label);
                    }
                    Blocker::QueuedWriter(_) => {}
                }
            }
            WaitEdge::Channel { channel } => {
                let (thread, lock) = (self.words.thread(channel.thread), self.words.short_lock(channel.lock));
                let what = if channel.is_for_room { "room in" } else { "a message of" };
                self.main(channel.location, format!("{thread} waits for {what} {lock} here"));
            }
            // It has no line of its own: the next edge has that of the poll.
            WaitEdge::Worker { .. } => {}
            WaitEdge::Join { join } => {
                let (thread, joined) = (self.words.thread(join.thread), self.words.thread(join.joined));
                self.main(join.location, format!("{thread} waits for the end of {joined} here"));
            }
        }
    }

    fn order_edge(&mut self, edge: &OrderEdge) {
        let thread = self.words.thread(edge.thread);
        let (held, acquired) =
            (self.words.short_lock(edge.held.lock), self.words.short_lock(edge.acquired.lock));
        self.other(edge.held.location, format!("{thread} acquires {held} here"));
        self.main(edge.acquired.location, format!("{thread} acquires {acquired} here"));
    }

    fn wait(&mut self, wait: &WaitFact) {
        let (thread, lock) = (self.words.thread(wait.thread), self.words.short_lock(wait.lock));
        let label = match wait.is_relock {
            true => format!("{thread} waits on a condition here and needs {lock}"),
            false => format!("{thread} waits for {lock} here"),
        };
        self.main(wait.location, label);
    }

    fn hold(&mut self, hold: &HoldFact) {
        let Some(location) = hold.location else { return };
        let (thread, lock) = (self.words.thread(hold.thread), self.words.short_lock(hold.lock));
        let holds = self.words.verbs(hold.lock).holds;
        self.other(location, format!("{thread} {holds} {lock}{} since here", shared(hold.is_shared)));
    }

    /// The first one: others wait at the same few lines.
    fn waiters(&mut self, waiters: &Waiters) {
        waiters.first.iter().take(1).for_each(|wait| self.wait(wait));
    }

    fn last(&mut self, thread: ThreadId, location: Option<LocationId>) {
        if let Some(location) = location
            && self.all.iter().all(|role| role.location != location)
        {
            let thread = self.words.thread(thread);
            self.other(location, format!("{thread} was last here"));
        }
    }

    fn holder_sleep(&mut self, thread: ThreadId, sleep: &HolderSleep) {
        self.asleep(thread, sleep.what, sleep.lock, sleep.location);
    }

    fn holder_join(&mut self, join: &JoinFact) {
        let (thread, joined) = (self.words.thread(join.thread), self.words.thread(join.joined));
        self.main(join.location, format!("{thread} waits for the end of {joined} here"));
    }

    /// Threads that wait for the same at the same line are one role.
    fn sleep(&mut self, one: &SleepFact) {
        if self.all.iter().all(|role| role.location != one.location) {
            self.asleep(one.thread, one.what, one.lock, one.location);
        }
    }

    fn asleep(&mut self, thread: ThreadId, what: Asleep, lock: LockId, location: LocationId) {
        let (thread, lock) = (self.words.thread(thread), self.words.short_lock(lock));
        let label = match what {
            Asleep::Lock => format!("{thread} waits for {lock} here"),
            Asleep::Condition => format!("{thread} waits on a condition here"),
            Asleep::Semaphore => format!("{thread} waits for a unit of {lock} here"),
            Asleep::Barrier => format!("{thread} waits at the barrier {lock} here"),
            Asleep::Message => format!("{thread} waits for a message, or for room for one, in {lock} here"),
            Asleep::Wake => format!("{thread} waits to be woken here"),
            Asleep::Notification => format!("{thread} waits for {lock} here"),
            Asleep::Thread => format!("{thread} waits for the end of a thread here"),
        };
        self.main(location, label);
    }

    fn refused_call(&mut self, call: &RefusedCall) {
        let thread = match call.thread {
            Some(thread) => self.words.thread(thread),
            None => format!("thread {}", call.tid),
        };
        let lock = self.words.short_lock(call.lock);
        let label = match call.what.error() {
            Some(error) => format!("{thread} gets {error} for {lock} here"),
            None => format!("{thread} uses {lock} here"),
        };
        self.main(call.location, label);
    }

    fn second_acquisition(&mut self, second: &SecondAcquisition) {
        let (thread, lock) = (self.words.thread(second.thread), self.words.short_lock(second.lock));
        self.other(second.first, format!("{thread} acquires {lock} here"));
        if let Some(location) = second.second {
            self.main(location, "and again here".to_owned());
        }
    }

    fn nested_reads(&mut self, reads: &NestedReads) {
        let (thread, lock) = (self.words.thread(reads.thread), self.words.short_lock(reads.lock));
        let writer = self.words.thread(reads.writer);
        self.other(reads.first, format!("{thread} acquires {lock} shared here"));
        self.main(reads.second, "and again here".to_owned());
        self.other(reads.written, format!("{writer} acquires it exclusively here"));
    }

    fn tries(&mut self, tries: &FailedTries) {
        let (thread, lock) = (self.words.thread(tries.thread), self.words.short_lock(tries.lock));
        self.main(tries.location, format!("{thread} fails to acquire {lock} here"));
    }
}
