//! Idle pools: threads that take turns at one lock, under which the first of them waits for work.
//!
//! ```text
//! let job = receiver.lock().unwrap().recv();   // one worker is in recv, the others wait for the lock
//! ```
//!
//! In the record, such a pool looks like a thread that is stuck under a lock. So it is no finding, and the balance
//! tells it as what it looks like.
//!
//! # Method
//!
//! These facts together make an idle pool:
//!
//! * The holder and all waiting threads acquire the lock at one place.
//! * No known history acquires the lock anywhere else, and none acquires another lock at that place. So the place is
//!   no wrapper function through which many locks are acquired.
//! * None of these threads has another lock, and nobody waits for the holder through another lock.
//! * The holder recorded nothing since it acquired the lock, except waits on a condition variable or semaphore.
//! * As far as the kernel says what the holder does, it waits for what may be work: it does not write, sleep, or wait
//!   for a child.
//! * As far as the holder's stack is known, it is still in the function that acquired the lock. If it has returned from
//!   it, that function may be one that acquires the lock for others. But it is none if it also releases the lock: then
//!   the holder has left it on another way, which does not.
//! * The threads have the same name, apart from digits: they have the same task.
//! * No task that has ended acquired the lock at that place: the workers of a pool do not end after their turn.
//!
//! # Blind spots
//!
//! A thread that is stuck under a lock which only threads of its kind acquire, at one place, looks the same. A pool
//! with a second place that takes the lock, for instance to close the queue, is reported once a thread waits there.

use foldhash::{HashMap, HashSet};

use super::View;
use super::standstill::{Group, Root, groups};
use crate::locations::{Location, LocationId};
use crate::locks::{Hold, HoldState, LockId, Seen, Step, StepKind, ThreadId};
use crate::threads::ThreadState;

/// A place in the source, for comparisons: the function, its line, and where these do not tell it from others, an
/// address.
pub(super) type Place<'v> = (&'v str, Option<(&'v str, u32)>, Option<u64>);

/// For each group of [`groups`], whether it looks like an idle pool.
pub(super) fn which_are_pools<'v>(view: &'v View<'_>) -> &'v [bool] {
    view.memo.are_pools.get_or_init(|| judge(view, groups(view)))
}

fn judge(view: &View<'_>, groups: &[Group]) -> Vec<bool> {
    let mut candidates: Vec<Option<Place<'_>>> =
        groups.iter().map(|group| common_place(view, group)).collect();
    let mut by_lock: HashMap<LockId, usize> = HashMap::default();
    let mut by_place: HashMap<Place<'_>, usize> = HashMap::default();
    for at in 0..groups.len() {
        let Some(place) = candidates[at] else { continue };
        by_lock.insert(groups[at].lock, at);
        // Two locks of one place: that place is a wrapper.
        if let Some(other) = by_place.insert(place, at) {
            (candidates[at], candidates[other]) = (None, None);
        }
    }
    if by_lock.is_empty() {
        return vec![false; groups.len()];
    }
    let of_location: Vec<Option<usize>> =
        view.locations.iter().map(|location| by_place.get(&place_of(location)).copied()).collect();
    for thread in &view.now.threads {
        let is_ended_task = thread.task.is_some() && thread.state == ThreadState::Exited;
        for step in &thread.steps {
            let Some(lock) = step.lock.filter(|_| acquires(&step)) else { continue };
            let (of_lock, of_place) = (by_lock.get(&lock).copied(), of_location[step.location]);
            if of_lock != of_place || is_ended_task {
                [of_lock, of_place].into_iter().flatten().for_each(|at| candidates[at] = None);
            }
        }
    }
    candidates.iter().map(Option::is_some).collect()
}

/// Where all threads of a group acquire its lock, if they are alike in all that a pool's threads have in common.
fn common_place<'v>(view: &View<'v>, group: &Group) -> Option<Place<'v>> {
    let Root::Holder(holder) = group.root else { return None };
    let hold = group.hold(view)?;
    let place = place_of(view.locations[hold.location?]);
    let name = &view.now.threads[holder].name;
    let is_like_the_holder = |&thread: &ThreadId| {
        let own = &view.now.threads[thread];
        let is_there = view.wait(thread).is_some_and(|wait| place_of(view.locations[wait.location]) == place);
        is_there && own.holds.is_empty() && own.overflowed == 0 && stem(&own.name).eq(stem(name))
    };
    let may_be_idle = view.now.threads[holder].seen.is_none_or(|seen| seen.may_wait_for_work());
    let is_alike = may_be_idle
        && group.locks.len() == 1
        && view.now.threads[holder].holds.iter().filter(|hold| hold.state == HoldState::Held).count() == 1
        && view.now.threads[holder].overflowed == 0
        && !has_left(view, hold)
        && has_only_waited_since(view, holder, group.lock)
        && group.threads.iter().all(is_like_the_holder);
    is_alike.then_some(place)
}

