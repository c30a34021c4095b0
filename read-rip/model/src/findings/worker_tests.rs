//! Scenes with the threads that poll tasks: blocked and starved executors, and tasks that nobody polls, each beside
//! what looks like it and is none.

use read_rip_ring::TaskKind;

use super::deadlock::Deadlock;
use super::stall::Stalled;
use super::starved_runtime::StarvedRuntime;
use super::task_tests::one;
use super::testing::{NOW, SECOND, Scene, seen};
use super::unpolled_task::UnpolledTask;
use super::{Advice, Confidence, Doubt, Evidence, Finding, Kind, Premise, WaitEdge};
use crate::locks::{Doing, ThreadId};

/// A task holds a lock of threads over an await, and both workers of its executor wait for that lock in polls.
fn lock_over_await() -> Scene {
    let mut scene = Scene::new();
    let (holder, lock) = (scene.task("holder"), scene.lock("STD"));
    scene.holds(holder, lock);
    // It may be woken at any time.
    scene.facts(holder).wakers = Some(1);
    for _ in 0..2 {
        let (worker, task) = (scene.thread("worker"), scene.task("blocked"));
        scene.polls(worker, task);
        scene.waits(task, lock);
    }
    scene
}

#[test]
fn a_lock_of_threads_over_an_await_is_a_deadlock_if_all_workers_wait_for_it() {
    let found = one(lock_over_await().run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Deadlock, Confidence::Proven));
    assert!(found.premises.contains(&Premise::WorkersBlock));
    assert_eq!(found.advice, [Advice::EndTheProcess, Advice::NoThreadLocksOverAwait]);
    let Evidence::WaitCycle(cycle) = &found.evidence else { panic!("{found:?}") };
    assert!(cycle.edges.iter().any(|edge| matches!(edge, WaitEdge::Worker { .. })), "{cycle:?}");
}

#[test]
fn a_worker_that_is_free_or_goes_on_polls_the_task() {
    // One of two workers is free.
    let mut scene = lock_over_await();
    let last = scene.model.threads.len() - 1;
    scene.facts(last).is_polled = false;
    assert!(scene.run(&Deadlock).is_empty());
    // One waits for another lock, whose holder goes on.
    let mut scene = lock_over_await();
    let (thread, other) = (scene.thread("thread"), scene.lock("OTHER"));
    scene.holds(thread, other);
    scene.model.locks[0].waiters.pop();
    scene.waits(last, other);
    assert!(scene.run(&Deadlock).is_empty());
    // How many workers there are is not known.
    let mut scene = lock_over_await();
    for id in [0, 2, 4] {
        scene.facts(id).runtime.as_mut().unwrap().workers = 0;
    }
    assert!(scene.run(&Deadlock).is_empty());
}

/// One thread, which is no worker, polls the task.
fn make_local(scene: &mut Scene, task: ThreadId, thread: ThreadId) {
    let facts = scene.facts(task);
    facts.is_local = true;
    facts.runtime.as_mut().expect("it has a runtime").workers = 0;
    facts.thread = Some(thread);
}

#[test]
fn a_task_that_no_worker_polls_neither_needs_one_nor_keeps_one() {
    // The main future holds the lock, and its own thread will poll it.
    let mut scene = lock_over_await();
    let main = scene.thread("main");
    make_local(&mut scene, 0, main);
    assert!(scene.run(&Deadlock).is_empty());
    // Nobody knows which threads poll the holder.
    scene.facts(0).is_local = false;
    assert!(scene.run(&Deadlock).is_empty());
    // The main future blocks its own thread, beside one of two workers.
    let mut scene = lock_over_await();
    let (main, last) = (scene.thread("main"), scene.model.threads.len() - 2);
    make_local(&mut scene, last, main);
    assert!(scene.run(&Deadlock).is_empty());
}

