//! What the ring has of tasks, and of what they hold and wait for.

mod ring;

use std::future::{pending, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::sync::{Arc, Once};
use std::task::Poll;

use librip_format::{HELD_HELD, HELD_SEM_WAIT, HELD_WAITING, TASK_ASYNC, TASK_BLOCKING, TASK_ID, TASK_LOCAL};
use librip_tokio::Task;
use librip_tokio::sync::{
    Barrier, Mutex, Notify, OnceCell, RwLock, RwLockWriteGuard, Semaphore, SetOnce, broadcast, mpsc, oneshot,
    watch,
};
use librip_tokio::task::{JoinHandle, JoinSet, LocalSet};
use ring::{Held, Ring, task};
use tokio::task::yield_now;

/// Runs a future on a runtime with one thread: a task is polled when another one yields.
fn run<F: Future>(future: F) -> F::Output {
    static START: Once = Once::new();
    START.call_once(|| {
        librip::Builder::new().slots(512).keep(librip::Keep::Never).create().unwrap();
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    librip_tokio::block_on(&runtime, future)
}

fn address<T: ?Sized>(lock: &T) -> u64 {
    std::ptr::from_ref(lock).addr() as u64
}

#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

/// What the task of this name has in its table, as lock and state.
#[track_caller]
fn entries(name: &str) -> Vec<(u64, u64)> {
    task(name).held.iter().map(|held| (held.lock, held.state)).collect()
}

/// Spawns a task and lets it run until it waits.
async fn settled(name: &str, future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let handle = Task::new().name(name).spawn(future);
    yield_now().await;
    handle
}

/// Ends a task at a place where it waits.
async fn end(handle: JoinHandle<()>) {
    handle.abort();
    assert!(handle.await.unwrap_err().is_cancelled());
}

#[test]
fn a_task_has_a_name_a_place_a_kind_and_a_runtime() {
    run(async {
        let made = line() + 1;
        let handle = Task::new().name("kinds").spawn(pending::<()>());
        let slot = task("kinds");
        assert_eq!((slot.line, slot.turn), (made, 0));
        assert!(slot.id & TASK_ID != 0);
        assert_eq!(slot.origin & (0xff | TASK_LOCAL), TASK_ASYNC);
        assert_eq!(slot.origin >> 16 & 0xffff, 1, "one worker");
        let runtime = slot.origin >> 32;
        assert_ne!(runtime, 0);
        yield_now().await;
        assert_eq!(task("kinds").turn, 2, "polled once");
        end(handle).await;
        assert!(Ring::read().task("kinds").is_none());

        let set = LocalSet::new();
        let _local = Task::new().name("local kind").spawn_local_on(pending::<()>(), &set);
        assert_eq!(task("local kind").origin & (0xff | TASK_LOCAL), TASK_ASYNC | TASK_LOCAL);
        let (lets_go, goes) = std::sync::mpsc::channel();
        let call = Task::new().name("call").spawn_blocking(move || goes.recv());
        let slot = task("call");
        assert_eq!((slot.origin & 0xff, slot.origin >> 32), (TASK_BLOCKING, runtime));
        lets_go.send(()).unwrap();
        call.await.unwrap().unwrap();
        assert!(Ring::read().task("call").is_none());
    });
}

#[test]
fn each_way_to_spawn_has_the_place_of_its_caller() {
    run(async {
        let mut lines = Vec::new();
        let mut set = JoinSet::new();
        lines.push(line() + 1);
        let handle = librip_tokio::spawn(pending::<()>());
        lines.push(line() + 1);
        set.spawn(pending::<()>());
        lines.push(line() + 1);
        set.spawn_on(pending::<()>(), &tokio::runtime::Handle::current());
        lines.push(line() + 1);
        set.extend([pending::<()>()]);
        lines.push(line() + 1);
        let mut traced = pin!(librip_tokio::traced(pending::<()>()));
        assert!(poll_fn(|cx| Poll::Ready(traced.as_mut().poll(cx))).await.is_pending());
        let slots = Ring::read().slots();
        for line in lines {
            assert!(
                slots.iter().any(|slot| slot.is_task && slot.is_live && slot.line == line),
                "line {line}"
            );
        }
        set.shutdown().await;
        end(handle).await;
    });
}

#[test]
fn a_mutex_has_a_holder_and_waiters() {
    run(async {
        let mutex = Arc::new(Mutex::new(()));
        let [own, others] = [0; 2].map(|_| Arc::clone(&mutex));
        let holder = settled("mutex holder", async move {
            let _guard = own.lock().await;
            pending::<()>().await;
        })
        .await;
        let waits = line() + 2;
        let waiter = settled("mutex waiter", async move {
            let _guard = others.lock().await;
            pending::<()>().await;
        })
        .await;
        assert_eq!(entries("mutex holder"), [(address(&*mutex), HELD_HELD)]);
        let wait = Held { lock: address(&*mutex), state: HELD_WAITING, line: waits };
        assert_eq!(task("mutex waiter").held, [wait]);
        assert!(mutex.try_lock().is_err());
        end(holder).await;
        yield_now().await;
        let wakes = task("mutex waiter").wakes;
        assert_eq!((entries("mutex waiter"), wakes), (vec![(address(&*mutex), HELD_HELD)], 1));
        end(waiter).await;
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn a_task_that_has_used_up_its_budget_does_not_wait_for_a_lock() {
    run(async {
        let mutex = Mutex::new(());
        let handle = settled("budget", async move {
            loop {
                let _guard = mutex.lock().await;
            }
        })
        .await;
        assert_eq!(task("budget").turn, 2, "it has left its first poll");
        assert_eq!(entries("budget"), []);
        end(handle).await;
    });
}

#[test]
fn what_is_released_or_given_up_is_in_no_table() {
    run(async {
        let mutex = Arc::new(Mutex::new(()));
        let own = Arc::clone(&mutex);
        let handle = settled("released", async move {
            drop(own.lock().await);
            drop(own.try_lock());
            drop(Arc::clone(&own).lock_owned().await);
            yield_now().await;
            let mut wait = Box::pin(own.lock());
            assert!(poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await.is_pending());
            yield_now().await;
            drop(wait);
            pending::<()>().await;
        })
        .await;
        assert_eq!(entries("released"), []);
        let guard = mutex.lock().await;
        yield_now().await;
        assert_eq!(entries("released"), [(address(&*mutex), HELD_WAITING)]);
        yield_now().await;
        assert_eq!(entries("released"), []);
        drop(guard);
        end(handle).await;
    });
}

#[test]
fn an_owned_guard_that_goes_elsewhere_leaves_its_table_when_it_is_dropped() {
    run(async {
        let mutex = Arc::new(Mutex::new(()));
        let (gives, takes) = tokio::sync::oneshot::channel();
        let own = Arc::clone(&mutex);
        let handle = settled("gives a guard", async move {
            let guard = own.lock_owned().await;
            assert!(gives.send(guard).is_ok());
            pending::<()>().await;
        })
        .await;
        assert_eq!(entries("gives a guard"), [(address(&*mutex), HELD_HELD)]);
        drop(takes.await);
        assert_eq!(entries("gives a guard"), []);
        end(handle).await;
    });
}

#[test]
fn a_readers_writer_lock_has_readers_and_a_writer_that_becomes_one() {
    run(async {
        let lock = Arc::new(RwLock::new(1));
        let own = Arc::clone(&lock);
        let writer = settled("writer", async move {
            let guard = own.write().await;
            yield_now().await;
            let guard = RwLockWriteGuard::downgrade_map(guard, |value| value);
            yield_now().await;
            drop(guard);
            pending::<()>().await;
        })
        .await;
        let own = Arc::clone(&lock);
        let reader = settled("reader", async move {
            let _guard = own.read().await;
            pending::<()>().await;
        })
        .await;
        // Now the writer has become a reader, and the reader has been let in by that.
        assert_eq!(entries("writer"), [(address(&*lock), HELD_HELD)]);
        yield_now().await;
        assert_eq!(entries("reader"), [(address(&*lock), HELD_HELD)]);
        yield_now().await;
        assert_eq!(entries("writer"), []);
        end(writer).await;
        end(reader).await;
        assert!(lock.try_write().is_ok());
    });
}

#[test]
fn each_part_of_permits_has_a_holder() {
    run(async {
        let semaphore = Arc::new(Semaphore::new(3));
        let own = Arc::clone(&semaphore);
        let handle = settled("permits", async move {
            let mut permit = own.acquire_many(3).await.unwrap();
            yield_now().await;
            let part = permit.split(1).unwrap();
            yield_now().await;
            permit.merge(part);
            let whole = permit.split(3).unwrap();
            drop(permit);
            yield_now().await;
            whole.forget();
            let _none = own.acquire_many(0).await;
            yield_now().await;
            let _waits = own.acquire().await;
        })
        .await;
        let held = (address(&*semaphore), HELD_HELD);
        assert_eq!(entries("permits"), [held]);
        yield_now().await;
        assert_eq!(entries("permits"), [held; 2]);
        yield_now().await;
        assert_eq!(entries("permits"), [held]);
        yield_now().await;
        assert_eq!(entries("permits"), []);
        yield_now().await;
        assert_eq!(entries("permits"), [(address(&*semaphore), HELD_WAITING)]);
        end(handle).await;
    });
}

#[test]
fn a_handle_waits_for_the_number_of_its_task() {
    run(async {
        let awaited = Task::new().name("awaited").spawn(pending::<()>());
        let aborts = awaited.abort_handle();
        let handle = settled("awaits", async move {
            awaited.await.unwrap_err();
            pending::<()>().await;
        })
        .await;
        assert_eq!(entries("awaits"), [(u64::from(task("awaited").id), HELD_SEM_WAIT)]);
        aborts.abort();
        yield_now().await;
        yield_now().await;
        assert_eq!(entries("awaits"), []);
        end(handle).await;

        let (lets_go, goes) = std::sync::mpsc::channel();
        let call = Task::new().name("awaited call").spawn_blocking(move || goes.recv().unwrap());
        let handle = settled("awaits a call", async move { call.await.unwrap() }).await;
        assert_eq!(entries("awaits a call"), [(u64::from(task("awaited call").id), HELD_SEM_WAIT)]);
        lets_go.send(()).unwrap();
        handle.await.unwrap();
    });
}

#[test]
fn an_initialiser_has_a_task_and_waiters() {
    run(async {
        let cell = Arc::new(OnceCell::<u32>::new());
        let [own, others] = [0; 2].map(|_| Arc::clone(&cell));
        let initialises = settled("initialises", async move {
            own.get_or_init(pending::<u32>).await;
        })
        .await;
        let waits = settled("waits for it", async move {
            others.get_or_init(async || 7).await;
            pending::<()>().await;
        })
        .await;
        assert_eq!(entries("initialises"), [(address(&*cell), HELD_HELD)]);
        assert_eq!(entries("waits for it"), [(address(&*cell), HELD_WAITING)]);
        end(initialises).await;
        yield_now().await;
        assert_eq!((entries("waits for it"), cell.get()), (vec![], Some(&7)));
        end(waits).await;
    });
}

#[test]
fn waits_for_what_nobody_holds_are_at_its_address() {
    run(async {
        let notify = Arc::new(Notify::new());
        let own = Arc::clone(&notify);
        let waits = line() + 1;
        let handle = settled("notified", async move { own.notified().await }).await;
        let wait = Held { lock: address(&*notify), state: HELD_SEM_WAIT, line: waits };
        assert_eq!(task("notified").held, [wait]);
        notify.notify_one();
        handle.await.unwrap();

        let barrier = Arc::new(Barrier::new(2));
        let own = Arc::clone(&barrier);
        let handle = settled("at a barrier", async move { assert!(!own.wait().await.is_leader()) }).await;
        assert_eq!(entries("at a barrier"), [(address(&*barrier), HELD_SEM_WAIT)]);
        assert!(barrier.wait().await.is_leader());
        handle.await.unwrap();

        let once = Arc::new(SetOnce::new());
        let own = Arc::clone(&once);
        let handle = settled("for a value", async move { *own.wait().await }).await;
        assert_eq!(entries("for a value"), [(address(&*once), HELD_SEM_WAIT)]);
        once.set(()).unwrap();
        handle.await.unwrap();

        let mut set = JoinSet::new();
        set.spawn(pending::<()>());
        let mut set = Box::pin(set);
        let at = address(&*set);
        let handle = settled("joins", async move { drop(set.join_next().await) }).await;
        assert_eq!(entries("joins"), [(at, HELD_SEM_WAIT)]);
        end(handle).await;
    });
}

#[test]
fn a_wait_that_is_given_up_is_in_no_table() {
    run(async {
        let notify = Arc::new(Notify::new());
        let own = Arc::clone(&notify);
        let gives_up = settled("gives up", async move {
            tokio::select! {
                biased;
                () = own.notified() => panic!("nobody notifies"),
                () = yield_now() => {}
            }
            pending::<()>().await;
        })
        .await;
        assert_eq!(entries("gives up"), [(address(&*notify), HELD_SEM_WAIT)]);
        yield_now().await;
        assert_eq!(entries("gives up"), []);
        end(gives_up).await;
    });
}

/// What the tasks of a test wait for: the named channel.
#[track_caller]
fn assert_wait_at(channel: &str, names: &[&str]) {
    let at = Ring::read().named(channel).expect("the channel has a name");
    for name in names {
        assert_eq!(entries(name), [(at, HELD_SEM_WAIT)], "{name}");
    }
}

#[test]
fn both_ends_of_a_channel_wait_at_its_address() {
    run(async {
        let (sender, mut receiver) = mpsc::channel::<u8>(1);
        sender.set_name("mpsc");
        let [fills, closes] = [sender.clone(), sender.clone()];
        let sends = settled("sends", async move {
            fills.send(1).await.unwrap();
            fills.send(2).await.unwrap();
            drop(fills.reserve_owned().await.unwrap());
        })
        .await;
        let reserves = settled("reserves", async move { sender.reserve().await.unwrap().send(3) }).await;
        let closed =
            settled("waits for the end", async move { closes.downgrade().upgrade().unwrap().closed().await })
                .await;
        assert_wait_at("mpsc", &["sends", "reserves", "waits for the end"]);
        assert_eq!(receiver.recv().await, Some(1));
        yield_now().await;
        assert_eq!(entries("sends").len(), 1, "it waits again");
        assert_eq!((receiver.recv().await, receiver.recv().await), (Some(2), Some(3)));
        reserves.await.unwrap();
        sends.await.unwrap();
        let receives = settled("receives", async move { assert_eq!(receiver.recv().await, None) }).await;
        assert_wait_at("mpsc", &["receives", "waits for the end"]);
        end(receives).await;
        closed.await.unwrap();
        assert_eq!(Ring::read().named("mpsc"), None);

        let (mut sender, receiver) = oneshot::channel::<u8>();
        receiver.set_name("oneshot");
        let handle = settled("oneshot receives", async move { drop(receiver.await) }).await;
        assert_wait_at("oneshot", &["oneshot receives"]);
        let closed = settled("oneshot closed", async move { sender.closed().await }).await;
        assert_wait_at("oneshot", &["oneshot closed"]);
        end(handle).await;
        closed.await.unwrap();

        let (sender, mut receiver) = watch::channel(1);
        sender.set_name("watch");
        let handle = settled("watches", async move { receiver.changed().await.unwrap() }).await;
        assert_wait_at("watch", &["watches"]);
        sender.send(2).unwrap();
        handle.await.unwrap();

        let (sender, mut receiver) = broadcast::channel::<u8>(1);
        receiver.set_name("broadcast");
        let handle = settled("listens", async move { drop(receiver.recv().await) }).await;
        assert_wait_at("broadcast", &["listens"]);
        drop(sender);
        handle.await.unwrap();
    });
}

#[test]
fn a_thread_that_blocks_waits_too() {
    run(async {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.lock().await;
        let own = Arc::clone(&mutex);
        let thread = std::thread::spawn(move || {
            librip::set_thread_name("blocks");
            drop(own.blocking_lock());
        });
        let waits = || -> Vec<_> {
            let slots = Ring::read().slots();
            let thread =
                slots.into_iter().find(|slot| !slot.is_task && slot.is_live && slot.name == "blocks");
            let held = thread.map_or(Vec::new(), |thread| thread.held);
            held.iter().map(|held| (held.lock, held.state)).collect()
        };
        let expected = vec![(address(&*mutex), HELD_WAITING)];
        while waits() != expected {
            std::thread::yield_now();
        }
        drop(guard);
        thread.join().unwrap();
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn a_lock_loses_its_name_with_its_end() {
    run(async {
        let mutex = Box::new(Mutex::new(7));
        mutex.set_name("short-lived");
        drop(mutex.lock().await);
        assert_eq!(Ring::read().named("short-lived"), Some(address(&*mutex)));
        drop(mutex);
        assert_eq!(Ring::read().named("short-lived"), None);
    });
}
