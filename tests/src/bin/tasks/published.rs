//! Bugs of async programs that others have published or that every textbook has, each as small as it gets. At the end
//! programs that look like them and go on.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use librip::sync::{Arc, PoisonError};
use librip_tokio::Task;
use librip_tokio::sync::{Barrier, Mutex, RwLock, Semaphore, oneshot};

use crate::arrivals::{Arrivals, Moves, noting};
use crate::locks::holds_and_blocks;

/// Polls two futures once, neither of which gets what it waits for.
async fn start_both<A: Future, B: Future>(first: std::pin::Pin<&mut A>, second: std::pin::Pin<&mut B>) {
    let (mut first, mut second) = (first, second);
    poll_fn(|cx| {
        assert!(first.as_mut().poll(cx).is_pending() && second.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Queues two futures for a lock that `held` keeps, and awaits the second one when the lock is free.
async fn await_the_second<F: Future>(held: impl Sized, first: F, second: F, noted: &Arrivals) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    start_both(first.as_mut(), second.as_mut()).await;
    drop(held);
    drop(noting(second, noted).await);
    drop(first.await);
}

/// tokio#6450: a task queues two futures for one lock, and awaits the second one.
pub(crate) async fn two_writes() {
    let (lock, arrivals) = (Arc::new(RwLock::new(0)), Arc::new(Arrivals::default()));
    lock.set_name("the lock");
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(async move {
        await_the_second(lock.read().await, lock.write(), lock.write(), &noted).await;
    });
    // It is woken once, because the first future is next, and polls the second one again.
    arrivals.wait(2).await;
}

/// async-lock#91 with a readers-writer lock.
pub(crate) async fn two_writes_of_async_lock() {
    let lock = Arc::new(librip_async_lock::RwLock::new(0));
    lock.set_name("the lock");
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(async move {
        await_the_second(lock.read().await, lock.write(), lock.write(), &noted).await;
    });
    arrivals.wait(1).await;
}

/// async-lock#91 with a mutex.
pub(crate) async fn two_locks_of_async_lock() {
    let lock = Arc::new(librip_async_lock::Mutex::new(0));
    lock.set_name("the lock");
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(async move {
        await_the_second(lock.lock().await, lock.lock(), lock.lock(), &noted).await;
    });
    arrivals.wait(1).await;
}

/// futures-rs#2133: a task locks a mutex that it has locked.
pub(crate) async fn relocked_mutex_of_futures() {
    let lock = Arc::new(librip_async_lock::futures::Mutex::new(0));
    lock.set_name("the lock");
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(async move {
        let _guard = lock.lock().await;
        *noting(lock.lock(), &noted).await += 1;
    });
    arrivals.wait(1).await;
}

/// The same with guards that could be sent to another task.
pub(crate) async fn relocked_owned_mutex_of_futures() {
    let lock = Arc::new(librip_async_lock::futures::Mutex::new(0));
    lock.set_name("the lock");
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(async move {
        let _guard = lock.clone().lock_owned().await;
        *noting(lock.lock_owned(), &noted).await += 1;
    });
    arrivals.wait(1).await;
}

/// futures-rs#2133 with two tasks, which lock two mutexes in opposite orders.
pub(crate) async fn opposite_mutexes_of_futures() {
    let locks = [0; 2].map(|_| Arc::new(librip_async_lock::futures::Mutex::new(0)));
    locks[0].set_name("savings");
    locks[1].set_name("current account");
    let (halfway, arrivals) = (Arc::new(Barrier::new(2)), Arc::new(Arrivals::default()));
    for (name, first) in [("saver", 0), ("spender", 1)] {
        let (first, second) = (locks[first].clone(), locks[1 - first].clone());
        let (halfway, arrivals) = (halfway.clone(), arrivals.clone());
        Task::new().name(name).spawn(async move {
            let _first = first.lock().await;
            halfway.wait().await;
            let _second = noting(second.lock(), &arrivals).await;
        });
    }
    arrivals.wait(2).await;
}

/// tokio#4588: one future of a task holds a lock of threads over an await, and another one blocks the thread for it.
pub(crate) async fn thread_lock_in_two_futures() {
    let lock = Arc::new(librip::sync::Mutex::new(0));
    lock.set_name("a lock of threads");
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(Moves(async move {
        let holds = async {
            let _guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
            tokio::time::sleep(Duration::from_millis(1)).await;
        };
        let blocks = async {
            noted.arrive();
            *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        };
        tokio::join!(biased; holds, blocks);
    }));
    arrivals.wait(1).await;
}

/// futures-rs#2387: a stream keeps futures that have permits, and what is done with its results needs a permit.
pub(crate) async fn buffered_permits() {
    let permits = Arc::new(Semaphore::new(2));
    permits.set_name("permits");
    let (arrivals, go_on) = (Arc::new(Arrivals::default()), Arc::new(tokio::sync::Notify::new()));
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(async move {
        let work = |number: u32| {
            let (permits, go_on) = (permits.clone(), go_on.clone());
            async move {
                if number > 0 {
                    let _permit = permits.acquire().await.unwrap();
                    go_on.notified().await;
                }
                number
            }
        };
        let mut running: FuturesUnordered<_> = [1, 2, 0].into_iter().map(work).collect();
        while let Some(number) = running.next().await {
            let _permit = noting(permits.acquire(), &noted).await.unwrap();
            assert_eq!(number, 0);
        }
    });
    arrivals.wait(1).await;
}

/// Dijkstra's philosophers: each task has one fork and waits for that of its neighbour.
pub(crate) async fn philosophers() {
    const SEATS: usize = 5;
    let forks: Arc<[Mutex<()>; SEATS]> = Arc::new(std::array::from_fn(|_| Mutex::new(())));
    let (all, arrivals) = (Arc::new(Barrier::new(SEATS)), Arc::new(Arrivals::default()));
    for seat in 0..SEATS {
        let (forks, all, arrivals) = (forks.clone(), all.clone(), arrivals.clone());
        Task::new().name("philosopher").spawn(async move {
            let _left = forks[seat].lock().await;
            all.wait().await;
            let _right = noting(forks[(seat + 1) % SEATS].lock(), &arrivals).await;
        });
    }
    arrivals.wait(SEATS).await;
}

/// A task reads twice, and between the two a writer has queued.
pub(crate) async fn queued_writer() {
    let lock = Arc::new(RwLock::new(0));
    lock.set_name("the lock");
    let [reading, waiting]: [Arc<Arrivals>; 2] = Default::default();
    let (wanted, read, noted) = (lock.clone(), reading.clone(), waiting.clone());
    Task::new().name("writer").spawn(async move {
        read.wait(1).await;
        *noting(wanted.write(), &noted).await += 1;
    });
    let again = Arc::new(Arrivals::default());
    let noted = again.clone();
    Task::new().name("reader").spawn(async move {
        let outer = lock.read().await;
        reading.arrive();
        waiting.wait(1).await;
        let inner = noting(lock.read(), &noted).await;
        assert_eq!(*outer, *inner);
    });
    again.wait(1).await;
}

/// A runtime of one thread: a task holds a lock of threads over an await, and another one blocks the thread for it.
pub(crate) async fn lock_of_a_current_thread() {
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = librip_tokio::watch(&mut builder).build().expect("a runtime needs no thread");
        runtime.block_on(async {
            let (holds, blocks) = holds_and_blocks(noted);
            Task::new().name("holder").spawn(Moves(holds));
            Task::new().name("blocks").spawn(blocks);
            std::future::pending::<()>().await;
        });
    });
    arrivals.wait_beside_others(2).await;
}

/// Two tasks wait for the ends of one another.
pub(crate) async fn joins() {
    let arrivals = Arc::new(Arrivals::default());
    let (to_first, handle) = oneshot::channel::<librip_tokio::task::JoinHandle<()>>();
    let noted = arrivals.clone();
    let first = Task::new().name("first").spawn(async move {
        let second = handle.await.unwrap();
        let _ = noting(second, &noted).await;
    });
    let noted = arrivals.clone();
    let second = Task::new().name("second").spawn(async move {
        let _ = noting(first, &noted).await;
    });
    to_first.send(second).unwrap();
    arrivals.wait(2).await;
}

/// The same. Somebody else can wake the tasks too, until both have been polled for the last time.
pub(crate) async fn joins_after_others_could_wake() {
    let reported = Arc::new(Arrivals::default());
    let noted = reported.clone();
    thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        librip_tokio::watch(&mut builder).build().unwrap().block_on(async {
            let (arrivals, kept) = (Arc::new(Arrivals::default()), Arc::<KeptWakers>::default());
            let (to_first, handle) = oneshot::channel::<librip_tokio::task::JoinHandle<()>>();
            let (arrives, keeps) = (arrivals.clone(), kept.clone());
            let first = Task::new().name("first").spawn(async move {
                let second = handle.await.unwrap();
                keep_wakers(&keeps).await;
                let _ = noting(second, &arrives).await;
            });
            let (arrives, keeps) = (arrivals.clone(), kept.clone());
            let second = Task::new().name("second").spawn(async move {
                keep_wakers(&keeps).await;
                let _ = noting(first, &arrives).await;
            });
            to_first.send(second).unwrap();
            // There is one thread: when it polls this future again, the polls of both tasks have returned.
            arrivals.wait(2).await;
            kept.lock().unwrap().clear();
            noted.arrive();
            pending::<()>().await;
        });
    });
    reported.wait(1).await;
}

