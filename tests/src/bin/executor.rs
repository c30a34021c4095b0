//! A program of tokio that knows nothing of librip: one of its tasks blocks in a poll, and the others wait.
//!
//! ```text
//! executor [KIND] [CLIENTS]
//! ```
//!
//! Without an argument, its workers have the names that tokio gives them. Those of `named` have a name of the program,
//! and `current-thread` has a runtime without workers. `unserved` also listens, prints its address, and accepts nobody.
//! So does `in-place`, whose task says that it blocks: another thread takes over its worker. None of the others blocks
//! a thread: `crowd` has tasks that wait for a notification, and one that waits for the end of one of them; `local` and
//! `bare-local` have them in a `LocalSet`, the second one without a runtime. The tasks of `circle` wait for the ends of
//! one another. Those of `watchers` do too, and for a time: they go on. `deaf` listens as `unserved` does. `leaves`
//! does too, accepts so many clients, and then stops listening.

use std::io::Write;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    match &*kind {
        "current-thread" => current_thread(),
        "crowd" => workers().block_on(crowd()),
        "bare-local" => bare_local(),
        "local" => LocalSet::new().block_on(&workers(), local_crowd()),
        "circle" => workers().block_on(circle(None)),
        "deaf" => deaf(),
        "leaves" => leaves(std::env::args().nth(2).and_then(|count| count.parse().ok()).unwrap_or(1)),
        "watchers" => workers().block_on(circle(Some(Duration::from_secs(1000)))),
        _ => {}
    }
    let mut builder = Builder::new_multi_thread();
    if kind == "named" {
        builder.thread_name("serving");
    }
    let runtime = builder.worker_threads(3).enable_time().build().expect("threads can be started");
    // A thread of the pool, which runs no task.
    drop(runtime.spawn_blocking(|| thread::sleep(Duration::MAX)));
    let _listener = matches!(&*kind, "unserved" | "in-place").then(listen);
    let held = Arc::new(Mutex::new(0));
    let guard = lock(&held);
    let wanted = Arc::clone(&held);
    let is_in_place = kind == "in-place";
    runtime.spawn(async move {
        let block = || *lock(&wanted) += 1;
        if is_in_place { tokio::task::block_in_place(block) } else { block() }
    });
    say_ready();
    runtime.block_on(async { tokio::time::sleep(Duration::MAX).await });
    drop(guard);
}

fn workers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("threads can be started")
}

fn listen() -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    println!("{}", listener.local_addr().expect("it has an address"));
    listener
}

/// A server that shuts down, and whose clients stay.
fn leaves(clients: usize) {
    let listener = listen();
    let _connections: Vec<_> = (0..clients).map(|_| listener.accept().expect("clients come")).collect();
    drop(listener);
    workers().block_on(crowd());
}

fn deaf() {
    let _listener = listen();
    workers().block_on(crowd());
}

/// How many tasks wait for a notification.
const CROWD: usize = 40;

async fn handle(gate: Arc<Notify>) {
    gate.notified().await;
}

async fn supervise(child: JoinHandle<()>) {
    drop(child.await);
}

/// Waits until all tasks of a runtime have been polled: only one of them is in no queue of it.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(20)).await;
    say_ready();
    std::future::pending().await
}

async fn crowd() {
    let gate = Arc::new(Notify::new());
    let mut children: Vec<_> = (0..CROWD).map(|_| tokio::spawn(handle(Arc::clone(&gate)))).collect();
    children.pop().map(|child| tokio::spawn(supervise(child)));
    settle().await
}

async fn local_crowd() {
    let gate = Arc::new(Notify::new());
    (0..CROWD).for_each(|_| drop(spawn_local(handle(Arc::clone(&gate)))));
    settle().await
}

struct Unparks(thread::Thread);

impl Wake for Unparks {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The same without a runtime: a loop of the program polls the set.
fn bare_local() {
    thread::spawn(|| thread::sleep(Duration::MAX));
    let (set, gate) = (LocalSet::new(), Arc::new(Notify::new()));
    (0..CROWD).for_each(|_| drop(set.spawn_local(handle(Arc::clone(&gate)))));
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut set = pin!(set);
    let mut is_first = true;
    while set.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        if std::mem::take(&mut is_first) {
            say_ready();
        }
        thread::park();
    }
}

/// Waits for the end of a partner, but no longer than the limit.
async fn outlive(partner: oneshot::Receiver<JoinHandle<()>>, limit: Option<Duration>) {
    let Ok(partner) = partner.await else { return };
    match limit {
        Some(limit) => drop(tokio::time::timeout(limit, partner).await),
        None => drop(partner.await),
    }
}

async fn circle(limit: Option<Duration>) {
    let ((to_one, of_one), (to_other, of_other)) = (oneshot::channel(), oneshot::channel());
    let (one, other) = (tokio::spawn(outlive(of_one, limit)), tokio::spawn(outlive(of_other, limit)));
    drop((to_one.send(other), to_other.send(one)));
    settle().await
}

/// Its only thread polls what was spawned, and the main future.
fn current_thread() {
    let runtime = Builder::new_current_thread().enable_time().build().expect("it needs no thread");
    runtime.spawn(std::future::pending::<()>());
    runtime.block_on(async {
        say_ready();
        tokio::time::sleep(Duration::MAX).await;
    });
}

fn lock(mutex: &Mutex<i32>) -> MutexGuard<'_, i32> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn say_ready() {
    println!("ready");
    std::io::stdout().flush().expect("the test reads the output");
}
