//! Futures that no recorded task polls: tokio's own `spawn` runs them, as servers do that spawn their requests
//! themselves.

use std::future::poll_fn;
use std::sync::Arc;

use librip_tokio::sync::{Mutex, RwLock, Semaphore};
use tokio::task::yield_now;

use crate::arrivals::{Arrivals, noting};

/// How many futures there are at once: more than the tables of two workers have room for.
const FUTURES: usize = 64;
const ROUNDS: usize = 100;

/// Many futures acquire locks in one order, hold them over awaits, and go on on whatever worker polls them next. All
/// end.
pub(crate) async fn healthy() {
    let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
    let (map, permits) = (Arc::new(RwLock::new(0)), Arc::new(Semaphore::new(FUTURES / 2)));
    let futures = (0..FUTURES).map(|number| {
        let (locks, map, permits) = (locks.clone(), map.clone(), permits.clone());
        tokio::spawn(async move {
            for round in number..number + ROUNDS {
                let _permit = permits.acquire().await.expect("nobody closes it");
                yield_now().await;
                if round % 7 == 0 {
                    *map.write().await += 1;
                }
                let read = map.read().await;
                yield_now().await;
                drop(read);
                let mut first = locks[0].lock().await;
                yield_now().await;
                let second = locks[1].lock().await;
                *first += 1;
                yield_now().await;
                drop(first);
                drop(second);
            }
        })
    });
    for future in futures.collect::<Vec<_>>() {
        future.await.expect("no round panics");
    }
}

/// The same futures, without an end.
pub(crate) async fn busy() {
    let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
    let map = Arc::new(RwLock::new(0));
    let arrivals = Arc::new(Arrivals::default());
    for number in 0..FUTURES {
        let (locks, map, arrivals) = (locks.clone(), map.clone(), arrivals.clone());
        tokio::spawn(async move {
            for round in number.. {
                let mut first = locks[0].lock().await;
                yield_now().await;
                *first += 1;
                let second = locks[1].lock().await;
                yield_now().await;
                drop(first);
                drop(second);
                let read = map.read().await;
                yield_now().await;
                drop(read);
                if round % 7 == 0 {
                    *map.write().await += 1;
                }
                if round == number + ROUNDS {
                    arrivals.arrive();
                }
            }
        });
    }
    arrivals.wait_beside_others(FUTURES).await;
}

/// Two futures acquire two locks in opposite orders and wait for one another for ever. One worker may poll both.
pub(crate) async fn opposite_orders() {
    let locks = Arc::new([Mutex::new(0), Mutex::new(0)]);
    locks[0].set_name("first");
    locks[1].set_name("second");
    let [holds, waits]: [Arc<Arrivals>; 2] = Default::default();
    for own in 0..2 {
        let (locks, holds, waits) = (locks.clone(), holds.clone(), waits.clone());
        tokio::spawn(async move {
            let _guard = locks[own].lock().await;
            holds.arrive();
            holds.wait_beside_others(2).await;
            drop(noting(locks[1 - own].lock(), &waits).await);
        });
    }
    waits.wait(2).await;
}

/// A future keeps a lock for ever, and a recorded task waits for that lock.
pub(crate) async fn keeps_what_a_task_needs() {
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("kept");
    let [holds, waits]: [Arc<Arrivals>; 2] = Default::default();
    let (kept, held) = (lock.clone(), holds.clone());
    tokio::spawn(async move {
        let _guard = kept.lock().await;
        held.arrive();
        poll_fn(|_| std::task::Poll::<()>::Pending).await;
    });
    holds.wait(1).await;
    let noted = waits.clone();
    librip_tokio::Task::new().name("needs it").spawn(async move {
        drop(noting(lock.lock(), &noted).await);
    });
    waits.wait(1).await;
}
