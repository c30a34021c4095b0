//! Marks that the linker has folded into one: several sites at one PC, in rings made by hand.
//!
//! Not tested here: that a linker folds them. The tests of the recorder link such programs.

use crate::support::fixture::run;
use crate::support::synth::{Held, Ring, Site, Slot};
use serde_json::{Value, json};

const A: u64 = 0x7f00_0000_1000;
const B: u64 = 0x7f00_0000_2000;

/// The PC of the folded marks.
const FOLDED: u64 = 0x1000;
const SNAP: u64 = 0x2000;
const ACQUIRED: u64 = 0x2100;
const RELEASED: u64 = 0x2200;

const HELD: u64 = 3;

/// A ring with the marks of a program, and these folded ones.
fn ring(folded: impl IntoIterator<Item = Site>) -> Ring {
    let mut ring = Ring::new().with_sites(&[(SNAP, "src/main.c", 50)]).with_clock(3);
    ring.sites.push(Site::new(ACQUIRED, "src/pair.c", 60).of(3, 0, &[3]));
    ring.sites.push(Site::new(RELEASED, "src/pair.c", 61).of(4, 0, &[3]));
    ring.sites.extend(folded);
    ring
}

/// Two functions that only mark: one opens a session, one closes it.
fn sessions() -> [Site; 2] {
    let labelled = |site: Site, label: &str| Site { label: label.into(), ..site };
    [
        labelled(Site::new(FOLDED, "src/open.c", 3), "opens"),
        labelled(Site::new(FOLDED, "src/close.c", 4), "closes"),
    ]
}

fn location_of_first_event(ring: &Ring) -> Value {
    run(ring, &["-t", "--json"]).sound().data("thread")[0]["events"][0]["location"].take()
}

#[test]
fn all_marks_that_may_have_caused_an_event_are_shown() {
    let ring = ring(sessions()).with_slots([Slot::thread("a", 1).marks([SNAP, FOLDED])]);
    assert_eq!(run(&ring, &["-t"]).sound().stdout, "a[1]: {0}main.c:50, {1}open.c:3|close.c:4\n");
    assert_eq!(
        run(&ring, &["-v"]).sound().result(),
        "unknown : 1 thread, 1 location: open.c:3|close.c:4<0x1000> \"opens\"|\"closes\" [1]\n"
    );
    let outcome = run(&ring, &["-t", "-m", "close.c:4"]).sound();
    assert_eq!(outcome.stdout.lines().count(), 1, "either location selects it");
    assert!(!outcome.stderr.contains("the linker"), "both marks have one meaning: {outcome:#?}");
}

#[test]
fn all_modules_that_an_event_may_be_in_are_shown() {
    let sites = sessions().map(|site| {
        let module = format!("server::{}", &site.label);
        site.within(&module)
    });
    let ring = ring(sites).with_slots([Slot::thread("a", 1).marks([FOLDED])]);
    assert_eq!(
        run(&ring, &[]).sound().result(),
        "server::opens::?|server::closes::? : 1 thread, 1 location: open.c:3|close.c:4 (1)\n"
    );
}

#[test]
fn json_has_all_marks_that_may_have_caused_an_event() {
    let ring = ring(sessions()).with_slots([Slot::thread("a", 1).marks([FOLDED])]);
    let location = location_of_first_event(&ring);
    assert_eq!(
        (&location["file"], &location["line"], &location["kind"]),
        (&"src/open.c".into(), &3.into(), &"snap".into())
    );
    assert_eq!(
        location["one_of"],
        json!([
            { "file": "src/open.c", "line": 3, "label": "opens", "kind": "snap" },
            { "file": "src/close.c", "line": 4, "label": "closes", "kind": "snap" },
        ])
    );
}

#[test]
fn a_mark_that_is_listed_twice_is_one() {
    let site = Site::new(FOLDED, "src/open.c", 3);
    let ring = ring([site.clone(), site]).with_slots([Slot::thread("a", 1).marks([FOLDED])]);
    assert_eq!(run(&ring, &["-t"]).sound().stdout, "a[1]: {0}open.c:3\n");
    assert_eq!(location_of_first_event(&ring)["one_of"], Value::Null);
}

