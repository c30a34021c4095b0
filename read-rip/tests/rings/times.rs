//! When marks were, and views of a part of the time, of rings made by hand.
//!
//! Not tested here: the times of real processes; `tests/log` of the end-to-end tests does that.

use crate::support::fixture::run;
use crate::support::locks::*;
use crate::support::run::read_rip;
use crate::support::synth::{Held, Ring, Slot};
use serde_json::{Value, json as value};

/// The ring was made 55 s after the boot, at 22:13:20. So this is a moment of so many seconds since boot.
fn utc(seconds: f64) -> String {
    format!("2023-11-14T22:12:{:06.3}Z", seconds + 25.0)
}

/// The data of all lines of one type.
fn json(ring: &Ring, arguments: &[&str], kind: &str) -> Vec<Value> {
    run(ring, &[arguments, &["--json"]].concat()).sound().data(kind)
}

/// A thread that began to record 2.5 s after the boot, with marks around times of 3 s and 5 s.
fn dated(name: &str, tid: u32) -> Slot {
    let slot = Slot { claimed_ns: 2_500_000_000, ..Slot::thread(name, tid) };
    slot.marks([SNAP])
        .event(TAKES, &[at(3.0), A])
        .marks([SNAP, SNAP])
        .event(RELEASED, &[at(5.0), at(3.0), A])
        .marks([SNAP])
}

/// Time, or bounds, of each event of a thread, ms.
fn bounds(thread: &Value) -> Vec<[Option<u64>; 3]> {
    let ms = |event: &Value, key: &str| {
        let ns: u64 = event.get(key)?.as_str().unwrap().parse().unwrap();
        Some((ns + 500_000) / 1_000_000)
    };
    let keys = ["boottime_ns", "after_boottime_ns", "before_boottime_ns"];
    thread["events"].as_array().unwrap().iter().map(|event| keys.map(|key| ms(event, key))).collect()
}

#[test]
fn a_mark_is_between_the_times_beside_it_the_claim_and_the_end() {
    let times = |ring: &Ring| bounds(&json(ring, &["-tv"], "thread")[0]);
    let expected = |end: Option<u64>| {
        let after = Some(3000);
        let between = [None, after, Some(5000)];
        let of = [[None, Some(2500), after], [after, None, None], between, between];
        [&of[..], &[[Some(5000), None, None], [None, Some(5000), end]]].concat()
    };
    // The process died on another machine: nobody knows when.
    let ring = ring().with_slots([dated("a", 1)]);
    assert_eq!(times(&ring), expected(None));
    // It exited 66 s after the boot.
    assert_eq!(times(&Ring { exit_status: Some(3), ..ring }), expected(Some(66_000)));
    // The thread exited 1 ns after it had begun. Times that contradict each other are put in order.
    let exited = crate::support::locks::ring().with_slots([dated("a", 1).exited()]);
    assert_eq!(times(&exited)[5], [None, Some(2500), Some(5000)]);
    // The claim of a slot is not known to be a time, if it is 0.
    let unknown = Slot { claimed_ns: 0, ..Slot::thread("a", 1).marks([SNAP]) };
    assert_eq!(times(&crate::support::locks::ring().with_slots([unknown])), [[None; 3]]);
}

#[test]
fn a_sampled_time_is_that_of_its_mark_and_bounds_the_others_also_if_its_mark_was_overwritten() {
    let mut slot = Slot { claimed_ns: 2_500_000_000, ..Slot::thread("a", 1) }.marks([SNAP; 70]);
    let words = u64::from(ring().slot_words);
    slot.sampled = vec![(66, at(4.0)), (2, at(3.0))];
    let dead = Ring { sampled_times: 16, exit_status: Some(3), ..ring() };
    let times = bounds(&json(&dead.clone().with_slots([slot.clone()]), &["-tv"], "thread")[0]);
    assert_eq!(times.len() as u64, words);
    let at_66 = times.len() - 4;
    assert!(times[..at_66].iter().all(|of| *of == [None, Some(3000), Some(4000)]), "{times:?}");
    assert_eq!(times[at_66], [Some(4000), None, None]);
    assert!(times[at_66 + 1..].iter().all(|of| *of == [None, Some(4000), Some(66_000)]), "{times:?}");

    // Another thread had the slot before: its times say nothing of this one.
    let next = Slot { first_sequence: 68, ..slot };
    let times = bounds(&json(&dead.with_slots([next]), &["-tv"], "thread")[0]);
    assert_eq!(times, [[None, Some(2500), Some(66_000)]; 2]);
}

