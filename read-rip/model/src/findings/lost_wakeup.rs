//! Lost wake-ups: a thread waits on a condition variable whose last signal came before the wait, or a task for a
//! notification that was given before.
//!
//! # Question
//!
//! Does a thread wait on a condition variable that was signalled when nobody waited, and is no thread left to signal it
//! again?
//!
//! # Method
//!
//! The interposer and `librip::sync` record each signal, and whether a thread may have waited then. A signal that
//! nobody heard has no effect, and it came before every wait that still lasts. So a condition is looked at if a thread
//! waits on it, some thread's last signal of it was one that nobody heard, and no thread's last signal of it was heard.
//! That alone is the state of an idle pool whose workers were busy when the last work came. It is a finding only if
//! nobody can bring more work: all threads of a living process wait, for a second or more, without a time limit, for
//! locks, for signals, or for the end of threads that exist. The kernel must have been asked about all of them.
//!
//! A task that waits at a `Notify` is like that, if all its waiters were notified when there were none, and all tasks
//! wait for one another (`task_balance`). A notification of one is not lost: the next task that waits has it.
//!
//! It is reported only where no other finding explains the waits.
//!
//! # Blind spots
//!
//! A signal handler, a timer that starts a thread, or another process may still wake a thread. So the finding is only
//! suspected. Signals of the condition variables of parking_lot are not recorded. Signals that were overwritten are not
//! known. A dead process may have had a thread that recorded nothing and could signal: such a process is not judged,
//! and `left_waiting` says who waited, and who had signalled.
//!
//! # Example output
//!
//! ```text
//! suspected lost-wakeup: 1 thread waits on a condition variable that was signalled when nobody waited, and no
//!     thread is left to signal it, for 3.2 s
//!     worker[12] waits on a condition variable, with the lock QUEUE, at take queue.c:20, for 3.2 s
//!     main[11] signalled it last at put queue.c:50, and no thread waited
//!     all 2 threads of the process wait
//! ```

use std::collections::BTreeMap;

use read_rip_ring::LockType;
use serde::Serialize;

use super::nobody_left::{is_explained, sleep_fact};
use super::task_waits::task_of;
use super::view::Length;
use super::{
    About, Advice, Analysis, Asleep, Balance, Basis, Confidence, Doubt, Finding, Kind, Outcome, Paragraph,
    SleepFact, View, Words,
};
use crate::locations::LocationId;
use crate::locks::{Awaited, Doing, LockModel, Signal, ThreadId, ThreadLocks, Wait};
use crate::threads::ThreadState;
use crate::units::{agree, counted};

/// See the file's description.
pub(super) struct LostWakeup;

/// All threads must have waited for this long, ns.
const LONG_NS: u64 = 1_000_000_000;

/// Threads that wait on a condition variable after its last signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unheard {
    /// How many threads wait on it.
    pub waiting: usize,
    /// The one of them that has waited longest.
    pub first: SleepFact,
    /// How many threads the process has. All of them wait.
    pub threads: usize,
    /// A thread that signalled the condition when nobody waited.
    pub signaller: ThreadId,
    /// Where it did that last.
    pub signalled_at: LocationId,
}

impl Analysis for LostWakeup {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        if is_explained(found) {
            return;
        }
        let balance = view.now.has_tasks().then(|| Balance::of(view, &[]));
        if let Some(balance) = balance.filter(|balance| balance.outcome == Outcome::AllTasksWait) {
            unheard(view, notified(view), balance.tasks.present, found);
        } else if are_all_threads_stuck(view) {
            unheard(view, conditioned(view), view.now.present().count(), found);
        }
    }
}

/// The waits for each signal, by the address of what is signalled.
type Waiting<'a> = BTreeMap<u64, Vec<&'a Wait>>;

