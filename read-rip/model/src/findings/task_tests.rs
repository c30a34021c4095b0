//! Scenes with tasks: deadlocks, futurelocks and channels, each beside what looks like it and is none.

use read_rip_ring::TaskKind;

use super::abandoned_channel::AbandonedChannel;
use super::deadlock::Deadlock;
use super::long_hold::LongHold;
use super::long_wait::LongWait;
use super::never_woken::NeverWokenTask;
use super::testing::{NOW, SECOND, Scene};
use super::{Advice, Blocker, Confidence, Doubt, Evidence, Finding, Kind, Premise, WaitEdge};
use crate::locks::{LockName, Ownership, TaskFacts, TaskFuture, TaskJoin, ThreadId, Wait};
use crate::threads::ThreadState;

/// The only finding.
pub(super) fn one(found: Vec<Finding>) -> Finding {
    let [found]: [Finding; 1] = found.try_into().expect("one finding");
    found
}

/// Two tasks that hold a lock each and wait for that of the other one.
fn crossed() -> (Scene, [ThreadId; 2]) {
    let mut scene = Scene::new();
    let tasks = ["one", "two"].map(|name| scene.task(name));
    let locks = ["A", "B"].map(|name| scene.lock(name));
    for at in 0..2 {
        scene.holds_over_await(tasks[at], locks[at], None);
        scene.awaits(tasks[at], locks[1 - at]);
    }
    (scene, tasks)
}

#[test]
fn tasks_that_wait_for_one_another_are_a_deadlock_and_one_can_be_ended() {
    let (scene, _) = crossed();
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Deadlock, Confidence::Proven));
    assert_eq!(found.premises, [Premise::GuardStays, Premise::NotAborted]);
    assert!(found.advice.contains(&Advice::AbortATask) && !found.advice.contains(&Advice::EndTheProcess));
}

#[test]
fn the_proof_of_a_deadlock_with_a_request_assumes_that_no_time_limit_drops_it() {
    let (mut scene, tasks) = crossed();
    scene.facts(tasks[1]).runtime.as_mut().unwrap().workers = 0;
    assert_eq!(one(scene.run(&Deadlock)).premises, [Premise::GuardStays, Premise::NotDropped]);
    scene.facts(tasks[1]).is_local = true;
    let of_main = [Premise::GuardStays, Premise::NotAborted];
    assert_eq!(one(scene.run(&Deadlock)).premises, of_main, "nothing polls a main future");
}

#[test]
fn a_task_that_something_else_may_wake_is_no_proof() {
    let changes: [fn(&mut Scene, ThreadId); 5] = [
        // A time limit or another branch keeps a waker too.
        |scene, task| scene.facts(task).wakers = Some(2),
        |scene, task| scene.facts(task).wakers = None,
        // The lock was polled with the waker of a combinator.
        |scene, task| scene.facts(task).waits[0].is_direct = false,
        // Nobody can wake it: then it waits for something that the record does not show.
        |scene, task| scene.facts(task).wakers = Some(0),
        |scene, task| scene.awaits(task, 1),
    ];
    for change in changes {
        let (mut scene, tasks) = crossed();
        change(&mut scene, tasks[0]);
        let found = one(scene.run(&Deadlock));
        assert_eq!((found.confidence, &found.doubts[..]), (Confidence::Potential, &[Doubt::OtherBranch][..]));
    }
    // Somebody has woken it: it goes on.
    let (mut scene, tasks) = crossed();
    scene.facts(tasks[0]).wakes = 1;
    assert_eq!(one(scene.run(&Deadlock)).confidence, Confidence::Potential);
}