#[test]
fn a_verbose_line_has_the_bounds_of_its_ends_only() {
    let ring = Ring { exit_status: Some(3), ..ring().with_slots([dated("a", 1)]) };
    // The clock began 2 s after the boot.
    assert_eq!(
        run(&ring, &["-tv"]).sound().stdout,
        "a[1]: {0}main.rs:1<0x4000> after 0.500000 s, \
         {3}cache.rs:10<0x1000>(takes) of 0x7f0000001000 at 1.000000 s, {4}main.rs:1<0x4000>, {5}main.rs:1<0x4000>, \
         {9}cache.rs:12<0x1200>(released) of 0x7f0000001000 at 3.000000 s, {10}main.rs:1<0x4000>\n"
    );
    let alone = Slot { claimed_ns: 2_500_000_000, ..Slot::thread("b", 2).marks([SNAP]) };
    let ring = Ring { slots: vec![alone], ..ring };
    assert_eq!(run(&ring, &["-tv"]).sound().stdout, "b[2]: {0}main.rs:1<0x4000> after 0.500000 s\n");
    assert_eq!(run(&ring, &["-t"]).sound().stdout, "b[2]: {0}main.rs:1\n");
    // It exited 1 ns after it had begun.
    let ring = Ring { slots: vec![ring.slots[0].clone().exited()], ..ring };
    assert_eq!(
        run(&ring, &["-tv"]).sound().stdout,
        "b[2]: {0}main.rs:1<0x4000> between 0.500000 and 0.500000 s, EXIT\n"
    );
    // What is cut off says when the rest was.
    let ring = Ring { slots: vec![dated("a", 1)], ..ring };
    assert_eq!(
        run(&ring, &["-tv", "--since", &utc(4.0), "--until", &utc(4.0)]).sound().stdout,
        "a[1]: {4}main.rs:1<0x4000> after 1.000000 s, {5}main.rs:1<0x4000> before 3.000000 s\n"
    );
}

#[test]
fn a_history_is_cut_to_the_marks_that_may_be_of_that_time() {
    let ring = ring().with_slots([dated("a", 1), Slot::thread("early", 2).event(TAKES, &[at(2.1), B])]);
    for (arguments, expected) in [
        (["--since", &utc(2.9), "--until", &utc(2.95)], "a[1]: {0}main.rs:1\n"),
        (["--since", &utc(3.5), "--until", &utc(4.5)], "a[1]: {4}main.rs:1, {5}main.rs:1\n"),
        // At the very moment.
        (
            ["--since", &utc(5.0), "--until", &utc(5.0)],
            "a[1]: {4}main.rs:1, {5}main.rs:1, {9}cache.rs:12(released), {10}main.rs:1\n",
        ),
        (["--since", &utc(6.0), "--until", &utc(7.0)], "a[1]: {10}main.rs:1\n"),
        // The process died at an unknown time. The last recorded one is 5 s after the boot.
        (["--since", "1500ms", "--until", "500ms"], "a[1]: {4}main.rs:1, {5}main.rs:1\n"),
    ] {
        let outcome = run(&ring, &[&["-t"], &arguments[..]].concat());
        assert_eq!(outcome.stdout, expected, "{arguments:?}");
        let remark = "1 thread is left out: nothing of that time is known.";
        assert!(outcome.stderr.contains(remark), "{arguments:?}: {}", outcome.stderr);
    }
    // Without limits nobody is left out.
    assert!(!run(&ring, &["-t"]).stderr.contains("left out"));
}

