//! Threads that wait for one another beside one that sleeps for a time again and again, or waits for input: such a
//! process was called sound, although nobody is known to wake them.
//!
//! `programs/ticking.c` has the threads.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::victim::DEADLINE;

use crate::support::run::read_rip;
use crate::support::unprepared::{Stuck, compile, contains};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        compile("ticking.c", "ticking", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler")
    })
}

#[test]
fn threads_that_wait_for_one_another_beside_a_timer_are_not_called_sound() {
    let signal = Stuck::start_untimed(program(), &["signal"], 2);
    let server = Stuck::start_untimed(program(), &["idle", "server"], 2);
    let check = signal.not_judged().stdout;
    contains(
        &check,
        &[
            "not judged: 2 threads wait for one another, or for what nobody is known to bring, for at least ",
            ", and only ticking[",
            "], which sleeps for a time again and again, goes on: whether it wakes the others is not known; ",
            " waits for a signal or a message of another thread at misses_signal ticking.c:",
            &format!("; next: read-rip stacks {} (3 threads, 0 locks)", signal.0.pid()),
        ],
    );
    contains(&signal.read(&[]).stdout, &["check: not judged: 2 threads wait for one another"]);
    let of_signal = format!("ticking[{}]", signal.0.pid());
    let is_told = |line: &str| line.contains("not judged: 2 threads wait") && line.contains(&of_signal);
    // On a busy machine, the thread that ticks may run in a reading.
    let began = Instant::now();
    loop {
        let all = read_rip(["check", "--all"]).stdout;
        if all.lines().any(is_told) {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{all}");
    }
    for _ in 0..5 {
        let check = server.read(&["check"]);
        assert_eq!(check.status, 0, "something may come from outside: {check:#?}");
    }
}

/// A thread that answers connections was taken for one that brings the others work, whatever its code does.
#[test]
fn threads_that_wait_for_one_another_beside_a_server_that_wakes_nobody_are_not_called_sound() {
    let start = |case, first| Stuck::start_untimed(program(), &[case, first], 2);
    let [one, two] = [("signal", 1), ("barrier", 2)]
        .map(|(case, sleepers)| (case, Stuck::start_untimed(program(), &[case, "echo"], sleepers)));
    for (case, stuck) in [&one, &two] {
        let check = stuck.not_judged().stdout;
        let of =
            |place: &str| format!(" waits for a signal or a message of another thread at {place} ticking.c:");
        let (waiting, place) = match *case {
            "signal" => ("1 thread waits for a signal or a message of another thread", "misses_signal"),
            _ => ("2 threads wait for one another, or for what nobody is known to bring", "meets"),
        };
        contains(
            &check,
            &[
                &format!("not judged: {waiting}, for at least "),
                "], which waits for input, comes to no code that is known to wake a thread: ",
                "whether anything else wakes one is not known; ",
                &of(place),
                &format!("; next: read-rip stacks {} (", stuck.0.pid()),
            ],
        );
    }
    // On a busy machine, a thread may run in a reading.
    let began = Instant::now();
    loop {
        let all = read_rip(["check", "--all"]).stdout;
        let is_told = |(_, stuck): &&(&str, Stuck)| {
            let of = format!("ticking[{}]", stuck.0.pid());
            all.lines().any(|line| line.contains("wake a thread") && line.contains(&of))
        };
        if [&one, &two].iter().all(is_told) {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "{all}");
    }
    let brings = [start("idle", "server"), start("idle", "calls")];
    for process in brings.iter().cycle().take(10) {
        let check = process.read(&["check"]);
        assert_eq!(check.status, 0, "it gives units: {check:#?}");
    }
}

/// Nobody outside of the process can end a `pause` without a handler, nor arm its timer.
#[test]
fn threads_that_wait_for_one_another_beside_one_in_a_silent_call_are_not_called_sound() {
    let silent = ["pause", "disarmed"].map(|call| Stuck::start_untimed(program(), &["signal", call], 1));
    // Nor can anybody else write to an eventfd of the process.
    let events = |first| Stuck::start_untimed(program(), &["events", first], 0);
    let (own, beside) = (events("pause"), ["handler", "server"].map(events));
    let handles = Stuck::start_untimed(program(), &["signal", "handler"], 1);
    for process in &silent {
        let check = process.not_judged().stdout;
        contains(&check, &["not judged: all threads wait", "of 2 threads: 2 wait for signals or messages"]);
    }
    // It alone could write to the pipe.
    let check = Stuck::start_untimed(program(), &["signal", "pipe"], 1).not_judged().stdout;
    contains(&check, &["not judged: all threads wait", "1 waits for data in a pipe or a socket"]);
    let check = own.not_judged().stdout;
    contains(&check, &["not judged: all threads wait", "of 3 threads: 3 wait for signals or messages"]);
    beside.iter().for_each(|process| drop(process.read(&["check"]).sound()));
    let sleeps = Stuck::start_untimed("sleep".as_ref(), &["infinity"], 0);
    for _ in 0..5 {
        let check = handles.read(&["check"]);
        assert_eq!(check.status, 0, "a signal may come: {check:#?}");
        let check = sleeps.read(&["check"]);
        assert_eq!(check.status, 0, "it waits for its end: {check:#?}");
    }
}
