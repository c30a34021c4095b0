//! One file for each way to die: the ring contains the marks that the process made, and nothing else.
//!
//! The victim is a separate process that really dies. The oracle reads the ring. It shares no code with the recorder.

#![allow(missing_docs, reason = "tests")]

mod _exit;
mod abort;
mod clean_exit;
mod exec;
mod oom;
mod panic;
mod random_kill;
mod sigkill;
mod sigsegv;
mod stack_overflow;

use librip_test_kit::oracle::{Ring, Slot, State};
use librip_test_kit::progress;
use librip_test_kit::victim::{Plan, Remains};

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");

fn plan(arguments: &[&str]) -> Plan {
    let mut all = vec!["die"];
    all.extend(arguments);
    Plan::new(VICTIM, &all)
}

/// The label of the site that a thread passes at this step of its cycle.
fn cycle(step: u64) -> String {
    format!("cycle {}", step % 7)
}

/// Checks what every way to die has in common: the three threads of the victim's prelude, and that the main
/// thread's slot ends with `last`. Returns the ring.
fn check(remains: &Remains, last: &[&str]) -> Ring {
    let ring = remains.ring();
    assert_eq!((ring.refused_full, ring.refused_memory, ring.metadata_refused), (0, 0, 0));
    assert_eq!(ring.slots.len(), 3, "one slot a thread");
    let cells = progress::read(&remains.dir().join("progress"));

    let waits = ring.slot_named("w1");
    assert_eq!((waits.state, u64::from(waits.tid), waits.pid), (State::Live, cells[1][1], ring.pid));
    assert_eq!(ring.labels(waits), (0..10).map(cycle).collect::<Vec<_>>());
    assert!(waits.words[10..].iter().all(|&word| word == 0), "nothing but ten words: {:x?}", waits.words);

    let gone = ring.slot_named("w2");
    assert_eq!((gone.state, u64::from(gone.tid), gone.count), (State::Exited, cells[2][1], 200));
    assert!(gone.claimed_ns <= gone.exited_ns);
    assert_eq!(ring.labels(gone), (200 - 64..200).map(cycle).collect::<Vec<_>>());

    let main = ring.slot_named("victim");
    assert_eq!((main.state, main.tid, main.pid), (State::Live, ring.pid, ring.pid));
    assert_eq!(main.count, 100 + last.len() as u64);
    let mut expected: Vec<String> = (0..100).map(cycle).collect();
    expected.extend(last.iter().map(|&label| label.to_owned()));
    assert_eq!(ring.labels(main), expected[expected.len() - 64..]);
    ring
}

/// Checks the main thread of a victim that goes through the prelude and then marks and counts until it dies.
fn check_until_death(remains: &Remains, label: &str) {
    let ring = remains.ring();
    let main = ring.slot_named("victim");
    let cells = progress::read(&remains.dir().join("progress"));
    check_count(main, cells[0][2]);
    assert!(main.count > 100 + 64, "it died of something else");
    for event in main.events().events {
        assert_eq!(ring.label(event.pc), label);
    }
}

/// A thread that died after it counted `marks` marks may have made one more, which is not counted.
fn check_count(slot: &Slot, marks: u64) {
    let recorded = slot.count - slot.first_sequence;
    assert!(
        recorded == marks || recorded == marks + 1,
        "{}: the thread counted {marks} marks, the ring has {recorded}",
        slot.name
    );
    let missing = slot.events().missing;
    let unknown: &[u64] = if recorded == marks { &[] } else { &[slot.count - 1] };
    assert!(missing.is_empty() || missing == unknown, "{}: {missing:?} of {} missing", slot.name, slot.count);
}
