//! Contention: locks at which threads lose time.
//!
//! # Question
//!
//! Which locks slow threads down, though no thread is stuck?
//!
//! # Method
//!
//! A lock is reported if it changes hands while at least two threads wait for it, one of them for 100 ms, and its
//! holder does not wait itself. If its ownership stands still, no thread is slowed down by the others: that is a long
//! wait or a pile-up. A semaphore with permits is there to make tasks wait, and is not reported. A lock is also
//! reported if half of at least 32 known acquisitions came after a wait, and one wait in ten took 10 ms. The evidence
//! has the distribution of the known waits and holds.
//!
//! # Blind spots
//!
//! A semaphore that nobody holds looks like a mutex of futures whose guards may be sent to another task. So such a
//! mutex is not reported either. Only histories that are still in the ring count, and only acquisitions with times have
//! lengths. Much contention is no fault by itself, so the finding is only suspected.
//!
//! # Example output
//!
//! ```text
//! suspected contention: 3 threads wait for TABLE
//!     writer[12] has held it for 200 ms, acquired at update table.rs:30
//!     reader[13] waits for it at find table.rs:50, for 190 ms
//!     41 of 60 known acquisitions by 5 threads came after a wait; waits: p50 80 ms, p90 200 ms; holds: p50 2 ms, ...
//! ```

use serde::Serialize;

use super::finding::locks_of;
use super::pasts::Past;
use super::{
    About, Advice, Analysis, Basis, Confidence, Finding, HoldFact, Kind, LockHistory, Paragraph, View,
    Waiters, Words, convoy,
};
use crate::locks::{HoldState, Lock, LockId, Quantiles, Record};
use crate::units::agree;

/// See the file's description.
pub(super) struct Contention;

/// At most this many locks are reported, those with most waiting threads first.
const FINDINGS_MAX: usize = 20;
const WAITERS_MIN: usize = 2;
const WAIT_MIN_NS: u64 = 100_000_000;
const ACQUISITIONS_MIN: u64 = 32;
const WORST_WAIT_MIN_NS: u64 = 10_000_000;

/// What explains why threads wait for a lock.
const EXPLANATIONS: &[Kind] = &[
    Kind::Deadlock,
    Kind::Futurelock,
    Kind::Unreleased,
    Kind::LostOwner,
    Kind::StarvedHolder,
    Kind::LongWait,
    Kind::PileUp,
    Kind::Convoy,
    Kind::LongHold,
    Kind::Starvation,
];

/// A lock at which threads lose time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contended {
    /// The lock.
    pub lock: LockId,
    /// The holder; the first if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<HoldFact>,
    /// The threads that wait for it.
    pub waiters: Waiters,
    /// The known acquisitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<LockHistory>,
    /// How many more contended locks no finding describes. Only the last finding counts them.
    pub unlisted: usize,
}

impl Analysis for Contention {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let explained = locks_of(found, EXPLANATIONS);
        let pasts = view.pasts();
        let hurts = |&(id, lock): &(LockId, &Lock)| {
            let hurts_now = is_queue(view, id) && pasts.get(id).is_some_and(|past| moves(view, id, past));
            hurts_now || has_hurt(&lock.record)
        };
        let locks = view.now.locks.iter().enumerate();
        let is_candidate = |(id, lock): &(LockId, &Lock)| !explained.contains(id) && !lock.may_have_permits();
        let mut locks: Vec<_> = locks.filter(is_candidate).filter(hurts).collect();
        locks.sort_by_key(|&(id, _)| std::cmp::Reverse(view.waits(id).count()));
        let all = locks.len();
        for (at, (id, lock)) in locks.into_iter().take(FINDINGS_MAX).enumerate() {
            let unlisted = if at + 1 == FINDINGS_MAX { all - FINDINGS_MAX } else { 0 };
            found.push(finding(view, id, lock, unlisted));
        }
    }
}

/// Whether at least two threads wait for a lock, one of them for long, and not for a holder that waits itself.
fn is_queue(view: &View<'_>, id: LockId) -> bool {
    let is_long = |since_ns| view.ago_ns(since_ns).is_some_and(|waited_ns| waited_ns >= WAIT_MIN_NS);
    let holders = &view.now.locks[id].holders;
    let holder_waits = || holders.iter().any(|hold| view.wait(hold.thread).is_some());
    let waits = || view.waits(id);
    waits().count() >= WAITERS_MIN && !holder_waits() && waits().any(|wait| is_long(wait.since_ns))
}

/// Whether a lock changes hands while threads wait for it.
fn moves(view: &View<'_>, id: LockId, past: &Past) -> bool {
    let holder = view.now.locks[id].holders.iter().find(|hold| hold.state == HoldState::Held);
    convoy::has_moved(view, id, holder, past) == Some(true)
}

