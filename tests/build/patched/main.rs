//! A program that has `parking_lot` 0.12 and 0.13. Two threads wait for one another with a lock of each, another one
//! waits on a condition, and main waits behind a reader.

#![allow(missing_docs, reason = "a test")]

use std::sync::Barrier;
use std::sync::mpsc::channel;

use parking_lot::Mutex as OldMutex;
use parking_lot_0_13::{Condvar, Mutex, RwLock};

static OLD: OldMutex<u32> = OldMutex::new(0);
static NEW: Mutex<u32> = Mutex::new(0);
static ROUTES: RwLock<u32> = RwLock::new(0);
static QUEUE: Mutex<u32> = Mutex::new(0);
static WORK: Condvar = Condvar::new();

fn main() {
    let _ = librip::init();
    // Left and right hold their first lock.
    static HALFWAY: Barrier = Barrier::new(2);
    named("left", || {
        let held = OLD.lock(); // LINE left holds
        HALFWAY.wait();
        let waits = NEW.lock(); // LINE left waits
        drop((held, waits));
    });
    named("right", || {
        let held = NEW.lock(); // LINE right holds
        HALFWAY.wait();
        let waits = OLD.lock(); // LINE right waits
        drop((held, waits));
    });
    named("idle", || {
        let mut queue = QUEUE.lock(); // LINE idles
        WORK.wait(&mut queue);
    });
    let (says, hears) = channel();
    named("reader", move || {
        let held = ROUTES.read(); // LINE reads
        says.send(()).unwrap();
        std::thread::park();
        drop(held);
    });
    hears.recv().unwrap();
    drop(ROUTES.write()); // LINE main waits
}

fn named(name: &str, body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name(name.into()).spawn(body).unwrap();
}
