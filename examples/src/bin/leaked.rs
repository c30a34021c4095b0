//! Trouble: a thread takes a lock, forgets the guard, and exits. Nothing ever releases the lock, and its holder is
//! gone.
//!
//! `read-rip check` names the thread that exited, where it took the lock, and the threads that wait. The record of
//! that thread is still there, because the recorder reuses the slots of exited threads only when it has no fresh slots
//! left.
//!
//! ```text
//! leaked [WAITERS]          default 3
//! ```
//!
//! It prints `running: pid P, ring PATH`, then `stuck`, and runs until it is killed.

use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;

use librip::rip_snap;
use librip_examples::arrivals::Arrivals;
use librip_examples::locks::{lock, unlock, unwatched};
use librip_examples::{say, say_running, start, stay};

fn main() -> ExitCode {
    let waiters = std::env::args().nth(1).map_or(Some(3), |number| number.parse().ok());
    let Some(waiters @ 1..=1000) = waiters else {
        eprintln!("leaked: WAITERS must be a number from 1 to 1000\nusage: leaked [WAITERS]");
        return ExitCode::from(2);
    };
    let ring = start();
    say_running(&ring);
    let log = Arc::new(Mutex::new(Vec::new()));
    let mut lines = lock(&log, unwatched);
    lines.push("started");
    unlock(&log, lines);

    let culprits = Arc::clone(&log);
    let culprit = thread::Builder::new().name("culprit".into()).spawn(move || {
        let mut lines = lock(&culprits, unwatched);
        lines.push("leaving");
        rip_snap!("forgets the guard");
        std::mem::forget(lines);
    });
    // It ends before any other thread takes the lock.
    if !culprit.is_ok_and(|culprit| culprit.join().is_ok()) {
        eprintln!("leaked: could not start the first thread");
        return ExitCode::FAILURE;
    }

    let waiting = Arc::new(Arrivals::new(waiters));
    for number in 0..waiters {
        let (log, waiting) = (Arc::clone(&log), Arc::clone(&waiting));
        let started = thread::Builder::new().name(format!("waiter {number}")).spawn(move || {
            let mut lines = lock(&log, || waiting.arrive());
            lines.push("never logged");
            unlock(&log, lines);
        });
        if let Err(error) = started {
            eprintln!("leaked: could not start waiter {number}: {error}");
            return ExitCode::FAILURE;
        }
    }
    waiting.wait();
    say("stuck");
    stay()
}
