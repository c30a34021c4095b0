//! Which thread gets which slot, and when a slot is reused.

use librip_test_kit::oracle::State;
use librip_test_kit::progress;
use librip_test_kit::victim::torture;

use crate::{cycle, ended, plan, run};

#[test]
fn the_first_mark_claims_a_slot_with_name_and_tid_and_the_exit_is_recorded() {
    let remains = run(&["first"]);
    let ring = remains.ring();
    assert_eq!(ring.slots.len(), 1, "threads that do not mark have no slot: {:?}", ring.slots);
    let slot = &ring.slots[0];
    let cells = progress::read(&remains.dir().join("progress"));
    assert_eq!((slot.name.as_str(), u64::from(slot.tid), slot.pid), ("marks", cells[0][1], ring.pid));
    assert_eq!((slot.state, slot.generation, slot.first_sequence), (State::Exited, 1, 0));
    assert!(0 < slot.claimed_ns && slot.claimed_ns <= slot.exited_ns);
    assert_eq!(ring.labels(slot), ["first", "second"]);
}

#[test]
fn a_thread_records_as_soon_as_its_call_of_init_has_returned() {
    for _ in 0..8 * torture() {
        let ring = run(&["begin_together"]).ring();
        assert_eq!(ring.slots.len(), 16);
        for slot in &ring.slots {
            assert_eq!(ring.labels(slot), ["began"], "{}", slot.name);
        }
    }
}

#[test]
fn exited_slots_are_reused_oldest_first_and_their_old_words_are_not_the_new_owners() {
    let mut victim = plan(&["reuse"]).env("RIP_SLOTS", "4").start();
    victim.until("paused");
    let ring = victim.ring_now(&victim.ring_path()).unwrap();
    victim.go_on();
    ended(victim.wait());
    assert_eq!((ring.slots.len(), ring.slots_reused, ring.refused_full), (4, 4, 0));
    // a, b, c and d had slots 0 to 3, and exited in the order c, a, d, b.
    for (name, index) in [("e", 2), ("f", 0), ("g", 3), ("h", 1)] {
        let slot = ring.slot_named(name);
        assert_eq!((slot.index, slot.state, slot.generation), (index, State::Live, 2), "{name}");
        assert_eq!((slot.first_sequence, slot.count, slot.exited_ns), (5, 8, 0), "{name}");
        assert_eq!(ring.labels(slot), cycle(0..3), "{name}");
        // The former owner's words are still in the slot; first_sequence separates them.
        for (at, label) in cycle(0..5).into_iter().enumerate() {
            assert_eq!(ring.label(slot.words[at] & 0xffff_ffff_ffff), label);
        }
    }
}

#[test]
fn no_slot_is_reused_while_fresh_ones_are_left() {
    let ring = run(&["fresh"]).ring();
    assert_eq!((ring.slots.len(), ring.slots_reused, ring.refused_full), (64, 0, 0));
    for index in 0..64 {
        let slot = ring.slot_named(&format!("t{index}"));
        assert_eq!((slot.state, slot.count, slot.generation), (State::Exited, index + 1, 1));
        assert_eq!(ring.labels(slot), cycle(0..index + 1));
    }
}

#[test]
fn a_thread_with_the_tid_of_a_dead_one_does_not_erase_its_evidence() {
    let remains = run(&["same_tid"]);
    if matches!(remains.stdout.trim(), "cannot" | "unlucky") {
        eprintln!("SKIPPED: no tid could be had twice: {}", remains.stdout.trim());
        return;
    }
    let ring = remains.ring();
    let (dead, alive) = (ring.slot_named("dies"), ring.slot_named("lives"));
    assert_eq!(dead.tid.to_string(), remains.stdout.trim());
    assert_eq!(dead.tid, alive.tid);
    assert_ne!(dead.index, alive.index);
    assert_eq!(ring.labels(dead), cycle(0..5));
    assert_eq!(ring.labels(alive), cycle(0..3));
}

#[test]
fn a_thousand_threads_that_mark_first_at_the_same_time_have_a_slot_each() {
    for _ in 0..2 * torture() {
        let mut victim = plan(&["crowd", "1000"]).env("RIP_SLOTS", "1000").start();
        victim.until("paused");
        let ring = victim.ring_now(&victim.ring_path()).unwrap();
        victim.go_on();
        let remains = ended(victim.wait());
        assert_eq!((ring.slots.len(), ring.refused_full, ring.refused_memory), (1000, 0, 0));
        for (index, cell) in progress::read(&remains.dir().join("progress")).iter().enumerate() {
            let slot = ring.slot_named(&format!("w{index}"));
            assert_eq!((u64::from(slot.tid), slot.state, slot.generation), (cell[1], State::Live, 1));
            assert_eq!(ring.labels(slot), cycle(0..3));
        }
    }
}

#[test]
fn when_no_slot_is_left_that_of_a_killed_child_is_reused_and_those_of_living_threads_are_not() {
    let remains = ended(plan(&["reclaim"]).env("RIP_SLOTS", "2").run());
    let ring = remains.ring();
    assert_eq!((ring.slots.len(), ring.slots_reused, ring.refused_full), (2, 1, 0));
    assert_eq!(ring.labels(ring.slot_named("victim")), ["parent", "parent again"]);
    let heir = ring.slot_named("heir");
    assert_eq!((heir.pid, heir.generation, heir.first_sequence), (ring.pid, 2, 5));
    assert_eq!(ring.labels(heir), cycle(0..3));
}

#[test]
fn the_first_child_that_crashed_keeps_its_slots_however_many_crash_after_it() {
    let remains = ended(plan(&["crash_loop"]).env("RIP_SLOTS", "16").env("RIP_KEEP", "always").run());
    let ring = remains.ring();
    assert!(ring.slots_reused > 0, "the later ones had to take turns");
    assert_eq!(ring.labels(ring.slot_named("first")), ["crashes"]);
}

#[test]
fn a_thread_that_ends_itself_with_pthread_exit_is_recorded_as_exited() {
    let ring = run(&["pthread_exit"]).ring();
    let slot = ring.slot_named("leaver");
    assert_eq!(slot.state, State::Exited);
    assert_eq!(ring.labels(slot), cycle(0..5));
}
