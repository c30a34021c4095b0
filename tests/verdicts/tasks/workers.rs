//! Workers that are blocked or busy, tasks that none of them polls, and executors that nothing prepared.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use librip_test_kit::reader;
use librip_test_kit::run::{clean, finish};
use librip_test_kit::victim::{DEADLINE, Plan, Victim, tempdir};

use super::{finds, plan, started};
use crate::ask::{check, printed};

#[test]
fn proves_that_workers_wait_for_a_lock_of_a_task_that_none_of_them_can_poll() {
    finds("thread-lock-over-await", &["proven deadlock"], |answer| {
        assert!(answer.threads(0).contains(&"holder".to_owned()), "{answer:#?}");
        assert_eq!(answer.locks(0), ["a lock of threads"]);
    });
}

#[test]
fn proves_that_a_thread_waits_for_a_lock_of_a_task_that_it_alone_polls() {
    finds("lock-in-a-local-set", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0)[..2], ["blocks", "holder"], "{answer:#?}");
        assert_eq!(answer.locks(0), ["a lock of threads"]);
    });
}

#[test]
fn accuses_no_main_future_that_holds_a_lock_and_whose_thread_is_free() {
    for scenario in ["main-future-holds", "traced-main-future-holds"] {
        let victim = started(plan(scenario));
        let answer = check(&victim.ring_path(), &[]);
        assert!(!answer.accuses(&["deadlock"]), "{scenario}: {answer:#?}");
        let answer = check(&victim.killed().ring_path(), &[]);
        assert!(!answer.accuses(&["deadlock"]), "{scenario}: {answer:#?}");
    }
}

#[test]
fn workers_that_wait_in_place_keep_nobody_from_polling_the_task_that_holds_the_lock() {
    has_a_free_worker("lock-in-place");
}

#[test]
fn a_thread_in_block_on_is_none_of_the_workers_that_could_poll_the_task_that_holds_the_lock() {
    has_a_free_worker("lock-beside-a-free-worker");
}

/// Two tasks wait for a lock of threads that a suspended task holds, and somebody could poll that one.
#[track_caller]
fn has_a_free_worker(scenario: &str) {
    let victim = started(plan(scenario));
    let start = Instant::now();
    loop {
        let text = printed(&["locks"], &victim.ring_path());
        if text.contains("\n  2 tasks wait at ") {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "{text}");
    }
    let wrong = ["deadlock", "starved-runtime"];
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert!(!answer.accuses(&wrong), "{answer:#?}");
    let answer = check(&victim.killed().ring_path(), &[]);
    assert!(!answer.accuses(&wrong), "{answer:#?}");
}

#[test]
fn proves_that_busy_workers_starve_a_living_runtime() {
    let victim = started(plan("busy-workers"));
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert_eq!(answer.findings.first().map_or("", String::as_str), "proven starved-runtime", "{answer:#?}");
    assert!(answer.threads(0).contains(&"victim".to_owned()), "{answer:#?}");
}

#[test]
fn names_the_poll_that_is_long_and_its_place() {
    let victim = started(plan("long-poll"));
    let text = printed(&["check", "--threshold", "1ms"], &victim.ring_path());
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines[0], "suspected long-poll: 1 of 2 workers is in a poll that has not returned", "{text}");
    assert!(lines[1].contains(" has polled resizes[task ") && lines[1].contains(", last at "), "{text}");
    assert!(lines[1].contains(" crowds.rs:"), "{text}");
}

#[test]
fn suspects_a_task_that_nobody_polls() {
    let victim = started(plan("undriven"));
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert_eq!(answer.findings, ["suspected unpolled-task"], "{answer:#?}");
    assert_eq!(answer.threads(0), ["orphan"]);
}

#[test]
fn says_of_a_dead_process_that_its_workers_were_in_polls() {
    // How long the polls would have lasted is not known.
    let victim = started(plan("busy-workers"));
    let remains = victim.killed();
    let text = printed(&["check"], &remains.ring_path());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("not judged: all workers of an executor were in polls"), "{text}");
    // It names the polls, and where these tasks were made: they have made no marks.
    let is_poll = |line: &&str| {
        line.starts_with("    tokio-rt-worker[")
            && line.contains(" has polled blocks[task ")
            && line.contains(", made at crowds.rs:")
    };
    assert!(lines[2..4].iter().all(is_poll), "{text}");
}

