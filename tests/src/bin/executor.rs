//! A program of tokio that knows nothing of librip: one of its workers blocks in a poll, and the others wait for work.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

fn main() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(3).enable_time().build().expect("threads can be started");
    let lock = Arc::new(Mutex::new(0));
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = Arc::clone(&lock);
    runtime.spawn(async move { *wanted.lock().unwrap_or_else(PoisonError::into_inner) += 1 });
    println!("ready");
    std::io::stdout().flush().expect("the test reads the output");
    runtime.block_on(async { tokio::time::sleep(Duration::MAX).await });
    drop(guard);
}
