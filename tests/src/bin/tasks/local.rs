//! Tasks that no worker polls: the future of a `block_on`, and those of a `LocalSet`. And a driver that nobody wakes.

use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::thread;

use librip::sync::{Arc, Mutex};
use librip_tokio::Task;
use librip_tokio::sync::Notify;
use tokio::runtime::Handle;
use tokio::task::LocalSet;

use crate::arrivals::{Arrivals, noting};
use crate::locks::holds_and_blocks;

/// The future of a `block_on` holds a lock of threads while it is suspended, and all workers wait for that lock. Its
/// own thread is free to poll it.
pub(crate) async fn main_future_holds() {
    holds_a_lock_of_all_workers(|handle, main| librip_tokio::block_on(handle, main)).await;
}

/// The same of a future that the program has made a task of within a `block_on`, as with `#[tokio::main]`.
pub(crate) async fn traced_main_future_holds() {
    holds_a_lock_of_all_workers(|handle, main| {
        handle.block_on(async { Task::new().name("main future").traced(main).await });
    })
    .await;
}

/// A child runs, and a signal tells of its end. It ends with this process.
pub(crate) async fn left_to_itself_and_a_child() {
    handle_ends_of_children();
    let child =
        Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("there is cat");
    left_to_itself(-1).await;
    drop(child);
}

/// A child has ended, and its signal has come. Nobody waits for it.
pub(crate) async fn left_to_itself_and_an_ended_child() {
    handle_ends_of_children();
    let child = Command::new("true").spawn().expect("there is true");
    let mut ended = std::mem::MaybeUninit::uninit();
    // SAFETY: the call writes there. The child stays one that nobody has waited for.
    unsafe { libc::waitid(libc::P_PID, child.id(), ended.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT) };
    left_to_itself(-1).await;
    drop(child);
}

fn handle_ends_of_children() {
    extern "C" fn child_has_ended(_: libc::c_int) {}
    // SAFETY: the handler does nothing.
    unsafe {
        libc::signal(libc::SIGCHLD, child_has_ended as extern "C" fn(libc::c_int) as libc::sighandler_t)
    };
}

/// A task waits for the end of another one, which never ends. The driver asks for events that nobody else brings, for
/// as long as it says.
pub(crate) async fn left_to_itself(limit_ms: i32) {
    let flusher = Task::new().name("flusher").spawn(std::future::pending::<()>());
    Task::new().name("closer").spawn(async move { flusher.await.expect("it never ends") });
    let (own, _other) = std::io::pipe().expect("there are descriptors");
    let mut awaited = libc::pollfd { fd: own.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    crate::say_ready();
    // SAFETY: one descriptor, which stays open.
    unsafe { libc::poll(&raw mut awaited, 1, limit_ms) };
}

type Main = std::pin::Pin<Box<dyn Future<Output = ()>>>;

async fn holds_a_lock_of_all_workers(block_on: fn(&Handle, Main)) {
    let lock = Arc::new(Mutex::new(0));
    lock.set_name("a lock of threads");
    let arrivals = Arc::new(Arrivals::default());
    let (handle, held, noted) = (Handle::current(), lock.clone(), arrivals.clone());
    thread::spawn(move || {
        let main = async move {
            let _guard = held.lock().unwrap_or_else(PoisonError::into_inner);
            noting(Notify::new().notified(), &noted).await;
        };
        block_on(&handle, Box::pin(main));
    });
    arrivals.wait(1).await;
    for _ in 0..2 {
        let (lock, arrivals) = (lock.clone(), arrivals.clone());
        Task::new().name("blocks").spawn(async move {
            arrivals.arrive();
            *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        });
    }
    arrivals.wait(3).await;
}

/// A task of a `LocalSet` holds a lock of threads while it is suspended, and another one of the set waits for that
/// lock, and so keeps the only thread that polls both.
pub(crate) async fn lock_in_a_local_set() {
    let arrivals = Arc::new(Arrivals::default());
    let (handle, noted) = (Handle::current(), arrivals.clone());
    thread::spawn(move || {
        let set = LocalSet::new();
        handle.block_on(set.run_until(async {
            let (holds, blocks) = holds_and_blocks(noted);
            Task::new().name("holder").spawn_local(holds);
            Task::new().name("blocks").spawn_local(blocks);
            std::future::pending::<()>().await;
        }));
    });
    arrivals.wait_beside_others(2).await;
}
