//! Tasks of a process that died, all of which were suspended, and the record does not say for what.
//!
//! It makes no findings, and judges no process by these alone: a task may wait for as long as it likes. A program that
//! has a pool of async code is another matter. Who awaits an object of a pool records nothing, so tasks that have all
//! objects and await more look like this.

use foldhash::HashMap;
use read_rip_ring::TaskKind;
use serde::Serialize;

use super::task_waits::task_of;
use super::{LATELY_NS, View};
use crate::locations::LocationId;
use crate::locks::{TaskFacts, ThreadId};

/// A task that was polled more often goes on often. That it was suspended means something if that lasted.
const FEW_POLLS: u64 = 16;

/// Tasks that were made at one place and were suspended when their process died, for what is not recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SuspendedTasks {
    /// How many. No other task that was made there existed.
    pub tasks: usize,
    /// One of them.
    pub first: ThreadId,
    /// Where they were made.
    pub made_at: LocationId,
    /// For how long all of them were suspended at least, ns; left out if nothing shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The libraries of the pools that the program has.
    pub pools: Vec<&'static str>,
}

impl SuspendedTasks {
    /// Those of one place that were suspended for longest. Which pools the program has is not known yet.
    pub(super) fn of(view: &View<'_>) -> Option<SuspendedTasks> {
        if !view.now.is_final || !view.now.is_end_unknown || !view.now.seen.is_empty() {
            return None;
        }
        // None for a place if a task that was made there does something else.
        let mut places: HashMap<LocationId, Option<SuspendedTasks>> = HashMap::default();
        let tasks = view.now.threads.iter().enumerate();
        let tasks = tasks.filter_map(|(id, thread)| Some((id, task_of(thread)?)));
        for (first, task) in tasks.filter(|(_, task)| task.kind == TaskKind::Async) {
            let Some(made_at) = task.made_at else { continue };
            let for_ns = view.ago_ns(task.since_ns).filter(|&for_ns| for_ns >= LATELY_NS);
            let new = SuspendedTasks { tasks: 0, first, made_at, for_ns, pools: Vec::new() };
            let place = places.entry(made_at).or_insert(Some(new));
            let is_silent = is_silent(task) && (for_ns.is_some() || task.polls <= FEW_POLLS);
            *place = place.take().filter(|_| is_silent).map(|of| SuspendedTasks {
                tasks: of.tasks + 1,
                for_ns: of.for_ns.min(for_ns),
                ..of
            });
        }
        // The order of a map is none.
        places.into_values().flatten().max_by_key(|of| (of.for_ns, of.tasks, std::cmp::Reverse(of.first)))
    }
}

/// Whether a task is suspended, and what it waits for is not recorded. The main future mostly waits for the others.
fn is_silent(task: &TaskFacts) -> bool {
    task.is_asleep() && !task.is_local && task.polls > 0 && task.polled_waits() == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};

    /// Two tasks that were made at one place and are suspended, and one that was polled at the end.
    fn scene(change: impl FnOnce(&mut Scene)) -> Option<SuspendedTasks> {
        let mut scene = Scene::killed();
        let (place, other) = (scene.location("serve.rs", 7), scene.location("tick.rs", 8));
        for made_at in [place, place, other] {
            let task = scene.task("task");
            scene.facts(task).made_at = Some(made_at);
        }
        (scene.facts(2).since_ns, scene.facts(2).polls) = (Some(NOW), 500);
        change(&mut scene);
        scene.with_view(SuspendedTasks::of)
    }

    #[test]
    fn tasks_of_one_place_that_were_suspended_when_the_process_died_are_known() {
        let of = scene(|_| {}).expect("two tasks");
        assert_eq!((of.tasks, of.first, of.for_ns), (2, 0, Some(12 * SECOND)));
        let moment = scene(|scene| (0..2).for_each(|task| scene.facts(task).since_ns = Some(NOW)));
        assert_eq!(moment.map(|of| (of.tasks, of.for_ns)), Some((2, None)), "nothing was recorded since");
    }

    #[test]
    fn if_one_of_them_did_something_else_nothing_is_said() {
        type Change = fn(&mut Scene);
        let changes: [(&str, Change); 6] = [
            ("it is polled", |scene| scene.facts(1).is_polled = true),
            ("it was woken", |scene| scene.facts(1).wakes = 1),
            ("it was never polled", |scene| scene.facts(1).polls = 0),
            ("it goes on often", |scene| {
                (scene.facts(1).polls, scene.facts(1).since_ns) = (500, Some(NOW));
            }),
            ("it is the main future", |scene| scene.facts(1).is_local = true),
            ("the process ended well", |scene| scene.model.is_end_unknown = false),
        ];
        for (what, change) in changes {
            assert_eq!(scene(change), None, "{what}");
        }
    }
}
