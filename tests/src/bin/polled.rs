//! Tasks whose polls it counts itself, by no executor. `tests/log/polls.rs` compares that with what is in the ring.
//!
//! It prints `ready` when all is done that it was told to do, and judges nothing. Threads go on to poll tasks of a
//! place of their own until the program is killed.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use librip::rip_snap;
use librip::task::Builder;

/// Threads that poll tasks of one place at once.
const THREADS: usize = 6;
/// Tasks of each of them, and polls of each task.
const TASKS: usize = 20;
const POLLS: usize = 200;
/// More kinds of tasks than there are places.
const KINDS: usize = 300;
/// How long a long poll takes, and a wait for a poll.
const LONG: Duration = Duration::from_millis(20);

fn main() {
    librip::init().expect("the test gives a directory for the ring");
    match std::env::args().nth(1).as_deref() {
        Some("crowd") => crowd(),
        Some("sluggish") => sluggish(),
        Some("kinds") => kinds(),
        Some("blocking") => Builder::new().name("call").blocking(compute).run(),
        Some("for-ever") => for_ever(),
        way => panic!("which way? {way:?}"),
    }
    println!("ready");
    thread::sleep(Duration::MAX);
}

/// A future that is ready at the poll with this number, and wakes its task in each before that.
async fn takes(polls: usize) {
    let mut polled = 0;
    poll_fn(|cx| {
        polled += 1;
        if polled == polls {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Polls a task until it is ready.
fn drive(mut task: Pin<&mut impl Future<Output = ()>>) {
    while task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

fn crowd() {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TASKS {
                    drive(pin!(Builder::new().name("one of many").traced(takes(POLLS))));
                }
            });
        }
    });
}

fn compute() {
    rip_snap!("computes");
    let since = Instant::now();
    while since.elapsed() < LONG {}
}

/// The first poll wakes the task. Before the second one nobody polls it for a while. The second one takes long. Before
/// the third one nobody has woken it.
fn sluggish() {
    let mut polled = 0;
    let future = poll_fn(|cx| {
        polled += 1;
        match polled {
            1 => cx.waker().wake_by_ref(),
            2 => compute(),
            3 => return Poll::Ready(()),
            _ => panic!("polled again"),
        }
        Poll::Pending
    });
    let mut task = pin!(Builder::new().name("sluggish").traced(future));
    let mut poll = || task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
    assert!(!poll());
    thread::sleep(LONG);
    assert!(!poll());
    assert!(poll());
}

fn kinds() {
    for kind in 0..KINDS {
        drive(pin!(Builder::new().kind_name(&format!("GET /{kind}")).traced(takes(2))));
        drive(pin!(Builder::new().kind_name("GET /again").traced(takes(2))));
    }
}

/// Goes on to poll while others read the ring.
fn for_ever() {
    for _ in 0..THREADS / 2 {
        thread::spawn(|| {
            loop {
                drive(pin!(Builder::new().name("restless").traced(takes(POLLS))));
            }
        });
    }
}
