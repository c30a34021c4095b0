//! Threads and tasks that wait at a barrier for one that has ended.
//!
//! It makes no findings. A barrier does not say who has to come. One that came in earlier rounds and has ended does not
//! come again, but somebody else may come in its place.
//!
//! # Method
//!
//! Fewer wait than a round takes, all of them without a time limit, and all for the threshold: of a dead process for a
//! second, or no task and no worker was awake. One that has waited at the same place has ended. None of the others
//! that exist has waited there, and all existed before that end: none was made to take its place.
//!
//! # Blind spots
//!
//! Several barriers may have one place.

use read_rip_ring::LockType;
use serde::Serialize;

use super::View;
use super::idle_pool::{Place, place_of};
use super::task_waits::task_of;
use super::unanswered::are_all_asleep;
use super::view::Length;
use crate::locks::{LockId, Step, StepKind, TaskFacts, ThreadId, ThreadLocks, Wait};
use crate::threads::ThreadState;

/// A barrier at which too few wait, and one that has waited at the same place and ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissingParty {
    /// The barrier.
    pub lock: LockId,
    /// How many wait there.
    pub waiting: usize,
    /// How many a round takes.
    pub round: u16,
    /// The one of them that came last.
    pub last: ThreadId,
    /// For how long it has waited at least, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// One that has waited at the same place, and has ended.
    pub ended: ThreadId,
}

impl MissingParty {
    pub(super) fn of(view: &View<'_>) -> Option<MissingParty> {
        if view.now.is_final && !view.now.is_end_unknown {
            return None;
        }
        (0..view.now.locks.len()).find_map(|lock| at(view, lock))
    }
}

fn at(view: &View<'_>, id: LockId) -> Option<MissingParty> {
    let (lock, model) = (&view.now.locks[id], view.now);
    let round = lock.threads_of_round.filter(|_| lock.nature.lock_type == LockType::Barrier)?;
    let waits: Vec<&Wait> = lock.semaphore_waiters.iter().collect();
    let is_endless = |wait: &&Wait| {
        let is_alone = task_of(&model.threads[wait.thread]).is_none_or(TaskFacts::has_no_other_wakers);
        wait.is_steady && !wait.is_timed && is_alone
    };
    let last = waits.iter().max_by_key(|wait| wait.since_ns)?;
    let limit_ns = view.lasting_ns();
    let is_long = || {
        let is_quiet = model.is_final && are_all_asleep(view);
        is_quiet || waits.iter().all(|wait| view.length(wait.since_ns, limit_ns) == Length::Long)
    };
    if waits.len() >= usize::from(round) || !waits.iter().all(is_endless) || !is_long() {
        return None;
    }
    // A step does not say which barrier it was at.
    let places: Vec<Place<'_>> = waits.iter().map(|wait| place_of(view.locations[wait.location])).collect();
    let is_at = |step: &Step| places.contains(&place_of(view.locations[step.location]));
    let uses =
        |thread: &ThreadLocks| thread.steps.iter().any(|step| step.kind == StepKind::Blocked && is_at(&step));
    let gone = |(_, thread): &(ThreadId, &ThreadLocks)| thread.state == ThreadState::Exited && uses(thread);
    let (ended, thread) =
        model.threads.iter().enumerate().filter(gone).max_by_key(|(_, thread)| thread.exited_ns)?;
    let ended_ns = thread.exited_ns?;
    let waits_there = |other: ThreadId| waits.iter().any(|wait| wait.thread == other);
    let may_come = |(other, thread): (ThreadId, &ThreadLocks)| {
        let is_there = thread.state == ThreadState::Present && !waits_there(other);
        // A worker claims its slot at its first sleep.
        let is_alike = thread.task.is_some() == model.threads[last.thread].task.is_some();
        is_there && (thread.claimed_ns > ended_ns && is_alike || uses(thread))
    };
    (!model.threads.iter().enumerate().any(may_come)).then_some(MissingParty {
        lock: id,
        waiting: waits.len(),
        round,
        last: last.thread,
        for_ns: view.ago_ns(last.since_ns),
        ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};

    /// Two tasks that wait at a barrier for three, one that has used it and ended, and one that waits for a time.
    fn scene(mut scene: Scene) -> Scene {
        let barrier = scene.lock("ROUND");
        for name in ["one", "other"] {
            let task = scene.task(name);
            scene.awaits_peer(task, barrier, false, task);
            scene.model.threads[task].peer = None;
        }
        scene.model.locks[barrier].nature.lock_type = LockType::Barrier;
        scene.model.locks[barrier].threads_of_round = Some(3);
        let [third, _] = ["third", "ticker"].map(|name| scene.task(name));
        blocked(&mut scene, third);
        let third = &mut scene.model.threads[third];
        (third.state, third.exited_ns) = (ThreadState::Exited, Some(NOW - 30 * SECOND));
        scene
    }

    /// It has waited where the two wait.
    fn blocked(scene: &mut Scene, task: ThreadId) {
        scene.step(task, StepKind::Blocked, 0);
        let at = scene.model.threads[0].sleep.as_ref().unwrap().location;
        scene.steps(task).last_mut().unwrap().location = at;
    }

    fn missing(scene: &Scene) -> Option<(usize, u16, ThreadId)> {
        scene.with_view(MissingParty::of).map(|of| (of.waiting, of.round, of.ended))
    }

    #[test]
    fn a_round_that_lacks_one_that_has_ended_is_told() {
        for of in [Scene::new(), Scene::killed()] {
            assert_eq!(missing(&scene(of)), Some((2, 3, 2)));
        }
        assert_eq!(missing(&scene(Scene::dead())), None, "it ended in order");
    }

    #[test]
    fn a_worker_that_sleeps_first_does_not_come() {
        let mut scene = scene(Scene::new());
        let worker = scene.thread("tokio-rt-worker");
        scene.model.threads[worker].claimed_ns = NOW - SECOND;
        assert!(missing(&scene).is_some());
    }

    #[test]
    fn whoever_may_come_is_enough() {
        type Change = fn(&mut Scene);
        let changes: [(&str, Change); 7] = [
            ("the third exists", |scene| scene.model.threads[2].state = ThreadState::Present),
            ("another one has waited there", |scene| blocked(scene, 3)),
            ("another one was made since", |scene| scene.model.threads[3].claimed_ns = NOW - SECOND),
            ("one has come just now", |scene| {
                scene.model.locks[0].semaphore_waiters[1].since_ns = Some(NOW - SECOND)
            }),
            ("one has a time limit", |scene| scene.facts(1).wakers = Some(2)),
            ("a round takes two", |scene| scene.model.locks[0].threads_of_round = Some(2)),
            ("how many it takes is not known", |scene| scene.model.locks[0].threads_of_round = None),
        ];
        for (what, change) in changes {
            let mut scene = scene(Scene::new());
            change(&mut scene);
            assert_eq!(missing(&scene), None, "{what}");
        }
    }
}
