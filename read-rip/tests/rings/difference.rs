//! `read-rip diff`: what has changed between two readings, of rings made by hand.

use serde_json::{Value, json as value};

use crate::support::fixture::{Fixture, Scratch};
use crate::support::locks::*;
use crate::support::run::{Outcome, of_type, read_rip};
use crate::support::synth::{Held, Ring, Slot};

/// A thread that holds a lock and has recorded so many marks since.
fn holder(marks: usize) -> Slot {
    Slot::thread("holder", 1)
        .event(TAKES, &[at(3.0), A])
        .marks(vec![SNAP; marks])
        .has(Held::new(HELD, A, TAKES).since(at(3.0)))
}

fn waiter(tid: u32) -> Slot {
    Slot::thread("waiter", tid).event(WAIT, &[at(4.0), A]).has(Held::new(WAITING, A, WAIT).since(at(4.0)))
}

fn earlier() -> Ring {
    let others = [Slot::thread("runs", 4).marks([SNAP; 3]), Slot::thread("ends", 5).marks([SNAP])];
    ring().with_slots([holder(0), waiter(2), waiter(3)].into_iter().chain(others))
}

fn later() -> Ring {
    let others = [
        Slot::thread("runs", 4).marks([SNAP; 5]).event(HAND_WAIT, &[at(4.5), B]),
        Slot::thread("ends", 5).marks([SNAP]).exited(),
        Slot::thread("begins", 6).event(HAND_WAIT, &[at(4.5), B]),
    ];
    ring().with_slots([holder(7), waiter(2), waiter(3)].into_iter().chain(others))
}

fn diff(earlier: &Ring, later: &Ring, options: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    let paths = [("earlier", earlier), ("later", later)]
        .map(|(name, ring)| scratch.file(name, &ring.build().bytes).into_os_string());
    read_rip(["diff".into()].into_iter().chain(paths).chain(options.iter().map(Into::into)))
}

#[test]
fn threads_that_did_not_move_and_locks_that_were_held_all_the_time_are_shown() {
    let shown = diff(&earlier(), &later(), &[]).sound().stdout;
    let lines: Vec<&str> = shown.lines().skip(2).collect();
    assert_eq!(
        lines[0],
        "2 threads recorded something in between, and 2 nothing; 1 began to record, 1 ended"
    );
    assert_eq!(lines[1], "Threads at each place, before and after:");
    assert!(lines.contains(&"      0 -> 2       unknown, hand.c:20"), "{shown}");
    assert!(shown.contains("\nRecorded nothing in between:\nserver::cache::? : 2 threads, "), "{shown}");
    let (_, kept) = shown.split_once("\nHeld all the time:\n").expect(&shown);
    assert!(kept.contains("holder[1]") && kept.contains("2 threads"), "{shown}");
}

#[test]
fn a_lock_that_changed_hands_or_was_taken_again_was_not_held_all_the_time() {
    let again = Slot::thread("holder", 1)
        .event(TAKES, &[at(3.0), A])
        .event(RELEASED, &[at(3.5), at(3.0), A])
        .event(TAKES, &[at(3.6), A])
        .has(Held::new(HELD, A, TAKES).since(at(3.6)));
    let other =
        Slot::thread("other", 2).event(TAKES, &[at(3.0), A]).has(Held::new(HELD, A, TAKES).since(at(3.0)));
    let before = ring().with_slots([holder(0)]);
    for after in [again, other] {
        let shown = diff(&before, &ring().with_slots([after]), &[]).sound().stdout;
        assert!(!shown.contains("Held all the time"), "{shown}");
    }
    // Without a time, only a thread that has recorded nothing is known to have kept it.
    let untimed = |marks: usize| {
        let slot = Slot::thread("holder", 1).event(READS, &[A]).marks(vec![SNAP; marks]);
        ring().with_slots([slot.has(Held::new(HELD, A, READS))])
    };
    let has_kept =
        |marks| diff(&untimed(0), &untimed(marks), &[]).sound().stdout.contains("Held all the time");
    assert_eq!((has_kept(0), has_kept(1)), (true, false));
}

