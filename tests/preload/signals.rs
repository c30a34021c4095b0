//! Signals of condition variables: which of them nobody heard, and which waits that explains.

use std::time::Instant;

use librip_test_kit::format::kind;
use librip_test_kit::run::waits_on_condition_for;
use librip_test_kit::victim::{DEADLINE, Remains, Victim};

use crate::{compile, plan, preload, read_rip};

/// Runs a story until its main thread waits for a thread that waits for a signal.
fn told(story: &str) -> Victim {
    let mut victim = plan(&compile("joins", &["-pthread"]), &[story], &[preload()]).start();
    assert_eq!(victim.line(), "ready");
    victim
}

/// Asks until the answer is the wanted one.
fn until(victim: &mut Victim, arguments: &[&str], is_wanted: impl Fn(&str) -> bool) -> String {
    let (ring, began) = (victim.ring_path(), Instant::now());
    loop {
        let answer = read_rip(arguments, &ring);
        if is_wanted(&answer) {
            return answer;
        }
        assert!(began.elapsed() < DEADLINE, "{answer}");
    }
}

/// Ends a story. Returns the kinds of its events of signals.
fn signals(victim: Victim) -> Vec<u8> {
    kinds_of_signals(&victim.killed())
}

fn kinds_of_signals(remains: &Remains) -> Vec<u8> {
    let ring = remains.ring();
    let events = ring.slots.iter().flat_map(|slot| ring.lock_events(slot));
    events.map(|event| event.kind).filter(|&of| of > kind::LOCK_INITIALISED).collect()
}

#[test]
fn a_wait_that_began_after_the_last_signal_is_a_suspected_lost_wakeup_if_no_thread_is_left_to_signal() {
    let mut victim = told("signalled before");
    let found = until(&mut victim, &["check"], |found| found.contains("lost-wakeup"));
    for part in [
        "\nsuspected lost-wakeup: 1 thread waits on a condition variable that was signalled when nobody waited",
        "with the lock ledger",
        "at waits_for_a_signal joins.c:",
        " signalled it last at signals joins.c:",
        "all 2 threads of the process wait",
        "next: a condition variable keeps no signals",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    let remains = victim.killed();
    let found = read_rip(&["check"], &remains.ring_path());
    for part in [
        "not judged: all recorded threads wait",
        " waits for the end of ",
        " waits on a condition variable, with the lock ledger, at waits_for_a_signal joins.c:",
        " signalled it last at signals joins.c:",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert_eq!(kinds_of_signals(&remains), [kind::CONDITION_UNHEARD]);
}

#[test]
fn a_wait_that_goes_on_after_a_signal_has_woken_another_thread_is_no_lost_wakeup() {
    let mut victim = told("signalled");
    // From a second on it would be one.
    until(&mut victim, &["locks", "-v"], |shown| waits_on_condition_for(shown, 1.0));
    let found = read_rip(&["check"], &victim.ring_path());
    assert!(!found.contains("lost-wakeup"), "{found}");
    assert_eq!(signals(victim), [kind::CONDITION_SIGNALLED]);
}

/// What `check` says of a story while it lives and when it was killed.
fn checked(story: &str) -> [String; 2] {
    let victim = told(story);
    let live = read_rip(&["check"], &victim.ring_path());
    [live, read_rip(&["check"], &victim.killed().ring_path())]
}

#[test]
fn a_condition_that_is_destroyed_while_a_thread_waits_on_it_is_misuse() {
    for (found, confidence) in checked("destroyed").into_iter().zip(["proven", "potential"]) {
        let summary = format!("\n{confidence} misuse: ");
        for part in [
            &*summary,
            " destroyed a condition variable on which a thread waits, with the lock ledger",
            "at destroys joins.c:",
            "next: wake all threads that wait on it",
        ] {
            assert!(found.contains(part), "{part}: {found}");
        }
    }
}

#[test]
fn a_condition_whose_threads_were_woken_may_be_destroyed() {
    for found in checked("destroyed after a broadcast") {
        assert!(!found.contains("misuse"), "{found}");
    }
}
