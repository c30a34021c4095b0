//! `Recorded` with the traits of `lock_api` 0.5, whose raw locks return guards: `Recorded` passes them on unchanged.
//!
//! This file does not check what is recorded. The end-to-end tests do so with `lock_api` 0.4; the code is the same.

#![cfg(all(feature = "lock_api_05", not(loom)))]
#![allow(unsafe_code, reason = "implements a raw lock")]

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use librip::raw::{Facts, Recorded, SetName, Unknown};
use lock_api_05 as api;
use lock_api_05::RawMutex as _;

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

/// A readers-writer lock, of which one thread at a time has any mode.
struct Plain(Numbered);

// SAFETY: as for the mutex.
unsafe impl api::RawRwLock for Plain {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait requires it")]
    const INIT: Plain = Plain(Numbered::INIT);
    type SharedGuard = u64;
    type ExclusiveGuard = u64;

    fn lock_shared(&self) -> u64 {
        self.0.lock()
    }
    fn try_lock_shared(&self) -> Option<u64> {
        self.0.try_lock()
    }
    unsafe fn unlock_shared(&self, guard: u64) {
        // SAFETY: the caller holds the lock.
        unsafe { self.0.unlock(guard) };
    }
    fn lock_exclusive(&self) -> u64 {
        self.0.lock()
    }
    fn try_lock_exclusive(&self) -> Option<u64> {
        self.0.try_lock()
    }
    unsafe fn unlock_exclusive(&self, guard: u64) {
        // SAFETY: the caller holds the lock.
        unsafe { self.0.unlock(guard) };
    }
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_locked()
    }
}

/// Facts of a lock whose guards stay, and whose readers pass writers or do not.
struct Known<const READERS_FIRST: bool>;

impl<const READERS_FIRST: bool> Facts for Known<READERS_FIRST> {
    const GUARDS_STAY: bool = true;
    const READERS_FIRST: Option<bool> = Some(READERS_FIRST);
}

#[test]
fn a_lock_is_recorded_with_all_facts_and_with_none() {
    fn reads_and_writes<F: Facts>() {
        let lock = api::RwLock::<Recorded<Plain, F>, u8>::new(1);
        assert_eq!(*lock.read(), 1);
        assert_eq!(*lock.try_read().unwrap(), 1);
        *lock.write() += 1;
        assert_eq!(*lock.try_write().unwrap(), 2);
    }
    let _ = librip::Builder::new().slots(64).keep(librip::Keep::Never).create();
    reads_and_writes::<Unknown>();
    reads_and_writes::<Known<true>>();
    reads_and_writes::<Known<false>>();
}
