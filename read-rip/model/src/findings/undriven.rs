//! Runtimes of tokio whose workers wait, or are in polls that do not return, so that nobody asks for events.
//!
//! # Question
//!
//! Do connections wait because one worker is in a poll that does not return?
//!
//! # Method
//!
//! The worker of tokio that has nothing to do waits for events of sockets, and the others wait for that one to wake
//! them. An event that makes one task ready wakes none of them: the worker polls the task itself. If that poll does not
//! return, nobody asks for events, although workers are free. The stacks say which workers are in polls. All threads
//! that poll tasks stood still between two readings, none of them waits for events, one has been in a poll for a tenth
//! of `threshold`, and the kernel has connections that the process has not accepted, or data that it has not read.
//!
//! # Blind spots
//!
//! A worker that computes shows no stack. A thread that waits for events of another library counts as one that serves.
//! A task may leave data unread on purpose. So the finding is only suspected.
//!
//! # Example output
//!
//! ```text
//! suspected long-poll: 1 of 4 workers is in a poll that has not returned, and no thread waits for events, for ...
//!     tokio-rt-worker[12] polls POST /orders/{id}[task 7], and waits for a lock at Shop::order shop.rs:40
//!     3 workers wait to be woken, and nobody asks for the events that would wake them
//!     2 connections wait until the process accepts them, 1 connection has data that the process has not read
//! ```

use std::num::NonZeroU64;

use foldhash::HashSet;
use serde::Serialize;

use super::finding::threads_of;
use super::starved_runtime::PART;
use super::words::{and_more, doing, lasting};
use super::{About, Advice, Analysis, Basis, Confidence, Finding, Kind, Paragraph, View, Words, executor};
use crate::locations::LocationId;
use crate::locks::{Doing, Seen, ThreadId, Unserved};
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct UndrivenRuntime;

/// At most this many polls are listed.
const LISTED_MAX: usize = 5;

/// Workers in polls that do not return, while nobody asks for events that have come.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Undriven {
    /// How many workers are in such polls.
    pub workers: usize,
    /// How many workers the process has.
    pub of_workers: usize,
    /// What those in polls do. Of many the first ones.
    pub polls: Vec<KeptWorker>,
    /// For how long the longest of these polls has stood still, ns, at least.
    pub still_ns: u64,
    /// What the process does not serve meanwhile.
    pub unserved: Unserved,
}

/// A worker in a poll that does not return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KeptWorker {
    /// The thread.
    pub thread: ThreadId,
    /// The task that it polls, if that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<ThreadId>,
    /// What it does.
    pub doing: Doing,
    /// Where it stands in the program; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
}

impl Analysis for UndrivenRuntime {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let Some((evidence, polled)) = undriven(view) else { return };
        let explained = [Kind::Deadlock, Kind::Futurelock, Kind::StarvedRuntime, Kind::LongPoll];
        let explained: HashSet<ThreadId> = threads_of(found, &explained);
        let tasks = evidence.polls.iter().filter_map(|of| of.task);
        if polled.iter().copied().chain(tasks).any(|thread| explained.contains(&thread)) {
            return;
        }
        let does = |thread: &ThreadId| view.now.threads[*thread].seen.map(|seen| seen.doing);
        let do_all_lock = polled.iter().all(|thread| does(thread) == Some(Doing::WaitsForLock));
        let are_all = evidence.workers == evidence.of_workers;
        let kind = if are_all { Kind::StarvedRuntime } else { Kind::LongPoll };
        // A suspended task that nobody polls is the usual holder.
        let advice = if do_all_lock { Advice::NoThreadLocksOverAwait } else { Advice::MoveBlockingWork };
        let hurt = evidence.unserved.count();
        let since_ns = view.now.now_ns.map(|now_ns| now_ns.saturating_sub(evidence.still_ns));
        let mut finding = Finding::new(kind, Confidence::Suspected, evidence, advice);
        finding.threads_hurt = hurt;
        finding.since_ns = since_ns;
        found.push(finding);
    }
}

/// What the stacks say of the workers, and the threads in polls, if nobody serves what has come.
pub(super) fn undriven(view: &View<'_>) -> Option<(Undriven, Vec<ThreadId>)> {
    let unserved = view.now.unserved;
    if unserved.count() == 0 || view.now.is_final {
        return None;
    }
    let present = || view.now.present();
    if present().any(|(_, thread)| thread.seen.is_none_or(|seen| seen.is_in_epoll)) {
        return None;
    }
    let workers: Vec<(ThreadId, Seen)> = present()
        .filter(|(_, thread)| executor(thread).is_some())
        .filter_map(|(id, thread)| Some((id, thread.seen?)))
        .collect();
    if workers.iter().any(|(_, seen)| seen.is_still != Some(true)) {
        return None;
    }
    let still_ns = |seen: &Seen| seen.asleep_ns.map(NonZeroU64::get).max(view.now.window_ns).unwrap_or(0);
    let mut polled: Vec<(ThreadId, Seen)> =
        workers.iter().copied().filter(|(_, seen)| seen.is_in_poll).collect();
    polled.sort_by_key(|(id, seen)| (std::cmp::Reverse(still_ns(seen)), *id));
    let longest_ns = still_ns(&polled.first()?.1);
    if longest_ns < view.threshold_ns / PART {
        return None;
    }
    let fact = |&(thread, seen): &(ThreadId, Seen)| KeptWorker {
        thread,
        task: view.now.polled_by(thread),
        doing: seen.doing,
        location: seen.place,
    };
    let evidence = Undriven {
        workers: polled.len(),
        of_workers: workers.len(),
        polls: polled.iter().take(LISTED_MAX).map(fact).collect(),
        still_ns: longest_ns,
        unserved,
    };
    Some((evidence, polled.into_iter().map(|(id, _)| id).collect()))
}

