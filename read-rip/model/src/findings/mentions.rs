//! The threads, locks and locations that a finding mentions.
//!
//! It makes no text. Suppressions, the JSON output and later analyses ask what a finding is about.

use foldhash::HashSet;

use super::facts::{HoldFact, JoinFact, SleepFact, WaitFact, Waiters};
use super::finding::Basis;
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
    /// What this mentions.
    pub(super) fn of(basis: &dyn Basis) -> Mentions {
        let mut all = Mentions::default();
        basis.mentions(&mut all);
        for ids in [&mut all.threads, &mut all.locks, &mut all.locations] {
            let mut seen = HashSet::default();
            ids.retain(|&id| seen.insert(id));
        }
        all
    }

    pub(super) fn thread(&mut self, thread: ThreadId, locations: impl IntoIterator<Item = LocationId>) {
        self.threads.push(thread);
        self.locations.extend(locations);
    }

    pub(super) fn one(
        &mut self,
        thread: ThreadId,
        lock: LockId,
        locations: impl IntoIterator<Item = LocationId>,
    ) {
        self.locks.push(lock);
        self.thread(thread, locations);
    }

    pub(super) fn hold(&mut self, hold: &HoldFact) {
        self.one(hold.thread, hold.lock, hold.location);
    }

    pub(super) fn wait(&mut self, wait: &WaitFact) {
        self.one(wait.thread, wait.lock, [wait.location]);
    }

    pub(super) fn waiters(&mut self, waiters: &Waiters) {
        waiters.first.iter().for_each(|wait| self.wait(wait));
    }

    pub(super) fn join(&mut self, join: &JoinFact) {
        self.thread(join.thread, [join.location]);
        self.threads.push(join.joined);
    }

    pub(super) fn sleep(&mut self, sleep: &SleepFact) {
        self.one(sleep.thread, sleep.lock, [sleep.location]);
    }
}
