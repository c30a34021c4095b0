//! Whatever becomes of the ring's file, the program runs as it would without.
//!
//! Promise 4 of the design. Each victim runs twice, with a ring and with `RIP_RING=off`: standard output,
//! standard error and exit status must be the same. The content of the ring is checked too.

#![allow(missing_docs, reason = "tests")]

mod damage;
mod full;
mod limits;
mod names;
mod scribble;
mod sigbus;

use librip_test_kit::victim::{Plan, Remains, expect_same};

fn plan(arguments: &[&str]) -> Plan {
    let mut all = vec!["harm"];
    all.extend(arguments);
    Plan::new(env!("CARGO_BIN_EXE_victim"), &all)
}

/// Runs a victim without a ring and with one, prepared in the same way; returns what the latter left.
fn compare(arguments: &[&str], prepare: impl Fn(Plan) -> Plan) -> Remains {
    let without = prepare(plan(arguments)).env("RIP_RING", "off").run();
    let with = prepare(plan(arguments)).run();
    expect_same(&with, &without);
    with
}

/// As [`compare`], for victims that continue: their exit status is 3.
fn survives(arguments: &[&str], prepare: impl Fn(Plan) -> Plan) -> Remains {
    let remains = compare(arguments, prepare);
    assert_eq!(remains.status.code(), Some(3), "{remains:?}");
    remains
}
