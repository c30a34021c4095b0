//! Tasks and threads that wait for answers, although those that got their requests wait for messages again.
//!
//! It makes no findings. Who got a request is presumed: see [`Peer`](crate::locks::Peer). It may have put the request
//! aside, and then nobody answers. Or it has handed the request on, and then somebody else will.
//!
//! # Method
//!
//! What answers directly is awake while somebody waits for its answer: it was woken by the request, or works on it. So
//! whoever waits for messages at that moment has put the request aside or handed it on. If it has made a task that
//! exists, that task may have the request, and nothing is said.
//!
//! A wait that lasts for the threshold counts, of a dead process one of a second. If the record of a dead process says
//! less of the time, the wait counts if no task and no worker was awake, and the one that got the request waits for
//! messages alone: then nobody works who has got the request.
//!
//! # Blind spots
//!
//! A request that was handed on and is answered late: by a timer, by a client of the network, or by a task that existed
//! before. A message from which the answer follows may still come.

use serde::Serialize;

use super::View;
use super::task_waits::task_of;
use super::view::Length;
use crate::locks::{TaskFacts, ThreadId, ThreadLocks};
use crate::threads::ThreadState;

/// Tasks and threads that wait for answers, and the one that has not answered most of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unanswered {
    /// How many wait for answers of that one.
    pub count: usize,
    /// The one of them that has waited longest.
    pub first: ThreadId,
    /// The one that got their requests, and waits for messages.
    pub answerer: ThreadId,
    /// For how long the first one has waited at least, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

impl Unanswered {
    pub(super) fn of(view: &View<'_>) -> Option<Unanswered> {
        if view.now.is_final && !view.now.is_end_unknown {
            return None;
        }
        let is_quiet = view.now.is_final && are_all_asleep(view);
        let waits =
            |(id, thread): (ThreadId, &ThreadLocks)| {
                let (wait, _, answerer) = thread.waits_for_peer().filter(|(_, peer, _)| peer.is_presumed)?;
                let counts = || {
                    let is_long = view.length(wait.since_ns, view.lasting_ns()) == Length::Long;
                    is_long || is_quiet && waits_for_nothing_else(view, answerer)
                };
                (thread.state == ThreadState::Present && has_put_aside(view, answerer) && counts())
                    .then_some((answerer, view.ago_ns(wait.since_ns), id))
            };
        let mut all: Vec<_> = view.now.threads.iter().enumerate().filter_map(waits).collect();
        all.sort_unstable_by_key(|&(answerer, for_ns, id)| (answerer, std::cmp::Reverse(for_ns), id));
        let of = all.chunk_by(|one, other| one.0 == other.0).max_by_key(|of| of.len())?;
        let &(answerer, for_ns, first) = of.first()?;
        Some(Unanswered { count: of.len(), first, answerer, for_ns })
    }
}

/// Whether a task waits for messages, and no task that it has made can have what it got before.
fn has_put_aside(view: &View<'_>, answerer: ThreadId) -> bool {
    let thread = &view.now.threads[answerer];
    let Some(task) = task_of(thread) else { return false };
    let is_receiver = thread.peer.as_deref().is_some_and(|peer| !peer.receives && !peer.is_presumed);
    // A slot may have been that of another task before.
    let is_own = |other: &ThreadLocks| {
        other.creator.is_some_and(|creator| creator.index == thread.slot_index)
            && other.claimed_ns >= thread.claimed_ns
    };
    let has_made = || view.now.threads.iter().any(|other| task_of(other).is_some() && is_own(other));
    is_receiver
        && task.is_asleep()
        && task.joins.is_empty()
        && task.waits.iter().all(|wait| !wait.is_for_lock && !wait.wait.is_timed)
        && !has_made()
}

/// Whether nothing but what is recorded of its waits can let a task go on.
fn waits_for_nothing_else(view: &View<'_>, task: ThreadId) -> bool {
    task_of(&view.now.threads[task]).is_some_and(TaskFacts::has_no_other_wakers)
}

