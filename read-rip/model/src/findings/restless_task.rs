//! Restless tasks: a task that is polled again and again, and does nothing.
//!
//! # Question
//!
//! Does a task wait for something by yielding, over and over, while nobody is left who changes anything?
//!
//! # Method
//!
//! A task that gives way at once, as with `yield_now`, is polled tens of thousands of times a second. A task that works
//! a little in each poll is not polled as often, and one that others wake, as the end of a busy channel, is not alone.
//! So it is suspected if one task was polled at least 40,000 times a second, recorded hardly anything meanwhile and
//! waits for nothing that is recorded, and if no other task of the process was polled often. In a living process the
//! time is that between the readings. In a dead one it is the life of the task up to its last poll, and the others were
//! not polled for a tenth of a second before.
//!
//! # Blind spots
//!
//! A socket or a thread that records nothing may wake the task as often. Several such tasks look like tasks that wake
//! one another, and are not told.
//!
//! # Example output
//!
//! ```text
//! suspected livelock: refresher[task 2] is polled 208,000 times a second, and no other task does anything
//!     refresher[task 2] waits for nothing that is recorded, last at refresh.rs:10
//! ```

use foldhash::HashMap;
use read_rip_ring::TaskKind;
use serde::Serialize;

use super::task_waits::task_of;
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locations::LocationId;
use crate::locks::{TaskFacts, ThreadId, ThreadLocks};

/// See the file's description.
pub(super) struct RestlessTask;

/// A task that only yields is polled at least this often, and no other one is polled a tenth as often.
const POLLS_A_SECOND: u64 = 40_000;
const OTHERS_A_SECOND: u64 = POLLS_A_SECOND / 10;
/// Over a shorter time nothing is said.
const TIME_MIN_NS: u64 = 100_000_000;
/// A task that does something records something in one of so many polls.
const POLLS_A_RECORD: u64 = 1000;
const SECOND_NS: u64 = 1_000_000_000;

/// A task that is polled again and again, and does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Restless {
    /// The task.
    pub task: ThreadId,
    /// How often it was polled.
    pub polls: u64,
    /// Within this time, ns.
    pub within_ns: u64,
    /// Where it was last, by its marks, or where the program made it; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
}

/// How often a task was polled within a time.
#[derive(Clone, Copy)]
struct Polls {
    count: u64,
    within_ns: u64,
}

impl Polls {
    fn is_at_least(self, a_second: u64) -> bool {
        let wanted = u128::from(a_second) * u128::from(self.within_ns);
        u128::from(self.count) * u128::from(SECOND_NS) >= wanted
    }
}

impl Analysis for RestlessTask {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        if view.now.tasks == 0 {
            return;
        }
        let before = PollsBefore::of(view);
        let polls: Vec<(ThreadId, Polls)> = (0..view.now.threads.len())
            .filter_map(|id| {
                let task = task_of(&view.now.threads[id]).filter(|task| task.kind == TaskKind::Async)?;
                Some((id, before.polls(view, &view.now.threads[id], task)?))
            })
            .collect();
        let is_busy = |polls: Polls| polls.within_ns >= TIME_MIN_NS && polls.is_at_least(OTHERS_A_SECOND);
        let mut busy = polls.iter().filter(|(_, polls)| is_busy(*polls));
        let (Some(&(id, polls)), None) = (busy.next(), busy.next()) else { return };
        let thread = &view.now.threads[id];
        if !polls.is_at_least(POLLS_A_SECOND) || !does_nothing(thread, polls) || others_were_polled(view, id)
        {
            return;
        }
        let made_at = task_of(thread).and_then(|task| task.made_at);
        let location = thread.last.or(made_at);
        let evidence = Restless { task: id, polls: polls.count, within_ns: polls.within_ns, location };
        let mut finding =
            Finding::new(Kind::Livelock, Confidence::Suspected, evidence, Advice::AwaitTheChange);
        finding.doubts = vec![Doubt::UnrecordedWork];
        found.push(finding);
    }
}

/// Whether a task recorded hardly anything while it was polled so often, and waits for nothing recorded.
fn does_nothing(thread: &ThreadLocks, polls: Polls) -> bool {
    let waits = task_of(thread).is_none_or(|task| !task.waits.is_empty() || !task.joins.is_empty());
    let recorded = thread.advanced.unwrap_or(thread.overwritten + thread.steps.len() as u64);
    !waits && recorded * POLLS_A_RECORD <= polls.count && thread.wait.is_none() && thread.sleep.is_none()
}

/// Whether another task of a dead process was polled shortly before the last poll of this one.
fn others_were_polled(view: &View<'_>, id: ThreadId) -> bool {
    let last_ns = |id: ThreadId| task_of(&view.now.threads[id])?.since_ns;
    let Some(own_ns) = last_ns(id).filter(|_| view.now.is_final) else { return false };
    let others = (0..view.now.threads.len()).filter(|&other| other != id);
    others.filter_map(last_ns).any(|other_ns| other_ns.saturating_add(TIME_MIN_NS) > own_ns)
}

