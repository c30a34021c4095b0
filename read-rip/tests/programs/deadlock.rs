//! Two threads take two locks of the standard library in opposite orders, and a third one waits for one on the heap.
//! The main thread waits for the end of the first.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

static SAVINGS: Mutex<u32> = Mutex::new(0);
static CURRENT: Mutex<u32> = Mutex::new(0);
static ARRIVED: AtomicU32 = AtomicU32::new(0);

#[inline(never)]
fn transfer(from: &Mutex<u32>, to: &Mutex<u32>) {
    let mut from = from.lock().unwrap();
    ARRIVED.fetch_add(1, SeqCst);
    while ARRIVED.load(SeqCst) < 2 {
        thread::yield_now();
    }
    *to.lock().unwrap() += 1;
    *from -= 1;
}

fn main() {
    let table = Arc::new(RwLock::new(0));
    let _kept = table.write().unwrap();
    let wanted = table.clone();
    thread::spawn(move || *wanted.write().unwrap() += 1);
    thread::spawn(|| transfer(&CURRENT, &SAVINGS));
    thread::spawn(|| transfer(&SAVINGS, &CURRENT)).join().unwrap();
}
