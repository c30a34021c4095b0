//! Threads that wait for one another, in processes whose other threads only sleep for a time, again and again, or wait
//! for input and wake nobody.
//!
//! Such a thread may wake the others when its time comes, as one does that plans work. Or it has nothing to do with
//! them, and they are stuck. The kernel shows no difference, so this accuses nobody. It says that the process is not
//! judged.
//!
//! The same is said where others wait for input, if none of these threads comes to code that may wake a thread, as far
//! as their program's code shows it (`bystanders`). Each server has a thread that waits for input, and mostly that one
//! brings work.
//!
//! A thread that waits for one that goes on, because that has the lock or must end, is not counted. Nor is one that
//! waits at a condition whose waiters such a thread has woken before, by the record.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use serde::Serialize;

use super::between::is_undecided;
use super::{LATELY_NS, View};
use crate::locations::LocationId;
use crate::locks::{Doing, HoldState, Seen, ThreadId, has_ticked};

/// A wait is followed through at most so many threads.
const CHAIN_MAX: usize = 64;

/// Threads that wait for one another, in a process whose other threads sleep for a time, again and again, or wait for
/// input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BesideTimers {
    /// How many threads wait.
    pub threads: usize,
    /// How many processes they are of.
    pub processes: usize,
    /// The one that waits for no certain thread, and has waited longest. In several processes, one of the lowest pid.
    pub first: ThreadId,
    /// Where it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationId>,
    /// What it does.
    pub doing: Doing,
    /// For how long all of them have waited, ns, at least.
    pub for_ns: u64,
    /// How many threads sleep for a time.
    pub timers: usize,
    /// How many threads wait for what comes from outside. If there are any, neither they nor those that sleep for a
    /// time come to code that may wake a thread.
    pub listeners: usize,
    /// One that waits for what comes from outside, or else one that sleeps for a time.
    pub timer: ThreadId,
}

impl BesideTimers {
    pub(super) fn of(view: &View<'_>) -> Option<BesideTimers> {
        if view.now.is_final || view.now.unrecorded != Some(0) || view.now.has_tasks() {
            return None;
        }
        let mut timers: Vec<(ThreadId, Seen)> = Vec::new();
        let mut listeners: Vec<ThreadId> = Vec::new();
        let mut waiting: Vec<(ThreadId, Seen)> = Vec::new();
        for (id, thread) in view.now.present() {
            let seen = thread.seen.filter(|seen| seen.worker.is_none() && seen.inward.is_none())?;
            match seen.doing {
                _ if seen.is_at_timer => timers.push((id, seen)),
                _ if seen.is_idle => {}
                Doing::WaitsForLock | Doing::WaitsForThread | Doing::WaitsInside => waiting.push((id, seen)),
                doing if seen.wakes_nobody && doing.is_outside() => listeners.push(id),
                _ => return None,
            }
        }
        let timer = listeners.first().copied().or(timers.first().map(|&(timer, _)| timer))?;
        let goes_on = |id: ThreadId| listeners.contains(&id) || timers.iter().any(|&(timer, _)| timer == id);
        waiting.retain(|&(id, _)| !leads_to(view, id, goes_on));
        let for_ns = |seen: &Seen| {
            let asleep_ns = seen.asleep_ns.map(NonZeroU64::get).filter(|_| seen.is_still == Some(true));
            asleep_ns.or(view.now.window_ns.filter(|_| seen.is_still == Some(true)))
        };
        let shortest = waiting.iter().map(|(_, seen)| for_ns(seen).unwrap_or(0)).min()?;
        let has_ticked =
            |seen: &Seen| has_ticked(seen.is_still, seen.asleep_ns.map(NonZeroU64::get), shortest);
        let is_known = match listeners.is_empty() {
            true => timers.iter().all(|(_, seen)| has_ticked(seen)),
            false => timers.iter().all(|(_, seen)| seen.wakes_nobody) && shortest >= LATELY_NS,
        };
        if !is_known {
            return None;
        }
        let roots = waiting.iter().filter(|&&(id, _)| next_of(view, id).is_none());
        // The first thread of a server may have nothing more to do.
        let may_rest = |id: ThreadId| view.now.threads[id].tid == view.now.threads[id].pid;
        let is_any_stuck = listeners.is_empty() || roots.clone().any(|&(id, _)| !may_rest(id));
        let roots = roots.filter(|_| is_any_stuck);
        let &(first, seen) = roots.max_by_key(|(id, seen)| (for_ns(seen), std::cmp::Reverse(*id)))?;
        Some(BesideTimers {
            threads: waiting.len(),
            processes: 1,
            first,
            location: seen.place,
            doing: seen.doing,
            for_ns: shortest,
            timers: timers.len(),
            listeners: listeners.len(),
            timer,
        })
    }

