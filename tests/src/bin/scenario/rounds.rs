//! Threads that repeat the same steps: how a scenario counts their rounds, and the neighbours of a livelock.

use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use librip::sync::Mutex;

use crate::stage::{actor, leaked};

/// Waits until each of these has done so many rounds.
pub(crate) fn until(rounds: &[AtomicU64], wanted: u64) {
    while rounds.iter().any(|count| count.load(Relaxed) < wanted) {
        std::thread::yield_now();
    }
}

pub(crate) fn counters(count: usize) -> &'static [AtomicU64] {
    (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak()
}

/// Each thread takes the fork on its left, finds the right one taken, puts its fork back, and tries again, in lockstep
/// with all the others.
pub(crate) fn polite(eats: fn()) {
    const SEATS: usize = 3;
    let forks: &'static [Mutex<u64>] = (0..SEATS as u64).map(Mutex::new).collect::<Vec<_>>().leak();
    let pace = leaked(Barrier::new(SEATS));
    let rounds = counters(SEATS);
    for seat in 0..SEATS {
        drop(actor(&format!("neighbour {seat}"), move || {
            loop {
                let left = forks[seat].try_lock().unwrap();
                pace.wait();
                if let Ok(mut right) = forks[(seat + 1) % SEATS].try_lock() {
                    *right += 1;
                    eats();
                }
                pace.wait();
                drop(left);
                rounds[seat].fetch_add(1, Relaxed);
                pace.wait();
            }
        }));
    }
    until(rounds, 40);
}
