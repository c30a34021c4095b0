//! What the known histories say of locks: when each was released, and which threads use it. It makes no findings.

use crate::locks::{Hold, HoldState, LockId, LockModel, StepKind, ThreadId, Wait};
use crate::threads::ThreadState;

/// What the known histories say of a lock's changes of hands and of its users.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// The last release with a known time, ns since boot.
    pub(super) released_ns: Option<u64>,
    /// The last change of hands with a known time, ns since boot.
    pub(super) moved_ns: Option<u64>,
    /// A release without a time, by a thread of which nothing later has a time: it may be recent.
    pub(super) has_undated_release: bool,
    /// The threads that are known to have acquired the lock, or wait for it, each once.
    pub(super) users: Vec<ThreadId>,
}

/// When a hold began without a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldSince {
    /// At this time or earlier, ns since boot: the first of the threads that wait for the lock began to wait then, and
    /// the lock was not released since.
    OrEarlier(u64),
    /// About this time, ns since boot: the thread that had the lock before has released it by then, and others waited.
    About(u64),
}

/// What the known histories say of some locks.
#[derive(Debug)]
pub struct Pasts {
    pasts: Vec<Past>,
    /// For each lock, 0, or the index of its past plus 1.
    of_lock: Vec<u32>,
}

impl Pasts {
    /// The pasts of these locks, from one pass over all histories.
    pub fn of(model: &LockModel, locks: impl Iterator<Item = LockId>) -> Pasts {
        let mut pasts = Pasts { pasts: Vec::new(), of_lock: vec![0; model.locks.len()] };
        for lock in locks {
            pasts.pasts.push(Past::default());
            pasts.of_lock[lock] = u32::try_from(pasts.pasts.len()).unwrap_or(0);
        }
        if pasts.pasts.is_empty() {
            return pasts;
        }
        // Releases without a time, and after the last step with one.
        let mut undated: Vec<LockId> = Vec::new();
        for (id, thread) in model.threads.iter().enumerate() {
            for step in &thread.steps {
                if let Some(time_ns) = step.time_ns {
                    // They came before this.
                    pasts.release_until(&mut undated, time_ns);
                }
                let Some(lock) = step.lock else { continue };
                let Some(past) = pasts.get_mut(lock) else { continue };
                past.is_used_by(id);
                if matches!(step.kind, StepKind::Acquired | StepKind::Released) {
                    past.moved_ns = past.moved_ns.max(step.time_ns);
                }
                if matches!(step.kind, StepKind::Released | StepKind::ConditionWait) {
                    match step.time_ns {
                        Some(time_ns) => past.released_ns = past.released_ns.max(Some(time_ns)),
                        None => undated.push(lock),
                    }
                }
            }
            // A wait that goes on came after all steps.
            let waits = [thread.wait.as_ref(), thread.sleep.as_deref()].into_iter().flatten();
            if let Some(since_ns) = waits.filter_map(|wait| wait.since_ns).min() {
                pasts.release_until(&mut undated, since_ns);
            }
            for lock in undated.drain(..) {
                if let Some(past) = pasts.get_mut(lock) {
                    past.has_undated_release = true;
                }
            }
            for lock in thread.holds.iter().map(|hold| hold.lock).chain(thread.wait.map(|wait| wait.lock)) {
                if let Some(past) = pasts.get_mut(lock) {
                    past.is_used_by(id);
                }
            }
        }
        pasts
    }

    /// When a hold began that has no time itself; `None` if no thread waits for the lock, or histories do not show it.
    /// A shared hold may have begun later.
    pub fn held_since(&self, model: &LockModel, hold: &Hold) -> Option<HeldSince> {
        let exists = |wait: &&Wait| model.threads[wait.thread].state == ThreadState::Present;
        let waits = model.locks[hold.lock].waiters.iter().filter(exists);
        let first_ns = waits.filter_map(|wait| wait.since_ns).min()?;
        let past = self.get(hold.lock).filter(|past| !past.has_undated_release)?;
        let is_kept = !hold.is_shared && hold.state == HoldState::Held;
        // The record has each change of hands. Memory names the present holder alone, which may have acquired the lock
        // when it last ran.
        let first_ns = match hold.location {
            Some(_) => first_ns,
            None => first_ns.max(asleep_since_ns(model, hold.thread)?),
        };
        is_kept.then_some(match past.released_ns.filter(|&released_ns| released_ns > first_ns) {
            Some(released_ns) => HeldSince::About(released_ns),
            None => HeldSince::OrEarlier(first_ns),
        })
    }

