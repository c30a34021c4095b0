//! Threads that run, in a program without progress marks: some make progress, some do not.

use std::sync::atomic::Ordering::Relaxed;

use librip::raw::Recorded;
use librip::sync::Mutex;

use crate::rounds::{counters, polite, until};
use crate::stage::{Scenario, actor, park, settle};

pub(crate) const ALL: &[Scenario] = &[
    ("polite-neighbours", || polite(|| ())),
    ("back-off-that-succeeds", back_off),
    ("busy-without-marks-of-progress", busy),
    ("overtaken", overtaken),
    ("convoy", convoy),
];

/// Two threads that try to acquire each other's lock, and back off when they fail. Now and then both succeed.
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

/// Threads that work, each with its own lock, in a loop over the same few marks.
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

/// A lock that lets everybody pass the thread that asks politely.
struct Rude(parking_lot::RawMutex);

std::thread_local! {
    static IS_POLITE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

// SAFETY: a thread gets in through a mutex only; the others wait forever.
#[allow(unsafe_code, reason = "the trait is unsafe")]
unsafe impl lock_api::RawMutex for Rude {
    const INIT: Rude = Rude(<parking_lot::RawMutex as lock_api::RawMutex>::INIT);
    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        if IS_POLITE.get() {
            park();
        }
        self.0.lock();
    }

    fn try_lock(&self) -> bool {
        !IS_POLITE.get() && self.0.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller has the lock.
        unsafe { self.0.unlock() };
    }
}

/// One thread waits while four others acquire the lock again and again.
fn overtaken() {
    static TABLE: lock_api::Mutex<Recorded<Rude>, u64> = lock_api::Mutex::new(0);
    let polite = actor("polite", || {
        IS_POLITE.set(true);
        *TABLE.lock() += 1;
    });
    drop(polite.until_blocked());
    let rounds = counters(4);
    for (index, count) in rounds.iter().enumerate() {
        drop(actor(&format!("rude {index}"), move || {
            loop {
                let mut table = TABLE.lock();
                *table += 1;
                work();
                drop(table);
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    settle();
    until(rounds, 100);
}

/// Twenty threads that do all of their work under one lock: the queue moves, and never drains.
fn convoy() {
    static TABLE: Mutex<u64> = Mutex::new(0);
    let rounds = counters(20);
    for (index, count) in rounds.iter().enumerate() {
        drop(actor(&format!("client {index}"), move || {
            loop {
                *TABLE.lock().unwrap() += 1;
                let table = TABLE.lock().unwrap();
                work();
                drop(table);
                count.fetch_add(1, Relaxed);
            }
        }));
    }
    until(rounds, 3);
}

/// Some microseconds.
fn work() {
    for _ in 0..2000 {
        std::hint::spin_loop();
    }
}
