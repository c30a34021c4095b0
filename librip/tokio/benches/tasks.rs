//! Measures what a recorded task, and its locks and channels, cost beside those of tokio, in the same run.
//!
//! ```text
//! cargo bench -p librip-tokio
//! ```
//!
//! # Method
//!
//! `turns` describes the method. *ns* is the median time of an operation. *ratio* compares it with tokio's in the same
//! round, *spread* is the range of that from the first to the third quartile. Nothing is asserted: read the ratios.
//!
//! *One thread* is a runtime of the measured thread, and its processor time. The futures are unconstrained: otherwise
//! each 128th operation lets other tasks go first. *Two workers* is a runtime with two workers, each of which runs a
//! task that does the same, and the wall time divided by the operations of both. There, other programs disturb.
//!
//! *With the times of polls* is a process whose polls read the clock (`RIP_POLLS=times`).
//!
//! *Without a ring* is a process that does not record: what a program pays that uses this crate and does not call
//! `librip::init`.
//!
//! # What is not measured
//!
//! Cold caches. More than two workers. Tasks that wait long.

#![allow(unsafe_code, reason = "the processor time is read by a system call")]

#[path = "../../benches/turns/child.rs"]
mod child;
#[path = "../../benches/turns/table.rs"]
mod table;
#[path = "../../benches/turns/mod.rs"]
mod turns;

use std::future::poll_fn;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use child::child;
use librip::{Builder, Keep, Polls};
use table::{measure, print_title};
use tokio::runtime::Runtime;
use tokio::task::unconstrained;
use turns::Candidate;

/// In a child process, this variable names what is measured.
const GROUP: &str = "RIP_BENCH_GROUP";
const RECORDED: &str = "recorded";
const WITHOUT_RING: &str = "without a ring";
/// With `RIP_POLLS=times`.
const TIMED: &str = "recorded, with the times of polls";

fn main() {
    let Ok(group) = std::env::var(GROUP) else {
        print_title("librip/tokio/benches/tasks.rs");
        [RECORDED, TIMED, WITHOUT_RING].iter().for_each(|group| child(GROUP, group));
        return;
    };
    let polls_of = if group == TIMED { Polls::Times } else { Polls::Off };
    if group != WITHOUT_RING
        && let Err(error) = Builder::new().slots(8192).polls(polls_of).keep(Keep::Never).create()
    {
        eprintln!("tasks: no ring, so there is nothing to measure: {error}");
        std::process::exit(1);
    }
    println!("\n{group}, one thread");
    polls();
    // Times of polls change nothing about locks.
    one_thread(group != TIMED);
    println!("\n{group}, two workers");
    two_workers(group != TIMED);
}

/// A future that is never ready.
fn endless() -> impl Future<Output = ()> {
    poll_fn(|_| black_box(Poll::Pending))
}

fn poll_often(future: impl Future, rounds: u64) {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..rounds {
        assert!(black_box(future.as_mut()).poll(&mut cx).is_pending());
    }
}

/// A poll by hand, without a runtime.
fn polls() {
    let mut candidates = [
        Candidate::new("a poll", 0, 1, |rounds| poll_often(endless(), rounds)),
        Candidate::new("a poll of a task", 0, 1, |rounds| {
            poll_often(librip::task::traced(endless()), rounds);
        }),
        Candidate::new("a poll of a task, wakes not counted", 0, 1, |rounds| {
            poll_often(librip::task::Builder::new().without_wakes().traced(endless()), rounds);
        }),
        Candidate::new("a future with a name (at)", 0, 1, |rounds| {
            let mut future = pin!(librip::task::traced(librip::task::at(endless())));
            poll_often(future.as_mut(), rounds);
        }),
    ];
    measure(&mut candidates, None);
}

/// Expands the body twice: with the names `sync` and `spawn` of tokio, and of this crate.
macro_rules! beside {
    ($candidates:ident, $run:ident, $name:literal, |$rounds:ident, $sync:ident, $spawn:ident| $body:expr) => {{
        let beside = $candidates.len();
        $candidates.push($run(concat!("tokio: ", $name), beside, false, move |$rounds| {
            #[allow(unused_imports, reason = "bodies use one or the other")]
            use tokio::{spawn as $spawn, sync as $sync};
            async move { $body }
        }));
        $candidates.push($run($name, beside, true, move |$rounds| {
            #[allow(unused_imports, reason = "bodies use one or the other")]
            use librip_tokio::{spawn as $spawn, sync as $sync};
            async move { $body }
        }));
    }};
}

/// Bodies that are polled again and again, which all groups of candidates run.
macro_rules! polled_bodies {
    ($candidates:ident, $run:ident) => {
        beside!($candidates, $run, "a yield", |rounds, sync, spawn| {
            for _ in 0..rounds {
                tokio::task::yield_now().await;
            }
        });
        beside!($candidates, $run, "spawn and await", |rounds, sync, spawn| {
            for number in 0..rounds {
                let ended = spawn(async move { number }).await;
                black_box(ended.is_ok());
            }
        });
        beside!($candidates, $run, "mpsc, to a task and back", |rounds, sync, spawn| {
            let (there, mut from_here) = sync::mpsc::channel(1);
            let (back, mut from_there) = sync::mpsc::channel(1);
            let echo = spawn(async move {
                while let Some(number) = from_here.recv().await {
                    black_box(back.send(number).await.is_ok());
                }
            });
            for number in 0..rounds {
                black_box(there.send(number).await.is_ok());
                black_box(from_there.recv().await);
            }
            drop(there);
            black_box(echo.await.is_ok());
        });
    };
}