/// Whether the holder of a lock has returned from the function that acquired it, although that function releases the
/// lock otherwise.
pub(super) fn has_left(view: &View<'_>, hold: &Hold) -> bool {
    let function = |location: LocationId| view.locations[location].compiled_function();
    let Some(acquired_in) = hold.location.filter(|_| hold.has_left).and_then(function) else { return false };
    let releases = |step: &Step| step.kind == StepKind::Released && step.lock == Some(hold.lock);
    let mut steps = view.now.threads.iter().flat_map(|thread| &thread.steps);
    steps.any(|step| releases(&step) && function(step.location).as_ref() == Some(&acquired_in))
}

/// Whether a thread did nothing since it acquired a lock but wait on a condition variable or semaphore.
fn has_only_waited_since(view: &View<'_>, thread: ThreadId, lock: LockId) -> bool {
    let thread = &view.now.threads[thread];
    // All known steps may be after the acquisition, which was overwritten.
    let about_lock = thread.steps.iter().enumerate().filter(|(_, step)| step.lock == Some(lock));
    let from = about_lock.last().map_or(0, |(at, _)| at + 1);
    let since: Vec<Step> = thread.steps.iter().skip(from).collect();
    let sleeps = since.iter().filter(|step| step.kind == StepKind::ConditionWait);
    let slept: Vec<LockId> = sleeps.filter_map(|step| step.lock).collect();
    // A step of a condition variable is about its lock.
    let is_waiting = |lock: LockId| slept.contains(&lock) || thread.semaphore_wait == Some(lock);
    // A wait for what nobody holds is a step without a lock. Its event and its entry may have two locations.
    let place = |location: LocationId| place_of(view.locations[location]);
    let sleep = thread.sleep.as_ref().filter(|sleep| thread.semaphore_wait == Some(sleep.lock));
    let sleeps_at = sleep.map(|sleep| place(sleep.location));
    let is_wait = |step: &Step| step.kind == StepKind::Blocked && sleeps_at == Some(place(step.location));
    since.iter().all(|step| step.lock.is_some_and(is_waiting) || is_wait(step))
}

fn acquires(step: &Step) -> bool {
    matches!(step.kind, StepKind::AcquireBegin | StepKind::Acquired | StepKind::Wait | StepKind::TryFailed)
}

/// The place of a location. In a program without debug information, the function has to do; without symbols, the
/// address.
pub(super) fn place_of(location: &Location) -> Place<'_> {
    let line = location.source.as_ref().filter(|_| !location.is_in_wrapper);
    let is_nameless = line.is_none() && location.full_function.starts_with("unknown");
    let line = line.map(|(file, line)| (&**file, *line));
    // A line tells closures apart.
    let code_begin = location.identity().1.filter(|_| line.is_none());
    (&location.full_function, line, is_nameless.then_some(location.pc).or(code_begin))
}

/// All idle pools, and what looks like one.
pub(super) fn pools(view: &View<'_>) -> Vec<IdlePool> {
    let judged = groups(view).iter().zip(which_are_pools(view)).filter(|&(_, &is_pool)| is_pool);
    // A task that is polled occupies a thread that others need.
    let is_polled = |&id: &ThreadId| view.now.threads[id].task.as_ref().is_some_and(|task| task.is_polled);
    let judged = judged.filter(|(group, _)| !group.threads.iter().any(is_polled));
    let pool = |(group, _): (&Group, &bool)| {
        let hold = group.hold(view)?;
        Some(IdlePool {
            lock: group.lock,
            holder: hold.thread,
            location: hold.location?,
            waiting: group.threads.len(),
            are_tasks: group.threads.iter().all(|&id| view.now.threads[id].task.is_some()),
            longest_ns: view.ago_ns(group.first_wait_ns(view)),
        })
    };
    judged.filter_map(pool).collect()
}

/// The threads that wait their turn in an idle pool.
pub(super) fn threads_of_pools(view: &View<'_>) -> HashSet<ThreadId> {
    let judged = groups(view).iter().zip(which_are_pools(view)).filter(|&(_, &is_pool)| is_pool);
    judged.flat_map(|(group, _)| group.threads.iter().copied()).collect()
}

