//! `librip::raw::Condvar` behaves as `parking_lot`'s condition variable does.

#![cfg(feature = "lock_api")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use librip::raw::{Condvar, Recorded};

type Mutex<T> = lock_api::Mutex<Recorded<parking_lot::RawMutex>, T>;

#[test]
fn a_notification_returns_how_many_threads_it_woke() {
    let (mutex, condition) = (Mutex::new(0), Condvar::new());
    assert!(!condition.notify_one());
    assert_eq!(condition.notify_all(), 0);
    std::thread::scope(|scope| {
        let (says, hears) = mpsc::channel();
        for _ in 0..3 {
            let (says, mutex, condition) = (says.clone(), &mutex, &condition);
            scope.spawn(move || {
                let mut goes = mutex.lock();
                says.send(()).unwrap();
                condition.wait_while(&mut goes, |goes| *goes == 0);
                *goes -= 1;
            });
        }
        for _ in 0..3 {
            hears.recv().unwrap();
        }
        // Whoever has said so waits, because it had the mutex.
        let mut goes = mutex.lock();
        *goes = 3;
        assert!(condition.notify_one());
        assert_eq!(condition.notify_all(), 2);
        assert_eq!(condition.notify_all(), 0, "all were notified");
    });
    assert_eq!(*mutex.lock(), 0);
    assert!(!condition.notify_one());
}

#[test]
fn one_condition_with_two_mutexes_panics() {
    let (first, second, condition) = (Mutex::new(false), Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        let (says, hears) = mpsc::channel();
        let (first, condition) = (&first, &condition);
        scope.spawn(move || {
            let mut goes = first.lock();
            says.send(()).unwrap();
            condition.wait_while(&mut goes, |goes| !*goes);
        });
        hears.recv().unwrap();
        let mut goes = first.lock();
        let mut other = second.lock();
        assert!(catch_unwind(AssertUnwindSafe(|| condition.wait(&mut other))).is_err());
        *goes = true;
        condition.notify_all();
    });
    // Nobody waits any more, so another mutex may be used.
    assert!(condition.wait_for(&mut second.lock(), Duration::from_millis(1)).timed_out());
    assert!(condition.wait_for(&mut first.lock(), Duration::from_millis(1)).timed_out());
}

#[test]
fn waits_while_a_condition_holds_end_with_it_or_with_their_time() {
    let (mutex, condition) = (Mutex::new(1), Condvar::new());
    let mut guard = mutex.lock();
    assert!(!condition.wait_while_for(&mut guard, |value| *value == 0, Duration::ZERO).timed_out());
    assert!(condition.wait_while_for(&mut guard, |value| *value == 1, Duration::from_millis(2)).timed_out());
    assert!(condition.wait_while_until(&mut guard, |value| *value == 1, Instant::now()).timed_out());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            *mutex.lock() = 2;
            condition.notify_one();
        });
        assert!(!condition.wait_while_for(&mut guard, |value| *value == 1, Duration::MAX).timed_out());
        assert_eq!(*guard, 2);
        drop(guard);
    });
}