#[test]
fn of_two_processes_only_places_are_compared() {
    let other = Ring { created_realtime_ns: 1, ..later() };
    let outcome = diff(&earlier(), &other, &[]).sound();
    assert!(outcome.stderr.starts_with("The readings are of two processes: "), "{outcome:#?}");
    assert!(outcome.stdout.contains(" -> "), "{outcome:#?}");
    assert!(!outcome.stdout.contains("in between") && !outcome.stdout.contains("held all"), "{outcome:#?}");
}

#[test]
fn places_without_a_change_are_shown_only_on_request() {
    let same = |options: &[&str]| diff(&earlier(), &earlier(), options).sound().stdout;
    assert!(same(&[]).contains("\nAs many threads as before are at each place.\n"));
    assert!(same(&["-v"]).contains("      2 -> 2       server::cache::?, cache.rs:11"), "{}", same(&["-v"]));
}

#[test]
fn the_difference_is_available_as_json() {
    let lines = diff(&earlier(), &later(), &["--json"]).sound().json();
    let of = |kind| -> Vec<&Value> { of_type(&lines, kind).collect() };
    assert_eq!(of("ring").len(), 2);
    let [difference] = of("difference")[..] else { panic!("{lines:#?}") };
    assert_eq!(difference["threads"], value!({"moved": 2, "still": 2, "begun": 1, "ended": 1}));
    let places = difference["places"].as_array().unwrap();
    assert!(
        places.contains(&value!({"function": "unknown", "place": "hand.c:20", "before": 0, "after": 2})),
        "{places:?}"
    );
    assert_eq!((of("function")[0]["threads"].clone(), of("lock").len()), (2.into(), 1));
}

#[test]
fn the_ring_of_a_living_process_is_read_twice() {
    // This process does not map it. On such a file system, that proves nothing.
    let ring = Ring { file_system: 0xef53, ..ring().of_this_process() };
    let fixture = Fixture::of(&ring.with_slots([waiter(std::process::id())]));
    let path = fixture.path.to_str().unwrap();
    let shown = read_rip(["diff", "--window", "20ms", path]).sound().stdout;
    let [before, after, moved, ..] = shown.lines().collect::<Vec<_>>()[..] else { panic!("{shown}") };
    assert!(before.ends_with(", alive: 1 thread") && after == before, "{shown}");
    assert!(
        moved.ends_with(
            " later: 0 threads recorded something in between, and 1 nothing; 0 began to record, 0 ended"
        ),
        "{shown}"
    );
}

#[test]
fn one_reading_of_a_dead_process_has_nothing_to_be_compared_with() {
    let scratch = Scratch::new();
    let path = scratch.file("ring", &earlier().build().bytes);
    read_rip(["diff".as_ref(), path.as_os_str()]).fails_with("/ring has ended: nothing changes any more\n");
}

#[test]
fn tasks_are_compared_as_threads_are_and_not_called_threads() {
    let mut earlier = crate::tasks::futurelock();
    for slot in &mut earlier.slots[1..3] {
        *slot = slot.clone().marks([0x1000]);
    }
    let mut later = earlier.clone();
    later.slots[0] = later.slots[0].clone().marks([0x1300]);
    let shown = diff(&earlier, &later, &[]).sound().stdout;
    for line in [
        "1 of the threads and tasks recorded something in between, and 2 nothing; 0 began to record, 0 ended",
        "Threads and tasks at each place, before and after:",
        "save::? : 2 tasks, 1 location: save.rs:7 (2)",
    ] {
        assert!(shown.contains(&format!("{line}\n")), "{line}\n{shown}");
    }
    let shown = diff(&earlier, &earlier, &[]).sound().stdout;
    assert!(shown.contains("\nAs many threads and tasks as before are at each place.\n"), "{shown}");
    let difference = diff(&earlier, &later, &["--json"]).sound().data("difference");
    assert_eq!(difference[0]["threads"], value!({"moved": 1, "still": 2, "begun": 0, "ended": 0}));
}
