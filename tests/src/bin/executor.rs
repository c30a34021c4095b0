//! A program of tokio that knows nothing of librip: one of its tasks blocks in a poll, and the others wait.
//!
//! ```text
//! executor [named | current-thread]
//! ```
//!
//! Without an argument, its workers have the names that tokio gives them. Those of `named` have a name of the program,
//! and `current-thread` has a runtime without workers.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;

fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    if kind == "current-thread" {
        current_thread();
    }
    let mut builder = Builder::new_multi_thread();
    if kind == "named" {
        builder.thread_name("serving");
    }
    let runtime = builder.worker_threads(3).enable_time().build().expect("threads can be started");
    // A thread of the pool, which runs no task.
    drop(runtime.spawn_blocking(|| thread::sleep(Duration::MAX)));
    let held = Arc::new(Mutex::new(0));
    let guard = lock(&held);
    let wanted = Arc::clone(&held);
    runtime.spawn(async move { *lock(&wanted) += 1 });
    say_ready();
    runtime.block_on(async { tokio::time::sleep(Duration::MAX).await });
    drop(guard);
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