#[test]
fn only_some_of_very_many_folded_marks_are_shown() {
    let sites = (1..=1000).map(|line| Site::new(FOLDED, "src/tiny.c", line));
    let ring = ring(sites).with_slots([Slot::thread("a", 1).marks([FOLDED])]);
    let lines: Vec<String> = (1..=8).map(|line| format!("tiny.c:{line}")).collect();
    assert_eq!(run(&ring, &["-t"]).sound().stdout, format!("a[1]: {{0}}{}|...\n", lines.join("|")));
    assert_eq!(location_of_first_event(&ring)["one_of"].as_array().map(Vec::len), Some(8));
}

#[test]
fn a_mark_that_may_be_progress_is_neither_progress_nor_a_livelock() {
    let sites = [Site::new(FOLDED, "src/a.c", 7), Site::new(FOLDED, "src/a.c", 8).of(1, 0, &[])];
    let busy = |tid| Slot::thread("busy", tid).at(1000).marks([FOLDED; 64]);
    let ring = ring(sites).with_slots([busy(1), busy(2)]);
    let outcome = run(&ring, &["check"]).sound();
    assert_eq!(outcome.result(), "no findings in 2 threads and 0 locks\n");
    let warning = "Warning: a.c:7|a.c:8: the linker has folded marks of different meaning into one";
    assert!(outcome.stderr.contains(warning), "{outcome:#?}");
    assert!(outcome.stderr.contains("\nHint: link without --icf"), "{outcome:#?}");
    let location = location_of_first_event(&ring);
    assert_eq!(location["kind"], Value::Null);
    assert_eq!(
        (&location["one_of"][0]["kind"], &location["one_of"][1]["kind"]),
        (&"snap".into(), &"progress".into())
    );
    let problems = run(&ring, &["check", "--json"]).sound().data("problem");
    let is_warning =
        |problem: &Value| problem["what"].as_str().is_some_and(|what| what.starts_with("a.c:7|a.c:8: "));
    assert!(problems.iter().any(is_warning), "{problems:#?}");
}

/// One thread acquires two locks, and may release the first one at the folded mark in between. Another thread holds
/// both locks at once.
fn two_locks(folded: [Site; 2]) -> Ring {
    ring(folded).with_slots([
        Slot::thread("one", 1)
            .event(ACQUIRED, &[A])
            .event(FOLDED, &[A])
            .event(ACQUIRED, &[B])
            .event(RELEASED, &[B]),
        Slot::thread("two", 2)
            .event(ACQUIRED, &[B])
            .event(ACQUIRED, &[A])
            .event(RELEASED, &[A])
            .event(RELEASED, &[B]),
    ])
}

#[test]
fn a_mark_that_may_be_a_release_gives_no_lock_order() {
    let site = |line, kind| Site::new(FOLDED, "src/a.c", line).of(kind, 0, &[3]);
    let ring = two_locks([site(1, 5), site(2, 4)]);
    let outcome = run(&ring, &["check"]).sound();
    assert!(outcome.result().starts_with("no findings in 2 threads and 2 locks\n"), "{outcome:#?}");
    assert!(outcome.stderr.contains("Warning: a.c:1|a.c:2: "), "{outcome:#?}");
    // The lock is still known.
    let threads = run(&ring, &["-tv"]).sound().stdout;
    assert!(threads.contains(&format!("a.c:1|a.c:2<0x1000> of {A:#x}")), "{threads}");
}

#[test]
fn folded_marks_with_different_operands_have_no_meaning() {
    // One operand is a lock, the other is a plain word.
    let site = |line, operand| Site::new(FOLDED, "src/a.c", line).of(4, 0, &[operand]);
    let outcome = run(&two_locks([site(1, 3), site(2, 1)]), &["check"]).sound();
    assert!(!outcome.stdout.contains("lock-order"), "{outcome:#?}");
    // The numbers of operands differ. No linker folds such marks.
    let ring = two_locks([site(1, 3), Site::new(FOLDED, "src/a.c", 2)]);
    assert!(!run(&ring, &["check"]).sound().stdout.contains("lock-order"));
}

#[test]
fn a_lock_that_is_held_at_a_mark_of_two_meanings_is_held() {
    let site = |line, flags| Site::new(FOLDED, "src/a.c", line).of(3, flags, &[3]);
    let ring = ring([site(1, 0), site(2, 8)]).with_slots([Slot::thread("one", 1)
        .event(FOLDED, &[A])
        .has(Held { sequence: 1, ..Held::new(HELD, A, FOLDED) })]);
    let shown = run(&ring, &["locks"]).sound().stdout;
    assert!(shown.contains("held by one[1] at a.c:1|a.c:2\n"), "the table says so: {shown}");
}
