//! What the reader needs is bounded by what the ring occupies, whatever the ring says.
//!
//! Each test limits the memory of `read-rip`, and looks at what it wrote.

mod support;

use std::path::Path;
use std::process::Command;

use support::fixture::Scratch;
use support::locks::*;
use support::run::{Outcome, clean, finish};
use support::synth::{Ring, Slot};

const MIB: u64 = 1 << 20;

/// `read-rip ARGS PATH` with this much memory for data.
fn within(memory_bytes: u64, args: &[&str], path: &Path) -> Outcome {
    let mut command = Command::new("/bin/sh");
    let script = format!("ulimit -d {} && exec \"$@\"", memory_bytes / 1024);
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_read-rip")]).args(args).arg(path);
    finish(clean(command))
}

/// A ring with a thread that acquired locks one inside the other, and released them. Each thread has its own order.
fn nested(orders: &[Vec<u64>]) -> Ring {
    let threads = orders.iter().zip(10..).map(|(locks, tid)| {
        let taken = locks
            .iter()
            .fold(Slot::thread("locks all", tid), |slot, &lock| slot.event(TAKES, &[at(1.0), lock]));
        locks.iter().rev().fold(taken, |slot, &lock| slot.event(RELEASED, &[0, at(1.0), lock]))
    });
    Ring { slot_words: 16_384, ..ring().with_slots(threads) }
}

#[test]
fn a_thousand_locks_held_at_once_are_checked_in_little_memory() {
    let scratch = Scratch::new();
    let locks: Vec<u64> = (0..1000).map(|at| A + 64 * at).collect();
    let one_order = scratch.file("one", &nested(std::slice::from_ref(&locks)).build().bytes);
    let outcome = within(100 * MIB, &["check"], &one_order).sound();
    assert!(outcome.stdout.contains("no findings in 1 thread and 1000 locks\n"), "{outcome:#?}");
    let reversed = locks.iter().rev().copied().collect();
    let two_orders = scratch.file("two", &nested(&[locks, reversed]).build().bytes);
    let outcome = within(100 * MIB, &["check"], &two_orders);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(outcome.stdout.contains("\npotential lock-order: "), "{outcome:#?}");
    assert!(outcome.stderr.contains("\nOnly a part of the orders "), "{outcome:#?}");
}
