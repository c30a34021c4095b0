//! One test a scenario.

use super::ask::{Answer, check, read_rip, start};

/// Asks about a scenario while it lives and after its death, and compares with all that is to be found.
#[track_caller]
fn expect(scenario: &str, live: &[&str], dead: &[&str], look: impl Fn(&Answer)) {
    let mut victim = start(scenario);
    let ring = victim.ring_path();
    let answer = check(&ring, &["--threshold", "1h"]);
    assert_eq!(answer.findings, live, "{scenario}, live: {answer:#?}");
    assert_eq!(answer.status, i32::from(!live.is_empty()), "{answer:#?}");
    look(&answer);
    // In words: whatever is found is told, with its confidence.
    let words = read_rip(&["check", "--threshold", "1h"], &ring);
    let words = String::from_utf8(words.stdout).unwrap();
    for finding in live {
        let (confidence, _) = finding.split_once(' ').unwrap();
        assert!(words.contains(confidence), "{scenario}: {words}");
    }
    victim.kill();
    let remains = victim.wait();
    let answer = check(&remains.ring_path(), &["--threshold", "1h"]);
    assert_eq!(answer.findings, dead, "{scenario}, dead: {answer:#?}");
    assert_eq!(answer.status, i32::from(!dead.is_empty()), "{answer:#?}");
    look(&answer);
}

/// The same verdict, dead or alive.
#[track_caller]
fn finds(scenario: &str, findings: &[&str], look: impl Fn(&Answer)) {
    expect(scenario, findings, findings, look);
}

#[track_caller]
fn finds_nothing(scenario: &str) {
    finds(scenario, &[], |_| ());
}

fn names(stem: &str, numbers: impl Iterator<Item = usize>) -> Vec<String> {
    let mut names: Vec<String> = numbers.map(|number| format!("{stem} {number}")).collect();
    names.sort();
    names
}

#[test]
fn two_threads_in_a_circle() {
    finds("cycle-2", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["philosopher 0", "philosopher 1"]);
        assert_eq!(answer.locks(0), ["fork 0", "fork 1"]);
    });
}

#[test]
fn three_threads_in_a_circle() {
    finds("cycle-3", &["proven deadlock"], |answer| assert_eq!(answer.threads(0).len(), 3));
}

#[test]
fn fifty_threads_in_a_circle() {
    finds("cycle-50", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), names("philosopher", 0..50));
        assert_eq!(answer.locks(0), names("fork", 0..50));
    });
}

#[test]
fn those_who_wait_behind_a_circle_are_not_part_of_it() {
    finds("cycle-with-queue", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["saver", "spender"]);
    });
}

#[test]
fn a_circle_through_a_reader_and_a_writer() {
    finds("cycle-of-mutex-and-rwlock", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["bookkeeper", "reader", "writer"]);
    });
}

#[test]
fn a_thread_that_waits_for_itself() {
    finds("self-deadlock", &["proven deadlock"], |answer| assert_eq!(answer.threads(0), ["twice"]));
}

#[test]
fn a_reader_behind_a_writer_who_waits_for_a_reader() {
    // After a death it is not known whether the writer had come as far as the lock's queue: nothing that was recorded
    // later says that time has passed.
    expect("readers-behind-a-queued-writer", &["proven deadlock"], &["potential deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["first reader", "second reader", "writer"]);
    });
}

#[test]
fn a_writer_who_waits_for_readers_of_a_reader_preferring_lock_is_no_circle() {
    finds_nothing("reader-preferring-lock");
}

#[test]
fn two_readers_who_both_want_to_write() {
    // Each waits for itself already; the other is one of those behind it.
    finds("two-upgrades", &["proven deadlock"], |answer| assert_eq!(answer.threads(0).len(), 1));
}

#[test]
fn a_reader_who_wants_to_write() {
    finds("reads-and-writes-alone", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["upgrades"]);
    });
}

#[test]
fn readers_who_may_write_later_exclude_one_another() {
    finds("upgradable-readers", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["one", "other"]);
    });
}

#[test]
fn readers_do_not_exclude_one_another() {
    finds_nothing("readers-only");
}

