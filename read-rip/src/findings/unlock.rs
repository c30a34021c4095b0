//! Unlocks without a lock.
//!
//! # Question
//!
//! Did a thread release a lock that nobody had?
//!
//! # Method
//!
//! A release by a thread that did not have the lock: its whole history is known and has no acquisition before it, or
//! it released the lock before and has not taken it since. If any other thread is known to have had the lock, it may
//! have handed it over, which some locks allow: that is no finding. Locks that only their owner's guard can release are
//! left out. More than suspected it never is: what happened before recording began, or is not marked, is not known.
//!
//! # Blind spots
//!
//! A thread that takes a lock and does not mark it makes the release look wrong.
//!
//! # Example output
//!
//! ```text
//! suspected unlock-without-lock: worker[12] released QUEUE, and no acquisition of it is recorded
//!     worker[12] released it at drain queue.rs:70, and had not taken it
//! ```

use std::collections::{HashMap, HashSet};

use super::history::is_acquisition;
use super::{Analysis, Confidence, Finding, Part, View, parts};
use crate::locks::{LockId, StepKind, ThreadId};

/// See the file's description.
pub(super) struct Unlock;

const KIND: &str = "unlock-without-lock";

impl Analysis for Unlock {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        // The threads that had each lock at any time; two are as many as matter.
        let mut had: HashMap<LockId, Vec<ThreadId>> = HashMap::new();
        let mut is_whole: HashMap<u32, bool> = HashMap::new();
        for (id, thread) in model.threads.iter().enumerate() {
            *is_whole.entry(thread.pid).or_insert(model.threads_refused == 0) &= thread.overwritten == 0;
            let steps = thread
                .steps
                .iter()
                .filter(|step| is_acquisition(step) || step.kind == StepKind::ConditionWoken);
            let taken = steps.filter_map(|step| step.lock).chain(thread.holds.iter().map(|hold| hold.lock));
            for lock in taken {
                let threads = had.entry(lock).or_default();
                if threads.len() < 2 && !threads.contains(&id) {
                    threads.push(id);
                }
            }
        }
        for (id, thread) in model.threads.iter().enumerate() {
            let mut taken: HashMap<LockId, u32> = HashMap::new();
            let mut told = HashSet::new();
            for step in &thread.steps {
                // Who has no guard cannot release: a history that says so has begun in the middle.
                let Some(lock) = step.lock.filter(|&lock| !model.locks[lock].nature.is_owned) else {
                    continue;
                };
                match step.kind {
                    StepKind::Acquired | StepKind::AcquireBegin => *taken.entry(lock).or_default() += 1,
                    StepKind::ConditionWait | StepKind::ConditionWoken => {
                        let times = taken.entry(lock).or_default();
                        *times = (*times).max(1);
                    }
                    StepKind::Released => match taken.get_mut(&lock) {
                        Some(times) if *times > 0 => *times -= 1,
                        // What was released first may have been taken in the part that is lost, or, in a child, by its
                        // parent before the fork.
                        None if thread.overwritten > 0 || thread.pid != model.pid => {
                            taken.insert(lock, 0);
                        }
                        // A lock that can be taken again may have been so, in the part that is lost.
                        _ if thread.overwritten > 0
                            && (model.locks[lock].nature.is_reentrant || step.is_shared) => {}
                        before => {
                            let is_alone =
                                had.get(&lock).is_none_or(|threads| threads.iter().all(|&other| other == id));
                            if !is_alone || !told.insert(lock) {
                                continue;
                            }
                            let why = if before.is_some() {
                                ", and had done so before"
                            } else {
                                ", and had not taken it"
                            };
                            let summary = parts![
                                Part::Thread(id),
                                " released ",
                                Part::Lock(lock),
                                ", and no acquisition of it is recorded"
                            ];
                            let line = parts![
                                Part::Thread(id),
                                " released it at ",
                                Part::Location(step.location),
                                why
                            ];
                            let is_whole =
                                is_whole.get(&thread.pid) == Some(&true) && model.slots_reused == 0;
                            let mut finding = Finding::new(KIND, Confidence::Suspected, summary, vec![line]);
                            finding.since_ns = step.time_ns;
                            finding.doubt = Some(if is_whole {
                                "it may have been taken where no mark is, or before recording began".into()
                            } else {
                                "histories are not whole: another thread may have taken it and handed it over"
                                    .into()
                            });
                            finding.advice =
                                "look for a second release on the same path, or a release on a path that \
                                              did not take the lock"
                                    .into();
                            found.push(finding);
                        }
                    },
                    _ => {}
                }
            }
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
    fn a_release_of_a_lock_that_nobody_had_is_suspected() {
        let mut never = scene();
        never.step(0, StepKind::Released, 0);
        assert_eq!(never.look(&Unlock)[0].confidence, Confidence::Suspected);
        let mut twice = scene();
        twice.nests(0, &[0]);
        twice.step(0, StepKind::Released, 0);
        twice.step(0, StepKind::Released, 0);
        let found = twice.look(&Unlock);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        twice.model.locks[0].nature.is_owned = true;
        assert!(twice.look(&Unlock).is_empty(), "without a guard nothing is released");
    }

    #[test]
    fn a_lock_handed_over_is_no_finding() {
        let mut scene = scene();
        scene.step(0, StepKind::AcquireBegin, 0);
        scene.step(1, StepKind::Released, 0);
        assert!(scene.look(&Unlock).is_empty());
        let mut held = self::scene();
        held.holds(0, 0);
        held.step(1, StepKind::Released, 0);
        assert!(held.look(&Unlock).is_empty());
    }

    #[test]
    fn what_was_overwritten_is_unknown() {
        let mut scene = scene();
        scene.step(0, StepKind::Released, 0);
        scene.model.threads[0].overwritten = 5;
        assert!(scene.look(&Unlock).is_empty(), "taken in the part that is lost");
        scene.step(0, StepKind::Released, 0);
        assert_eq!(scene.look(&Unlock)[0].confidence, Confidence::Suspected);
        scene.model.locks[0].nature.is_reentrant = true;
        assert!(scene.look(&Unlock).is_empty(), "taken twice in the part that is lost");
    }

    #[test]
    fn recursive_locks_conditions_and_tries_are_counted() {
        let mut scene = scene();
        scene.nests(0, &[0, 0]);
        scene.step(0, StepKind::AcquireBegin, 0).is_try = true;
        scene.step(0, StepKind::ConditionWait, 0);
        scene.step(0, StepKind::ConditionWoken, 0);
        scene.step(0, StepKind::Released, 0);
        assert!(scene.look(&Unlock).is_empty());
    }
}
