//! A task that says what it does over its awaits, while one thread after the other polls it. `log` reads what it said.
//!
//! Two threads poll it in turn, and then a worker of a runtime. So three threads have polled it for sure. It prints
//! `ready` when it is suspended for good, and judges nothing.
//!
//! With the argument `ends`, another task ends then, and so many more that a third one gets its slot. It waits for a
//! line of input before each of these two steps.

use std::future::pending;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use librip::{rip_capture, rip_channel, rip_event, rip_snap, rip_span};
use librip_tokio::Task;
use tokio::runtime::Handle;
use tokio::sync::Notify;

rip_channel!(STEPS, words = 256);

type Carried = Pin<Box<dyn Future<Output = ()> + Send>>;

fn main() {
    librip::init().expect("the test gives a directory for the ring");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime =
        librip_tokio::watch(&mut builder).worker_threads(2).build().expect("threads can be started");
    let suspended = Arc::new(Notify::new());
    let noted = Arc::clone(&suspended);
    let task = {
        let _entered = runtime.enter();
        Task::new().name("traveller").traced(travel(noted))
    };
    let mut task: Carried = Box::pin(task);
    for name in ["first", "second", "first again"] {
        task = polled_by(name, task, runtime.handle());
    }
    let mut stays = Box::pin(Task::new().name("homebody").traced(stay()));
    assert!(stays.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    // By tokio's own function: it is a task already.
    runtime.spawn(task);
    runtime.block_on(suspended.notified());
    say("ready");
    if std::env::args().nth(1).as_deref() == Some("ends") {
        runtime.block_on(ends());
    }
    thread::sleep(Duration::MAX);
    drop(stays);
}

fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("the test reads the output");
}

fn pause() {
    std::io::stdin().read_line(&mut String::new()).expect("the test writes a line");
}

/// Tasks that end: a slot is used again after 1,024 others.
async fn ends() {
    pause();
    for name in ["early", ""] {
        let task = Task::new().name(name).spawn(async move { rip_event!("said by {:?}", name) });
        task.await.expect("it does not panic");
    }
    say("ended");
    pause();
    for _ in 0..2_000 {
        librip_tokio::spawn(async {}).await.expect("it does not panic");
    }
    say("replaced");
}

/// What the task does: each step is in another poll.
async fn travel(suspended: Arc<Notify>) {
    rip_snap!("step 1");
    rip_event!("begins with {}", 1);
    rip_event!(channel STEPS, "step {}", 1);
    be_pending_once().await;
    rip_snap!("step 2");
    rip_event!("goes on with {}", 2);
    rip_event!(channel STEPS, "step {}", 2);
    rip_capture!("kept in step {}", 2);
    be_pending_once().await;
    rip_snap!("step 3");
    drop(rip_span!("short", "{}", 3));
    rip_event!(channel STEPS, "step {}", 3);
    be_pending_once().await;
    rip_snap!("step 4");
    rip_event!("stays after {}", 4);
    rip_event!(channel STEPS, "step {}", 4);
    suspended.notify_one();
    pending::<()>().await;
}

/// A task of one thread, because a span stays in its thread. It holds one over an await.
async fn stay() {
    let _request = rip_span!("request", "{}", 4711);
    pending::<()>().await;
}

/// A new thread polls the task once, and says so itself before and after.
fn polled_by(name: &str, mut task: Carried, runtime: &Handle) -> Carried {
    let runtime = runtime.clone();
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        let _entered = runtime.enter();
        rip_snap!("before the poll");
        let waker = Waker::from(Arc::new(Ignores));
        assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        rip_snap!("after the poll");
        task
    });
    thread.expect("a thread can be started").join().expect("it does not panic")
}

/// Wakes nobody: the program polls the task by itself.
struct Ignores;

impl Wake for Ignores {
    fn wake(self: Arc<Self>) {}
}

async fn be_pending_once() {
    let mut was_polled = false;
    std::future::poll_fn(|_| match std::mem::replace(&mut was_polled, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}