#[test]
fn reading_twice_is_in_order() {
    finds_nothing("reads-twice");
}

#[test]
fn two_orders_are_a_possible_deadlock() {
    finds("inversion", &["potential lock-order"], |answer| {
        assert_eq!(answer.threads(0), ["saver", "spender"]);
    });
}

#[test]
fn three_orders_are_a_possible_deadlock() {
    finds("inversion-of-three", &["potential lock-order"], |answer| {
        assert_eq!(answer.threads(0), ["one", "three", "two"]);
    });
}

#[test]
fn two_orders_behind_a_common_gate_are_in_order() {
    finds_nothing("inversion-under-a-gate");
}

#[test]
fn two_orders_in_one_thread_are_in_order() {
    finds_nothing("inversion-in-one-thread");
}

#[test]
fn an_order_that_is_only_tried_is_in_order() {
    finds_nothing("inversion-by-trying");
}

#[test]
fn a_lock_at_the_address_of_another_is_another_lock() {
    finds_nothing("address-used-again");
}

#[test]
fn a_thread_that_ended_with_a_lock() {
    finds("exited-with-the-lock", &["proven unreleased"], |answer| {
        assert!(answer.threads(0).contains(&"forgetful".to_owned()));
    });
}

#[test]
fn threads_that_end_without_locks_are_in_order() {
    finds_nothing("exited-without-a-lock");
}

#[test]
fn a_lock_that_is_held_for_long_is_suspicious_while_the_program_lives() {
    let mut victim = start("held-long");
    let ring = victim.ring_path();
    assert_eq!(check(&ring, &["--threshold", "1h"]).findings, [""; 0]);
    // Without waiters and timed marks nothing says since when: the window does.
    let answer = check(&ring, &["--threshold", "50ms"]);
    assert_eq!(answer.findings, ["suspected long-hold"], "{answer:#?}");
    assert_eq!(answer.threads(0), ["keeper"]);
    assert_eq!(check(&ring, &["--threshold", "50ms", "--min-confidence", "potential"]).findings, [""; 0]);
    victim.kill();
    assert_eq!(check(&victim.wait().ring_path(), &["--threshold", "1h"]).findings, [""; 0]);
}

#[test]
fn a_lock_whose_owner_the_fork_has_lost() {
    finds("held-by-nobody-in-the-child", &["proven lost-owner"], |_| ());
}

#[test]
fn a_child_that_gives_back_what_its_parent_had_is_in_order() {
    finds_nothing("child-has-its-own-lock");
}

#[test]
fn a_lock_that_ended_while_it_was_held() {
    finds("destroyed-while-held", &["proven destroyed-lock"], |answer| {
        assert_eq!(answer.threads(0), ["careless"]);
    });
}

#[test]
fn a_pile_up_behind_one_holder() {
    finds("pile-up", &["suspected pile-up"], |answer| {
        assert!(answer.threads(0).contains(&"asks the backen".to_owned()));
    });
}

#[test]
fn who_holds_a_lock_is_known_a_million_marks_later() {
    let victim = start("holder-long-overwritten");
    let output = read_rip(&["locks"], &victim.ring_path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("keeper["), "{text}");
    assert!(text.contains("stuck.rs:"), "{text}");
}

#[test]
fn a_child_that_exits_takes_its_locks_with_it() {
    finds_nothing("child-exits-with-its-parents-lock");
    finds_nothing("child-exits-with-its-own-lock");
}

#[test]
fn a_child_that_was_killed_is_stuck_no_more() {
    // Once all are dead, it is part of what there was.
    expect("child-is-killed-in-a-circle", &[], &["proven deadlock"], |_| ());
}

#[test]
fn what_a_child_has_of_its_parent_it_can_give_back() {
    finds_nothing("child-inherits-with-a-hole");
    finds_nothing("child-inherits-two-shares");
}

#[test]
fn a_lock_where_a_forgotten_one_was_is_at_most_suspected() {
    let victim = start("forgotten-and-moved");
    let answer = check(&victim.ring_path(), &["--min-confidence", "potential"]);
    assert_eq!(answer.findings, [""; 0], "{answer:#?}");
}

#[test]
fn an_idle_pool_is_in_order() {
    finds_nothing("idle-pool");
}