/// The waits of tasks for notifications.
fn notified<'a>(view: &View<'a>) -> Waiting<'a> {
    let mut waiting = Waiting::new();
    for thread in &view.now.threads {
        for wait in task_of(thread).into_iter().flat_map(|task| &task.waits) {
            let lock = &view.now.locks[wait.wait.lock];
            if lock.nature.lock_type == LockType::Notification {
                waiting.entry(lock.address).or_default().push(&wait.wait);
            }
        }
    }
    waiting
}

/// The waits of threads on condition variables.
fn conditioned<'a>(view: &View<'a>) -> Waiting<'a> {
    let mut waiting = Waiting::new();
    for (_, thread) in view.now.present() {
        if let (Some(condition), Some(sleep)) = (thread.condition, &thread.sleep) {
            waiting.entry(condition).or_default().push(sleep);
        }
    }
    waiting
}

/// Adds a finding for each of what is waited for, if it was signalled last when nobody waited. `all`: how many threads,
/// or tasks, the process has.
fn unheard(view: &View<'_>, waiting: Waiting<'_>, all: usize, found: &mut Vec<Finding>) {
    let model = view.now;
    for (condition, mut waits) in waiting {
        let Some((signaller, signalled_at)) = last_unheard(model, condition) else { continue };
        waits.sort_by_key(|wait| wait.since_ns);
        let Some(&first) = waits.first() else { continue };
        let is_task = model.threads[first.thread].task.is_some();
        let (what, advice) = match is_task {
            true => (Asleep::Notification, Advice::ListenBeforeCheck),
            false => (Asleep::Condition, Advice::CheckBeforeWait),
        };
        let evidence = Unheard {
            waiting: waits.len(),
            first: sleep_fact(view, first, what),
            threads: all,
            signaller,
            signalled_at,
        };
        let (kind, confidence) = (Kind::LostWakeup, Confidence::Suspected);
        let mut finding = Finding::new(kind, confidence, evidence, advice);
        finding.since_ns = first.since_ns;
        finding.threads_hurt = all;
        finding.doubts = vec![Doubt::UnrecordedWaker];
        let may_be_short = model.is_final && view.length(first.since_ns, LONG_NS) != Length::Long;
        finding.doubts.extend(may_be_short.then_some(Doubt::EndUnknown));
        found.push(finding);
    }
}

/// Who signalled a condition variable last, and where, if nobody waited whenever threads signalled it last.
pub(super) fn last_unheard(model: &LockModel, condition: u64) -> Option<(ThreadId, LocationId)> {
    let own = model.threads.iter().enumerate().filter(|(_, thread)| thread.pid == model.pid);
    let signals = own.flat_map(|(id, thread)| thread.signals().iter().map(move |signal| (id, signal)));
    let signals: Vec<(ThreadId, &Signal)> =
        signals.filter(|(_, signal)| signal.condition == condition).collect();
    let is_any_heard = signals.iter().any(|(_, signal)| signal.is_heard);
    signals.last().filter(|_| !is_any_heard).map(|&(id, signal)| (id, signal.location))
}

/// Whether all threads of a living process have waited for long, until another thread of the process does something.
fn are_all_threads_stuck(view: &View<'_>) -> bool {
    let is_known = !view.now.is_final && view.now.unrecorded == Some(0);
    is_known && view.now.present().all(|(_, thread)| is_stuck(view, thread))
}

/// Whether a thread has waited for long, and waits until another thread of the process does something.
fn is_stuck(view: &View<'_>, thread: &ThreadLocks) -> bool {
    let does_wait = |doing| matches!(doing, Doing::WaitsForLock | Doing::WaitsForThread | Doing::WaitsInside);
    if !thread.seen.is_some_and(|seen| does_wait(seen.doing) && seen.is_still == Some(true)) {
        return false;
    }
    let is_endless = |is_steady: bool, is_timed: bool, since_ns: Option<u64>| {
        is_steady && !is_timed && (since_ns.is_none() || view.length(since_ns, LONG_NS) == Length::Long)
    };
    match thread.awaited() {
        Some(Awaited::End(join)) => {
            let exists = view.now.threads[join.joined].state == ThreadState::Present;
            exists && is_endless(join.is_steady, join.is_timed, join.since_ns)
        }
        Some(awaited) => {
            awaited.wait().is_some_and(|wait| is_endless(wait.is_steady, wait.is_timed, wait.since_ns))
        }
        None => false,
    }
}

