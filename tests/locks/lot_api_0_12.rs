// The part of `parking_lot`'s interface that 0.12 has alone: see `lot_api.rs`.

use parking_lot::lock_api::{RawRwLockRecursive, RawRwLockRecursiveTimed};
use parking_lot::{const_fair_mutex, const_mutex, const_reentrant_mutex, const_rwlock};

static CONSTANTS: (Mutex<u8>, FairMutex<u8>, ReentrantMutex<u8>, RwLock<u8>) =
    (const_mutex(1), const_fair_mutex(2), const_reentrant_mutex(3), const_rwlock(4));

fn raw_recursive<R: RawRwLockRecursive + RawRwLockRecursiveTimed>() {}

fn of_this_version(out: &mut String) {
    raw_recursive::<RawRwLock>();
    writeln!(out, "{CONSTANTS:?}").unwrap();
    recursive(out);
    raw(out);
}

fn recursive(out: &mut String) {
    let routes = &CONSTANTS.3;
    let readers = (routes.read_recursive(), routes.try_read_recursive());
    writeln!(out, "{readers:?}").unwrap();
    drop(readers);
    let writer = routes.write();
    writeln!(out, "{}", routes.try_read_recursive_for(OVER).is_none()).unwrap();
    writeln!(out, "{}", routes.try_read_recursive_until(Instant::now()).is_none()).unwrap();
    drop(writer);
}

fn raw(out: &mut String) {
    std::mem::forget(PLAIN.0.lock());
    // SAFETY: this thread has just locked it, and nobody has a guard.
    unsafe { PLAIN.0.force_unlock() };
    writeln!(out, "{}", PLAIN.0.is_locked()).unwrap();
    let free = RawMutex::INIT;
    let mutex = Mutex::from_raw(free, 8);
    // SAFETY: the lock is left as it was.
    let raw = unsafe { mutex.raw() };
    raw.lock();
    writeln!(out, "{} {}", raw.try_lock(), mutex.is_locked()).unwrap();
    // SAFETY: this thread has locked it.
    unsafe { raw.unlock_fair() };
    let routes = RwLock::const_new(RawRwLock::INIT, 9);
    // SAFETY: the lock is left as it was.
    let raw = unsafe { routes.raw() };
    raw.lock_shared();
    writeln!(out, "{} {}", raw.try_lock_exclusive(), raw.is_locked()).unwrap();
    // SAFETY: this thread has locked it.
    unsafe { raw.unlock_shared() };
    let fair = RawFairMutex::INIT;
    fair.lock();
    writeln!(out, "{}", fair.is_locked()).unwrap();
    // SAFETY: as above.
    unsafe { fair.unlock() };
}