/// A name without its digits.
pub(super) fn stem(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|letter| !letter.is_ascii_digit())
}

/// The functions in which threads wait for what others bring, or what comes from outside.
///
/// In many pools one thread at a time waits for work, and the others wait for their turn at a lock: in the function in
/// which the first one waits for work. Only the stacks of threads that recorded nothing are known.
pub(super) struct IdlePlaces<'v> {
    functions: HashSet<(&'v str, Option<u64>)>,
}

impl<'v> IdlePlaces<'v> {
    pub(super) fn of(view: &'v View<'_>) -> IdlePlaces<'v> {
        let present = view.now.threads.iter().filter(|thread| thread.state == ThreadState::Present);
        let seen = present.filter_map(|thread| thread.seen).filter(Seen::may_wait_for_work);
        IdlePlaces { functions: seen.filter_map(|seen| function(view, &seen)).collect() }
    }

    /// Whether a thread stands in such a function. Nothing is claimed of a thread that stands in no known function: it
    /// may.
    pub(super) fn has(&self, view: &View<'_>, seen: &Seen) -> bool {
        seen.is_idle || function(view, seen).is_none_or(|function| self.functions.contains(&function))
    }

    /// Whether all of these threads do.
    pub(super) fn has_all(&self, view: &View<'_>, threads: &[ThreadId]) -> bool {
        threads.iter().all(|&id| view.now.threads[id].seen.is_some_and(|seen| self.has(view, &seen)))
    }
}

/// The function in which a thread stands.
fn function<'v>(view: &View<'v>, seen: &Seen) -> Option<(&'v str, Option<u64>)> {
    seen.place.map(|place| view.locations[place].identity())
}

