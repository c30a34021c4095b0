//! Scenarios in a program that marks its progress: see `scenario`.
//!
//! ```text
//! progressing NAME
//! ```

#[path = "../scenario/rounds.rs"]
mod rounds;
#[path = "../scenario/stage.rs"]
mod stage;

use std::sync::atomic::Ordering::Relaxed;

use librip::rip_progress;
use librip::sync::Mutex;

use rounds::{counters, polite, until};
use stage::{Scenario, actor, leaked};

const ALL: &[Scenario] = &[
    ("polite-neighbours-with-progress-marks", || polite(|| rip_progress!("eats"))),
    ("moving-queue", moving_queue),
    ("busy-with-progress", busy),
    ("ordered", ordered),
    ("in-the-critical-section", in_the_critical_section),
];

fn main() {
    stage::run(ALL);
}

/// Eight threads share a lock; there is always a queue, and it always moves.
fn moving_queue() {
    static TABLE: Mutex<u64> = Mutex::new(0);
    let rounds = counters(8);
    for (index, count) in rounds.iter().enumerate() {
        drop(actor(&format!("client {index}"), move || {
            loop {
                *TABLE.lock().unwrap() += 1;
                rip_progress!();
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    until(rounds, 1000);
}

/// Threads that work, each with its own lock, in a loop over the same few marks.
fn busy() {
    let rounds = counters(3);
    for (index, count) in rounds.iter().enumerate() {
        drop(actor(&format!("worker {index}"), move || {
            let lock = Mutex::new(0u64);
            loop {
                *lock.lock().unwrap() += 1;
                rip_progress!();
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    until(rounds, 1000);
}

/// Threads at full speed over ten locks, always in the same order: for torture. They never wait in a circle.
fn ordered() {
    let locks: &'static [Mutex<u64>] = (0..10).map(Mutex::new).collect::<Vec<_>>().leak();
    let rounds = counters(4);
    for (index, count) in rounds.iter().enumerate() {
        drop(actor(&format!("worker {index}"), move || {
            let mut random = index as u64 + 1;
            loop {
                // An LCG of Knuth's, "Seminumerical Algorithms", 3.3.4.
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (low, high) = ((random >> 33) as usize % 9, (random >> 45) as usize % 9);
                let (low, high) = (low.min(high), low.max(high) + 1);
                let mut first = locks[low].lock().unwrap();
                *locks[high].lock().unwrap() += 1;
                *first += 1;
                drop(first);
                rip_progress!();
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    until(rounds, 1000);
}

/// Such a program, killed at any time, leaves locks held. That is not a finding.
fn in_the_critical_section() {
    let rounds = counters(4);
    for (index, count) in rounds.iter().enumerate() {
        let lock = leaked(Mutex::new(0u64));
        drop(actor(&format!("worker {index}"), move || {
            loop {
                *lock.lock().unwrap() += 1;
                rip_progress!();
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    until(rounds, 1000);
}
