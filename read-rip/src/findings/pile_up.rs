//! Pile-ups and convoys: most threads wait at one lock.
//!
//! # Question
//!
//! Do most threads of a process wait at one lock, and does the lock change hands?
//!
//! # Method
//!
//! More than half of the existing threads, and at least four, wait for one lock. Also, at least sixteen threads wait,
//! or one of them has waited for 100 ms or from one reading to the next. If the same thread held the lock throughout,
//! it is a *pile-up*. The evidence says since when that thread holds it, where the thread was last, and whether it does
//! anything at all: a holder that is rarely scheduled looks idle. If the lock changes hands, it is a
//! *convoy*: the queue moves and never drains. In a living process "throughout" means between the two readings. In
//! a dead one it means since the first of the waiting threads began to wait: no release is known from that time on.
//!
//! A holder that itself waits is not the cause: the lock for which it waits is examined instead. Threads that wait on a
//! condition variable (an idle pool) do not wait for a lock.
//!
//! # Blind spots
//!
//! A queue at a lock that changes hands fast, and that is the only work of the program, looks the same. So the
//! finding is only suspected. Without times the two kinds cannot be distinguished in a dead process.
//!
//! # Example output
//!
//! ```text
//! suspected pile-up: 19116 of 19126 threads wait for CACHE, held by the same thread throughout
//!     flusher[88] has held it for 41 s, acquired at flush cache.rs:210; no mark for 200 ms, last at sync cache.rs:220
//!     worker[90] waits for it at get cache.rs:91, for 40 s
//! ```

use std::collections::HashMap;

use super::evidence::{ActiveHolder, Evidence, Queue};
use super::finding::{Analysis, Finding, locks_of};
use super::kind::{Advice, Confidence, Doubt, Kind};
use super::view::View;
use crate::locks::{Hold, HoldState, LockId, StepKind};
use crate::threads::ThreadState;

/// See the file's description.
pub(super) struct PileUp;

/// Minimum number of waiting threads.
const WAITERS_MIN: usize = 4;
/// From this number on, the length of the waits does not matter.
const WAITERS_MANY: usize = 16;
/// A wait is long from here on, ns.
const LONG_NS: u64 = 100_000_000;

impl Analysis for PileUp {
    fn run(&self, view: &View<'_>, found: &mut Vec<Finding>) {
        let mut present: HashMap<u32, usize> = HashMap::new();
        for thread in view.now.threads.iter().filter(|thread| thread.state == ThreadState::Present) {
            *present.entry(thread.pid).or_default() += 1;
        }
        let explained = locks_of(found, &[Kind::Deadlock, Kind::Unreleased, Kind::LostOwner]);
        for (id, lock) in view.now.locks.iter().enumerate() {
            let waiters = view.waits(id).count();
            let all = present.get(&lock.pid).copied().unwrap_or(0);
            if waiters < WAITERS_MIN || waiters * 2 <= all || explained.contains(&id) {
                continue;
            }
            if waiters < WAITERS_MANY && !is_long(view, id) {
                continue;
            }
            let holder = lock.holders.iter().find(|hold| hold.state == HoldState::Held);
            let holder_waits = holder.is_some_and(|hold| view.wait(hold.thread).is_some());
            if !holder_waits {
                found.push(finding(view, id, all, holder));
            }
        }
    }
}

/// Whether a thread has waited for a lock for long.
fn is_long(view: &View<'_>, lock: LockId) -> bool {
    let long_window = !view.now.is_final && view.now.window_ns.is_some_and(|window_ns| window_ns >= LONG_NS);
    view.waits(lock).any(|wait| {
        view.ago_ns(wait.since_ns).is_some_and(|waited_ns| waited_ns >= LONG_NS)
            || (long_window && wait.is_steady)
    })
}

/// Whether the holder held its lock throughout; `None`: not known.
fn is_held_throughout(view: &View<'_>, lock: LockId, holder: Option<&Hold>) -> Option<bool> {
    let was_read_twice = view.now.window_ns.is_some() && !view.now.is_final;
    let Some(holder) = holder else { return was_read_twice.then_some(false) };
    if was_read_twice {
        return Some(holder.is_steady);
    }
    let first_ns = view.first_wait_ns(lock)?;
    if holder.since_ns.is_some_and(|since_ns| since_ns <= first_ns) {
        return Some(true);
    }
    let mut steps = view.now.threads.iter().flat_map(|thread| &thread.steps);
    let was_released = steps.any(|step| {
        step.lock == Some(lock)
            && step.kind == StepKind::Released
            && step.time_ns.is_some_and(|time_ns| time_ns > first_ns)
    });
    (was_released || holder.since_ns.is_some()).then_some(false)
}

