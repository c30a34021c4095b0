//! Slots and their owners: first marks, exits, reuse, forks, signals, destructors, `exec`.

#![allow(missing_docs, reason = "tests")]

mod destructors;
mod fork;
mod signals;
mod slots;
mod state;

use librip_test_kit::victim::{Plan, Remains};

fn plan(arguments: &[&str]) -> Plan {
    let mut all = vec!["threads"];
    all.extend(arguments);
    Plan::new(env!("CARGO_BIN_EXE_victim"), &all)
}

/// Runs a victim until it exits with status 3, so that its ring stays.
fn run(arguments: &[&str]) -> Remains {
    ended(plan(arguments).run())
}

fn ended(remains: Remains) -> Remains {
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    remains
}

/// The labels of steps of the victims' cycle.
fn cycle(steps: std::ops::Range<u64>) -> Vec<String> {
    steps.map(|step| format!("cycle {}", step % 7)).collect()
}
