//! Tests of `deadlock`. They build scenes by hand, and run no program.

use super::*;
use crate::findings::Evidence;
use crate::findings::testing::{MILLISECOND, NOW, SECOND, Scene};
use crate::findings::waits_for::LAP_WORDS;
use crate::findings::{Doubt, HoldFact, Premise};
use crate::locks::{Hold, HoldState, Join, Ownership, StepKind, Wait};
use crate::threads::ThreadState;

/// Each thread has one lock and waits for its neighbour's.
fn circle(mut scene: Scene, threads: usize) -> Scene {
    for at in 0..threads {
        scene.thread(&format!("worker {at}"));
        scene.lock(&format!("LOCK_{at}"));
    }
    for at in 0..threads {
        scene.holds(at, at);
        scene.waits(at, (at + 1) % threads);
    }
    scene
}

fn cycle(found: &[Finding]) -> &WaitCycle {
    let Evidence::WaitCycle(cycle) = &found[0].evidence else { panic!("{found:?}") };
    cycle
}

/// An edge of the cycle that is a wait for a lock.
fn edge(found: &[Finding], at: usize) -> &LockEdge {
    cycle(found).edges[at].of_lock().expect("a wait for a lock")
}

fn holder(found: &[Finding], edge: usize) -> &HoldFact {
    let Blocker::Holder(hold) = &self::edge(found, edge).blocker else { panic!("{found:?}") };
    hold
}

fn confidences(scene: &Scene) -> Vec<Confidence> {
    scene.run(&Deadlock).iter().map(|finding| finding.confidence).collect()
}

/// Changes the wait of a thread in both lists of the model.
fn change_wait(scene: &mut Scene, thread: usize, change: impl Fn(&mut Wait)) {
    let Some(wait) = &mut scene.model.threads[thread].wait else { panic!("it waits") };
    change(wait);
    let lock = wait.lock;
    scene.model.locks[lock].waiters.iter_mut().filter(|wait| wait.thread == thread).for_each(change);
}

fn change_hold(scene: &mut Scene, lock: usize, change: impl Fn(&mut Hold)) {
    let owner = scene.model.locks[lock].holders[0].thread;
    change(&mut scene.model.locks[lock].holders[0]);
    scene.model.threads[owner].holds.iter_mut().filter(|hold| hold.lock == lock).for_each(change);
}

#[test]
fn cycles_of_2_to_50_threads_are_proven() {
    for (scene, threads) in (2..=50).flat_map(|threads| [(Scene::new(), threads), (Scene::dead(), threads)]) {
        let found = circle(scene, threads).run(&Deadlock);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].confidence, Confidence::Proven);
        let mentions = &found[0].mentions;
        assert_eq!((mentions.threads.len(), mentions.locks.len()), (threads, threads));
        assert_eq!(cycle(&found).edges.len(), threads);
        assert_eq!(found[0].since_ns, Some(NOW - 12 * SECOND));
        assert_eq!(found[0].doubts, []);
    }
}

#[test]
fn the_text_has_the_first_threads_of_a_long_cycle() {
    for threads in [8, 9, 50] {
        let scene = circle(Scene::new(), threads);
        let found = scene.run(&Deadlock);
        let lines = scene.says(&found[0]).1;
        // Two lines a thread: what it holds and what it waits for.
        assert_eq!(
            &lines[..2],
            [
                "worker 0 holds LOCK_0 for 30.0 s, acquired at take.rs:10",
                "worker 0 waits for LOCK_1 at wait.rs:11",
            ]
        );
        // Who holds the last lock has no lines of its own.
        assert_eq!(lines[15].ends_with(", held by worker 8"), threads > 8, "{lines:#?}");
        let rest = lines.get(16).map(|line| &**line);
        let expected = format!(
            "and so on: {} more {} close the cycle",
            threads - 8,
            agree(threads - 8, "thread", "threads")
        );
        assert_eq!(rest, (threads > 8).then_some(&*expected), "{lines:#?}");
    }
}

