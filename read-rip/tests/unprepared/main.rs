//! Processes and core files without a ring: stacks, what threads wait for, and what is proven.

#![allow(missing_docs, reason = "tests")]

#[path = "../support/mod.rs"]
mod support;

mod between;
mod cores;
mod databases;
mod findings;
mod halted;
mod hostile_files;
mod java;
mod jobs;
mod live_target;
mod moving;
mod peers;
mod python;
mod running;
mod runtimes;
mod semaphores;
mod stacks;
mod stacks_hostile;
mod stalls;
mod stopped;
mod ticking;
mod users_line;
mod waits;
