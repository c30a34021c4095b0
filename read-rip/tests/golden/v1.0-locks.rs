//! The program that left `v1.0-locks.ring.gz`. The expectations of `golden.rs` contain its lines, so a change here
//! needs a new golden ring.

use std::sync::mpsc::{Sender, channel};

use librip::sync::{Condvar, Mutex, RwLock};
use librip::{rip_lock_acquired, rip_lock_released, rip_lock_try_failed, rip_lock_wait};

static CACHE: Mutex<u32> = Mutex::new(0);
static ROUTES: RwLock<u32> = RwLock::new(0);
static QUEUE: Mutex<u32> = Mutex::new(0);
static WORK: Condvar = Condvar::new();
static BY_HAND: u32 = 0;
static LOST: u32 = 1;
static HANDED: u32 = 2;

/// Starts a thread and waits until it sleeps for good.
fn asleep(name: &str, body: impl FnOnce() + Send + 'static) {
    let (say, said) = channel();
    on_thread(name, say, body);
    let call = format!("/proc/self/task/{}/syscall", said.recv().unwrap());
    // A futex.
    while !std::fs::read_to_string(&call).unwrap().starts_with("202 ") {
        std::thread::yield_now();
    }
}

fn on_thread(name: &str, say: Sender<String>, body: impl FnOnce() + Send + 'static) {
    let body = move || {
        let task = std::fs::read_link("/proc/thread-self").unwrap();
        say.send(task.file_name().unwrap().to_str().unwrap().to_owned()).unwrap();
        body();
    };
    std::thread::Builder::new().name(name.into()).spawn(body).unwrap();
}

fn park() -> ! {
    loop {
        std::thread::park();
    }
}

fn main() {
    librip::init().unwrap();
    librip::rip_lock_name!(&BY_HAND, "by hand");
    asleep("keeper", || {
        let _cache = CACHE.lock().unwrap();
        rip_lock_wait!(&BY_HAND, reentrant);
        rip_lock_acquired!(&BY_HAND, reentrant);
        rip_lock_acquired!(&BY_HAND, reentrant);
        rip_lock_acquired!(&HANDED);
        park()
    });
    asleep("waiter", || drop(CACHE.lock()));
    asleep("reader", || {
        drop(ROUTES.write());
        let _routes = ROUTES.read().unwrap();
        park()
    });
    asleep("sleeper", || drop(WORK.wait(QUEUE.lock().unwrap())));
    asleep("tries", || {
        drop(CACHE.try_lock());
        rip_lock_try_failed!(&BY_HAND);
        rip_lock_wait!(&ROUTES, try_for);
        park()
    });
    std::thread::Builder::new()
        .name("gone".into())
        .spawn(|| {
            rip_lock_acquired!(&LOST, exclusive);
            librip::rip_progress!("gone");
        })
        .unwrap()
        .join()
        .unwrap();
    rip_lock_released!(&HANDED);
    std::process::abort();
}
