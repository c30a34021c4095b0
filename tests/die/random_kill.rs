//! SIGKILL at random instants, with threads at full speed and others that start and end.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Instant;

use librip_test_kit::oracle::{Damage, Ring, Slot, State};
use librip_test_kit::progress;
use librip_test_kit::victim::{Plan, torture};

use crate::{check_count, cycle, plan};

/// Threads that the victim runs at a time, at most: three at full speed, two times three short-lived ones.
/// Twice that: a slot is claimed before its thread is counted, and released after.
const THREADS: usize = 2 * 9;

/// Marsaglia's xorshift: the instants need to be different and repeatable, not of good quality.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Kills the victim `micros` after it is ready, and checks all of its threads. Returns how many there were.
fn kill_after(plan: Plan, micros: u64) -> (Ring, usize) {
    let mut victim = plan.start();
    victim.until("ready");
    victim.kill_after(micros);
    let remains = victim.wait();
    assert_eq!(remains.signal(), Some(libc::SIGKILL));
    let ring = remains.ring();
    let cells = progress::read(&remains.dir().join("progress"));
    check(&ring, &cells);
    (ring, cells.len())
}

fn check(ring: &Ring, cells: &[[u64; 4]]) {
    assert_eq!((ring.refused_full, ring.refused_memory), (0, 0), "there were slots for all");
    // There are thousands of threads and words, and few marks.
    let mut slots: HashMap<&str, Vec<&Slot>> = HashMap::new();
    ring.slots.iter().for_each(|slot| slots.entry(&slot.name).or_default().push(slot));
    let mut labels: HashMap<u64, &str> = HashMap::new();
    let mut label = |pc: u64| *labels.entry(pc).or_insert_with(|| ring.label(pc));
    let names: Vec<String> = (0..cells.len()).map(|index| format!("w{index}")).collect();
    let mut accounted = 0;
    for (name, &[state, tid, marks, is_gone]) in names.iter().zip(cells) {
        let of_name = slots.remove(name.as_str()).unwrap_or_default().into_iter();
        let found: Vec<_> =
            of_name.filter(|slot| matches!(slot.state, State::Live | State::Exited)).collect();
        let slot = match found.as_slice() {
            [slot] => slot,
            // Another thread may have its slot now, but only after it has exited.
            [] if marks == 0 || state == progress::FINISHED && ring.slots_reused > 0 => continue,
            [] => panic!("{name} made {marks} marks and has no slot"),
            _ => panic!("{name} has several slots"),
        };
        accounted += 1;
        assert_eq!((u64::from(slot.tid), slot.pid), (tid, ring.pid), "{name}");
        check_count(slot, marks);
        if state == progress::FINISHED {
            assert_eq!(slot.count - slot.first_sequence, marks, "{name} had finished");
        }
        if is_gone == 1 {
            assert_eq!(slot.state, State::Exited, "{name} had been joined");
        }
        for event in slot.events().events {
            let expected = cycle(event.sequence - slot.first_sequence);
            assert_eq!(label(event.pc), expected, "{name}, sequence {}", event.sequence);
        }
    }
    // Slots without a known thread were changing owners when the process died.
    let others: Vec<_> = slots.into_values().flatten().collect();
    assert!(others.iter().all(|slot| matches!(slot.state, State::Free | State::Claiming)), "{others:?}");
    let in_between = ring.slots.iter().filter(|slot| slot.state == State::Claiming).count();
    assert!(accounted + others.len() + in_between >= ring.slots.len(), "a slot has no known owner");
    assert!(others.len() <= THREADS);
    // Every word in a slot is the address of a mark, including the words of former owners.
    for word in ring.slots.iter().flat_map(|slot| &slot.words).filter(|&&word| word != 0) {
        assert!(label(word & 0xffff_ffff_ffff).starts_with("cycle "));
    }
}

/// Thirty rounds, and more until the kills have met enough: beside other work, a process gets less far until it is
/// killed.
fn rounds_until(is_enough: impl Fn() -> bool) -> impl Iterator<Item = u32> {
    let least = 30 * torture();
    (0..).take_while(move |&round| {
        assert!(round < 10 * least, "the kills met too little: the test is too kind");
        round < least || !is_enough()
    })
}

#[test]
fn all_known_marks_and_nothing_else_are_in_the_ring_at_any_instant_of_death() {
    let mut random = Random(0x5eed_0001);
    let (threads, mut kills) = (Cell::new(0), 0);
    for _ in rounds_until(|| threads.get() > 100) {
        // With enough slots none is reused, so the test can check every thread.
        let plan = plan(&["torture"]).env("RIP_SLOTS", "16384");
        let (ring, cells) = kill_after(plan, random.below(20_000));
        assert_eq!(ring.slots_reused, 0);
        threads.set(threads.get() + cells);
        kills += 1;
    }
    eprintln!("{kills} kills of {} threads", threads.get());
}

#[test]
fn reused_slots_hold_their_last_owners_marks_at_any_instant_of_death() {
    let mut random = Random(0x5eed_0002);
    let (reused, mut kills) = (Cell::new(0), 0);
    for round in rounds_until(|| reused.get() > 100) {
        let slots = THREADS + 2;
        let mut plan = plan(&["torture"]).env("RIP_SLOTS", slots.to_string());
        if round % 2 == 0 {
            plan = plan.env("RIP_WORDS", "16");
        }
        let (ring, _) = kill_after(plan, random.below(20_000));
        reused.set(reused.get() + ring.slots_reused);
        kills += 1;
    }
    eprintln!("{kills} kills, {} slots were used again", reused.get());
}

#[test]
fn a_process_that_is_killed_while_it_makes_its_ring_leaves_a_complete_ring_or_none() {
    let mut random = Random(0x5eed_0003);
    let (mut none, mut unfinished, mut whole) = (0, 0, 0);
    // How long it takes depends on the machine, and on what else that does.
    let begun = Instant::now();
    let first = plan(&["torture"]).start();
    while !first.ring_path().exists() {
        std::thread::yield_now();
    }
    let mut usual_us = begun.elapsed().as_micros() as u64;
    first.killed();
    // Until it was killed before and after, if that takes longer.
    let rounds = 60 * torture();
    for round in 0..20 * rounds {
        if round >= rounds && none > 0 && whole > 0 {
            break;
        }
        let mut victim = plan(&["torture"]).start();
        victim.kill_after(random.below(2 * usual_us));
        let remains = victim.wait();
        let ring = Ring::read(remains.ring_path());
        // The first one may have been slow, or fast.
        usual_us = if ring.is_ok() { usual_us - usual_us / 16 } else { usual_us + usual_us / 16 };
        match ring {
            Err(Damage::NoFile(_)) => none += 1,
            Err(Damage::Unfinished) => unfinished += 1,
            Err(damage) => panic!("{damage}"),
            Ok(ring) => {
                whole += 1;
                assert!(ring.modules.iter().any(|module| module.is_executable));
                let cells = progress::read_if_there(&remains.dir().join("progress"));
                check(&ring, &cells);
            }
        }
    }
    eprintln!("{} kills: no file {none}, unfinished {unfinished}, whole {whole}", none + unfinished + whole);
    assert!(none > 0 && whole > 0, "no file {none}, unfinished {unfinished}, whole {whole}");
}
