//! Threads that run, in a program that marks no progress: some get somewhere, some do not.

use std::sync::atomic::Ordering::Relaxed;

use librip::sync::Mutex;

use crate::rounds::{counters, polite, until};
use crate::stage::{Scenario, actor};

pub(crate) const ALL: &[Scenario] = &[
    ("polite-neighbours", || polite(|| ())),
    ("back-off-that-succeeds", back_off),
    ("busy-without-marks-of-progress", busy),
];

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

/// Threads that work, each with a lock of its own, round and round the same few places.
fn busy() {
    let rounds = counters(3);
    for (index, count) in rounds.iter().enumerate() {
        drop(actor(&format!("worker {index}"), move || {
            let lock = Mutex::new(0u64);
            loop {
                *lock.lock().unwrap() += 1;
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    until(rounds, 1000);
}