/// Bodies that use locks and channels.
macro_rules! bodies {
    ($candidates:ident, $run:ident) => {
        beside!($candidates, $run, "Mutex", |rounds, sync, spawn| {
            let mutex = sync::Mutex::new(0_u64);
            for _ in 0..rounds {
                *black_box(&mutex).lock().await += 1;
            }
        });
        beside!($candidates, $run, "Mutex, owned guard", |rounds, sync, spawn| {
            let mutex = Arc::new(sync::Mutex::new(0_u64));
            for _ in 0..rounds {
                *Arc::clone(&mutex).lock_owned().await += 1;
            }
        });
        beside!($candidates, $run, "Mutex, try_lock", |rounds, sync, spawn| {
            let mutex = sync::Mutex::new(0_u64);
            for _ in 0..rounds {
                *black_box(&mutex).try_lock().expect("a free mutex") += 1;
            }
        });
        beside!($candidates, $run, "RwLock, read", |rounds, sync, spawn| {
            let lock = sync::RwLock::new(1_u64);
            for _ in 0..rounds {
                black_box(*black_box(&lock).read().await);
            }
        });
        beside!($candidates, $run, "RwLock, write", |rounds, sync, spawn| {
            let lock = sync::RwLock::new(0_u64);
            for _ in 0..rounds {
                *black_box(&lock).write().await += 1;
            }
        });
        beside!($candidates, $run, "Semaphore", |rounds, sync, spawn| {
            let semaphore = sync::Semaphore::new(2);
            for _ in 0..rounds {
                black_box(black_box(&semaphore).acquire().await.is_ok());
            }
        });
        beside!($candidates, $run, "Notify", |rounds, sync, spawn| {
            let notify = sync::Notify::new();
            for _ in 0..rounds {
                notify.notify_one();
                black_box(&notify).notified().await;
            }
        });
        beside!($candidates, $run, "OnceCell that is initialised", |rounds, sync, spawn| {
            let cell = sync::OnceCell::from(1_u64);
            for _ in 0..rounds {
                black_box(*black_box(&cell).get_or_init(|| async { 2 }).await);
            }
        });
        beside!($candidates, $run, "mpsc, send and recv", |rounds, sync, spawn| {
            let (sender, mut receiver) = sync::mpsc::channel(4);
            for number in 0..rounds {
                black_box(sender.send(number).await.is_ok());
                black_box(receiver.recv().await);
            }
        });
        beside!($candidates, $run, "oneshot, made, send and await", |rounds, sync, spawn| {
            for number in 0..rounds {
                let (sender, receiver) = sync::oneshot::channel();
                black_box(sender.send(number).is_ok());
                black_box(receiver.await.is_ok());
            }
        });
    };
}

fn runtime(workers: usize) -> Runtime {
    let mut builder = match workers {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    // SANITY: a benchmark without a runtime has nothing to do.
    librip_tokio::watch(builder.worker_threads(workers.max(1))).build().expect("a runtime")
}

fn one_thread(with_locks: bool) {
    fn run<F: Future>(
        name: &'static str,
        beside: usize,
        is_recorded: bool,
        body: impl Fn(u64) -> F + 'static,
    ) -> Candidate<'static> {
        let runtime = runtime(0);
        Candidate::new(name, beside, 1, move |rounds| {
            let future = unconstrained(body(rounds));
            if is_recorded {
                librip_tokio::block_on(&runtime, future);
            } else {
                runtime.block_on(future);
            }
        })
    }
    let mut candidates = Vec::new();
    polled_bodies!(candidates, run);
    if with_locks {
        bodies!(candidates, run);
    }
    measure(&mut candidates, None);
}

fn two_workers(with_locks: bool) {
    const TASKS: u64 = 2;
    fn run<F: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        beside: usize,
        is_recorded: bool,
        body: impl Fn(u64) -> F + 'static,
    ) -> Candidate<'static> {
        let runtime = runtime(TASKS as usize);
        let run = move |rounds| {
            let begin = Instant::now();
            if is_recorded {
                let tasks = [(); TASKS as usize]
                    .map(|()| librip_tokio::Task::new().spawn_on(body(rounds), runtime.handle()));
                runtime.block_on(async {
                    for task in tasks {
                        black_box(task.await.is_ok());
                    }
                });
            } else {
                let tasks = [(); TASKS as usize].map(|()| runtime.spawn(body(rounds)));
                runtime.block_on(async {
                    for task in tasks {
                        black_box(task.await.is_ok());
                    }
                });
            }
            begin.elapsed().as_nanos().max(1) as f64
        };
        Candidate { name, beside, operations: TASKS, run: Box::new(run) }
    }
    let mut candidates = Vec::new();
    polled_bodies!(candidates, run);
    if with_locks {
        bodies!(candidates, run);
        contended(&mut candidates, run);
    }
    measure(&mut candidates, None);
}

/// Both tasks use the same lock.
fn contended<R>(candidates: &mut Vec<Candidate<'static>>, run: R)
where
    R: Fn(
        &'static str,
        usize,
        bool,
        Box<dyn Fn(u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>,
    ) -> Candidate<'static>,
{
    let beside = candidates.len();
    let bare = Arc::new(tokio::sync::Mutex::new(0_u64));
    candidates.push(run(
        "tokio: Mutex, both tasks the same",
        beside,
        false,
        Box::new(move |rounds| {
            let mutex = Arc::clone(&bare);
            Box::pin(async move {
                for _ in 0..rounds {
                    *mutex.lock().await += 1;
                }
            })
        }),
    ));
    let own = Arc::new(librip_tokio::sync::Mutex::new(0_u64));
    candidates.push(run(
        "Mutex, both tasks the same",
        beside,
        true,
        Box::new(move |rounds| {
            let mutex = Arc::clone(&own);
            Box::pin(async move {
                for _ in 0..rounds {
                    *mutex.lock().await += 1;
                }
            })
        }),
    ));
}
