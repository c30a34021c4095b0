//! Nobody left: all threads of a process wait, and no thread is left to wake another one.
//!
//! # Question
//!
//! Do all threads of a living process wait for locks, condition variables and semaphores, without a time limit?
//!
//! # Method
//!
//! Every thread of the process has recorded something, every one of them waits, and each wait was the same in both
//! readings. From the threshold on (10 s, counted from the last wait that began), nobody is left to signal or post.
//! It is reported only where no other finding explains the waits: then all threads wait on condition variables and
//! semaphores, and this is a finding of its own. If other processes have the memory of one of these, as workers of a
//! pool of processes do, somebody is left.
//!
//! # Blind spots
//!
//! A signal handler, or a timer that starts a thread, may still wake a thread. So the finding is only
//! suspected. A thread that never recorded anything may do so too: with such a thread there is no finding, and the
//! balance says how many there are. The threads of a dead process that recorded nothing are not known at all.
//!
//! # Example output
//!
//! ```text
//! suspected long-wait: all 3 threads wait, and nobody is left to wake them, for 41 s
//!     main[12] waits on a condition variable at main main.rs:20, for 60 s
//! ```

use read_rip_ring::LockType;
use serde::Serialize;

use super::{
    About, Advice, Analysis, Asleep, Basis, Confidence, Doubt, Finding, Kind, Paragraph, SleepFact, View,
    Words,
};
use crate::locks::{Awaited, LockModel, ThreadId, ThreadLocks, Wait};

/// See the file's description.
pub(super) struct NobodyLeft;

/// At most this many threads are listed.
const LISTED_MAX: usize = 5;
/// What explains why threads wait.
const EXPLANATIONS: &[Kind] = &[
    Kind::Deadlock,
    Kind::Futurelock,
    Kind::Unreleased,
    Kind::LostOwner,
    Kind::DestroyedLock,
    Kind::StarvedHolder,
    Kind::LongWait,
    Kind::PileUp,
    Kind::Convoy,
    Kind::LostWakeup,
];

/// Whether a finding explains why threads wait.
pub(super) fn is_explained(found: &[Finding]) -> bool {
    found.iter().any(|finding| EXPLANATIONS.contains(&finding.kind))
}

/// A process all of whose threads wait, so that no thread is left to wake another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Abandoned {
    /// How many threads.
    pub threads: usize,
    /// How many of them wait for locks.
    pub on_locks: usize,
    /// How many wait on condition variables.
    pub on_conditions: usize,
    /// How many wait for units of semaphores.
    pub on_semaphores: usize,
    /// How many wait at barriers.
    pub on_barriers: usize,
    /// How many wait for messages, or to be woken by another thread.
    pub on_messages: usize,
    /// For how long all of them have waited, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
    /// The first of them, those that have waited longest first.
    pub first: Vec<SleepFact>,
}

impl Analysis for NobodyLeft {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let model = view.now;
        if model.is_final || model.unrecorded != Some(0) {
            return;
        }
        if is_explained(found) {
            return;
        }
        let mut waits: Vec<(ThreadId, &Wait)> = Vec::new();
        for (id, thread) in model.present() {
            // Other processes may have the memory of a semaphore. A runtime such as Python's handles signals: a handler
            // in that language may set what a thread waits for.
            let is_woken_outside =
                thread.seen.is_some_and(|seen| seen.doing.is_outside() || seen.is_in_runtime);
            match endless_wait(thread).filter(|_| !is_woken_outside) {
                Some(wait) => waits.push((id, wait)),
                None => return,
            }
        }
        let Some(last_ns) = waits.iter().map(|(_, wait)| wait.since_ns).max().flatten() else { return };
        if waits.iter().any(|(_, wait)| wait.since_ns.is_none())
            || view.ago_ns(Some(last_ns)).is_none_or(|for_ns| for_ns < view.threshold_ns)
        {
            return;
        }
        found.push(finding(view, waits, last_ns));
    }
}

/// The wait of a thread that has lasted from one reading to the other, and does not end by itself.
fn endless_wait(thread: &ThreadLocks) -> Option<&Wait> {
    thread.awaited()?.wait().filter(|wait| wait.is_steady && !wait.is_timed)
}

/// A wait as a finding shows it.
pub(super) fn sleep_fact(view: &View<'_>, wait: &Wait, what: Asleep) -> SleepFact {
    let Wait { thread, lock, location, since_ns, .. } = *wait;
    SleepFact { thread, lock, what, location, for_ns: view.ago_ns(since_ns) }
}