    /// The same of several processes, or of one that waits for itself, through pipes, sockets, locks on files and the
    /// ends of children.
    pub(super) fn between(view: &View<'_>) -> Option<BesideTimers> {
        let knot = view.now.knots.iter().find(|knot| is_undecided(knot))?;
        let seen_of = |thread: ThreadId| view.now.threads[thread].seen;
        let for_ns = |thread| seen_of(thread)?.asleep_ns;
        let first = knot.links.iter().min_by_key(|link| link.pid)?.thread;
        let seen = seen_of(first)?;
        let pids: BTreeSet<u32> = knot.links.iter().map(|link| link.pid).collect();
        Some(BesideTimers {
            threads: knot.links.len(),
            processes: pids.len(),
            first,
            location: seen.place,
            doing: seen.doing,
            for_ns: knot.links.iter().map(|link| for_ns(link.thread)).min().flatten()?.get(),
            timers: knot.sleepers.len(),
            listeners: 0,
            timer: *knot.sleepers.iter().min_by_key(|&&sleeper| view.now.threads[sleeper].pid)?,
        })
    }
}

/// Whether a thread waits for one of these, directly or behind others.
fn leads_to(view: &View<'_>, id: ThreadId, goes_on: impl Fn(ThreadId) -> bool) -> bool {
    let chain = std::iter::successors(Some(id), |&id| next_of(view, id)).take(CHAIN_MAX);
    chain.into_iter().any(|id| goes_on(id) || is_woken_by(view, id, &goes_on))
}

/// Whether one of these has woken waiters of the condition for which a thread waits, by the record.
fn is_woken_by(view: &View<'_>, id: ThreadId, goes_on: impl Fn(ThreadId) -> bool) -> bool {
    let Some(condition) = view.now.threads[id].condition else { return false };
    view.now.present().filter(|&(other, _)| goes_on(other)).any(|(_, other)| {
        other.signals().iter().any(|signal| signal.condition == condition && signal.is_heard)
    })
}

