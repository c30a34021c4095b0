//! Measures what the locks of `async-lock` and `futures` cost when they are recorded, beside those themselves, in the
//! same run.
//!
//! ```text
//! cargo bench -p librip-async-lock --features futures
//! ```
//!
//! # Method
//!
//! `turns` describes the method. *ns* is the median processor time of an acquisition and a release. *ratio* compares it
//! with the bare lock in the same round, *spread* is the range of that from the first to the third quartile. Nothing is
//! asserted: read the ratios. One poll of a task runs all of a round: no lock is ever waited for, and no executor is
//! measured.
//!
//! # What is not measured
//!
//! Waits, cold caches, several threads, a process without a ring.

#![allow(unsafe_code, reason = "the processor time is read by a system call")]

#[path = "../../benches/turns/table.rs"]
mod table;
#[path = "../../benches/turns/mod.rs"]
mod turns;

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};

use librip::{Builder, Keep};
use table::{measure, print_title};
use turns::Candidate;

/// Polls a future that never waits.
fn run(future: impl Future<Output = ()>) {
    assert!(pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

/// Adds a lock and the recorded one, by the names of their modules.
macro_rules! beside {
    ($candidates:ident, $name:literal, $bare:path, $recorded:path, |$rounds:ident, $module:ident| $body:expr) => {{
        let beside = $candidates.len();
        $candidates.push(Candidate::new(concat!("bare: ", $name), beside, 1, |$rounds| {
            use $bare as $module;
            run(async { $body });
        }));
        $candidates.push(Candidate::new($name, beside, 1, |$rounds| {
            use $recorded as $module;
            run(librip::task::traced(async { $body }));
        }));
    }};
}

fn main() {
    print_title("librip/async-lock/benches/locks.rs");
    if let Err(error) = Builder::new().slots(64).keep(Keep::Never).create() {
        eprintln!("locks: no ring, so there is nothing to measure: {error}");
        std::process::exit(1);
    }
    let mut candidates = Vec::new();
    beside!(candidates, "Mutex: lock and unlock", async_lock, librip_async_lock, |rounds, locks| {
        let mutex = locks::Mutex::new(0_u64);
        for _ in 0..rounds {
            *mutex.lock().await += 1;
        }
        black_box(mutex.into_inner());
    });
    beside!(candidates, "RwLock: read and unlock", async_lock, librip_async_lock, |rounds, locks| {
        let lock = locks::RwLock::new(1_u64);
        for _ in 0..rounds {
            black_box(*lock.read().await);
        }
    });
    beside!(candidates, "RwLock: write and unlock", async_lock, librip_async_lock, |rounds, locks| {
        let lock = locks::RwLock::new(0_u64);
        for _ in 0..rounds {
            *lock.write().await += 1;
        }
        black_box(lock.into_inner());
    });
    beside!(candidates, "Semaphore: acquire and release", async_lock, librip_async_lock, |rounds, locks| {
        let semaphore = locks::Semaphore::new(1);
        for _ in 0..rounds {
            let _permit = black_box(semaphore.acquire().await);
        }
    });
    beside!(candidates, "OnceCell that is initialised", async_lock, librip_async_lock, |rounds, locks| {
        let cell = locks::OnceCell::new();
        for _ in 0..rounds {
            black_box(cell.get_or_init(async || 7).await);
        }
    });
    beside!(
        candidates,
        "futures: Mutex: lock and unlock",
        futures_util::lock,
        librip_async_lock::futures,
        |rounds, locks| {
            let mutex = locks::Mutex::new(0_u64);
            for _ in 0..rounds {
                *mutex.lock().await += 1;
            }
            black_box(mutex.into_inner());
        }
    );
    measure(&mut candidates, None);
}
