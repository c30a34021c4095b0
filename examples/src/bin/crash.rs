//! Trouble: the process aborts in the middle of its work, in a function that has been inlined away.
//!
//! No stack is left, and a core dump would be needed to make one. `read-rip -t` shows the last places of every
//! thread: of the one that aborted, "finds the order impossible" as its last mark, in `check` as inlined into
//! `settle`; of the others, whatever they were at in that instant.
//!
//! ```text
//! crash [THREADS]          default 4
//! ```
//!
//! It prints `running: pid P, ring PATH`, and dies of SIGABRT once all threads have worked for a while.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;

use librip::rip_snap;
use librip_examples::arrivals::Arrivals;
use librip_examples::locks::{lock, unlock, unwatched};
use librip_examples::pace::Pace;
use librip_examples::{say_running, start, stay};

/// Each thread settles so many orders before the one that cannot be settled comes.
const ORDERS_BEFORE: u64 = 1000;

struct Shop {
    total: Mutex<u64>,
    busy: Arrivals,
    /// The order that breaks it, sent when all threads are busy.
    poison: Mutex<Option<u64>>,
}

fn main() -> ExitCode {
    let threads = std::env::args().nth(1).map_or(Some(4), |number| number.parse().ok());
    let Some(threads @ 1..=1000) = threads else {
        eprintln!("crash: the number of threads is from 1 to 1000\nusage: crash [THREADS]");
        return ExitCode::from(2);
    };
    let ring = start();
    say_running(&ring);
    let shop =
        Arc::new(Shop { total: Mutex::new(0), busy: Arrivals::new(threads), poison: Mutex::new(None) });
    for number in 0..threads {
        let shop = Arc::clone(&shop);
        let started =
            thread::Builder::new().name(format!("clerk {number}")).spawn(move || clerk(&shop, number));
        if let Err(error) = started {
            eprintln!("crash: no thread for clerk {number}: {error}");
            return ExitCode::FAILURE;
        }
    }
    shop.busy.wait();
    rip_snap!("sends the order that breaks it");
    let mut poison = lock(&shop.poison, unwatched);
    *poison = Some(0);
    unlock(&shop.poison, poison);
    stay()
}

fn clerk(shop: &Shop, number: usize) {
    let mut pace = Pace::new(number as u64);
    for count in 1.. {
        let mut price = 1 + pace.below(100);
        // The first clerk gets it, whoever is scheduled.
        if number == 0 && count > ORDERS_BEFORE {
            let mut poison = lock(&shop.poison, unwatched);
            price = poison.take().unwrap_or(price);
            unlock(&shop.poison, poison);
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
