//! Small async programs with bugs, or that only seem to have them. `verdicts` runs `read-rip` on them.
//!
//! ```text
//! tasks NAME
//! ```
//!
//! Each reaches its state, prints `ready`, and stays there until it is killed. It judges nothing.

#![allow(
    unsafe_code,
    reason = "a guard of a lock of threads is not `Send`; a thread waits for events in a system call"
)]

mod arrivals;
mod channels;
mod crowds;
mod local;
mod locks;
mod misuse;
mod published;
mod truth;
mod unspawned;

use std::io::Write;
use std::pin::Pin;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

type Scenario = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

const SCENARIOS: &[Scenario] = &[
    ("futurelock", || Box::pin(locks::futurelock())),
    ("futurelock-in-time", || Box::pin(locks::futurelock_in_time())),
    ("held-and-left-out", || Box::pin(locks::held_and_left_out())),
    ("owned-futurelock", || Box::pin(locks::owned_futurelock())),
    ("cell-and-lock", || Box::pin(locks::cell_and_lock())),
    ("lock-or-end", || Box::pin(locks::lock_or_end())),
    ("opposite-orders", || Box::pin(locks::opposite_orders())),
    ("thread-lock-over-await", || Box::pin(locks::thread_lock_over_await())),
    ("main-future-holds", || Box::pin(local::main_future_holds())),
    ("traced-main-future-holds", || Box::pin(local::traced_main_future_holds())),
    ("lock-in-a-local-set", || Box::pin(local::lock_in_a_local_set())),
    ("long-poll", || Box::pin(crowds::long_poll())),
    ("rare-poll", || Box::pin(crowds::rare_poll())),
    ("left-to-itself", || Box::pin(local::left_to_itself(-1))),
    ("left-to-itself-and-a-child", || Box::pin(local::left_to_itself_and_a_child())),
    ("left-to-itself-and-an-ended-child", || Box::pin(local::left_to_itself_and_an_ended_child())),
    ("left-to-itself-for-a-time", || Box::pin(local::left_to_itself(i32::MAX))),
    ("undriven", || Box::pin(crowds::undriven())),
    ("lock-in-place", || Box::pin(locks::lock_in_place())),
    ("lock-beside-a-free-worker", || Box::pin(locks::lock_beside_a_free_worker())),
    ("busy-workers", || Box::pin(crowds::busy_workers())),
    ("full-channel-and-lock", || Box::pin(channels::full_channel_and_lock())),
    ("full-both-ways", || Box::pin(channels::full_both_ways())),
    ("own-sender", || Box::pin(channels::own_sender())),
    ("change-under-a-lock", || Box::pin(channels::change_under_a_lock())),
    ("leaked-receiver", || Box::pin(channels::leaked_receiver())),
    ("requests-both-ways", || Box::pin(channels::requests_both_ways())),
    ("request-under-a-lock", || Box::pin(channels::request_under_a_lock())),
    ("lost-waker", || Box::pin(locks::lost_waker())),
    ("lock-over-sleep", || Box::pin(locks::lock_over_sleep())),
    ("two-writes", || Box::pin(published::two_writes())),
    ("two-writes-of-async-lock", || Box::pin(published::two_writes_of_async_lock())),
    ("two-locks-of-async-lock", || Box::pin(published::two_locks_of_async_lock())),
    ("relocked-mutex-of-futures", || Box::pin(published::relocked_mutex_of_futures())),
    ("relocked-owned-mutex-of-futures", || Box::pin(published::relocked_owned_mutex_of_futures())),
    ("opposite-mutexes-of-futures", || Box::pin(published::opposite_mutexes_of_futures())),
    ("thread-lock-in-two-futures", || Box::pin(published::thread_lock_in_two_futures())),
    ("buffered-permits", || Box::pin(published::buffered_permits())),
    ("philosophers", || Box::pin(published::philosophers())),
    ("queued-writer", || Box::pin(published::queued_writer())),
    ("lock-of-a-current-thread", || Box::pin(published::lock_of_a_current_thread())),
    ("joins", || Box::pin(published::joins())),
    ("joins-after-others-could-wake", || Box::pin(published::joins_after_others_could_wake())),
    ("pool-of-one", || Box::pin(published::pool_of_one())),
    ("forgotten-permits", || Box::pin(published::forgotten_permits())),
    ("yields-for-ever", || Box::pin(published::yields(Duration::ZERO))),
    ("yields-and-works", || Box::pin(published::yields(Duration::from_micros(50)))),
    ("healthy-twins", || Box::pin(published::healthy_twins())),
    ("healthy-backpressure", || Box::pin(channels::healthy_backpressure())),
    ("unanswered-requests", || Box::pin(channels::unanswered_requests())),
    ("request-for-ever", || Box::pin(channels::request_for_ever())),
    ("missing-party", || Box::pin(channels::missing_party())),
    ("two-requests-at-once", || Box::pin(channels::two_requests_at_once())),
    ("notified-before", || Box::pin(channels::notified_before())),
    ("notified-again", || Box::pin(channels::notified_again())),
    ("healthy-requests", || Box::pin(channels::healthy_requests())),
    ("healthy-channels", || Box::pin(channels::healthy_channels())),
    ("healthy", || Box::pin(crowds::healthy())),
    ("healthy-branches", || Box::pin(crowds::healthy_branches())),
    ("many-awaits", || Box::pin(crowds::many_awaits())),
    ("many-short", || Box::pin(crowds::many_short())),
    ("moved", || Box::pin(misuse::moves_between_runtimes())),
    ("misused", || Box::pin(misuse::misused())),
    ("truth", || Box::pin(truth::tells_the_truth())),
    ("unspawned-healthy", || Box::pin(unspawned::healthy())),
    ("unspawned-busy", || Box::pin(unspawned::busy())),
    ("unspawned-opposite-orders", || Box::pin(unspawned::opposite_orders())),
    ("unspawned-keeps-what-a-task-needs", || Box::pin(unspawned::keeps_what_a_task_needs())),
    ("crowd", || Box::pin(crowds::crowd())),
];

/// When this program began.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn main() {
    LazyLock::force(&BEGUN);
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let Some((_, scenario)) = SCENARIOS.iter().find(|(name, _)| *name == wanted) else {
        eprintln!("no such scenario: {wanted}");
        std::process::exit(2);
    };
    librip::init().expect("the test gives a directory for the ring");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = librip_tokio::watch(&mut builder).worker_threads(2).enable_time().build();
    let runtime = runtime.expect("two threads can be started");
    // Not as a task: a task of the main thread would be in every result.
    runtime.block_on(scenario());
    say_ready();
    thread::sleep(Duration::MAX);
}

fn say_ready() {
    println!("ready");
    std::io::stdout().flush().expect("the test reads the output");
}
