//! Long waits and pile-ups: what is one, what is none, and what the evidence says.

use super::*;
use crate::findings::testing::{self, MILLISECOND, NOW, SECOND, Scene, finding_about};
use crate::findings::{Balance, Outcome, Overtaken};
use crate::locks::{Doing, StepKind};

/// A thread holds a lock without a time, as after an acquisition of a free lock. Others wait, the first for `first_ns`.
fn pile(mut scene: Scene, waiters: usize, first_ns: u64) -> Scene {
    let (owner, lock) = (scene.thread("owner"), scene.lock("CACHE"));
    scene.holds_with(owner, lock, |hold| hold.since_ns = None);
    for at in 0..waiters {
        let thread = scene.thread("worker");
        scene.waits_with(thread, lock, |wait| wait.since_ns = Some(NOW - first_ns + at as u64));
    }
    scene
}

fn idle(mut scene: Scene, count: usize) -> Scene {
    for _ in 0..count {
        scene.thread("idle");
    }
    scene
}

fn evidence(found: &[Finding]) -> &Standstill {
    let [Finding { evidence: Evidence::Standstill(of), .. }] = found else { panic!("{found:?}") };
    of
}

fn holder(found: &[Finding]) -> &StandingHolder {
    evidence(found).holder.as_ref().unwrap_or_else(|| panic!("{found:?}"))
}

#[track_caller]
fn kinds(scene: &Scene, expected: &[Kind]) {
    let found: Vec<Kind> = scene.run(&LongWait).iter().map(|finding| finding.kind).collect();
    assert_eq!(found, expected);
}

#[test]
fn one_waiter_is_a_long_wait_among_few_threads_and_among_thousands() {
    for others in [0, 5000] {
        for scene in [Scene::new(), Scene::dead()] {
            let found = idle(pile(scene, 1, 13 * SECOND), others).run(&LongWait);
            assert_eq!((found[0].kind, found[0].confidence), (Kind::LongWait, Confidence::Suspected));
            assert_eq!((found[0].threads_hurt, evidence(&found).blocked), (1, 1));
            assert_eq!(holder(&found).held_at_least_ns, Some(13 * SECOND), "bounded by the waiter");
        }
    }
}

#[test]
fn forty_thousand_waiters_are_one_long_wait() {
    let found = idle(pile(Scene::new(), 40_000, 13 * SECOND), 60_000).run(&LongWait);
    assert_eq!((found[0].kind, evidence(&found).blocked), (Kind::LongWait, 40_000));
    let listed: Vec<Option<u64>> = evidence(&found).waiters.first.iter().map(|wait| wait.for_ns).collect();
    assert_eq!(listed[0], Some(13 * SECOND), "the longest first");
    assert!(listed.is_sorted_by(|before, after| before >= after), "{listed:?}");
}

#[test]
fn a_silent_holder_is_reported_after_a_tenth_of_the_threshold() {
    kinds(&pile(Scene::new(), 1, SECOND), &[Kind::LongWait]);
    kinds(&pile(Scene::new(), 1, SECOND - 1), &[]);
    let mut works = pile(Scene::new(), 1, 9 * SECOND);
    works.model.threads[0].advanced = Some(7);
    kinds(&works, &[]);
    // It is not called sound either.
    let outcome = |scene: &Scene| scene.with_view(|view| Balance::of(view, &[]).outcome);
    assert_eq!(outcome(&works), Outcome::KeptLock);
    let mut is_short = pile(Scene::new(), 1, SECOND - 1);
    is_short.model.threads[0].advanced = Some(7);
    assert_eq!(outcome(&is_short), Outcome::NothingFound);
    works.model.threads[1].wait.as_mut().unwrap().since_ns = Some(NOW - 10 * SECOND);
    kinds(&works, &[Kind::LongWait]);
    assert_eq!(works.run(&LongWait)[0].advice, [Advice::ShortenHold]);
    assert_eq!(pile(Scene::new(), 1, SECOND).run(&LongWait)[0].advice, [Advice::CheckSilentHolder]);
}