#[test]
fn each_edge_has_the_wait_and_the_hold_that_blocks_it() {
    let found = circle(Scene::new(), 2).run(&Deadlock);
    assert_eq!(cycle(&found).for_ns, Some(12 * SECOND));
    let (wait, hold) = (edge(&found, 0).wait, holder(&found, 0));
    assert_eq!((wait.thread, wait.lock, wait.for_ns), (0, 1, Some(12 * SECOND)));
    assert_eq!((hold.thread, hold.lock, hold.for_ns), (1, 1, Some(30 * SECOND)));
    assert_eq!(found[0].advice, [Advice::EndTheProcess, Advice::OneOrder]);
}

#[test]
fn threads_blocked_by_a_deadlock_are_counted() {
    let mut scene = circle(Scene::new(), 2);
    let lock = scene.lock("ALSO_HELD");
    let first = scene.thread("first blocked");
    scene.holds(first, lock);
    scene.waits(first, 0);
    for at in 0..13 {
        let thread = scene.thread(&format!("blocked {at}"));
        scene.waits(thread, lock);
    }
    let found = scene.run(&Deadlock);
    assert_eq!(found[0].threads_hurt, 16);
    assert_eq!(cycle(&found).also_blocked, 14);
    assert!(!found[0].mentions.threads.contains(&first));
}

#[test]
fn waiting_for_a_lock_that_the_thread_holds_is_the_shortest_deadlock() {
    let mut scene = Scene::new();
    let (thread, lock) = (scene.thread("again"), scene.lock("ONCE"));
    scene.holds(thread, lock);
    scene.waits(thread, lock);
    let found = scene.run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Proven);
    assert_eq!((cycle(&found).threads, holder(&found, 0).thread), (1, thread));
    scene.model.locks[lock].nature.is_reentrant = true;
    assert!(scene.run(&Deadlock).is_empty(), "a recursive lock");
}

#[test]
fn a_chain_is_no_cycle() {
    let mut scene = circle(Scene::new(), 5);
    scene.model.threads[4].wait = None;
    scene.model.locks[0].waiters.clear();
    assert!(scene.run(&Deadlock).is_empty());
}

#[test]
fn what_moved_between_the_readings_is_not_used() {
    let mut scene = circle(Scene::new(), 3);
    change_wait(&mut scene, 1, |wait| wait.is_steady = false);
    assert!(scene.run(&Deadlock).is_empty(), "an unsteady wait");
    let mut scene = circle(Scene::new(), 3);
    change_hold(&mut scene, 1, |hold| hold.is_steady = false);
    assert!(scene.run(&Deadlock).is_empty(), "an unsteady hold");
    let mut scene = circle(Scene::new(), 3);
    change_hold(&mut scene, 1, |hold| hold.state = HoldState::Releasing);
    assert!(scene.run(&Deadlock).is_empty(), "a lock being released");
}

#[test]
fn an_entry_of_another_lap_is_not_the_same() {
    let mut scene = circle(Scene::new(), 2);
    scene.model.threads[0].advanced = Some(3);
    assert_eq!(confidences(&scene), [Confidence::Proven], "marks of a signal handler");
    scene.model.threads[0].advanced = Some(LAP_WORDS);
    assert!(scene.run(&Deadlock).is_empty());
}

#[test]
fn a_thread_that_no_longer_exists_waits_for_nothing() {
    for state in [ThreadState::Exited, ThreadState::Abandoned] {
        let mut scene = circle(Scene::new(), 2);
        scene.model.threads[1].state = state;
        assert!(scene.run(&Deadlock).is_empty());
    }
}

#[test]
fn a_wait_with_a_time_limit_makes_it_potential() {
    let mut scene = circle(Scene::new(), 3);
    change_wait(&mut scene, 2, |wait| wait.is_timed = true);
    let found = scene.run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Potential);
    assert_eq!(found[0].doubts, [Doubt::TimedWait]);
}

#[test]
fn contradictions_and_lost_releases_prove_nothing() {
    let mut scene = circle(Scene::new(), 2);
    let other = scene.thread("other");
    scene.holds(other, 0);
    assert_eq!(confidences(&scene), [Confidence::Suspected], "two exclusive holders");

    let mut scene = circle(Scene::new(), 2);
    scene.by_hand(0);
    assert_eq!(confidences(&scene), [Confidence::Potential], "marked by hand");
    scene.model.releases_unmatched = 1;
    assert_eq!(
        confidences(&scene),
        [Confidence::Suspected],
        "marked by hand, with releases that match nothing"
    );
}

