//! What programs expect of the locks. Each test calls `start` of the test program, which records or does not.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use librip_async_lock::{
    Barrier, Mutex, MutexGuard, MutexGuardArc, OnceCell, RwLock, RwLockUpgradableReadGuard,
    RwLockUpgradableReadGuardArc, RwLockWriteGuard, RwLockWriteGuardArc, Semaphore,
};

use crate::start;

/// A future that is polled by hand, in a task of its own.
struct Spawned<F: Future> {
    future: Pin<Box<librip::task::Traced<F>>>,
    woken: Arc<Woken>,
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<F: Future> Spawned<F> {
    fn new(future: F) -> Spawned<F> {
        Spawned { future: Box::pin(librip::task::traced(future)), woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    #[track_caller]
    fn ready(&mut self) -> F::Output {
        match self.poll() {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("the future waits"),
        }
    }

    #[track_caller]
    fn waits(&mut self) {
        assert!(self.poll().is_pending(), "the future does not wait");
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_mutex_is_handed_on_and_a_waiter_may_give_up() {
    start();
    let mutex = Mutex::new(0);
    let guard = Spawned::new(mutex.lock()).ready();
    assert!(std::ptr::eq(MutexGuard::source(&guard), &raw const mutex));
    let [mut first, mut second] = [(); 2].map(|()| Spawned::new(mutex.lock()));
    first.waits();
    second.waits();
    drop(guard);
    assert!(first.is_woken());
    drop(first);
    assert!(second.is_woken());
    *second.ready() += 1;
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 1 }");
}

#[test]
fn guards_with_a_share_keep_the_lock_and_release_it_anywhere() {
    start();
    let mutex = Arc::new(Mutex::new(vec![1]));
    let guard = Spawned::new(mutex.lock_arc()).ready();
    assert!(Arc::ptr_eq(MutexGuardArc::source(&guard), &mutex));
    assert!(mutex.try_lock_arc().is_none());
    let mut waits = Spawned::new(mutex.lock_arc());
    waits.waits();
    let unpolled = mutex.lock_arc();
    assert_eq!(Arc::strong_count(&mutex), 4);
    thread::spawn(move || {
        let mut guard = guard;
        guard.push(2);
    })
    .join()
    .unwrap();
    drop(unpolled);
    let guard = waits.ready();
    drop(waits);
    drop(mutex);
    assert_eq!(*guard, [1, 2]);
}

#[test]
fn threads_exclude_each_other_and_wait() {
    start();
    let (mutex, lock) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::new(0)));
    let threads = [(); 4].map(|()| {
        let (mutex, lock) = (Arc::clone(&mutex), Arc::clone(&lock));
        thread::spawn(move || {
            for _ in 0..500 {
                *mutex.lock_arc_blocking() += 1;
                *lock.write_blocking() += 1;
                let read = lock.upgradable_read_blocking();
                assert!(*read > 0);
                *RwLockUpgradableReadGuard::upgrade_blocking(read) += 1;
            }
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((*mutex.lock_blocking(), *lock.read_blocking()), (2000, 4000));
}

#[test]
fn readers_share_and_a_writer_is_alone() {
    start();
    let lock = RwLock::new(1);
    let readers = [lock.try_read().unwrap(), Spawned::new(lock.read()).ready()];
    assert!(lock.try_write().is_none());
    let mut writer = Spawned::new(lock.write());
    writer.waits();
    drop(readers);
    let mut guard = writer.ready();
    *guard = 2;
    assert!(lock.try_read().is_none());
    let read = RwLockWriteGuard::downgrade(guard);
    assert_eq!((*read, *lock.try_read().unwrap()), (2, 2));
}

#[test]
fn one_reader_may_upgrade_when_the_others_are_gone() {
    start();
    let lock = RwLock::new(1);
    let upgradable = Spawned::new(lock.upgradable_read()).ready();
    assert!(lock.try_upgradable_read().is_none());
    let reader = lock.try_read().unwrap();
    let upgradable = RwLockUpgradableReadGuard::try_upgrade(upgradable).expect_err("another one reads");
    let mut upgrades = Spawned::new(RwLockUpgradableReadGuard::upgrade(upgradable));
    upgrades.waits();
    assert!(lock.try_read().is_none(), "readers wait for it");
    drop(reader);
    let mut guard = upgrades.ready();
    *guard += 1;
    let upgradable = RwLockWriteGuard::downgrade_to_upgradable(guard);
    assert!(lock.try_read().is_some());
    let guard = RwLockUpgradableReadGuard::try_upgrade(upgradable).unwrap();
    drop(guard);
    assert_eq!(*lock.try_read().unwrap(), 2);
}

#[test]
fn an_upgrade_that_is_dropped_before_or_after_its_first_poll_releases() {
    start();
    let lock = Arc::new(RwLock::new(1));
    let upgradable = lock.try_upgradable_read_arc().unwrap();
    drop(RwLockUpgradableReadGuardArc::upgrade(upgradable));
    assert!(lock.try_write().is_some());
    let (upgradable, reader) = (lock.try_upgradable_read_arc().unwrap(), lock.try_read_arc().unwrap());
    let mut upgrades = Spawned::new(RwLockUpgradableReadGuardArc::upgrade(upgradable));
    upgrades.waits();
    drop(upgrades);
    drop(reader);
    let write = lock.try_write_arc().unwrap();
    let read = RwLockUpgradableReadGuardArc::downgrade(RwLockWriteGuardArc::downgrade_to_upgradable(write));
    assert!(lock.try_upgradable_read().is_some());
    let weak = Arc::downgrade(&lock);
    drop(lock);
    assert_eq!(*read, 1);
    drop(read);
    assert!(weak.upgrade().is_none());
}

#[test]
fn an_upgrade_that_owns_the_last_share_may_be_dropped() {
    start();
    let lock = Arc::new(RwLock::new(Box::new(1)));
    let upgradable = lock.try_upgradable_read_arc().unwrap();
    drop(lock);
    drop(RwLockUpgradableReadGuardArc::upgrade(upgradable));
    let mutex = Arc::new(Mutex::new(Box::new(1)));
    let locks = mutex.lock_arc();
    drop(mutex);
    drop(locks);
}

#[test]
fn permits_are_given_back_or_forgotten() {
    start();
    let semaphore = Arc::new(Semaphore::new(2));
    let [one, other] = [semaphore.try_acquire().unwrap(), semaphore.acquire_blocking()];
    let mut waits = Spawned::new(semaphore.acquire_arc());
    waits.waits();
    drop(one);
    let third = waits.ready();
    assert_eq!(semaphore.available_permits(), 0);
    other.forget();
    assert!(semaphore.try_acquire_arc().is_none());
    drop(third);
    Spawned::new(semaphore.acquire()).ready().forget();
    assert!(semaphore.try_acquire().is_none());
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 1);
    semaphore.acquire_arc_blocking().forget();
    assert!(semaphore.try_acquire().is_none());
}

#[test]
fn one_of_a_round_at_a_barrier_leads() {
    start();
    let barrier = Arc::new(Barrier::new(2));
    let mut first = Spawned::new(barrier.wait());
    first.waits();
    assert!(Spawned::new(barrier.wait()).ready().is_leader());
    assert!(!first.ready().is_leader());
    let other = Arc::clone(&barrier);
    let thread = thread::spawn(move || other.wait_blocking().is_leader());
    assert_ne!(barrier.wait_blocking().is_leader(), thread.join().unwrap());
}

#[test]
fn one_task_initialises_and_the_next_one_does_if_it_fails() {
    start();
    let cell = OnceCell::new();
    let gate = Semaphore::new(0);
    let mut fails = Spawned::new(cell.get_or_try_init(|| async {
        gate.acquire().await.forget();
        Err("no")
    }));
    let mut dropped = Spawned::new(cell.get_or_init(std::future::pending::<u32>));
    let mut succeeds = Spawned::new(cell.get_or_init(|| async { 7 }));
    let mut waits = Spawned::new(cell.wait());
    fails.waits();
    dropped.waits();
    succeeds.waits();
    waits.waits();
    assert_eq!(cell.try_set(8), Err(8));
    gate.add_permits(1);
    assert_eq!(fails.ready(), Err("no"));
    dropped.waits();
    drop(dropped);
    assert_eq!((*succeeds.ready(), *waits.ready()), (7, 7));
    assert_eq!(Spawned::new(cell.set(8)).ready(), Err(8));
    assert_eq!(cell.set_blocking(9), Err(9));
    #[allow(unsafe_code, reason = "the function is unsafe")]
    // SAFETY: a task has initialised it.
    let unchecked = unsafe { cell.get_unchecked() };
    assert_eq!(unchecked, &7);
    assert_eq!((cell.get_or_init_blocking(|| 8), cell.wait_blocking()), (&7, &7));
    assert_eq!(Spawned::new(OnceCell::new().set(1)).ready(), Ok(&1));
}

#[cfg(feature = "futures")]
#[test]
fn the_mutex_of_futures_excludes_too() {
    start();
    let mutex = Arc::new(librip_async_lock::futures::Mutex::new(0));
    let guard = Spawned::new(mutex.lock()).ready();
    let mut waits = Spawned::new(Arc::clone(&mutex).lock_owned());
    waits.waits();
    assert!(mutex.try_lock().is_none() && mutex.try_lock_owned().is_none());
    drop(guard);
    assert!(waits.is_woken());
    *waits.ready() += 1;
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}

#[test]
fn locks_and_futures_are_sent() {
    fn is_sent<T: Send>(_: &T) {}
    fn is_shared<T: Send + Sync>(_: &T) {}
    start();
    let (mutex, lock) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::new(0)));
    is_shared(&mutex);
    is_shared(&lock);
    is_sent(&mutex.lock());
    is_sent(&mutex.lock_arc());
    is_sent(&lock.read());
    is_sent(&lock.write_arc());
    let upgradable = lock.try_upgradable_read_arc().unwrap();
    is_shared(&upgradable);
    is_sent(&RwLockUpgradableReadGuardArc::upgrade(upgradable));
    is_shared(&mutex.try_lock().unwrap());
    is_sent(&Semaphore::new(1).acquire());
}
