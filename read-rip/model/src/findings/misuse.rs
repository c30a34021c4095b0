//! Misuse: calls on locks that the C library refused, or that the rules of the lock forbid.
//!
//! # Question
//!
//! Did a call on a lock fail in a way that only an error in the program explains?
//!
//! # Method
//!
//! The interposer notes errors that the C library returns: EDEADLK, EPERM, EBUSY when a lock is destroyed, EOWNERDEAD,
//! ENOTRECOVERABLE, EAGAIN, EINVAL for a lock that was destroyed, EOVERFLOW. It also notes a wait on a condition
//! variable with a mutex that names another owner, or none. The ring keeps the first callers of each kind, whatever
//! comes later. So the finding is proven: the call was made, and it had that result. A program that expects the error
//! and handles it can suppress the finding.
//!
//! A lock that was initialised while a thread waited for it, and still waits, is misuse too: the thread began to wait
//! earlier than the initialisation was recorded.
//!
//! A condition variable that is destroyed while a thread waits on it, and still waits, is misuse. That a thread waits
//! is not enough: it may be woken already, and a program may destroy the condition variable then. So the kernel must
//! say that it still sleeps on it, and then the finding is proven; or no signal is known that it could have heard, and
//! then it is potential.
//!
//! A try that found a lock taken, and a wait whose time was up, are no errors. An owner that ended is none either, as
//! long as nobody is refused: the next owner may have repaired the lock.
//!
//! # Blind spots
//!
//! Locks of `librip::sync` and `librip::raw` do not return such errors. The functions of `threads.h` return one code
//! for all of them, which is not noted. Four callers of each kind are kept.
//!
//! The C library marks only mutexes as destroyed. The use of another destroyed object is not noticed: a program may
//! have initialised the memory again by assignment.
//!
//! # Example output
//!
//! ```text
//! proven misuse: worker[12] may not unlock QUEUE: another thread owns it, or none (EPERM)
//!     at drain queue.c:70, 3 times, first 12 s ago
//! ```

use read_rip_ring::IncidentKind;
use serde::Serialize;

use super::named::worded;
use super::{About, Advice, Analysis, Basis, Confidence, Doubt, Finding, Kind, Paragraph, View, Words};
use crate::locations::LocationId;
use crate::locks::{
    Doing, EndOfCondition, LockId, LockIncident, Seen, Signal, StepKind, ThreadId, ThreadLocks,
};
use crate::threads::ThreadState;
use crate::units::duration;

/// See the file's description.
pub(super) struct Misuse;

/// A call on a lock that failed, or that is forbidden.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefusedCall {
    /// Why.
    pub what: Refusal,
    /// The thread that called first; `None`: its slot has another owner now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The id of that thread.
    pub tid: u32,
    /// The lock of the first call.
    pub lock: LockId,
    /// Where the call is.
    pub location: LocationId,
    /// How often it failed there.
    pub count: u32,
    /// How long ago it failed first; `None`: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_ago_ns: Option<u64>,
}

worded! {
    /// Why a call on a lock failed, or is forbidden: what a thread did with `LOCK`.
    pub enum Refusal {
        Relock = "relock": "may not lock LOCK: it owns the lock, or the owner waits for it",
        Unlock = "unlock-by-other": "may not unlock LOCK: it does not own the lock",
        Destroy = "destroy-in-use": "may not destroy LOCK: the lock is in use",
        OwnerDied = "owner-died": "got LOCK from an owner that ended without unlocking it",
        NotRecoverable = "not-recoverable": "cannot lock LOCK any more: its owner ended, and nobody repaired it",
        TooOften = "too-often": "cannot lock LOCK once more: it is held too many times",
        Destroyed = "destroyed": "used LOCK after it was destroyed",
        SemaphoreFull = "semaphore-full": "cannot post LOCK: it has as many units as it can have",
        WaitWithoutLock = "wait-without-lock": "waited on a condition with LOCK, which it did not hold",
        InitialisedInUse = "initialised-in-use": "initialised LOCK while another thread waited for it",
        DestroyedInUse = "destroyed-in-use":
            "destroyed a condition variable on which a thread waits, with the lock LOCK",
    }
}