#[test]
fn a_dead_process_one_of_whose_workers_was_in_a_poll_and_mostly_slept_before_is_not_called_sound() {
    let start = Instant::now();
    // A worker that waits for a processor is awake too. Beside other work it may have been so for too long.
    let (remains, text) = loop {
        let remains = started(plan("rare-poll")).killed();
        let text = printed(&["check"], &remains.ring_path());
        if text.contains("\nnot judged: when the process died, workers were awake that had slept") {
            break (remains, text);
        }
        let tasks = printed(&["tasks"], &remains.ring_path());
        let awake = tasks.lines().find(|line| line.contains(": polls resizes[task "));
        let percent =
            awake.and_then(|line| line.split_once(", awake for ")?.1.split_once('%')?.0.parse::<u64>().ok());
        assert!(percent.is_none_or(|percent| percent >= 12), "{text}{tasks}");
        assert!(start.elapsed() < DEADLINE, "{text}{tasks}");
    };
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[2].contains(" has polled resizes[task ") && lines[2].contains(" crowds.rs:"), "{text}");
    // So it is with the workers themselves.
    let text = printed(&["tasks"], &remains.ring_path());
    let worker =
        |does: &str| text.lines().find(|line| line.starts_with("tokio-rt-worker[") && line.contains(does));
    let polls = worker(": polls resizes[task ").unwrap_or_else(|| panic!("{text}"));
    assert!(polls.contains(", awake for ") && polls.ends_with("% of the time before"), "{text}");
    assert!(worker(": asleep").is_some(), "{text}");
    let workers = reader::ask(&["tasks", "--json"], remains.ring_path()).data("worker");
    assert!(workers.len() == 2 && workers[0]["asleep"] != workers[1]["asleep"], "{workers:#?}");
}

/// As a server that has stopped listening, and waits for a task that never ends. It was called sound.
#[test]
fn a_process_that_nobody_else_can_wake_is_not_judged_and_its_tasks_are_listed() {
    for scenario in ["left-to-itself", "left-to-itself-and-an-ended-child"] {
        let victim = started(plan(scenario));
        let start = Instant::now();
        // The driver and the closer may not have begun to wait yet.
        let parts = [
            "\nnot judged: all threads wait for one another, or for events that nobody outside of",
            "\n    flusher[task ",
            "\n    closer[task ",
            " waiting for the end of flusher[task ",
        ];
        loop {
            let text = printed(&["check"], &victim.ring_path());
            if parts.iter().all(|part| text.contains(part)) {
                break;
            }
            assert!(start.elapsed() < DEADLINE, "{text}");
        }
        // One look at all processes says the same.
        let mut reader = clean(Command::new(reader::program()));
        reader.args(["check", "--all"]);
        let all = finish(reader).stdout;
        let is_said = |line: &str| {
            line.contains(&format!("[{}]", victim.pid())) && line.contains("events that nobody outside of")
        };
        assert!(all.lines().any(is_said), "{all}");
    }
}

#[test]
fn a_process_that_wakes_by_itself_or_by_the_end_of_a_child_is_not_left_to_itself() {
    for scenario in ["left-to-itself-for-a-time", "left-to-itself-and-a-child"] {
        let victim = started(plan(scenario));
        until_all_sleep_and_one_polls(&victim);
        let answer = check(&victim.ring_path(), &[]);
        assert_eq!((answer.status, answer.findings.len()), (0, 0), "{scenario}: {answer:#?}");
    }
}

/// Waits until all threads of a process sleep, and one of them sleeps in `poll`.
fn until_all_sleep_and_one_polls(victim: &Victim) {
    #[cfg(target_arch = "x86_64")]
    const POLL: libc::c_long = libc::SYS_poll;
    #[cfg(not(target_arch = "x86_64"))]
    const POLL: libc::c_long = libc::SYS_ppoll;
    let (start, poll) = (Instant::now(), format!("{POLL} "));
    loop {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", victim.pid())).unwrap();
        let calls = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("syscall")).unwrap());
        let calls: Vec<String> = calls.collect();
        let sleeps = |call: &String| !call.starts_with("running");
        if calls.iter().all(sleeps) && calls.iter().any(|call| call.starts_with(&poll)) {
            return;
        }
        assert!(start.elapsed() < DEADLINE, "{calls:?}");
    }
}

fn executor(arguments: &[&str]) -> Victim {
    started(Plan::new(env!("CARGO_BIN_EXE_executor"), arguments))
}

