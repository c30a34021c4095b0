//! No space: on the file system, or in the ring.

use librip_test_kit::oracle::{Damage, Ring, State};
use librip_test_kit::victim::{Victim, expect_same, is_root};

use crate::{plan, survives};

/// Runs a victim on a file system of 256 KiB of its own.
fn start_on_small_tmpfs(arguments: &[&str], with_ring: bool) -> Victim {
    let plan = plan(arguments).tmpfs("size=256k");
    let plan = if arguments == ["churn"] { plan.env("RIP_SLOTS", "65536") } else { plan };
    let ring = plan.dir().join("mount/ring");
    let plan = if with_ring { plan.env("RIP_RING", ring) } else { plan.env("RIP_RING", "off") };
    plan.start()
}

/// Reads the ring at each pause of the victim, and compares with a run without a ring.
fn looks_at_pauses(arguments: &[&str]) -> Vec<Result<Ring, Damage>> {
    let mut looks = Vec::new();
    let mut remains = [false, true].map(|with_ring| {
        let mut victim = start_on_small_tmpfs(arguments, with_ring);
        let pauses = if arguments == ["full_after"] { 2 } else { 1 };
        for _ in 0..pauses {
            victim.until("paused");
            if with_ring {
                looks.push(victim.ring_now(&victim.dir().join("mount/ring")));
            }
            victim.go_on();
        }
        Some(victim.wait())
    });
    let (without, with) = (remains[0].take().unwrap(), remains[1].take().unwrap());
    assert_eq!(with.status.code(), Some(3), "{with:?}");
    expect_same(&with, &without);
    looks
}

#[test]
fn a_full_file_system_gets_no_ring_and_no_file() {
    if !is_root("a_full_file_system_gets_no_ring_and_no_file") {
        return;
    }
    let looks = looks_at_pauses(&["full_before"]);
    assert!(matches!(looks[0], Err(Damage::NoFile(_))), "{looks:?}");
}

#[test]
fn short_lived_threads_are_all_recorded_on_a_small_file_system() {
    if !is_root("short_lived_threads_are_all_recorded_on_a_small_file_system") {
        return;
    }
    let ring = looks_at_pauses(&["churn"]).pop().unwrap().unwrap();
    assert_eq!((ring.refused_memory, ring.refused_full), (0, 0));
    // The last threads are recorded, and the ring takes no more than half of the 256 KiB. The places of all marks of
    // the victim are in that half too.
    let slots = ring.slots.len();
    assert!((35..=120).contains(&slots), "{slots} slots");
    for index in 3000 - slots + 1..3000 {
        assert_eq!(ring.slot_named(&format!("c{index}")).state, State::Exited);
    }
}

#[test]
fn a_small_file_system_is_left_to_the_program() {
    if !is_root("a_small_file_system_is_left_to_the_program") {
        return;
    }
    let plan = plan(&["churn"]).tmpfs("size=64k");
    let ring = plan.dir().join("mount/ring");
    let mut victim = plan.env("RIP_RING", &ring).start();
    victim.until("paused");
    let found = victim.ring_now(&ring);
    assert!(matches!(found, Err(Damage::NoFile(_))), "a ring took the program's memory");
    victim.go_on();
    assert_eq!(victim.wait().status.code(), Some(3));
}

#[test]
fn threads_that_start_while_the_file_system_is_full_are_refused_and_counted() {
    if !is_root("threads_that_come_when_the_file_system_is_full_are_refused_and_counted") {
        return;
    }
    let mut looks = looks_at_pauses(&["full_after"]);
    let (room, full) = (looks.pop().unwrap().unwrap(), looks.pop().unwrap().unwrap());
    // The earlier thread continues to record.
    let early = full.slot_named("early");
    assert_eq!((early.count, early.state), (10, State::Exited));
    let recorded = full.slots.iter().filter(|slot| slot.name.starts_with("full")).count();
    assert_eq!(recorded as u64 + full.refused_memory, 20, "each of the 20 has a slot or was counted");
    assert!(recorded <= 3, "a page holds four slots, and one was taken: {recorded}");
    assert_eq!(full.refused_full, 0);
    for slot in full.slots.iter().filter(|slot| slot.name.starts_with("full")) {
        assert_eq!(full.labels(slot).len(), 6);
    }
    for index in 0..5 {
        assert_eq!(room.labels(room.slot_named(&format!("room{index}"))).len(), 6);
    }
    assert_eq!(room.refused_memory, full.refused_memory);
}

#[test]
fn threads_without_a_free_slot_are_refused_and_counted_and_the_others_record() {
    let remains = survives(&["crowd"], |plan| plan.env("RIP_SLOTS", "4"));
    let ring = remains.ring();
    assert_eq!((ring.slots.len(), ring.refused_full, ring.refused_memory), (4, 6, 0));
    // Four of the ten threads recorded all of their marks. The later thread reused one of their slots.
    assert_eq!(ring.labels(ring.slot_named("later")), ["cycle 0", "cycle 1", "cycle 2", "cycle 3"]);
    let others: Vec<_> = ring.slots.iter().filter(|slot| slot.name.starts_with('w')).collect();
    assert_eq!(others.len(), 3);
    for slot in others {
        assert_eq!((slot.state, ring.labels(slot).len()), (State::Exited, 6));
    }
}
