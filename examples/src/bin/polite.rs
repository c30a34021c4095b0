//! Trouble: neighbours too polite to get anywhere. Each takes the lock on its left, finds the one on its right
//! taken, steps back, and tries again, in step with all the others.
//!
//! No thread is blocked for good, so nothing looks stuck; only nobody ever eats. `read-rip check` looks twice: the threads
//! run among the same few places, and the mark of progress, "eats", is in no history.
//!
//! ```text
//! polite [NEIGHBOURS]          default 4
//! ```
//!
//! It prints `running: pid P, ring PATH`, then `polite` once all have stepped back, and goes on until killed.

use std::process::ExitCode;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use librip::{rip_progress, rip_snap};
use librip_examples::arrivals::Arrivals;
use librip_examples::locks::{try_lock, unlock};
use librip_examples::{say, say_running, start, stay};

struct Table {
    forks: Vec<Mutex<u64>>,
    /// All move at one pace: each has its left fork before any reaches for a right one.
    pace: Barrier,
    stepped_back: Arrivals,
}

impl Table {
    fn dine(&self, seat: usize) {
        let (left, right) = (&self.forks[seat], &self.forks[(seat + 1) % self.forks.len()]);
        for round in 0u64.. {
            // Nobody has a fork here, and no two reach for the same: this succeeds.
            let held = try_lock(left);
            self.pace.wait();
            if let Some(mut fork) = try_lock(right) {
                rip_progress!("eats");
                *fork += 1;
                unlock(right, fork);
            }
            self.pace.wait();
            if let Some(fork) = held {
                unlock(left, fork);
            }
            rip_snap!("steps back");
            if round == 0 {
                self.stepped_back.arrive();
            }
            self.pace.wait();
        }
    }
}

fn main() -> ExitCode {
    let neighbours = std::env::args().nth(1).map_or(Some(4), |number| number.parse().ok());
    let Some(neighbours @ 2..=1000) = neighbours else {
        eprintln!("polite: the number of neighbours is from 2 to 1000\nusage: polite [NEIGHBOURS]");
        return ExitCode::from(2);
    };
    let ring = start();
    say_running(&ring);
    let table = Arc::new(Table {
        forks: (0..neighbours).map(Mutex::new).collect(),
        pace: Barrier::new(neighbours as usize),
        stepped_back: Arrivals::new(neighbours as usize),
    });
    for seat in 0..neighbours as usize {
        let table = Arc::clone(&table);
        let started =
            thread::Builder::new().name(format!("neighbour {seat}")).spawn(move || table.dine(seat));
        if let Err(error) = started {
            eprintln!("polite: no thread for neighbour {seat}: {error}");
            return ExitCode::FAILURE;
        }
    }
    table.stepped_back.wait();
    say("polite");
    stay()
}
