//! Acquisitions of one task that belong to several of its futures.
//!
//! The branches of a `join!`, and the futures of a stream, take turns in one task. What one of them holds does not keep
//! another one of them from going on. The record tells tasks apart, and not the futures of a task. So the order of two
//! acquisitions of one task says less than that of a thread: only in one future does the second one come while the
//! first one lasts.
//!
//! A future drops its guards from the last to the first, mostly; those of branches have no such order. So the places at
//! which tasks acquire two locks of futures have an order if some task released the later lock while it kept the earlier
//! one, and none released the earlier one first, while it had the later one or waited for it.

use foldhash::HashSet;

use super::View;
use super::history::{self, Held};
use crate::locations::LocationId;
use crate::locks::{LockId, StepKind};

/// Pairs of places at which tasks acquire locks, the earlier place first.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// The later lock was released while the earlier one was kept.
    nested: HashSet<(LocationId, LocationId)>,
    /// The earlier lock was released first.
    crossed: HashSet<(LocationId, LocationId)>,
}

impl Branches {
    /// Those of all tasks.
    pub(super) fn of(view: &View<'_>) -> Branches {
        let mut branches = Branches::default();
        let is_of_futures = |lock: LockId| view.now.locks[lock].nature.is_of_futures;
        let tasks = view.now.threads.iter().enumerate().filter(|(_, thread)| thread.task.is_some());
        for (_, thread) in tasks.filter(|&(id, _)| view.is_nesting(id)) {
            history::replay(thread, |step, held| {
                let released = step.lock.filter(|_| step.kind == StepKind::Released);
                let at = released.and_then(|lock| held.iter().position(|held| held.lock == lock));
                let Some(at) = at.filter(|&at| is_of_futures(held[at].lock)) else { return };
                let others = |others: &'_ [Held]| -> Vec<LocationId> {
                    let known = others.iter().filter(|other| !other.is_older && is_of_futures(other.lock));
                    known.map(|other| other.location).collect()
                };
                let own = held[at].location;
                branches.nested.extend(others(&held[..at]).into_iter().map(|earlier| (earlier, own)));
                branches.crossed.extend(others(&held[at + 1..]).into_iter().map(|later| (own, later)));
            });
        }
        branches
    }

    /// Whether two futures of a task may have acquired a lock at `first` and another one at `then`.
    pub(super) fn may_have(&self, first: LocationId, then: LocationId) -> bool {
        let places = (first, then);
        self.crossed.contains(&places) || !self.nested.contains(&places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    /// Whether two futures of a task may have acquired two locks, which the task released in this order.
    fn has_branches(releases: &[usize]) -> bool {
        let mut scene = Scene::new();
        scene.task("request");
        let locks = [scene.lock("STOCK"), scene.lock("CACHE")];
        locks.iter().for_each(|&lock| scene.model.locks[lock].nature.is_of_futures = true);
        locks.iter().for_each(|&lock| drop(scene.step(0, StepKind::AcquireBegin, lock)));
        releases.iter().for_each(|&at| drop(scene.step(0, StepKind::Released, locks[at])));
        let places: Vec<LocationId> = scene.model.threads[0].steps.iter().map(|step| step.location).collect();
        scene.with_view(|view| Branches::of(view).may_have(places[0], places[1]))
    }

    #[test]
    fn locks_that_one_future_acquires_are_released_from_the_last_to_the_first() {
        assert!(!has_branches(&[1, 0]), "guards of one function");
        assert!(has_branches(&[0, 1]), "guards of two branches, or one that is dropped early");
        assert!(has_branches(&[]), "nothing is known");
    }
}
