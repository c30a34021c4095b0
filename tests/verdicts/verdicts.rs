//! One test per scenario.

use std::time::Instant;

use librip_test_kit::victim::DEADLINE;
use serde_json::Value;

use super::ask::{Answer, check, printed, start};

/// Asks about a scenario while it lives and after its death, and compares with the whole list of expected findings.
#[track_caller]
pub(crate) fn expect(scenario: &str, live: &[&str], dead: &[&str], look: impl Fn(&Answer)) {
    let victim = start(scenario);
    let ring = victim.ring_path();
    let answer = check(&ring, &["--threshold", "1h"]);
    assert_eq!(answer.findings, live, "{scenario}, live: {answer:#?}");
    assert_status(&answer);
    look(&answer);
    // As text: each finding is printed with its confidence.
    let words = printed(&["check", "--threshold", "1h"], &ring);
    for finding in live {
        let (confidence, _) = finding.split_once(' ').unwrap();
        assert!(words.contains(confidence), "{scenario}: {words}");
    }
    let remains = victim.killed();
    let answer = check(&remains.ring_path(), &["--threshold", "1h"]);
    assert_eq!(answer.findings, dead, "{scenario}, dead: {answer:#?}");
    assert_status(&answer);
    look(&answer);
}

/// The status is 1 with findings. Without, it is 0, or 3 if all recorded threads wait.
#[track_caller]
fn assert_status(answer: &Answer) {
    let expected: &[i32] = if answer.findings.is_empty() { &[0, 3] } else { &[1] };
    assert!(expected.contains(&answer.status), "{answer:#?}");
}

/// The same verdict, dead or alive.
#[track_caller]
pub(crate) fn finds(scenario: &str, findings: &[&str], look: impl Fn(&Answer)) {
    expect(scenario, findings, findings, look);
}

#[track_caller]
pub(crate) fn finds_nothing(scenario: &str) {
    finds(scenario, &[], |_| ());
}

fn names(stem: &str, numbers: impl Iterator<Item = usize>) -> Vec<String> {
    let mut names: Vec<String> = numbers.map(|number| format!("{stem} {number}")).collect();
    names.sort();
    names
}