#[test]
fn a_task_whose_combinator_may_poll_the_future_that_has_the_lock_is_not_stuck() {
    // Two futures of a task: one has a permit, and the other one waits for a permit.
    let scene = |holding: Option<usize>, waiting: Option<usize>| {
        let mut scene = Scene::new();
        let (task, lock) = (scene.task("import"), scene.lock("PERMITS"));
        scene.model.locks[lock].nature.ownership = Ownership::Anyone;
        scene.holds_over_await(task, lock, holding);
        scene.model.threads[task].holds[0].is_shared = true;
        scene.model.locks[lock].holders[0].is_shared = true;
        scene.awaits_with(task, lock, |wait| {
            wait.future = waiting;
            wait.wait.since_ns = Some(NOW - SECOND / 2);
        });
        (scene, task)
    };
    let (stuck, _) = scene(None, None);
    assert_eq!(one(stuck.run(&Deadlock)).confidence, Confidence::Potential, "the task itself polls it");
    // The one that has the permit waits for a timer, a peer or a disk. It is polled too, as with `buffer_unordered`.
    let (mut healthy, task) = scene(None, None);
    healthy.facts(task).waits[0].is_direct = false;
    assert!(healthy.run(&Deadlock).is_empty());
    let since_ns = Some(NOW - 12 * SECOND);
    healthy.facts(task).waits[0].wait.since_ns = since_ns;
    healthy.model.threads[task].wait.as_mut().unwrap().since_ns = since_ns;
    assert_eq!(one(healthy.run(&Deadlock)).doubts, [Doubt::MaybeSent, Doubt::OtherBranch], "for so long");
    // It is known to be the one that waits.
    let (mut one_future, task) = scene(Some(0), Some(0));
    let future = TaskFuture { index: 0, location: 0, outer: None, is_polled: Some(true) };
    one_future.facts(task).futures.push(future);
    one_future.facts(task).waits[0].is_direct = false;
    assert_eq!(one(one_future.run(&Deadlock)).confidence, Confidence::Potential);
}

#[test]
fn a_task_that_waits_for_its_own_lock_is_a_proof_unless_the_guard_can_be_sent() {
    let scene = || {
        let mut scene = Scene::new();
        let (task, lock) = (scene.task("again"), scene.lock("LOCK"));
        scene.model.locks[lock].nature.ownership = Ownership::ByRule;
        scene.holds_over_await(task, lock, None);
        scene.awaits(task, lock);
        scene
    };
    let mut own = scene();
    own.model.locks[0].name = LockName::None;
    assert_eq!(one(own.run(&Deadlock)).confidence, Confidence::Proven);
    let mut of_static = scene();
    of_static.model.locks[0].name = LockName::Symbol("STATE".into());
    let found = one(of_static.run(&Deadlock));
    assert_eq!((found.confidence, &found.doubts[..]), (Confidence::Potential, &[Doubt::MaybeSent][..]));
    let mut owned = scene();
    owned.model.locks[0].nature.ownership = Ownership::Anyone;
    assert_eq!(one(owned.run(&Deadlock)).confidence, Confidence::Suspected);
}

/// The program of RFD 609: a future of the task is first in line for a lock, another one awaits the same lock, and only
/// the latter is polled.
fn futurelock() -> (Scene, ThreadId) {
    let mut scene = Scene::new();
    let (task, lock) = (scene.task("stuck"), scene.lock("L"));
    scene.awaits_with(task, lock, |wait| {
        wait.is_polled = Some(false);
        wait.wait.since_ns = Some(NOW - 20 * SECOND);
    });
    scene.awaits(task, lock);
    (scene, task)
}

#[test]
fn a_future_that_is_first_in_line_and_not_polled_is_a_futurelock() {
    let (mut scene, _) = futurelock();
    let others: Vec<ThreadId> = (0..3).map(|_| scene.task("other")).collect();
    for &other in &others {
        scene.awaits(other, 0);
    }
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Futurelock, Confidence::Proven));
    assert_eq!(found.advice[0], Advice::PollOrDrop);
    let Evidence::WaitCycle(cycle) = &found.evidence else { panic!("{found:?}") };
    assert_eq!((cycle.threads, cycle.also_blocked), (1, 3));
    let [WaitEdge::Lock(edge)] = &cycle.edges[..] else { panic!("{cycle:?}") };
    assert!(
        matches!(&edge.blocker, Blocker::LeftOut(first) if first.for_ns == Some(20 * SECOND)),
        "{edge:?}"
    );
}