#[test]
fn says_of_an_unprepared_executor_what_its_workers_do_and_that_its_tasks_are_not_seen() {
    let victim = executor(&[]);
    let pid = victim.pid().to_string();
    // A worker may not have come to where it waits yet.
    let start = Instant::now();
    let (text, remarks) = loop {
        let output = reader::ask(&[], Path::new(&pid));
        let (text, remarks) = (output.stdout, output.stderr);
        if text.matches("tokio worker").count() > 0 && text.contains("std::sync::Mutex") {
            break (text, remarks);
        }
        assert!(start.elapsed() < DEADLINE, "{text}{remarks}");
    };
    assert!(text.contains("1 thread at") && text.contains("waiting to be woken (tokio block_on)"), "{text}");
    let expected = "3 threads run async tasks (tokio), and nothing has recorded which: ";
    assert!(remarks.contains(expected) && remarks.contains("librip_tokio::spawn"), "{remarks}");
}

#[test]
fn a_poll_that_does_not_return_is_found_if_connections_wait_meanwhile_and_no_thread_for_events() {
    for (kind, is_found) in [("unserved", true), ("in-place", false)] {
        let mut victim = Plan::new(env!("CARGO_BIN_EXE_executor"), &[kind]).start();
        let address = victim.line();
        victim.until("ready");
        let pid = victim.pid().to_string();
        let until = |wanted: &str| {
            let start = Instant::now();
            loop {
                let text = printed(&["check", "--threshold", "1ms"], Path::new(&pid));
                if text.contains(wanted) {
                    break text;
                }
                assert!(start.elapsed() < DEADLINE, "{kind}: {text}");
            }
        };
        let text = until(" 1 waits for a lock");
        assert!(!text.contains("long-poll"), "{kind}: nobody waits: {text}");
        let clients = [(); 2].map(|()| TcpStream::connect(&address).unwrap());
        if !is_found {
            let text = until(" 1 waits for a lock");
            assert!(!text.contains("long-poll"), "another thread took over: {text}");
            continue;
        }
        // A worker may not have come to where it waits yet.
        let text = until("suspected long-poll: ");
        let said = [
            "1 of 3 workers is in a poll that has not returned, and no thread waits for events",
            "2 workers wait to be woken, and nobody asks for the events that would wake them",
            "2 connections wait until the process accepts them",
            " waits for a lock at executor::lock executor.rs:",
        ];
        assert!(said.iter().all(|said| text.contains(said)), "{text}");
        drop(clients);
    }
}

#[test]
fn an_unprepared_executor_is_known_by_its_stacks_where_its_threads_have_other_names() {
    for (kind, count) in
        [("", "3 threads run"), ("named", "3 threads run"), ("current-thread", "1 thread runs")]
    {
        let victim = executor(&[kind]);
        let pid = victim.pid().to_string();
        let expected = format!("{count} async tasks (tokio), and nothing has recorded which: ");
        for arguments in [&[][..], &["check"], &["tasks"], &["stacks"]] {
            let start = Instant::now();
            loop {
                let output = reader::ask(arguments, Path::new(&pid));
                let said = output.stderr;
                if said.contains(&expected) {
                    // That nothing is found means nothing. The others have a task that blocks its thread.
                    let possible: &[i32] = match (arguments, kind) {
                        (["check"], "current-thread") => &[3],
                        (["check"], _) => &[1, 3],
                        _ => &[0],
                    };
                    let status = output.status;
                    assert!(possible.contains(&status), "{kind} {arguments:?}, {status}: {said}");
                    break;
                }
                // A thread that runs shows no stack.
                assert!(start.elapsed() < DEADLINE, "{kind} {arguments:?}: {said}");
            }
        }
    }
}

#[test]
fn a_stripped_program_of_tokio_whose_threads_have_other_names_is_not_judged() {
    let directory = tempdir();
    let stripped = directory.path().join("server");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(env!("CARGO_BIN_EXE_executor")).status();
    if !strip.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no `strip`");
        return;
    }
    let mut victim = Plan::new(&stripped, &["current-thread"]).start();
    victim.until("ready");
    let pid = victim.pid().to_string();
    let output = reader::ask(&["check"], Path::new(&pid));
    let (text, remarks) = (output.stdout, output.stderr);
    assert_eq!(output.status, 3, "{text}{remarks}");
    assert!(text.contains("not judged: what the async tasks of tokio wait for is not seen"), "{text}");
    let why = "The program has tokio, and no stack shows which threads run async tasks";
    assert!(remarks.contains(why), "{remarks}");
}
