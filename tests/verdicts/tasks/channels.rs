//! Channels, requests and notifications whose other side is stuck, gone, or only slow.

use super::{finds, plan, started};
use crate::ask::{Answer, check, printed};

verdicts! {
    explains_channels_that_are_full_while_the_other_side_is_stuck:
        "full-channel-and-lock" => ["potential deadlock"] threads ["consumer", "producer"] locks ["jobs", "statistics"],
        "full-both-ways" => ["potential deadlock"] threads ["left", "right"] locks ["to the left", "to the right"];
    suspects_a_task_that_waits_for_messages_and_has_the_only_sender:
        "own-sender" => ["suspected deadlock"] threads ["collector"] locks ["results"];
    suspects_a_task_that_awaits_a_change_under_the_lock_of_its_only_sender:
        "change-under-a-lock" => ["suspected deadlock"] threads ["reader", "sender"] locks ["the lock", "the value"];
    suspects_tasks_that_wait_for_one_anothers_answers:
        "requests-both-ways" => ["suspected deadlock"] threads ["left", "right"],
        "request-under-a-lock" => ["suspected deadlock"] threads ["client", "server"] locks ["accounts", "the answer"];
}

#[test]
fn draws_the_circle_that_goes_through_a_channel() {
    let victim = started(plan("full-channel-and-lock"));
    let text = printed(&["export", "-f", "dot"], &victim.killed().ring_path());
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

/// Asserts that nothing is found, and the outcome.
#[track_caller]
fn is_not_judged(answer: &Answer, outcome: &str) {
    assert_eq!((answer.findings.len(), answer.status), (0, 3), "{answer:#?}");
    assert_eq!(answer.checked()["balance"]["outcome"], outcome);
}

/// Another task waits for what is not recorded. So these were called sound.
#[test]
fn a_server_that_answers_no_requests_is_not_called_sound() {
    let victim = started(plan("unanswered-requests"));
    // Each waits at a channel of its own, and they are one group.
    for args in [&["tasks"][..], &[]] {
        let text = printed(args, &victim.ring_path());
        let is_group = |line: &str| {
            line.starts_with("suspended, waiting for 2 channels at channels.rs:")
                && line.contains(" : 2 tasks")
        };
        assert!(text.lines().any(is_group), "{text}");
    }
    is_not_judged(&check(&victim.ring_path(), &["--threshold", "1ms"]), "unanswered");
    let soon = check(&victim.ring_path(), &["--threshold", "1h"]);
    assert_eq!((soon.findings.len(), soon.status), (0, 0), "{soon:#?}");
    let remains = victim.killed();
    is_not_judged(&check(&remains.ring_path(), &[]), "unanswered");
    let text = printed(&["check"], &remains.ring_path());
    let expected = "not judged: 2 tasks waited for answers of server[task ";
    let at = "which waited for messages when the process died";
    assert!(text.contains(expected) && text.contains(at), "{text}");
}

/// What it waits for is recorded, and who brings it is not known. So it was called sound.
#[test]
fn a_request_that_waits_for_ever_is_not_judged() {
    let victim = started(plan("request-for-ever"));
    let args = ["--threshold", "1ms"];
    is_not_judged(&check(&victim.ring_path(), &args), "silent-requests");
    let text = printed(&[&["check"][..], &args].concat(), &victim.ring_path());
    let [begins, names] = [
        "not judged: 1 request has waited ",
        "and who could let it go on is not known; the longest is GET /events",
    ];
    assert!(
        text.contains(begins) && text.contains(names) && text.contains("it waits for the event"),
        "{text}"
    );
}

/// Another task waits for what is not recorded. So this was called sound.
#[test]
fn tasks_that_wait_at_a_barrier_for_one_that_has_ended_are_not_called_sound() {
    let victim = started(plan("missing-party"));
    let args = ["--threshold", "1ms"];
    is_not_judged(&check(&victim.ring_path(), &args), "missing-party");
    let text = printed(&[&["check"][..], &args].concat(), &victim.ring_path());
    let [begins, names] = ["not judged: 2 of the 3 that the round takes wait there", "and third[task "];
    assert!(text.contains(begins) && text.contains(names), "{text}");
    is_not_judged(&check(&victim.killed().ring_path(), &[]), "missing-party");
}

#[test]
fn accuses_no_requests_that_are_answered_at_last() {
    for name in ["two-requests-at-once", "healthy-requests"] {
        let victim = started(plan(name).env("RIP_SLOTS", "256"));
        for _ in 0..10 {
            let answer = check(&victim.ring_path(), &["--window", "20ms"]);
            assert!(!answer.accuses(&["deadlock"]), "{answer:#?}");
        }
        let answer = check(&victim.killed().ring_path(), &[]);
        assert!(!answer.accuses(&["deadlock"]), "{answer:#?}");
    }
}

#[test]
fn a_notification_is_called_one_also_when_it_was_given_before() {
    let victim = started(plan("notified-again"));
    let text = printed(&["locks"], &victim.ring_path());
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let at = lines.iter().position(|line| line.starts_with("the event  notification at ")).expect(&text);
    assert!(lines[at + 1].starts_with("  listener[task "), "{text}");
    assert!(lines[at + 1].contains(" waits to be woken at channels.rs:"), "{text}");
}

#[test]
fn suspects_a_notification_that_was_given_before_the_task_waited() {
    let victim = started(plan("notified-before"));
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
    let text = printed(&["check", "--threshold", "1ms"], &victim.ring_path());
    let line = text.lines().find(|line| line.contains(" notified all waiters at channels.rs:"));
    assert!(line.is_some_and(|line| line.ends_with(", and nobody waited")), "{text}");
    judge(&check(&victim.killed().ring_path(), &[]));
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
fn accuses_no_channels_that_are_idle_shared_or_slow() {
    let victim = started(plan("healthy-channels").env("RIP_SLOTS", "256"));
    for _ in 0..10 {
        let answer = check(&victim.ring_path(), &["--threshold", "100ms"]);
        let wrong = ["deadlock", "abandoned-channel", "never-woken"];
        assert!(!answer.accuses(&wrong), "{answer:#?}");
    }
}

#[test]
fn waits_at_a_channel_are_no_waits_at_a_line_of_plain_marks() {
    let victim = started(plan("healthy-backpressure"));
    assert_eq!(check(&victim.ring_path(), &[]).findings, [""; 0]);
    let answer = check(&victim.killed().ring_path(), &[]);
    assert_eq!(answer.findings, [""; 0], "{answer:#?}");
}