verdicts! {
    finds_a_deadlock_of_two_threads:
        "cycle-2" => ["proven deadlock"] threads ["philosopher 0", "philosopher 1"] locks ["fork 0", "fork 1"];
    threads_that_queue_for_a_deadlocked_lock_are_not_in_the_cycle:
        "cycle-with-queue" => ["proven deadlock"] threads ["saver", "spender"];
    finds_a_cycle_through_a_reader_and_a_writer:
        "cycle-of-mutex-and-rwlock" => ["proven deadlock"] threads ["bookkeeper", "reader", "writer"];
    finds_a_thread_that_waits_for_itself: "self-deadlock" => ["proven deadlock"] threads ["twice"];
    finds_a_cycle_of_a_thread_that_holds_more_locks_than_its_table_has_entries:
        "cycle-with-forty-locks" => ["proven deadlock"] threads ["has forty", "has one"];
    locks_whose_guards_stay_on_their_thread_are_trusted:
        "circle-of-parking-lot" => ["proven deadlock"] threads ["saver", "spender"],
        "waits-for-its-own-parking-lot" => ["proven deadlock"];
    a_guard_that_can_be_sent_to_another_thread_proves_nothing:
        "circle-of-sendable-guards" => ["suspected deadlock"],
        "guard-sent-away" => ["suspected deadlock"],
        "guard-sent-away-and-exited" => ["suspected unreleased"],
        "guards-sent-around" => [];
    a_raw_lock_that_any_thread_can_release_proves_nothing:
        "raw-circle" => ["suspected deadlock"],
        "raw-circle-after-a-hand-over" => ["suspected deadlock"];
    a_waiting_writer_of_a_reader_preferring_lock_closes_no_cycle: "reader-preferring-lock" => [];
    finds_a_reader_that_waits_to_write: "reads-and-writes-alone" => ["proven deadlock"] threads ["upgrades"];
    upgradable_readers_exclude_one_another:
        "upgradable-readers" => ["proven deadlock"] threads ["one", "other"];
    readers_do_not_exclude_one_another: "readers-only" => [];
    a_second_read_by_one_thread_is_no_finding: "reads-twice" => [];
    finds_a_potential_deadlock_of_two_lock_orders:
        "inversion" => ["potential lock-order"] threads ["saver", "spender"];
    finds_a_potential_deadlock_of_three_lock_orders:
        "inversion-of-three" => ["potential lock-order"] threads ["one", "three", "two"];
    two_lock_orders_of_which_one_was_over_before_the_other_thread_began_are_suspected_only:
        "inversion-before-the-threads" => ["suspected lock-order"],
        "inversion-one-after-the-other" => ["suspected lock-order"];
    two_lock_orders_under_a_common_lock_are_no_finding: "inversion-under-a-gate" => [];
    two_lock_orders_in_one_thread_are_suspected_because_two_threads_may_do_the_same:
        "inversion-in-one-thread" => ["suspected lock-order"] threads ["worker 1"];
    two_lock_orders_in_the_only_thread_of_its_kind_are_no_finding:
        "inversion-in-the-only-thread-of-its-kind" => [];
    two_lock_orders_in_one_thread_under_a_common_lock_or_by_trying_are_no_finding:
        "inversion-in-one-thread-under-a-gate" => [],
        "inversion-in-one-thread-by-trying" => [];
    suspects_a_reader_that_reads_again_where_a_writer_may_come_in_between:
        "reads-twice-beside-a-writer" => ["suspected nested-read"] threads ["reader", "writer"],
        "reads-twice-recursively-beside-a-writer" => [];
    a_lock_order_by_try_lock_is_no_finding: "inversion-by-trying" => [];
    a_lock_at_the_address_of_another_is_another_lock: "address-used-again" => [];
    threads_that_end_without_locks_are_no_finding: "exited-without-a-lock" => [];
    finds_a_lock_whose_owner_is_not_in_the_forked_child:
        "holder-missing-in-the-child" => ["proven lost-owner"];
    a_child_that_releases_the_locks_of_its_parent_is_no_finding: "child-has-its-own-lock" => [];
    finds_a_lock_destroyed_while_it_was_held:
        "destroyed-while-held" => ["proven destroyed-lock"] threads ["careless"];
    a_child_that_exits_takes_its_locks_with_it:
        "child-exits-with-its-parents-lock" => [],
        "child-exits-with-its-own-lock" => [];
    a_child_can_release_a_lock_that_its_parent_acquired:
        "child-inherits-with-a-hole" => [],
        "child-inherits-two-shares" => [];
    a_program_killed_in_its_critical_sections_is_no_finding: "in-the-critical-section" => [];
    finds_a_livelock_by_marks_of_progress: "polite-neighbours-with-progress-marks" => ["potential livelock"];
    a_back_off_that_succeeds_is_no_finding: "back-off-that-succeeds" => [];
    a_busy_program_that_makes_progress_is_no_finding: "busy-with-progress" => [];
    a_busy_program_without_marks_of_progress_is_no_finding: "busy-without-marks-of-progress" => [];
    // Marks by hand are only as good as the hand.
    finds_a_potential_deadlock_of_locks_marked_by_hand:
        "cycle-by-hand" => ["potential deadlock"] threads ["saver", "spender"];
    a_lock_that_another_thread_releases_has_no_holder: "handed-over" => [];
    a_reentrant_lock_may_be_acquired_again: "reentrant" => [];
    finds_the_release_of_a_lock_that_was_not_held: "unlock-without-lock" => ["suspected unlock-without-lock"];
    finds_a_lock_acquired_twice: "locked-twice" => ["suspected double-lock"];
}

#[test]
fn finds_a_deadlock_of_three_threads() {
    finds("cycle-3", &["proven deadlock"], |answer| assert_eq!(answer.threads(0).len(), 3));
}

#[test]
fn finds_a_deadlock_of_fifty_threads() {
    finds("cycle-50", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), names("philosopher", 0..50));
        assert_eq!(answer.locks(0), names("fork", 0..50));
    });
}

#[test]
fn finds_a_reader_that_queues_after_a_writer_that_waits_for_a_reader() {
    // After a death it is unknown whether the writer had reached the lock's queue: no later record shows that time has
    // passed.
    expect("readers-after-a-queued-writer", &["proven deadlock"], &["potential deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["first reader", "second reader", "writer"]);
    });
}

#[test]
fn finds_two_readers_that_both_wait_to_write() {
    // Each thread already waits for itself, and each queues after the other.
    finds("two-upgrades", &["proven deadlock"], |answer| assert_eq!(answer.threads(0).len(), 1));
}

#[test]
fn finds_a_thread_that_exited_while_it_held_a_lock() {
    finds("exited-with-the-lock", &["proven unreleased"], |answer| {
        assert!(answer.threads(0).contains(&"forgetful".to_owned()));
    });
}

#[test]
fn a_lock_that_is_held_for_long_is_suspicious_while_the_program_lives() {
    let victim = start("held-long");
    let ring = victim.ring_path();
    assert_eq!(check(&ring, &["--threshold", "1h"]).findings, [""; 0]);
    // Without waiters and timed marks, only the window gives a duration.
    let answer = check(&ring, &["--threshold", "50ms"]);
    assert_eq!(answer.findings, ["suspected long-hold"], "{answer:#?}");
    assert_eq!(answer.threads(0), ["keeper"]);
    assert_eq!(check(&ring, &["--threshold", "50ms", "--min-confidence", "potential"]).findings, [""; 0]);
    assert_eq!(check(&victim.killed().ring_path(), &["--threshold", "1h"]).findings, [""; 0]);
}