/// On what a blocked thread waits.
pub(super) fn asleep(model: &LockModel, thread: &ThreadLocks) -> Asleep {
    match thread.awaited() {
        Some(Awaited::Lock(_)) => Asleep::Lock,
        Some(Awaited::Unit { lock, .. }) => match model.locks[lock].nature.lock_type {
            LockType::Barrier => Asleep::Barrier,
            LockType::Message => Asleep::Message,
            LockType::Wake => Asleep::Wake,
            LockType::Notification => Asleep::Notification,
            _ => Asleep::Semaphore,
        },
        Some(Awaited::End(_)) => Asleep::Thread,
        Some(Awaited::Condition { .. }) | None => Asleep::Condition,
    }
}

fn finding(view: &View<'_>, mut waits: Vec<(ThreadId, &Wait)>, last_ns: u64) -> Finding {
    waits.sort_by_key(|(_, wait)| wait.since_ns);
    let what = |thread: ThreadId| asleep(view.now, &view.now.threads[thread]);
    let count = |wanted: Asleep| waits.iter().filter(|&&(thread, _)| what(thread) == wanted).count();
    let fact = |&(thread, wait): &(ThreadId, &Wait)| sleep_fact(view, wait, what(thread));
    let evidence = Abandoned {
        threads: waits.len(),
        on_locks: count(Asleep::Lock),
        on_conditions: count(Asleep::Condition),
        on_semaphores: count(Asleep::Semaphore),
        on_barriers: count(Asleep::Barrier),
        on_messages: count(Asleep::Message) + count(Asleep::Wake) + count(Asleep::Notification),
        for_ns: view.ago_ns(Some(last_ns)),
        first: waits.iter().take(LISTED_MAX).map(fact).collect(),
    };
    let mut finding = Finding::new(Kind::LongWait, Confidence::Suspected, evidence, Advice::CheckSignal);
    finding.since_ns = Some(last_ns);
    finding.threads_hurt = waits.len();
    finding.doubts = vec![Doubt::UnrecordedWaker];
    finding
}

impl Basis for Abandoned {
    fn about(&self, all: &mut About<'_>) {
        self.first.iter().for_each(|one| all.sleep(one));
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (all, lasting) = (words.threads(self.threads), words.lasting(", for ", self.for_ns));
        let summary = match all.strip_prefix("1 ") {
            Some(one) => format!("the only {one} waits, and nobody is left to wake it{lasting}"),
            None => format!("all {all} wait, and nobody is left to wake them{lasting}"),
        };
        let mut evidence: Vec<String> = self.first.iter().map(|one| words.sleep(one)).collect();
        evidence.extend(words.and_more(self.threads.saturating_sub(self.first.len())));
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene, finding_about, seen};
    use crate::locks::Doing;

    /// Three threads that wait on a condition variable; every thread of the process has recorded something.
    fn scene() -> Scene {
        let mut scene = Scene::new();
        let lock = scene.lock("QUEUE");
        for _ in 0..3 {
            let thread = scene.thread("worker");
            scene.waits_on_condition(thread, lock);
        }
        scene.model.unrecorded = Some(0);
        scene
    }

    #[test]
    fn a_process_whose_threads_all_wait_on_conditions_has_nobody_left() {
        let found = scene().run(&NobodyLeft);
        assert_eq!((found.len(), found[0].kind, found[0].threads_hurt), (1, Kind::LongWait, 3));
        assert_eq!(found[0].confidence, Confidence::Suspected);
    }

    #[test]
    fn somebody_who_may_wake_the_others_is_enough() {
        type Change = fn(&mut Scene);
        let changes: [Change; 9] = [
            // The kernel says that another process may wake it.
            |scene| scene.model.threads[1].seen = Some(seen(Doing::WaitsOutside, true)),
            // A handler in its language may.
            |scene| {
                let seen = seen(Doing::WaitsInside, true);
                scene.model.threads[1].seen = Some(crate::locks::Seen { is_in_runtime: true, ..seen });
            },
            |scene| scene.model.unrecorded = Some(1),
            |scene| scene.model.unrecorded = None,
            |scene| {
                scene.thread("main");
            },
            |scene| scene.model.threads[1].sleep.as_mut().unwrap().is_timed = true,
            |scene| scene.model.threads[1].sleep.as_mut().unwrap().is_steady = false,
            |scene| scene.model.threads[1].sleep.as_mut().unwrap().since_ns = Some(NOW - SECOND),
            |scene| scene.model.threads[1].sleep.as_mut().unwrap().since_ns = None,
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut scene = scene();
            change(&mut scene);
            assert!(scene.run(&NobodyLeft).is_empty(), "change {at}");
        }
        let deadlock = finding_about(Kind::Deadlock, &[0]);
        assert!(scene().run_after(&NobodyLeft, vec![deadlock]).is_empty(), "explained");
    }
}