#[test]
fn a_lock_without_a_known_holder_is_reported_from_the_threshold_on() {
    let mut scene = pile(Scene::new(), 1, 10 * SECOND);
    scene.model.locks[0].holders.clear();
    scene.model.threads[0].holds.clear();
    let found = scene.run(&LongWait);
    assert_eq!((found[0].kind, &found[0].advice[..]), (Kind::LongWait, &[Advice::FindHolder][..]));
    assert_eq!(evidence(&found).holder, None);
    scene.model.threads[1].wait.as_mut().unwrap().since_ns = Some(NOW - 9 * SECOND);
    kinds(&scene, &[]);
}

#[test]
fn a_chain_of_locks_is_one_finding_about_its_root() {
    let mut scene = pile(Scene::new(), 3, 13 * SECOND);
    for at in 0..20 {
        let lock = scene.lock(&format!("SESSION_{at}"));
        scene.holds(1, lock);
        let thread = scene.thread("client");
        scene.waits(thread, lock);
    }
    let found = scene.run(&LongWait);
    let of = evidence(&found);
    assert_eq!((of.lock, of.waiters.count, of.blocked, of.locks), (0, 3, 23, 21));
    assert_eq!(found[0].threads_hurt, 23);
}

#[test]
fn conditions_behind_the_lock_belong_to_the_finding() {
    // Two layers: threads at one lock, and others on conditions that those would signal.
    let mut scene = pile(Scene::new(), 30, 13 * SECOND);
    let session = scene.lock("SESSION");
    (1..=30).for_each(|thread| scene.nests(thread, &[session]));
    for _ in 0..40 {
        let thread = scene.thread("client");
        scene.waits_on_condition(thread, session);
    }
    let found = idle(scene, 100).run(&LongWait);
    assert_eq!((evidence(&found).blocked, evidence(&found).on_conditions), (30, 40));
}

#[test]
fn a_holder_that_waits_on_a_condition_is_said_to() {
    let mut scene = pile(Scene::new(), 1, 13 * SECOND);
    let queue = scene.lock("QUEUE");
    scene.waits_on_condition(0, queue);
    let found = scene.run(&LongWait);
    assert_eq!(holder(&found).sleep.map(|sleep| (sleep.lock, sleep.what)), Some((queue, Asleep::Condition)));
    assert_eq!(found[0].advice, [Advice::CheckSignal, Advice::NoLocksInWait]);
    let mut scene = pile(Scene::new(), 1, 13 * SECOND);
    let units = scene.lock("UNITS");
    scene.sleeps_on_semaphore(0, units);
    let sleep = holder(&scene.run(&LongWait)).sleep.map(|sleep| (sleep.lock, sleep.what));
    assert_eq!(sleep, Some((units, Asleep::Semaphore)));
}

#[test]
fn the_time_of_the_hold_has_no_bound_where_a_release_may_be_later() {
    let mut scene = pile(Scene::new(), 1, 13 * SECOND);
    let other = scene.thread("other");
    scene.step(other, StepKind::Released, 0).time_ns = Some(NOW - 20 * SECOND);
    assert_eq!(holder(&scene.run(&LongWait)).held_at_least_ns, Some(13 * SECOND), "released before");
    scene.step(other, StepKind::Released, 0).time_ns = None;
    assert_eq!(holder(&scene.run(&LongWait)).held_at_least_ns, None, "released at an unknown time");
}

#[test]
fn a_crowd_is_a_pile_up_before_its_wait_is_long() {
    kinds(&idle(pile(Scene::new(), 100, 500 * MILLISECOND), 5000), &[Kind::PileUp]);
    kinds(&idle(pile(Scene::new(), 100, MILLISECOND), 5000), &[Kind::PileUp]);
    kinds(&pile(Scene::new(), 5, 500 * MILLISECOND), &[Kind::PileUp]);
    kinds(&pile(Scene::new(), 5, MILLISECOND), &[]);
    kinds(&pile(Scene::new(), 3, 500 * MILLISECOND), &[]);
    // Threads that use the lock, and do not wait now.
    let mut scene = pile(Scene::new(), 100, 500 * MILLISECOND);
    for _ in 0..101 {
        let thread = scene.thread("user");
        scene.nests(thread, &[0]);
    }
    kinds(&scene, &[]);
}

#[test]
fn a_queue_that_moves_is_no_standstill() {
    let mut scene = pile(Scene::new(), 100, 500 * MILLISECOND);
    scene.model.locks[0].holders[0].is_steady = false;
    kinds(&scene, &[]);
    scene.model.locks[0].holders.clear();
    kinds(&scene, &[]);
}

