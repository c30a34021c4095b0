//! Tests of `lock_order`. They build scenes by hand, and run no program.

use read_rip_ring::Position;

use super::*;
use crate::findings::Evidence;
use crate::findings::testing::{NOW, SECOND, Scene, finding_about};
use crate::locks::{Ownership, StepKind, Steps};

/// Two threads and these locks.
fn scene(locks: &[&str]) -> Scene {
    let mut scene = Scene::new();
    scene.thread("one");
    scene.thread("two");
    locks.iter().for_each(|name| {
        scene.lock(name);
    });
    scene
}

fn cycle(found: &[Finding]) -> &OrderCycle {
    let Evidence::OrderCycle(cycle) = &found[0].evidence else { panic!("{found:?}") };
    cycle
}

#[test]
fn opposite_orders_of_two_threads_are_potential() {
    let mut scene = scene(&["A", "B"]);
    scene.nests(0, &[0, 1]);
    scene.nests(1, &[1, 0]);
    let found = scene.run(&LockOrder);
    assert_eq!((found.len(), found[0].confidence), (1, Confidence::Potential));
    let edges = &cycle(&found).edges;
    assert_eq!((edges.len(), edges[0].held.lock, edges[0].acquired.lock), (2, 0, 1));
    assert_eq!((edges[1].held.lock, edges[1].acquired.lock), (1, 0));
}

#[test]
fn opposite_orders_are_suspected_if_an_address_may_have_been_that_of_several_locks() {
    let inversion = || {
        let mut scene = scene(&["A", "B"]);
        scene.nests(0, &[0, 1]);
        scene.nests(1, &[1, 0]);
        scene.model.locks[0].name = LockName::None;
        scene
    };
    let found = inversion().run(&LockOrder);
    assert_eq!(
        (found[0].confidence, &found[0].doubts[..]),
        (Confidence::Suspected, &[Doubt::AddressReused][..])
    );
    let mut in_static = inversion();
    in_static.model.locks[0].name = LockName::Symbol("CACHE".into());
    assert_eq!(in_static.run(&LockOrder)[0].confidence, Confidence::Potential);
    let mut ends_recorded = inversion();
    ends_recorded.model.locks[0].nature.ownership = Ownership::Enforced;
    assert_eq!(ends_recorded.run(&LockOrder)[0].confidence, Confidence::Potential);
    let mut begun = scene(&["A", "B"]);
    begun.step(0, StepKind::Initialised, 0);
    begun.nests(0, &[0, 1]);
    begun.nests(1, &[1, 0]);
    begun.model.locks[0].name = LockName::None;
    assert_eq!(begun.run(&LockOrder)[0].confidence, Confidence::Potential);
}

#[test]
fn one_order_and_one_thread_are_no_inversion() {
    let mut same = scene(&["A", "B"]);
    same.nests(0, &[0, 1]);
    same.nests(1, &[0, 1]);
    assert!(same.run(&LockOrder).is_empty(), "one order");
    let mut single = scene(&["A", "B"]);
    single.nests(0, &[0, 1]);
    single.nests(0, &[1, 0]);
    assert!(single.run(&LockOrder).is_empty(), "one thread");
}

#[test]
fn a_gate_lock_keeps_the_threads_apart() {
    let mut gated = scene(&["A", "B", "GATE"]);
    gated.nests(0, &[2, 0, 1]);
    gated.nests(1, &[2, 1, 0]);
    assert!(gated.run(&LockOrder).is_empty());
    // A gate that both share lets both in.
    for thread in 0..2 {
        for step in gated.steps(thread).iter_mut().filter(|step| step.lock == Some(2)) {
            step.is_shared = true;
        }
    }
    assert_eq!(gated.run(&LockOrder).len(), 1);
}

#[test]
fn a_gate_acquired_before_the_history_begins_is_still_a_gate() {
    let mut scene = scene(&["A", "B", "GATE"]);
    for (thread, order) in [(0, [0, 1]), (1, [1, 0])] {
        scene.nests(thread, &order);
        scene.model.threads[thread].overwritten = 100;
    }
    assert_eq!(scene.run(&LockOrder).len(), 1);
    scene.step(0, StepKind::Released, 2);
    scene.holds(1, 2);
    assert!(scene.run(&LockOrder).is_empty(), "one thread released it later, the other still holds it");
}

#[test]
fn a_thread_whose_table_overflowed_adds_no_edges() {
    let mut scene = scene(&["A", "B"]);
    scene.nests(0, &[0, 1]);
    scene.nests(1, &[1, 0]);
    scene.model.threads[1].overflowed = 1;
    assert!(scene.run(&LockOrder).is_empty());
}

