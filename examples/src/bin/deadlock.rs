//! Trouble: two threads take two locks in opposite orders, and each waits for what the other has.
//!
//! `read-rip check` proves it, and names both threads, both locks and the lines. There is not one mark in this file: the
//! locks are those of `librip::sync`, which record by themselves.
//!
//! It prints `running: pid P, ring PATH`, then `stuck`, and stays until killed. It always gets stuck.

use std::thread;

use librip::sync::{Arc, Barrier, Mutex, PoisonError};
use librip_examples::arrivals::Arrivals;
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
        let mut payer = from.lock().unwrap_or_else(PoisonError::into_inner);
        self.halfway.wait();
        self.waiting.arrive();
        let mut payee = to.lock().unwrap_or_else(PoisonError::into_inner);
        *payer -= amount;
        *payee += amount;
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
    bank.savings.set_name("savings");
    bank.current.set_name("current account");
    // A first look at either account, alone: nothing is wrong with the locks themselves.
    for account in [&bank.savings, &bank.current] {
        drop(account.lock());
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