#[test]
fn an_exit_is_shown_in_its_time() {
    let exited = Slot { claimed_ns: 3_000_000_000, ..Slot::thread("a", 1).marks([SNAP]) }.exited();
    let ring = ring().with_slots([exited]);
    let shown = |since, until| run(&ring, &["-tv", "--since", &utc(since), "--until", &utc(until)]).stdout;
    assert!(shown(2.9, 3.1).ends_with(" s, EXIT\n"));
    assert_eq!(shown(3.1, 3.2), "");
    // The thread exited 1 ns after it had begun.
    let ends = |ring: &Ring| run(ring, &["-tv"]).stdout.ends_with(", EXIT\n");
    assert!(ends(&ring));
}

#[test]
fn the_condensed_view_has_the_threads_whose_last_mark_may_be_of_that_time() {
    let early = |tid| Slot::thread("early", tid).event(TAKES, &[at(3.0), B]);
    let ring = ring().with_slots([dated("a", 1), early(2), early(3)]);
    let condensed = |arguments: &[&str]| run(&ring, arguments).sound();
    let until = condensed(&["--until", &utc(4.0)]);
    assert!(until.stdout.contains("server::cache::? : 2 threads, 1 location"), "{}", until.stdout);
    assert!(!until.stdout.contains("main.rs"), "{}", until.stdout);
    assert!(
        until.stderr.contains("1 thread is left out: nothing of that time is known."),
        "{}",
        until.stderr
    );
    // A part of the time is no reason for a verdict.
    assert!(!until.stdout.contains("check:"), "{}", until.stdout);
    let since = condensed(&["--last", "1s"]);
    assert!(since.stdout.contains("server::? : 1 thread, 1 location: main.rs:1"), "{}", since.stdout);
    assert!(!since.stdout.contains("cache.rs"), "{}", since.stdout);
    assert!(since.stderr.contains("2 threads are left out"), "{}", since.stderr);
}

/// A thread that used lock A from 3 to 3.25 s, and after a wait from 4 s on from 4.5 to 4.75 s, tried in vain between
/// that and 6 s, and holds B since 7 s. Another one waits for B since 8 s.
fn uses() -> Ring {
    ring().with_slots([
        Slot { claimed_ns: 2_500_000_000, ..Slot::thread("user", 1) }
            .event(TAKES, &[at(3.0), A])
            .event(RELEASED, &[at(3.25), at(3.0), A])
            .event(TAKES, &[at(4.0), A])
            .event(WAIT, &[at(4.0), A])
            .event(RELEASED, &[at(4.75), at(4.5), A])
            .event(TRY_TAKES, &[A])
            .event(TRY_FAILED, &[A])
            .event(TAKES, &[at(6.0), B])
            .event(RELEASED, &[at(6.1), at(6.0), B])
            .event(TAKES, &[at(7.0), B])
            .has(Held { sequence: 30, ..Held::new(HELD, B, TAKES).since(at(7.0)) }),
        Slot { claimed_ns: 2_500_000_000, ..Slot::thread("waiter", 2) }
            .event(WAIT, &[at(8.0), B])
            .has(Held::new(WAITING, B, WAIT).since(at(8.0))),
    ])
}

