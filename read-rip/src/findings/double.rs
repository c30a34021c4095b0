//! Double locks: a lock taken again by the thread that has it.
//!
//! # Question
//!
//! Did a thread take a lock that it had already, and that cannot be taken twice?
//!
//! # Method
//!
//! A table's entry counts how often its lock was taken again; in the history, two acquisitions have no release
//! between them. For locks in wrappers that is proven; a lock that is marked by hand may be recursive, and its marks do
//! not say so: suspected. A lock that is shared again is fine, and so is one that can be taken again. A thread that
//! still waits for a lock which it has is a deadlock.
//!
//! # Blind spots
//!
//! A lock that another thread releases looks like one that was not released: such locks are left out where
//! that was seen.
//!
//! # Example output
//!
//! ```text
//! suspected double-lock: worker[12] took QUEUE again while it had it
//!     worker[12] took it at drain queue.rs:70, and had it already, taken at fill queue.rs:40
//! ```

use std::collections::HashSet;

use super::history::{self, is_acquisition};
use super::{Analysis, Confidence, Finding, Part, View, locks_of, parts};
use crate::locations::LocationId;
use crate::locks::{HoldState, LockId, ThreadId};

/// See the file's description.
pub(super) struct Double;

const KIND: &str = "double-lock";

impl Analysis for Double {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let handed_over = history::handed_over(model);
        let deadlocked = locks_of(found, &["deadlock"]);
        let is_fine = |lock: LockId| {
            model.locks[lock].nature.is_reentrant || handed_over.contains(&lock) || deadlocked.contains(&lock)
        };
        let mut told: HashSet<(ThreadId, LockId)> = HashSet::new();
        let mut add = |thread: ThreadId, lock: LockId, again: Option<LocationId>, location: LocationId| {
            if !told.insert((thread, lock)) {
                return;
            }
            let summary = parts![Part::Thread(thread), " took ", Part::Lock(lock), " again while it had it"];
            let mut line = parts![Part::Thread(thread)];
            match again {
                Some(again) => {
                    line.extend(parts![" took it at ", Part::Location(again), ", and had it already, "])
                }
                None => line.push(" has it more than once, first ".into()),
            }
            line.extend(parts!["taken at ", Part::Location(location)]);
            let mut finding = Finding::new(KIND, Confidence::Suspected, summary, vec![line]);
            finding.doubt = Some(if model.locks[lock].nature.is_wrapped {
                // Who really waits for a lock that it has is in a deadlock, which is another finding.
                "a guard may have been forgotten and the lock have ended, or a signal handler have tried it"
                    .into()
            } else {
                "the lock is marked by hand: it may be recursive, or a release may have no mark".into()
            });
            finding.advice =
                "release the lock before the call that takes it again, or use a lock that can be taken \
                              again and say so in its marks"
                    .into();
            found.push(finding);
        };
        for (id, thread) in model.threads.iter().enumerate() {
            for hold in &thread.holds {
                if hold.recursion > 0
                    && !hold.is_shared
                    && hold.state == HoldState::Held
                    && !is_fine(hold.lock)
                {
                    add(id, hold.lock, None, hold.location);
                }
            }
            history::replay(thread, |step, held| {
                let Some(lock) = step.lock.filter(|&lock| is_acquisition(step) && !is_fine(lock)) else {
                    return;
                };
                let before = held.iter().find(|held| held.lock == lock && !held.is_lent && !held.is_older);
                if let Some(before) = before.filter(|before| !(before.is_shared || step.is_shared)) {
                    add(id, lock, Some(step.location), before.location);
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.thread("worker");
        scene.thread("other");
        scene.lock("QUEUE");
        scene
    }

    #[test]
    fn a_lock_taken_twice_is_told_once() {
        let mut scene = scene();
        scene.nests(0, &[0, 0]);
        scene.nests(0, &[0, 0]);
        let found = scene.look(&Double);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        scene.by_hand(0);
        assert_eq!(scene.look(&Double)[0].confidence, Confidence::Suspected);
    }

    #[test]
    fn the_table_counts_too() {
        let mut scene = scene();
        scene.holds_with(0, 0, |hold| hold.recursion = 2);
        assert_eq!(scene.look(&Double).len(), 1);
    }

    #[test]
    fn recursive_locks_and_readers_may_take_a_lock_again() {
        let mut recursive = scene();
        recursive.nests(0, &[0, 0]);
        recursive.model.locks[0].nature.is_reentrant = true;
        assert!(recursive.look(&Double).is_empty());
        let mut readers = scene();
        readers.nests(0, &[0, 0]);
        readers.model.threads[0].steps.iter_mut().for_each(|step| step.is_shared = true);
        readers.holds_with(0, 0, |hold| (hold.recursion, hold.is_shared) = (1, true));
        assert!(readers.look(&Double).is_empty());
    }

    #[test]
    fn a_lock_handed_over_is_released_by_another() {
        let mut scene = scene();
        for _ in 0..3 {
            scene.step(0, crate::locks::StepKind::AcquireBegin, 0);
            scene.step(1, crate::locks::StepKind::Released, 0);
        }
        assert!(scene.look(&Double).is_empty());
    }

    #[test]
    fn one_after_the_other_is_how_it_should_be() {
        let mut scene = scene();
        (0..20).for_each(|_| scene.nests(0, &[0]));
        assert!(scene.look(&Double).is_empty());
    }
}