/// How often each task was polled before the earlier reading of a living process: by its slot, and when it was made.
struct PollsBefore(Option<HashMap<(u64, u64), u64>>);

impl PollsBefore {
    fn of(view: &View<'_>) -> PollsBefore {
        let polls =
            |thread: &ThreadLocks| Some(((thread.slot_index, thread.claimed_ns), task_of(thread)?.polls));
        PollsBefore(view.before.map(|before| before.threads.iter().filter_map(polls).collect()))
    }

    /// How often a task was polled between the readings, or in its life up to its last poll if the process is dead.
    fn polls(&self, view: &View<'_>, thread: &ThreadLocks, task: &TaskFacts) -> Option<Polls> {
        if view.now.is_final {
            let within_ns = task.since_ns?.checked_sub(thread.claimed_ns)?;
            return Some(Polls { count: task.polls, within_ns });
        }
        let before = self.0.as_ref()?.get(&(thread.slot_index, thread.claimed_ns)).copied().unwrap_or(0);
        Some(Polls { count: task.polls.checked_sub(before)?, within_ns: view.now.window_ns? })
    }
}

impl Basis for Restless {
    fn about(&self, all: &mut About<'_>) {
        all.thread(self.task, self.location);
        all.main(self.location, |words| format!("{} was last here", words.thread(self.task)));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let a_second = u128::from(self.polls) * u128::from(SECOND_NS) / u128::from(self.within_ns.max(1));
        let task = words.thread(self.task);
        let at = self.location.map_or_else(String::new, |at| format!(", last at {}", words.location(at)));
        Paragraph {
            summary: format!("{task} is polled {a_second} times a second, and no other task does anything"),
            evidence: vec![format!("{task} waits for nothing that is recorded{at}")],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};

    /// A reading at some time: a task that was polled so often in each second of its life, and one that is idle.
    fn reading(mut scene: Scene, polls_a_second: u64, at_ns: u64) -> (Scene, ThreadId) {
        let (task, idle) = (scene.task("yields"), scene.task("idle"));
        for id in [task, idle] {
            scene.model.threads[id].claimed_ns = NOW - 10 * SECOND;
        }
        // It was polled for the last time when it was made.
        (scene.facts(idle).polls, scene.facts(idle).since_ns) = (1, Some(NOW - 10 * SECOND));
        let facts = scene.facts(task);
        facts.polls = polls_a_second * (at_ns - (NOW - 10 * SECOND)) / SECOND;
        (facts.is_polled, facts.since_ns) = (true, Some(at_ns));
        (scene, task)
    }

    fn scene(scene: Scene, polls_a_second: u64) -> (Scene, ThreadId) {
        let window_ns = scene.model.window_ns;
        let (mut scene, task) = reading(scene, polls_a_second, NOW);
        let before =
            window_ns.map(|window_ns| reading(Scene::new(), polls_a_second, NOW - window_ns).0.model);
        scene.before = before;
        (scene, task)
    }

    #[test]
    fn a_task_that_only_yields_is_a_suspected_livelock_living_and_dead() {
        for made in [Scene::new, Scene::dead] {
            let found = scene(made(), 200_000).0.run(&RestlessTask);
            let kinds: Vec<_> = found.iter().map(|finding| (finding.kind, finding.confidence)).collect();
            assert_eq!(kinds, [(Kind::Livelock, Confidence::Suspected)]);
        }
    }

    #[test]
    fn a_task_that_works_or_waits_or_is_woken_by_another_one_is_none() {
        type Change = fn(&mut Scene, ThreadId);
        let changes: [(&str, Change); 4] = [
            ("it recorded something", |scene, task| {
                if !scene.model.is_final {
                    scene.model.threads[task].advanced = Some(100);
                }
                scene.model.threads[task].overwritten = 10_000;
            }),
            ("it waits for a lock", |scene, task| {
                let lock = scene.lock("LOCK");
                scene.awaits(task, lock);
            }),
            ("another task is busy too", |scene, _| {
                let peer = scene.task("peer");
                scene.model.threads[peer].claimed_ns = NOW - 10 * SECOND;
                (scene.facts(peer).polls, scene.facts(peer).since_ns) = (2_000_000, Some(NOW));
            }),
            ("it is a call that blocks", |scene, task| scene.facts(task).kind = TaskKind::Blocking),
        ];
        for made in [Scene::new, Scene::dead] {
            for (what, change) in changes {
                let (mut scene, task) = scene(made(), 200_000);
                change(&mut scene, task);
                assert!(scene.run(&RestlessTask).is_empty(), "{what}");
            }
            assert!(scene(made(), 20_000).0.run(&RestlessTask).is_empty(), "it works for 50 us in each poll");
        }
        let (mut scene, _) = scene(Scene::dead(), 200_000);
        scene.facts(1).since_ns = Some(NOW - SECOND / 50);
        assert!(scene.run(&RestlessTask).is_empty(), "another task was polled just before the death");
    }
}