impl Basis for Undriven {
    fn about(&self, all: &mut About<'_>) {
        for fact in &self.polls {
            all.thread(fact.thread, fact.location);
            all.mentions.threads.extend(fact.task);
            all.main(fact.location, |words| {
                format!("{} {} here, in a poll", words.thread(fact.thread), doing(fact.doing, 1))
            });
        }
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let are = agree(self.workers, "is in a poll that has", "are in polls that have");
        let which = match self.of_workers {
            1 => "the only worker".to_owned(),
            all if all == self.workers => format!("all {all} workers"),
            all => format!("{} of {}", self.workers, counted(all as u64, "worker")),
        };
        let mut evidence: Vec<String> = self.polls.iter().map(|of| of.line(words)).collect();
        evidence.extend(and_more(self.workers, self.polls.len(), "more worker"));
        let parked = self.of_workers - self.workers;
        if parked > 0 {
            let wait = agree(parked, "waits", "wait");
            evidence.push(format!(
                "{} {wait} to be woken, and nobody asks for the events that would wake {}",
                counted(parked as u64, "worker"),
                agree(parked, "it", "them")
            ));
        }
        evidence.push(self.unserved.words());
        let lasting = lasting(", for at least ", Some(self.still_ns));
        Paragraph {
            summary: format!("{which} {are} not returned, and no thread waits for events{lasting}"),
            evidence,
        }
    }
}

impl KeptWorker {
    fn line(&self, words: &Words<'_>) -> String {
        let task = self.task.map(|task| format!("polls {}, and ", words.thread(task))).unwrap_or_default();
        let place = self.location.map(|place| format!(" at {}", words.location(place))).unwrap_or_default();
        format!("{} {task}{}{place}", words.thread(self.thread), doing(self.doing, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{SECOND, Scene, seen};

    /// A worker in a poll, one that waits to be woken, and a connection that waits.
    fn scene() -> Scene {
        let mut scene = Scene::new();
        scene.model.unserved = Unserved { not_accepted: 1, unread: 0 };
        for (is_in_poll, does) in [(true, Doing::WaitsForLock), (false, Doing::WaitsInside)] {
            let thread = scene.thread("tokio-rt-worker");
            let asleep_ns = NonZeroU64::new(3 * SECOND);
            scene.model.threads[thread].seen = Some(Seen { is_in_poll, asleep_ns, ..seen(does, true) });
        }
        scene
    }

    fn change(change: impl Fn(&mut Scene)) -> Vec<Finding> {
        let mut scene = scene();
        change(&mut scene);
        scene.run(&UndrivenRuntime)
    }

    fn of(scene: &mut Scene, thread: ThreadId) -> &mut Seen {
        scene.model.threads[thread].seen.as_mut().expect("it was seen")
    }

    #[test]
    fn connections_that_nobody_serves_while_a_worker_is_in_a_poll_are_found() {
        let found = scene().run(&UndrivenRuntime);
        let (kind, confidence) = (found[0].kind, found[0].confidence);
        assert_eq!((kind, confidence), (Kind::LongPoll, Confidence::Suspected));
        assert_eq!(found[0].advice, [Advice::NoThreadLocksOverAwait]);
        let (summary, evidence) = scene().says(&found[0]);
        assert_eq!(
            summary,
            "1 of 2 workers is in a poll that has not returned, and no thread waits for events, for at least 3.0 s"
        );
        assert_eq!(
            evidence[1..],
            [
                "1 worker waits to be woken, and nobody asks for the events that would wake it",
                "1 connection waits until the process accepts it"
            ]
        );
        let found = change(|scene| {
            *of(scene, 1) = Seen { is_in_poll: true, ..seen(Doing::WaitsOutside, true) };
        });
        assert_eq!(
            (found[0].kind, &found[0].advice[..]),
            (Kind::StarvedRuntime, &[Advice::MoveBlockingWork][..])
        );
        let Evidence::Undriven(all) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((all.workers, all.still_ns), (2, 3 * SECOND));
    }

    #[test]
    fn the_task_that_a_worker_polls_is_named() {
        let mut scene = scene();
        let (outer, request) = (scene.task("connection"), scene.task("GET /orders"));
        [outer, request].into_iter().for_each(|task| scene.polls(0, task));
        scene.facts(request).outer = Some(outer);
        let found = scene.run(&UndrivenRuntime);
        let line = scene.says(&found[0]).1.swap_remove(0);
        assert!(line.contains(" polls GET /orders, and waits for a lock"), "{line}");
    }

    #[test]
    fn nobody_is_accused_whom_nothing_waits_for_or_who_serves_or_goes_on() {
        let healthy: &[fn(&mut Scene)] = &[
            |scene| scene.model.unserved = Unserved::default(),
            |scene| of(scene, 1).is_in_epoll = true,
            |scene| of(scene, 1).is_still = Some(false),
            |scene| of(scene, 0).is_still = Some(false),
            |scene| of(scene, 0).is_in_poll = false,
            |scene| of(scene, 0).asleep_ns = NonZeroU64::new(SECOND / 2),
            |scene| scene.model.threads[1].seen = None,
            |scene| scene.model.is_final = true,
        ];
        for (at, healthy) in healthy.iter().enumerate() {
            assert!(change(healthy).is_empty(), "{at}");
        }
    }

    #[test]
    fn a_poll_that_is_explained_is_not_reported_again() {
        let explained = crate::findings::testing::finding_about(Kind::LongPoll, &[0]);
        assert!(scene().run_after(&UndrivenRuntime, vec![explained]).is_empty());
    }
}