#[test]
fn locks_count_what_has_a_part_in_that_time() {
    let ring = uses();
    // Address, acquisitions, contended ones, failed tries, owners, waits, holds, holders, waiters.
    let count = |quantiles: &Value| quantiles.get("count").cloned().unwrap_or(value!(0));
    let list = |lock: &Value, key: &str| lock[key].as_array().unwrap().len();
    let locks = |since: f64, until: f64| -> Vec<Value> {
        let all = json(&ring, &["locks", "--since", &utc(since), "--until", &utc(until)], "lock");
        let mut locks: Vec<Value> = all
            .iter()
            .map(|lock| {
                let keys = ["acquisitions", "contended", "failed_tries", "owners"].map(|key| &lock[key]);
                let lengths = [count(&lock["waits"]), count(&lock["holds"])];
                value!([lock["address"], keys, lengths, list(lock, "holders"), list(lock, "waiters")])
            })
            .collect();
        locks.sort_by_key(Value::to_string);
        locks
    };
    let (a, b) = (format!("{A:#x}"), format!("{B:#x}"));
    assert_eq!(
        locks(0.0, 20.0),
        [value!([a, [2, 1, 1, 1], [1, 2], 0, 0]), value!([b, [2, 0, 0, 1], [0, 1], 1, 1])]
    );
    assert_eq!(locks(3.1, 3.2), [value!([a, [1, 0, 0, 1], [0, 1], 0, 0])]);
    // The wait, and not yet the hold, but the use.
    assert_eq!(locks(4.1, 4.2), [value!([a, [1, 1, 0, 1], [1, 0], 0, 0])]);
    assert_eq!(locks(4.6, 4.7), [value!([a, [1, 1, 0, 1], [0, 1], 0, 0])]);
    // The failed try has no time: it was between 4.75 and 6 s.
    assert_eq!(locks(5.0, 5.5), [value!([a, [0, 0, 1, 0], [0, 0], 0, 0])]);
    assert_eq!(locks(6.2, 6.9), [] as [Value; 0]);
    // What is present has a part in all time since it began.
    assert_eq!(locks(7.5, 7.6), [value!([b, [1, 0, 0, 1], [0, 0], 1, 0])]);
    assert_eq!(locks(10.0, 11.0), [value!([b, [1, 0, 0, 1], [0, 0], 1, 1])]);
    let none = run(&ring, &["locks", "--since", &utc(6.2), "--until", &utc(6.9)]);
    assert!(none.stderr.contains("2 locks were not used in that time."), "{}", none.stderr);
    assert!(!run(&ring, &["locks"]).stderr.contains("not used in that time"));
}

#[test]
fn a_holder_of_a_later_time_is_no_owner_yet() {
    let ring = ring().with_slots([
        Slot::thread("first", 1).event(TAKES, &[at(3.0), A]).event(RELEASED, &[at(3.25), at(3.0), A]),
        Slot::thread("second", 2).has(Held::new(HELD, A, TAKES).since(at(7.0))),
    ]);
    let owners =
        |until: f64| json(&ring, &["locks", "--until", &utc(until)], "lock")[0]["owners"].as_u64().unwrap();
    assert_eq!((owners(4.0), owners(8.0)), (1, 2));
}

#[test]
fn what_has_no_times_and_what_a_time_would_falsify_refuses_one() {
    let ring = uses();
    for arguments in [&["check", "--last", "5s"][..], &["--since", "5s", "check"], &["check", "--until", "x"]]
    {
        let outcome = run(&ring, arguments);
        assert!(outcome.stderr.contains("`check` needs the whole record"), "{arguments:?}");
        assert_eq!((outcome.status, &*outcome.stdout), (2, ""), "{arguments:?}");
    }
    let outcome = run(&ring, &["--last", "5s", "stacks"]);
    assert!(outcome.stderr.contains("unexpected argument '--last' found"), "{}", outcome.stderr);
    let outcome = run(&ring, &["--last", "5s", "locks", "--last", "1s"]);
    assert!(
        outcome.stderr.contains("'--last <DURATION>' cannot be used multiple times"),
        "{}",
        outcome.stderr
    );
    // Before a command is as good as after it.
    let before = json(&ring, &["--last", "500ms", "locks"], "lock");
    assert_eq!(before.len(), 1);
    assert_eq!(before, json(&ring, &["locks", "--last", "500ms"], "lock"));
    // A process without a ring: this one.
    let own = std::process::id().to_string();
    let dir = crate::support::fixture::Fixture::of(&ring);
    for command in [&["-t"][..], &[], &["locks"]] {
        let place = dir.path.parent().unwrap().join("none");
        std::fs::create_dir_all(&place).unwrap();
        let options = ["--last", "5s", "--dir", place.to_str().unwrap(), &*own];
        let outcome = read_rip(command.iter().copied().chain(options));
        let has_said = outcome.stderr.contains(" has no times: read-rip cannot show a part of its time");
        assert!(has_said && outcome.status == 2, "{command:?}: {}", outcome.stderr);
    }
}