#[test]
fn a_future_that_may_have_been_woken_when_its_process_died_is_no_futurelock() {
    let (mut scene, task) = futurelock();
    scene.facts(task).counts_wakes = false;
    assert_eq!(one(scene.run(&Deadlock)).kind, Kind::Futurelock, "a second reading has it too");
    scene.model.is_final = true;
    assert!(scene.run(&Deadlock).is_empty());
    scene.facts(task).counts_wakes = true;
    assert_eq!(one(scene.run(&Deadlock)).kind, Kind::Futurelock, "nobody has woken it");
}

#[test]
fn a_lock_that_may_be_held_where_that_is_not_recorded_is_no_proven_futurelock() {
    // A semaphore is one: there may be no permits until somebody adds some.
    let (mut scene, _) = futurelock();
    scene.model.locks[0].nature.ownership = Ownership::Anyone;
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Futurelock, Confidence::Potential));
    assert!(found.doubts.contains(&Doubt::HolderUnrecorded), "{found:?}");
}

#[test]
fn a_task_that_awaits_the_end_of_another_one_is_stuck_only_if_nothing_else_may_wake_it() {
    let crossed = || {
        let mut scene = Scene::new();
        let [parent, child] = ["parent", "child"].map(|name| scene.task(name));
        let lock = scene.lock("L");
        scene.holds_over_await(parent, lock, None);
        scene.awaits(child, lock);
        scene.joins(parent, child, |join| join.is_of_future = true);
        scene.facts(parent).joins.push(TaskJoin { is_polled: Some(true), is_direct: true });
        (scene, parent)
    };
    assert_eq!(one(crossed().0.run(&Deadlock)).confidence, Confidence::Proven);
    // A time limit, or another branch, has a waker too; a left out future has none.
    type Change = fn(&mut TaskFacts);
    let changes: [Change; 3] =
        [|task| task.wakers = Some(2), |task| task.joins[0].is_direct = false, |task| task.wakes = 1];
    for change in changes {
        let (mut scene, parent) = crossed();
        change(scene.facts(parent));
        let found = one(scene.run(&Deadlock));
        assert_eq!((found.confidence, &found.doubts[..]), (Confidence::Potential, &[Doubt::OtherBranch][..]));
    }
}

#[test]
fn a_lock_that_is_held_or_was_just_given_to_a_future_is_no_futurelock() {
    type Change = fn(&mut Scene, ThreadId);
    let changes: [(&str, Change); 7] = [
        ("a thread that records nothing may hold it", |scene, _| scene.model.threads_refused = 1),
        ("the table of a thread that holds it may be full", |scene, task| {
            let pid = scene.model.threads[task].pid;
            scene.model.full.insert(pid);
        }),
        ("another task holds the lock", |scene, _| {
            let holder = scene.task("holder");
            scene.holds_over_await(holder, 0, None);
        }),
        ("the task was woken", |scene, task| scene.facts(task).wakes = 1),
        ("it is being polled", |scene, task| scene.facts(task).is_polled = true),
        ("it has moved between the readings", |scene, task| scene.facts(task).is_steady = false),
        ("the future is polled too, as with join!", |scene, task| {
            scene.facts(task).waits[0].is_polled = Some(true);
        }),
    ];
    for (what, change) in changes {
        let (mut scene, task) = futurelock();
        change(&mut scene, task);
        let found = scene.run(&Deadlock);
        assert!(found.is_empty(), "{what}: {found:?}");
    }
    // A time limit of the second future keeps a waker. The first one has none: it was woken when it got the lock.
    let (mut scene, task) = futurelock();
    scene.facts(task).wakers = Some(2);
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Futurelock, Confidence::Potential));
    assert_eq!(found.doubts, [Doubt::OtherBranch]);
    // Another task is first in line, and will be polled.
    let (mut scene, _) = futurelock();
    let first = scene.task("first");
    scene.awaits_with(first, 0, |wait| wait.wait.since_ns = Some(NOW - 40 * SECOND));
    assert!(scene.run(&Deadlock).is_empty());
}