#[test]
fn a_lock_that_threads_hand_over_proves_nothing() {
    let mut scene = circle(Scene::new(), 2);
    let other = scene.thread("other");
    scene.step(0, StepKind::AcquireBegin, 0);
    scene.step(other, StepKind::Released, 0);
    assert_eq!(confidences(&scene), [Confidence::Suspected]);
}

#[test]
fn who_can_release_a_lock_decides_how_certain_a_hold_is() {
    let answer = |ownership| {
        let mut scene = circle(Scene::new(), 2);
        scene.model.locks[0].nature.ownership = ownership;
        scene.model.locks[1].nature.ownership = Ownership::Enforced;
        let found = scene.run(&Deadlock);
        (found[0].confidence, found[0].doubts.clone(), found[0].premises.clone())
    };
    assert_eq!(answer(Ownership::Enforced), (Confidence::Proven, vec![], vec![]));
    assert_eq!(answer(Ownership::ByRule), (Confidence::Proven, vec![], vec![Premise::OwnerReleases]));
    assert_eq!(answer(Ownership::Anyone), (Confidence::Suspected, vec![Doubt::MaybeSent], vec![]));
}

#[test]
fn a_thread_that_waits_for_a_lock_that_anyone_can_release_may_use_it_as_a_gate() {
    let mut scene = Scene::new();
    let (thread, lock) = (scene.thread("again"), scene.lock("ONCE"));
    scene.holds(thread, lock);
    scene.waits(thread, lock);
    scene.model.locks[lock].nature.ownership = Ownership::Anyone;
    let found = scene.run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Suspected);
    assert!(found[0].doubts.contains(&Doubt::MaybeGate));
}

#[test]
fn what_the_recorder_remembers_of_locks_that_were_handed_over_proves_nothing() {
    for ownership in [Ownership::Enforced, Ownership::ByRule, Ownership::Anyone] {
        let mut lock = circle(Scene::new(), 2);
        lock.model.locks[0].is_handed_over = true;
        let mut place = circle(Scene::new(), 2);
        change_hold(&mut place, 0, |hold| hold.has_place_of_handed_over = true);
        for mut scene in [lock, place] {
            scene.model.locks[0].nature.ownership = ownership;
            let found = scene.run(&Deadlock);
            if ownership == Ownership::Enforced {
                assert_eq!(found[0].confidence, Confidence::Proven, "only the owner can release it");
            } else {
                assert_eq!(found[0].confidence, Confidence::Suspected, "{ownership:?}");
                assert_eq!(found[0].doubts, [Doubt::HandedOver], "{ownership:?}");
                assert_eq!(found[0].premises, [], "a suspicion assumes nothing");
            }
        }
    }
}

#[test]
fn readers_wait_for_writers_and_writers_for_readers() {
    // A mutex and a lock that is shared: the reader waits for the mutex, its holder for all readers.
    let mut scene = Scene::new();
    let (mutex, table) = (scene.lock("MUTEX"), scene.rwlock("TABLE", Some(false)));
    let (reader, writer, other) = (scene.thread("reader"), scene.thread("writer"), scene.thread("other"));
    scene.shares(reader, table);
    scene.shares(other, table);
    scene.holds(writer, mutex);
    scene.waits(reader, mutex);
    scene.waits(writer, table);
    let found = scene.run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Proven);
    assert_eq!(found[0].mentions.threads, [reader, writer]);
    assert!(holder(&found, 1).is_shared);
}

#[test]
fn readers_do_not_wait_for_readers() {
    let mut scene = Scene::new();
    let locks = [scene.rwlock("A", Some(false)), scene.rwlock("B", None)];
    for at in 0..2 {
        let thread = scene.thread("reader");
        scene.shares(thread, locks[at]);
        scene.waits_to_share(thread, locks[1 - at]);
    }
    assert!(scene.run(&Deadlock).is_empty());
}

