//! Trouble: a thread takes a lock, loses the guard, and exits. The lock is never released, and no living thread
//! has it.
//!
//! `read-rip check` names the culprit, where it took the lock, and who waits. The evidence is there although the thread
//! is not, because slots of exited threads are not given away while there are fresh ones.
//!
//! ```text
//! leaked [WAITERS]          default 3
//! ```
//!
//! It prints `running: pid P, ring PATH`, then `stuck`, and stays until killed.

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
        eprintln!("leaked: the number of waiters is from 1 to 1000\nusage: leaked [WAITERS]");
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
        rip_snap!("loses the guard");
        std::mem::forget(lines);
    });
    // It ends before anybody else comes to the lock.
    if !culprit.is_ok_and(|culprit| culprit.join().is_ok()) {
        eprintln!("leaked: the first thread could not be started");
        return ExitCode::FAILURE;
    }

    let waiting = Arc::new(Arrivals::new(waiters));
    for number in 0..waiters {
        let (log, waiting) = (Arc::clone(&log), Arc::clone(&waiting));
        let started = thread::Builder::new().name(format!("waiter {number}")).spawn(move || {
            let mut lines = lock(&log, || waiting.arrive());
            lines.push("never said");
            unlock(&log, lines);
        });
        if let Err(error) = started {
            eprintln!("leaked: no thread for waiter {number}: {error}");
            return ExitCode::FAILURE;
        }
    }
    waiting.wait();
    say("stuck");
    stay()
}
