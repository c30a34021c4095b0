//! Trouble: an async server whose workers all compute, so that nobody answers requests.
//!
//! A report takes long and has no `.await`. Two of them keep both workers of the runtime. The requests were spawned,
//! and nobody polls them. A debugger shows two busy threads, and no request at all.
//!
//! `read-rip tasks` shows which tasks keep the workers and since when, and the requests that are ready.
//! `read-rip check` proves that the runtime is starved, while it lives. Of a killed process it says that all workers
//! were in polls.
//!
//! It prints `running: pid P, ring PATH`, then `stuck`, and runs until it is killed.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc;

use librip_examples::{say, say_running, start, stay};
use librip_tokio::Task;
use tokio::runtime::Builder;

const WORKERS: usize = 2;

/// The mistake: a loop without an `.await`, on a worker. `spawn_blocking` is for that.
fn report(begins: &mpsc::Sender<()>) {
    librip::rip_snap!("computing a report");
    let _ = begins.send(());
    let mut sum = 0_u64;
    loop {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(7));
    }
}

fn main() {
    let ring = start();
    say_running(&ring);
    let mut builder = Builder::new_multi_thread();
    let runtime = librip_tokio::watch(&mut builder).worker_threads(WORKERS).build();
    // SANITY: without its workers this program shows nothing.
    let runtime = Arc::new(runtime.expect("the system can start two threads"));
    let (begins, begun) = mpsc::channel();
    for _ in 0..WORKERS {
        let begins = begins.clone();
        Task::new().name("report").spawn_on(async move { report(&begins) }, runtime.handle());
    }
    begun.iter().take(WORKERS).for_each(drop);
    for number in 1..=5 {
        Task::new().name(&format!("request {number}")).spawn_on(async {}, runtime.handle());
    }
    say("stuck");
    stay()
}
