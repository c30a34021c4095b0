//! Lost owners: a forked child waits for a lock that was held in its parent.
//!
//! # Question
//!
//! Does a thread of a forked child wait for a lock that nobody in the child has?
//!
//! # Method
//!
//! fork copies the memory with its locks, but of the threads only the one that calls it. A lock that another thread
//! held at that moment stays locked in the child, and no table there says by whom. So: a thread of a process that is
//! not the ring's first one waits, and nobody in its process has the lock, may have it, or lends it; and the lock is not
//! one that processes share.
//!
//! It is proven if nothing in the child can be unknown: all operations on the lock are recorded by wrappers, no
//! thread was refused, no table overflowed or was in motion, and the complete history of every thread in the child
//! shows that nobody there ever had the lock (one that was just released has no holder either). A lock that somebody in
//! the child is known to have had alone was free after the fork: that is no finding.
//!
//! # Blind spots
//!
//! Who held it in the parent at the fork is known only if it holds it still, or its history reaches back so far.
//!
//! # Example output
//!
//! ```text
//! proven lost-owner: 1 thread of the forked process 4712 waits for MALLOC, which nobody there has
//!     main[4712] waits for it at reply server.rs:80, for 12 s
//!     it was locked at the fork by a thread of the parent, which does not exist in the child
//! ```

use std::collections::HashMap;

use super::history::is_acquisition;
use super::unreleased::waiting;
use super::{Analysis, Confidence, Finding, Part, View, parts};
use crate::locks::{Step, StepKind};

/// See the file's description.
pub(super) struct LostOwner;

pub(super) const KIND: &str = "lost-owner";

impl Analysis for LostOwner {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        let is_candidate = |lock: usize| {
            let lock = &model.locks[lock];
            let is_free = lock.holders.is_empty()
                && lock.possible_holders.is_empty()
                && lock.condition_waiters.is_empty()
                && lock.semaphore_waiters.is_empty();
            lock.pid != model.pid && is_free && !lock.nature.is_process_shared
        };
        let candidates: Vec<usize> = (0..model.locks.len())
            .filter(|&lock| {
                is_candidate(lock) && view.waiters(lock).any(|wait| wait.is_steady && !wait.is_timed)
            })
            .collect();
        if candidates.is_empty() {
            return;
        }
        // For each process, whether all is known of it; for each lock, whether it was ever had there, and if so
        // whether only shared.
        let mut is_known: HashMap<u32, bool> = HashMap::new();
        let mut had: Vec<Option<bool>> = vec![None; model.locks.len()];
        for thread in &model.threads {
            let all = thread.overwritten == 0 && thread.overflowed == 0 && thread.in_flux == 0;
            *is_known.entry(thread.pid).or_insert(true) &= all;
            for step in thread.steps.iter().filter(|step| is_owners(step)) {
                if let Some(lock) = step.lock {
                    had[lock] = if step.is_shared { had[lock].or(Some(true)) } else { Some(false) };
                }
            }
        }
        let parents: HashMap<u64, usize> = (model.locks.iter().enumerate())
            .filter(|(_, lock)| lock.pid == model.pid)
            .map(|(id, lock)| (lock.address, id))
            .collect();
        for id in candidates {
            let lock = &model.locks[id];
            let is_complete = is_known.get(&lock.pid) == Some(&true);
            let is_recorded = lock.nature.is_wrapped
                && model.threads_refused == 0
                && model.held_overflows == 0
                && model.slots_reused == 0;
            let was_shared = match had[id] {
                // It was free since the fork: whoever is missing here, it is not an owner in the parent.
                Some(false) => continue,
                Some(true) => true,
                None => false,
            };
            let is_proven = is_complete && is_recorded && !was_shared;
            let waiters = view.waiters(id).count();
            let summary = parts![
                Part::Threads(waiters),
                format!(
                    " of the forked process {} {} for ",
                    lock.pid,
                    if waiters == 1 { "waits" } else { "wait" }
                ),
                Part::Lock(id),
                ", which nobody there has"
            ];
            let mut evidence = waiting(view, id);
            if is_proven {
                let why =
                    "it was locked in the parent at the fork, by a thread that does not exist in the child";
                evidence.push(parts![why]);
            }
            if let Some(hold) =
                parents.get(&lock.address).and_then(|&parent| model.locks[parent].holders.first())
            {
                evidence.push(parts![
                    "in the parent ",
                    Part::Thread(hold.thread),
                    " has it now, taken at ",
                    Part::Location(hold.location)
                ]);
            }
            let confidence = if is_proven { Confidence::Proven } else { Confidence::Suspected };
            let mut finding = Finding::new(KIND, confidence, summary, evidence);
            finding.doubt = (!is_proven).then(|| {
                if was_shared {
                    "it was shared in the child before: it may just have been released"
                } else if !lock.nature.is_wrapped {
                    "the lock is marked by hand: a thread that does not mark it may have it"
                } else {
                    "not all that happened in the child is known: a thread there may have it"
                }
                .into()
            });
            finding.since_ns = view.waiters(id).filter_map(|wait| wait.since_ns).min();
            finding.threads_hurt = waiters;
            finding.advice =
                "after fork call exec at once, or fork before there are threads; pthread_atfork can take \
                              the lock before the fork and release it on both sides"
                    .into();
            found.push(finding);
        }
    }
}

