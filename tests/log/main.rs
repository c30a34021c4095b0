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

use std::path::Path;

use librip_test_kit::reader;
use librip_test_kit::victim::Plan;
use serde_json::Value;

fn plan(arguments: &[&str]) -> Plan {
    plan_of("events", arguments)
}

/// A part of the victim.
fn plan_of(part: &str, arguments: &[&str]) -> Plan {
    let mut all = vec![part];
    all.extend(arguments);
    Plan::new(env!("CARGO_BIN_EXE_victim"), &all).env("RIP_WORDS", "1024")
}

/// What the reader writes to standard output and to standard error. Its status must be 0.
fn read(arguments: &[&str], ring: &Path) -> (String, String) {
    let run = reader::ask(arguments, ring).sound();
    (run.stdout, run.stderr)
}

/// The data of all lines of one type that the reader writes as JSON.
fn json(arguments: &[&str], kind: &str, ring: &Path) -> Vec<Value> {
    reader::ask(&[arguments, &["--json"]].concat(), ring).sound().data(kind)
}
