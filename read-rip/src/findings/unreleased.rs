//! Unreleased locks: held by a thread that no longer exists.
//!
//! # Question
//!
//! Which locks will never be released, because the thread that holds them ended without releasing them?
//!
//! # Method
//!
//! A thread's table of held locks outlives the thread. If a thread has exited, or the living process no longer has
//! it, and its table says *held*, the thread is a holder for ever. Locks that threads held when their whole process
//! was killed are no finding: the memory is gone, and so are the threads that could wait.
//!
//! # Blind spots
//!
//! Another thread may have released a lock that is marked by hand. The recorder then searches for the holder, but
//! counts the release as unmatched if the search took too long. With any such release the finding is suspected. A
//! release that the program does not mark looks like no release, unless another thread acquired the lock later.
//!
//! # Example output
//!
//! ```text
//! proven unreleased: LEAKED is held by a thread that has exited; 3 threads wait for it
//!     leaker[77] has held it for 20 s, acquired at main leaked.rs:31
//!     waiter[78] waits for it at main leaked.rs:44, for 19 s
//! ```

use std::collections::HashMap;

use super::evidence::{DeadHolder, Evidence};
use super::finding::{Analysis, Finding};
use super::history;
use super::kind::{Advice, Confidence, Doubt, Kind};
use super::view::View;
use crate::locks::{Hold, HoldState, LockId, ThreadId};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct Unreleased;

impl Analysis for Unreleased {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let acquisitions = Acquisitions::new(view);
        let holds = view.now.locks.iter().flat_map(|lock| &lock.holders);
        for hold in holds.filter(|hold| hold.state == HoldState::Held && hold.is_steady) {
            let holder = &view.now.threads[hold.thread];
            // The locks of a process that has ended are gone with it.
            if holder.state == ThreadState::Present || view.now.ended.contains(&holder.pid) {
                continue;
            }
            let doubt = acquisitions.doubt(view, hold);
            let confidence = if doubt.is_some() { Confidence::Suspected } else { Confidence::Proven };
            let waiters = view.waiters(hold.lock);
            let threads_hurt = waiters.count;
            let evidence = Evidence::DeadHolder(DeadHolder {
                hold: view.hold_fact(hold),
                has_exited: holder.state == ThreadState::Exited,
                waiters,
            });
            let mut finding = Finding::new(Kind::Unreleased, confidence, evidence, Advice::CheckExits);
            finding.doubts.extend(doubt);
            finding.since_ns = hold.since_ns;
            finding.threads_hurt = threads_hurt;
            found.push(finding);
        }
    }
}

/// For each lock of a thread that no longer exists: the threads that are known to have acquired it, and when.
struct Acquisitions(HashMap<LockId, Vec<(ThreadId, Option<u64>)>>);

impl Acquisitions {
    fn new(view: &View<'_>) -> Acquisitions {
        let is_gone = |hold: &&Hold| view.now.threads[hold.thread].state != ThreadState::Present;
        let held = view.now.locks.iter().flat_map(|lock| &lock.holders).filter(is_gone);
        let mut known: HashMap<LockId, Vec<_>> = held.map(|hold| (hold.lock, Vec::new())).collect();
        if known.is_empty() {
            return Acquisitions(known);
        }
        for (id, thread) in view.now.threads.iter().enumerate() {
            for step in thread.steps.iter().filter(history::is_acquisition) {
                if let Some(of_lock) = step.lock.and_then(|lock| known.get_mut(&lock)) {
                    of_lock.push((id, step.time_ns));
                }
            }
        }
        Acquisitions(known)
    }

    /// What speaks against the hold of a thread that no longer exists.
    fn doubt(&self, view: &View<'_>, hold: &Hold) -> Option<Doubt> {
        let lock = &view.now.locks[hold.lock];
        let excludes = |other: &&Hold| other.thread != hold.thread && !(other.is_shared && hold.is_shared);
        let mut others = lock.holders.iter().filter(|other| other.state == HoldState::Held);
        if others.any(|other| excludes(&other)) {
            return Some(Doubt::TwoHolders);
        }
        let acquisitions = self.0.get(&hold.lock).into_iter().flatten();
        let mut by_others = acquisitions.filter(|(thread, _)| *thread != hold.thread);
        // If the order of two acquisitions is not known, marks by hand are not trusted.
        let is_later = |time_ns: Option<u64>| match (time_ns, hold.since_ns) {
            (Some(time_ns), Some(since_ns)) => time_ns > since_ns,
            _ => !lock.nature.is_wrapped,
        };
        if !hold.is_shared && by_others.any(|&(_, time_ns)| is_later(time_ns)) {
            return Some(Doubt::AcquiredByOthers);
        }
        if !lock.nature.is_owned && view.now.releases_unmatched > 0 {
            return Some(Doubt::UnmatchedReleases);
        }
        (!lock.nature.is_wrapped).then_some(Doubt::MarkedByHand)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};

    fn scene(mut scene: Scene, state: ThreadState) -> Scene {
        let (owner, waiter) = (scene.thread("owner"), scene.thread("waiter"));
        let lock = scene.lock("LEAKED");
        scene.holds(owner, lock);
        scene.waits(waiter, lock);
        scene.model.threads[owner].state = state;
        scene
    }

    #[test]
    fn a_lock_held_by_a_thread_that_no_longer_exists_is_proven_unreleased() {
        for state in [ThreadState::Exited, ThreadState::Abandoned] {
            for scene in [scene(Scene::new(), state), scene(Scene::dead(), state)] {
                let found = scene.run(&Unreleased);
                assert_eq!(found.len(), 1);
                assert_eq!((found[0].confidence, found[0].threads_hurt), (Confidence::Proven, 1));
            }
        }
    }

    #[test]
    fn locks_of_a_killed_process_are_no_finding() {
        assert!(scene(Scene::dead(), ThreadState::Present).run(&Unreleased).is_empty());
    }

    #[test]
    fn a_lock_that_another_thread_acquired_later_was_released_without_a_mark() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        scene.nests(1, &[0]);
        scene.steps(1)[0].time_ns = Some(NOW - 40 * SECOND);
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Proven, "before");
        scene.steps(1)[0].time_ns = Some(NOW - 10 * SECOND);
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Suspected, "after");
        scene.steps(1).clear();
        let other = scene.thread("other");
        scene.holds(other, 0);
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Suspected, "and holds it now");
    }

    #[test]
    fn releases_without_a_holder_and_marks_by_hand_leave_a_doubt() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        scene.model.releases_unmatched = 3;
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Suspected, "a guard may have been sent");
        scene.model.locks[0].nature.is_owned = true;
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Proven);
        scene.model.releases_unmatched = 0;
        scene.by_hand(0);
        let found = scene.run(&Unreleased);
        assert_eq!(found[0].confidence, Confidence::Suspected);
        assert!(!found[0].doubts.is_empty());
    }
}
