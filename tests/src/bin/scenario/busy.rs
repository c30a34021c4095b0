//! Threads that run: some get somewhere, some do not.

use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use librip::rip_progress;
use librip::sync::Mutex;

use crate::stage::{Scenario, actor, leaked};

pub(crate) const ALL: &[Scenario] = &[
    ("polite-neighbours", || polite(false)),
    ("polite-neighbours-with-progress-marks", || polite(true)),
    ("back-off-that-succeeds", back_off),
    ("moving-queue", moving_queue),
    ("busy-with-progress", || busy(true)),
    ("busy-without-marks-of-progress", || busy(false)),
    ("ordered", ordered),
];

/// Waits until each of these has done so many rounds.
fn until(rounds: &[AtomicU64], wanted: u64) {
    while rounds.iter().any(|count| count.load(Relaxed) < wanted) {
        std::thread::yield_now();
    }
}

fn counters(count: usize) -> &'static [AtomicU64] {
    (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak()
}

/// Each takes the fork on its left, finds the right one taken, steps back, and tries again, in step with all the others.
fn polite(has_progress_marks: bool) {
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
                    if has_progress_marks {
                        rip_progress!("eats");
                    }
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

/// Two threads that take each other's lock by trying, and step back when they fail; now and then both get what they want.
fn back_off() {
    let locks: &'static [Mutex<u64>] = [0, 0].map(Mutex::new).to_vec_leaked();
    let rounds = counters(2);
    for seat in 0..2 {
        drop(actor(&format!("pair {seat}"), move || {
            loop {
                let own = locks[seat].lock().unwrap();
                if let Ok(mut other) = locks[1 - seat].try_lock() {
                    *other += 1;
                    rounds[seat].fetch_add(1, Relaxed);
                }
                drop(own);
                std::thread::yield_now();
            }
        }));
    }
    until(rounds, 1000);
}

trait Leaked<T> {
    fn to_vec_leaked(self) -> &'static [T];
}

impl<T, const N: usize> Leaked<T> for [T; N] {
    fn to_vec_leaked(self) -> &'static [T] {
        Vec::from(self).leak()
    }
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

/// Threads that work, each with a lock of its own, round and round the same few places.
fn busy(has_progress_marks: bool) {
    let rounds = counters(3);
    for (index, count) in rounds.iter().enumerate() {
        drop(actor(&format!("worker {index}"), move || {
            let lock = Mutex::new(0u64);
            loop {
                *lock.lock().unwrap() += 1;
                if has_progress_marks {
                    rip_progress!();
                }
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    until(rounds, 1000);
}

/// Threads at full speed over ten locks, always in order: for torture. At no moment are they in a circle.
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