#[test]
fn a_task_that_one_thread_alone_polls_is_stuck_when_that_thread_is() {
    let mut scene = Scene::new();
    let (thread, holder, blocked) = (scene.thread("main"), scene.task("holder"), scene.task("blocked"));
    let lock = scene.lock("STD");
    [holder, blocked].into_iter().for_each(|task| make_local(&mut scene, task, thread));
    scene.holds(holder, lock);
    scene.polls(thread, blocked);
    scene.waits(blocked, lock);
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Deadlock, Confidence::Proven));
    assert!(!found.premises.contains(&Premise::WorkersBlock), "nobody can take over");
    let worker = |found: &Finding| {
        let Evidence::WaitCycle(cycle) = &found.evidence else { panic!("{found:?}") };
        let edge = cycle.edges.iter().find_map(|edge| match edge {
            WaitEdge::Worker { worker } => Some(*worker),
            _ => None,
        });
        edge.expect("an edge leads to a thread")
    };
    assert_eq!((worker(&found).polled, worker(&found).workers), (Some(blocked), None));
    // Another thread polls the holder.
    let other = scene.thread("other");
    scene.facts(holder).thread = Some(other);
    assert!(scene.run(&Deadlock).is_empty());
    // The thread waits outside of recorded tasks.
    let mut scene = Scene::new();
    let (thread, holder, lock) = (scene.thread("main"), scene.task("holder"), scene.lock("STD"));
    make_local(&mut scene, holder, thread);
    scene.holds(holder, lock);
    scene.waits(thread, lock);
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.confidence, worker(&found).polled), (Confidence::Proven, None));
}

#[test]
fn polls_of_requests_may_keep_all_workers() {
    let (mut scene, ready) = starved();
    // The futures of requests: who polls them is not recorded. One of these threads has polled the other task before.
    [1, 3].into_iter().for_each(|task| scene.facts(task).runtime = None);
    scene.facts(ready).thread = Some(0);
    let found = one(scene.run(&StarvedRuntime));
    assert_eq!((found.kind, found.confidence), (Kind::StarvedRuntime, Confidence::Suspected));
    assert_eq!(found.doubts, [Doubt::MaybeNoWorker]);
    let Evidence::BusyRuntime(busy) = &found.evidence else { panic!("{found:?}") };
    assert_eq!((busy.workers, busy.of_workers, busy.polls.len()), (2, 2, 2));
    assert!(scene.run_after(&UnpolledTask, vec![found]).is_empty(), "explained");
    // They are of another executor.
    scene.facts(1).runtime = Some(read_rip_ring::Runtime { number: 2, workers: 0 });
    assert!(scene.run(&StarvedRuntime).is_empty());
    scene.facts(1).runtime = None;
    // None of these threads is known as a worker; one of them returns; nobody waits for a worker.
    scene.facts(ready).thread = None;
    assert!(scene.run(&StarvedRuntime).is_empty());
    let mut free = starved().0;
    free.facts(ready).thread = Some(0);
    [1, 3].into_iter().for_each(|task| free.facts(task).runtime = None);
    free.facts(3).is_steady = false;
    assert!(free.run(&StarvedRuntime).is_empty());
    free.facts(3).is_steady = true;
    free.facts(ready).wakes = 0;
    assert!(free.run(&StarvedRuntime).is_empty());
}

#[test]
fn a_task_that_is_part_of_another_one_keeps_the_worker_of_that_one() {
    let mut scene = lock_over_await();
    let (last, outer) = (scene.model.threads.len() - 1, scene.task("outer"));
    let worker = scene.facts(last).thread;
    scene.polls(worker.unwrap(), outer);
    scene.facts(last).outer = Some(outer);
    scene.facts(last).runtime = None;
    assert_eq!(one(scene.run(&Deadlock)).confidence, Confidence::Proven);
    scene.facts(outer).runtime.as_mut().unwrap().workers = 0;
    assert!(scene.run(&Deadlock).is_empty(), "nobody knows who polls the outer one");
}

