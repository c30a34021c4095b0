//! Verdicts on threads that wait on a condition variable while they hold another lock.

use super::verdicts::finds;

#[test]
fn finds_a_cycle_through_the_lock_of_a_condition() {
    finds("cycle-through-a-condition", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["needs both", "waits"]);
    });
}

#[test]
fn finds_a_cycle_of_three_threads_through_the_lock_of_a_condition() {
    finds("cycle-of-three-through-a-condition", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["between", "has the lock", "waits"]);
    });
}

#[test]
fn finds_a_cycle_through_the_condition_of_a_raw_mutex() {
    finds("cycle-through-a-raw-condition", &["proven deadlock"], |answer| {
        assert_eq!(answer.threads(0), ["needs both", "waits"]);
    });
}