/// Whether only one who has the lock takes this step.
fn is_owners(step: &Step) -> bool {
    let is_end = matches!(
        step.kind,
        StepKind::Released | StepKind::ConditionWait | StepKind::ConditionWoken | StepKind::Destroyed
    );
    is_end || is_acquisition(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    fn forked() -> Scene {
        let mut scene = Scene::new();
        let owner = scene.thread("owner");
        let lock = scene.lock("SHARED");
        scene.holds(owner, lock);
        let (child, copy) = (scene.thread("main"), scene.lock("SHARED"));
        scene.waits(child, copy);
        scene.model.threads[child].pid += 1;
        scene.model.locks[copy].pid += 1;
        scene.model.locks[copy].address = scene.model.locks[lock].address;
        scene
    }

    #[test]
    fn a_lock_that_nobody_in_the_child_ever_had_lost_its_owner() {
        let found = forked().look(&LostOwner);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Proven));
        assert!(found[0].threads.contains(&0), "who has it in the parent is told");
    }

    #[test]
    fn what_is_unknown_makes_it_suspected() {
        type Change = fn(&mut Scene);
        let changes: [Change; 7] = [
            |scene| scene.model.threads_refused = 1,
            |scene| scene.model.held_overflows = 1,
            |scene| scene.model.threads[1].overwritten = 1,
            |scene| scene.model.threads[1].in_flux = 1,
            |scene| scene.model.threads[1].overflowed = 1,
            |scene| scene.by_hand(1),
            |scene| {
                scene.nests(1, &[1]);
                scene.model.threads[1].steps.iter_mut().for_each(|step| step.is_shared = true);
            },
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut scene = forked();
            change(&mut scene);
            let found = scene.look(&LostOwner);
            assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected), "change {at}");
            assert!(found[0].doubt.is_some());
        }
    }

    #[test]
    fn a_lock_that_was_taken_in_the_child_was_free_at_the_fork() {
        let mut scene = forked();
        scene.nests(1, &[1]);
        assert!(scene.look(&LostOwner).is_empty());
    }

    #[test]
    fn a_lock_with_a_holder_in_the_child_is_an_ordinary_wait() {
        let mut scene = forked();
        let other = scene.thread("other");
        scene.model.threads[other].pid += 1;
        scene.holds(other, 1);
        assert!(scene.look(&LostOwner).is_empty());
    }

    #[test]
    fn in_the_first_process_a_lock_without_a_holder_is_no_finding() {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("main"), scene.lock("FREE"));
        scene.waits(thread, lock);
        assert!(scene.look(&LostOwner).is_empty());
    }
}
