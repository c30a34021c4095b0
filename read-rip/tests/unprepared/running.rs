//! Threads that run without pause: those that wait in loops are not called sound, and those that compute are.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::victim::{DEADLINE, Plan, Victim};

use crate::support::run::{Outcome, read_rip};
use crate::support::unprepared::compile;

/// The threads take processors from other tests as long as they are looked at.
const WINDOW: [&str; 2] = ["--window", "20ms"];

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        compile("running.c", "running", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler")
    })
}

fn start(which: &str) -> Victim {
    let arguments: Vec<&str> = which.split(' ').collect();
    let mut victim = Plan::new(program(), &arguments).start();
    victim.until("ready");
    victim
}

fn check(victim: &Victim, more: &[&str]) -> Outcome {
    let pid = victim.pid().to_string();
    let window = if more.contains(&"--window") { &[][..] } else { &WINDOW };
    read_rip(["check"].iter().chain(window).chain(more).copied().chain([pid.as_str()]))
}

/// Asks until the answer is the wanted one.
fn until(ask: impl Fn() -> Outcome, is_wanted: impl Fn(&Outcome) -> bool) -> Outcome {
    let began = Instant::now();
    loop {
        let outcome = ask();
        if is_wanted(&outcome) {
            return outcome;
        }
        assert!(began.elapsed() < DEADLINE, "{outcome:#?}");
    }
}

#[test]
fn a_thread_that_waits_in_a_loop_is_not_called_sound() {
    for (which, place) in [
        ("flag", " made its last call at begin running.c:"),
        ("spin", " made its last call, of pthread_spin_lock, at waits_for_spin running.c:"),
    ] {
        let victim = start(which);
        let outcome = check(&victim, &[]);
        let what = "not judged: 1 thread runs without pause, and the only other one waits for a thread";
        assert!(outcome.stdout.contains(what), "{which}: {outcome:#?}");
        assert_eq!(outcome.status, 3, "{which}: {outcome:#?}");
        let advice = format!("read-rip check --stop {}", victim.pid());
        assert!(outcome.stdout.contains(&advice), "{which}: {outcome:#?}");
        assert!(outcome.stdout.contains(place), "{which}: {outcome:#?}");
        if which == "flag" {
            let outcome = check(&victim, &["--stop"]);
            assert!(outcome.stdout.contains("was at waits_for_flag running.c:"), "{outcome:#?}");
        }
    }
}

#[test]
fn threads_that_try_the_locks_of_one_another_are_suspected() {
    let victim = start("try");
    // On a busy machine, a thread may not have got to its first try.
    let outcome = until(|| check(&victim, &[]), |outcome| outcome.status == 1);
    let what = "suspected livelock: 2 threads try to acquire locks without pause, and the only thread that does not \
                run waits for a thread, for at least";
    assert!(outcome.stdout.contains(what), "{outcome:#?}");
    let line = "tries a lock at tries_other running.c:";
    assert_eq!(outcome.stdout.matches(line).count(), 2, "{outcome:#?}");
    let machine = read_rip(["check", "--all"].iter().chain(&WINDOW));
    let of_victim = format!("[{}]", victim.pid());
    let line = machine.stdout.lines().find(|line| line.contains(&of_victim));
    assert!(line.is_some_and(|line| line.starts_with("suspected livelock: ")), "{machine:#?}");
}

/// A thread at input made them sound, whatever its code does.
#[test]
fn threads_that_try_the_locks_of_one_another_beside_input_are_suspected_if_nobody_releases_one() {
    if cfg!(target_arch = "x86_64") {
        let victim = start("try input");
        let outcome = until(|| check(&victim, &[]), |outcome| outcome.status == 1);
        let what = "suspected livelock: 2 threads try to acquire locks without pause, for at least";
        assert!(outcome.stdout.contains(what), "{outcome:#?}");
    }
    let outcome = check(&start("released"), &["--window", "200ms"]);
    assert_eq!(outcome.status, 0, "the first thread has both locks: {outcome:#?}");
}

#[test]
fn threads_that_may_have_got_what_they_tried_are_not() {
    let outcome = check(&start("own"), &[]);
    assert!(outcome.stdout.contains("not judged: 2 threads run without pause"), "{outcome:#?}");
    assert_eq!(outcome.status, 3, "{outcome:#?}");
}

#[test]
fn threads_that_compute_are_no_reason_to_worry() {
    for which in ["outside", "works"] {
        let victim = start(which);
        // A thread that gets no processor in a short time does nothing.
        let outcome = check(&victim, &["--window", "200ms"]);
        assert!(outcome.stdout.contains("\nno findings in 2 threads"), "{which}: {outcome:#?}");
        assert_eq!(outcome.status, 0, "{which}: {outcome:#?}");
    }
}