#[test]
fn a_task_that_waits_for_what_a_left_out_future_of_its_own_holds_is_a_futurelock() {
    let mut scene = Scene::new();
    let (task, lock) = (scene.task("stuck"), scene.lock("L"));
    let location = scene.location("branch.rs", 1);
    scene.facts(task).futures = vec![TaskFuture { index: 0, location, outer: None, is_polled: Some(false) }];
    scene.holds_over_await(task, lock, Some(0));
    scene.awaits(task, lock);
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Futurelock, Confidence::Proven));
    // If the same future holds it and waits for it, that is an ordinary deadlock.
    scene.facts(task).futures[0].is_polled = Some(true);
    assert_eq!(one(scene.run(&Deadlock)).kind, Kind::Deadlock);
    // Two futures beside one another are not the same, also if the last poll polled both.
    let beside = TaskFuture { index: 1, location, outer: None, is_polled: Some(true) };
    scene.facts(task).futures.push(beside);
    scene.facts(task).waits[0].future = Some(1);
    assert_eq!(one(scene.run(&Deadlock)).kind, Kind::Futurelock);
    scene.facts(task).futures[1].outer = Some(0);
    assert_eq!(one(scene.run(&Deadlock)).kind, Kind::Deadlock, "one is part of the other");
}

#[test]
fn advice_for_coroutines_does_not_speak_of_locks_of_threads() {
    let mut scene = Scene::new();
    let (thread, stuck, own) = (scene.thread("scheduler"), scene.task("stuck"), scene.lock("OWN"));
    scene.polls(thread, stuck);
    scene.facts(stuck).kind = TaskKind::Coroutine;
    scene.holds(stuck, own);
    scene.waits(stuck, own);
    let advice = one(scene.run(&Deadlock)).advice;
    assert_eq!(advice, [Advice::EndTheProcess, Advice::ReleaseBeforeCall]);
    let mut scene = Scene::new();
    let (holder, waiter, lock) = (scene.task("holder"), scene.task("waiter"), scene.lock("L"));
    scene.facts(holder).kind = TaskKind::Coroutine;
    scene.holds(holder, lock);
    scene.waits(waiter, lock);
    assert_eq!(one(scene.run(&LongWait)).advice, [Advice::ReleaseBeforeAwait]);
}

/// A task holds a lock and waits for room in a channel. The task that receives from the channel waits for the lock.
fn lock_and_channel() -> (Scene, [ThreadId; 2]) {
    let mut scene = Scene::new();
    let [sender, receiver] = ["sender", "receiver"].map(|name| scene.task(name));
    let [lock, channel] = ["L", "JOBS"].map(|name| scene.lock(name));
    scene.holds_over_await(sender, lock, None);
    scene.awaits_peer(sender, channel, true, receiver);
    scene.awaits(receiver, lock);
    (scene, [sender, receiver])
}

#[test]
fn a_full_channel_and_a_lock_are_a_potential_deadlock() {
    let (scene, _) = lock_and_channel();
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Deadlock, Confidence::Potential));
    assert_eq!((&found.doubts[..], found.advice[0]), (&[Doubt::EndMayMove][..], Advice::SplitEnds));
    let Evidence::WaitCycle(cycle) = &found.evidence else { panic!("{found:?}") };
    let channel = cycle.edges.iter().find_map(WaitEdge::of_channel).expect("an edge is at the channel");
    assert!(channel.is_for_room && cycle.threads == 2, "{cycle:?}");
}

#[test]
fn a_full_channel_and_a_lock_are_a_suspected_deadlock_if_a_time_limit_may_wake_the_sender() {
    let (mut scene, [sender, receiver]) = lock_and_channel();
    // As with a layer of time limits around the handler of a request.
    scene.facts(sender).wakers = Some(2);
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Deadlock, Confidence::Suspected));
    assert_eq!(found.doubts, [Doubt::OtherBranch, Doubt::EndMayMove]);
    assert_eq!(found.advice, [Advice::SplitEnds]);
    // A task that waits for messages may well do something else meanwhile.
    scene.model.threads[sender].peer.as_mut().unwrap().receives = false;
    scene.model.threads[receiver].wait = None;
    assert!(scene.run(&Deadlock).is_empty());
}

