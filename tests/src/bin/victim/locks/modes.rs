//! Every mode of a raw readers-writer lock, one after the other.

use std::sync::mpsc;
use std::time::Duration;

use librip::raw::Recorded;
use librip::sync::{RwLock, RwLockWriteGuard};

use super::say_address;
use crate::common::{named, pause, say};

type LotRwLock = lock_api::RwLock<Recorded<parking_lot::RawRwLock>, u64>;

static LOCK: LotRwLock = LotRwLock::new(0);

/// Every mode of a raw readers-writer lock, one after the other.
pub(crate) fn modes() {
    static REENTRANT: lock_api::ReentrantMutex<
        Recorded<parking_lot::RawMutex>,
        parking_lot::RawThreadId,
        u64,
    > = lock_api::ReentrantMutex::new(0);
    static STD: RwLock<u64> = RwLock::new(0);
    say_address(unsafe { LOCK.raw() });
    say_address(&STD);
    let read = LOCK.read();
    pause();
    drop(read);
    let recursive = LOCK.read_recursive();
    pause();
    drop(recursive);
    let write = LOCK.write();
    pause();
    let upgradable = lock_api::RwLockWriteGuard::downgrade_to_upgradable(write);
    pause();
    let write = lock_api::RwLockUpgradableReadGuard::upgrade(upgradable);
    pause();
    let read = lock_api::RwLockWriteGuard::downgrade(write);
    pause();
    let failed = LOCK.try_write_for(Duration::from_micros(10)).is_none() && LOCK.try_write().is_none();
    say(if failed { "failed" } else { "wrote beside a reader" });
    drop(read);
    upgrade_fails();
    let write = STD.write().unwrap();
    let read = RwLockWriteGuard::downgrade(write);
    pause();
    drop(read);
    // Only the outermost pair locks.
    let outer = REENTRANT.lock();
    let inner = REENTRANT.lock();
    drop(inner);
    pause();
    drop(outer);
    pause();
}

/// An upgrade that fails because of a reader.
fn upgrade_fails() {
    let upgradable = LOCK.upgradable_read();
    pause();
    let (reads, is_reading) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let reader = named("reader").spawn(move || {
        let read = LOCK.read();
        reads.send(()).unwrap();
        goes_on.recv().unwrap();
        drop(read);
    });
    is_reading.recv().unwrap();
    let upgrade = lock_api::RwLockUpgradableReadGuard::try_upgrade_for(upgradable, Duration::from_micros(10));
    let Err(upgradable) = upgrade else { panic!("upgraded beside a reader") };
    pause();
    go_on.send(()).unwrap();
    reader.unwrap().join().unwrap();
    drop(upgradable);
}
