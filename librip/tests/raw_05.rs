//! `Recorded` with the traits of `lock_api` 0.5, whose raw locks return guards: `Recorded` passes them on unchanged.
//!
//! This file does not check what is recorded. The end-to-end tests do so with `lock_api` 0.4; the code is the same.

#![cfg(all(feature = "lock_api_05", not(loom)))]
#![allow(unsafe_code, reason = "implements a raw lock")]

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use librip::raw::{Recorded, SetName};
use lock_api_05 as api;

/// A lock that numbers its acquisitions. The guard is the number, and `unlock` checks it.
struct Numbered {
    /// The number of the present acquisition; 0 if the lock is free.
    owner: AtomicU64,
    next: AtomicU64,
}

// SAFETY: an acquisition replaces 0 by its number in one exchange, so only one thread holds the lock.
unsafe impl api::RawMutex for Numbered {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait requires it")]
    const INIT: Numbered = Numbered { owner: AtomicU64::new(0), next: AtomicU64::new(1) };
    type Guard = u64;

    fn lock(&self) -> u64 {
        loop {
            match self.try_lock() {
                Some(number) => return number,
                None => std::thread::yield_now(),
            }
        }
    }
    fn try_lock(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Relaxed);
        self.owner.compare_exchange(0, number, Acquire, Relaxed).ok().map(|_| number)
    }
    unsafe fn unlock(&self, guard: u64) {
        assert_eq!(self.owner.swap(0, Release), guard, "unlocked with another's guard");
    }
    fn is_locked(&self) -> bool {
        self.owner.load(Relaxed) != 0
    }
}

type Mutex<T> = api::Mutex<Recorded<Numbered>, T>;

#[test]
fn unlock_gets_the_guard_that_lock_returned() {
    static TOTAL: Mutex<u64> = Mutex::new(0);
    let _ = librip::Builder::new().slots(64).keep(librip::Keep::Never).create();
    TOTAL.set_name("total");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| *TOTAL.lock() += 1));
        }
    });
    let held = TOTAL.lock();
    assert!(TOTAL.is_locked() && TOTAL.try_lock().is_none());
    assert_eq!(*held, 4000);
    drop(held);
    assert!(!TOTAL.is_locked());
}
