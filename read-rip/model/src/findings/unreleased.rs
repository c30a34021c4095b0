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
//! The finding is proven if nobody else can have released the lock. A lock that another thread can release, or that
//! threads handed over before, is only suspected. So is a lock that another thread acquired later, or may have acquired
//! later: where acquisitions have no times, only a thread that waits now shows that the lock is not free. If the lock
//! was initialised after the thread's end, the thread held an earlier lock at that address, and there is no finding.
//!
//! The memory of a lock that was never recorded names its owner too. If the process has no such thread, and is no fork
//! that runs the program of its parent, that thread has ended. In such a fork it may be a thread of the parent (see
//! `lost_owner`).
//!
//! # Blind spots
//!
//! A release that the program does not mark looks like no release, unless another thread acquired the lock later.
//!
//! # Example output
//!
//! ```text
//! proven unreleased: LEAKED is held by a thread that has exited; 3 threads wait for it
//!     leaker[77] has held it for 20 s, acquired at main leaked.rs:31
//!     waiter[78] waits for it at main leaked.rs:44, for 19 s
//! ```

use foldhash::HashMap;
use serde::Serialize;

use super::history::{self, HandedOver};
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, HoldFact, Kind, Paragraph, View, Waiters,
    Words,
};
use crate::locks::{Hold, HoldState, LockId, Ownership, StepKind, ThreadId};
use crate::threads::ThreadState;
use crate::units::agree;

/// See the file's description.
pub(super) struct Unreleased;

/// A lock held by a thread that no longer exists.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeadHolder {
    /// The hold.
    pub hold: HoldFact,
    /// The thread has exited; otherwise it disappeared without exiting.
    #[serde(rename = "exited")]
    pub has_exited: bool,
    /// The threads that wait for the lock.
    pub waiters: Waiters,
}

impl Analysis for Unreleased {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let (past, handed_over) = (Past::new(view), view.handed_over());
        let holds = view.now.locks.iter().flat_map(|lock| &lock.holders);
        for hold in holds.filter(|hold| hold.state == HoldState::Held && hold.is_steady) {
            let holder = &view.now.threads[hold.thread];
            // The locks of a process that has ended are gone with it, unless other processes share them.
            let has_process_ended = view.now.ended.contains(&holder.pid);
            let is_shared = view.now.locks[hold.lock].nature.is_for_processes();
            if holder.state == ThreadState::Present || has_process_ended && !is_shared {
                continue;
            }
            if past.is_of_an_earlier_lock(view, hold) {
                continue;
            }
            let waiters = view.waiters(hold.lock);
            // The kernel wakes a thread that waits for a robust mutex whose owner has ended.
            let maybe_robust = has_process_ended && waiters.count == 0;
            let doubt = past.doubt(view, hold).or_else(|| doubt_of_owner(view, hold, handed_over));
            let doubt = doubt.or(maybe_robust.then_some(Doubt::MaybeRobust));
            let confidence = if doubt.is_some() { Confidence::Suspected } else { Confidence::Proven };
            let threads_hurt = waiters.count;
            let evidence = DeadHolder {
                hold: view.hold_fact(hold),
                has_exited: holder.state == ThreadState::Exited,
                waiters,
            };
            let mut finding = Finding::new(Kind::Unreleased, confidence, evidence, Advice::CheckExits);
            if confidence == Confidence::Proven && threads_hurt > 0 && view.may_still_run() {
                finding.advice.insert(0, Advice::EndTheProcess);
            }
            finding.doubts.extend(doubt);
            finding.premises.extend(view.premises(hold.lock).filter(|_| confidence > Confidence::Suspected));
            finding.since_ns = hold.since_ns;
            finding.threads_hurt = threads_hurt;
            found.push(finding);
        }
    }
}

/// What threads are known to have done with each lock of a thread that no longer exists.
#[derive(Default)]
struct Uses {
    /// The threads that acquired it, and when.
    acquired: Vec<(ThreadId, Option<u64>)>,
    /// When it was initialised.
    initialised_ns: Vec<Option<u64>>,
}

/// For each lock of a thread that no longer exists, its uses.
struct Past(HashMap<LockId, Uses>);

