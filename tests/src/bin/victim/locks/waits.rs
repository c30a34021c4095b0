//! Threads that wait: for locks of each kind, and on condition variables.

use std::sync::mpsc;
use std::time::Duration;

use librip::raw::Recorded;
use librip::sync::{Condvar, Mutex, RwLock};
use librip::{rip_lock_acquired, rip_lock_released};

use super::{LotMutex, say_address};
use crate::common::{named, pause};

/// Threads that wait for the locks of the main thread, in each way to wait.
pub(crate) fn waits() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static LOT: LotMutex = LotMutex::new(0);
    static RWLOCK: RwLock<u64> = RwLock::new(0);
    say_address(&MUTEX);
    say_address(unsafe { LOT.raw() });
    say_address(&RWLOCK);
    let held = (MUTEX.lock().unwrap(), LOT.lock(), RWLOCK.write().unwrap());
    let waiters = [
        named("mutex").spawn(|| drop(MUTEX.lock().unwrap())),
        named("lot").spawn(|| drop(LOT.try_lock_for(Duration::from_secs(3600)))),
        named("reader").spawn(|| drop(RWLOCK.read().unwrap())),
    ];
    pause();
    drop(held);
    for waiter in waiters {
        waiter.unwrap().join().unwrap();
    }
    pause();
}

/// Acquires and releases locks, for their events.
pub(crate) fn timed() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static BY_HAND: u64 = 0;
    static LOT: LotMutex = LotMutex::new(0);
    say_address(&MUTEX);
    say_address(&BY_HAND);
    say_address(unsafe { LOT.raw() });
    drop(MUTEX.lock().unwrap());
    rip_lock_acquired!(&BY_HAND);
    rip_lock_released!(&BY_HAND);
    drop(LOT.lock());
    let held = MUTEX.lock().unwrap();
    pause();
    assert!(MUTEX.try_lock().is_err());
    drop(held);
}

/// Acquires the same lock at two locations.
pub(crate) fn pairs() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static LOT: LotMutex = LotMutex::new(0);
    say_address(&MUTEX);
    say_address(unsafe { LOT.raw() });
    let first = (MUTEX.lock().unwrap(), LOT.lock());
    pause();
    drop(first);
    let second = (MUTEX.lock().unwrap(), LOT.lock());
    pause();
    drop(second);
}

pub(crate) fn condition() {
    static MUTEX: Mutex<bool> = Mutex::new(false);
    static CHANGED: Condvar = Condvar::new();
    static LOT: lock_api::Mutex<Recorded<parking_lot::RawMutex>, bool> = lock_api::Mutex::new(false);
    static LOT_CHANGED: librip::raw::Condvar = librip::raw::Condvar::new();
    say_address(&MUTEX);
    say_address(&CHANGED);
    say_address(unsafe { LOT.raw() });
    say_address(&LOT_CHANGED);
    let (woken, wakes) = mpsc::channel();
    let lot_woken = woken.clone();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let (lot_go_on, lot_goes_on) = mpsc::channel::<()>();
    let waiters = [
        named("sleeper").spawn(move || {
            let guard = CHANGED.wait_while(MUTEX.lock().unwrap(), |is_over| !*is_over).unwrap();
            woken.send(()).unwrap();
            goes_on.recv().unwrap();
            drop(guard);
        }),
        named("lot sleeper").spawn(move || {
            let mut guard = LOT.lock();
            LOT_CHANGED.wait_while(&mut guard, |is_over| !*is_over);
            lot_woken.send(()).unwrap();
            lot_goes_on.recv().unwrap();
            drop(guard);
        }),
    ];
    pause();
    *MUTEX.lock().unwrap() = true;
    CHANGED.notify_one();
    *LOT.lock() = true;
    LOT_CHANGED.notify_all();
    wakes.recv().unwrap();
    wakes.recv().unwrap();
    pause();
    go_on.send(()).unwrap();
    lot_go_on.send(()).unwrap();
    for waiter in waiters {
        waiter.unwrap().join().unwrap();
    }
    pause();
}