fn finding(view: &View<'_>, lock: LockId, threads: usize, holder: Option<&Hold>) -> Finding {
    let held_throughout = is_held_throughout(view, lock, holder);
    let active = |hold: &Hold| {
        let thread = &view.now.threads[hold.thread];
        ActiveHolder {
            hold: view.hold_fact(hold),
            words_recorded: thread.advanced,
            window_ns: view.now.window_ns,
            last: thread.last,
        }
    };
    let waiters = view.waiters(lock);
    let threads_hurt = waiters.count;
    let evidence = Evidence::Queue(Queue {
        lock,
        waiters,
        threads,
        held_throughout,
        holder: holder.map(active),
        history: view.lock_history(lock),
    });
    let (kind, advice) = match held_throughout {
        Some(false) => (Kind::Convoy, Advice::ShortenHold),
        Some(true) | None => (Kind::PileUp, Advice::CheckHolder),
    };
    let mut finding = Finding::new(kind, Confidence::Suspected, evidence, advice);
    finding.doubts.extend(held_throughout.is_none().then_some(Doubt::MovementUnknown));
    finding.threads_hurt = threads_hurt;
    finding.since_ns = view.first_wait_ns(lock);
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{MILLISECOND, NOW, SECOND, Scene, finding_about};

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

    fn holder(found: &[Finding]) -> &ActiveHolder {
        let Evidence::Queue(Queue { holder: Some(holder), .. }) = &found[0].evidence else {
            panic!("{found:?}")
        };
        holder
    }

    #[test]
    fn a_holder_that_is_rarely_scheduled_is_found() {
        for scene in [Scene::new(), Scene::dead()] {
            let found = pile(scene, 100, 3).run(&PileUp);
            assert_eq!((found.len(), found[0].kind, found[0].threads_hurt), (1, Kind::PileUp, 100));
            assert_eq!(holder(&found).hold.for_ns, Some(30 * SECOND));
        }
        let found = pile(Scene::new(), 100, 3).run(&PileUp);
        assert_eq!(holder(&found).words_recorded, Some(0));
        assert_eq!(holder(&found).window_ns, Some(200 * MILLISECOND));
    }

    #[test]
    fn a_queue_that_moves_is_a_convoy() {
        let mut scene = pile(Scene::new(), 100, 3);
        scene.model.locks[0].holders[0].is_steady = false;
        assert_eq!(scene.run(&PileUp)[0].kind, Kind::Convoy);
        scene.model.locks[0].holders.clear();
        assert_eq!(scene.run(&PileUp)[0].kind, Kind::Convoy, "between two owners");
        let mut dead = pile(Scene::dead(), 100, 3);
        dead.model.locks[0].holders[0].since_ns = Some(NOW - SECOND);
        assert_eq!(dead.run(&PileUp)[0].kind, Kind::Convoy);
        let mut once = pile(Scene::new(), 100, 3);
        once.model.locks[0].holders[0].is_steady = false;
        once.model.window_ns = None;
        assert_eq!(once.run(&PileUp)[0].kind, Kind::PileUp, "one reading of a copy, with times");
        dead.model.locks[0].holders[0].since_ns = None;
        assert_eq!(dead.run(&PileUp)[0].doubts, [Doubt::MovementUnknown], "without times");
    }

    #[test]
    fn a_queue_of_less_than_half_of_the_threads_is_no_pile_up() {
        assert!(pile(Scene::new(), 100, 101).run(&PileUp).is_empty());
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
        assert!(scene.run(&PileUp).is_empty());
    }

    #[test]
    fn a_few_threads_that_wait_for_a_moment_are_no_pile_up() {
        let mut scene = pile(Scene::new(), 5, 0);
        for wait in &mut scene.model.locks[0].waiters {
            (wait.is_steady, wait.since_ns) = (false, Some(NOW - MILLISECOND));
        }
        assert!(scene.run(&PileUp).is_empty());
        assert!(pile(Scene::new(), 3, 0).run(&PileUp).is_empty(), "three");
    }

    #[test]
    fn an_owner_that_waits_itself_is_not_the_cause() {
        let mut scene = pile(Scene::new(), 100, 0);
        let other = scene.lock("OTHER");
        scene.waits(0, other);
        assert!(scene.run(&PileUp).is_empty());
    }

    #[test]
    fn a_deadlock_explains_its_pile() {
        let scene = pile(Scene::new(), 100, 0);
        let deadlock = finding_about(Kind::Deadlock, &[0]);
        assert!(scene.run_after(&PileUp, vec![deadlock]).is_empty());
    }
}
