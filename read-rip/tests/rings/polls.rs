//! How long polls took: `read-rip tasks --polls` and `--slow`, of rings that are made by hand.

use super::tasks::futurelock;
use crate::support::fixture::run;
use crate::support::run::read_rip;
use crate::support::synth::{BIAS, Image, LongPoll, POLLS, Polls, Ring};

/// Where tasks are made, and a mark in them.
const SPAWN: u64 = BIAS + 0x1300;
const MARK: u64 = BIAS + 0x1000;
/// A tick is 8 ns.
const MS: u64 = 125_000;

/// Two threads have counted the polls of two kinds of requests, and those of other places.
pub(crate) fn polled() -> Ring {
    let longest = |task: u32, tid, took, last| LongPoll {
        task: 1 << 31 | task,
        tid,
        name: "GET /slow".into(),
        began: 1000 + 125 * MS,
        took,
        last,
    };
    let kind = |name: &str, polls: Vec<u64>, delays| Polls {
        pid: 4321,
        location: SPAWN,
        name: name.into(),
        polls,
        delays,
        longest: Vec::new(),
    };
    let mut quick = kind("GET /quick", vec![100; 99], vec![200; 99]);
    quick.polls.push(MS);
    let mut slow = kind("GET /slow", [[20; 90], [5 * MS; 90]].concat(), vec![7, MS]);
    slow.longest = vec![longest(812, 10, 5 * MS, 0), longest(813, 77, 6 * MS, MARK)];
    // Most of this poll of a connection was the poll of a request.
    let mut connection = kind("", vec![7 * MS], vec![]);
    connection.longest =
        vec![LongPoll { name: String::new(), began: 900 + 125 * MS, ..longest(5, 77, 7 * MS, 0) }];
    let others = Polls { pid: 4321, polls: vec![3], ..Polls::default() };
    // Two threads have made the entry of one kind at once.
    let again = kind("GET /quick", vec![100; 100], vec![]);
    Ring { polls: vec![others, quick, slow, again, connection], ..futurelock() }
}

#[test]
fn polls_are_shown_by_place_in_columns_the_one_with_the_longest_poll_first() {
    let outcome = run(&polled(), &["tasks", "--polls"]);
    let lines: Vec<&str> = outcome.stdout.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "                     count        p50        p90        p99        max",
            "tasks made at main.rs:9",
            "  polls                  1     7.0 ms     7.0 ms     7.0 ms     7.0 ms",
            "GET /slow, made at main.rs:9",
            "  polls                180     184 ns     5.0 ms     5.0 ms     5.0 ms",
            "  wake to poll           2      56 ns     1.0 ms     1.0 ms     1.0 ms",
            "GET /quick, made at main.rs:9",
            "  polls                200     888 ns     888 ns     888 ns     1.0 ms",
            "  wake to poll          99     1.6 us     1.6 us     1.6 us     1.6 us",
            "tasks of other places",
            "  polls                  1      24 ns      24 ns      24 ns      24 ns",
        ]
    );
    assert!(lines.iter().all(|line| line.len() <= 80));
    let matching = run(&polled(), &["tasks", "--polls", "-m", "quick"]);
    assert_eq!(matching.stdout.lines().count(), 5, "{}", matching.stdout);
    let polls = &run(&polled(), &["tasks", "--polls", "--json", "-m", "/slow"]).data("polls")[0];
    assert_eq!(polls["name"], "GET /slow");
    assert_eq!((&polls["polls"]["count"], &polls["polls"]["max_ns"]), (&180.into(), &5_000_000.into()));
}

#[test]
fn the_longest_polls_are_shown_with_their_tasks_and_where_these_were() {
    let ring = polled();
    let outcome = run(&ring, &["tasks", "--slow"]);
    let lines: Vec<&str> = outcome.stdout.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "length    began (UTC)                 task",
            "6.0 ms    2023-11-14 22:12:27.125000  GET /slow[task 813] by [77]",
            "          made at main.rs:9, last at save::? save.rs:7",
            "5.0 ms    2023-11-14 22:12:27.125000  GET /slow[task 812] by worker[10]",
            "          made at main.rs:9",
        ]
    );
    assert!(lines.iter().all(|line| line.len() <= 80));
    let polls = run(&ring, &["tasks", "--slow", "--json"]).data("long_poll");
    assert_eq!((polls.len(), &polls[0]["polled_another"]), (3, &true.into()), "{polls:#?}");
    assert_eq!((&polls[1]["took_ns"], &polls[1]["ended"]), (&6_000_000.into(), &true.into()));
}

#[test]
fn a_poll_that_has_not_ended_is_one_of_the_longest() {
    let mut ring = polled();
    let task = ring.slots[1].task.as_mut().unwrap();
    (task.turn, task.since) = (5, Some((1000 + MS, true)));
    let text = run(&ring, &["tasks", "--slow"]).stdout;
    assert!(text.contains("  server[task 7] by worker[10]\n"), "{text}");
    assert!(text.contains("it had not ended when the process did, made at main.rs:9"), "{text}");
}

#[test]
fn what_is_damaged_or_being_replaced_is_left_out() {
    let ring = polled();
    let look = |damage: &dyn Fn(&mut Image), options: &[&str]| {
        let mut image = ring.build();
        damage(&mut image);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        image.write(&path);
        read_rip(options.iter().copied().chain([path.to_str().unwrap()]))
    };
    let place = |image: &Image, index| image.entry(POLLS, index);
    // A bit of a name, and one of a poll.
    let outcome = look(
        &|image| {
            let at = place(image, 2) + 16;
            image.bytes[at] ^= 1;
        },
        &["tasks", "--polls"],
    );
    assert!(!outcome.stdout.contains("/slow"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("table of polls"), "{}", outcome.stderr);
    let outcome = look(
        &|image| {
            let at = place(image, 2) + 64 + 24;
            image.bytes[at] ^= 1;
        },
        &["tasks", "--slow"],
    );
    assert!(
        !outcome.stdout.contains("task 812") && outcome.stdout.contains("task 813"),
        "{}",
        outcome.stdout
    );
    // A count may have any value.
    let outcome = look(
        &|image| {
            let at = place(image, 2) + 704;
            image.set64(at, u64::MAX);
            image.set64(at + 8, u64::MAX);
        },
        &["tasks", "--polls"],
    );
    assert!(outcome.stdout.contains("GET /slow, made at"), "{}", outcome.stdout);
}