impl From<IncidentKind> for Refusal {
    fn from(kind: IncidentKind) -> Refusal {
        match kind {
            IncidentKind::Relock => Refusal::Relock,
            IncidentKind::Unlock => Refusal::Unlock,
            IncidentKind::Destroy => Refusal::Destroy,
            IncidentKind::OwnerDied => Refusal::OwnerDied,
            IncidentKind::NotRecoverable => Refusal::NotRecoverable,
            IncidentKind::TooOften => Refusal::TooOften,
            IncidentKind::Destroyed => Refusal::Destroyed,
            IncidentKind::SemaphoreFull => Refusal::SemaphoreFull,
            IncidentKind::WaitWithoutLock => Refusal::WaitWithoutLock,
        }
    }
}

impl Refusal {
    /// The error that the C library returned; `None` if it returned none.
    pub fn error(self) -> Option<&'static str> {
        Some(match self {
            Refusal::Relock => "EDEADLK",
            Refusal::Unlock => "EPERM",
            Refusal::Destroy => "EBUSY",
            Refusal::OwnerDied => "EOWNERDEAD",
            Refusal::NotRecoverable => "ENOTRECOVERABLE",
            Refusal::TooOften => "EAGAIN",
            Refusal::Destroyed => "EINVAL",
            Refusal::SemaphoreFull => "EOVERFLOW",
            Refusal::WaitWithoutLock | Refusal::InitialisedInUse | Refusal::DestroyedInUse => return None,
        })
    }
}

impl Analysis for Misuse {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        for incident in view.now.incidents.iter().filter(|incident| !may_be_repaired(view, incident)) {
            let evidence = RefusedCall {
                what: incident.kind.into(),
                thread: incident.thread,
                tid: incident.tid,
                lock: incident.lock,
                location: incident.location,
                count: incident.count,
                first_ago_ns: view.ago_ns(incident.at_ns),
            };
            let mut finding = Finding::new(Kind::Misuse, Confidence::Proven, evidence, advice(incident));
            // The call is over. Nobody suffers now, as far as this finding shows.
            finding.threads_hurt = 0;
            found.push(finding);
        }
        initialised_in_use(view, found);
        destroyed_in_use(view, found);
    }
}

/// Whether the owner of a robust lock has ended, and its next owner may have repaired what the lock protects: that is
/// what such locks are for. If nobody did, the next thread that wants the lock is refused.
fn may_be_repaired(view: &View<'_>, incident: &LockIncident) -> bool {
    let is_refused =
        |other: &LockIncident| other.kind == IncidentKind::NotRecoverable && other.lock == incident.lock;
    incident.kind == IncidentKind::OwnerDied && !view.now.incidents.iter().any(is_refused)
}

/// A wait that began this long before an initialisation had begun: the recorder may be late by less than this, ns.
const BEGUN_NS: u64 = 1_000_000;

/// Finds locks that were initialised while a thread waited for them.
fn initialised_in_use(view: &View<'_>, found: &mut Vec<Finding>) {
    for (id, thread) in view.now.threads.iter().enumerate() {
        for step in thread.steps.iter().filter(|step| step.kind == StepKind::Initialised) {
            let (Some(lock), Some(at_ns)) = (step.lock, step.time_ns) else { continue };
            let has_begun = |since_ns: u64| since_ns.saturating_add(BEGUN_NS) < at_ns;
            let waiting =
                view.waits(lock).filter(|wait| wait.thread != id && wait.since_ns.is_some_and(has_begun));
            let hurt = waiting.count();
            if hurt == 0 {
                continue;
            }
            let evidence = RefusedCall {
                what: Refusal::InitialisedInUse,
                thread: Some(id),
                tid: thread.tid,
                lock,
                location: step.location,
                count: 1,
                first_ago_ns: view.ago_ns(Some(at_ns)),
            };
            let kind = Kind::Misuse;
            let mut finding = Finding::new(kind, Confidence::Proven, evidence, Advice::KeepLockAlive);
            finding.threads_hurt = hurt;
            found.push(finding);
        }
    }
}

