//! What a finding is about: the threads, locks and locations that it mentions, and what happens at its source lines.
//!
//! Suppressions, the JSON output and later analyses ask for the mentions. The report shows the lines.

use foldhash::HashSet;

use super::facts::{Asleep, HoldFact, JoinFact, SleepFact, WaitFact, Waiters};
use super::finding::Basis;
use super::words::{Names, Words, shared};
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

/// What happens at a source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The line.
    pub location: LocationId,
    /// Whether a thread is stuck there, or does there what is wrong.
    pub is_main: bool,
    /// Who does what there.
    pub label: String,
}

/// Collects what a finding is about.
#[derive(Default)]
pub(super) struct About<'a> {
    pub(super) mentions: Mentions,
    /// `None` if nobody asks for roles.
    words: Option<Words<'a>>,
    roles: Vec<Role>,
}

impl Mentions {
    /// What this mentions.
    pub(super) fn of(basis: &dyn Basis) -> Mentions {
        let mut all = About::default();
        basis.about(&mut all);
        let mut all = all.mentions;
        for ids in [&mut all.threads, &mut all.locks, &mut all.locations] {
            let mut seen = HashSet::default();
            ids.retain(|&id| seen.insert(id));
        }
        all
    }
}

/// The roles of the threads of a finding about these locks.
pub(super) fn roles(basis: &dyn Basis, names: &dyn Names, locks: &[LockId]) -> Vec<Role> {
    let mut all = About { words: Some(Words::new(names, locks)), ..About::default() };
    basis.about(&mut all);
    all.roles
}

impl About<'_> {
    /// Mentions a thread, and locations of it.
    pub(super) fn thread(&mut self, thread: ThreadId, locations: impl IntoIterator<Item = LocationId>) {
        self.mentions.threads.push(thread);
        self.mentions.locations.extend(locations);
    }

    /// Mentions a lock.
    pub(super) fn lock(&mut self, lock: LockId) {
        self.mentions.locks.push(lock);
    }

    /// Mentions a thread, a lock, and locations of both.
    pub(super) fn thread_and_lock(
        &mut self,
        thread: ThreadId,
        lock: LockId,
        locations: impl IntoIterator<Item = LocationId>,
    ) {
        self.lock(lock);
        self.thread(thread, locations);
    }

    /// What happens where a thread is stuck, or what is wrong. It mentions nothing.
    pub(super) fn main(
        &mut self,
        at: impl Into<Option<LocationId>>,
        label: impl FnOnce(&Words<'_>) -> String,
    ) {
        self.role(true, at.into(), label);
    }

    /// What else happens. It mentions nothing.
    pub(super) fn other(
        &mut self,
        at: impl Into<Option<LocationId>>,
        label: impl FnOnce(&Words<'_>) -> String,
    ) {
        self.role(false, at.into(), label);
    }

    fn role(&mut self, is_main: bool, at: Option<LocationId>, label: impl FnOnce(&Words<'_>) -> String) {
        if let (Some(location), Some(words)) = (at, &self.words) {
            self.roles.push(Role { location, is_main, label: label(words) });
        }
    }

    pub(super) fn wait(&mut self, wait: &WaitFact) {
        self.thread_and_lock(wait.thread, wait.lock, [wait.location]);
        self.main(wait.location, |words| {
            let (thread, lock) = (words.thread(wait.thread), words.short_lock(wait.lock));
            match wait.is_relock {
                true => format!("{thread} waits on a condition here and needs {lock}"),
                false => format!("{thread} waits for {lock} here"),
            }
        });
    }

    /// Only the first one has a role: others wait at the same few lines.
    pub(super) fn waits<'w>(&mut self, waits: impl IntoIterator<Item = &'w WaitFact>) {
        for (at, wait) in waits.into_iter().enumerate() {
            match at {
                0 => self.wait(wait),
                _ => self.thread_and_lock(wait.thread, wait.lock, [wait.location]),
            }
        }
    }

    pub(super) fn waiters(&mut self, waiters: &Waiters) {
        self.waits(&waiters.first);
    }

    pub(super) fn hold(&mut self, hold: &HoldFact) {
        self.thread_and_lock(hold.thread, hold.lock, hold.location);
        self.other(hold.location, |words| {
            let (thread, lock) = (words.thread(hold.thread), words.short_lock(hold.lock));
            let holds = words.verbs(hold.lock).holds;
            format!("{thread} {holds} {lock}{} since here", shared(hold.is_shared))
        });
    }

    /// Mentions a thread that waits for the end of another one, and that one.
    pub(super) fn threads_of_join(&mut self, join: &JoinFact) {
        self.thread(join.thread, [join.location]);
        self.mentions.threads.push(join.joined);
    }

    pub(super) fn join(&mut self, join: &JoinFact) {
        self.threads_of_join(join);
        self.main(join.location, |words| {
            format!("{} waits for the end of {} here", words.thread(join.thread), words.thread(join.joined))
        });
    }

    /// Where a thread was last, which is a role if that line has none yet.
    pub(super) fn last(&mut self, thread: ThreadId, location: Option<LocationId>) {
        self.thread(thread, location);
        let location = location.filter(|&location| self.is_new(location));
        self.other(location, |words| format!("{} was last here", words.thread(thread)));
    }

    /// Threads that wait for the same at the same line are one role.
    pub(super) fn sleep(&mut self, one: &SleepFact) {
        self.thread_and_lock(one.thread, one.lock, [one.location]);
        let location = Some(one.location).filter(|&location| self.is_new(location));
        self.asleep(one.thread, one.what, one.lock, location);
    }

    /// A thread that waits there. It mentions nothing.
    pub(super) fn asleep(
        &mut self,
        thread: ThreadId,
        what: Asleep,
        lock: LockId,
        location: impl Into<Option<LocationId>>,
    ) {
        self.main(location, |words| {
            let lock = words.short_lock(lock);
            let waits = match what {
                Asleep::Lock | Asleep::Notification => format!("waits for {lock}"),
                Asleep::Condition => "waits on a condition".to_owned(),
                Asleep::Semaphore => format!("waits for a unit of {lock}"),
                Asleep::Barrier => format!("waits at the barrier {lock}"),
                Asleep::Message => format!("waits for a message, or for room for one, in {lock}"),
                Asleep::Wake => "waits to be woken".to_owned(),
                Asleep::Thread => "waits for the end of a thread".to_owned(),
            };
            format!("{} {waits} here", words.thread(thread))
        });
    }

    fn is_new(&self, location: LocationId) -> bool {
        self.roles.iter().all(|role| role.location != location)
    }
}
