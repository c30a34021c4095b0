//! Threads that run without pause: those that wait in loops are not called sound, and those that compute are.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use librip_test_kit::victim::{DEADLINE, Plan, Victim};

use crate::support::run::{Outcome, read_rip};
use crate::support::unprepared::compile;

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        compile("running.c", "running", "cc", &["-g", "-O1", "-pthread"]).expect("a C compiler")
    })
}

fn start(which: &str) -> Victim {
    let mut victim = Plan::new(program(), &[which]).start();
    victim.until("ready");
    victim
}

fn check(victim: &Victim, more: &[&str]) -> Outcome {
    let pid = victim.pid().to_string();
    let arguments: Vec<&str> = ["check"].iter().chain(more).copied().chain([pid.as_str()]).collect();
    read_rip(&arguments)
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
fn threads_that_wait_in_loops_are_not_called_sound() {
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
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let line = "tries a lock at tries_other running.c:";
    assert_eq!(outcome.stdout.matches(line).count(), 2, "{outcome:#?}");
    // Those that have got what they tried may compute.
    let outcome = check(&start("own"), &[]);
    assert!(outcome.stdout.contains("not judged: 2 threads run without pause"), "{outcome:#?}");
    assert_eq!(outcome.status, 3, "{outcome:#?}");
}

#[test]
fn a_thread_that_is_stopped_for_a_moment_says_where_it_runs() {
    let victim = start("flag");
    let outcome = check(&victim, &["--stop"]);
    assert!(outcome.stdout.contains("was at waits_for_flag running.c:"), "{outcome:#?}");
}

#[test]
fn threads_that_compute_are_no_reason_to_worry() {
    for which in ["outside", "works"] {
        let victim = start(which);
        let outcome = check(&victim, &[]);
        assert!(outcome.stdout.contains("\nno findings in 2 threads"), "{which}: {outcome:#?}");
        assert_eq!(outcome.status, 0, "{which}: {outcome:#?}");
    }
}

#[test]
fn the_machine_is_not_called_sound_while_threads_wait_in_loops() {
    let victim = start("try");
    let is_told = |machine: &Outcome| {
        let of_victim = format!("[{}]", victim.pid());
        let line = machine.stdout.lines().find(|line| line.contains(&of_victim));
        let line = line.unwrap_or_else(|| panic!("{machine:#?}"));
        line.starts_with("suspected livelock: ")
    };
    until(|| read_rip(&["check", "--all"]), is_told);
}