#[test]
fn after_a_death_at_an_unknown_time_a_wait_that_may_be_long_is_reported_with_a_doubt() {
    // The wait was the last thing that was recorded.
    let found = pile(Scene::killed(), 1, 0).run(&LongWait);
    assert_eq!(
        (found[0].kind, &found[0].doubts[..]),
        (Kind::LongWait, &[Doubt::EndUnknown, Doubt::UnmarkedWork][..])
    );
    kinds(&pile(Scene::killed(), 1, 13 * SECOND), &[Kind::LongWait]);
    kinds(&pile(Scene::killed(), 8, 0), &[Kind::LongWait]);
}

#[test]
fn after_a_death_a_wait_for_a_busy_lock_is_nothing_unusual() {
    let mut scene = pile(Scene::killed(), 1, 0);
    let record = &mut scene.model.locks[0].record;
    (record.acquisitions, record.contended) = (40, 12);
    record.waits_ns = vec![MILLISECOND; 12];
    kinds(&scene, &[]);
    scene.model.locks[0].record.waits_ns = vec![20 * SECOND; 12];
    kinds(&scene, &[Kind::LongWait]);
}

#[test]
fn after_a_death_a_holder_where_others_often_went_on_is_nothing_unusual() {
    let mut scene = pile(Scene::killed(), 1, 0);
    let place = scene.location("backend.rs", 1);
    scene.snap(0, place);
    for passed in 0..=3 {
        kinds(&scene, if passed < 3 { &[Kind::LongWait] } else { &[] });
        scene.step(1, StepKind::AcquireBegin, 0);
        scene.snap(1, place);
        scene.step(1, StepKind::Released, 0);
    }
}

#[test]
fn after_a_death_a_lock_that_many_have_held_may_just_have_been_released() {
    let mut scene = pile(Scene::killed(), 1, 0);
    scene.model.locks[0].holders.clear();
    scene.model.threads[0].holds.clear();
    // The known histories of a busy lock may have few acquisitions.
    kinds(&scene, &[]);
    // A thread that records nothing may have it.
    scene.model.threads_refused = 1;
    for acquisitions in 0..=ACQUIRED_MANY {
        scene.model.locks[0].record.acquisitions = acquisitions;
        kinds(&scene, if acquisitions < ACQUIRED_MANY { &[Kind::LongWait] } else { &[] });
    }
}

#[test]
fn after_a_death_a_lock_that_was_released_at_an_unknown_time_may_have_moved_since() {
    let mut scene = pile(Scene::killed(), 1, 2 * SECOND);
    kinds(&scene, &[Kind::LongWait]);
    let place = scene.location("backend.rs", 1);
    scene.snap(0, place);
    for _ in 0..8 {
        scene.step(1, StepKind::AcquireBegin, 0);
        scene.snap(1, place);
        scene.step(1, StepKind::Released, 0);
    }
    kinds(&scene, &[Kind::LongWait]);
    let other = scene.thread("other");
    scene.step(other, StepKind::Released, 0).time_ns = None;
    kinds(&scene, &[]);
}

#[test]
fn after_a_death_a_wait_counts_from_the_last_change_of_hands_on() {
    // The first thread has waited for 13 s. The lock has changed hands meanwhile.
    let moved = |waiters| {
        let mut scene = pile(Scene::killed(), waiters, 13 * SECOND);
        scene.step(1, StepKind::Released, 0).time_ns = Some(NOW - MILLISECOND);
        scene
    };
    kinds(&moved(1), &[]);
    kinds(&moved(CROWD_MANY), &[Kind::PileUp]);
    assert_eq!(evidence(&moved(CROWD_MANY).run(&LongWait)).longest_ns, Some(13 * SECOND));
}

/// A process that died at an unknown moment, in which threads often waited for the lock for a moment.
fn busy(waiters: usize, first_ns: u64) -> Scene {
    let mut scene = pile(Scene::killed(), waiters, first_ns);
    let record = &mut scene.model.locks[0].record;
    (record.acquisitions, record.contended) = (40, 12);
    record.waits_ns = vec![MILLISECOND; 12];
    scene
}

