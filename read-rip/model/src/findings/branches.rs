//! Acquisitions of one task that belong to several of its futures.
//!
//! The branches of a `join!`, and the futures of a stream, take turns in one task. What one of them holds does not keep
//! another one of them from going on. The record tells tasks apart, and not the futures of a task. So the order of two
//! acquisitions of one task says less than that of a thread: only in one future does the second one come while the
//! first one lasts.
//!
//! A future drops its guards from the last to the first. Branches do so about half of the time, by chance. So two
//! places at which tasks acquire locks of futures have no order if some task released the earlier lock first, while it
//! had the later one or waited for it. Places in different functions have an order only if tasks have often released
//! the later lock first: one of the functions may be called by the other one, or both by a `join!`.

use foldhash::{HashMap, HashSet};

use super::View;
use super::history::{self, Held};
use crate::locations::LocationId;
use crate::locks::{LockId, StepKind};

/// So often by chance alone is one time in 65,536.
const NESTED_MIN: usize = 16;

/// Pairs of places at which tasks acquire locks, the earlier place first.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// How often the later lock was released while the earlier one was kept.
    nested: HashMap<(LocationId, LocationId), usize>,
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
                for earlier in others(&held[..at]) {
                    *branches.nested.entry((earlier, own)).or_default() += 1;
                }
                branches.crossed.extend(others(&held[at + 1..]).into_iter().map(|later| (own, later)));
            });
        }
        branches
    }

    /// Whether two futures of a task may have acquired a lock at `first` and another one at `then`.
    pub(super) fn may_have(&self, view: &View<'_>, first: LocationId, then: LocationId) -> bool {
        let places = (first, then);
        let [from, to] = [first, then].map(|at| view.locations[at]);
        let is_one_function = !from.full_function.is_empty() && from.may_be_in_function_of(to);
        let is_nested = is_one_function || self.nested.get(&places).is_some_and(|&times| times >= NESTED_MIN);
        self.crossed.contains(&places) || !is_nested
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;

    /// Whether two futures of a task may have acquired two locks, which the task released in this order so often.
    fn has_branches(functions: [&str; 2], releases: &[usize], times: usize) -> bool {
        let mut scene = Scene::new();
        scene.task("request");
        let locks = [scene.lock("STOCK"), scene.lock("CACHE")];
        locks.iter().for_each(|&lock| scene.model.locks[lock].nature.is_of_futures = true);
        let at = functions.map(|function| {
            let location = scene.location("shop.rs", 1);
            scene.locations[location].full_function = function.into();
            location
        });
        for _ in 0..times {
            for (&lock, &location) in locks.iter().zip(&at) {
                scene.step(0, StepKind::AcquireBegin, lock).location = location;
            }
            releases.iter().for_each(|&at| drop(scene.step(0, StepKind::Released, locks[at])));
        }
        scene.with_view(|view| Branches::of(view).may_have(view, at[0], at[1]))
    }

    #[test]
    fn one_function_releases_locks_from_the_last_to_the_first() {
        assert!(!has_branches(["order", "order"], &[1, 0], 1));
        assert!(!has_branches(["order", "order"], &[], 1), "it holds both");
        assert!(
            has_branches(["order", "order"], &[0, 1], 1),
            "two blocks of a join, or a guard dropped early"
        );
    }

    #[test]
    fn two_functions_may_be_branches_unless_they_often_release_from_the_last_to_the_first() {
        assert!(has_branches(["counts", "reads"], &[1, 0], 1));
        assert!(!has_branches(["counts", "reads"], &[1, 0], NESTED_MIN));
        assert!(has_branches(["counts", "reads"], &[0, 1], NESTED_MIN));
    }
}
