//! What nobody should do with tasks: they must neither harm the program nor what is recorded of others.

use std::future::{Future, pending, poll_fn};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use librip::sync::Arc;
use librip::task::Traced;
use librip_tokio::Task;
use tokio::runtime::Runtime;

use crate::arrivals::{Arrivals, noting};

/// Tasks that are leaked, recorded twice, moved between runtimes in the middle, woken after their end, and that panic.
pub(crate) async fn misused() {
    leaks();
    recorded_twice().await;
    moves_between_runtimes().await;
    panics().await;
    wakes_after_the_end().await;
}

/// Polls a future once, with a waker that wakes nobody.
fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn leaks() {
    for _ in 0..50 {
        let mut leaked = Box::pin(Task::new().name("leaked").traced(pending::<()>()));
        assert!(poll_once(leaked.as_mut()).is_pending());
        mem::forget(leaked);
    }
}

async fn recorded_twice() {
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    let inner = Task::new().name("inner").traced(async move { noting(pending::<()>(), &noted).await });
    Task::new().name("outer").spawn(inner);
    arrivals.wait(1).await;
}

/// Two futures are each polled once by one runtime, and go on in another one, on another thread. The first one ends
/// there, and the second one stays.
pub(crate) async fn moves_between_runtimes() {
    let moves_and_ends = first_polled_elsewhere(|| async {
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        7
    });
    let ends = thread::spawn(move || assert_eq!(runtime().block_on(moves_and_ends), 7));
    ends.join().expect("nothing panics");
    let arrivals = Arc::new(Arrivals::default());
    let noted = arrivals.clone();
    let moves = first_polled_elsewhere(|| async move {
        librip::rip_snap!("in the first runtime");
        suspended_once().await;
        librip::rip_snap!("in the second runtime");
        noting(pending::<()>(), &noted).await
    });
    thread::Builder::new()
        .name("second".into())
        .spawn(move || runtime().block_on(moves))
        .expect("threads can be started");
    arrivals.wait(1).await;
}

/// A runtime of the calling thread.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("it needs no thread")
}

/// Makes a task within a runtime that ends, and polls it there once.
fn first_polled_elsewhere<F: Future + Send + 'static>(
    future: impl FnOnce() -> F + Send + 'static,
) -> Pin<Box<Traced<F>>>
where
    F::Output: Send,
{
    let begins = thread::spawn(move || {
        let runtime = runtime();
        let within = runtime.enter();
        let mut moved = Box::pin(Task::new().name("moved").traced(future()));
        drop(within);
        runtime.block_on(poll_fn(|cx| {
            assert!(moved.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        }));
        moved
    });
    begins.join().expect("nothing panics")
}

/// Returns at its first poll, and wakes nobody.
async fn suspended_once() {
    let mut is_first = true;
    poll_fn(|_| if mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }).await;
}

async fn panics() {
    std::panic::set_hook(Box::new(|_| {}));
    for _ in 0..50 {
        let panics = Task::new().name("panics").spawn(async { panic!("a task may do that") });
        assert!(panics.await.unwrap_err().is_panic());
    }
    drop(std::panic::take_hook());
}

/// The wakers of tasks that have ended wake while other tasks have their slots.
async fn wakes_after_the_end() {
    let mut wakers: Vec<Waker> = Vec::new();
    // More than the slots that are kept after their tasks have ended.
    for _ in 0..3000 {
        let kept = Arc::new(std::sync::Mutex::new(None));
        let keeps = kept.clone();
        let task = Task::new().name("ended").spawn(async move {
            poll_fn(|cx| {
                *keeps.lock().unwrap() = Some(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
        });
        task.await.expect("it does not panic");
        wakers.extend(kept.lock().unwrap().take());
    }
    let arrivals = Arc::new(Arrivals::default());
    for _ in 0..50 {
        let noted = arrivals.clone();
        Task::new().name("fresh").spawn(async move { noting(pending::<()>(), &noted).await });
    }
    arrivals.wait(50).await;
    for waker in &wakers {
        waker.wake_by_ref();
    }
}
