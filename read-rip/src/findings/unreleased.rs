//! Unreleased locks: held by a thread that is gone.
//!
//! # Question
//!
//! Which locks will never be released, because the thread that has them ended without releasing them?
//!
//! # Method
//!
//! A thread's table of held locks outlives it. A thread that has exited, or that the living process has no more,
//! and whose table says *held*, is a holder for ever. Locks that threads held when their whole process was killed are
//! nobody's trouble: the memory is gone with those who could wait.
//!
//! # Blind spots
//!
//! A lock that is marked by hand may have been released by another thread: the recorder then looks for its holder,
//! but counts the release as unmatched when that took too long. With any such release the finding is suspected.
//! A release that the program does not mark looks like none, unless somebody took the lock later.
//!
//! # Example output
//!
//! ```text
//! proven unreleased: LEAKED is held by a thread that has exited; 3 threads wait for it
//!     leaker[77] had it for 20 s, taken at main leaked.rs:31, and is gone
//!     waiter[78] waits for it at main leaked.rs:44, for 19 s
//! ```

use std::collections::HashMap;

use super::{Analysis, Confidence, Finding, Part, View, add_duration, history, more_threads, parts};
use crate::locks::{Hold, HoldState, LockId, ThreadId};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct Unreleased;

pub(super) const KIND: &str = "unreleased";
/// As many waiting threads are named.
const NAMED_MAX: usize = 5;

impl Analysis for Unreleased {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let later = Later::new(view);
        for (id, lock) in view.now.locks.iter().enumerate() {
            for hold in lock.holders.iter().filter(|hold| hold.state == HoldState::Held && hold.is_steady) {
                let owner = &view.now.threads[hold.thread];
                // With its process its locks are gone too.
                if view.now.ended.contains(&owner.pid) {
                    continue;
                }
                let gone = match owner.state {
                    ThreadState::Present => continue,
                    ThreadState::Exited => "has exited",
                    ThreadState::Abandoned => "is gone without having said so",
                };
                let waiters = view.waiters(id).count();
                let mut summary = parts![Part::Lock(id), format!(" is held by a thread that {gone}; ")];
                match waiters {
                    0 => summary.push("nobody waits for it".into()),
                    1 => summary.extend(parts![Part::Threads(1), " waits for it"]),
                    _ => summary.extend(parts![Part::Threads(waiters), " wait for it"]),
                }
                let mut owner = parts![
                    Part::Thread(hold.thread),
                    if hold.is_shared { " has shared it" } else { " has had it" }
                ];
                add_duration(&mut owner, " for ", view.ago_ns(hold.since_ns));
                owner.extend(parts![", taken at ", Part::Location(hold.location), format!(", and {gone}")]);
                let mut evidence = vec![owner];
                evidence.extend(waiting(view, id));
                let doubt = later.doubt(view, hold);
                let confidence = if doubt.is_some() { Confidence::Suspected } else { Confidence::Proven };
                let mut finding = Finding::new(KIND, confidence, summary, evidence);
                finding.doubt = doubt.map(str::to_owned);
                finding.since_ns = hold.since_ns;
                finding.threads_hurt = waiters;
                finding.advice =
                    "look at the ways out of the function that took it: a return, a panic that was caught, \
                                  or a guard that was forgotten; its guard is gone with the thread"
                        .into();
                found.push(finding);
            }
        }
    }
}

/// For each lock that a gone thread has: who else is known to have got it, and when at last.
struct Later(HashMap<LockId, Vec<(ThreadId, Option<u64>)>>);

impl Later {
    fn new(view: &View<'_>) -> Later {
        let is_gone = |hold: &&Hold| view.now.threads[hold.thread].state != ThreadState::Present;
        let held = view.now.locks.iter().flat_map(|lock| &lock.holders).filter(is_gone);
        let mut taken: HashMap<LockId, Vec<_>> = held.map(|hold| (hold.lock, Vec::new())).collect();
        if taken.is_empty() {
            return Later(taken);
        }
        for (id, thread) in view.now.threads.iter().enumerate() {
            for step in thread.steps.iter().filter(|step| history::is_acquisition(step)) {
                if let Some(taken) = step.lock.and_then(|lock| taken.get_mut(&lock)) {
                    taken.push((id, step.time_ns));
                }
            }
        }
        Later(taken)
    }

