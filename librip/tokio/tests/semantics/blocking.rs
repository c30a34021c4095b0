use std::sync::Arc;
use std::thread;

use librip_tokio::sync::{Mutex, RwLock, Semaphore, broadcast, mpsc, oneshot};

use super::{on_one_thread, start};

#[test]
fn a_thread_waits_for_a_lock_that_a_thread_holds() {
    start();
    let mutex = Arc::new(Mutex::new(0));
    let guard = mutex.blocking_lock();
    let own = Arc::clone(&mutex);
    let (says, hears) = std::sync::mpsc::channel();
    let other = thread::spawn(move || {
        says.send(()).unwrap();
        *own.blocking_lock_owned() += 1;
    });
    hears.recv().unwrap();
    drop(guard);
    other.join().unwrap();
    assert_eq!(*mutex.blocking_lock(), 1);
    let lock = RwLock::new(1);
    *lock.blocking_write() = 2;
    assert_eq!(*lock.blocking_read(), 2);
    let semaphore = Arc::new(Semaphore::new(2));
    let _permits = (semaphore.blocking_acquire(), Arc::clone(&semaphore).blocking_acquire_many_owned(1));
    assert_eq!(semaphore.available_permits(), 0);
}

#[test]
fn threads_exchange_messages() {
    start();
    let (sender, mut receiver) = mpsc::channel(1);
    let sends = thread::spawn(move || (0..100).for_each(|number| sender.blocking_send(number).unwrap()));
    let mut sum = 0;
    while let Some(number) = receiver.blocking_recv() {
        sum += number;
    }
    sends.join().unwrap();
    assert_eq!(sum, (0..100).sum());
    let (sender, receiver) = oneshot::channel();
    let sends = thread::spawn(move || sender.send(7));
    assert_eq!(receiver.blocking_recv(), Ok(7));
    sends.join().unwrap().unwrap();
    let (sender, mut receiver) = broadcast::channel(4);
    let sends = thread::spawn(move || sender.send(7));
    assert_eq!(receiver.blocking_recv(), Ok(7));
    sends.join().unwrap().unwrap();
}

#[test]
fn a_thread_that_polls_tasks_does_not_block_even_if_the_lock_is_free() {
    on_one_thread(async {
        let task = librip_tokio::spawn(async { drop(Mutex::new(()).blocking_lock()) });
        let panic = task.await.unwrap_err().into_panic();
        let of_tokio = librip_tokio::spawn(async { drop(tokio::sync::Mutex::new(()).blocking_lock()) });
        let panic_of_tokio = of_tokio.await.unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref::<String>(), panic_of_tokio.downcast_ref::<String>());
        assert!(panic.is::<String>());
    });
}

#[test]
fn a_blocking_call_may_wait_for_a_lock_of_tasks() {
    on_one_thread(async {
        let mutex = Arc::new(Mutex::new(0));
        let guard = mutex.lock().await;
        let own = Arc::clone(&mutex);
        let call = librip_tokio::spawn_blocking(move || *own.blocking_lock() += 1);
        drop(guard);
        call.await.unwrap();
        assert_eq!(*mutex.lock().await, 1);
    });
}