/// Whether all tasks were suspended, and all workers slept that say so.
pub(super) fn are_all_asleep(view: &View<'_>) -> bool {
    view.now.threads.iter().all(|thread| {
        task_of(thread).is_none_or(TaskFacts::is_asleep)
            && thread.rest.as_ref().is_none_or(|rest| rest.is_asleep || thread.state != ThreadState::Present)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};
    use crate::locks::{Peer, Rest};

    /// Two clients that wait for answers of a server, which waits for messages, and a task that waits for a time.
    fn scene(mut scene: Scene) -> Scene {
        let [server, one, other, ticker] = ["server", "one", "other", "ticker"].map(|name| scene.task(name));
        let [inbox, answer, answers] = ["INBOX", "ANSWER", "ANSWERS"].map(|name| scene.lock(name));
        scene.awaits_peer(server, inbox, false, ticker);
        *peer(&mut scene, server) = Peer { user: None, present: None, ends: 3, ..*peer(&mut scene, server) };
        for (client, channel) in [(one, answer), (other, answers)] {
            scene.awaits_peer(client, channel, false, server);
            peer(&mut scene, client).is_presumed = true;
        }
        scene.model.threads[other].sleep.as_mut().unwrap().since_ns = Some(NOW - 20 * SECOND);
        scene
    }

    fn peer(scene: &mut Scene, of: ThreadId) -> &mut Peer {
        scene.model.threads[of].peer.as_mut().unwrap()
    }

    fn unanswered(scene: &Scene) -> Option<Unanswered> {
        scene.with_view(Unanswered::of)
    }

    #[test]
    fn requests_are_unanswered_if_the_one_that_got_them_waits_for_messages() {
        let expected = Unanswered { count: 2, first: 2, answerer: 0, for_ns: Some(20 * SECOND) };
        assert_eq!(unanswered(&scene(Scene::new())), Some(expected));
        assert_eq!(unanswered(&scene(Scene::killed())), Some(expected));
        assert_eq!(unanswered(&scene(Scene::dead())), None, "it ended in order");
    }

    #[test]
    fn whoever_may_still_answer_is_enough() {
        type Change = fn(&mut Scene);
        let changes: [(&str, Change); 7] = [
            ("it works on them", |scene| scene.facts(0).is_polled = true),
            ("a request has woken it", |scene| scene.facts(0).wakes = 1),
            ("it waits for a lock first", |scene| scene.facts(0).waits[0].is_for_lock = true),
            ("it waits for an answer itself", |scene| peer(scene, 0).is_presumed = true),
            ("it waits for room", |scene| peer(scene, 0).receives = true),
            ("it has made a task", |scene| {
                scene.model.threads[3].creator = Some(read_rip_ring::Position { index: 0, count: 7 })
            }),
            ("a time limit ends the waits", |scene| (1..3).for_each(|one| scene.facts(one).wakers = Some(2))),
        ];
        for (what, change) in changes {
            let mut scene = scene(Scene::new());
            change(&mut scene);
            assert_eq!(unanswered(&scene), None, "{what}");
        }
    }

    #[test]
    fn a_request_that_is_not_old_is_unanswered_only_where_nobody_was_awake_at_the_end() {
        let fresh = |mut scene: Scene| {
            for client in 1..3 {
                scene.model.threads[client].sleep.as_mut().unwrap().since_ns = Some(NOW);
            }
            scene
        };
        assert_eq!(unanswered(&fresh(scene(Scene::new()))), None, "it lives");
        let mut dead = fresh(scene(Scene::killed()));
        assert_eq!(unanswered(&dead).map(|of| (of.count, of.for_ns)), Some((2, Some(0))));
        let worker = dead.thread("tokio-rt-worker");
        let rest = |is_asleep| Rest { is_asleep, since_ns: None, awake_ns: 0, asleep_ns: 0 };
        dead.model.threads[worker].rest = Some(Box::new(rest(true)));
        assert!(unanswered(&dead).is_some());
        dead.facts(0).wakers = Some(2);
        assert_eq!(unanswered(&dead), None, "it may wait for something else besides");
        dead.facts(0).wakers = Some(1);
        dead.model.threads[worker].rest = Some(Box::new(rest(false)));
        assert_eq!(unanswered(&dead), None);
        dead.model.threads[worker].rest = None;
        dead.facts(3).is_polled = true;
        assert_eq!(unanswered(&dead), None);
    }
}
