//! A program whose ring a hostile process scribbles over: `scribbled STATUS`. It must work as if nothing happened.
//!
//! It marks, records events, spans, channels and captures, uses locks of every kind, names them, polls and wakes tasks,
//! starts and ends threads, forks, and exits. It checks its own sums, the private memory around the mapping of the
//! ring, and how its children end. It says nothing about the ring.
//!
//! `tests/harm` compiles this file by itself too, in release.

#![allow(unsafe_code, reason = "forks, and mappings around the ring")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "a program that exists to be attacked: plain system calls"
)]

#[path = "../spin.rs"]
mod spin;

use std::future::poll_fn;
use std::io::Write;
use std::pin::Pin;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use librip::raw::{Recorded, SetName};
use librip::sync::{Condvar, Mutex, RwLock};
use librip::task::lock::{self, MESSAGE, MUTEX};
use librip::task::{AtExt, Builder, at, left_worker};
use librip::{
    rip_capture, rip_channel, rip_event, rip_lock_acquired, rip_lock_destroyed, rip_lock_name,
    rip_lock_released, rip_lock_try_failed, rip_lock_wait, rip_progress, rip_slow_cycle, rip_snap, rip_span,
};
use spin::Spin;

const ROUNDS: u64 = 24;
const THREADS: u64 = 3;
const STEPS: u64 = 60;

type SpinMutex = lock_api::Mutex<Recorded<Spin<lock_api::GuardNoSend>>, u64>;

static OUTER: Mutex<u64> = Mutex::new(0);
static MIDDLE: RwLock<u64> = RwLock::new(0);
static INNER: SpinMutex = SpinMutex::new(0);
static CHANGED: Condvar = Condvar::new();
static STOP: AtomicBool = AtomicBool::new(false);

