//! Locks destroyed while they were held.
//!
//! # Question
//!
//! Which locks ended, their memory given back, while a thread still had them?
//!
//! # Method
//!
//! The recorder says so itself: a held-lock entry is marked when its lock is destroyed. (The event of that name is recorded
//! at every lock's end, held or not.)
//!
//! # Blind spots
//!
//! A lock whose destruction is not marked: one marked by hand, or memory that is freed without a destructor.
//!
//! # Example output
//!
//! ```text
//! proven destroyed-lock: SESSION was destroyed while worker[12] had it
//!     worker[12] took it at open session.rs:20
//! ```

use std::collections::HashSet;

use super::{Analysis, Confidence, Finding, Part, View, parts};
use crate::locations::LocationId;
use crate::locks::{HoldState, LockId, ThreadId};

/// See the file's description.
pub(super) struct Destroyed;

const KIND: &str = "destroyed-lock";

impl Analysis for Destroyed {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let mut seen: HashSet<(ThreadId, LockId)> = HashSet::new();
        let mut add = |thread: ThreadId, lock: LockId, location: LocationId, since_ns: Option<u64>| {
            if !seen.insert((thread, lock)) {
                return;
            }
            let summary = parts![Part::Lock(lock), " was destroyed while ", Part::Thread(thread), " had it"];
            let evidence = vec![parts![Part::Thread(thread), " took it at ", Part::Location(location)]];
            let is_wrapped = view.now.locks[lock].nature.is_wrapped;
            let confidence = if is_wrapped { Confidence::Proven } else { Confidence::Suspected };
            let mut finding = Finding::new(KIND, confidence, summary, evidence);
            finding.doubt = (!is_wrapped).then(|| {
                "the lock is marked by hand: it may have been released, and the mark not been reached".into()
            });
            finding.since_ns = since_ns;
            finding.advice =
                "keep the lock alive until all guards are gone; who waits for it or unlocks it now touches \
                              memory that may be something else"
                    .into();
            found.push(finding);
        };
        for lock in &view.now.locks {
            for hold in lock.holders.iter().chain(&lock.possible_holders) {
                if hold.state == HoldState::Destroyed {
                    add(hold.thread, hold.lock, hold.location, hold.since_ns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;
    use crate::locks::StepKind;

    #[test]
    fn a_lock_destroyed_while_held_is_told_once() {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("worker"), scene.lock("SESSION"));
        scene.holds_with(thread, lock, |hold| hold.state = HoldState::Destroyed);
        scene.step(thread, StepKind::Destroyed, lock);
        let found = scene.look(&Destroyed);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Proven));
    }

    #[test]
    fn a_lock_that_is_held_is_not_destroyed_nor_one_that_ended_while_nobody_had_it() {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("worker"), scene.lock("SESSION"));
        scene.holds(thread, lock);
        let ended = scene.lock("OLD");
        scene.step(thread, StepKind::Destroyed, ended);
        assert!(scene.look(&Destroyed).is_empty());
    }
}