/// A reader reads again while a writer waits.
fn reads_again(readers_first: Option<bool>) -> Scene {
    let mut scene = Scene::dead();
    let lock = scene.rwlock("TABLE", readers_first);
    let (reader, writer) = (scene.thread("reader"), scene.thread("writer"));
    scene.shares(reader, lock);
    scene.waits(writer, lock);
    scene.waits_to_share(reader, lock);
    scene
}

#[test]
fn a_nested_read_and_a_queued_writer_are_a_deadlock() {
    let found = reads_again(Some(false)).run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Proven);
    assert_eq!(edge(&found, 0).blocker, Blocker::QueuedWriter(1));
    assert_eq!(found[0].advice, [Advice::NoNestedReads]);
    assert_eq!(found[0].mentions.threads.len(), 2);
    assert!(reads_again(Some(true)).run(&Deadlock).is_empty(), "readers pass writers");
    let found = reads_again(None).run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Suspected);
    assert!(!found[0].doubts.is_empty());
}

#[test]
fn the_order_in_a_queue_must_be_certain() {
    // The first reader holds A and waits for B. A writer queues there too: it waits for the second reader, which
    // waits for A.
    let scene = |waited_ns: u64| {
        let mut scene = Scene::dead();
        let (a, b) = (scene.lock("A"), scene.rwlock("B", Some(false)));
        let (first, writer, second) = (scene.thread("first"), scene.thread("writer"), scene.thread("second"));
        scene.holds(first, a);
        scene.shares(second, b);
        scene.waits(writer, b);
        scene.waits_with(first, b, |wait| (wait.is_shared, wait.since_ns) = (true, Some(NOW - waited_ns)));
        scene.waits(second, a);
        scene
    };
    assert_eq!(confidences(&scene(SECOND)), [Confidence::Proven]);
    assert_eq!(confidences(&scene(MILLISECOND)), [Confidence::Potential]);
}

#[test]
fn a_lock_marked_by_hand_may_be_upgraded_or_recursive() {
    let mut scene = Scene::dead();
    let (thread, lock) = (scene.thread("upgrades"), scene.lock("TABLE"));
    scene.by_hand(lock);
    scene.shares(thread, lock);
    scene.waits(thread, lock);
    assert_eq!(confidences(&scene), [Confidence::Suspected]);

    let mut scene = Scene::dead();
    let (thread, lock) = (scene.thread("again"), scene.lock("ONCE"));
    scene.by_hand(lock);
    scene.holds(thread, lock);
    scene.waits_with(thread, lock, |wait| wait.since_ns = Some(NOW));
    assert_eq!(confidences(&scene), [Confidence::Suspected], "killed between a mark and a call");
}

#[test]
fn a_stronger_cycle_does_not_hide_a_separate_weaker_one() {
    let mut scene = circle(Scene::new(), 2);
    let lock = scene.lock("ONCE");
    let thread = scene.thread("again");
    scene.holds(thread, lock);
    scene.waits_with(thread, lock, |wait| wait.is_timed = true);
    let mut found = confidences(&scene);
    found.sort();
    assert_eq!(found, [Confidence::Potential, Confidence::Proven]);
}