type KeptWakers = std::sync::Mutex<Vec<Waker>>;

/// Clones the waker of the task that awaits this, several times.
async fn keep_wakers(kept: &KeptWakers) {
    poll_fn(|cx| {
        kept.lock().unwrap().extend([0; 3].map(|_| cx.waker().clone()));
        Poll::Ready(())
    })
    .await;
}

/// A call on a pool of one thread waits for another call on it.
pub(crate) async fn pool_of_one() {
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = librip_tokio::watch(&mut builder).max_blocking_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        runtime.block_on(async {
            let outer = Task::new().name("outer").spawn_blocking(move || {
                let inner = Task::new().name("inner").spawn_blocking_on(|| {}, &handle);
                noted.arrive();
                handle.block_on(inner).unwrap();
            });
            outer.await.unwrap();
        });
    });
    arrivals.wait(1).await;
}

/// Permits that are forgotten never come back.
pub(crate) async fn forgotten_permits() {
    let (permits, arrivals) = (Arc::new(Semaphore::new(2)), Arc::new(Arrivals::default()));
    permits.set_name("permits");
    let noted = arrivals.clone();
    Task::new().name("stuck").spawn(async move {
        for _ in 0..3 {
            noting(permits.acquire(), &noted).await.unwrap().forget();
        }
    });
    arrivals.wait(1).await;
}

