//! Trouble: two threads take two locks in opposite orders, and each waits for what the other has.
//!
//! `read-rip -t` shows the last marks of both: an acquisition (two marks on one line of `locks.rs`), then the
//! first mark of another one. `scripts/lock-holders locks.rs` lists both threads, `scripts/lock-waiters` counts
//! two at one line: all who wait also hold, and nobody else holds anything.
//!
//! It prints `running: pid P, ring PATH`, then `stuck`, and stays until killed. It always gets stuck.

use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use librip::rip_snap;
use librip_examples::arrivals::Arrivals;
use librip_examples::locks::{lock, unlock, unwatched};
use librip_examples::{say, say_running, start, stay};

struct Bank {
    savings: Mutex<i64>,
    current: Mutex<i64>,
    /// Both have their first lock.
    halfway: Barrier,
    waiting: Arrivals,
}

impl Bank {
    /// Moves `amount` between two accounts, locking first the one that pays.
    fn transfer(&self, from: &Mutex<i64>, to: &Mutex<i64>, amount: i64) {
        rip_snap!("begins a transfer");
        let mut payer = lock(from, unwatched);
        self.halfway.wait();
        let mut payee = lock(to, || self.waiting.arrive());
        *payer -= amount;
        *payee += amount;
        unlock(payee);
        unlock(payer);
    }
}

fn main() {
    let ring = start();
    say_running(&ring);
    let bank = Arc::new(Bank {
        savings: Mutex::new(100),
        current: Mutex::new(100),
        halfway: Barrier::new(2),
        waiting: Arrivals::new(2),
    });
    // A first look at either account, alone: nothing is wrong with the locks themselves.
    for account in [&bank.savings, &bank.current] {
        unlock(lock(account, unwatched));
    }
    let (here, there) = (Arc::clone(&bank), Arc::clone(&bank));
    named("saver", move || here.transfer(&here.current, &here.savings, 10));
    named("spender", move || there.transfer(&there.savings, &there.current, 10));
    bank.waiting.wait();
    say("stuck");
    stay()
}

fn named(name: &str, body: impl FnOnce() + Send + 'static) {
    // SANITY: without its two threads this program has nothing to show.
    thread::Builder::new().name(name.into()).spawn(body).expect("two threads can be started");
}