#[test]
fn a_program_killed_in_its_critical_sections_is_in_order() {
    finds_nothing("in-the-critical-section");
}

#[test]
fn neighbours_too_polite_to_get_anywhere() {
    finds("polite-neighbours", &["suspected livelock"], |answer| {
        assert_eq!(answer.threads(0), names("neighbour", 0..3));
    });
}

#[test]
fn neighbours_too_polite_to_make_progress() {
    finds("polite-neighbours-with-progress-marks", &["potential livelock"], |_| ());
}

/// Asks about a scenario alive and dead: this is among the findings, and nothing is said to be more than suspected.
#[track_caller]
fn suspects(scenario: &str, finding: &str, look: impl Fn(&Answer, usize)) {
    let mut victim = start(scenario);
    let mut answers = vec![check(&victim.ring_path(), &[])];
    victim.kill();
    answers.push(check(&victim.wait().ring_path(), &[]));
    for answer in answers {
        let at = answer.findings.iter().position(|found| found == finding);
        let Some(at) = at else { panic!("{scenario}: {answer:#?}") };
        assert!(answer.findings.iter().all(|found| found.starts_with("suspected ")), "{answer:#?}");
        look(&answer, at);
    }
}

#[test]
fn a_thread_that_is_overtaken_again_and_again_starves() {
    suspects("overtaken", "suspected starvation", |answer, at| {
        assert!(answer.threads(at).contains(&"polite".to_owned()), "{answer:#?}");
    });
}

#[test]
fn a_queue_that_moves_and_never_drains_is_a_convoy() {
    let mut victim = start("convoy");
    let answer = check(&victim.ring_path(), &[]);
    assert_eq!(answer.findings, ["suspected convoy"], "{answer:#?}");
    // Of the dead it is known that they waited, and not always that the lock moved meanwhile.
    victim.kill();
    let answer = check(&victim.wait().ring_path(), &[]);
    let queues = [["suspected convoy"], ["suspected pile-up"]];
    assert!(queues.iter().any(|queue| answer.findings == queue), "{answer:#?}");
}

#[test]
fn a_back_off_that_succeeds_is_in_order() {
    finds_nothing("back-off-that-succeeds");
}

#[test]
fn a_queue_that_moves_is_neither_stuck_nor_livelocked() {
    let mut victim = start("moving-queue");
    // That it is a queue may be said, and how long it is; which of these depends on the moment.
    let queues = ["suspected convoy", "suspected contention", "suspected pile-up"];
    let allowed = |answer: &Answer| answer.findings.iter().all(|finding| queues.contains(&finding.as_str()));
    let answer = check(&victim.ring_path(), &[]);
    assert!(allowed(&answer), "{answer:#?}");
    victim.kill();
    let answer = check(&victim.wait().ring_path(), &[]);
    assert!(allowed(&answer), "{answer:#?}");
}

#[test]
fn a_busy_program_that_makes_progress_is_in_order() {
    finds_nothing("busy-with-progress");
}

#[test]
fn a_busy_program_without_marks_of_progress_is_in_order() {
    finds_nothing("busy-without-marks-of-progress");
}

#[test]
fn a_circle_of_locks_that_are_marked_by_hand() {
    // Marks by hand are only as good as the hand.
    finds("cycle-by-hand", &["potential deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["saver", "spender"]);
    });
}

#[test]
fn a_lock_that_another_thread_gives_back_is_held_by_nobody() {
    finds_nothing("handed-over");
}

#[test]
fn a_lock_may_be_taken_again_if_it_is_of_that_kind() {
    finds_nothing("reentrant");
}

#[test]
fn a_lock_given_back_that_was_not_had() {
    finds("unlock-without-lock", &["suspected unlock-without-lock"], |_| ());
}

#[test]
fn a_lock_taken_twice() {
    finds("locked-twice", &["suspected double-lock"], |_| ());
}

#[test]
fn marks_without_locks_still_show_a_line_at_which_threads_wait() {
    finds("three-snaps", &["suspected lock-line"], |answer| {
        assert!(answer.threads(0).contains(&"keeper".to_owned()));
    });
}