#[test]
fn a_worker_that_may_have_been_handed_over_proves_nothing() {
    let mut scene = lock_over_await();
    let (third, idle) = (scene.thread("third"), scene.task("idle"));
    scene.facts(idle).thread = Some(third);
    let found = one(scene.run(&Deadlock));
    assert_eq!(found.confidence, Confidence::Suspected);
    assert_eq!(found.doubts, [Doubt::WorkerHandedOver]);
    let (mut scene, _) = starved();
    let (third, idle) = (scene.thread("third"), scene.task("idle"));
    scene.facts(idle).thread = Some(third);
    let found = one(scene.run(&StarvedRuntime));
    assert_eq!((found.kind, found.confidence), (Kind::StarvedRuntime, Confidence::Suspected));
    assert_eq!(found.doubts, [Doubt::WorkerHandedOver]);
}

/// Two workers in polls that do not return, and a task that was woken.
fn starved() -> (Scene, ThreadId) {
    let mut scene = Scene::new();
    for _ in 0..2 {
        let (worker, task) = (scene.thread("worker"), scene.task("busy"));
        scene.polls(worker, task);
    }
    let ready = scene.task("ready");
    (scene.facts(ready).wakes, scene.facts(ready).woken_ns) = (1, Some(NOW - 11 * SECOND));
    (scene, ready)
}

#[test]
fn an_executor_whose_workers_do_not_return_is_starved() {
    let (scene, ready) = starved();
    let found = one(scene.run(&StarvedRuntime));
    assert_eq!((found.kind, found.confidence), (Kind::StarvedRuntime, Confidence::Proven));
    let Evidence::BusyRuntime(busy) = &found.evidence else { panic!("{found:?}") };
    assert_eq!((busy.workers, busy.of_workers, busy.polls.len()), (2, 2, 2));
    assert_eq!((busy.ready.count, busy.ready.first[0].task), (1, ready));
    assert!(scene.run_after(&UnpolledTask, vec![found]).is_empty(), "explained");
    // Nobody waits: that is legitimate work, perhaps.
    let (mut scene, ready) = starved();
    scene.facts(ready).wakes = 0;
    assert_eq!(one(scene.run(&StarvedRuntime)).confidence, Confidence::Suspected);
}

#[test]
fn workers_that_wait_for_a_lock_are_not_helped_by_a_pool_for_calls_that_block() {
    let (mut scene, _) = starved();
    assert_eq!(one(scene.run(&StarvedRuntime)).advice, [Advice::MoveBlockingWork]);
    // The kernel says it: the lock is of a crate that nothing records.
    for worker in [0, 2] {
        scene.model.threads[worker].seen = Some(seen(Doing::WaitsForLock, true));
    }
    let found = one(scene.run(&StarvedRuntime));
    assert_eq!(found.advice, [Advice::NoThreadLocksOverAwait]);
    assert!(scene.run_after(&Stalled, vec![found]).is_empty(), "explained");
}

#[test]
fn short_polls_and_free_workers_starve_nobody() {
    let (mut scene, _) = starved();
    for id in [1, 3] {
        scene.facts(id).since_ns = Some(NOW - SECOND / 100);
    }
    assert!(scene.run(&StarvedRuntime).is_empty(), "busy, and healthy");
    let (mut scene, _) = starved();
    for id in [1, 3] {
        scene.facts(id).is_steady = false;
    }
    assert!(scene.run(&StarvedRuntime).is_empty(), "another poll each time");
    let (mut scene, _) = starved();
    scene.facts(3).is_polled = false;
    assert_eq!(one(scene.run(&StarvedRuntime)).kind, Kind::LongPoll, "one of two workers");
}

