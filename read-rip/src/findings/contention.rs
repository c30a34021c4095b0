//! Contention: locks at which threads lose time.
//!
//! # Question
//!
//! Which locks hurt, though nothing is stuck?
//!
//! # Method
//!
//! A lock is told of if two threads or more wait for it, one of them for 100 ms, and its owner does not wait
//! itself; or if of at least 32 known acquisitions half came after a wait, and one wait in ten took 10 ms. What is
//! known of waits and holds is told as medians and worst tenths.
//!
//! # Blind spots
//!
//! Only histories that are still in the ring count, and only acquisitions with times have lengths. Much contention is
//! no fault by itself, so it is suspected at most.
//!
//! # Example output
//!
//! ```text
//! suspected contention: 3 threads wait for TABLE
//!     writer[12] has it for 200 ms, taken at update table.rs:30
//!     reader[13] waits for it at find table.rs:50, for 190 ms
//!     of 60 known acquisitions 41 came after a wait; waits: half up to 80 ms, nine in ten up to 200 ms
//! ```

use super::unreleased::waiting;
use super::{Analysis, Confidence, Finding, Part, View, add_duration, locks_of, parts};
use crate::locks::{HoldState, Lock, LockId, Record};

/// See the file's description.
pub(super) struct Contention;

const KIND: &str = "contention";
/// As many locks are told of, those with most waiters first.
const FINDINGS_MAX: usize = 20;
const WAITERS_MIN: usize = 2;
const WAIT_MIN_NS: u64 = 100_000_000;
const ACQUISITIONS_MIN: u64 = 32;
const WORST_WAIT_MIN_NS: u64 = 10_000_000;

impl Analysis for Contention {
    fn kinds(&self) -> &'static [&'static str] {
        &[KIND]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let explained =
            ["deadlock", "unreleased", "lost-owner", "pile-up", "convoy", "long-hold", "starvation"];
        let explained = locks_of(found, &explained);
        let hurts = |&(id, lock): &(LockId, &Lock)| hurts_now(view, id, lock) || has_hurt(&lock.record);
        let locks = view.now.locks.iter().enumerate();
        let mut locks: Vec<_> = locks.filter(|(id, _)| !explained.contains(id)).filter(hurts).collect();
        locks.sort_by_key(|&(id, _)| std::cmp::Reverse(view.waiters(id).count()));
        let untold = locks.len().saturating_sub(FINDINGS_MAX);
        let told = found.len();
        found.extend(locks.into_iter().take(FINDINGS_MAX).map(|(id, lock)| tell(view, id, lock)));
        if let Some(last) = found[told..].last_mut().filter(|_| untold > 0) {
            last.evidence.push(parts![format!("{untold} more locks with fewer waiters are not listed")]);
        }
    }
}

fn hurts_now(view: &View<'_>, id: LockId, lock: &Lock) -> bool {
    let is_long = |since_ns| view.ago_ns(since_ns).is_some_and(|waited_ns| waited_ns >= WAIT_MIN_NS);
    let owner_waits = lock.holders.iter().any(|hold| view.wait(hold.thread).is_some());
    let waiters = || view.waiters(id);
    !owner_waits && waiters().count() >= WAITERS_MIN && waiters().any(|wait| is_long(wait.since_ns))
}

fn has_hurt(record: &Record) -> bool {
    let is_usual = record.acquisitions >= ACQUISITIONS_MIN && record.contended * 2 >= record.acquisitions;
    is_usual && tenths(&record.waits_ns, 9).is_some_and(|wait_ns| wait_ns >= WORST_WAIT_MIN_NS)
}

/// The value that so many tenths of the sorted values do not exceed.
fn tenths(sorted: &[u64], count: usize) -> Option<u64> {
    let at = (sorted.len() * count).div_ceil(10).saturating_sub(1);
    sorted.get(at).copied()
}

fn tell(view: &View<'_>, id: LockId, lock: &Lock) -> Finding {
    let waiters = view.waiters(id).count();
    let summary = match waiters {
        0 => parts!["threads often wait for ", Part::Lock(id)],
        1 => parts![Part::Threads(1), " waits for ", Part::Lock(id), ", as threads often do"],
        _ => parts![Part::Threads(waiters), " wait for ", Part::Lock(id)],
    };
    let mut evidence = Vec::new();
    if let Some(hold) = lock.holders.iter().find(|hold| hold.state == HoldState::Held) {
        let mut line =
            parts![Part::Thread(hold.thread), if hold.is_shared { " shares it" } else { " has it" }];
        add_duration(&mut line, " for ", view.ago_ns(hold.since_ns));
        line.extend(parts![", taken at ", Part::Location(hold.location)]);
        evidence.push(line);
    }
    evidence.extend(waiting(view, id));
    let record = &lock.record;
    if record.acquisitions > 0 {
        let (all, contended) = (record.acquisitions, record.contended);
        let mut line = parts![format!("of {all} known acquisitions {contended} came after a wait")];
        for (what, sorted) in
            [("; waits: half up to ", &record.waits_ns), ("; holds: half up to ", &record.holds_ns)]
        {
            add_duration(&mut line, what, tenths(sorted, 5));
            add_duration(&mut line, ", nine in ten up to ", tenths(sorted, 9));
        }
        evidence.push(line);
    }
    let mut finding = Finding::new(KIND, Confidence::Suspected, summary, evidence);
    finding.since_ns = view.waiters(id).filter_map(|wait| wait.since_ns).min();
    finding.threads_hurt = waiters;
    finding.advice =
        "do less while holding it, share it where it is only read, or split what it guards".into();
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{MILLISECOND, NOW, Scene};

    fn scene(waiters: usize) -> Scene {
        let mut scene = Scene::new();
        let (owner, lock) = (scene.thread("owner"), scene.lock("TABLE"));
        scene.holds(owner, lock);
        for _ in 0..waiters {
            let thread = scene.thread("waits");
            scene.waits(thread, lock);
        }
        scene
    }

    #[test]
    fn two_that_wait_long_are_contention() {
        let found = scene(2).look(&Contention);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Suspected));
        assert!(scene(1).look(&Contention).is_empty(), "one");
        let mut short = scene(5);
        for wait in &mut short.model.locks[0].waiters {
            wait.since_ns = Some(NOW - MILLISECOND);
        }
        assert!(short.look(&Contention).is_empty(), "for a moment");
    }

    #[test]
    fn a_history_of_long_waits_is_contention() {
        let mut scene = scene(0);
        let record = &mut scene.model.locks[0].record;
        (record.acquisitions, record.contended) = (40, 30);
        record.waits_ns = vec![20 * MILLISECOND; 30];
        assert_eq!(scene.look(&Contention).len(), 1);
        scene.model.locks[0].record.waits_ns = vec![MILLISECOND; 30];
        assert!(scene.look(&Contention).is_empty(), "short waits");
    }

    #[test]
    fn what_is_explained_already_is_not_told_again() {
        let known = Finding::new("pile-up", Confidence::Suspected, parts![Part::Lock(0)], Vec::new());
        assert!(scene(5).look_after(&Contention, vec![known]).is_empty());
    }

    #[test]
    fn tenths_are_taken_from_above() {
        assert_eq!(tenths(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 9), Some(9));
        assert_eq!(tenths(&[7], 5), Some(7));
        assert_eq!(tenths(&[], 5), None);
    }
}