#[test]
fn whoever_else_may_use_the_channel_or_wake_the_task_is_enough() {
    type Change = fn(&mut Scene, [ThreadId; 2]);
    let changes: [(&str, Change); 8] = [
        ("several have received", |scene, [sender, _]| {
            let peer = scene.model.threads[sender].peer.as_mut().unwrap();
            (peer.user, peer.present) = (None, None);
        }),
        ("nothing is known of the other side", |scene, [sender, _]| scene.model.threads[sender].peer = None),
        ("the sender was woken", |scene, [sender, _]| scene.facts(sender).wakes = 1),
        ("its future at the channel is left out", |scene, [sender, _]| {
            scene.facts(sender).waits[0].is_polled = Some(false);
        }),
        ("the sender is polled", |scene, [sender, _]| scene.facts(sender).is_polled = true),
        ("the sender has moved", |scene, [sender, _]| scene.facts(sender).is_steady = false),
        ("the wait is a new one", |scene, [sender, _]| {
            scene.model.threads[sender].sleep.as_mut().unwrap().is_steady = false;
        }),
        ("another one received", |scene, [sender, _]| {
            let other = scene.task("other");
            scene.model.threads[sender].peer.as_mut().unwrap().present = Some(other);
        }),
    ];
    for (what, change) in changes {
        let (mut scene, tasks) = lock_and_channel();
        change(&mut scene, tasks);
        let found = scene.run(&Deadlock);
        assert!(found.is_empty(), "{what}: {found:?}");
    }
}

#[test]
fn a_task_that_keeps_the_only_sender_waits_for_itself() {
    let mut scene = Scene::new();
    let (task, channel) = (scene.task("collector"), scene.lock("RESULTS"));
    scene.awaits_peer(task, channel, false, task);
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Deadlock, Confidence::Suspected));
    assert_eq!(found.advice[0], Advice::DropOwnSender);
    // Somebody else has the only sender, and is idle.
    let mut scene = Scene::new();
    let (task, other, channel) = (scene.task("server"), scene.task("client"), scene.lock("REQUESTS"));
    scene.awaits_peer(task, channel, false, other);
    assert!(scene.run(&Deadlock).is_empty());
}

#[test]
fn two_tasks_that_await_one_anothers_answers_are_a_suspected_deadlock() {
    let mut scene = Scene::new();
    let tasks = ["one", "other"].map(|name| scene.task(name));
    for (at, name) in ["ONE", "OTHER"].into_iter().enumerate() {
        let answer = scene.lock(name);
        scene.awaits_peer(tasks[at], answer, false, tasks[1 - at]);
        scene.model.threads[tasks[at]].peer.as_mut().unwrap().is_presumed = true;
    }
    let found = one(scene.run(&Deadlock));
    assert_eq!((found.kind, found.confidence), (Kind::Deadlock, Confidence::Suspected));
    assert_eq!((&found.doubts[..], found.advice[0]), (&[Doubt::AnswererPresumed][..], Advice::AnswerFirst));
    // The other one waits for the next request: it has none in hand.
    let answer = scene.model.threads[tasks[1]].peer.clone();
    scene.model.threads[tasks[1]].peer.as_mut().unwrap().is_presumed = false;
    assert!(scene.run(&Deadlock).is_empty());
    scene.model.threads[tasks[1]].peer = answer;
    // The other one has got its answer, or may get it from somewhere else.
    scene.facts(tasks[1]).wakers = Some(2);
    assert!(scene.run(&Deadlock).is_empty());
}

#[test]
fn a_full_channel_whose_receiving_task_has_ended_is_reported() {
    let mut scene = Scene::new();
    let [ended, sender] = ["ended", "sender"].map(|name| scene.task(name));
    let channel = scene.lock("JOBS");
    scene.model.threads[ended].state = ThreadState::Exited;
    scene.awaits_peer(sender, channel, true, ended);
    let found = one(scene.run(&AbandonedChannel));
    assert_eq!((found.kind, found.confidence), (Kind::AbandonedChannel, Confidence::Suspected));
    // An idle server: who has sent last has ended.
    scene.model.threads[sender].peer.as_mut().unwrap().receives = false;
    assert!(scene.run(&AbandonedChannel).is_empty());
    // The wait is short, or has a limit.
    let changes: [fn(&mut Wait); 3] = [
        |wait| wait.since_ns = Some(NOW - SECOND),
        |wait| wait.is_timed = true,
        |wait| wait.is_steady = false,
    ];
    for change in changes {
        scene.model.threads[sender].peer.as_mut().unwrap().receives = true;
        let mut wait = **scene.model.threads[sender].sleep.as_ref().unwrap();
        change(&mut wait);
        let before = scene.model.threads[sender].sleep.replace(Box::new(wait));
        assert!(scene.run(&AbandonedChannel).is_empty());
        scene.model.threads[sender].sleep = before;
    }
}

