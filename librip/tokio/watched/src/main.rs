//! Small async programs that spawn with tokio alone. Only the runtime's builder and the locks know of librip.
//!
//! ```text
//! watched NAME
//! ```
//!
//! Each reaches its state, prints `ready`, and stays there until it is killed. It judges nothing.

#[cfg(not(tokio_unstable))]
compile_error!("build this with RUSTFLAGS=\"--cfg tokio_unstable\", or run cargo in librip/tokio/watched");

use std::future::{pending, poll_fn};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;
use std::time::Duration;

use librip_tokio::sync::Mutex;
use tokio::sync::Barrier;
use tokio::task::yield_now;

fn main() {
    librip::init().unwrap();
    let scenario = std::env::args().nth(1).unwrap_or_default();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let workers = if scenario == "yields" { 4 } else { 2 };
    let runtime = librip_tokio::watch(builder.worker_threads(workers).enable_time()).build().unwrap();
    runtime.block_on(async {
        match scenario.as_str() {
            "opposite-orders" => opposite_orders().await,
            "same-order" => same_order().await,
            "busy-workers" => busy_workers().await,
            "yields" => yields().await,
            other => panic!("there is no scenario {other:?}"),
        }
        println!("ready");
        std::io::stdout().flush().unwrap();
        pending::<()>().await;
    });
}

fn two_locks() -> [Arc<Mutex<u32>>; 2] {
    let locks = [Arc::default(), Arc::default()];
    for (lock, name) in locks.iter().zip(["savings", "current account"]) {
        Mutex::set_name(lock, name);
    }
    locks
}

/// A lock that says when its future has begun to wait.
async fn lock_noting<'a>(
    lock: &'a Mutex<u32>,
    waiting: &AtomicUsize,
) -> librip_tokio::sync::MutexGuard<'a, u32> {
    let mut future = std::pin::pin!(lock.lock());
    let mut is_noted = false;
    poll_fn(|cx| {
        let poll = future.as_mut().poll(cx);
        if poll.is_pending() && !is_noted {
            is_noted = true;
            waiting.fetch_add(1, SeqCst);
        }
        poll
    })
    .await
}

async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Two tasks acquire two locks in opposite orders.
async fn opposite_orders() {
    let [savings, current] = two_locks();
    let (halfway, waiting) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
    let work = |first: &Arc<Mutex<u32>>, second: &Arc<Mutex<u32>>| {
        let (first, second) = (Arc::clone(first), Arc::clone(second));
        let (halfway, waiting) = (Arc::clone(&halfway), Arc::clone(&waiting));
        async move {
            let _first = first.lock().await;
            halfway.wait().await;
            let _second = lock_noting(&second, &waiting).await;
        }
    };
    tokio::spawn(work(&savings, &current)); // the saver
    tokio::spawn(work(&current, &savings)); // the spender
    until(|| waiting.load(SeqCst) == 2).await;
}

/// The same in one order, again and again, by tasks that go from worker to worker.
async fn same_order() {
    let [savings, current] = two_locks();
    let rounds = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        let (savings, current, rounds) = (Arc::clone(&savings), Arc::clone(&current), Arc::clone(&rounds));
        tokio::spawn(async move {
            loop {
                for _ in 0..20 {
                    let _first = savings.lock().await;
                    yield_now().await;
                    let _second = current.lock().await;
                    yield_now().await;
                    rounds.fetch_add(1, SeqCst);
                }
                // On a busy machine, a program that never pauses is kept from running for long, and its locks are held.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    until(|| rounds.load(SeqCst) > 1000).await;
}

/// Both workers are in polls that do not return. A third task is never polled.
async fn busy_workers() {
    let busy = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let busy = Arc::clone(&busy);
        tokio::spawn(poll_fn(move |_| -> Poll<()> {
            busy.fetch_add(1, SeqCst);
            loop {
                std::thread::park();
            }
        }));
    }
    while busy.load(SeqCst) < 2 {
        std::thread::yield_now();
    }
    tokio::spawn(async {}); // the third
}

/// Tasks that acquire a lock of their own and give others a turn while they hold it, as fast as they can.
async fn yields() {
    let rounds = Arc::new(AtomicUsize::new(0));
    for _ in 0..16 {
        let rounds = Arc::clone(&rounds);
        tokio::spawn(async move {
            let own = Mutex::new(0);
            loop {
                let mut held = own.lock().await;
                yield_now().await;
                *held += 1;
                drop(held);
                rounds.fetch_add(1, SeqCst);
            }
        });
    }
    until(|| rounds.load(SeqCst) > 1000).await;
}
