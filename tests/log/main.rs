//! Events with values, channels, spans, captures and recordings: what a program said, as `read-rip log`, `spans` and
//! `captures` show it.

#![allow(missing_docs, reason = "tests")]

mod captures;
mod channels;
mod dumps;
mod kills;
mod polls;
mod recordings;
mod recordings_of_many;
mod rotation;
mod scheduler;
mod spans;
mod storm;
mod tasks;
mod times;
mod values;

use librip_test_kit::reader::{json, read};
use librip_test_kit::victim::Plan;

fn plan(arguments: &[&str]) -> Plan {
    plan_of("events", arguments)
}

/// A part of the victim.
fn plan_of(part: &str, arguments: &[&str]) -> Plan {
    let mut all = vec![part];
    all.extend(arguments);
    Plan::new(env!("CARGO_BIN_EXE_victim"), &all).env("RIP_WORDS", "1024")
}
