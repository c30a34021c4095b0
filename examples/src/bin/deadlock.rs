//! Trouble: two threads take two locks in opposite orders, and each waits for the lock that the other holds.
//!
//! `read-rip check` proves the deadlock, and names both threads, both locks and the lines. This file contains no
//! marks: it uses the locks of `librip::sync`, which record their own events.
//!
//! It prints `running: pid P, ring PATH`, then `stuck`, and runs until it is killed. The deadlock happens in each run.

use std::thread;

use librip::sync::{Arc, Barrier, Mutex, PoisonError};
use librip_examples::arrivals::Arrivals;
use librip_examples::{say, say_running, start, stay};

struct Bank {
    savings: Mutex<i64>,
    current: Mutex<i64>,
    /// Where each thread waits until both threads hold their first lock.
    halfway: Barrier,
    /// The threads that are about to wait for their second lock.
    waiting: Arrivals,
}

impl Bank {
    /// Moves `amount` between two accounts. Locks the account that pays first, which is the mistake.
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
    // Each account is locked once alone: the locks themselves are in order.
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
    // SANITY: without its two threads this program shows nothing.
    thread::Builder::new().name(name.into()).spawn(body).expect("the system can start two threads");
}
