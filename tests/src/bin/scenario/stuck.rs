//! Locks that are never released, threads that pile up, and states that only look like it.

#![allow(unsafe_code, reason = "fork")]

use std::mem;
use std::sync::mpsc;

use librip::rip_snap;
use librip::sync::{Condvar, Mutex};

use crate::stage::{Scenario, actor, park, say};

pub(crate) const ALL: &[Scenario] = &[
    ("exited-with-the-lock", exited_with_the_lock),
    ("exited-without-a-lock", exited_without_a_lock),
    ("held-long", held_long),
    ("holder-missing-in-the-child", lost_in_the_child),
    ("child-has-its-own-lock", child_has_its_own),
    ("child-waits-for-its-own-lock", child_waits_for_its_own),
    ("destroyed-while-held", destroyed_while_held),
    ("pile-up", pile_up),
    ("holder-long-overwritten", long_overwritten),
    ("idle-pool", idle_pool),
    ("forgotten-and-moved", forgotten_and_moved),
];

static CACHE: Mutex<i64> = Mutex::new(0);

fn exited_with_the_lock() {
    actor("forgetful", || mem::forget(CACHE.lock().unwrap())).until_ended();
    for name in ["waiter 1", "waiter 2"] {
        drop(actor(name, || drop(CACHE.lock().unwrap())).until_blocked());
    }
}

fn exited_without_a_lock() {
    actor("tidy", || drop(CACHE.lock().unwrap())).until_ended();
    drop(CACHE.lock().unwrap());
}

/// A thread keeps a lock and does something else forever. No thread waits for it yet.
fn held_long() {
    drop(
        actor("keeper", || {
            let _cache = CACHE.lock().unwrap();
            park()
        })
        .until_blocked(),
    );
}

/// A thread of the parent holds the lock at the fork. That thread does not exist in the child.
fn lost_in_the_child() {
    let (say_held, held) = mpsc::channel();
    drop(actor("keeper", move || {
        let _cache = CACHE.lock().unwrap();
        say_held.send(()).unwrap();
        park()
    }));
    held.recv().unwrap();
    fork_and_lock();
}

/// The forking thread holds the lock, and its copy in the child holds it too: it may release and acquire it.
fn child_has_its_own() {
    let cache = CACHE.lock().unwrap();
    // SAFETY: the child continues in ordinary code; it is the image of the only thread that allocates now.
    if unsafe { libc::fork() } == 0 {
        drop(cache);
        drop(CACHE.lock().unwrap());
        say("ready");
        park();
    }
    park()
}

/// The forking thread holds the lock. Its copy in the child holds it too, and waits for it.
fn child_waits_for_its_own() {
    mem::forget(CACHE.lock().unwrap());
    fork_and_lock()
}

fn fork_and_lock() -> ! {
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(CACHE.lock().unwrap());
        park();
    }
    let call = format!("/proc/{child}/syscall");
    let futex = format!("{} ", libc::SYS_futex);
    while !std::fs::read_to_string(&call).unwrap().starts_with(&futex) {
        std::thread::yield_now();
    }
    say("ready");
    park()
}

fn destroyed_while_held() {
    drop(
        actor("careless", || {
            let lock = Box::new(Mutex::new(0));
            lock.set_name("the lost one");
            mem::forget(lock.lock().unwrap());
            drop(lock);
            park()
        })
        .until_blocked(),
    );
}

/// A thread holds a lock and waits for an answer that never comes. Twenty other threads wait for the lock.
fn pile_up() {
    let (say_held, held) = mpsc::channel();
    let keeper = actor("asks the backend", move || {
        let _cache = CACHE.lock().unwrap();
        say_held.send(()).unwrap();
        rip_snap!("asks the backend");
        park()
    });
    held.recv().unwrap();
    drop(keeper.until_blocked());
    for index in 0..20 {
        drop(actor(&format!("waiter {index}"), || drop(CACHE.lock().unwrap())).until_blocked());
    }
}

/// A thread acquired a lock a million marks ago and still works. Another thread waits for it.
fn long_overwritten() {
    let (say_held, held) = mpsc::channel();
    let keeper = actor("keeper", move || {
        let _cache = CACHE.lock().unwrap();
        for _ in 0..1_000_000 {
            rip_snap!("works");
        }
        say_held.send(()).unwrap();
        park()
    });
    held.recv().unwrap();
    drop(keeper.until_blocked());
    drop(actor("waiter", || drop(CACHE.lock().unwrap())).until_blocked());
}

/// A guard is forgotten and its mutex is moved. Another mutex is then at the same address. That mutex was not acquired
/// twice.
fn forgotten_and_moved() {
    #[inline(never)]
    fn used(forget: bool) -> Mutex<i64> {
        let lock = std::hint::black_box(Mutex::new(0));
        let guard = lock.lock();
        if forget {
            mem::forget(guard);
        } else {
            drop(guard);
        }
        lock
    }
    let kept = [used(true), used(false), used(false)];
    std::hint::black_box(&kept);
    crate::stage::ready()
}

/// Twenty threads wait for work: an idle pool.
fn idle_pool() {
    static QUEUE: Mutex<Vec<i64>> = Mutex::new(Vec::new());
    static WORK: Condvar = Condvar::new();
    for index in 0..20 {
        drop(
            actor(&format!("worker {index}"), || {
                let mut queue = QUEUE.lock().unwrap();
                while queue.is_empty() {
                    queue = WORK.wait(queue).unwrap();
                }
            })
            .until_blocked(),
        );
    }
}