impl Past {
    fn new(view: &View<'_>) -> Past {
        let is_gone = |hold: &&Hold| view.now.threads[hold.thread].state != ThreadState::Present;
        let held = view.now.locks.iter().flat_map(|lock| &lock.holders).filter(is_gone);
        let mut known: HashMap<LockId, Uses> = held.map(|hold| (hold.lock, Uses::default())).collect();
        if known.is_empty() {
            return Past(known);
        }
        for (id, thread) in view.now.threads.iter().enumerate() {
            for step in &thread.steps {
                let Some(uses) = step.lock.and_then(|lock| known.get_mut(&lock)) else { continue };
                if history::is_acquisition(&step) {
                    uses.acquired.push((id, step.time_ns));
                } else if step.kind == StepKind::Initialised {
                    uses.initialised_ns.push(step.time_ns);
                }
            }
        }
        Past(known)
    }

    /// Whether the lock was initialised after the end of the thread that held it. Then the hold is that of an earlier
    /// lock at the same address.
    fn is_of_an_earlier_lock(&self, view: &View<'_>, hold: &Hold) -> bool {
        let ended_ns = view.now.threads[hold.thread].exited_ns.or(hold.since_ns);
        let is_later =
            |&began_ns: &Option<u64>| began_ns.zip(ended_ns).is_some_and(|(began, end)| began > end);
        self.0.get(&hold.lock).is_some_and(|uses| uses.initialised_ns.iter().any(is_later))
    }

    /// What speaks against the hold of a thread that no longer exists.
    fn doubt(&self, view: &View<'_>, hold: &Hold) -> Option<Doubt> {
        let lock = &view.now.locks[hold.lock];
        let excludes = |other: &&Hold| other.thread != hold.thread && !(other.is_shared && hold.is_shared);
        let mut others = lock.holders.iter().filter(|other| other.state == HoldState::Held);
        if others.any(|other| excludes(&other)) {
            return Some(Doubt::TwoHolders);
        }
        let acquired = self.0.get(&hold.lock).into_iter().flat_map(|uses| &uses.acquired);
        let mut by_others = acquired.filter(|(thread, _)| *thread != hold.thread);
        let (began_ns, ended_ns) = (hold.since_ns, view.now.threads[hold.thread].exited_ns);
        // If the order of two acquisitions is not known, the other one may have been the later one.
        let may_be_later = |&(thread, time_ns): &(ThreadId, Option<u64>)| {
            let claimed_ns = view.now.threads[thread].claimed_ns;
            match (time_ns, began_ns.or(ended_ns)) {
                (Some(time_ns), Some(limit_ns)) => time_ns > limit_ns,
                _ => {
                    ended_ns.is_some_and(|ended_ns| claimed_ns > ended_ns)
                        || !is_blocked_by_nobody_else(view, hold)
                }
            }
        };
        (!hold.is_shared && by_others.any(may_be_later)).then_some(Doubt::AcquiredByOthers)
    }
}

/// Whether a thread waits for a lock, and nobody but the thread that no longer exists can hold it.
fn is_blocked_by_nobody_else(view: &View<'_>, hold: &Hold) -> bool {
    let (model, lock) = (view.now, &view.now.locks[hold.lock]);
    let is_all_recorded = model.threads_refused == 0
        && model.threads.iter().all(|thread| thread.overflowed == 0 && thread.in_flux == 0);
    lock.nature.is_wrapped
        && is_all_recorded
        && lock.possible_holders.is_empty()
        && view.waits(hold.lock).any(|wait| wait.is_steady)
}

/// Why a thread other than the holder may have released the lock, or may still do so.
fn doubt_of_owner(view: &View<'_>, hold: &Hold, handed_over: &HandedOver) -> Option<Doubt> {
    let lock = &view.now.locks[hold.lock];
    let nature = &lock.nature;
    if lock.absent_owner.is_some_and(|owner| owner.is_of_fork.is_none()) {
        Some(Doubt::MaybeForked)
    } else if nature.ownership == Ownership::Enforced {
        None
    } else if handed_over.includes(hold) {
        Some(Doubt::HandedOver)
    } else if view.now.releases_unmatched > 0 {
        Some(Doubt::UnmatchedReleases)
    } else if !nature.is_wrapped {
        Some(Doubt::MarkedByHand)
    } else {
        (nature.ownership == Ownership::Anyone).then_some(Doubt::MaybeSent)
    }
}

