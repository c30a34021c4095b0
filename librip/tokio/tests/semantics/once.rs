use std::sync::atomic::{AtomicU32, Ordering};

use librip_tokio::sync::{OnceCell, SetError, SetOnce};

use super::{Spawned, start};

#[test]
fn one_task_initialises_and_all_get_its_value() {
    start();
    let (cell, calls) = (OnceCell::new(), AtomicU32::new(0));
    let gate = tokio::sync::Notify::new();
    let initialise = || async {
        calls.fetch_add(1, Ordering::SeqCst);
        gate.notified().await;
        7
    };
    let mut first = Spawned::new(cell.get_or_init(initialise));
    let mut second = Spawned::new(cell.get_or_init(initialise));
    let mut third = Spawned::new(cell.get_or_init(initialise));
    first.waits();
    second.waits();
    third.waits();
    assert!(matches!(cell.set(8), Err(SetError::InitializingError(8))));
    gate.notify_one();
    assert_eq!(*first.ready(), 7);
    assert!(second.is_woken() && third.is_woken(), "all at once");
    assert_eq!((*third.ready(), *second.ready()), (7, 7));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert!(matches!(cell.set(8), Err(SetError::AlreadyInitializedError(8))));
}

#[test]
fn if_an_initialiser_fails_or_is_dropped_the_next_one_runs() {
    start();
    let cell = OnceCell::new();
    let gate = tokio::sync::Notify::new();
    let mut fails = Spawned::new(cell.get_or_try_init(|| async {
        gate.notified().await;
        Err("no")
    }));
    let mut dropped = Spawned::new(cell.get_or_init(std::future::pending::<u32>));
    let mut succeeds = Spawned::new(cell.get_or_init(|| async { 7 }));
    fails.waits();
    dropped.waits();
    succeeds.waits();
    gate.notify_one();
    assert_eq!(fails.ready(), Err("no"));
    assert!(dropped.is_woken() && !succeeds.is_woken());
    dropped.waits();
    assert!(!cell.initialized());
    drop(dropped);
    assert!(succeeds.is_woken());
    assert_eq!(*succeeds.ready(), 7);
}

#[test]
fn if_an_initialiser_panics_the_next_one_runs() {
    start();
    let cell = OnceCell::<u32>::new();
    let mut panics = Spawned::new(cell.get_or_init(|| async { std::panic::resume_unwind(Box::new(())) }));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panics.poll().is_ready()));
    assert!(caught.is_err());
    assert_eq!(*Spawned::new(cell.get_or_init(|| async { 7 })).ready(), 7);
}

#[test]
fn a_cell_is_set_taken_and_set_again() {
    start();
    let mut cell = OnceCell::new();
    cell.set(1).unwrap();
    assert_eq!((cell.get(), cell.clone().into_inner()), (Some(&1), Some(1)));
    assert_eq!(cell.take(), Some(1));
    assert_eq!(*Spawned::new(cell.get_or_init(|| async { 2 })).ready(), 2);
    *cell.get_mut().unwrap() = 3;
    assert_eq!(cell, OnceCell::const_new_with(3));
    assert_eq!(OnceCell::new_with(None::<u8>), OnceCell::default());
    assert_eq!(*Spawned::new(OnceCell::from(4).get_or_init(|| async { 5 })).ready(), 4);
}

#[test]
fn a_value_that_is_set_once_wakes_all_who_wait() {
    start();
    let once = SetOnce::new();
    let mut waiters = [Spawned::new(once.wait()), Spawned::new(once.wait())];
    waiters.iter_mut().for_each(Spawned::waits);
    once.set(7).unwrap();
    assert!(once.set(8).is_err());
    assert!(waiters.iter().all(Spawned::is_woken));
    assert_eq!(waiters.each_mut().map(|waiter| *waiter.ready()), [7, 7]);
    assert_eq!(once.get(), Some(&7));
}
