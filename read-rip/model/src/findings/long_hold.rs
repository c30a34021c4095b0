//! Long holds: a living thread holds a lock and does nothing.
//!
//! # Question
//!
//! Which locks are held for longer than the threshold by threads that do nothing?
//!
//! # Method
//!
//! A lock that a thread has held for longer than the threshold, while the thread recorded nothing between the two
//! readings and waits neither for a lock nor on a condition variable. The evidence says for how long, and where the
//! thread acquired the lock; of a task, where it is suspended with it. The thread of an idle pool whose turn it is
//! holds the pool's lock on purpose: see `idle_pool`.
//!
//! # Blind spots
//!
//! A thread may hold a lock for its whole life on purpose, or be in a long call without marks. By default, the time of
//! an acquisition is recorded only if the thread waited (see `RIP_CLOCK`). Without it, only the time between the
//! readings counts. Dead processes are left out: nothing in them can move.
//!
//! # Example output
//!
//! ```text
//! suspected long-hold: writer[12] has held JOURNAL for 41 s and does nothing
//!     writer[12] acquired it at append journal.rs:50, and was last at append journal.rs:61
//! ```

use read_rip_ring::LockType;
use serde::Serialize;

use super::finding::locks_of;
use super::words::shared;
use super::{
    About, Advice, Analysis, Basis, Confidence, Doubt, Finding, HoldFact, Kind, Paragraph, SuspendedFact,
    View, Waiters, Words, idle_pool, task_waits,
};
use crate::locations::LocationId;
use crate::locks::HoldState;
use crate::threads::ThreadState;
use crate::units::duration;

/// See the file's description.
pub(super) struct LongHold;

/// A thread that holds a lock and does nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleHolder {
    /// The hold.
    pub hold: HoldFact,
    /// For how long at least, ns: without a recorded time, the time between two readings.
    pub at_least_ns: u64,
    /// Where the thread was last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LocationId>,
    /// It is a task that is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspended: Option<SuspendedFact>,
    /// The threads that wait for the lock.
    pub waiters: Waiters,
}

impl Analysis for LongHold {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let kinds = [
            Kind::Deadlock,
            Kind::Futurelock,
            Kind::NeverWoken,
            Kind::Unreleased,
            Kind::StarvedHolder,
            Kind::LongWait,
            Kind::PileUp,
            Kind::Convoy,
        ];
        let mut explained = locks_of(found, &kinds);
        explained.extend(idle_pool::pools(view).iter().map(|pool| pool.lock));
        for thread in &view.now.threads {
            let is_idle = thread.advanced == Some(0) && !thread.is_blocked();
            if view.now.is_final || thread.state != ThreadState::Present || !is_idle {
                continue;
            }
            for hold in thread.holds.iter().filter(|hold| hold.state == HoldState::Held && hold.is_steady) {
                // Without a time: the thread held it at both readings, and so in between.
                let held_ns = view.ago_ns(hold.since_ns).or(view.now.window_ns);
                let held_ns = held_ns.filter(|&held_ns| held_ns >= view.threshold_ns);
                let Some(at_least_ns) = held_ns.filter(|_| !explained.contains(&hold.lock)) else { continue };
                let (hold_fact, waiters) = (view.hold_fact(hold), view.waiters(hold.lock));
                let is_once = view.now.locks[hold.lock].nature.lock_type == LockType::Once;
                if is_once && waiters.count == 0 {
                    continue;
                }
                let (threads_hurt, suspended) = (waiters.count, task_waits::suspended(view, hold.thread));
                let evidence =
                    IdleHolder { hold: hold_fact, at_least_ns, last: thread.last, suspended, waiters };
                let advice = match suspended {
                    Some(_) => Advice::ReleaseBeforeAwait,
                    None => Advice::WorkWithoutLock,
                };
                let mut finding = Finding::new(Kind::LongHold, Confidence::Suspected, evidence, advice);
                finding.since_ns = hold.since_ns;
                finding.threads_hurt = threads_hurt;
                // The kernel says whether a thread is busy, if it was asked.
                finding.doubts.extend((!thread.is_doing_known()).then_some(Doubt::UnmarkedWork));
                found.push(finding);
            }
        }
    }
}

impl Basis for IdleHolder {
    fn about(&self, all: &mut About<'_>) {
        all.hold(&self.hold);
        all.last(self.hold.thread, self.last);
        all.waiters(&self.waiters);
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let hold = &self.hold;
        let at_least = if hold.for_ns.is_some() && !words.is_end_unknown() { "" } else { "at least " };
        let summary = format!(
            "{} has held {}{} for {at_least}{} and does nothing",
            words.thread(hold.thread),
            words.lock(hold.lock),
            shared(hold.is_shared),
            duration(self.at_least_ns)
        );
        let last = self.last.filter(|&last| Some(last) != hold.location && self.suspended.is_none());
        let last = last.map(|last| format!(", and was last at {}", words.location(last)));
        let acquired = words.acquired_it(hold);
        let mut evidence: Vec<String> =
            acquired.map(|acquired| acquired + &last.unwrap_or_default()).into_iter().collect();
        evidence.extend(self.suspended.as_ref().map(|suspended| words.suspended(suspended)));
        evidence.extend(words.doing(hold.thread));
        evidence.extend(words.waiters(&self.waiters));
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{NOW, SECOND, Scene};

    fn scene() -> Scene {
        let mut scene = Scene::new();
        let (thread, lock) = (scene.thread("writer"), scene.lock("JOURNAL"));
        scene.holds(thread, lock);
        scene
    }

    #[test]
    fn a_lock_held_for_longer_than_the_threshold_is_suspected() {
        let scene = scene();
        let found = scene.run(&LongHold);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        let (summary, lines) = scene.says(&found[0]);
        assert_eq!(summary, "writer has held JOURNAL for 30.0 s and does nothing");
        assert_eq!(lines, ["writer acquired it at take.rs:10, and was last at idle.rs:1"]);
        let labels = scene.labels(&found[0]);
        assert_eq!(labels, ["writer holds JOURNAL since here", "writer was last here"]);
    }

    #[test]
    fn a_thread_that_moves_or_waits_or_holds_it_for_a_short_time_is_no_finding() {
        type Change = fn(&mut Scene);
        let changes: [Change; 7] = [
            |scene| scene.model.locks[0].nature.lock_type = LockType::Once,
            |scene| scene.model.threads[0].advanced = Some(4),
            |scene| scene.waits(0, 0),
            |scene| scene.model.threads[0].condition_wait = Some(0),
            |scene| scene.model.threads[0].holds[0].since_ns = Some(NOW - SECOND),
            |scene| scene.model.threads[0].holds[0].since_ns = None,
            |scene| scene.model.is_final = true,
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut scene = scene();
            change(&mut scene);
            assert!(scene.run(&LongHold).is_empty(), "change {at}");
        }
    }
}