#[test]
fn a_successful_try_adds_no_edge_to_the_acquired_lock() {
    let mut scene = scene(&["A", "B"]);
    scene.nests(0, &[0, 1]);
    scene.nests(1, &[1, 0]);
    scene.steps(1)[1].is_try = true;
    assert!(scene.run(&LockOrder).is_empty(), "it tries the second");
    scene.steps(1)[1].is_try = false;
    scene.steps(1)[0].is_try = true;
    assert_eq!(scene.run(&LockOrder).len(), 1, "it tried the first, and blocks for the second");
}

#[test]
fn a_lock_released_before_the_second_is_no_edge() {
    let mut scene = scene(&["A", "B"]);
    scene.nests(0, &[0, 1]);
    scene.nests(1, &[1]);
    scene.nests(1, &[0]);
    assert!(scene.run(&LockOrder).is_empty());
}

#[test]
fn a_thread_that_waits_adds_an_edge_from_what_it_holds() {
    let mut scene = scene(&["A", "B"]);
    scene.nests(0, &[0, 1]);
    scene.holds(1, 1);
    scene.waits(1, 0);
    assert_eq!(scene.run(&LockOrder).len(), 1);
    if let Some(wait) = &mut scene.model.threads[1].wait {
        wait.is_timed = true;
    }
    assert!(scene.run(&LockOrder).is_empty(), "for a limited time");
}

#[test]
fn readers_of_both_locks_cannot_block_one_another() {
    let mut scene = Scene::new();
    let locks = [scene.rwlock("A", Some(true)), scene.rwlock("B", Some(true))];
    for order in [[0, 1], [1, 0]] {
        let thread = scene.thread("reader");
        scene.nests(thread, &order.map(|at| locks[at]));
        scene.steps(thread).iter_mut().for_each(|step| step.is_shared = true);
    }
    assert!(scene.run(&LockOrder).is_empty(), "readers only");
    // One of the two writes the second lock that it acquires. The other one still only reads what this one reads.
    scene.steps(0)[1].is_shared = false;
    assert!(scene.run(&LockOrder).is_empty(), "one writer");
    scene.steps(1)[1].is_shared = false;
    assert_eq!(scene.run(&LockOrder).len(), 1, "each writes what the other reads");
}

#[test]
fn long_cycles_are_found_once() {
    for locks in [3, 5, 50] {
        let mut scene = Scene::new();
        for at in 0..locks {
            scene.thread("philosopher");
            scene.lock(&format!("FORK_{at}"));
        }
        for at in 0..locks {
            scene.nests(at, &[at, (at + 1) % locks]);
        }
        let found = scene.run(&LockOrder);
        assert_eq!((found.len(), cycle(&found).edges.len()), (1, locks));
    }
}

#[test]
fn locks_of_one_name_are_one_finding() {
    let mut scene = Scene::new();
    for _ in 0..10 {
        let threads = [scene.thread("one"), scene.thread("two")];
        let locks = [scene.lock("ACCOUNT"), scene.lock("ACCOUNT")];
        scene.nests(threads[0], &locks);
        scene.nests(threads[1], &[locks[1], locks[0]]);
    }
    let found = scene.run(&LockOrder);
    assert_eq!(found.len(), 1);
    assert_eq!(cycle(&found).similar, 9);
}

#[test]
fn the_end_of_a_condition_wait_acquires_the_lock() {
    let mut scene = scene(&["A", "B"]);
    scene.step(0, StepKind::AcquireBegin, 0);
    scene.step(0, StepKind::AcquireBegin, 1);
    scene.step(0, StepKind::ConditionWait, 0);
    scene.step(0, StepKind::ConditionWoken, 0);
    scene.nests(1, &[0, 1]);
    assert_eq!(scene.run(&LockOrder).len(), 1);
}

#[test]
fn locks_of_a_deadlock_are_not_reported_again() {
    let mut scene = scene(&["A", "B"]);
    scene.nests(0, &[0, 1]);
    scene.nests(1, &[1, 0]);
    let deadlock = finding_about(Kind::Deadlock, &[0, 1]);
    assert!(scene.run_after(&LockOrder, vec![deadlock]).is_empty());
}

/// A thread that acquires this many locks one inside the other, and then maybe another one in the opposite order.
fn nested(locks: usize, orders: usize) -> Scene {
    let mut scene = Scene::new();
    let mut locks: Vec<_> = (0..locks).map(|at| scene.lock(&format!("SHARD_{at}"))).collect();
    for _ in 0..orders {
        let thread = scene.thread("locks all");
        scene.nests(thread, &locks);
        locks.reverse();
    }
    scene
}

#[test]
fn a_thousand_locks_held_at_once_make_no_edge_if_there_is_one_order() {
    let scene = nested(1000, 1);
    let orders = scene.with_view(|view| Orders::of(view, &Kin::of(view.now)));
    let Orders { edges, nesting, is_cut } = orders;
    assert!(edges.is_empty() && !is_cut);
    assert_eq!(nesting.len(), 1000, "each list of held locks adds one lock to another list");
}