#[test]
fn a_poll_of_the_main_future_starves_what_its_thread_alone_polls_and_no_worker() {
    // Beside a worker.
    let (mut scene, ready) = starved();
    let main = scene.thread("main");
    make_local(&mut scene, 3, main);
    assert_eq!(one(scene.run(&StarvedRuntime)).kind, Kind::LongPoll, "one of two workers");
    // The task that was woken is one of that thread.
    make_local(&mut scene, ready, main);
    let found = scene.run(&StarvedRuntime);
    let of_thread = found.iter().find(|found| found.kind == Kind::StarvedRuntime).expect("it is starved");
    let Evidence::BusyRuntime(busy) = &of_thread.evidence else { panic!("{found:?}") };
    assert_eq!((of_thread.confidence, busy.only_thread), (Confidence::Proven, Some(main)));
    assert!(of_thread.premises.is_empty() && busy.ready.count == 1, "{of_thread:?}");
    assert!(scene.run_after(&UnpolledTask, found).is_empty(), "explained");
    // Nobody waits for it: it may do what it likes.
    scene.facts(ready).wakes = 0;
    assert!(scene.run(&StarvedRuntime).iter().all(|found| found.kind == Kind::LongPoll));
}

#[test]
fn a_poll_that_is_part_of_a_deadlock_is_reported_once() {
    // A task blocks its worker for a lock that another future of it holds.
    let mut scene = Scene::new();
    let (worker, task, lock) = (scene.thread("worker"), scene.task("stuck"), scene.lock("STD"));
    scene.polls(worker, task);
    scene.holds(task, lock);
    scene.waits(task, lock);
    let deadlock = one(scene.run(&Deadlock));
    assert_eq!(deadlock.advice, [Advice::EndTheProcess, Advice::NoThreadLocksOverAwait]);
    assert!(scene.run(&StarvedRuntime).is_empty(), "it waits for a lock: that is another finding's");
    scene.model.threads[task].wait = None;
    assert_eq!(one(scene.run(&StarvedRuntime)).kind, Kind::LongPoll);
    assert!(scene.run_after(&StarvedRuntime, vec![deadlock]).is_empty());
}

#[test]
fn a_task_of_a_deadlock_that_all_workers_are_in_is_not_reported_again_once_it_has_been_ready_for_long() {
    let mut scene = lock_over_await();
    (scene.facts(0).wakes, scene.facts(0).woken_ns) = (1, Some(NOW - 11 * SECOND));
    let deadlock = one(scene.run(&Deadlock));
    assert!(scene.run_after(&StarvedRuntime, vec![deadlock.clone()]).is_empty());
    // Another task wants a worker too, and is no part of the deadlock.
    let other = scene.task("other");
    (scene.facts(other).wakes, scene.facts(other).woken_ns) = (1, Some(NOW - 11 * SECOND));
    assert_eq!(one(scene.run_after(&StarvedRuntime, vec![deadlock])).kind, Kind::StarvedRuntime);
}

#[test]
fn calls_that_wait_for_a_thread_of_the_pool_are_reported_and_calls_that_run_are_not() {
    let (mut scene, ready) = starved();
    for id in [1, 3, ready] {
        scene.facts(id).kind = TaskKind::Blocking;
    }
    (scene.facts(ready).wakes, scene.facts(ready).polls) = (0, 0);
    let found = one(scene.run(&StarvedRuntime));
    assert_eq!((found.kind, found.confidence), (Kind::StarvedRuntime, Confidence::Suspected));
    scene.facts(ready).polls = 1;
    assert!(scene.run(&StarvedRuntime).is_empty(), "calls may take as long as they like");
}

#[test]
fn a_task_that_was_woken_and_that_nobody_polls_is_suspected() {
    let (mut scene, _) = starved();
    for id in [1, 3] {
        scene.facts(id).is_polled = false;
    }
    let found = one(scene.run(&UnpolledTask));
    assert_eq!((found.kind, found.confidence), (Kind::UnpolledTask, Confidence::Suspected));
    let mut idle = Scene::new();
    (0..1000).for_each(|_| _ = idle.task("connection"));
    assert!(idle.run(&UnpolledTask).is_empty(), "idle connections");
}