#[test]
fn the_cost_grows_linearly_with_readers_and_writers() {
    // 20,000 readers of A wait to write B, 20,000 readers of B wait to write A: 800 million pairs.
    let mut scene = Scene::dead();
    let locks = [scene.rwlock("A", Some(false)), scene.rwlock("B", Some(false))];
    let location = scene.location("a.rs", 1);
    for at in 0..40_000 {
        let thread = scene.thread("many");
        scene.shares(thread, locks[at % 2]);
        scene.waits_with(thread, locks[1 - at % 2], |wait| wait.location = location);
    }
    let began = std::time::Instant::now();
    let found = scene.run(&Deadlock);
    assert_eq!((found.len(), found[0].mentions.threads.len(), found[0].threads_hurt), (1, 2, 40_000));
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

/// The first thread holds M2 and waits on a condition with M1. The second thread holds M1 and waits for M2.
fn circle_through_a_condition(mut scene: Scene) -> Scene {
    let (first, second) = (scene.thread("waits on a condition"), scene.thread("has its lock"));
    let (m1, m2) = (scene.lock("M1"), scene.lock("M2"));
    scene.holds(first, m2);
    scene.waits_on_condition(first, m1);
    scene.holds(second, m1);
    scene.waits(second, m2);
    scene
}

#[test]
fn a_thread_that_waits_on_a_condition_needs_the_lock_to_return() {
    for scene in [Scene::new(), Scene::dead()] {
        let found = circle_through_a_condition(scene).run(&Deadlock);
        assert_eq!((found.len(), found[0].confidence), (1, Confidence::Proven));
        let relocks: Vec<bool> =
            (0..cycle(&found).edges.len()).map(|at| edge(&found, at).wait.is_relock).collect();
        assert_eq!(relocks, [true, false]);
        assert_eq!(found[0].advice.last(), Some(&Advice::NoLocksInWait));
    }
}

#[test]
fn a_condition_whose_lock_is_free_closes_no_cycle() {
    let mut scene = circle_through_a_condition(Scene::new());
    scene.model.locks[0].holders.clear();
    scene.model.threads[1].holds.clear();
    assert!(confidences(&scene).is_empty(), "a signal lets the thread return");
}

#[test]
fn a_wait_on_a_condition_that_changed_between_two_readings_closes_no_cycle() {
    let mut scene = circle_through_a_condition(Scene::new());
    let relock = scene.model.threads[0].relock.as_mut().unwrap();
    relock.is_steady = false;
    assert!(confidences(&scene).is_empty());
}

#[test]
fn the_holder_of_a_recursive_lock_keeps_it_while_it_waits_on_a_condition() {
    let mut scene = circle_through_a_condition(Scene::new());
    scene.model.locks[0].holders.clear();
    scene.model.threads[1].holds.clear();
    scene.holds(0, 0);
    assert!(confidences(&scene).is_empty(), "it does not wait for itself");
}

#[test]
fn threads_behind_a_condition_of_a_deadlock_are_blocked_too() {
    let mut scene = circle(Scene::new(), 2);
    let other = scene.thread("also needs a lock of the cycle");
    scene.waits_on_condition(other, 0);
    assert_eq!(cycle(&scene.run(&Deadlock)).also_blocked, 1);
}

#[test]
fn locks_that_were_initialised_where_a_handed_over_lock_was_are_not_certain() {
    let mut scene = circle(Scene::new(), 2);
    let (sent, place) = (scene.lock("SENT"), scene.location("made.rs", 7));
    for lock in [0, 1, sent] {
        scene.model.locks[lock].nature.ownership = Ownership::ByRule;
    }
    scene.model.locks[sent].is_handed_over = true;
    scene.model.locks[sent].initialised_at = Some(place);
    assert_eq!(scene.run(&Deadlock)[0].confidence, Confidence::Proven);
    scene.model.locks[0].initialised_at = Some(place);
    let found = scene.run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Suspected);
    assert_eq!(found[0].doubts, [Doubt::HandedOver]);
}

/// The first thread holds a lock and waits for the end of the second one, which waits for the lock.
fn joined_under_a_lock(change: impl Fn(&mut Join)) -> Scene {
    let mut scene = Scene::of_two_threads_and_a_lock();
    scene.holds(0, 0);
    scene.waits(1, 0);
    scene.joins(0, 1, change);
    scene
}

#[test]
fn a_lock_held_over_a_join_whose_thread_waits_for_it_is_a_deadlock() {
    let found = joined_under_a_lock(|_| {}).run(&Deadlock);
    assert_eq!((found.len(), found[0].confidence), (1, Confidence::Proven), "{found:?}");
    assert_eq!(found[0].advice, [Advice::EndTheProcess, Advice::NoLocksInJoin]);
    assert_eq!(cycle(&found).threads, 2);
    assert!(
        matches!(cycle(&found).edges[0], WaitEdge::Join { join } if (join.thread, join.joined) == (0, 1))
    );
    assert_eq!(found[0].mentions.threads, [0, 1]);
}

#[test]
fn a_join_is_judged_like_a_wait() {
    assert_eq!(confidences(&joined_under_a_lock(|join| join.is_timed = true)), [Confidence::Potential]);
    assert_eq!(confidences(&joined_under_a_lock(|join| join.is_steady = false)), []);
    let mut ended = joined_under_a_lock(|_| {});
    ended.model.threads[1].state = ThreadState::Exited;
    assert_eq!(confidences(&ended), []);
}

