//! What the threads of a finding do at its source lines, as labels. It shows no lines: the report does.

use super::facts::{Asleep, HoldFact, JoinFact, SleepFact, WaitFact, Waiters};
use super::words::{Words, shared};
use crate::locations::LocationId;
use crate::locks::{LockId, ThreadId};

/// What happens at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The line.
    pub location: LocationId,
    /// Whether a thread is stuck there, or does there what is wrong.
    pub is_main: bool,
    /// Who does what there.
    pub label: String,
}

/// The roles of a finding, in the order of its text.
pub(super) struct Roles<'a> {
    pub(super) words: Words<'a>,
    pub(super) all: Vec<Role>,
}

impl Roles<'_> {
    /// What a thread does where it is stuck, or what is wrong.
    pub(super) fn main(&mut self, location: LocationId, label: String) {
        self.all.push(Role { location, is_main: true, label });
    }

    /// Another role.
    pub(super) fn other(&mut self, location: LocationId, label: String) {
        self.all.push(Role { location, is_main: false, label });
    }

    pub(super) fn wait(&mut self, wait: &WaitFact) {
        let (thread, lock) = (self.words.thread(wait.thread), self.words.short_lock(wait.lock));
        let label = match wait.is_relock {
            true => format!("{thread} waits on a condition here and needs {lock}"),
            false => format!("{thread} waits for {lock} here"),
        };
        self.main(wait.location, label);
    }

    pub(super) fn hold(&mut self, hold: &HoldFact) {
        let Some(location) = hold.location else { return };
        let (thread, lock) = (self.words.thread(hold.thread), self.words.short_lock(hold.lock));
        let holds = self.words.verbs(hold.lock).holds;
        self.other(location, format!("{thread} {holds} {lock}{} since here", shared(hold.is_shared)));
    }

    /// The first one: others wait at the same few lines.
    pub(super) fn waiters(&mut self, waiters: &Waiters) {
        waiters.first.iter().take(1).for_each(|wait| self.wait(wait));
    }

    pub(super) fn join(&mut self, join: &JoinFact) {
        let (thread, joined) = (self.words.thread(join.thread), self.words.thread(join.joined));
        self.main(join.location, format!("{thread} waits for the end of {joined} here"));
    }

    /// Where a thread was last, if that line has no role yet.
    pub(super) fn last(&mut self, thread: ThreadId, location: Option<LocationId>) {
        if let Some(location) = location.filter(|&location| self.is_new(location)) {
            let thread = self.words.thread(thread);
            self.other(location, format!("{thread} was last here"));
        }
    }

    /// Threads that wait for the same at the same line are one role.
    pub(super) fn sleep(&mut self, one: &SleepFact) {
        if self.is_new(one.location) {
            self.asleep(one.thread, one.what, one.lock, one.location);
        }
    }

    pub(super) fn asleep(&mut self, thread: ThreadId, what: Asleep, lock: LockId, location: LocationId) {
        let (thread, lock) = (self.words.thread(thread), self.words.short_lock(lock));
        let label = match what {
            Asleep::Lock | Asleep::Notification => format!("{thread} waits for {lock} here"),
            Asleep::Condition => format!("{thread} waits on a condition here"),
            Asleep::Semaphore => format!("{thread} waits for a unit of {lock} here"),
            Asleep::Barrier => format!("{thread} waits at the barrier {lock} here"),
            Asleep::Message => format!("{thread} waits for a message, or for room for one, in {lock} here"),
            Asleep::Wake => format!("{thread} waits to be woken here"),
            Asleep::Thread => format!("{thread} waits for the end of a thread here"),
        };
        self.main(location, label);
    }

    fn is_new(&self, location: LocationId) -> bool {
        self.all.iter().all(|role| role.location != location)
    }
}
