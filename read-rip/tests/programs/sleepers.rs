//! Threads that sleep at a known depth of known functions.

use std::hint::black_box;
use std::sync::{Barrier, Condvar, Mutex, RwLock, mpsc};
use std::time::Duration;

static MUTEX: Mutex<u32> = Mutex::new(0);
static RWLOCK: RwLock<u32> = RwLock::new(0);
static CONDITION: (Mutex<u32>, Condvar) = (Mutex::new(0), Condvar::new());

#[inline(never)]
fn in_mutex() {
    black_box(*MUTEX.lock().unwrap());
}

#[inline(never)]
fn in_rwlock() {
    black_box(*RWLOCK.write().unwrap());
}

#[inline(never)]
fn in_condition() {
    black_box(*CONDITION.1.wait(CONDITION.0.lock().unwrap()).unwrap());
}

#[inline(never)]
fn in_receive() {
    let (sender, receiver) = mpsc::channel::<u32>();
    black_box(receiver.recv().ok());
    black_box(sender);
}

#[inline(never)]
fn in_park() {
    loop {
        std::thread::park();
        black_box(1);
    }
}

#[inline(never)]
fn in_sleep() {
    std::thread::sleep(Duration::from_secs(100_000));
    black_box(1);
}

#[inline(never)]
fn in_barrier() {
    black_box(Barrier::new(2).wait());
}

#[inline(never)]
fn in_join() {
    black_box(std::thread::spawn(|| outer(in_park)).join().ok());
}

#[inline(never)]
fn inner(wait: fn()) {
    let pad = black_box([1u8; 300]);
    wait();
    black_box(pad);
}

#[inline(never)]
fn outer(wait: fn()) {
    inner(black_box(wait));
    black_box(2);
}

fn main() {
    let _mutex = MUTEX.lock().unwrap();
    let _rwlock = RWLOCK.read().unwrap();
    let waits: [fn(); 8] =
        [in_mutex, in_rwlock, in_condition, in_receive, in_park, in_sleep, in_barrier, in_join];
    for wait in waits {
        std::thread::spawn(move || outer(wait));
    }
    println!("9");
    outer(in_sleep);
}
