//! Tasks of tokio that hold and await its locks, in a program that knows nothing of librip.
//!
//! ```text
//! awaits SCENARIO [kept | given | busy]
//! ```
//!
//! Two tasks each take a mutex, in one of several ways, and await the other's. If they have kept theirs, they wait for
//! one another. If they have given it back, which each way does in its own words, the future of `main` holds both.
//! `nested` has three functions that await one another, and a message that nobody sends; `permits` a task that keeps
//! the permit that three others await; `boxed` one that awaits a `dyn Future`. In `pool`, two tasks have the two
//! objects of a pool, and each wants one more. With `given`, they sleep instead. With `busy`, a third one gives both
//! back every 700 ms.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::{self, Metrics, RecycleResult};
use tokio::runtime::Builder;
use tokio::sync::{Barrier, Mutex, MutexGuard, OwnedMutexGuard, Semaphore, oneshot};

type Account = Arc<Mutex<u64>>;

/// When both have taken theirs, and when both go on.
struct Meeting {
    taken: Barrier,
    go: Barrier,
}

/// Meets the others, and awaits the other mutex.
macro_rules! meet {
    ($meeting:expr, $other:expr) => {{
        $meeting.taken.wait().await;
        $meeting.go.wait().await;
        let _other = $other.lock().await;
    }};
}

async fn plain(own: Account, other: Account, meeting: Arc<Meeting>, gives: bool) {
    let mut guard = own.lock().await;
    *guard += 1;
    if gives {
        drop(guard);
    }
    meeting.taken.wait().await;
    meeting.go.wait().await;
    let _other = other.lock().await; // the other one
}

async fn at_once(own: Account, other: Account, meeting: Arc<Meeting>, gives: bool) {
    let mut guard = own.lock().await;
    *guard += 1;
    drop(guard);
    if gives {
        meet!(meeting, other)
    } else {
        let _guard = own.lock().await;
        meet!(meeting, other)
    }
}

async fn scrutinee(own: Account, other: Account, meeting: Arc<Meeting>, gives: bool) {
    if gives {
        match *own.lock().await {
            7 => return,
            _ => {}
        }
        meet!(meeting, other)
    } else {
        match *own.lock().await {
            7 => {}
            _ => meet!(meeting, other),
        }
    }
}

async fn with_guard(mut guard: OwnedMutexGuard<u64>, other: Account, meeting: Arc<Meeting>, gives: bool) {
    *guard += 1;
    if gives {
        drop(guard);
    }
    meet!(meeting, other)
}

async fn passed(own: Account, other: Account, meeting: Arc<Meeting>, gives: bool) {
    let mut guard = own.lock_owned().await;
    *guard += 1;
    with_guard(guard, other, meeting, gives).await
}

async fn looped(own: Account, other: Account, meeting: Arc<Meeting>, gives: bool) {
    let mut guard;
    loop {
        guard = own.lock().await;
        *guard += 1;
        if *guard > 2 {
            break;
        }
        drop(guard);
    }
    if gives {
        drop(guard);
    }
    meet!(meeting, other)
}

async fn mapped(own: Account, other: Account, meeting: Arc<Meeting>, gives: bool) {
    let mut guard = MutexGuard::map(own.lock().await, |value| value);
    *guard += 1;
    if gives {
        drop(guard);
    }
    meet!(meeting, other)
}

async fn optional(own: Account, other: Account, meeting: Arc<Meeting>, gives: bool) {
    let mut guard = Some(own.lock().await);
    if let Some(guard) = &mut guard {
        **guard += 1;
    }
    if gives {
        guard.take();
    }
    meet!(meeting, other)
}

async fn innermost(answer: oneshot::Receiver<u64>) -> u64 {
    answer.await.unwrap_or(0) // no answer
}

async fn middle(answer: oneshot::Receiver<u64>) -> u64 {
    innermost(answer).await + 1 // the middle
}

async fn outermost(answer: oneshot::Receiver<u64>) -> u64 {
    middle(answer).await + 1 // the outermost
}

