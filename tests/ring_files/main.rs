//! Whose ring it is, and whether its process lives: dying processes, other namespaces, readers without rights, and the
//! removal of rings.
//!
//! Tests that need root, or a kernel that permits namespaces, say so on standard error if they cannot run.

#![allow(missing_docs, reason = "tests")]

mod collecting;
mod dying;
mod former;
mod links;
mod namespaces;
mod unfinished;

use librip_test_kit::victim::{Plan, Victim};

/// A scenario to start.
fn scenario(name: &str) -> Plan {
    Plan::new(env!("CARGO_BIN_EXE_scenario"), &[name])
}

/// Starts a scenario, and waits until it has reached its state.
fn ready(plan: Plan) -> Victim {
    let mut victim = plan.start();
    victim.until("ready");
    victim
}