/// The thread that a thread waits for, if that is known.
fn next_of(view: &View<'_>, id: ThreadId) -> Option<ThreadId> {
    let thread = &view.now.threads[id];
    let holder = || {
        let lock = &view.now.locks[view.wait(id)?.lock];
        lock.holders.iter().find(|hold| hold.state == HoldState::Held).map(|hold| hold.thread)
    };
    let peer = || thread.peer.as_ref()?.present;
    view.join(id).map(|join| join.joined).or_else(holder).or_else(peer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::{SECOND, Scene, seen};

    /// A thread that waits so, another one that waits for its end, and one that slept for a time and woke meanwhile.
    fn scene(doing: Doing) -> Scene {
        let mut scene = Scene::new();
        let [main, worker, _] = ["main", "worker", "ticker"].map(|name| scene.thread(name));
        let asleep_ns = NonZeroU64::new(5 * SECOND);
        for (id, doing) in [(main, Doing::WaitsForThread), (worker, doing)] {
            scene.model.threads[id].seen = Some(Seen { index: id, asleep_ns, ..seen(doing, true) });
        }
        scene.joins(main, worker, |_| {});
        timer(&mut scene, |seen| seen.is_still = Some(false));
        scene.model.unrecorded = Some(0);
        scene
    }

    fn timer(scene: &mut Scene, change: impl FnOnce(&mut Seen)) {
        let timer = Seen { index: 2, is_at_timer: true, is_timed: true, ..seen(Doing::WaitsOutside, true) };
        change(scene.model.threads[2].seen.insert(timer));
    }

    fn threads(scene: &Scene) -> Option<(usize, ThreadId, u64)> {
        let of = scene.with_view(BesideTimers::of)?;
        Some((of.threads, of.first, of.for_ns))
    }

    #[test]
    fn threads_that_wait_for_one_another_beside_a_timer_are_told() {
        for doing in [Doing::WaitsInside, Doing::WaitsForLock, Doing::WaitsForThread] {
            assert_eq!(threads(&scene(doing)), Some((2, 1, 5 * SECOND)), "{doing:?}");
        }
        let mut slow = scene(Doing::WaitsInside);
        timer(&mut slow, |seen| seen.asleep_ns = NonZeroU64::new(4 * SECOND));
        assert_eq!(threads(&slow), Some((2, 1, 5 * SECOND)), "it woke a second after the others fell asleep");
    }

    #[test]
    fn a_process_that_may_have_something_to_do_is_not() {
        type Change = fn(&mut Scene);
        let changes: [(&str, Change); 11] = [
            ("it sleeps for as long as the others", |scene| {
                timer(scene, |seen| seen.asleep_ns = NonZeroU64::new(5 * SECOND))
            }),
            ("nothing shows when it slept first", |scene| timer(scene, |_| {})),
            ("a thread waits for input", |scene| {
                let other = scene.thread("server");
                scene.model.threads[other].seen = Some(seen(Doing::WaitsOutside, true));
            }),
            ("a thread runs", |scene| {
                let other = scene.thread("computes");
                scene.model.threads[other].seen = Some(seen(Doing::Runs, false));
            }),
            ("they have just begun", |scene| {
                scene.model.threads[1].seen.as_mut().unwrap().asleep_ns = NonZeroU64::new(SECOND / 2)
            }),
            ("one moved", |scene| scene.model.threads[1].seen.as_mut().unwrap().is_still = Some(false)),
            ("it waits for the end of the timer", |scene| scene.joins(1, 2, |_| {})),
            ("the timer has its lock", |scene| {
                let lock = scene.lock("CACHE");
                scene.holds(2, lock);
                scene.waits(1, lock);
            }),
            ("the library says that it has nothing to do", |scene| {
                scene.model.threads[1].seen.as_mut().unwrap().is_idle = true;
                scene.model.threads[0].seen.as_mut().unwrap().is_idle = true;
            }),
            ("a thread recorded nothing", |scene| scene.model.unrecorded = Some(1)),
            ("tasks are recorded", |scene| {
                scene.task("task");
            }),
        ];
        for (what, change) in changes {
            let mut scene = scene(Doing::WaitsInside);
            change(&mut scene);
            assert_eq!(threads(&scene), None, "{what}");
        }
    }

    /// The same, with a thread that waits for input in place of the timer.
    fn beside_input() -> Scene {
        let mut scene = scene(Doing::WaitsInside);
        scene.model.threads[2].seen = Some(Seen { wakes_nobody: true, ..seen(Doing::WaitsOutside, true) });
        scene
    }

    #[test]
    fn threads_that_wait_for_one_another_beside_input_are_reported_if_nobody_may_wake_them() {
        let of = beside_input().with_view(BesideTimers::of).expect("they are reported");
        assert_eq!((of.threads, of.first, of.listeners, of.timers, of.timer), (2, 1, 1, 0, 2));
        type Change = fn(&mut Scene);
        let changes: [(&str, Change); 5] = [
            ("it may wake them", |scene| {
                scene.model.threads[2].seen.as_mut().unwrap().wakes_nobody = false;
            }),
            ("they have just begun", |scene| {
                scene.model.threads[1].seen.as_mut().unwrap().asleep_ns = NonZeroU64::new(SECOND / 2)
            }),
            ("a timer may wake them", |scene| {
                let timer = scene.thread("ticker");
                scene.model.threads[timer].seen =
                    Some(Seen { is_at_timer: true, ..seen(Doing::WaitsOutside, false) });
            }),
            ("they wait for its end", |scene| scene.joins(1, 2, |_| {})),
            ("the first thread rests", |scene| scene.model.threads[1].tid = scene.model.threads[1].pid),
        ];
        for (what, change) in changes {
            let mut scene = beside_input();
            change(&mut scene);
            assert_eq!(scene.with_view(BesideTimers::of), None, "{what}");
        }
    }

    #[test]
    fn a_timer_that_has_woken_waiters_before_may_do_so_again() {
        for (is_heard, expected) in [(true, None), (false, Some((2, 1, 5 * SECOND)))] {
            let mut scene = scene(Doing::WaitsInside);
            let (lock, location) = (scene.lock("QUEUE"), scene.location("plan.c", 7));
            scene.waits_on_condition(1, lock);
            scene.model.threads[1].condition = Some(0x1000);
            let signal = crate::locks::Signal { condition: 0x1000, is_heard, location };
            scene.model.threads[2].condition_calls.get_or_insert_default().signals.push(signal);
            assert_eq!(threads(&scene), expected);
        }
    }
}