#[test]
fn threads_that_join_each_other_are_a_deadlock() {
    let mut scene = Scene::of_two_threads_and_a_lock();
    scene.joins(0, 1, |_| {});
    assert_eq!(confidences(&scene), []);
    scene.joins(1, 0, |_| {});
    assert_eq!(confidences(&scene), [Confidence::Proven]);
    let advice = scene.run(&Deadlock)[0].advice.clone();
    assert_eq!(advice, [Advice::EndTheProcess, Advice::NoJoinCircle], "there is no lock to release");
}

#[test]
fn the_memory_of_locks_by_hand_says_who_owns_them() {
    let scene = || {
        let mut scene = circle(Scene::new(), 2);
        (0..2).for_each(|at| {
            scene.by_hand(at);
            scene.owned_in_memory(at, at);
        });
        scene
    };
    let found = scene().run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Proven);
    assert_eq!(found[0].premises, [Premise::OwnerReleases, Premise::MemoryIntact]);
    assert!(found[0].doubts.is_empty(), "{found:?}");
    let mut changed = scene();
    changed.model.locks[1].owner.as_mut().unwrap().ownership = Ownership::Enforced;
    changed.model.locks[0].owner.as_mut().unwrap().ownership = Ownership::Enforced;
    assert_eq!(changed.run(&Deadlock)[0].premises, [Premise::MemoryIntact]);
    let mut changed = scene();
    changed.model.locks[1].owner.as_mut().unwrap().is_steady = false;
    assert_eq!(confidences(&changed), [Confidence::Potential]);
    let mut changed = scene();
    changed.model.locks[1].owner.as_mut().unwrap().thread = 0;
    assert_eq!(confidences(&changed), [Confidence::Potential], "it names another thread");
    let mut changed = scene();
    changed.model.locks[1].owner.as_mut().unwrap().may_be_elsewhere = true;
    let found = changed.run(&Deadlock);
    assert_eq!(
        (found[0].confidence, &*found[0].doubts),
        (Confidence::Suspected, &[Doubt::OwnerElsewhere][..])
    );
}

#[test]
fn a_record_that_is_certain_trusts_no_memory() {
    let mut scene = circle(Scene::new(), 2);
    (0..2).for_each(|at| scene.owned_in_memory(at, at));
    assert_eq!(scene.run(&Deadlock)[0].premises, [Premise::OwnerReleases]);
}

#[test]
fn a_thread_that_sleeps_in_the_mutex_that_it_owns_is_stuck_though_it_is_marked_by_hand() {
    let mut scene = circle(Scene::new(), 1);
    scene.by_hand(0);
    assert_eq!(confidences(&scene), [Confidence::Suspected], "it may be recursive");
    scene.owned_in_memory(0, 0);
    assert_eq!(confidences(&scene), [Confidence::Suspected], "perhaps it does not sleep there");
    change_wait(&mut scene, 0, |wait| wait.is_seen = true);
    assert_eq!(confidences(&scene), [Confidence::Proven]);
}

#[test]
fn the_owner_in_memory_counts_where_another_holder_is_recorded_and_both_are_told() {
    let mut scene = circle(Scene::new(), 2);
    let other = scene.thread("other");
    scene.holds(other, 0);
    assert_eq!(confidences(&scene), [Confidence::Suspected], "two holders");
    scene.owned_in_memory(0, 0);
    let found = scene.run(&Deadlock);
    assert_eq!(found[0].confidence, Confidence::Proven);
    let said = scene.says(&found[0]).1.join("\n");
    assert!(said.contains("by its memory; the record says that other holds it"), "{said}");
}

#[test]
fn a_lock_that_wrappers_saw_handed_over_is_suspected_though_its_memory_names_the_holder() {
    let mut scene = circle(Scene::new(), 2);
    (0..2).for_each(|at| scene.owned_in_memory(at, at));
    scene.model.locks[1].is_handed_over = true;
    assert_eq!(confidences(&scene), [Confidence::Suspected]);
    // Marks by hand say less than the memory.
    scene.by_hand(1);
    assert_eq!(confidences(&scene), [Confidence::Proven]);
}