    /// What speaks against a gone thread's hold.
    fn doubt(&self, view: &View<'_>, hold: &Hold) -> Option<&'static str> {
        let lock = &view.now.locks[hold.lock];
        let excludes = |other: &&Hold| other.thread != hold.thread && !(other.is_shared && hold.is_shared);
        let mut others = lock.holders.iter().filter(|other| other.state == HoldState::Held);
        if others.any(|other| excludes(&other)) {
            return Some("another thread is recorded to have it as well: a release may have no mark");
        }
        let taken = self.0.get(&hold.lock).into_iter().flatten();
        let mut by_others = taken.filter(|(thread, _)| *thread != hold.thread);
        // Where it is not known which of two came first, marks by hand are not taken at their word.
        let is_later = |time_ns: Option<u64>| match (time_ns, hold.since_ns) {
            (Some(time_ns), Some(since_ns)) => time_ns > since_ns,
            _ => !lock.nature.is_wrapped,
        };
        if !hold.is_shared && by_others.any(|&(_, time_ns)| is_later(time_ns)) {
            return Some("other threads have taken it, perhaps since then: a release may have no mark");
        }
        if !lock.nature.is_owned && view.now.releases_unmatched > 0 {
            return Some(
                "some releases could not be told to a holder: it may have been released by another thread",
            );
        }
        (!lock.nature.is_wrapped).then_some("the lock is marked by hand: a release may have no mark")
    }
}

/// Lines on those who wait for a lock.
pub(super) fn waiting(view: &View<'_>, lock: LockId) -> Vec<Vec<Part>> {
    let mut lines: Vec<Vec<Part>> = view
        .waiters(lock)
        .take(NAMED_MAX)
        .map(|wait| {
            let verb = if wait.is_shared { " waits to share it at " } else { " waits for it at " };
            let mut line = parts![Part::Thread(wait.thread), verb, Part::Location(wait.location)];
            add_duration(&mut line, ", for ", view.ago_ns(wait.since_ns));
            line
        })
        .collect();
    let more = view.waiters(lock).count().saturating_sub(NAMED_MAX);
    if more > 0 {
        lines.push(parts!["and ", more_threads(more)]);
    }
    lines
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
    fn a_lock_of_a_thread_that_is_gone_is_proven_unreleased() {
        for state in [ThreadState::Exited, ThreadState::Abandoned] {
            for scene in [scene(Scene::new(), state), scene(Scene::dead(), state)] {
                let found = scene.look(&Unreleased);
                assert_eq!(found.len(), 1);
                assert_eq!((found[0].confidence, found[0].threads_hurt), (Confidence::Proven, 1));
            }
        }
    }

    #[test]
    fn locks_of_a_process_that_was_killed_are_nobodys_trouble() {
        assert!(scene(Scene::dead(), ThreadState::Present).look(&Unreleased).is_empty());
    }

    #[test]
    fn a_lock_that_others_got_later_was_released_without_a_mark() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        scene.nests(1, &[0]);
        scene.model.threads[1].steps[0].time_ns = Some(NOW - 40 * SECOND);
        assert_eq!(scene.look(&Unreleased)[0].confidence, Confidence::Proven, "before");
        scene.model.threads[1].steps[0].time_ns = Some(NOW - 10 * SECOND);
        assert_eq!(scene.look(&Unreleased)[0].confidence, Confidence::Suspected, "after");
        scene.model.threads[1].steps.clear();
        let other = scene.thread("other");
        scene.holds(other, 0);
        assert_eq!(scene.look(&Unreleased)[0].confidence, Confidence::Suspected, "and has it now");
    }

    #[test]
    fn releases_without_a_holder_and_marks_by_hand_leave_a_doubt() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        scene.model.releases_unmatched = 3;
        assert_eq!(
            scene.look(&Unreleased)[0].confidence,
            Confidence::Suspected,
            "a guard may have been sent"
        );
        scene.model.locks[0].nature.is_owned = true;
        assert_eq!(scene.look(&Unreleased)[0].confidence, Confidence::Proven);
        scene.model.releases_unmatched = 0;
        scene.by_hand(0);
        let found = scene.look(&Unreleased);
        assert_eq!(found[0].confidence, Confidence::Suspected);
        assert!(found[0].doubt.is_some());
    }
}