fn main() {
    let status: i32 = std::env::args().nth(1).and_then(|text| text.parse().ok()).expect("STATUS");
    librip::init().expect("a ring");
    let surroundings = Surroundings::new();
    // Before the threads, so that their slots are among the first.
    LASTING.lock().unwrap().extend((0..4).map(|_| lasting()));
    let markers: Vec<_> = (0..2).map(|_| std::thread::spawn(mark_until_stopped)).collect();
    say("ready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for round in 0..ROUNDS {
        let threads: Vec<_> =
            (0..THREADS).map(|_| std::thread::spawn(|| (0..STEPS).for_each(step))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        fork(round);
        surroundings.check();
        say(&format!("round {round}"));
    }
    STOP.store(true, Relaxed);
    markers.into_iter().for_each(|marker| marker.join().unwrap());
    let expected = ROUNDS * THREADS * STEPS;
    assert_eq!(
        (*OUTER.lock().unwrap(), *MIDDLE.read().unwrap(), *INNER.lock()),
        (expected, expected, expected)
    );
    assert_eq!(RESUMED.load(Relaxed), expected + 4);
    surroundings.check();
    say("done");
    std::process::exit(status);
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn mark_until_stopped() {
    while !STOP.load(Relaxed) {
        rip_snap!("at full speed");
        rip_progress!();
    }
}

/// Every operation on locks. Each sum grows by one.
fn step(step: u64) {
    rip_snap!("step");
    let mut outer = OUTER.lock().unwrap();
    *outer += 1;
    let mut middle = MIDDLE.write().unwrap();
    let mut inner = INNER.lock();
    *inner += 1;
    *middle += 1;
    assert!(INNER.try_lock().is_none());
    match step % 3 {
        0 => drop((outer, middle, inner)),
        1 => drop((inner, middle, outer)),
        _ => {
            drop((middle, inner));
            drop(CHANGED.wait_timeout(outer, Duration::from_micros(step % 7)).unwrap());
        }
    }
    CHANGED.notify_all();
    drop((MIDDLE.read().unwrap(), MIDDLE.try_read()));
    by_hand();
    names();
    values(step);
    tasks(step);
    if step.is_multiple_of(16) {
        librip::set_thread_name("a name from the program");
    }
}

/// Marks by hand: more locks than a table has entries, a lock that no thread holds, a failed try.
fn by_hand() {
    let locks = [0u8; 20];
    for lock in &locks {
        rip_lock_wait!(lock, exclusive);
        rip_lock_acquired!(lock, exclusive);
    }
    for lock in &locks {
        rip_lock_released!(lock, exclusive);
    }
    rip_lock_try_failed!(&locks[0], exclusive);
    // The recorder looks for its holder in the tables of all threads.
    rip_lock_released!(&OUTER, shared);
}

rip_channel!(SCRIBBLED, words = 64);

/// Events with values of all lengths, and more open spans than a table has entries, which end in any order.
fn values(step: u64) {
    let text = "the length of this text is another one in each step";
    let mut spans: Vec<_> = (0..step % 20).map(|depth| rip_span!("nested", "{} {}", depth, step)).collect();
    let _cycle = rip_slow_cycle!("step", Duration::from_micros(20));
    rip_capture!("step {}", step);
    rip_event!(channel SCRIBBLED, "{} {}", step, text);
    rip_event!("{} {:?} {}", step, &text[..step as usize % text.len()], librip::Text("by reference"));
    while !spans.is_empty() {
        drop(spans.swap_remove(step as usize % spans.len()));
    }
}

type Task = Pin<Box<dyn Future<Output = u64> + Send>>;

/// Tasks that are polled until the program ends.
static LASTING: std::sync::Mutex<Vec<Task>> = std::sync::Mutex::new(Vec::new());
/// How often one of them was polled.
static RESUMED: AtomicU64 = AtomicU64::new(0);

/// A task that has more named futures than a task has room for, waits, holds a lock, and is woken when it is polled.
fn lasting() -> Task {
    let mut task: Task = Box::pin(Builder::new().name("lasting").runtime(1, 2).traced(async {
        loop {
            let futures: Vec<_> = (0..10).map(|_| Box::pin(at(be_pending_once()))).collect();
            let lock = 0u64;
            let held = lock::attempt::<MUTEX, _>(lock::address(&lock), || Some(()));
            poll_fn(|cx| {
                cx.waker().wake_by_ref();
                RESUMED.fetch_add(1, Relaxed);
                Poll::Ready(())
            })
            .await;
            let mut futures = futures;
            let all = poll_fn(|cx| {
                futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
                if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            });
            lock::wait::<MESSAGE, _>(lock::address(&lock), all, true, |()| true).at().await;
            lock::release(held.and_then(|(_, hold)| hold), || ());
        }
    }));
    assert!(poll(&mut task).is_pending());
    task
}

fn be_pending_once() -> impl Future<Output = ()> + Send {
    let mut was_polled = false;
    poll_fn(move |_| if std::mem::replace(&mut was_polled, true) { Poll::Ready(()) } else { Poll::Pending })
}

fn poll(task: &mut Task) -> Poll<u64> {
    task.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Polls a lasting task, and makes short ones: one that ends, one that does not, and a call that blocks.
fn tasks(step: u64) {
    {
        let mut all = LASTING.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.len() as u64;
        assert!(poll(&mut all[(step % count) as usize]).is_pending());
    }
    let mut ends: Task = Box::pin(Builder::new().name("short").traced(async move {
        rip_snap!("in a task");
        left_worker();
        be_pending_once().at().await;
        rip_event!("in a task {}", step);
        step
    }));
    assert_eq!((poll(&mut ends), poll(&mut ends)), (Poll::Pending, Poll::Ready(step)));
    let mut is_dropped: Task = Box::pin(Builder::new().local().traced(at(std::future::pending())));
    assert!(poll(&mut is_dropped).is_pending());
    assert_eq!(Builder::new().blocking(|| step + 1).run(), step + 1);
}

fn names() {
    let mutex = Mutex::new(0u64);
    mutex.set_name("short-lived");
    *mutex.lock().unwrap() += 1;
    assert_eq!(mutex.into_inner().unwrap(), 1);
    INNER.set_name("the innermost");
    let by_hand = 0u8;
    rip_lock_name!(&by_hand, "by hand");
    rip_lock_destroyed!(&by_hand);
}

/// A child marks, locks, runs a thread, and ends in one of two ways. No thread holds a lock during the fork.
fn fork(round: u64) {
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        let before = *OUTER.lock().unwrap();
        (0..5).for_each(step);
        std::thread::spawn(|| step(5)).join().unwrap();
        assert_eq!(*OUTER.lock().unwrap(), before + 6);
        if round.is_multiple_of(2) {
            unsafe { libc::_exit(0) };
        }
        std::process::exit(0);
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child of round {round}");
}

/// Memory that no store of the recorder may reach: a store to the pages around the ring's mapping faults, and the heap
/// has a pattern.
struct Surroundings {
    heap: Vec<u64>,
}

impl Surroundings {
    const PATTERN: u64 = 0x5afe_5afe_5afe_5afe;

    fn new() -> Surroundings {
        let ring = std::env::var("RIP_RING").expect("the harness sets it");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with(&ring)).expect("the ring is mapped");
        let (begin, rest) = line.split_once('-').unwrap();
        let end = rest.split_once(' ').unwrap().0;
        let address = |text: &str| usize::from_str_radix(text, 16).unwrap();
        let (mut before, mut after) = (false, false);
        // As many bytes as are free there.
        for len in (16..=30).rev().map(|shift| 1usize << shift) {
            before = before || protect(address(begin).wrapping_sub(len), len);
            after = after || protect(address(end), len);
        }
        Surroundings { heap: vec![Surroundings::PATTERN; 1 << 16] }
    }

    fn check(&self) {
        assert!(self.heap.iter().all(|&word| word == Surroundings::PATTERN), "the heap was written to");
    }
}

/// Maps read-only pages. Returns whether the address range was free.
fn protect(at: usize, len: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let at = std::ptr::without_provenance_mut(at);
    let start = unsafe { libc::mmap(at, len, libc::PROT_READ, flags, -1, 0) };
    start == at
}