#[test]
fn too_many_opposite_orders_are_compared_in_part_and_that_is_said() {
    let mut found = Vec::new();
    let scene = nested(1000, 2);
    let limit = scene.with_view(|view| LockOrder.run_bounded(view, &mut found));
    assert_eq!((found.len(), limit), (FINDINGS_MAX, Some(Limit::LockOrders)));
    let few = nested(100, 2);
    assert_eq!(few.with_view(|view| LockOrder.run_bounded(view, &mut Vec::new())), None);
}

/// Two threads that acquire two locks in opposite orders.
fn opposite_orders() -> Scene {
    let mut scene = Scene::of_two_threads_and_a_lock();
    scene.lock("OTHER");
    scene.nests(0, &[0, 1]);
    scene.nests(1, &[1, 0]);
    scene
}

#[test]
fn threads_of_which_one_exited_before_the_other_began_are_suspected_only() {
    let mut scene = opposite_orders();
    scene.model.threads[1].claimed_ns = NOW - 10 * SECOND;
    scene.model.threads[0].exited_ns = Some(NOW - 9 * SECOND);
    assert_eq!(scene.run(&LockOrder)[0].confidence, Confidence::Potential);
    scene.model.threads[0].exited_ns = Some(NOW - 11 * SECOND);
    let found = scene.run(&LockOrder);
    assert_eq!(found[0].confidence, Confidence::Suspected);
    assert_eq!(found[0].doubts, [Doubt::OneAfterTheOther]);
}

#[test]
fn what_the_main_thread_did_before_another_thread_began_is_suspected_only() {
    let mut scene = opposite_orders();
    let main = &mut scene.model.threads[0];
    (main.is_first, main.tid) = (true, main.pid);
    scene.model.threads[1].first_slot_count = 4;
    assert_eq!(scene.run(&LockOrder)[0].confidence, Confidence::Suspected);
    scene.nests(0, &[0, 1]);
    assert_eq!(scene.run(&LockOrder)[0].confidence, Confidence::Potential, "it did it again");
}

#[test]
fn what_the_creator_of_a_thread_did_before_is_ordered() {
    let mut scene = opposite_orders();
    scene.model.threads[1].creator = Some(Position { index: 0, count: 4 });
    assert!(scene.run(&LockOrder).is_empty());
    scene.nests(0, &[0, 1]);
    assert_eq!(scene.run(&LockOrder)[0].confidence, Confidence::Potential, "it did it again");
}

#[test]
fn what_the_creator_of_a_threads_creator_did_before_is_ordered() {
    let mut scene = opposite_orders();
    let creator = scene.thread("creator");
    scene.model.threads[creator].creator = Some(Position { index: 0, count: 4 });
    scene.model.threads[1].creator = Some(Position { index: creator as u64, count: 7 });
    assert!(scene.run(&LockOrder).is_empty());
    scene.model.threads[creator].first_sequence = 7;
    assert_eq!(scene.run(&LockOrder)[0].confidence, Confidence::Potential, "the slot has another owner");
}

#[test]
fn what_a_thread_does_after_it_has_joined_another_is_ordered() {
    let mut scene = opposite_orders();
    scene.model.threads[1].joiner = Some(Position { index: 0, count: 1 });
    assert_eq!(scene.run(&LockOrder)[0].confidence, Confidence::Potential, "it held one lock already");
    scene.model.threads[0].steps = Steps::default();
    scene.nests(0, &[]);
    scene.step(0, StepKind::Progress, 0);
    scene.nests(0, &[0, 1]);
    assert!(scene.run(&LockOrder).is_empty());
}

#[test]
fn threads_that_are_joined_and_created_one_after_the_other_are_not_ordered() {
    let mut scene = opposite_orders();
    let main = scene.thread("main");
    scene.model.threads[0].joiner = Some(Position { index: main as u64, count: 3 });
    scene.model.threads[1].creator = Some(Position { index: main as u64, count: 5 });
    assert_eq!(scene.run(&LockOrder).len(), 1);
}

#[test]
fn threads_that_created_one_another_are_damage() {
    let mut scene = opposite_orders();
    for thread in [0, 1] {
        scene.model.threads[thread].creator = Some(Position { index: 1 - thread as u64, count: 1 });
    }
    scene.run(&LockOrder);
}

#[test]
fn what_a_thread_did_before_and_after_the_life_of_another_is_ordered() {
    let mut scene = opposite_orders();
    scene.nests(0, &[0, 1]);
    scene.model.threads[1].creator = Some(Position { index: 0, count: 4 });
    assert_eq!(scene.run(&LockOrder).len(), 1);
    scene.model.threads[1].joiner = Some(Position { index: 0, count: 4 });
    assert!(scene.run(&LockOrder).is_empty());
    scene.model.threads[1].joiner = Some(Position { index: 0, count: 6 });
    assert_eq!(scene.run(&LockOrder).len(), 1, "it held a lock during the join");
}
