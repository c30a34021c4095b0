//! The program that left `v1.0-tasks.ring.gz`: a task that is suspended, with a lock and two named futures, one of which
//! waits; a task that was woken; a call that no thread runs yet; a task that has ended; and a task that is polled.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use librip::rip_snap;
use librip::task::lock::{self, MESSAGE, MUTEX};
use librip::task::{Builder, at, traced};

static LOCK: u64 = 0;
static MESSAGES: u64 = 0;

async fn waits() {
    let _held = lock::attempt::<MUTEX, _>(lock::address(&LOCK), || Some(()));
    rip_snap!("before the await");
    let mut first = pin!(at(pending::<()>())); // the first future
    poll(first.as_mut());
    at(lock::wait::<MESSAGE, _>(lock::address(&MESSAGES), pending::<()>(), true, |()| true)).await // the second one
}

fn poll(future: Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

fn main() {
    librip::init().unwrap();
    let mut suspended = pin!(Builder::new().name("suspended").runtime(7, 2).traced(waits())); // made
    assert!(!poll(suspended.as_mut()));
    let mut woken = pin!(Builder::new().name("woken").local().traced(std::future::poll_fn(|cx| {
        cx.waker().wake_by_ref();
        std::task::Poll::<()>::Pending
    })));
    assert!(!poll(woken.as_mut()) && !poll(woken.as_mut()));
    let _call = Builder::new().name("call").blocking(|| ());
    {
        let mut ended = pin!(traced(async { rip_snap!("ends") }));
        assert!(poll(ended.as_mut()));
    }
    let mut polled = pin!(Builder::new().name("polled").without_wakes().traced(async {
        rip_snap!("about to die");
        std::process::abort();
    }));
    poll(polled.as_mut());
}