fn has_hurt(record: &Record) -> bool {
    let is_usual = record.acquisitions >= ACQUISITIONS_MIN && record.contended * 2 >= record.acquisitions;
    is_usual && Quantiles::of(&record.waits_ns).is_some_and(|waits| waits.p90_ns >= WORST_WAIT_MIN_NS)
}

fn finding(view: &View<'_>, id: LockId, lock: &Lock, unlisted: usize) -> Finding {
    let holder = lock.holders.iter().find(|hold| hold.state == HoldState::Held);
    let waiters = view.waiters(id);
    let threads_hurt = waiters.count;
    let evidence = Contended {
        lock: id,
        holder: holder.map(|hold| view.hold_fact(hold)),
        waiters,
        history: view.lock_history(id),
        unlisted,
    };
    let mut finding =
        Finding::new(Kind::Contention, Confidence::Suspected, evidence, Advice::ReduceContention);
    finding.since_ns = view.first_wait_ns(id);
    finding.threads_hurt = threads_hurt;
    finding
}

impl Basis for Contended {
    fn about(&self, all: &mut About<'_>) {
        all.lock(self.lock);
        self.holder.iter().for_each(|hold| all.hold(hold));
        all.waiters(&self.waiters);
    }

    fn paragraph(&self, words: &mut Words<'_>) -> Paragraph {
        let lock = words.lock(self.lock);
        let summary = match self.waiters.count {
            0 => format!("threads often wait for {lock}"),
            1 => format!("threads often wait for {lock}, and 1 thread waits for it now"),
            count => format!("{} wait for {lock}", words.threads(count)),
        };
        let mut evidence = Vec::new();
        if let Some(hold) = &self.holder {
            evidence.push(words.holder(hold));
            evidence.extend(words.doing(hold.thread));
        }
        evidence.extend(words.waiters(&self.waiters));
        evidence.extend(self.history.as_ref().map(|known| words.history(known)));
        if self.unlisted > 0 {
            let locks = agree(self.unlisted, "lock is", "locks are");
            evidence.push(format!("{} more contended {locks} not listed", self.unlisted));
        }
        Paragraph { summary, evidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{MILLISECOND, NOW, Scene};
    use crate::locks::{Nature, Ownership};

    fn scene(waiters: usize) -> Scene {
        let mut scene = Scene::new();
        let (owner, lock) = (scene.thread("owner"), scene.lock("TABLE"));
        scene.holds_with(owner, lock, |hold| hold.is_steady = false);
        for _ in 0..waiters {
            let thread = scene.thread("waits");
            scene.waits(thread, lock);
        }
        scene
    }

    #[test]
    fn two_threads_that_wait_long_are_contention() {
        let found = scene(2).run(&Contention);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        assert!(scene(1).run(&Contention).is_empty(), "one");
        let mut kept = scene(40);
        kept.model.locks[0].holders[0].is_steady = true;
        assert!(kept.run(&Contention).is_empty(), "ownership stands still");
        let mut short = scene(5);
        for wait in &mut short.model.locks[0].waiters {
            wait.since_ns = Some(NOW - MILLISECOND);
        }
        assert!(short.run(&Contention).is_empty(), "for a moment");
    }

    #[test]
    fn a_lock_that_a_future_of_no_task_keeps_stands_still_too() {
        let mut scene = scene(2);
        scene.is_held_by_future(0);
        assert!(scene.run(&Contention).is_empty());
        scene.model.locks[0].possible_holders[0].is_steady = false;
        assert_eq!(scene.run(&Contention).len(), 1, "it changes hands");
    }

    #[test]
    fn a_history_of_long_waits_is_contention() {
        let mut scene = scene(0);
        let record = &mut scene.model.locks[0].record;
        (record.acquisitions, record.contended) = (40, 30);
        record.waits_ns = vec![20 * MILLISECOND; 30];
        assert_eq!(scene.run(&Contention).len(), 1);
        let nature = scene.model.locks[0].nature;
        let semaphore = Nature { is_of_futures: true, ownership: Ownership::Anyone, ..nature };
        scene.model.locks[0].nature = semaphore;
        assert!(scene.run(&Contention).is_empty(), "a limit does what it is for");
        scene.model.locks[0].nature = Nature { ownership: Ownership::ByRule, ..semaphore };
        assert_eq!(scene.run(&Contention).len(), 1, "a mutex of futures is none");
        scene.model.locks[0].nature = nature;
        scene.model.locks[0].record.waits_ns = vec![MILLISECOND; 30];
        assert!(scene.run(&Contention).is_empty(), "short waits");
    }

    #[test]
    fn a_lock_that_another_finding_explains_is_not_reported_again() {
        let known = crate::findings::testing::finding_about(Kind::PileUp, &[0]);
        assert!(scene(5).run_after(&Contention, vec![known]).is_empty());
    }
}