#[test]
fn a_child_that_waits_for_a_lock_of_its_parents_thread_has_inherited_it() {
    finds("child-waits-for-its-own-lock", &["proven deadlock"], |answer| {
        assert_eq!(holder(answer)["inherited"], true, "{answer:#?}");
        assert!(holder(answer)["location"].is_u64(), "where the parent's thread acquired it: {answer:#?}");
    });
    finds("cycle-2", &["proven deadlock"], |answer| {
        assert_eq!(holder(answer).get("inherited"), None, "{answer:#?}");
    });
}

/// Who holds the lock of the first edge of the first finding.
fn holder(answer: &Answer) -> &Value {
    &answer.finding()["evidence"]["edges"][0]["holder"]
}

#[test]
fn finds_a_pile_up_of_waiters_for_one_holder() {
    // After the death nothing shows how long they waited. No wait for this lock is known to have ended.
    expect("pile-up", &["suspected pile-up"], &["suspected long-wait"], |answer| {
        assert!(answer.threads(0).contains(&"asks the backen".to_owned()));
    });
}

#[test]
fn the_holder_of_a_lock_is_known_a_million_marks_later() {
    let victim = start("holder-long-overwritten");
    let text = printed(&["locks"], &victim.ring_path());
    assert!(text.contains("keeper["), "{text}");
    assert!(text.contains("stuck.rs:"), "{text}");
}

#[test]
fn a_killed_child_does_not_count_as_stuck() {
    // Once all processes are dead, its threads count again.
    expect("child-is-killed-in-a-circle", &[], &["proven deadlock"], |_| ());
}

#[test]
fn a_lock_at_the_address_of_a_forgotten_one_is_at_most_suspected() {
    let victim = start("forgotten-and-moved");
    let answer = check(&victim.ring_path(), &["--min-confidence", "potential"]);
    assert_eq!(answer.findings, [""; 0], "{answer:#?}");
}

#[test]
fn an_idle_pool_is_no_finding() {
    let mut victim = start("idle-pool");
    // `main` has recorded nothing. But the kernel says that it waits too, so nobody is known who could wake the others.
    let live = check(&victim.ring_path(), &[]);
    victim.kill();
    // Which other threads there were is not known after the death.
    let dead = check(&victim.wait().ring_path(), &[]);
    for answer in [live, dead] {
        assert_eq!((&answer.findings[..], answer.status), (&[][..], 3), "{answer:#?}");
    }
}

#[test]
fn finds_a_suspected_livelock() {
    finds("polite-neighbours", &["suspected livelock"], |answer| {
        assert_eq!(answer.threads(0), names("neighbour", 0..3));
    });
}

/// Asks about a scenario alive and dead: this is among the findings, and nothing is said to be more than suspected.
#[track_caller]
fn suspects(scenario: &str, finding: &str, look: impl Fn(&Answer, usize)) {
    let victim = start(scenario);
    let start = Instant::now();
    let mut alive = check(&victim.ring_path(), &[]);
    // Other work may have the processors for as long as the window: then the holder starves too.
    while alive.findings == ["suspected starved-holder"] {
        assert!(start.elapsed() < DEADLINE, "{alive:#?}");
        alive = check(&victim.ring_path(), &[]);
    }
    let mut answers = vec![alive];
    answers.push(check(&victim.killed().ring_path(), &[]));
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
    let victim = start("convoy");
    let answer = check(&victim.ring_path(), &[]);
    assert_eq!(answer.findings, ["suspected convoy"], "{answer:#?}");
    // A dead process shows that the threads waited, but not always that the lock changed hands meanwhile.
    let answer = check(&victim.killed().ring_path(), &[]);
    let queues = [["suspected convoy"], ["suspected pile-up"]];
    assert!(queues.iter().any(|queue| answer.findings == queue), "{answer:#?}");
}

#[test]
fn a_queue_that_moves_is_neither_stuck_nor_livelocked() {
    let victim = start("moving-queue");
    // `check` may report the queue and its length. Which of these it reports depends on the moment.
    let queues = ["suspected convoy", "suspected contention", "suspected pile-up"];
    let allowed = |answer: &Answer| answer.findings.iter().all(|finding| queues.contains(&finding.as_str()));
    let answer = check(&victim.ring_path(), &[]);
    assert!(allowed(&answer), "{answer:#?}");
    let answer = check(&victim.killed().ring_path(), &[]);
    assert!(allowed(&answer), "{answer:#?}");
}

#[test]
fn marks_without_locks_still_show_a_line_at_which_threads_wait() {
    finds("three-snaps", &["suspected lock-line"], |answer| {
        assert!(answer.threads(0).contains(&"keeper".to_owned()));
    });
}
