//! Pile-ups and convoys: most threads wait at one lock.
//!
//! # Question
//!
//! Do most threads of a process wait at one lock, and does it move on?
//!
//! # Method
//!
//! More than half of the threads that there are wait for one lock, at least four, and the wait is long: 100 ms, or
//! from one reading to the next, or there are sixteen of them. If the lock has had the same owner all the
//! while, it is a *pile-up* behind that owner, of which is told since when, what it did last, and whether it does
//! anything at all: an owner that is hardly ever scheduled looks like that. If the lock changes owners, it is a *convoy*:
//! the queue moves and never drains. In a living process "all the while" is between the two readings; for a dead one
//! it is since the first of those who wait began to: no release is known from that time.
//!
//! An owner that waits itself is no cause: what it waits for is looked at instead. Threads that wait for a condition
//! (an idle pool) do not wait for a lock.
//!
//! # Blind spots
//!
//! A queue at a lock that moves fast and is meant to be the program's only work looks the same, so it is suspected
//! at most. Without times a dead process does not tell the two apart.
//!
//! # Example output
//!
//! ```text
//! suspected pile-up: 19116 threads of 19126 wait for CACHE, which one thread has had all the while
//!     flusher[88] has had it for 41 s, taken at flush cache.rs:210; it did nothing for 200 ms, last at sync cache.rs:220
//!     worker[90] waits for it at get cache.rs:91, for 40 s
//! ```

use std::collections::HashMap;

use super::unreleased::waiting;
use super::{Analysis, Confidence, Finding, Part, View, add_duration, locks_of, parts};
use crate::locks::{Hold, HoldState, LockId, StepKind};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct PileUp;

pub(super) const PILE_UP: &str = "pile-up";
pub(super) const CONVOY: &str = "convoy";
/// Fewer threads are no pile.
const WAITERS_MIN: usize = 4;
/// So many are one even if it is not known for how long they have waited.
const WAITERS_MANY: usize = 16;
/// A wait that is long, ns.
const LONG_NS: u64 = 100_000_000;

impl Analysis for PileUp {
    fn kinds(&self) -> &'static [&'static str] {
        &[PILE_UP, CONVOY]
    }

    fn look(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let mut present: HashMap<u32, usize> = HashMap::new();
        for thread in view.now.threads.iter().filter(|thread| thread.state == ThreadState::Present) {
            *present.entry(thread.pid).or_default() += 1;
        }
        let explained = locks_of(found, &["deadlock", "unreleased", "lost-owner"]);
        for (id, lock) in view.now.locks.iter().enumerate() {
            let waiters = view.waiters(id).count();
            let all = present.get(&lock.pid).copied().unwrap_or(0);
            if waiters < WAITERS_MIN || waiters * 2 <= all || explained.contains(&id) {
                continue;
            }
            if waiters < WAITERS_MANY && !is_long(view, id) {
                continue;
            }
            let owner = lock.holders.iter().find(|hold| hold.state == HoldState::Held);
            let owner_waits = owner.is_some_and(|hold| view.wait(hold.thread).is_some());
            if !owner_waits {
                found.push(tell(view, id, waiters, all, owner));
            }
        }
    }
}

/// Whether somebody has waited for a lock for long.
fn is_long(view: &View<'_>, lock: LockId) -> bool {
    let long_window = !view.now.is_final && view.now.window_ns.is_some_and(|window_ns| window_ns >= LONG_NS);
    view.waiters(lock).any(|wait| {
        view.ago_ns(wait.since_ns).is_some_and(|waited_ns| waited_ns >= LONG_NS)
            || (long_window && wait.is_steady)
    })
}

/// Whether an owner has had its lock all the while; `None`: that is not known.
fn is_constant(view: &View<'_>, lock: LockId, owner: Option<&Hold>) -> Option<bool> {
    let was_read_twice = view.now.window_ns.is_some() && !view.now.is_final;
    let Some(owner) = owner else { return was_read_twice.then_some(false) };
    if was_read_twice {
        return Some(owner.is_steady);
    }
    let first = view.waiters(lock).filter_map(|wait| wait.since_ns).min()?;
    if owner.since_ns.is_some_and(|since_ns| since_ns <= first) {
        return Some(true);
    }
    // Somebody has given it up since.
    let mut steps = view.now.threads.iter().flat_map(|thread| &thread.steps);
    let has_moved = steps.any(|step| {
        step.lock == Some(lock)
            && step.kind == StepKind::Released
            && step.time_ns.is_some_and(|time_ns| time_ns > first)
    });
    (has_moved || owner.since_ns.is_some()).then_some(false)
}

