//! Trouble: the process aborts in the middle of its work, in a function that the compiler has inlined.
//!
//! There is no core dump and no stack. `read-rip -t` shows the last marks of each thread. The last mark of the thread
//! that aborted is "finds the order impossible", in `check`, inlined into `settle`; `read-rip -v` shows this label. The
//! other threads show what they did at that moment.
//!
//! ```text
//! crash [THREADS]          default 4
//! ```
//!
//! It prints `running: pid P, ring PATH`. It dies of SIGABRT when all threads have worked for a while.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;

use librip::rip_snap;
use librip_examples::arrivals::Arrivals;
use librip_examples::locks::{lock, unlock, unwatched};
use librip_examples::random::Random;
use librip_examples::{say_running, start, stay};

/// The number of orders that each thread settles before the impossible order comes.
const ORDERS_BEFORE: u64 = 1000;

struct Shop {
    total: Mutex<u64>,
    busy: Arrivals,
    /// The price of the impossible order. `main` sends it when all threads are busy.
    impossible: Mutex<Option<u64>>,
}

fn main() -> ExitCode {
    let threads = std::env::args().nth(1).map_or(Some(4), |number| number.parse().ok());
    let Some(threads @ 1..=1000) = threads else {
        eprintln!("crash: THREADS must be a number from 1 to 1000\nusage: crash [THREADS]");
        return ExitCode::from(2);
    };
    let ring = start();
    say_running(&ring);
    let shop =
        Arc::new(Shop { total: Mutex::new(0), busy: Arrivals::new(threads), impossible: Mutex::new(None) });
    for number in 0..threads {
        let shop = Arc::clone(&shop);
        let started =
            thread::Builder::new().name(format!("clerk {number}")).spawn(move || clerk(&shop, number));
        if let Err(error) = started {
            eprintln!("crash: could not start clerk {number}: {error}");
            return ExitCode::FAILURE;
        }
    }
    shop.busy.wait();
    rip_snap!("sends the impossible order");
    let mut impossible = lock(&shop.impossible, unwatched);
    *impossible = Some(0);
    unlock(&shop.impossible, impossible);
    stay()
}

fn clerk(shop: &Shop, number: usize) {
    let mut random = Random::new(number as u64);
    for count in 1.. {
        let mut price = 1 + random.below(100);
        // Always the first clerk, so that each run ends in the same thread.
        if number == 0 && count > ORDERS_BEFORE {
            let mut impossible = lock(&shop.impossible, unwatched);
            price = impossible.take().unwrap_or(price);
            unlock(&shop.impossible, impossible);
        }
        settle(shop, price);
        if count == ORDERS_BEFORE {
            shop.busy.arrive();
        }
    }
}

#[inline(never)]
fn settle(shop: &Shop, price: u64) {
    rip_snap!("settles an order");
    let parts = divide(price);
    let mut total = lock(&shop.total, unwatched);
    *total = total.wrapping_add(parts);
    unlock(&shop.total, total);
}

#[inline(always)]
fn divide(price: u64) -> u64 {
    rip_snap!("divides the price");
    check(price);
    10_000 / price
}

#[inline(always)]
fn check(price: u64) {
    if price == 0 {
        rip_snap!("finds the order impossible");
        std::process::abort();
    }
}
