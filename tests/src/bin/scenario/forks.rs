//! Locks and forks: the locks that a child inherits from its parent, and what the end of the child means.

#![allow(unsafe_code, reason = "fork")]

use std::process;

use librip::sync::{Mutex, RwLock};

use crate::stage::{Scenario, park, ready, say};

pub(crate) const ALL: &[Scenario] = &[
    ("child-exits-with-its-parents-lock", exits_with_the_parents_lock),
    ("child-exits-with-its-own-lock", exits_with_its_own_lock),
    ("child-is-killed-in-a-circle", killed_in_a_circle),
    ("child-inherits-with-a-hole", inherits_with_a_hole),
    ("child-inherits-two-shares", inherits_two_shares),
];

static LOCKS: [Mutex<u32>; 4] = [const { Mutex::new(0) }; 4];

/// Runs `body` in a child, and returns its pid in the parent.
fn child(body: impl FnOnce()) -> i32 {
    // SAFETY: the child is the image of the only thread that allocates now.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        body();
        park();
    }
    pid
}

fn reap(pid: i32) {
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
}

fn exits_with_the_parents_lock() {
    let guard = LOCKS[0].lock();
    reap(child(|| process::exit(0)));
    drop(guard);
}

fn exits_with_its_own_lock() {
    reap(child(|| {
        let _guard = LOCKS[0].lock();
        process::exit(0)
    }));
}

/// The child waits for a lock that it holds, and is killed. Its deadlock ends with it.
fn killed_in_a_circle() {
    let pid = child(|| {
        let _outer = LOCKS[0].lock();
        let _inner = LOCKS[0].lock();
    });
    let futex = format!("{} ", libc::SYS_futex);
    while !std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap().starts_with(&futex) {
        std::thread::yield_now();
    }
    // SAFETY: our own child, which has not been waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    reap(pid);
}

/// Of four locks the second is released before the fork; the child releases the others.
fn inherits_with_a_hole() {
    let mut guards: Vec<_> = LOCKS.iter().map(|lock| Some(lock.lock())).collect();
    guards[1] = None;
    if child_goes_on() {
        drop(guards);
        say("ready");
        park();
    }
    park()
}

fn inherits_two_shares() {
    static ROUTES: RwLock<u32> = RwLock::new(0);
    let shares = [ROUTES.read(), ROUTES.read()];
    if child_goes_on() {
        drop(shares);
        ready();
    }
    park()
}

/// Whether this is the child.
fn child_goes_on() -> bool {
    // SAFETY: as in `child`.
    unsafe { libc::fork() == 0 }
}
