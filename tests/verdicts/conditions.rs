//! Verdicts on threads that wait on a condition variable while they hold another lock.

use std::time::Instant;

use librip_test_kit::run::waits_on_condition_for;
use librip_test_kit::victim::DEADLINE;

use super::ask::{Answer, check, printed, start};
use super::verdicts::finds;

/// Asks about a living scenario when a thread has waited on its condition for more than a second.
fn after_a_second(scenario: &str) -> Answer {
    let victim = start(scenario);
    let ring = victim.ring_path();
    let began = Instant::now();
    loop {
        let shown = printed(&["locks", "-v"], &ring);
        if waits_on_condition_for(&shown, 1.0) {
            return check(&ring, &[]);
        }
        assert!(began.elapsed() < DEADLINE, "{shown}");
    }
}

verdicts! {
    finds_a_cycle_through_the_lock_of_a_condition:
        "cycle-through-a-condition" => ["proven deadlock"] threads ["needs both", "waits"];
    finds_a_cycle_of_three_threads_through_the_lock_of_a_condition:
        "cycle-of-three-through-a-condition" => ["proven deadlock"] threads ["between", "has the lock", "waits"];
    finds_a_cycle_through_the_condition_of_a_raw_mutex:
        "cycle-through-a-raw-condition" => ["proven deadlock"] threads ["needs both", "waits"];
}

#[test]
fn suspects_a_lost_wakeup_if_the_last_signal_came_before_the_wait_and_nobody_is_left_to_signal() {
    let answer = after_a_second("signalled-before-its-wait");
    assert_eq!(answer.findings, ["suspected lost-wakeup"], "{answer:#?}");
    let answer = after_a_second("signalled-during-its-wait");
    // The signal was heard: that all threads wait has another reason.
    assert_eq!(answer.findings, ["suspected stall"], "{answer:#?}");
}
