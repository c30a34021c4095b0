//! Many tasks, workers that are busy, and a program in which all is well.

use std::future::poll_fn;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use librip::sync::Arc;
use librip_tokio::Task;
use librip_tokio::sync::{Mutex, RwLock};

use crate::arrivals::{Arrivals, noting};
use crate::locks::lock_briefly;

/// A number of tasks that the environment says.
fn number(variable: &str) -> usize {
    let text = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} says how many tasks"));
    text.parse().expect("a number of tasks")
}

/// Both workers are in polls that do not return, and three tasks wait for one.
pub(crate) async fn busy_workers() {
    let arrivals = Arc::new(Arrivals::default());
    for _ in 0..2 {
        let arrivals = arrivals.clone();
        Task::new().name("blocks").spawn(async move {
            arrivals.arrive();
            thread::sleep(Duration::MAX);
        });
    }
    arrivals.wait(2).await;
    for _ in 0..3 {
        Task::new().name("victim").spawn(async {});
    }
}

/// One of two workers is in a poll that does not return.
pub(crate) async fn long_poll() {
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    Task::new().name("resizes").spawn(async move {
        librip::rip_snap!("resizes");
        noted.arrive();
        thread::sleep(Duration::MAX);
    });
    arrivals.wait(1).await;
}

/// The same after the workers have slept for a second, and for much longer than they were awake, however slow the
/// machine is.
pub(crate) async fn rare_poll() {
    let asleep = crate::BEGUN.elapsed() * 16;
    tokio::time::sleep(asleep.max(Duration::from_millis(1200))).await;
    long_poll().await;
}

/// A task is spawned onto a runtime of one thread that nobody runs.
pub(crate) async fn undriven() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime needs no thread");
    Task::new().name("orphan").spawn_on(async {}, runtime.handle());
    // A runtime may not be dropped by a task.
    std::mem::forget(runtime);
}

/// Tasks that look like trouble and go on: they share locks, poll several futures that want one lock, and give up
/// waits.
pub(crate) async fn healthy() {
    let locks: Arc<[Mutex<i32>; 3]> = Arc::new(std::array::from_fn(|_| Mutex::new(0)));
    for number in 0..40 {
        let locks = locks.clone();
        Task::new().name("worker").spawn(async move {
            loop {
                let first = &locks[number % 3];
                tokio::join!(lock_briefly(first), lock_briefly(first));
                let dropped = tokio::time::timeout(Duration::from_micros(50), lock_briefly(&locks[2]));
                let _ = dropped.await;
                let _guard = locks[0].lock().await;
                tokio::task::yield_now().await;
                lock_briefly(&locks[1]).await;
            }
        });
    }
    for _ in 0..40 {
        Task::new().name("idle").spawn(std::future::pending::<()>());
    }
    while *locks[1].lock().await < 100 {
        tokio::task::yield_now().await;
    }
}

/// How often each request of `healthy_branches` has used the locks when it is ready.
const ROUNDS: usize = 300;

/// Requests each of which uses locks in several futures at once: those of a stream and of a `join!`. One more task
/// writes to both locks, one inside the other. Nobody can get stuck, and all go on for ever.
pub(crate) async fn healthy_branches() {
    let (stock, cache) = (Arc::new(Mutex::new(0)), Arc::new(RwLock::new(0)));
    stock.set_name("stock");
    cache.set_name("cache");
    let arrivals = Arc::new(Arrivals::default());
    for _ in 0..REQUESTS {
        let (stock, cache, arrivals) = (stock.clone(), cache.clone(), arrivals.clone());
        Task::new().name("request").spawn(async move {
            for round in 0.. {
                let mut several: FuturesUnordered<_> = (0..4).map(|_| reads(&cache)).collect();
                while several.next().await.is_some() {}
                let mut several: FuturesUnordered<_> = (0..4).map(|_| counts(&stock)).collect();
                while several.next().await.is_some() {}
                tokio::join!(counts(&stock), reads(&cache));
                if round == ROUNDS {
                    arrivals.arrive();
                }
            }
        });
    }
    Task::new().name("sweep").spawn(async move {
        loop {
            let mut cached = cache.write().await;
            *cached = *stock.lock().await;
            drop(cached);
            tokio::task::yield_now().await;
        }
    });
    arrivals.wait_beside_others(REQUESTS).await;
}

/// The requests of `healthy_branches`.
const REQUESTS: usize = 6;

async fn reads(cache: &RwLock<u64>) -> u64 {
    let cached = cache.read().await;
    tokio::task::yield_now().await;
    *cached
}

async fn counts(stock: &Mutex<u64>) {
    let mut stock = stock.lock().await;
    tokio::task::yield_now().await;
    *stock += 1;
}

/// Three tasks that live, one of which holds a lock, and many that have ended since they began.
pub(crate) async fn many_short() {
    let (lock, arrivals) = (Arc::new(Mutex::new(0)), Arc::new(Arrivals::default()));
    lock.set_name("kept");
    let (kept, noted) = (lock.clone(), arrivals.clone());
    Task::new().name("keeper").spawn(async move {
        let _guard = kept.lock().await;
        noting(std::future::pending::<()>(), &noted).await;
    });
    arrivals.wait(1).await;
    for _ in 0..2 {
        let (lock, arrivals) = (lock.clone(), arrivals.clone());
        Task::new().name("waiter").spawn(async move { noting(lock_briefly(&lock), &arrivals).await });
    }
    arrivals.wait(3).await;
    for _ in 0..number("TASKS_SHORT") / 100 {
        let batch: Vec<_> = (0..100).map(|_| librip_tokio::spawn(tokio::task::yield_now())).collect();
        for task in batch {
            task.await.expect("no task panics");
        }
    }
}

/// Living tasks, `TASKS_CROWD` of them.
pub(crate) async fn crowd() {
    let (arrivals, tasks) = (Arc::new(Arrivals::default()), number("TASKS_CROWD"));
    for _ in 0..tasks {
        let arrivals = arrivals.clone();
        Task::new().name("one of many").spawn(async move {
            noting(std::future::pending::<()>(), &arrivals).await;
        });
    }
    arrivals.wait(tasks).await;
}

/// Tasks with eight named futures, with nine, and with two that have come and gone besides eight.
pub(crate) async fn many_awaits() {
    for (name, stay, go) in [("eight", 8, 0), ("nine", 9, 0), ("eight again", 8, 2)] {
        // One for each task: a poll may come back several times.
        let arrivals = Arc::new(Arrivals::default());
        let noted = arrivals.clone();
        Task::new().name(name).spawn(async move {
            let futures = |count| (0..count).map(|_| librip::task::at(std::future::pending::<()>()));
            let mut stay: FuturesUnordered<_> = futures(stay).collect();
            let mut go: FuturesUnordered<_> = futures(go).collect();
            poll_fn(|cx| {
                let _ = (stay.poll_next_unpin(cx), go.poll_next_unpin(cx));
                Poll::Ready(())
            })
            .await;
            drop(go);
            noting(stay.next(), &noted).await
        });
        arrivals.wait(1).await;
    }
}
