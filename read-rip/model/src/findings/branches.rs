//! Acquisitions of one task that belong to several of its futures.
//!
//! The branches of a `join!`, and the futures of a stream, take turns in one task. What one of them holds does not keep
//! another one of them from going on. The record tells tasks apart, and not the futures of a task. So the order of two
//! acquisitions of one task says less than that of a thread: only in one future does the second one come while the
//! first one lasts.
//!
//! A future drops its guards from the last to the first, mostly. So if a task releases a lock while it holds another
//! one that it acquired later, or waits for it, and the two are of futures, then two branches may have them. That is
//! not known of a single acquisition, but of the two places in the program.

use foldhash::HashSet;

use super::View;
use super::history;
use crate::locations::LocationId;
use crate::locks::{LockId, StepKind};

/// Pairs of places at which tasks acquire locks, the earlier one first, and whose locks they also release in this
/// order.
#[derive(Debug, Default)]
pub(super) struct Branches(HashSet<(LocationId, LocationId)>);

impl Branches {
    /// Those of all tasks.
    pub(super) fn of(view: &View<'_>) -> Branches {
        let mut pairs = HashSet::default();
        let is_of_futures = |lock: LockId| view.now.locks[lock].nature.is_of_futures;
        let tasks = view.now.threads.iter().enumerate().filter(|(_, thread)| thread.task.is_some());
        for (_, thread) in tasks.filter(|&(id, _)| view.is_nesting(id)) {
            history::replay(thread, |step, held| {
                let Some(lock) =
                    step.lock.filter(|&lock| step.kind == StepKind::Released && is_of_futures(lock))
                else {
                    return;
                };
                let Some(at) = held.iter().position(|held| held.lock == lock) else { return };
                let later =
                    held[at + 1..].iter().filter(|later| !later.is_older && is_of_futures(later.lock));
                pairs.extend(later.map(|later| (held[at].location, later.location)));
            });
        }
        Branches(pairs)
    }

    /// Whether two branches of a task may have acquired a lock at `first` and another one at `then`.
    pub(super) fn may_have(&self, first: LocationId, then: LocationId) -> bool {
        self.0.contains(&(first, then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    /// A task that acquires two locks of futures, and releases them in this order.
    fn has_branches(releases: [usize; 2], change: impl Fn(&mut Scene)) -> bool {
        let mut scene = Scene::new();
        scene.task("request");
        let locks = [scene.lock("STOCK"), scene.lock("CACHE")];
        locks.iter().for_each(|&lock| scene.model.locks[lock].nature.is_of_futures = true);
        locks.iter().for_each(|&lock| drop(scene.step(0, StepKind::AcquireBegin, lock)));
        releases.iter().for_each(|&at| drop(scene.step(0, StepKind::Released, locks[at])));
        change(&mut scene);
        let places: Vec<LocationId> = scene.model.threads[0].steps.iter().map(|step| step.location).collect();
        scene.with_view(|view| Branches::of(view).may_have(places[0], places[1]))
    }

    #[test]
    fn locks_that_are_released_in_the_order_of_their_acquisition_may_be_those_of_branches() {
        assert!(has_branches([0, 1], |_| {}));
        assert!(!has_branches([1, 0], |_| {}), "guards of one function");
        let threads_lock = |scene: &mut Scene| scene.model.locks[1].nature.is_of_futures = false;
        assert!(!has_branches([0, 1], threads_lock), "nobody else can run meanwhile");
        assert!(
            !has_branches([0, 1], |scene| scene.model.threads[0].task = None),
            "a thread has no branches"
        );
    }
}