fn tell(view: &View<'_>, lock: LockId, waiters: usize, all: usize, owner: Option<&Hold>) -> Finding {
    let is_constant = is_constant(view, lock, owner);
    let (kind, how) = match is_constant {
        Some(true) => (PILE_UP, ", which one thread has had all the while"),
        Some(false) => (CONVOY, ", which goes from one to the next, and the queue does not drain"),
        None => (PILE_UP, ""),
    };
    let summary = parts![Part::Threads(waiters), format!(" of {all} wait for "), Part::Lock(lock), how];
    let mut evidence = Vec::new();
    if let Some(owner) = owner {
        let thread = &view.now.threads[owner.thread];
        let mut line =
            parts![Part::Thread(owner.thread), if owner.is_shared { " shares it" } else { " has it" }];
        add_duration(&mut line, " for ", view.ago_ns(owner.since_ns));
        line.extend(parts![", taken at ", Part::Location(owner.location)]);
        match thread.advanced {
            Some(0) => {
                line.push("; it has marked nothing".into());
                add_duration(&mut line, " for ", view.now.window_ns);
            }
            Some(words) => line.push(format!("; it went on by {words} words between the readings").into()),
            None => {}
        }
        if let Some(last) = thread.last {
            line.extend(parts![", last at ", Part::Location(last)]);
        }
        evidence.push(line);
    } else {
        evidence.push(parts!["nobody is known to have it at this moment"]);
    }
    evidence.extend(waiting(view, lock));
    let record = &view.now.locks[lock].record;
    if record.acquisitions > 0 {
        let (all, contended, owners) = (record.acquisitions, record.contended, record.owners);
        evidence.push(parts![format!(
            "known acquisitions: {all}, after a wait: {contended}, different owners: {owners}"
        )]);
    }
    let mut finding = Finding::new(kind, Confidence::Suspected, summary, evidence);
    finding.doubt = is_constant.is_none().then(|| "whether the lock moves on is not known".into());
    finding.threads_hurt = waiters;
    finding.since_ns = view.waiters(lock).filter_map(|wait| wait.since_ns).min();
    finding.advice = if kind == CONVOY {
        "do less while holding this lock, or split what it guards: one thread at a time gets through here"
    } else {
        "look at what its owner does: a slow call under the lock, or no processor time (its priority, a stopped process)"
    }
    .into();
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{MILLISECOND, NOW, SECOND, Scene, text};

    fn pile(mut scene: Scene, waiters: usize, idle: usize) -> Scene {
        let (owner, lock) = (scene.thread("owner"), scene.lock("CACHE"));
        scene.holds(owner, lock);
        for _ in 0..waiters {
            let thread = scene.thread("worker");
            scene.waits(thread, lock);
        }
        for _ in 0..idle {
            scene.thread("idle");
        }
        scene
    }

    #[test]
    fn an_owner_that_is_hardly_ever_scheduled_is_told() {
        for scene in [Scene::new(), Scene::dead()] {
            let found = pile(scene, 100, 3).look(&PileUp);
            assert_eq!((found.len(), found[0].kind, found[0].threads_hurt), (1, PILE_UP, 100));
            assert!(text(&found[0]).contains("T0 has it for 30000 ms, taken at"), "{}", text(&found[0]));
        }
        let found = pile(Scene::new(), 100, 3).look(&PileUp);
        assert!(text(&found[0]).contains("it has marked nothing for 200 ms, last at"), "{}", text(&found[0]));
    }

    #[test]
    fn a_queue_that_moves_is_a_convoy() {
        let mut scene = pile(Scene::new(), 100, 3);
        scene.model.locks[0].holders[0].is_steady = false;
        assert_eq!(scene.look(&PileUp)[0].kind, CONVOY);
        scene.model.locks[0].holders.clear();
        assert_eq!(scene.look(&PileUp)[0].kind, CONVOY, "between two owners");
        let mut dead = pile(Scene::dead(), 100, 3);
        dead.model.locks[0].holders[0].since_ns = Some(NOW - SECOND);
        assert_eq!(dead.look(&PileUp)[0].kind, CONVOY);
        let mut once = pile(Scene::new(), 100, 3);
        once.model.locks[0].holders[0].is_steady = false;
        once.model.window_ns = None;
        assert_eq!(once.look(&PileUp)[0].kind, PILE_UP, "one reading of a copy, with times");
        dead.model.locks[0].holders[0].since_ns = None;
        assert!(dead.look(&PileUp)[0].doubt.is_some(), "without times");
    }

    #[test]
    fn a_long_queue_beside_more_idle_threads_is_none() {
        assert!(pile(Scene::new(), 100, 101).look(&PileUp).is_empty());
    }

    #[test]
    fn an_idle_pool_waits_for_no_lock() {
        let mut scene = Scene::new();
        let lock = scene.lock("QUEUE");
        for _ in 0..100 {
            let thread = scene.thread("worker");
            scene.model.threads[thread].condition_wait = Some(lock);
            scene.model.locks[lock].condition_waiters.push(thread);
        }
        assert!(scene.look(&PileUp).is_empty());
    }

    #[test]
    fn a_few_that_wait_for_a_moment_are_no_pile() {
        let mut scene = pile(Scene::new(), 5, 0);
        for wait in &mut scene.model.locks[0].waiters {
            (wait.is_steady, wait.since_ns) = (false, Some(NOW - MILLISECOND));
        }
        assert!(scene.look(&PileUp).is_empty());
        assert!(pile(Scene::new(), 3, 0).look(&PileUp).is_empty(), "three");
    }

    #[test]
    fn an_owner_that_waits_itself_is_not_the_cause() {
        let mut scene = pile(Scene::new(), 100, 0);
        let other = scene.lock("OTHER");
        scene.waits(0, other);
        assert!(scene.look(&PileUp).is_empty());
    }

    #[test]
    fn a_deadlock_explains_its_pile() {
        let scene = pile(Scene::new(), 100, 0);
        let deadlock = Finding::new("deadlock", Confidence::Proven, parts![Part::Lock(0)], Vec::new());
        assert!(scene.look_after(&PileUp, vec![deadlock]).is_empty());
    }
}