#[test]
fn after_a_death_a_wait_for_a_busy_lock_may_be_out_of_the_ordinary() {
    kinds(&busy(1, 99 * MILLISECOND), &[]);
    kinds(&busy(1, 100 * MILLISECOND), &[Kind::LongWait]);
    let mut slow = busy(1, 100 * MILLISECOND);
    slow.model.locks[0].record.waits_ns = vec![11 * MILLISECOND; 12];
    kinds(&slow, &[]);
    let mut few = busy(1, 100 * MILLISECOND);
    few.model.locks[0].record.waits_ns.truncate(WAITS_MIN - 1);
    kinds(&few, &[]);
}

#[test]
fn after_a_death_a_holder_at_a_place_that_no_known_hold_passed_is_reported() {
    for waiters in [1, 5, 40] {
        let mut scene = busy(waiters, MILLISECOND);
        scene.nests(1, &[0]);
        let place = scene.location("backend.rs", 1);
        scene.snap(0, place);
        let found = scene.run(&LongWait);
        let expected = (Kind::LongWait, Doubt::EndUnknown);
        assert_eq!((found[0].kind, found[0].doubts[0]), expected);
        assert_eq!(holder(&found).passages, Some(Passages { ended: 1, passed: 0 }));
        // Others were there before, and went on.
        scene.step(1, StepKind::AcquireBegin, 0);
        scene.snap(1, place);
        scene.step(1, StepKind::Released, 0);
        kinds(&scene, if waiters < CROWD_MANY { &[] } else { &[Kind::PileUp] });
    }
}

/// A healthy program was killed while a thread slept for a millisecond between two locks. Its history had room for five
/// holds, and the finding counted passages only from eight on.
#[test]
fn after_a_death_a_holder_on_the_way_of_half_of_the_few_known_holds_may_be_waited_for_by_chance() {
    let mut scene = pile(Scene::killed(), 1, MILLISECOND);
    let (usual, other) = (scene.location("transfer.rs", 1), scene.location("audit.rs", 1));
    let hold = |scene: &mut Scene, thread, place| {
        scene.step(thread, StepKind::AcquireBegin, 0);
        scene.snap(thread, place);
        scene.step(thread, StepKind::Released, 0);
    };
    (0..4).for_each(|_| hold(&mut scene, 1, other));
    (0..3).for_each(|_| hold(&mut scene, 1, usual));
    scene.snap(0, usual);
    kinds(&scene, &[Kind::LongWait]);
    hold(&mut scene, 1, usual);
    kinds(&scene, &[]);
}

#[test]
fn what_an_earlier_finding_explains_is_not_reported_again() {
    let mut scene = pile(Scene::new(), 100, 13 * SECOND);
    for kind in [Kind::Deadlock, Kind::Unreleased, Kind::LostOwner, Kind::Convoy] {
        assert!(scene.run_after(&LongWait, vec![finding_about(kind, &[0])]).is_empty(), "{kind:?}");
    }
    // Threads behind a thread of a cycle are blocked by the deadlock.
    let other = scene.lock("OTHER");
    scene.holds(1, other);
    scene.waits(0, other);
    kinds(&scene, &[]);
}

#[test]
fn threads_that_were_overtaken_do_not_explain_others_that_wait_for_the_holder() {
    let mut scene = pile(Scene::new(), 100, 13 * SECOND);
    scene.model.is_final = true;
    let overtaken = |threads| {
        let evidence = Overtaken { lock: 0, threads, first: Vec::new() };
        vec![Finding::new(Kind::Starvation, Confidence::Suspected, evidence, Advice::FairLock)]
    };
    assert!(scene.run_after(&LongWait, overtaken(51)).is_empty());
    assert_eq!(scene.run_after(&LongWait, overtaken(50)).len(), 1);
}

/// The kernel says that the holder of a pile does this.
fn seen(mut scene: Scene, doing: Doing) -> Scene {
    scene.model.threads[0].seen = Some(testing::seen(doing, false));
    scene
}

#[test]
fn a_holder_that_gets_no_processor_is_reported_however_short_the_wait() {
    let scene = seen(pile(Scene::new(), 1, MILLISECOND), Doing::Starves);
    let found = scene.run(&LongWait);
    assert_eq!((found[0].kind, &found[0].advice[..]), (Kind::StarvedHolder, &[Advice::GiveProcessor][..]));
    assert_eq!((found[0].confidence, &found[0].doubts[..]), (Confidence::Suspected, &[][..]));
    // Each of these alone: the same as if nobody had asked the kernel.
    kinds(&seen(pile(Scene::new(), 1, MILLISECOND), Doing::Runs), &[]);
    let mut moves = scene;
    moves.model.locks[0].holders[0].is_steady = false;
    moves.model.threads[0].holds[0].is_steady = false;
    kinds(&moves, &[]);
    let mut passes = seen(pile(Scene::new(), 1, MILLISECOND), Doing::Starves);
    passes.model.locks[0].waiters[0].is_steady = false;
    kinds(&passes, &[]);
}

