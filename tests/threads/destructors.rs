//! Marks when a thread ends: in drops of thread-locals, and in destructors of thread-specific keys.

use librip_test_kit::oracle::State;

use crate::run;

/// The labels that the victim marks in destructors of this origin, in order.
fn labels(origin: &str) -> (Vec<String>, State) {
    let ring = run(&["destructors"]).ring();
    let slot = ring.slot_named("thread");
    let labels = ring.labels(slot);
    let of = labels.iter().filter(|label| label.starts_with(origin)).map(|&label| label.to_owned());
    (of.collect(), slot.state)
}

#[test]
fn drops_of_thread_locals_are_recorded_in_any_order() {
    let (mut labels, state) = labels("dropped");
    labels.sort();
    assert_eq!(labels, ["dropped early", "dropped late"]);
    assert_eq!(state, State::Exited);
}

#[test]
fn a_key_made_before_librips_may_mark_in_all_four_rounds_of_destructors() {
    let (labels, state) = labels("before");
    assert_eq!(labels, [1, 2, 3, 4].map(|round| format!("before, round {round}")));
    assert_eq!(state, State::Exited);
}

#[test]
fn a_key_made_after_librips_may_mark_in_all_four_rounds_of_destructors() {
    let (labels, state) = labels("after");
    assert_eq!(labels, [1, 2, 3, 4].map(|round| format!("after, round {round}")));
    assert_eq!(state, State::Exited);
}

#[test]
fn a_thread_whose_first_mark_is_in_the_drop_of_a_thread_local_is_recorded_with_its_exit() {
    let ring = run(&["destructor_first"]).ring();
    let slot = ring.slot_named("drop");
    assert_eq!(ring.labels(slot), ["dropped early"]);
    assert_eq!(slot.state, State::Exited);
}

#[test]
fn a_thread_whose_first_mark_is_in_the_destructor_of_a_key_is_recorded_with_its_exit() {
    let ring = run(&["destructor_first"]).ring();
    let slot = ring.slot_named("key");
    assert_eq!(ring.labels(slot), ["first in a destructor"]);
    assert_eq!(slot.state, State::Exited);
}
