//! Verdicts on tasks that a program spawns with tokio alone, on a runtime of `librip_tokio::watch`, while it lives and
//! after it was killed.

use std::path::Path;
use std::thread;
use std::time::Duration;

use librip_test_kit::reader;
use librip_test_kit::run::Outcome;
use librip_test_kit::tool::repository;
use librip_test_kit::victim::{Plan, Victim, torture};
use regex::Regex;

use crate::built_alone;

/// A program that has reached its state. `None` if it cannot be built.
fn started(scenario: &str) -> Option<Victim> {
    let programs = built_alone("librip/tokio/watched", Some(("--cfg tokio_unstable", "watched")))?;
    let mut victim = Plan::new(programs.join("watched"), &[scenario]).start();
    victim.until("ready");
    Some(victim)
}

fn check(arguments: &[&str], ring: &Path) -> Outcome {
    reader::ask(&[&["check"], arguments].concat(), ring)
}

/// What `check` says while the program lives, and after it was killed.
fn verdicts(scenario: &str, arguments: &[&str]) -> Option<[Outcome; 2]> {
    let victim = started(scenario)?;
    let alive = check(arguments, &victim.ring_path());
    let remains = victim.killed();
    Some([alive, check(arguments, &remains.ring_path())])
}

/// The line of the program that ends in this comment.
fn line_of(what: &str) -> usize {
    let text = std::fs::read_to_string(repository().join("librip/tokio/watched/src/main.rs")).unwrap();
    text.lines().position(|line| line.ends_with(&format!("// {what}"))).expect(what) + 1
}

#[test]
fn tasks_that_nobody_wraps_are_named_by_their_spawns_in_a_deadlock() {
    let Some(verdicts) = verdicts("opposite-orders", &[]) else { return };
    let task = |what: &str| format!(r"task \d of main\.rs:{}", line_of(what));
    let (saver, spender) = (task("the saver"), task("the spender"));
    for said in verdicts {
        let text = &said.stdout;
        assert!(text.contains("deadlock: 2 tasks wait for one another"), "{said:?}");
        for (waiter, lock, holder) in [(&saver, "current account", &spender), (&spender, "savings", &saver)] {
            for line in [
                format!(r"(?m)^    {waiter} waits for {lock} at main\.rs:\d+$"),
                format!(r"(?m)^    {holder} holds {lock}\b"),
            ] {
                assert!(Regex::new(&line).unwrap().is_match(text), "{line}\n{said:?}");
            }
        }
        assert_eq!((said.status, text.matches("assumed: ").count()), (1, 1), "{said:?}");
    }
}

#[test]
fn a_watched_task_starves_if_all_workers_of_its_runtime_are_busy() {
    let Some([alive, dead]) = verdicts("busy-workers", &["--threshold", "10ms"]) else { return };
    let third = format!(r"(?m)^    task \d of main\.rs:{} was made and never polled", line_of("the third"));
    assert!(
        alive.stdout.contains("\nproven starved-runtime: all 2 workers of an executor are in polls"),
        "{alive:?}"
    );
    assert!(Regex::new(&third).unwrap().is_match(&alive.stdout), "{alive:?}");
    // On a busy machine the record has that a poll of one worker, or of both, was long.
    let says = [
        "\nnot judged: all workers of an executor were in polls when the process died",
        "\nsuspected starved-runtime: ",
        "\nsuspected long-poll: 1 of 2 workers ",
    ];
    assert!(says.iter().any(|said| dead.stdout.contains(said)), "{dead:?}");
}

#[test]
fn healthy_tasks_that_go_from_worker_to_worker_are_accused_of_nothing() {
    for round in 0..4 * u64::from(torture()) {
        for scenario in ["same-order", "yields"] {
            let Some(victim) = started(scenario) else { return };
            let alive = check(&[], &victim.ring_path());
            // It is killed at another moment each time.
            thread::sleep(Duration::from_micros(137 * round));
            let remains = victim.killed();
            for said in [alive, check(&[], &remains.ring_path())] {
                // Whoever dies with a lock may have been stuck: that is no finding, and no lack of one.
                assert!([0, 3].contains(&said.status), "{scenario}: {said:?}");
            }
        }
    }
}
