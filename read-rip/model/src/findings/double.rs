//! Double locks: a lock acquired again by the thread that holds it.
//!
//! # Question
//!
//! Did a thread acquire a lock that it already held, and that is not recursive?
//!
//! # Method
//!
//! There are two sources. An entry of a held-lock table counts how often its lock was acquired again. A history shows
//! two acquisitions without a release between them. Shared acquisitions of a lock that is held shared are left out, and
//! so are recursive locks. A lock that is marked by hand may be recursive without saying so. A thread that still waits
//! for a lock that it holds is a deadlock.
//!
//! # Blind spots
//!
//! A lock that another thread releases looks as if it was not released. Locks for which that was seen are left out, and
//! those whose guard can be sent to another thread, or that have several permits. Locks of futures are left out too: a
//! task waits in one future for what another one of its futures holds, and the record tells only tasks apart.
//!
//! # Example output
//!
//! ```text
//! suspected double-lock: worker[12] acquired QUEUE while already holding it
//!     worker[12] acquired it at drain queue.rs:70, after acquiring it at fill queue.rs:40
//! ```

use foldhash::HashSet;
use serde::Serialize;

use super::finding::locks_of;
use super::history::{self, is_acquisition};
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locations::LocationId;
use crate::locks::{HoldState, LockId, Ownership, ThreadId};

/// See the file's description.
pub(super) struct Double;

/// A lock acquired by the thread that already held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondAcquisition {
    /// The thread.
    pub thread: ThreadId,
    /// The lock.
    pub lock: LockId,
    /// Where the thread acquired it first.
    pub first: LocationId,
    /// Where the thread acquired it again; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<LocationId>,
}

impl Analysis for Double {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let handed_over = view.handed_over();
        let deadlocked = locks_of(found, &[Kind::Deadlock, Kind::Futurelock]);
        let is_fine = |lock: LockId| {
            let nature = &model.locks[lock].nature;
            // A guard that was sent away is no hold of this thread any more. Semaphores have several permits.
            let is_sent = nature.is_wrapped && nature.ownership == Ownership::Anyone;
            nature.is_reentrant
                || nature.is_of_futures
                || is_sent
                || handed_over.contains(lock)
                || deadlocked.contains(&lock)
        };
        let mut seen: HashSet<(ThreadId, LockId)> = HashSet::default();
        let mut add = |of: SecondAcquisition| {
            if !seen.insert((of.thread, of.lock)) {
                return;
            }
            // Never proven: a thread that really acquires such a lock blocks, which is a deadlock, not this finding.
            let is_wrapped = model.locks[of.lock].nature.is_wrapped;
            let kind = Kind::DoubleLock;
            let mut finding = Finding::new(kind, Confidence::Suspected, of, Advice::ReleaseOrRecursive);
            finding.doubts = vec![if is_wrapped { Doubt::ForgottenGuard } else { Doubt::MaybeRecursive }];
            found.push(finding);
        };
        for (id, thread) in model.threads.iter().enumerate() {
            for hold in &thread.holds {
                if hold.recursion > 0
                    && !hold.is_shared
                    && hold.state == HoldState::Held
                    && !is_fine(hold.lock)
                    && let Some(first) = hold.location
                {
                    add(SecondAcquisition { thread: id, lock: hold.lock, first, second: None });
                }
            }
            if !view.is_nesting(id) {
                continue;
            }
            history::replay(thread, |step, held| {
                let Some(lock) = step.lock.filter(|&lock| is_acquisition(step) && !is_fine(lock)) else {
                    return;
                };
                let before = held
                    .iter()
                    .find(|held| held.lock == lock && !held.is_in_condition_wait && !held.is_older);
                if let Some(before) = before.filter(|before| !(before.is_shared || step.is_shared)) {
                    let (first, second) = (before.location, Some(step.location));
                    add(SecondAcquisition { thread: id, lock, first, second });
                }
            });
        }
    }
}

impl Basis for SecondAcquisition {
    fn about(&self, all: &mut About<'_>) {
        all.thread_and_lock(self.thread, self.lock, self.second.into_iter().chain([self.first]));
        all.other(self.first, |words| {
            format!("{} acquires {} here", words.thread(self.thread), words.short_lock(self.lock))
        });
        all.main(self.second, |_| "and again here".to_owned());
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (thread, first) = (words.thread(self.thread), words.location(self.first));
        let how = match self.second {
            Some(location) => {
                let location = words.location(location);
                format!("{thread} acquired it at {location}, after acquiring it at {first}")
            }
            None => format!("{thread} holds it more than once, and acquired it first at {first}"),
        };
        let lock = words.lock(self.lock);
        Paragraph {
            summary: format!("{thread} acquired {lock} while already holding it"),
            evidence: vec![how],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    #[test]
    fn a_lock_acquired_twice_is_reported_once() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.nests(0, &[0, 0]);
        scene.nests(0, &[0, 0]);
        let found = scene.run(&Double);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        scene.by_hand(0);
        assert_eq!(scene.run(&Double)[0].confidence, Confidence::Suspected);
    }

    #[test]
    fn a_recursion_count_in_the_table_is_reported() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.holds_with(0, 0, |hold| hold.recursion = 2);
        assert_eq!(scene.run(&Double).len(), 1);
    }

    #[test]
    fn recursive_locks_and_readers_may_acquire_a_lock_again() {
        let mut recursive = Scene::of_two_threads_and_a_lock();
        recursive.nests(0, &[0, 0]);
        recursive.model.locks[0].nature.is_reentrant = true;
        assert!(recursive.run(&Double).is_empty());
        let mut readers = Scene::of_two_threads_and_a_lock();
        readers.nests(0, &[0, 0]);
        readers.steps(0).iter_mut().for_each(|step| step.is_shared = true);
        readers.holds_with(0, 0, |hold| (hold.recursion, hold.is_shared) = (1, true));
        assert!(readers.run(&Double).is_empty());
    }

    #[test]
    fn a_future_that_waits_for_another_one_of_its_task_is_no_finding() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.nests(0, &[0, 0]);
        scene.model.locks[0].nature.is_of_futures = true;
        assert!(scene.run(&Double).is_empty());
    }

    #[test]
    fn a_lock_handed_over_is_released_by_another() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        for _ in 0..3 {
            scene.step(0, crate::locks::StepKind::AcquireBegin, 0);
            scene.step(1, crate::locks::StepKind::Released, 0);
        }
        assert!(scene.run(&Double).is_empty());
    }

    #[test]
    fn one_acquisition_after_the_other_is_no_finding() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        (0..20).for_each(|_| scene.nests(0, &[0]));
        assert!(scene.run(&Double).is_empty());
    }
}