/// An idle pool, or what looks like one.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdlePool {
    /// The lock at which the threads take turns.
    pub lock: LockId,
    /// The thread that has the lock.
    pub holder: ThreadId,
    /// Where all of them acquire it.
    pub location: LocationId,
    /// How many threads wait for their turn.
    pub waiting: usize,
    /// Whether they are tasks.
    #[serde(skip)]
    pub are_tasks: bool,
    /// For how long the first of them has waited, ns; `None`: not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_ns: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::testing::Scene;
    use crate::locks::{Doing, StepKind};

    /// Four workers: one has the lock of the queue and waits for work, three wait for their turn, all at one place.
    fn pool() -> Scene {
        let mut scene = Scene::new();
        let lock = scene.lock("QUEUE");
        let turn = scene.location("pool.rs", 20);
        for at in 0..4 {
            let thread = scene.thread(&format!("worker {at}"));
            match at {
                0 => scene.holds_with(thread, lock, |hold| hold.location = Some(turn)),
                _ => scene.waits_with(thread, lock, |wait| wait.location = turn),
            }
            // A turn of each, before.
            for kind in [StepKind::AcquireBegin, StepKind::Released, StepKind::AcquireBegin] {
                scene.step(thread, kind, lock).location = turn;
            }
        }
        scene
    }

    fn count(scene: &Scene) -> usize {
        scene.with_view(|view| pools(view).len())
    }

    #[test]
    fn a_thread_that_sleeps_in_another_closure_of_the_function_makes_no_place_idle() {
        let idle = |begin: [u64; 2]| {
            let mut scene = Scene::new();
            for (index, begin) in begin.into_iter().enumerate() {
                let thread = scene.thread("worker");
                let place = scene.location("main.rs", 6 + index as u32);
                scene.locations[place].full_function = "app::main::{{closure}}".into();
                scene.locations[place].code_begin = Some(begin);
                let doing = [Doing::WaitsOutside, Doing::WaitsForLock][index];
                scene.model.threads[thread].seen =
                    Some(Seen { index, place: Some(place), ..crate::findings::testing::seen(doing, true) });
            }
            scene.with_view(|view| IdlePlaces::of(view).has_all(view, &[1]))
        };
        assert!(idle([0x10, 0x10]), "one closure");
        assert!(!idle([0x10, 0x20]));
    }

    #[test]
    fn threads_that_take_turns_at_one_place_look_like_an_idle_pool() {
        let pools = pool().with_view(pools);
        assert_eq!((pools.len(), pools[0].holder, pools[0].waiting), (1, 0, 3));
        assert!(pool().run(&crate::findings::long_wait::LongWait).is_empty());
        assert!(pool().run(&crate::findings::long_hold::LongHold).is_empty());
    }

    #[test]
    fn a_holder_that_waits_for_no_work_is_of_no_idle_pool() {
        let holder = |doing, is_in_pause| {
            let mut scene = pool();
            let seen = crate::findings::testing::seen(doing, true);
            scene.model.threads[0].seen = Some(Seen { is_in_pause, ..seen });
            count(&scene)
        };
        assert_eq!(holder(Doing::WaitsOutside, false), 1);
        assert_eq!(holder(Doing::WaitsOutside, true), 0);
        assert_eq!(holder(Doing::WaitsToWrite, false), 0);
        assert_eq!(holder(Doing::WaitsForChild, false), 0);
    }

    #[test]
    fn a_thread_that_has_returned_from_the_function_that_releases_the_lock_is_stuck() {
        let with_holder = |change: fn(&mut Hold)| {
            let mut scene = pool();
            let of_thread = &mut scene.model.threads[0].holds[0];
            change(of_thread);
            scene.model.locks[0].holders[0] = *of_thread;
            scene
        };
        let mut scene = with_holder(|hold| hold.has_left = true);
        assert_eq!(count(&scene), 0);
        let found = scene.run(&crate::findings::long_wait::LongWait);
        assert_eq!((found.len(), found[0].advice[0]), (1, crate::findings::Advice::CheckExits));
        let said = scene.says(&found[0]).1.join("\n");
        assert!(said.contains("worker 0 has returned from the function that acquired it"), "{said}");
        // The lock is released elsewhere: this function acquires it for others.
        let elsewhere = scene.location("leave.rs", 7);
        scene.locations[elsewhere].full_function = "leave".into();
        for thread in 0..4 {
            let mut steps = scene.steps(thread);
            steps
                .iter_mut()
                .filter(|step| step.kind == StepKind::Released)
                .for_each(|step| step.location = elsewhere);
        }
        assert_eq!(count(&scene), 1);
    }

    #[test]
    fn a_thread_that_waits_for_work_on_a_condition_is_of_an_idle_pool_too() {
        let mut scene = pool();
        let inner = scene.lock("INNER");
        scene.step(0, StepKind::AcquireBegin, inner);
        scene.step(0, StepKind::ConditionWait, inner);
        scene.waits_on_condition(0, inner);
        assert_eq!(count(&scene), 1);
    }

    #[test]
    fn tasks_that_have_ended_after_their_turn_were_no_workers_of_a_pool() {
        let with_ended = |is_task: bool| {
            let mut scene = pool();
            let turn = scene.model.threads[0].holds[0].location.unwrap();
            let ended = if is_task { scene.task("worker 9") } else { scene.thread("worker 9") };
            scene.step(ended, StepKind::AcquireBegin, 0).location = turn;
            scene.model.threads[ended].state = ThreadState::Exited;
            scene
        };
        assert_eq!(count(&with_ended(false)), 1, "a pool may become smaller");
        assert_eq!(count(&with_ended(true)), 0);
    }

    #[test]
    fn what_a_pool_would_not_do_is_a_standstill() {
        type Change = fn(&mut Scene);
        let changes: [Change; 8] = [
            // A thread waits at another place.
            |scene| scene.model.threads[3].wait.as_mut().unwrap().location = 1,
            // Another place acquires the lock.
            |scene| {
                let thread = scene.thread("closes");
                scene.nests(thread, &[0]);
            },
            // The place acquires another lock: it is a wrapper.
            |scene| {
                let other = scene.lock("OTHER");
                let turn = scene.model.threads[0].holds[0].location.unwrap();
                scene.step(3, StepKind::AcquireBegin, other).location = turn;
            },
            // The holder went on.
            |scene| {
                let mark = scene.location("asks.rs", 1);
                scene.snap(0, mark);
            },
            // A waiting thread has another lock.
            |scene| {
                let other = scene.lock("OTHER");
                scene.holds(3, other);
            },
            // The holder has another lock.
            |scene| {
                let other = scene.lock("OTHER");
                scene.holds(0, other);
            },
            // The threads have different tasks.
            |scene| scene.model.threads[2].name = "flusher".into(),
            // No recorded thread holds the lock.
            |scene| scene.model.locks[0].holders.clear(),
        ];
        for (at, change) in changes.into_iter().enumerate() {
            let mut scene = pool();
            change(&mut scene);
            assert_eq!(count(&scene), 0, "change {at}");
            let found = scene.run(&crate::findings::long_wait::LongWait);
            assert_eq!(found.len(), 1, "change {at}");
        }
    }
}
