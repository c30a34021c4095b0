//! Verdicts on async tasks, of a living process and of one that was killed.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use librip_test_kit::oracle::State;
use librip_test_kit::victim::{DEADLINE, Plan, Victim};

use serde_json::Value;

use super::ask::{Answer, check, read_rip};

fn plan(scenario: &str) -> Plan {
    Plan::new(env!("CARGO_BIN_EXE_tasks"), &[scenario])
}

fn started(plan: Plan) -> Victim {
    let mut victim = plan.start();
    victim.until("ready");
    victim
}

/// Asserts what `check` finds first, while the process lives and after it was killed.
#[track_caller]
fn finds(scenario: &str, found: &str, judge: impl Fn(&Answer)) {
    let mut victim = started(plan(scenario));
    let answer = check(&victim.ring_path(), &[]);
    assert_eq!(answer.findings.first().map_or("", String::as_str), found, "{answer:#?}");
    judge(&answer);
    victim.kill();
    let remains = victim.wait();
    let answer = check(&remains.ring_path(), &[]);
    assert_eq!(answer.findings.first().map_or("", String::as_str), found, "{answer:#?}");
    judge(&answer);
}

#[test]
fn proves_the_futurelock_of_rfd_609() {
    finds("futurelock", "proven futurelock", |answer| {
        assert_eq!(answer.threads(0), ["stuck"]);
        assert_eq!(answer.locks(0), ["the lock"]);
    });
}

#[test]
fn proves_a_futurelock_whose_lock_is_held_by_a_future_that_is_not_polled() {
    finds("held-and-left-out", "proven futurelock", |answer| {
        assert_eq!((answer.threads(0), answer.locks(0)), (vec!["stuck".into()], vec!["the lock".into()]));
    });
}

#[test]
fn a_futurelock_of_guards_that_may_be_sent_is_potential() {
    finds("owned-futurelock", "potential futurelock", |answer| {
        assert_eq!((answer.threads(0), answer.locks(0)), (vec!["stuck".into()], vec!["the lock".into()]));
    });
}

#[test]
fn proves_that_an_initialiser_waits_for_a_task_that_waits_for_it() {
    finds("cell-and-lock", "proven deadlock", |answer| {
        assert_eq!(answer.threads(0), ["holder", "initialiser"]);
        assert_eq!(answer.locks(0), ["settings", "the lock"]);
    });
}

#[test]
fn says_of_a_lock_that_is_for_the_first_in_line_that_nobody_holds_it() {
    let mut victim = started(plan("futurelock"));
    victim.kill();
    let remains = victim.wait();
    let text = String::from_utf8(read_rip(&["locks"], &remains.ring_path()).stdout).unwrap();
    assert!(
        text.contains("\n  nobody holds it: the first in line can have it") && !text.contains("not known"),
        "{text}"
    );
}

#[test]
fn shows_the_functions_in_which_a_task_waits() {
    let mut victim = started(plan("futurelock"));
    victim.kill();
    let remains = victim.wait();
    let text = String::from_utf8(read_rip(&["tasks", "-t"], &remains.ring_path()).stdout).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).take(4).collect();
    let is_not_polled = |line: &&str| line.ends_with(" (not polled in the last poll of the task)");
    assert!(lines[..2].iter().all(is_not_polled) && !lines[2..].iter().any(is_not_polled), "{text}");
    // The function, and in it the wait.
    for of in lines.chunks(2) {
        assert!(of[0].starts_with("    locks.rs:"), "{text}");
        assert!(of[1].starts_with("        waits for the lock at locks.rs:"), "{text}");
    }
}

#[test]
fn says_how_many_awaits_of_a_task_have_no_room() {
    let mut victim = started(plan("many-awaits"));
    victim.kill();
    let text = String::from_utf8(read_rip(&["tasks", "-t"], &victim.wait().ring_path()).stdout).unwrap();
    for (name, missing) in [("eight", 0), ("nine", 1), ("eight again", 0)] {
        let lines = text.lines().skip_while(|line| !line.starts_with(&format!("{name}[task ")));
        let below: Vec<&str> = lines.skip(1).take_while(|line| line.starts_with("    ")).collect();
        let awaits = below.iter().filter(|line| line.starts_with("    crowds.rs:")).count();
        let said = below.iter().filter(|line| line.contains(" 1 more await is not shown: ")).count();
        assert_eq!((awaits, said, below.len()), (8, missing, 8 + missing), "{name}: {text}");
    }
}

