//! Unlocks without a lock.
//!
//! # Question
//!
//! Did a thread release a lock that no thread held?
//!
//! # Method
//!
//! A release by a thread that did not hold the lock: its whole history is known and has no acquisition before the
//! release, or it released the lock before and has not acquired it since. If any other thread is known to have held
//! the lock, that thread may have handed it over, which some locks allow: that is no finding. Locks that only their
//! owner's guard can release are left out, and so are wrapped locks whose permits and guards can be sent: a thread that
//! releases one has it from somewhere. The finding is never more than suspected: what happened before recording
//! began, or is not marked, is not known.
//!
//! # Blind spots
//!
//! A thread that acquires a lock without a mark makes the release look wrong.
//!
//! # Example output
//!
//! ```text
//! suspected unlock-without-lock: worker[12] released QUEUE, and no acquisition of it is recorded
//!     worker[12] released it at drain queue.rs:70 without having acquired it
//! suspected unlock-without-lock: worker[13] released QUEUE twice, and no acquisition in between is recorded
//!     worker[13] released it at drain queue.rs:74, after having released it before
//! ```

use foldhash::{HashMap, HashSet};
use serde::Serialize;

use super::history::{self, is_acquisition};
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locations::LocationId;
use crate::locks::{LockId, LockModel, Ownership, StepKind, ThreadId};

/// See the file's description.
pub(super) struct Unlock;

/// A release of a lock that the thread did not hold.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StrayRelease {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread released it.
    pub location: LocationId,
    /// The thread released the same lock before.
    pub released_before: bool,
}

impl Analysis for Unlock {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        if !view.handed_over().has_stray_releases() {
            return;
        }
        let owners = Owners::new(model);
        let mut seen: HashSet<(ThreadId, LockId)> = HashSet::default();
        history::stray_releases(model, |thread, stray| {
            let (lock, step) = (stray.lock, stray.step);
            // A permit, or a guard that can be sent: it existed, wherever it was acquired.
            let nature = &model.locks[lock].nature;
            let has_guard = nature.is_wrapped && nature.ownership == Ownership::Anyone;
            if has_guard || !owners.has_no_other(lock, thread) || !seen.insert((thread, lock)) {
                return;
            }
            let evidence = StrayRelease {
                thread,
                lock,
                location: step.location,
                released_before: stray.released_before,
            };
            let kind = Kind::UnlockWithoutLock;
            let mut finding = Finding::new(kind, Confidence::Suspected, evidence, Advice::CheckReleases);
            finding.since_ns = step.time_ns;
            let is_complete = owners.is_complete(model, model.threads[thread].pid);
            finding.doubts =
                vec![if is_complete { Doubt::UnmarkedAcquisition } else { Doubt::HistoryIncomplete }];
            found.push(finding);
        });
    }
}

/// Which threads ever held each lock, as far as known.
struct Owners {
    /// At most two threads for each lock: a third one would change no answer.
    of_lock: HashMap<LockId, Vec<ThreadId>>,
    /// For each process, whether all histories reach back to their beginning.
    is_complete: HashMap<u32, bool>,
}

impl Owners {
    fn new(model: &LockModel) -> Owners {
        let mut owners = Owners { of_lock: HashMap::default(), is_complete: HashMap::default() };
        for (id, thread) in model.threads.iter().enumerate() {
            let is_complete = owners.is_complete.entry(thread.pid).or_insert(model.threads_refused == 0);
            *is_complete &= thread.overwritten == 0;
            let shows_owner = |kind| kind == StepKind::ConditionWoken;
            let steps = thread.steps.iter().filter(|step| is_acquisition(step) || shows_owner(step.kind));
            let held = thread.holds.iter().map(|hold| hold.lock);
            for lock in steps.filter_map(|step| step.lock).chain(held) {
                let threads = owners.of_lock.entry(lock).or_default();
                if threads.len() < 2 && !threads.contains(&id) {
                    threads.push(id);
                }
            }
        }
        owners
    }

    /// Whether no thread but this one is known to have held a lock.
    fn has_no_other(&self, lock: LockId, thread: ThreadId) -> bool {
        self.of_lock.get(&lock).is_none_or(|threads| threads.iter().all(|&other| other == thread))
    }

    fn is_complete(&self, model: &LockModel, pid: u32) -> bool {
        self.is_complete.get(&pid) == Some(&true) && model.slots_reused == 0
    }
}

impl Basis for StrayRelease {
    fn about(&self, all: &mut About<'_>) {
        all.thread_and_lock(self.thread, self.lock, [self.location]);
        all.main(self.location, |words| {
            format!("{} releases {} here", words.thread(self.thread), words.short_lock(self.lock))
        });
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (thread, location) = (words.thread(self.thread), words.location(self.location));
        let lock = words.lock(self.lock);
        let (what, why) = match self.released_before {
            true => (
                format!("{lock} twice, and no acquisition in between is recorded"),
                ", after having released it before",
            ),
            false => (format!("{lock}, and no acquisition of it is recorded"), " without having acquired it"),
        };
        Paragraph {
            summary: format!("{thread} released {what}"),
            evidence: vec![format!("{thread} released it at {location}{why}")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    #[test]
    fn a_release_of_a_lock_that_no_thread_held_is_suspected() {
        let mut never = Scene::of_two_threads_and_a_lock();
        never.step(0, StepKind::Released, 0);
        assert_eq!(never.run(&Unlock)[0].confidence, Confidence::Suspected);
        let mut twice = Scene::of_two_threads_and_a_lock();
        twice.nests(0, &[0]);
        twice.step(0, StepKind::Released, 0);
        twice.step(0, StepKind::Released, 0);
        let found = twice.run(&Unlock);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        twice.model.locks[0].nature.ownership = Ownership::Enforced;
        assert!(twice.run(&Unlock).is_empty(), "without a guard nothing is released");
        let nature = &mut twice.model.locks[0].nature;
        (nature.ownership, nature.is_wrapped) = (Ownership::Anyone, true);
        assert!(twice.run(&Unlock).is_empty(), "two permits, or a guard that was sent here");
    }

    #[test]
    fn a_lock_handed_over_is_no_finding() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.step(0, StepKind::AcquireBegin, 0);
        scene.step(1, StepKind::Released, 0);
        assert!(scene.run(&Unlock).is_empty());
        let mut held = Scene::of_two_threads_and_a_lock();
        held.holds(0, 0);
        held.step(1, StepKind::Released, 0);
        assert!(held.run(&Unlock).is_empty());
    }

    #[test]
    fn what_was_overwritten_is_unknown() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.step(0, StepKind::Released, 0);
        scene.model.threads[0].overwritten = 5;
        assert!(scene.run(&Unlock).is_empty(), "acquired in the part that is lost");
        scene.step(0, StepKind::Released, 0);
        assert_eq!(scene.run(&Unlock)[0].confidence, Confidence::Suspected);
        scene.model.locks[0].nature.is_reentrant = true;
        assert!(scene.run(&Unlock).is_empty(), "acquired twice in the part that is lost");
    }

    #[test]
    fn recursive_locks_conditions_and_tries_are_counted() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.nests(0, &[0, 0]);
        scene.step(0, StepKind::AcquireBegin, 0).is_try = true;
        scene.step(0, StepKind::ConditionWait, 0);
        scene.step(0, StepKind::ConditionWoken, 0);
        scene.step(0, StepKind::Released, 0);
        assert!(scene.run(&Unlock).is_empty());
    }
}