#[test]
fn a_holder_without_a_record_that_ran_lately_may_have_released_the_lock_meanwhile() {
    let holder_asleep = |asleep_ns: Option<u64>| {
        let mut scene = seen(pile(Scene::new(), 1, 2 * SECOND), Doing::WaitsOutside);
        let holder = &mut scene.model.threads[0];
        (holder.slot, holder.advanced) = (None, None);
        let seen = holder.seen.as_mut().unwrap();
        (seen.is_still, seen.asleep_ns) = (Some(true), asleep_ns.and_then(NonZeroU64::new));
        scene
    };
    kinds(&holder_asleep(Some(SECOND - 1)), &[]);
    kinds(&holder_asleep(Some(SECOND)), &[Kind::LongWait]);
    kinds(&holder_asleep(None), &[Kind::LongWait]);
    // It slept at both readings, and ran in between.
    let mut moved = holder_asleep(None);
    moved.model.threads[0].seen.as_mut().unwrap().is_still = Some(false);
    kinds(&moved, &[]);
    // It works.
    moved.model.threads[0].seen.as_mut().unwrap().doing = Doing::Runs;
    kinds(&moved, &[Kind::LongWait]);
}

#[test]
fn what_the_holder_does_by_the_kernel_decides_the_advice() {
    let cases = [
        (Doing::WaitsOutside, Advice::WaitUnlocked),
        (Doing::WaitsForThread, Advice::WaitUnlocked),
        (Doing::Stopped, Advice::LetRun),
        (Doing::Runs, Advice::ShortenHold),
        (Doing::Unknown, Advice::CheckSilentHolder),
    ];
    for (doing, advice) in cases {
        let found = seen(pile(Scene::new(), 1, 2 * SECOND), doing).run(&LongWait);
        assert_eq!((found[0].kind, &found[0].advice[..]), (Kind::LongWait, &[advice][..]), "{doing:?}");
        let doubts: &[Doubt] = if doing == Doing::Unknown { &[Doubt::UnmarkedWork] } else { &[] };
        assert_eq!(found[0].doubts, doubts, "{doing:?}");
    }
}

#[test]
fn who_initialises_for_long_is_told_nothing_of_guards() {
    for doing in [Doing::WaitsForChild, Doing::WaitsOutside, Doing::Runs] {
        let mut scene = seen(pile(Scene::new(), 1, 2 * SECOND), doing);
        scene.model.locks[0].nature.lock_type = read_rip_ring::LockType::Once;
        assert_eq!(scene.run(&LongWait)[0].advice, [Advice::ShortenInitialiser], "{doing:?}");
    }
}

#[test]
fn the_future_of_no_task_that_keeps_the_lock_is_named() {
    let mut scene = Scene::new();
    let (worker, lock) = (scene.thread("worker"), scene.lock("LOCK"));
    scene.holds(worker, lock);
    let task = scene.task("needs it");
    scene.awaits(task, lock);
    scene.is_held_by_future(lock);
    let found = scene.run(&LongWait);
    let future = evidence(&found).future.as_deref().unwrap();
    assert_eq!((future.thread, future.lock), (worker, lock));
    assert_eq!(evidence(&found).holder, None);
    scene.model.locks[lock].possible_holders[0].is_steady = false;
    assert_eq!(evidence(&scene.run(&LongWait)).future, None, "it moves");
}

#[test]
fn nobody_knows_how_long_a_free_lock_or_one_of_a_future_was_waited_for_when_the_process_died() {
    let mut scene = pile(Scene::killed(), 1, MILLISECOND);
    let mut unheld = pile(Scene::killed(), 1, MILLISECOND);
    unheld.model.locks[0].holders.clear();
    kinds(&unheld, &[]);
    unheld.model.threads_refused = 1;
    kinds(&unheld, &[Kind::LongWait]);
    scene.is_held_by_future(0);
    kinds(&scene, &[]);
}
