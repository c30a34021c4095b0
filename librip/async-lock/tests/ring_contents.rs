//! What the ring has of tasks that hold the locks, and wait for them.

#[allow(dead_code, reason = "this program does not look at all that it can read")]
#[path = "../../tokio/tests/ring/mod.rs"]
mod ring;

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Waker};

use librip_async_lock::{Mutex, OnceCell, RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard, Semaphore};
use librip_format::{HELD_HELD, HELD_WAITING};
use ring::{Ring, task};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

fn polled(name: &str, future: impl Future<Output = ()> + Send + 'static) -> Task {
    static START: Once = Once::new();
    START.call_once(|| {
        librip::Builder::new().slots(128).keep(librip::Keep::Never).create().unwrap();
    });
    let mut task: Task = Box::pin(librip::task::Builder::new().name(name).traced(future));
    poll(&mut task);
    task
}

fn poll(task: &mut Task) {
    assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[track_caller]
fn entries(name: &str) -> Vec<(u64, u64)> {
    task(name).held.iter().map(|held| (held.lock, held.state)).collect()
}

fn address<T>(lock: &Arc<T>) -> u64 {
    Arc::as_ptr(lock).addr() as u64
}

#[test]
fn a_lock_has_holders_and_waiters() {
    let (mutex, semaphore) = (Arc::new(Mutex::new(())), Arc::new(Semaphore::new(1)));
    let (own_mutex, own_semaphore) = (Arc::clone(&mutex), Arc::clone(&semaphore));
    let holder = polled("holder", async move {
        let _held = (own_mutex.lock().await, own_semaphore.acquire_arc().await);
        pending::<()>().await;
    });
    let own = Arc::clone(&mutex);
    let mut waiter = polled("waiter", async move {
        let _held = own.lock_arc().await;
        pending::<()>().await;
    });
    assert_eq!(entries("holder"), [(address(&mutex), HELD_HELD), (address(&semaphore), HELD_HELD)]);
    assert_eq!(entries("waiter"), [(address(&mutex), HELD_WAITING)]);
    assert!(semaphore.try_acquire().is_none());
    drop(holder);
    assert!(Ring::read().task("holder").is_none());
    poll(&mut waiter);
    assert_eq!(entries("waiter"), [(address(&mutex), HELD_HELD)]);
    drop(waiter);
    assert!(mutex.try_lock().is_some());
}

#[test]
fn a_reader_that_upgrades_waits_and_does_not_hold() {
    let lock = Arc::new(RwLock::new(()));
    let reader = lock.try_read().unwrap();
    let own = Arc::clone(&lock);
    let mut upgrades = polled("upgrades", async move {
        let guard = own.upgradable_read().await;
        be_pending_once().await;
        let guard = RwLockUpgradableReadGuard::upgrade(guard).await;
        be_pending_once().await;
        let _guard = RwLockWriteGuard::downgrade(guard);
        pending::<()>().await;
    });
    assert_eq!(entries("upgrades"), [(address(&lock), HELD_HELD)]);
    poll(&mut upgrades);
    assert_eq!(entries("upgrades"), [(address(&lock), HELD_WAITING)]);
    drop(reader);
    poll(&mut upgrades);
    assert_eq!(entries("upgrades"), [(address(&lock), HELD_HELD)]);
    poll(&mut upgrades);
    assert_eq!(entries("upgrades"), [(address(&lock), HELD_HELD)]);
    assert!(lock.try_read().is_some());
    drop(upgrades);
    assert!(lock.try_write().is_some());
}

async fn be_pending_once() {
    let mut was_polled = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut was_polled, true) {
        true => std::task::Poll::Ready(()),
        false => std::task::Poll::Pending,
    })
    .await;
}

#[test]
fn an_initialiser_has_a_task_and_waiters() {
    let cell = Arc::new(OnceCell::<u32>::new());
    let [own, others] = [0; 2].map(|_| Arc::clone(&cell));
    let initialises = polled("initialises", async move {
        own.get_or_init(pending::<u32>).await;
    });
    let waits = polled("waits for it", async move {
        others.get_or_init(pending::<u32>).await;
    });
    assert_eq!(entries("initialises"), [(address(&cell), HELD_HELD)]);
    assert_eq!(entries("waits for it"), [(address(&cell), HELD_WAITING)]);
    drop((initialises, waits));
}

#[cfg(feature = "futures")]
#[test]
fn the_mutex_of_futures_has_a_holder_and_waiters() {
    let mutex = Arc::new(librip_async_lock::futures::Mutex::new(()));
    let own = Arc::clone(&mutex);
    let holder = polled("holds it", async move {
        let _held = own.lock().await;
        pending::<()>().await;
    });
    let own = Arc::clone(&mutex);
    let mut first = polled("waits first", async move {
        let _held = own.lock_owned().await;
        pending::<()>().await;
    });
    let own = Arc::clone(&mutex);
    let second = polled("waits too", async move {
        let _held = own.lock().await;
        pending::<()>().await;
    });
    assert_eq!(entries("holds it"), [(address(&mutex), HELD_HELD)]);
    assert_eq!(entries("waits first"), [(address(&mutex), HELD_WAITING)]);
    assert_eq!(entries("waits too"), [(address(&mutex), HELD_WAITING)]);
    drop(holder);
    poll(&mut first);
    assert_eq!(entries("waits first"), [(address(&mutex), HELD_HELD)]);
    // A wait that is given up is none any more, and the lock is still held.
    drop(second);
    assert!(mutex.try_lock().is_none());
    drop(first);
    assert!(mutex.try_lock().is_some());
}
