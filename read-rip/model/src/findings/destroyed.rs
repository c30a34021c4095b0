//! Locks destroyed while they were held.
//!
//! # Question
//!
//! Which locks were destroyed, and their memory freed, while a thread still held them?
//!
//! # Method
//!
//! When a lock is destroyed, the recorder sets the state of its held-lock entries to *destroyed*. This analysis reads
//! that state. The recorder writes an event of the same name for every lock, held or not. With that event the finding
//! is proven. Without, it is potential: a single bit of damaged memory makes a waiting thread look like this.
//!
//! A mutex that is initialised while its own memory names a living thread as its owner is destroyed by that. The
//! interposer records both.
//!
//! # Blind spots
//!
//! A destruction without a mark is missed: of a lock marked by hand, or of memory freed without a destructor. So is the
//! initialisation of a spin lock, or of a readers-writer lock that readers hold: neither names its holder.
//!
//! # Example output
//!
//! ```text
//! proven destroyed-lock: SESSION was destroyed while worker[12] held it
//!     worker[12] acquired it at open session.rs:20
//! ```

use foldhash::HashSet;
use serde::Serialize;

use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, HoldFact, Kind, Paragraph, View, Words,
    history,
};
use crate::locks::{HoldState, LockId, LockModel, Step, StepKind, ThreadId};

/// See the file's description.
pub(super) struct Destroyed;

/// A lock that was destroyed while a thread held it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DestroyedWhileHeld {
    /// The hold.
    pub hold: HoldFact,
    /// A new lock was initialised in its place, and nothing else destroyed it.
    #[serde(rename = "initialised", skip_serializing_if = "std::ops::Not::not")]
    pub is_initialised: bool,
}

impl Analysis for Destroyed {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let mut seen: HashSet<(ThreadId, LockId)> = HashSet::default();
        let destroyed = history::destroyed(view.now);
        let initialised = initialised(view.now);
        let holds = view.now.locks.iter().flat_map(|lock| lock.holders.iter().chain(&lock.possible_holders));
        for hold in holds.filter(|hold| hold.state == HoldState::Destroyed) {
            if !seen.insert((hold.thread, hold.lock)) {
                continue;
            }
            let is_wrapped = view.now.locks[hold.lock].nature.is_wrapped;
            let is_seen = || destroyed.contains(&hold.lock);
            let (confidence, doubt) = match is_wrapped {
                true if is_seen() => (Confidence::Proven, None),
                true => (Confidence::Potential, Some(Doubt::DestructionNotSeen)),
                false => (Confidence::Suspected, Some(Doubt::MarkedByHand)),
            };
            let is_initialised = initialised.contains(&hold.lock);
            let evidence = DestroyedWhileHeld { hold: view.hold_fact(hold), is_initialised };
            let mut finding = Finding::new(Kind::DestroyedLock, confidence, evidence, Advice::KeepLockAlive);
            finding.doubts.extend(doubt);
            finding.since_ns = hold.since_ns;
            found.push(finding);
        }
    }
}

/// Locks that an initialisation destroyed: the recorder notes both, with the caller of the one call.
fn initialised(model: &LockModel) -> HashSet<LockId> {
    let mut found = HashSet::default();
    for thread in &model.threads {
        let mut last: Option<Step> = None;
        for step in thread.steps.iter() {
            let is_one_call = |end: Step| {
                end.kind == StepKind::Destroyed && (end.lock, end.location) == (step.lock, step.location)
            };
            if step.kind == StepKind::Initialised && last.is_some_and(is_one_call) {
                found.extend(step.lock);
            }
            last = Some(step);
        }
    }
    found
}

impl Basis for DestroyedWhileHeld {
    fn about(&self, all: &mut About<'_>) {
        all.hold(&self.hold);
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let what = if self.is_initialised { "initialised" } else { "destroyed" };
        let (lock, thread) = (words.lock(self.hold.lock), words.thread(self.hold.thread));
        Paragraph {
            summary: format!("{lock} was {what} while {thread} held it"),
            evidence: words.acquired_it(&self.hold).into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    #[test]
    fn a_lock_destroyed_while_held_is_reported_once() {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("worker"), scene.lock("SESSION"));
        scene.holds_with(thread, lock, |hold| hold.state = HoldState::Destroyed);
        scene.step(thread, StepKind::Destroyed, lock);
        let found = scene.run(&Destroyed);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Proven));
    }

    #[test]
    fn without_the_event_of_the_destruction_it_is_not_proven() {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("worker"), scene.lock("SESSION"));
        scene.holds_with(thread, lock, |hold| hold.state = HoldState::Destroyed);
        let found = scene.run(&Destroyed);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Potential));
        assert_eq!(found[0].doubts, [Doubt::DestructionNotSeen]);
    }

    #[test]
    fn a_held_lock_and_a_free_lock_that_was_destroyed_are_no_findings() {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("worker"), scene.lock("SESSION"));
        scene.holds(thread, lock);
        let ended = scene.lock("OLD");
        scene.step(thread, StepKind::Destroyed, ended);
        assert!(scene.run(&Destroyed).is_empty());
    }
}