async fn keeps(permits: Arc<Semaphore>) {
    let _permit = permits.acquire().await;
    std::future::pending::<()>().await;
}

async fn wants(permits: Arc<Semaphore>) {
    let _permit = permits.acquire_owned().await;
}

async fn boxed(answer: oneshot::Receiver<u64>) {
    let inner: Pin<Box<dyn Future<Output = u64> + Send>> = Box::pin(innermost(answer));
    inner.await; // the box
}

struct Numbers;

impl managed::Manager for Numbers {
    type Type = u64;
    type Error = ();

    async fn create(&self) -> Result<u64, ()> {
        Ok(7)
    }

    async fn recycle(&self, _: &mut u64, _: &Metrics) -> RecycleResult<()> {
        Ok(())
    }
}

async fn takes_two(pool: managed::Pool<Numbers>, taken: Arc<Barrier>, way: String) {
    let one = pool.get().await;
    taken.wait().await;
    match &*way {
        "given" => tokio::time::sleep(Duration::from_secs(1000)).await,
        "busy" => drop(one),
        _ => {}
    }
    loop {
        let _other = pool.get().await; // one more
    }
}

/// Has both objects of a pool for most of the time.
async fn keeps_two(pool: managed::Pool<Numbers>, taken: Arc<Barrier>) {
    taken.wait().await;
    loop {
        let _both = (pool.get().await, pool.get().await);
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
}

/// Spawns two tasks of the scenario with this name.
macro_rules! pairs {
    ($scenario:expr, $one:expr, $two:expr, $meeting:expr, $gives:expr; $($name:ident)*) => {
        match $scenario {
            $(stringify!($name) => {
                tokio::spawn($name($one.clone(), $two.clone(), $meeting.clone(), $gives));
                tokio::spawn($name($two.clone(), $one.clone(), $meeting.clone(), $gives));
            })*
            other => panic!("no such scenario: {other}"),
        }
    };
}

async fn pair(scenario: &str, gives: bool) {
    let (one, two) = (Account::default(), Account::default());
    let meeting = Arc::new(Meeting { taken: Barrier::new(3), go: Barrier::new(3) });
    pairs!(scenario, one, two, meeting, gives; plain at_once scrutinee passed looped mapped optional);
    meeting.taken.wait().await;
    let held = if gives { Some((one.lock().await, two.lock().await)) } else { None };
    meeting.go.wait().await;
    ready().await;
    drop(held);
}

/// Lets the tasks go on to their last awaits, and says so.
async fn ready() {
    tokio::time::sleep(Duration::from_millis(100)).await;
    println!("ready");
    std::future::pending::<()>().await;
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build();
    runtime.expect("threads can be started").block_on(async {
        match &*arguments[1] {
            "nested" => {
                let (_sender, answer) = oneshot::channel();
                tokio::spawn(outermost(answer));
                ready().await;
            }
            "permits" => {
                let permits = Arc::new(Semaphore::new(1));
                tokio::spawn(keeps(permits.clone()));
                tokio::time::sleep(Duration::from_millis(50)).await;
                (0..3).for_each(|_| drop(tokio::spawn(wants(permits.clone()))));
                ready().await;
            }
            "boxed" => {
                let (_sender, answer) = oneshot::channel();
                tokio::spawn(boxed(answer));
                ready().await;
            }
            "pool" => {
                let pool = managed::Pool::builder(Numbers).max_size(2);
                let pool = pool.wait_timeout(Some(Duration::from_secs(1000)));
                let pool = pool.runtime(deadpool::Runtime::Tokio1).build().expect("it has a runtime");
                let way = &arguments[2];
                let taken = Arc::new(Barrier::new(if way == "busy" { 3 } else { 2 }));
                (0..2).for_each(|_| drop(tokio::spawn(takes_two(pool.clone(), taken.clone(), way.clone()))));
                if way == "busy" {
                    tokio::spawn(keeps_two(pool, taken));
                }
                ready().await;
            }
            scenario => pair(scenario, arguments[2] == "given").await,
        }
    });
}