#[test]
fn a_task_without_a_waker_is_never_woken_and_that_is_said_at_once_if_others_need_its_lock() {
    let scene = || {
        let mut scene = Scene::new();
        let (task, lock) = (scene.task("reader"), scene.lock("CACHE"));
        scene.facts(task).wakers = Some(0);
        (scene, task, lock)
    };
    let (mut meant, task, lock) = scene();
    meant.holds_over_await(task, lock, None);
    assert!(meant.run(&NeverWokenTask).is_empty(), "nobody wants the lock");
    let waiter = meant.task("waiter");
    meant.awaits(waiter, lock);
    let found = one(meant.run(&NeverWokenTask));
    assert_eq!((found.kind, found.confidence), (Kind::NeverWoken, Confidence::Suspected));
    assert_eq!((found.threads_hurt, &found.doubts[..]), (2, &[Doubt::UnrecordedParent][..]));
    // Its guard may be with another task.
    meant.model.locks[lock].nature.ownership = Ownership::Anyone;
    assert!(meant.run(&NeverWokenTask).is_empty());
    type Change = fn(&mut TaskFacts);
    let changes: [(&str, Change); 7] = [
        ("a connection keeps a waker", |task| task.wakers = Some(1)),
        ("wakers are not counted", |task| task.wakers = None),
        ("it was woken", |task| task.wakes = 1),
        ("it is polled", |task| task.is_polled = true),
        ("it was never polled", |task| task.polls = 0),
        ("it goes on", |task| task.is_steady = false),
        ("another task polls it", |task| task.outer = Some(0)),
    ];
    for (what, change) in changes {
        let (mut scene, task, lock) = scene();
        scene.holds_over_await(task, lock, None);
        let waiter = scene.task("waiter");
        scene.awaits(waiter, lock);
        assert_eq!(scene.run(&NeverWokenTask).len(), 1);
        change(scene.facts(task));
        assert!(scene.run(&NeverWokenTask).is_empty(), "{what}");
    }
}

#[test]
fn a_lock_held_over_an_await_for_long_names_the_await() {
    let mut scene = Scene::new();
    let (task, lock) = (scene.task("sleeper"), scene.lock("CACHE"));
    scene.holds_over_await(task, lock, None);
    let location = scene.location("sleep.rs", 7);
    scene.facts(task).futures = vec![TaskFuture { index: 0, location, outer: None, is_polled: Some(true) }];
    let found = one(scene.run(&LongHold));
    assert_eq!((found.kind, found.advice[0]), (Kind::LongHold, Advice::ReleaseBeforeAwait));
    assert_eq!(found.doubts, [], "a task that is suspended is not busy");
    let Evidence::IdleHolder(holder) = &found.evidence else { panic!("{found:?}") };
    assert_eq!(holder.suspended.and_then(|suspended| suspended.location), Some(location));
    let waiter = scene.task("waiter");
    scene.awaits(waiter, lock);
    let found = one(scene.run(&LongWait));
    assert_eq!((found.kind, found.advice[0]), (Kind::LongWait, Advice::ReleaseBeforeAwait));
    let Evidence::Standstill(of) = &found.evidence else { panic!("{found:?}") };
    let suspended = of.holder.as_ref().and_then(|holder| holder.suspended.as_deref());
    assert_eq!(suspended.and_then(|suspended| suspended.location), Some(location));
    // A task that is polled may be busy.
    scene.facts(task).is_polled = true;
    let found = one(scene.run(&LongWait));
    assert_eq!((found.advice[0], &found.doubts[..]), (Advice::CheckSilentHolder, &[Doubt::UnmarkedWork][..]));
}
