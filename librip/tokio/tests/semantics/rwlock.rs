use std::sync::Arc;

use librip_tokio::sync::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

use super::{Spawned, on_two_workers, start};

#[test]
fn readers_share_and_a_writer_is_alone() {
    start();
    let lock = RwLock::new(1);
    let one = lock.try_read().unwrap();
    let other = lock.try_read().unwrap();
    assert!(lock.try_write().is_err());
    drop((one, other));
    let writer = lock.try_write().unwrap();
    assert!(lock.try_read().is_err() && lock.try_write().is_err());
    drop(writer);
    assert!(lock.try_write().is_ok());
}

#[test]
fn a_reader_waits_behind_a_writer_that_waits() {
    start();
    let lock = RwLock::new(0);
    let reader = lock.try_read().unwrap();
    let mut writer = Spawned::new(lock.write());
    writer.waits();
    let mut late = Spawned::new(lock.read());
    late.waits();
    drop(reader);
    assert!(writer.is_woken() && !late.is_woken());
    *writer.ready() = 7;
    assert_eq!(*late.ready(), 7);
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_behind_it_in() {
    start();
    let lock = RwLock::new(());
    let reader = lock.try_read().unwrap();
    let mut writer = Spawned::new(lock.write());
    writer.waits();
    let mut late = Spawned::new(lock.read());
    late.waits();
    drop(writer);
    assert!(late.is_woken());
    drop(late.ready());
    drop(reader);
    assert!(lock.try_write().is_ok());
}

#[test]
fn as_many_read_as_the_program_allows() {
    start();
    let lock = RwLock::with_max_readers((), 2);
    let two = [lock.try_read().unwrap(), lock.try_read().unwrap()];
    assert!(lock.try_read().is_err());
    drop(two);
    assert!(lock.try_write().is_ok());
}

#[test]
#[should_panic(expected = "more readers")]
fn too_many_readers_are_refused() {
    start();
    RwLock::with_max_readers((), u32::MAX);
}

#[test]
fn a_writer_becomes_a_reader_and_lets_readers_in_and_no_writer() {
    start();
    let lock = RwLock::new(1);
    let mut waiting_writer = Spawned::new(lock.write());
    let mut writer = lock.try_write().unwrap();
    *writer = 2;
    let reader = writer.downgrade();
    assert_eq!(*reader, 2);
    let other = lock.try_read().unwrap();
    waiting_writer.waits();
    drop(reader);
    waiting_writer.waits();
    drop(other);
    *waiting_writer.ready() = 3;
    assert_eq!(*lock.try_read().unwrap(), 3);
}

#[test]
fn guards_of_parts_keep_the_mode() {
    start();
    let lock = RwLock::new((1, 2));
    let part = RwLockReadGuard::map(lock.try_read().unwrap(), |pair| &pair.1);
    assert_eq!(*part, 2);
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    let same = RwLockReadGuard::try_map(part, |_| None::<&u8>).expect_err("no part");
    drop(same);

    let mut part = RwLockWriteGuard::map(lock.try_write().unwrap(), |pair| &mut pair.0);
    *part = 5;
    assert!(lock.try_read().is_err());
    drop(part);
    let read = RwLockWriteGuard::downgrade_map(lock.try_write().unwrap(), |pair| &pair.0);
    assert_eq!((*read, lock.try_read().unwrap().0), (5, 5));
    drop(read);

    let write = RwLockWriteGuard::try_downgrade_map(lock.try_write().unwrap(), |_| None::<&u8>);
    let write = write.expect_err("no part");
    assert!(lock.try_read().is_err(), "it is locked to write still");
    let mapped = RwLockWriteGuard::into_mapped(write);
    assert_eq!(mapped.1, 2);
    drop(mapped);
    assert!(lock.try_write().is_ok());
}

#[test]
fn owned_guards_of_parts_keep_the_lock() {
    start();
    let lock = Arc::new(RwLock::new((1, 2)));
    let write = Arc::clone(&lock).try_write_owned().unwrap();
    assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&write), &lock));
    let read = write.downgrade();
    assert!(lock.try_read().is_ok() && lock.try_write().is_err());
    let part = OwnedRwLockReadGuard::map(read, |pair| &pair.1);
    assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&part), &lock));
    assert_eq!(Arc::strong_count(&lock), 2);
    drop(part);
    assert_eq!(Arc::strong_count(&lock), 1);
    let mut part =
        OwnedRwLockWriteGuard::map(Arc::clone(&lock).try_write_owned().unwrap(), |pair| &mut pair.0);
    *part += 1;
    drop(part);
    assert_eq!(*lock.try_read().unwrap(), (2, 2));
}

#[test]
fn owned_guards_are_dropped_by_other_tasks() {
    on_two_workers(async {
        let lock = Arc::new(RwLock::new(1));
        let write = Arc::clone(&lock).write_owned().await;
        let writes = librip_tokio::spawn(async move {
            let mut write = write;
            *write = 2;
            write.downgrade()
        });
        let read = writes.await.unwrap();
        let other = Arc::clone(&lock).read_owned().await;
        assert_eq!((*read, *other), (2, 2));
        let drops = librip_tokio::spawn(async move { drop((read, other)) });
        *lock.write().await = 3;
        drops.await.unwrap();
    });
}

#[test]
fn a_lock_says_what_it_is() {
    start();
    let mut lock = RwLock::new(7);
    assert_eq!(format!("{lock:?}"), "RwLock { data: 7 }");
    *lock.get_mut() = 8;
    let write = lock.try_write().unwrap();
    assert_eq!(format!("{lock:?} {write:?} {write}"), "RwLock { data: <locked> } 8 8");
}