/// Finds condition variables that were destroyed while a thread waited on them.
fn destroyed_in_use(view: &View<'_>, found: &mut Vec<Finding>) {
    for (id, thread) in view.now.threads.iter().enumerate() {
        for end in thread.ended_conditions() {
            let waiting = left_waiting(view, thread.pid, end);
            let Some(&(lock, _)) = waiting.first() else { continue };
            let (confidence, doubt) = match waiting.iter().any(|&(_, is_certain)| is_certain) {
                true => (Confidence::Proven, None),
                false => (Confidence::Potential, Some(Doubt::EndUnknown)),
            };
            let evidence = RefusedCall {
                what: Refusal::DestroyedInUse,
                thread: Some(id),
                tid: thread.tid,
                lock,
                location: end.location,
                count: 1,
                first_ago_ns: view.ago_ns(end.at_ns),
            };
            let mut finding = Finding::new(Kind::Misuse, confidence, evidence, Advice::WakeBeforeDestroy);
            finding.threads_hurt = waiting.len();
            finding.doubts.extend(doubt);
            found.push(finding);
        }
    }
}

/// The locks of the threads of a process that waited on a condition variable when it was destroyed, and still do. Each
/// with whether the kernel says that the thread sleeps there.
fn left_waiting(view: &View<'_>, pid: u32, end: &EndOfCondition) -> Vec<(LockId, bool)> {
    let Some(at_ns) = end.at_ns else { return Vec::new() };
    let own = || view.now.threads.iter().filter(|thread| thread.pid == pid);
    let is_heard = |signal: &Signal| signal.condition == end.condition && signal.is_heard;
    let may_be_woken = own().any(|thread| thread.signals().iter().any(is_heard));
    let waiting = |thread: &ThreadLocks| {
        let sleep = thread
            .sleep
            .as_ref()
            .filter(|sleep| sleep.is_steady && sleep.since_ns.is_some_and(|since_ns| since_ns < at_ns))?;
        let is_there = thread.condition == Some(end.condition);
        let sleeps = |seen: Seen| seen.doing == Doing::WaitsInside && seen.is_still == Some(true);
        let is_certain = thread.seen.is_some_and(sleeps);
        let is_left = thread.state == ThreadState::Present && is_there && (is_certain || !may_be_woken);
        is_left.then_some((sleep.lock, is_certain))
    };
    own().filter_map(waiting).collect()
}

fn advice(incident: &LockIncident) -> Advice {
    match incident.kind {
        IncidentKind::Relock | IncidentKind::TooOften => Advice::ReleaseOrRecursive,
        IncidentKind::Unlock => Advice::CheckReleases,
        IncidentKind::Destroy | IncidentKind::Destroyed => Advice::KeepLockAlive,
        IncidentKind::OwnerDied => Advice::CheckExits,
        IncidentKind::NotRecoverable => Advice::RepairRobust,
        IncidentKind::SemaphoreFull => Advice::CheckPosts,
        IncidentKind::WaitWithoutLock => Advice::LockBeforeWait,
    }
}

impl Basis for RefusedCall {
    fn about(&self, all: &mut About<'_>) {
        all.mentions.threads.extend(self.thread);
        all.lock(self.lock);
        all.mentions.locations.push(self.location);
        all.main(self.location, |words| {
            let (thread, lock) = (self.who(words), words.short_lock(self.lock));
            match self.what.error() {
                Some(error) => format!("{thread} gets {error} for {lock} here"),
                None => format!("{thread} uses {lock} here"),
            }
        });
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let (thread, lock) = (self.who(words), words.lock(self.lock));
        let what = self.what.text().replace("LOCK", &lock);
        let error = self.what.error().map_or_else(String::new, |error| format!(" ({error})"));
        let (times, first) = match self.count > 1 {
            true => (format!(", {} times", self.count), "first "),
            false => (String::new(), ""),
        };
        let ago =
            self.first_ago_ns.map_or_else(String::new, |ago_ns| format!(", {first}{} ago", duration(ago_ns)));
        let line = format!("at {}{times}{ago}", words.location(self.location));
        Paragraph { summary: format!("{thread} {what}{error}"), evidence: vec![line] }
    }
}