/// A task that gives way for ever, and works for this long in each poll.
pub(crate) async fn yields(work: Duration) {
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("yields").spawn(async move {
        noted.arrive();
        loop {
            let began = Instant::now();
            while began.elapsed() < work {
                std::hint::spin_loop();
            }
            tokio::task::yield_now().await;
        }
    });
    arrivals.wait(1).await;
}

/// What looks like the bugs above and goes on: both futures are polled, permits come back, forks are taken in one
/// order, readers pass no writer, and calls wait for calls that have threads.
pub(crate) async fn healthy_twins() {
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("two writes").spawn(async move {
        let lock = RwLock::new(0);
        loop {
            let held = lock.read().await;
            let (mut first, mut second) = (pin!(lock.write()), pin!(lock.write()));
            start_both(first.as_mut(), second.as_mut()).await;
            drop(held);
            drop(first.await);
            drop(second.await);
            noted.arrive();
            tokio::task::yield_now().await;
        }
    });
    let noted = arrivals.clone();
    Task::new().name("stream").spawn(async move {
        let permits = Semaphore::new(2);
        loop {
            let work = |number: u64| {
                let permits = &permits;
                async move {
                    let _permit = permits.acquire().await.unwrap();
                    tokio::time::sleep(Duration::from_micros(100 * number)).await;
                }
            };
            let mut running: FuturesUnordered<_> = (0..3).map(work).collect();
            while running.next().await.is_some() {}
            noted.arrive();
        }
    });
    let forks: Arc<[Mutex<()>; 3]> = Arc::new(std::array::from_fn(|_| Mutex::new(())));
    for seat in 0..3 {
        let (forks, noted) = (forks.clone(), arrivals.clone());
        Task::new().name("philosopher").spawn(async move {
            let (low, high) = (seat.min((seat + 1) % 3), seat.max((seat + 1) % 3));
            loop {
                let _first = forks[low].lock().await;
                let _second = forks[high].lock().await;
                tokio::task::yield_now().await;
                noted.arrive();
            }
        });
    }
    let noted = arrivals.clone();
    Task::new().name("joins").spawn(async move {
        loop {
            let inner = librip_tokio::spawn_blocking(|| ());
            Task::new().name("joined").spawn(async move { inner.await.unwrap() }).await.unwrap();
            noted.arrive();
        }
    });
    arrivals.wait(1000).await;
}
