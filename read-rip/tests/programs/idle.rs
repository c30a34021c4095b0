//! Threads of the standard library that wait: `idle CASE`. The same as `idle.c`, with other locks.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, mpsc};
use std::{io, thread};

static CACHE: Mutex<u32> = Mutex::new(0);
static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
static WORK: Condvar = Condvar::new();
static RECEIVER: Mutex<Option<mpsc::Receiver<u32>>> = Mutex::new(None);
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// The thread pool of the Rust Book: one worker is in `recv`, the others wait for the lock.
#[inline(never)]
fn takes_turns() {
    let _ = RECEIVER.lock().unwrap().as_ref().unwrap().recv();
}

#[inline(never)]
fn takes_work() {
    let mut queue = QUEUE.lock().unwrap();
    while queue.is_empty() {
        queue = WORK.wait(queue).unwrap();
    }
}

/// Keeps the cache, and waits for a message that does not come.
#[inline(never)]
fn expires(answers: &mpsc::Receiver<u32>) {
    let mut cache = CACHE.lock().unwrap();
    IS_HELD.store(true, SeqCst);
    *cache = answers.recv().unwrap();
}

#[inline(never)]
fn looks_up() {
    *CACHE.lock().unwrap() += 1;
}

/// As a server that waits for its next request.
fn reads() {
    let _ = io::read_to_string(io::stdin());
}

fn main() {
    let (sender, receiver) = mpsc::channel();
    let start = |count, body: fn()| (0..count).for_each(|_| drop(thread::spawn(body)));
    match std::env::args().nth(1).as_deref() {
        Some("book-pool") => {
            *RECEIVER.lock().unwrap() = Some(receiver);
            start(4, takes_turns);
            reads();
        }
        Some("queue") => {
            start(4, takes_work);
            reads();
        }
        Some("parked") => {
            start(4, || thread::park());
            reads();
        }
        Some("channel-under-a-lock") => {
            thread::spawn(move || expires(&receiver));
            while !IS_HELD.load(SeqCst) {
                thread::yield_now();
            }
            start(4, looks_up);
            reads();
        }
        Some("itself") => {
            let _first = CACHE.lock().unwrap();
            *CACHE.lock().unwrap() += 1;
        }
        Some("nobody-left") => {
            start(3, takes_work);
            thread::spawn(takes_work).join().unwrap();
        }
        _ => std::process::exit(2),
    }
    drop(sender);
}