impl Basis for Unheard {
    fn about(&self, all: &mut About<'_>) {
        all.sleep(&self.first);
        all.thread(self.signaller, [self.signalled_at]);
        all.other(self.signalled_at, |words| {
            format!("{} signals it here, and nobody waits", words.thread(self.signaller))
        });
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let is_notification = self.first.what == Asleep::Notification;
        let (what, is_given, left) = match is_notification {
            true => ("for a notification", "given", "nobody is left to give it"),
            false => ("on a condition variable", "signalled", "no thread is left to signal it"),
        };
        let count = |count: usize| match is_notification {
            true => counted(count as u64, "task"),
            false => words.threads(count),
        };
        let (waiting, all) = (count(self.waiting), count(self.threads));
        let summary = format!(
            "{waiting} {} {what} that was {is_given} when nobody waited, and {left}{}",
            agree(self.waiting, "waits", "wait"),
            words.lasting(", for ", self.first.for_ns)
        );
        let mut evidence = vec![words.sleep(&self.first)];
        evidence.extend(words.and_more(self.waiting - 1));
        let (thread, location) = (words.thread(self.signaller), words.location(self.signalled_at));
        evidence.push(match is_notification {
            true => format!("{thread} notified all waiters at {location}, and nobody waited"),
            false => words.unheard(self.signaller, self.signalled_at),
        });
        evidence.push(match all.strip_prefix("1 ") {
            Some(one) => format!("it is the only {one} of the process"),
            None => format!("all {all} of the process wait"),
        });
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{NOW, SECOND, Scene, finding_about, seen};
    use crate::locks::Seen;

    const READY: u64 = 0x1000;

    fn sees(scene: &mut Scene, thread: ThreadId, doing: Doing) {
        let seen = Seen { index: thread, ..seen(doing, true) };
        scene.model.threads[thread].seen = Some(seen);
    }

    fn signals(scene: &mut Scene, thread: ThreadId, is_heard: bool) {
        let location = scene.location("signal.c", 50);
        scene.model.threads[thread].condition_calls.get_or_insert_default().signals.push(Signal {
            condition: READY,
            is_heard,
            location,
        });
    }

    /// The main thread has signalled when nobody waited, and waits for the end of a thread that waits for the signal.
    fn scene() -> Scene {
        let mut scene = Scene::new();
        let (main, worker) = (scene.thread("main"), scene.thread("worker"));
        let lock = scene.lock("QUEUE");
        scene.joins(main, worker, |_| {});
        scene.waits_on_condition(worker, lock);
        scene.model.threads[worker].condition = Some(READY);
        signals(&mut scene, main, false);
        sees(&mut scene, main, Doing::WaitsForThread);
        sees(&mut scene, worker, Doing::WaitsInside);
        scene.model.unrecorded = Some(0);
        scene
    }

    #[test]
    fn a_signal_that_nobody_heard_before_the_wait_of_the_last_thread_is_suspected() {
        let found = scene().run(&LostWakeup);
        assert_eq!((found.len(), found[0].kind, found[0].threads_hurt), (1, Kind::LostWakeup, 2));
        assert_eq!(found[0].confidence, Confidence::Suspected);
        let Evidence::Unheard(unheard) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((unheard.signaller, unheard.first.thread, unheard.waiting), (0, 1, 1));
    }

    /// The main thread has notified all tasks that waited, when none did. Then a task began to wait for that.
    fn tasks() -> (Scene, ThreadId) {
        let mut scene = Scene::new();
        let (main, task, event) = (scene.thread("main"), scene.task("worker"), scene.lock("READY"));
        scene.awaits_peer(task, event, false, task);
        scene.model.threads[task].peer = None;
        scene.model.locks[event].nature.lock_type = LockType::Notification;
        let (condition, location) = (scene.model.locks[event].address, scene.location("notify.rs", 7));
        scene.model.threads[main].condition_calls.get_or_insert_default().signals.push(Signal {
            condition,
            is_heard: false,
            location,
        });
        sees(&mut scene, main, Doing::WaitsOutside);
        (scene, task)
    }

    #[test]
    fn a_notification_that_no_task_waited_for_is_suspected_where_all_tasks_wait() {
        let (scene, task) = tasks();
        let found = scene.run(&LostWakeup);
        assert_eq!((found.len(), found[0].kind, found[0].threads_hurt), (1, Kind::LostWakeup, 1));
        assert_eq!(
            (found[0].confidence, found[0].advice[0]),
            (Confidence::Suspected, Advice::ListenBeforeCheck)
        );
        let Evidence::Unheard(unheard) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((unheard.signaller, unheard.first.thread), (0, task));
        type Change = fn(&mut Scene, ThreadId);
        let changes: [(&str, Change); 6] = [
            ("somebody waited", |scene, _| {
                scene.model.threads[0].condition_calls.get_or_insert_default().signals[0].is_heard = true
            }),
            ("it was another one", |scene, _| {
                scene.model.threads[0].condition_calls.get_or_insert_default().signals[0].condition = READY
            }),
            ("nobody has notified", |scene, _| {
                scene.model.threads[0].condition_calls.get_or_insert_default().signals.clear()
            }),
            ("something else may wake the task", |scene, task| scene.facts(task).wakers = Some(2)),
            ("another task goes on", |scene, _| {
                let other = scene.task("other");
                scene.facts(other).is_polled = true;
            }),
            ("a thread runs", |scene, _| sees(scene, 0, Doing::Runs)),
        ];
        for (what, change) in changes {
            let (mut scene, task) = tasks();
            change(&mut scene, task);
            assert!(scene.run(&LostWakeup).is_empty(), "{what}");
        }
    }

    #[test]
    fn the_signaller_may_have_ended() {
        let mut scene = scene();
        let ended = scene.thread("ended");
        scene.model.threads[ended].state = ThreadState::Exited;
        scene.model.threads[0].condition_calls.get_or_insert_default().signals.clear();
        signals(&mut scene, ended, false);
        assert_eq!(scene.run(&LostWakeup).len(), 1);
    }

    #[test]
    fn whoever_may_signal_and_whatever_may_have_been_heard_is_enough() {
        type Change = fn(&mut Scene);
        let changes: [Change; 13] = [
            |scene| scene.model.threads[0].condition_calls.get_or_insert_default().signals[0].is_heard = true,
            |scene| {
                scene.model.threads[0].condition_calls.get_or_insert_default().signals[0].condition =
                    READY + 64
            },
            |scene| scene.model.threads[0].condition_calls.get_or_insert_default().signals.clear(),
            |scene| signals(scene, 1, true),
            |scene| sees(scene, 0, Doing::WaitsOutside),
            |scene| sees(scene, 1, Doing::Runs),
            |scene| scene.model.threads[0].seen = None,
            |scene| scene.model.threads[1].seen.as_mut().unwrap().is_still = Some(false),
            |scene| scene.model.threads[0].join.as_mut().unwrap().is_timed = true,
            |scene| scene.model.threads[1].state = ThreadState::Exited,
            |scene| scene.model.threads[1].sleep.as_mut().unwrap().since_ns = Some(NOW - SECOND / 2),
            |scene| scene.model.unrecorded = None,
            |scene| {
                let other = scene.thread("listens");
                sees(scene, other, Doing::WaitsOutside);
            },
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut scene = scene();
            change(&mut scene);
            assert!(scene.run(&LostWakeup).is_empty(), "change {at}");
        }
        let deadlock = finding_about(Kind::Deadlock, &[0]);
        assert!(scene().run_after(&LostWakeup, vec![deadlock]).is_empty(), "explained");
    }
}