#[test]
fn proves_that_two_tasks_wait_for_one_another() {
    finds("opposite-orders", "proven deadlock", |answer| {
        assert_eq!(answer.threads(0), ["saver", "spender"]);
        assert_eq!(answer.locks(0), ["current account", "savings"]);
    });
}

#[test]
fn proves_that_workers_wait_for_a_lock_of_a_task_that_none_of_them_can_poll() {
    finds("thread-lock-over-await", "proven deadlock", |answer| {
        assert!(answer.threads(0).contains(&"holder".to_owned()), "{answer:#?}");
        assert_eq!(answer.locks(0), ["a lock of threads"]);
    });
}

#[test]
fn proves_that_a_thread_waits_for_a_lock_of_a_task_that_it_alone_polls() {
    finds("lock-in-a-local-set", "proven deadlock", |answer| {
        assert_eq!(answer.threads(0)[..2], ["blocks", "holder"], "{answer:#?}");
        assert_eq!(answer.locks(0), ["a lock of threads"]);
    });
}

#[test]
fn accuses_no_main_future_that_holds_a_lock_and_whose_thread_is_free() {
    for scenario in ["main-future-holds", "traced-main-future-holds"] {
        let mut victim = started(plan(scenario));
        let has_deadlock = |answer: &Answer| answer.findings.iter().any(|found| found.ends_with("deadlock"));
        let answer = check(&victim.ring_path(), &[]);
        assert!(!has_deadlock(&answer), "{scenario}: {answer:#?}");
        victim.kill();
        let answer = check(&victim.wait().ring_path(), &[]);
        assert!(!has_deadlock(&answer), "{scenario}: {answer:#?}");
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
    let mut victim = started(plan(scenario));
    let start = Instant::now();
    loop {
        let text = String::from_utf8(read_rip(&["locks"], &victim.ring_path()).stdout).unwrap();
        if text.contains("\n  2 tasks wait at ") {
            break;
        }
        assert!(start.elapsed() < DEADLINE, "{text}");
    }
    let accuses = |answer: &Answer| {
        let wrong = ["deadlock", "starved-runtime"];
        answer.findings.iter().any(|found| wrong.iter().any(|kind| found.ends_with(kind)))
    };
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert!(!accuses(&answer), "{answer:#?}");
    victim.kill();
    let answer = check(&victim.wait().ring_path(), &[]);
    assert!(!accuses(&answer), "{answer:#?}");
}

#[test]
fn explains_channels_that_are_full_while_the_other_side_is_stuck() {
    finds("full-channel-and-lock", "potential deadlock", |answer| {
        assert_eq!(answer.threads(0), ["consumer", "producer"]);
        assert_eq!(answer.locks(0), ["jobs", "statistics"]);
    });
    finds("full-both-ways", "potential deadlock", |answer| {
        assert_eq!(answer.threads(0), ["left", "right"]);
        assert_eq!(answer.locks(0), ["to the left", "to the right"]);
    });
}

#[test]
fn draws_the_circle_that_goes_through_a_channel() {
    let mut victim = started(plan("full-channel-and-lock"));
    victim.kill();
    let output = read_rip(&["export", "-f", "dot"], &victim.wait().ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut edges: Vec<(&str, &str)> = Vec::new();
    for line in text.lines().filter(|line| line.contains(" -> ")) {
        let (from, rest) = line.trim().split_once(" -> ").unwrap();
        edges.push((from, rest.split_once(' ').unwrap().0));
    }
    let mut at = edges[0].0;
    for _ in 0..4 {
        at = edges.iter().find(|(from, _)| *from == at).unwrap().1;
    }
    assert_eq!((at, edges.len()), (edges[0].0, 4), "two tasks, a lock and a channel: {text}");
}

#[test]
fn suspects_a_task_that_waits_for_messages_and_has_the_only_sender() {
    finds("own-sender", "suspected deadlock", |answer| {
        assert_eq!((answer.threads(0), answer.locks(0)), (vec!["collector".into()], vec!["results".into()]));
    });
}

#[test]
fn suspects_a_task_that_awaits_a_change_under_the_lock_of_its_only_sender() {
    finds("change-under-a-lock", "suspected deadlock", |answer| {
        assert_eq!(answer.threads(0), ["reader", "sender"]);
        assert_eq!(answer.locks(0), ["the lock", "the value"]);
    });
}

#[test]
fn suspects_tasks_that_wait_for_one_anothers_answers() {
    finds("requests-both-ways", "suspected deadlock", |answer| {
        assert_eq!(answer.threads(0), ["left", "right"]);
    });
    finds("request-under-a-lock", "suspected deadlock", |answer| {
        assert_eq!(answer.threads(0), ["client", "server"]);
        assert_eq!(answer.locks(0), ["accounts", "the answer"]);
    });
}

#[test]
fn a_program_whose_tasks_all_wait_for_answers_is_not_called_sound() {
    let mut victim = started(plan("unanswered-requests"));
    let judge = |answer: Answer, status: i32, outcome: &str| {
        assert_eq!((answer.findings.len(), answer.status), (0, status), "{answer:#?}");
        let checked = answer.lines.iter().find(|line| line["type"] == "checked").unwrap();
        assert_eq!(checked["data"]["balance"]["outcome"], outcome);
    };
    // Each waits at a channel of its own, and they are one group.
    for args in [&["tasks"][..], &[]] {
        let text = String::from_utf8(read_rip(args, &victim.ring_path()).stdout).unwrap();
        let is_group = |line: &str| {
            line.starts_with("suspended, waiting for 2 channels at channels.rs:")
                && line.contains(" : 2 tasks")
        };
        assert!(text.lines().any(is_group), "{text}");
    }
    // The tasks that have sent wait for an answer that the receiving task could give, and that one waits for requests.
    judge(check(&victim.ring_path(), &["--threshold", "1ms"]), 3, "all-tasks-wait");
    judge(check(&victim.ring_path(), &["--threshold", "1h"]), 0, "nothing-found");
    victim.kill();
    judge(check(&victim.wait().ring_path(), &[]), 3, "all-tasks-wait");
}

#[test]
fn accuses_no_requests_that_are_answered_at_last() {
    for name in ["two-requests-at-once", "healthy-requests"] {
        let mut victim = started(plan(name).env("RIP_SLOTS", "256"));
        let has_deadlock = |answer: &Answer| answer.findings.iter().any(|found| found.ends_with("deadlock"));
        for _ in 0..10 {
            let answer = check(&victim.ring_path(), &["--window", "20ms"]);
            assert!(!has_deadlock(&answer), "{answer:#?}");
        }
        victim.kill();
        let answer = check(&victim.wait().ring_path(), &[]);
        assert!(!has_deadlock(&answer), "{answer:#?}");
    }
}

#[test]
fn a_notification_is_called_one_also_when_it_was_given_before() {
    let victim = started(plan("notified-again"));
    let text = String::from_utf8(read_rip(&["locks"], &victim.ring_path()).stdout).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let at = lines.iter().position(|line| line.starts_with("the event  notification at ")).expect(&text);
    assert!(lines[at + 1].starts_with("  listener[task "), "{text}");
    assert!(lines[at + 1].contains(" waits to be woken at channels.rs:"), "{text}");
}

#[test]
fn suspects_a_notification_that_was_given_before_the_task_waited() {
    let mut victim = started(plan("notified-before"));
    let judge = |answer: &Answer| {
        assert_eq!(answer.findings, ["suspected lost-wakeup"], "{answer:#?}");
        assert_eq!(
            (answer.threads(0), answer.locks(0)),
            (vec!["listener".into(), "tasks".into()], vec!["ready".into()])
        );
    };
    judge(&check(&victim.ring_path(), &["--threshold", "1ms"]));
    // Not yet for long: it may be that somebody notifies it.
    assert_eq!(check(&victim.ring_path(), &["--threshold", "1h"]).findings, [""; 0]);
    let text =
        String::from_utf8(read_rip(&["check", "--threshold", "1ms"], &victim.ring_path()).stdout).unwrap();
    let line = text.lines().find(|line| line.contains(" notified all who waited at channels.rs:"));
    assert!(line.is_some_and(|line| line.ends_with(", and nobody did")), "{text}");
    victim.kill();
    judge(&check(&victim.wait().ring_path(), &[]));
    // The task was notified, and waits again.
    let victim = started(plan("notified-again"));
    assert_eq!(check(&victim.ring_path(), &["--threshold", "1ms"]).findings, [""; 0]);
}

#[test]
fn suspects_a_full_channel_whose_receiver_is_left_over() {
    let victim = started(plan("leaked-receiver"));
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert!(answer.findings.contains(&"suspected abandoned-channel".to_owned()), "{answer:#?}");
}

#[test]
fn suspects_a_task_that_nobody_can_wake_and_whose_lock_others_need() {
    finds("lost-waker", "suspected never-woken", |answer| {
        assert_eq!((answer.threads(0), answer.locks(0)), (vec!["sleeper".into()], vec!["the lock".into()]));
    });
}

#[test]
fn says_at_which_await_a_task_holds_a_lock_for_long() {
    let victim = started(plan("lock-over-sleep"));
    let output = read_rip(&["check", "--threshold", "1ms"], &victim.ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("    meanwhile it is suspended at locks.rs:"));
    assert!(line.is_some_and(|line| line.ends_with(", and holds the lock over that await")), "{text}");
}

#[test]
fn explains_bugs_that_were_published() {
    let about_one_lock = [
        ("two-writes", "proven futurelock", "the lock"),
        ("two-writes-of-async-lock", "proven futurelock", "the lock"),
        ("two-locks-of-async-lock", "proven futurelock", "the lock"),
        ("relocked-mutex-of-futures", "proven deadlock", "the lock"),
        // The guard could be elsewhere.
        ("relocked-owned-mutex-of-futures", "potential deadlock", "the lock"),
        ("thread-lock-in-two-futures", "proven deadlock", "a lock of threads"),
        ("lock-of-a-current-thread", "proven deadlock", "a lock of threads"),
        ("queued-writer", "proven deadlock", "the lock"),
        ("buffered-permits", "potential deadlock", "permits"),
    ];
    for (scenario, found, lock) in about_one_lock {
        finds(scenario, found, |answer| assert_eq!(answer.locks(0), [lock], "{scenario}"));
    }
    finds("opposite-mutexes-of-futures", "proven deadlock", |answer| {
        assert_eq!(answer.threads(0), ["saver", "spender"]);
        assert_eq!(answer.locks(0), ["current account", "savings"]);
    });
    finds("philosophers", "proven deadlock", |answer| {
        assert_eq!(answer.threads(0), ["philosopher"; 5]);
    });
    finds("joins", "proven deadlock", |answer| assert_eq!(answer.threads(0), ["first", "second"]));
}

#[test]
fn suspects_what_has_other_explanations_too() {
    let suspected = [("pool-of-one", "starved-runtime"), ("forgotten-permits", "long-wait")];
    for (scenario, kind) in suspected {
        let victim = started(plan(scenario));
        let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
        assert_eq!(answer.findings, [format!("suspected {kind}")], "{scenario}: {answer:#?}");
    }
}

#[test]
fn accuses_nothing_that_looks_like_a_published_bug_and_goes_on() {
    for round in 0..2 * librip_test_kit::victim::torture() {
        let mut victim = started(plan("healthy-twins"));
        for _ in 0..5 {
            let answer = check(&victim.ring_path(), &["--window", "20ms"]);
            let is_sure = |found: &String| !found.starts_with("suspected");
            assert!(!answer.findings.iter().any(is_sure), "{answer:#?}");
        }
        victim.kill_after(u64::from(round * 617 % 5000));
        let answer = check(&victim.wait().ring_path(), &[]);
        assert!(!answer.findings.iter().any(|found| found.starts_with("proven")), "{answer:#?}");
    }
}

#[test]
fn accuses_no_channels_that_are_idle_shared_or_slow() {
    let victim = started(plan("healthy-channels").env("RIP_SLOTS", "256"));
    for _ in 0..10 {
        let answer = check(&victim.ring_path(), &["--threshold", "100ms"]);
        let wrong = ["deadlock", "abandoned-channel", "never-woken"];
        let is_wrong = |found: &String| wrong.iter().any(|kind| found.ends_with(kind));
        assert!(!answer.findings.iter().any(is_wrong), "{answer:#?}");
    }
}

#[test]
fn waits_at_a_channel_are_no_waits_at_a_line_of_plain_marks() {
    let mut victim = started(plan("healthy-backpressure"));
    assert_eq!(check(&victim.ring_path(), &[]).findings, [""; 0]);
    victim.kill();
    let answer = check(&victim.wait().ring_path(), &[]);
    assert_eq!(answer.findings, [""; 0], "{answer:#?}");
}

#[test]
fn a_wait_that_goes_on_in_another_future_is_no_acquisition() {
    let victim = started(plan("futurelock"));
    let output = read_rip(&["diff", "--window", "200ms"], &victim.ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains("acquisition"), "{text}");
    let output = read_rip(&["locks", "--json"], &victim.ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    let lock = text.lines().find(|line| line.contains("\"the lock\"")).expect("it is listed");
    let lock: Value = serde_json::from_str(lock).unwrap();
    // The main thread has acquired it once.
    assert_eq!(lock["data"]["acquisitions"], 1, "{lock}");
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
    let output = read_rip(&["check", "--threshold", "1ms"], &victim.ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines[0], "suspected long-poll: 1 of 2 workers is in a poll that does not return", "{text}");
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
    let mut victim = started(plan("busy-workers"));
    victim.kill();
    let remains = victim.wait();
    let text = String::from_utf8(read_rip(&["check"], &remains.ring_path()).stdout).unwrap();
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
fn accuses_no_tasks_that_go_on() {
    let victim = started(plan("healthy").env("RIP_SLOTS", "256"));
    for _ in 0..10 {
        let answer = check(&victim.ring_path(), &[]);
        let wrong = ["deadlock", "futurelock", "starved-runtime", "unpolled-task", "long-poll"];
        let is_wrong = |found: &String| wrong.iter().any(|kind| found.ends_with(kind));
        assert!(!answer.findings.iter().any(is_wrong), "{answer:#?}");
    }
}

#[test]
fn a_kill_at_any_moment_leaves_sound_tasks_and_no_proof_of_trouble() {
    for round in 0..10 * librip_test_kit::victim::torture() {
        let mut victim = started(plan("healthy").env("RIP_SLOTS", "256"));
        victim.kill_after(u64::from(round * 617 % 5000));
        let ring = victim.wait();
        let output = read_rip(&["tasks", "--json"], &ring.ring_path());
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let [idle, workers] =
            ["idle", "worker"].map(|name| text.matches(&format!("\"name\":\"{name}\"")).count());
        assert_eq!((idle, workers), (40, 40));
        let answer = check(&ring.ring_path(), &[]);
        assert!(!answer.findings.iter().any(|found| found.starts_with("proven")), "{answer:#?}");
    }
}

#[test]
fn many_short_tasks_lose_nothing_of_those_that_live() {
    let tasks = (200_000 * librip_test_kit::victim::torture()).to_string();
    let victim = started(plan("many-short").env("RIP_SLOTS", "2048").env("TASKS_SHORT", &tasks));
    let text = String::from_utf8(read_rip(&["tasks", "-t"], &victim.ring_path()).stdout).unwrap();
    let of = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!((of("keeper[task"), of("waiter[task")), (1, 2), "{text}");
    assert!(text.contains("    holds kept, acquired at "), "{text}");
    let info = read_rip(&["info"], &victim.ring_path());
    let info = String::from_utf8(info.stdout).unwrap();
    assert!(!info.contains(" tasks because no slot was free"), "{info}");
}

/// What a task of the scenario `truth` has said that it holds: the lock's name.
fn said(what: u64) -> Option<String> {
    match what {
        0 => None,
        101 | 102 => Some("rw".into()),
        200 => Some("permits".into()),
        mutex => Some(format!("m{}", mutex - 1)),
    }
}

#[test]
fn after_a_kill_at_full_speed_the_ring_has_each_hold_that_the_tasks_themselves_have_noted() {
    let mut holds = 0;
    for round in 0..10 * librip_test_kit::victim::torture() {
        let plan = plan("truth").env("RIP_SLOTS", "64");
        let truth = plan.dir().join("truth");
        let mut victim = started(plan.env("TASKS_TRUTH", &truth));
        victim.kill_after(u64::from(round * 617 % 5000));
        let ring = victim.wait();
        let output = read_rip(&["tasks", "--json"], &ring.ring_path());
        let text = String::from_utf8(output.stdout).unwrap();
        let recorded: HashMap<String, Vec<String>> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["type"] == "task")
            .map(|line| {
                let locks = line["data"]["holds"].as_array().unwrap().iter();
                let locks = locks.map(|hold| hold["lock_name"].as_str().unwrap().to_owned()).collect();
                (line["data"]["name"].as_str().unwrap().to_owned(), locks)
            })
            .collect();
        let bytes = std::fs::read(&truth).unwrap();
        for (task, word) in bytes.chunks_exact(8).enumerate() {
            let Some(lock) = said(u64::from_ne_bytes(word.try_into().unwrap())) else { continue };
            holds += 1;
            assert_eq!(recorded[&task.to_string()], [lock], "round {round}, task {task}: {text}");
        }
        // Nobody else has it at the same time.
        for mutex in ["m0", "m1", "m2"] {
            let holders = recorded.values().flatten().filter(|lock| *lock == mutex).count();
            assert!(holders <= 1, "round {round}, {mutex}: {text}");
        }
        let answer = check(&ring.ring_path(), &[]);
        assert!(!answer.findings.iter().any(|found| found.starts_with("proven")), "{answer:#?}");
    }
    assert!(holds > 0, "the tasks hold something most of the time");
}

#[test]
fn misused_tasks_harm_neither_the_program_nor_what_is_known_of_others() {
    let victim = started(plan("misused").env("RIP_SLOTS", "2048"));
    let output = read_rip(&["tasks", "--json", "-a"], &victim.ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    let tasks: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "task")
        .map(|line| line["data"].clone())
        .collect();
    let of = |name: &'static str| tasks.iter().filter(move |task| task["name"] == name);
    let all = |name: &'static str, count: usize, state: &str| {
        assert_eq!(of(name).filter(|task| task["state"] == state).count(), count, "{name}: {text}");
    };
    all("leaked", 50, "suspended");
    all("fresh", 50, "suspended");
    // Nobody has woken them: those who have their slots now are others.
    assert!(of("fresh").chain(of("leaked")).all(|task| task["wakes"] == 0 && task["polls"] == 1), "{text}");
    let inner = of("inner").next().expect("it is suspended");
    assert_eq!(inner["within"], of("outer").next().expect("it is suspended")["tid"], "{text}");
    assert!(of("ended").count() > 0 && of("ended").all(|task| task["state"] == "ended"), "{text}");
    assert!(!tasks.iter().any(|task| task["state"] == "running"), "a panic ends a poll: {text}");
    let answer = check(&victim.ring_path(), &["--threshold", "1ms"]);
    assert!(answer.findings.is_empty(), "{answer:#?}");
}

#[test]
fn a_task_that_goes_on_in_another_runtime_takes_its_history_along() {
    let mut victim = started(plan("moved"));
    let judge = |ring: &Path| {
        let output = read_rip(&["tasks", "--json", "-a"], ring);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let tasks: Vec<Value> = lines.filter(|line| line["type"] == "task").collect();
        let states: Vec<_> =
            tasks.iter().map(|task| (&task["data"]["name"], &task["data"]["state"])).collect();
        assert_eq!(
            states,
            [(&"moved".into(), &"ended".into()), (&"moved".into(), &"suspended".into())],
            "{text}"
        );
        let moved = &tasks[1]["data"];
        // One poll in each runtime. Nobody has woken it: the second runtime polls whatever it is given.
        assert_eq!((&moved["polls"], &moved["wakes"]), (&2.into(), &0.into()), "{text}");
        let made = moved["made_at"]["line"].as_u64().unwrap() as usize;
        let source = include_str!("../src/bin/tasks/misuse.rs");
        let line_of = |text: &str| source.lines().position(|line| line.contains(text)).unwrap() + 1;
        assert_eq!(made, line_of(r#".name("moved")"#), "{text}");
        let output = read_rip(&["-t"], ring);
        let text = String::from_utf8(output.stdout).unwrap();
        let of = |name: &str| text.lines().find(|line| line.starts_with(name)).expect(&text).to_owned();
        // The words between are those of awaits.
        let at = |text: &str| format!("}}misuse.rs:{}", line_of(text));
        let (first, second) = (at("in the first runtime"), at("in the second runtime"));
        let history = of(&format!("moved[task {}]: ", moved["number"]));
        let marks: Vec<&str> = history.split(", ").map(|mark| &mark[mark.find('}').unwrap()..]).collect();
        assert_eq!(marks, [first, second], "{text}");
        // Neither has the thread that polled it last.
        let tid = format!("[{}]: ", moved["polled_by"]);
        let second = text.lines().find(|line| line.contains(&tid));
        assert!(
            second.is_none_or(|line| line.starts_with("second[") && !line.contains("misuse.rs")),
            "{text}"
        );
        let answer = check(ring, &["--threshold", "1ms"]);
        assert_eq!((answer.findings, answer.status), (vec![], 0));
    };
    judge(&victim.ring_path());
    victim.kill();
    judge(&victim.wait().ring_path());
}

#[test]
fn a_task_with_the_shortest_history_has_all_that_a_verdict_needs() {
    let victim = started(plan("opposite-orders").env("RIP_WORDS", "16"));
    assert_eq!(victim.ring_now(&victim.ring_path()).unwrap().slots[0].words.len(), 16);
    let answer = check(&victim.ring_path(), &[]);
    assert_eq!(answer.findings, ["proven deadlock"], "{answer:#?}");
    assert_eq!(answer.threads(0), ["saver", "spender"]);
    assert_eq!(answer.locks(0), ["current account", "savings"]);
    let text = String::from_utf8(read_rip(&["tasks", "-t"], &victim.ring_path()).stdout).unwrap();
    assert!(text.contains("    holds savings, acquired at locks.rs:"), "{text}");
}

#[test]
fn ten_thousand_tasks_take_what_the_documents_say() {
    // The documentation of `librip::task` has the bytes of a task, and the README of librip-tokio the sum for 100,000.
    for (words, bytes) in [("64", 1280), ("16", 896)] {
        let plan = plan("crowd").env("RIP_SLOTS", "16384").env("TASKS_CROWD", "10000");
        let victim = started(plan.env("RIP_WORDS", words));
        let text = String::from_utf8(read_rip(&["tasks"], &victim.ring_path()).stdout).unwrap();
        assert!(text.contains(": 10000 tasks, the longest for "), "{text}");
        let taken = 512 * std::fs::metadata(victim.ring_path()).unwrap().blocks();
        let of_tasks = 10_000 * bytes;
        // Besides there are the tables of the ring, and the slots of a few threads.
        assert!((of_tasks..of_tasks + (2 << 20)).contains(&taken), "{taken} bytes with {words} words");
    }
}

#[test]
fn tasks_without_a_slot_are_counted_and_threads_keep_theirs() {
    let victim = started(plan("crowd").env("RIP_SLOTS", "32").env("TASKS_CROWD", "100"));
    let output = read_rip(&["tasks", "--json"], &victim.ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    let recorded = text.matches("\"name\":\"one of many\"").count();
    assert_eq!(recorded, 32 * 7 / 8);
    let output = read_rip(&["tasks"], &victim.ring_path());
    let refused = format!("{} tasks were not recorded", 100 - recorded);
    let remarks = String::from_utf8(output.stderr).unwrap();
    assert!(remarks.contains(&refused), "{remarks}");
    let ring = victim.ring_now(&victim.ring_path()).unwrap();
    let main = ring.slots.iter().find(|slot| slot.tid == victim.pid());
    assert!(main.is_none_or(|slot| slot.state == State::Live));
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
        let output = read_rip(&[], Path::new(&pid));
        let [text, remarks] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
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
                let output = read_rip(arguments, Path::new(&pid));
                let said = String::from_utf8(output.stderr).unwrap();
                if said.contains(&expected) {
                    break;
                }
                // A thread that runs shows no stack.
                assert!(start.elapsed() < DEADLINE, "{kind} {arguments:?}: {said}");
            }
        }
    }
}
