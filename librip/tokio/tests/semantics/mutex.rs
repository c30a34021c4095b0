use std::sync::Arc;
use std::time::Duration;

use librip_tokio::sync::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};

use super::{Spawned, on_one_thread, on_two_workers, start};

#[test]
fn waiters_get_the_mutex_in_the_order_in_which_they_came() {
    start();
    let mutex = Mutex::new(0);
    let guard = Spawned::new(mutex.lock()).ready();
    let mut first = Spawned::new(mutex.lock());
    let mut second = Spawned::new(mutex.lock());
    first.waits();
    second.waits();
    drop(guard);
    assert!(first.is_woken() && !second.is_woken());
    assert!(mutex.try_lock().is_err(), "it is handed over");
    second.waits();
    let guard = first.ready();
    drop(guard);
    assert!(second.is_woken());
    *second.ready() += 1;
    assert_eq!(*mutex.try_lock().unwrap(), 1);
}

#[test]
fn a_waiter_that_is_dropped_leaves_the_line() {
    start();
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut first = Spawned::new(mutex.lock());
    let mut second = Spawned::new(mutex.lock());
    first.waits();
    second.waits();
    drop(first);
    drop(guard);
    drop(second.ready());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn a_waiter_that_was_handed_the_mutex_and_is_dropped_hands_it_on() {
    start();
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let mut first = Spawned::new(mutex.lock());
    let mut second = Spawned::new(mutex.lock());
    first.waits();
    second.waits();
    drop(guard);
    assert!(first.is_woken());
    drop(first);
    assert!(second.is_woken());
    drop(second.ready());
}

#[test]
fn a_task_that_always_finds_its_mutex_free_lets_other_tasks_run() {
    start();
    on_one_thread(async {
        let mutex = Arc::new(Mutex::new(0));
        let locks = Arc::clone(&mutex);
        let task = librip_tokio::spawn(async move {
            for _ in 0..10_000 {
                *locks.lock().await += 1;
            }
        });
        tokio::task::yield_now().await;
        let first = *mutex.lock().await;
        tokio::task::yield_now().await;
        let second = *mutex.lock().await;
        assert!(0 < first && first < second && second < 10_000, "{first} and {second}");
        task.await.unwrap();
        assert_eq!(*mutex.lock().await, 10_000);
    });
}

#[test]
#[should_panic(expected = "polled after it was ready")]
fn a_future_that_was_ready_does_not_lock_again() {
    start();
    let mutex = Mutex::new(());
    let mut lock = std::pin::pin!(mutex.lock());
    let mut poll = || lock.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    assert!(poll().is_ready());
    let _ = poll();
}

#[test]
fn a_future_that_was_never_polled_is_in_no_line() {
    start();
    let mutex = Mutex::new(());
    let guard = mutex.try_lock().unwrap();
    let unpolled = mutex.lock();
    let mut waiter = Spawned::new(mutex.lock());
    waiter.waits();
    drop(guard);
    drop(waiter.ready());
    drop(unpolled);
}

#[test]
fn an_owned_guard_goes_to_another_task_and_unlocks_there() {
    on_two_workers(async {
        let mutex = Arc::new(Mutex::new(1));
        let guard = Arc::clone(&mutex).lock_owned().await;
        let task = librip_tokio::spawn(async move {
            let mut guard = guard;
            *guard += 1;
        });
        let guard = mutex.lock().await;
        assert_eq!(*guard, 2);
        task.await.unwrap();
        drop(guard);
        assert_eq!(Arc::strong_count(&mutex), 1);
    });
}

#[test]
fn tasks_on_two_workers_exclude_each_other() {
    let total = on_two_workers(async {
        let mutex = Arc::new(Mutex::new(0));
        let mut set = librip_tokio::task::JoinSet::new();
        for _ in 0..8 {
            let mutex = Arc::clone(&mutex);
            set.spawn(async move {
                for _ in 0..200 {
                    let mut guard = mutex.lock().await;
                    let before = *guard;
                    tokio::task::yield_now().await;
                    *guard = before + 1;
                }
            });
        }
        set.join_all().await;
        *mutex.lock().await
    });
    assert_eq!(total, 1600);
}

#[test]
fn a_guard_unlocks_if_its_task_panics_or_is_aborted() {
    on_one_thread(async {
        let mutex = Arc::new(Mutex::new(()));
        let own = Arc::clone(&mutex);
        let panics = librip_tokio::spawn(async move {
            let _guard = own.lock().await;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(panics.await.unwrap_err().is_panic());
        assert!(mutex.try_lock().is_ok());

        let own = Arc::clone(&mutex);
        let stays = librip_tokio::spawn(async move {
            let _guard = own.lock().await;
            std::future::pending::<()>().await;
        });
        tokio::task::yield_now().await;
        assert!(mutex.try_lock().is_err());
        stays.abort();
        assert!(stays.await.unwrap_err().is_cancelled());
        assert!(mutex.try_lock().is_ok());
    });
}

#[test]
fn a_timeout_gives_up_the_wait() {
    on_one_thread(async {
        let mutex = Mutex::new(());
        let guard = mutex.lock().await;
        assert!(tokio::time::timeout(Duration::from_secs(1), mutex.lock()).await.is_err());
        drop(guard);
        assert!(tokio::time::timeout(Duration::from_secs(1), mutex.lock()).await.is_ok());
    });
}

#[test]
fn guards_of_parts_hold_the_whole_mutex() {
    start();
    let mutex = Arc::new(Mutex::new((1, "one".to_owned())));
    let guard = mutex.try_lock().unwrap();
    assert!(std::ptr::eq(MutexGuard::mutex(&guard), &*mutex));
    let mut part = MutexGuard::map(guard, |pair| &mut pair.0);
    *part += 1;
    let guard = MappedMutexGuard::try_map(part, |_| None::<&mut u8>).expect_err("no part");
    assert!(mutex.try_lock().is_err(), "it is locked still");
    drop(guard);

    let guard = Arc::clone(&mutex).try_lock_owned().unwrap();
    assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
    let text = OwnedMutexGuard::map(guard, |pair| &mut pair.1);
    let mut bytes = OwnedMappedMutexGuard::map(text, |text| text.as_mut_str());
    bytes.make_ascii_uppercase();
    assert!(mutex.try_lock().is_err());
    drop(bytes);
    assert_eq!(*mutex.try_lock().unwrap(), (2, "ONE".to_owned()));
    assert_eq!(Arc::strong_count(&mutex), 1);
}

#[test]
fn a_mutex_is_unlocked_if_the_function_that_makes_a_part_panics() {
    start();
    let mutex = Mutex::new(1);
    let guard = mutex.try_lock().unwrap();
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(MutexGuard::map(guard, |_| -> &mut u8 { std::panic::resume_unwind(Box::new(())) }));
    }));
    assert!(panics.is_err());
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn the_last_owned_guard_drops_the_value() {
    start();
    let value = Arc::new(());
    let mutex = Arc::new(Mutex::new(Arc::clone(&value)));
    let guard = mutex.try_lock_owned().unwrap();
    assert_eq!(Arc::strong_count(&value), 2);
    drop(guard);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_mutex_may_have_a_value_without_a_size_and_says_what_it_is() {
    start();
    let mutex: Arc<Mutex<[u8]>> = Arc::new(Mutex::new([1, 2]));
    assert_eq!(format!("{mutex:?}"), "Mutex { data: [1, 2] }");
    let guard = mutex.try_lock().unwrap();
    assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked> }");
    assert_eq!(format!("{guard:?}"), "[1, 2]");
    drop(guard);
    assert_eq!(mutex.try_lock_owned().unwrap().len(), 2);
    assert_eq!(format!("{}", Mutex::from(7).try_lock().unwrap()), "7");
}

#[test]
fn the_error_of_a_locked_mutex_is_that_of_tokio() {
    start();
    let mutex = Mutex::<u8>::default();
    let _guard = mutex.try_lock();
    let of_tokio = tokio::sync::Mutex::new(());
    let _guard_of_tokio = of_tokio.try_lock();
    let error = mutex.try_lock().unwrap_err().to_string();
    assert_eq!(error, of_tokio.try_lock().unwrap_err().to_string());
}