    /// The past of a lock; `None` if it was not asked for.
    pub(super) fn get(&self, lock: LockId) -> Option<&Past> {
        self.pasts.get((self.of_lock[lock] as usize).checked_sub(1)?)
    }

    fn get_mut(&mut self, lock: LockId) -> Option<&mut Past> {
        self.pasts.get_mut((self.of_lock[lock] as usize).checked_sub(1)?)
    }

    /// The locks were released at this time at the latest.
    fn release_until(&mut self, locks: &mut Vec<LockId>, time_ns: u64) {
        for lock in locks.drain(..) {
            if let Some(past) = self.get_mut(lock) {
                past.released_ns = past.released_ns.max(Some(time_ns));
            }
        }
    }
}

/// Since when the thread has been asleep at least, ns since boot.
fn asleep_since_ns(model: &LockModel, thread: ThreadId) -> Option<u64> {
    let asleep_ns = model.threads[thread].seen?.asleep_ns?;
    model.now_ns?.checked_sub(asleep_ns.get())
}

impl Past {
    /// Notes that a thread uses the lock. Threads come one after the other.
    fn is_used_by(&mut self, thread: ThreadId) {
        if self.users.last() != Some(&thread) {
            self.users.push(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene, seen};
    use crate::locks::{Doing, Seen};
    use std::num::NonZeroU64;

    #[test]
    fn a_hold_without_a_time_began_before_the_first_wait_or_after_the_last_release() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.holds_with(1, 0, |hold| hold.since_ns = None);
        let held_since = |scene: &Scene| {
            let hold = &scene.model.locks[0].holders[0];
            Pasts::of(&scene.model, [0].into_iter()).held_since(&scene.model, hold)
        };
        assert_eq!(held_since(&scene), None, "nobody waits");
        scene.step(0, StepKind::Released, 0).time_ns = None;
        let other = scene.thread("other");
        scene.waits_with(other, 0, |wait| wait.since_ns = Some(NOW - 13 * SECOND));
        assert_eq!(held_since(&scene), None, "the release may be recent");
        scene.waits(0, 0);
        assert_eq!(held_since(&scene), Some(HeldSince::About(NOW - 12 * SECOND)));
        scene.model.locks[0].waiters.retain(|wait| wait.thread == 0);
        assert_eq!(held_since(&scene), Some(HeldSince::OrEarlier(NOW - 12 * SECOND)));
        scene.model.locks[0].holders[0].is_shared = true;
        assert_eq!(held_since(&scene), None);
    }

    #[test]
    fn a_holder_that_memory_alone_names_may_have_acquired_the_lock_when_it_last_ran() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        let holder = 1;
        scene.holds_with(holder, 0, |hold| (hold.since_ns, hold.location) = (None, None));
        scene.waits(0, 0);
        let mut held_since = |asleep_ns| {
            let seen = Seen { asleep_ns: NonZeroU64::new(asleep_ns), ..seen(Doing::WaitsOutside, true) };
            scene.model.threads[holder].seen = Some(seen);
            let hold = &scene.model.locks[0].holders[0];
            Pasts::of(&scene.model, [0].into_iter()).held_since(&scene.model, hold)
        };
        assert_eq!(held_since(20 * SECOND), Some(HeldSince::OrEarlier(NOW - 12 * SECOND)), "before the wait");
        assert_eq!(held_since(3 * SECOND), Some(HeldSince::OrEarlier(NOW - 3 * SECOND)), "it ran meanwhile");
        assert_eq!(held_since(0), None, "it runs");
    }
}