impl Basis for DeadHolder {
    fn about(&self, all: &mut About<'_>) {
        all.hold(&self.hold);
        all.waiters(&self.waiters);
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let fate = if self.has_exited { "has exited" } else { "disappeared without exiting" };
        let waiting = match self.waiters.count {
            0 => "no thread waits for it".to_owned(),
            count => format!("{} {} for it", words.threads(count), agree(count, "waits", "wait")),
        };
        let summary = format!("{} is held by a thread that {fate}; {waiting}", words.lock(self.hold.lock));
        let mut evidence = vec![words.holder(&self.hold)];
        evidence.extend(words.waiters(&self.waiters));
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Premise;
    use crate::findings::testing::{NOW, SECOND, Scene};
    use crate::locks::AbsentOwner;

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
    fn waiters_at_one_place_are_one_line_with_their_number() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        for name in ["second", "third"] {
            let waiter = scene.thread(name);
            scene.waits(waiter, 0);
        }
        let reader = scene.thread("reader");
        scene.waits_to_share(reader, 0);
        let said = scene.says(&scene.run(&Unreleased)[0]).1;
        let waits: Vec<&String> = said.iter().filter(|line| line.contains("wait")).collect();
        assert_eq!(
            waits,
            [
                "3 threads wait for it at wait.rs:10, the longest for 12.0 s: waiter, second, third",
                "reader waits for it (shared) at wait.rs:10, for 12.0 s",
            ]
        );
    }

    #[test]
    fn a_process_that_may_be_a_fork_leaves_a_doubt() {
        for (is_of_fork, confidence) in [(Some(false), Confidence::Proven), (None, Confidence::Suspected)] {
            let mut scene = scene(Scene::new(), ThreadState::Abandoned);
            scene.model.locks[0].absent_owner = Some(AbsentOwner { tid: 77, is_of_fork });
            assert_eq!(scene.run(&Unreleased)[0].confidence, confidence);
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
        (0..2).for_each(|at| scene.steps(1)[at].time_ns = None);
        assert_eq!(
            scene.run(&Unreleased)[0].confidence,
            Confidence::Proven,
            "somebody waits, and nobody else has it"
        );
        scene.model.threads[1].wait = None;
        scene.model.locks[0].waiters.clear();
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Suspected, "the order is not known");
        scene.steps(1).clear();
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Proven);
        let other = scene.thread("other");
        scene.holds(other, 0);
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Suspected, "and holds it now");
    }

    #[test]
    fn a_lock_that_was_initialised_after_the_end_of_its_holder_is_another_lock() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        scene.model.threads[0].exited_ns = Some(NOW - 15 * SECOND);
        scene.step(1, StepKind::Initialised, 0).time_ns = Some(NOW - 16 * SECOND);
        assert_eq!(scene.run(&Unreleased).len(), 1, "before");
        scene.steps(1)[0].time_ns = Some(NOW - 14 * SECOND);
        assert!(scene.run(&Unreleased).is_empty(), "after");
    }

    #[test]
    fn a_lock_that_another_thread_can_release_is_not_proven_unreleased() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        let found = scene.run(&Unreleased);
        assert_eq!(
            (found[0].confidence, &found[0].premises[..]),
            (Confidence::Proven, &[Premise::OwnerReleases][..])
        );
        scene.model.locks[0].is_handed_over = true;
        assert_eq!(scene.run(&Unreleased)[0].doubts, [Doubt::HandedOver]);
        scene.model.locks[0].is_handed_over = false;
        scene.model.locks[0].nature.ownership = Ownership::Anyone;
        let found = scene.run(&Unreleased);
        assert_eq!(
            (found[0].confidence, &found[0].doubts[..]),
            (Confidence::Suspected, &[Doubt::MaybeSent][..])
        );
    }

    #[test]
    fn releases_without_a_holder_and_marks_by_hand_leave_a_doubt() {
        let mut scene = scene(Scene::new(), ThreadState::Exited);
        scene.model.releases_unmatched = 3;
        assert_eq!(
            scene.run(&Unreleased)[0].confidence,
            Confidence::Suspected,
            "it may have been handed over"
        );
        scene.model.locks[0].nature.ownership = Ownership::Enforced;
        assert_eq!(scene.run(&Unreleased)[0].confidence, Confidence::Proven);
        scene.model.releases_unmatched = 0;
        scene.by_hand(0);
        let found = scene.run(&Unreleased);
        assert_eq!(found[0].confidence, Confidence::Suspected);
        assert!(!found[0].doubts.is_empty());
    }
}
