//! Trouble: a livelock. Each thread takes the lock on its left, finds the lock on its right taken, releases the first,
//! and tries again, in step with all other threads.
//!
//! No thread stays blocked, so nothing looks stuck, but no thread ever eats. `read-rip check` reads the ring twice:
//! the threads go round the same few marks, and no history contains the progress mark "eats".
//!
//! ```text
//! polite [NEIGHBOURS]          default 4
//! ```
//!
//! It prints `running: pid P, ring PATH`. It prints `polite` when all threads have stepped back once, and runs until
//! it is killed.

use std::process::ExitCode;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use librip::{rip_progress, rip_snap};
use librip_examples::arrivals::Arrivals;
use librip_examples::locks::{try_lock, unlock};
use librip_examples::{say, say_running, start, stay};

struct Table {
    forks: Vec<Mutex<u64>>,
    /// Keeps the threads in step: each holds its left fork before any tries its right fork.
    step: Barrier,
    stepped_back: Arrivals,
}

impl Table {
    fn dine(&self, seat: usize) {
        let (left, right) = (&self.forks[seat], &self.forks[(seat + 1) % self.forks.len()]);
        for round in 0u64.. {
            // All forks are free here, and each thread takes a different one, so this succeeds.
            let held = try_lock(left);
            self.step.wait();
            if let Some(mut fork) = try_lock(right) {
                rip_progress!("eats");
                *fork += 1;
                unlock(right, fork);
            }
            self.step.wait();
            if let Some(fork) = held {
                unlock(left, fork);
            }
            rip_snap!("steps back");
            if round == 0 {
                self.stepped_back.arrive();
            }
            self.step.wait();
        }
    }
}

fn main() -> ExitCode {
    let neighbours = std::env::args().nth(1).map_or(Some(4), |number| number.parse().ok());
    let Some(neighbours @ 2..=1000) = neighbours else {
        eprintln!("polite: NEIGHBOURS must be a number from 2 to 1000\nusage: polite [NEIGHBOURS]");
        return ExitCode::from(2);
    };
    let ring = start();
    say_running(&ring);
    let table = Arc::new(Table {
        forks: (0..neighbours).map(Mutex::new).collect(),
        step: Barrier::new(neighbours as usize),
        stepped_back: Arrivals::new(neighbours as usize),
    });
    for seat in 0..neighbours as usize {
        let table = Arc::clone(&table);
        let started =
            thread::Builder::new().name(format!("neighbour {seat}")).spawn(move || table.dine(seat));
        if let Err(error) = started {
            eprintln!("polite: could not start neighbour {seat}: {error}");
            return ExitCode::FAILURE;
        }
    }
    table.stepped_back.wait();
    say("polite");
    stay()
}