impl RefusedCall {
    fn who(&self, words: &Words<'_>) -> String {
        self.thread.map_or_else(|| format!("thread {}", self.tid), |thread| words.thread(thread))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Evidence;
    use crate::findings::testing::{NOW, SECOND, Scene, seen};

    #[test]
    fn a_call_that_was_refused_is_proven_whatever_came_later() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        let location = scene.location("queue.c", 70);
        let incident = LockIncident {
            kind: IncidentKind::Unlock,
            count: 3,
            thread: Some(1),
            tid: 5001,
            lock: 0,
            location,
            at_ns: Some(NOW - 12 * SECOND),
        };
        scene.model.incidents = vec![incident, LockIncident { thread: None, at_ns: None, ..incident }];
        let found = scene.run(&Misuse);
        let confidences: Vec<Confidence> = found.iter().map(|finding| finding.confidence).collect();
        assert_eq!(confidences, [Confidence::Proven; 2]);
        let Evidence::RefusedCall(call) = &found[0].evidence else { panic!("{found:?}") };
        assert_eq!((call.what.error(), call.first_ago_ns), (Some("EPERM"), Some(12 * SECOND)));
        assert_eq!((&found[0].mentions.threads[..], &found[1].mentions.threads[..]), (&[1][..], &[][..]));
    }

    #[test]
    fn an_owner_that_ended_is_told_only_if_nobody_repaired_the_lock() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        let other = scene.lock("OTHER");
        let location = scene.location("robust.c", 7);
        let of = |kind, lock| LockIncident {
            kind,
            count: 1,
            thread: Some(1),
            tid: 5001,
            lock,
            location,
            at_ns: Some(NOW - SECOND),
        };
        scene.model.incidents = vec![of(IncidentKind::OwnerDied, 0)];
        assert!(scene.run(&Misuse).is_empty(), "the next owner may have repaired it");
        scene.model.incidents.push(of(IncidentKind::NotRecoverable, other));
        assert_eq!(scene.run(&Misuse).len(), 1, "another lock");
        scene.model.incidents.push(of(IncidentKind::NotRecoverable, 0));
        assert_eq!(scene.run(&Misuse).len(), 3);
    }

    #[test]
    fn a_lock_that_is_initialised_while_a_thread_waits_for_it_is_misuse() {
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.waits(1, 0);
        scene.step(0, StepKind::Initialised, 0).time_ns = Some(NOW - 2 * SECOND);
        let found = scene.run(&Misuse);
        assert_eq!((found.len(), found[0].confidence, found[0].threads_hurt), (1, Confidence::Proven, 1));
        scene.steps(0)[0].time_ns = Some(NOW - 20 * SECOND);
        assert!(scene.run(&Misuse).is_empty(), "before the wait");
        scene.steps(0)[0].time_ns = None;
        assert!(scene.run(&Misuse).is_empty(), "it is not known when");
    }

    #[test]
    fn a_condition_that_is_destroyed_while_a_thread_waits_on_it_is_misuse_unless_the_thread_may_be_woken() {
        const READY: u64 = 0x1000;
        let mut scene = Scene::of_two_threads_and_a_lock();
        scene.waits_on_condition(1, 0);
        scene.model.threads[1].condition = Some(READY);
        let location = scene.location("queue.c", 80);
        let end = EndOfCondition { condition: READY, at_ns: Some(NOW - 2 * SECOND), location };
        scene.model.threads[0].condition_calls.get_or_insert_default().ended = vec![end];
        let found = scene.run(&Misuse);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Potential));
        let seen = Seen { index: 1, ..seen(Doing::WaitsInside, true) };
        scene.model.threads[1].seen = Some(seen);
        assert_eq!(scene.run(&Misuse)[0].confidence, Confidence::Proven);
        let signal = Signal { condition: READY, is_heard: true, location };
        scene.model.threads[0].condition_calls.get_or_insert_default().signals.push(signal);
        assert_eq!(scene.run(&Misuse)[0].confidence, Confidence::Proven, "it sleeps all the same");
        scene.model.threads[1].seen = Some(Seen { doing: Doing::WaitsForLock, ..seen });
        assert!(scene.run(&Misuse).is_empty(), "it was woken, and waits for the lock");
        scene.model.threads[0].condition_calls.get_or_insert_default().signals.clear();
        scene.model.threads[0].condition_calls.get_or_insert_default().ended[0].at_ns =
            Some(NOW - 20 * SECOND);
        assert!(scene.run(&Misuse).is_empty(), "before the wait");
    }
}
