//! Locks with marks by hand: the same bugs, and misuse that wrappers do not allow.

use std::sync::mpsc;

use librip::{rip_lock_acquired, rip_lock_name, rip_lock_released, rip_lock_wait, rip_snap};

use crate::stage::{Meeting, Scenario, actor, leaked, park};

pub(crate) const ALL: &[Scenario] = &[
    ("cycle-by-hand", cycle),
    ("handed-over", handed_over),
    ("reentrant", reentrant),
    ("unlock-without-lock", unlock_without_lock),
    ("locked-twice", locked_twice),
    ("three-snaps", three_snaps),
    ("waits-and-sleeps", waits_and_sleeps),
];

/// A lock that does not lock: only its marks count.
static SAVINGS: u64 = 0;
static CURRENT: u64 = 0x10;

fn cycle() {
    let halfway = leaked(Meeting::new(2));
    let actors = [("saver", &CURRENT, &SAVINGS), ("spender", &SAVINGS, &CURRENT)].map(|(name, from, to)| {
        actor(name, move || {
            rip_lock_wait!(from);
            rip_lock_acquired!(from);
            halfway.wait();
            rip_lock_wait!(to);
            park()
        })
    });
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
    drop(actor("last", park_after_mark).until_blocked());
    rip_lock_name!(&SAVINGS, "savings");
}

/// A thread says that it waits for a lock, and does something else.
fn waits_and_sleeps() {
    let (say, said) = mpsc::channel();
    drop(actor("holder", move || {
        rip_lock_acquired!(&SAVINGS);
        say.send(()).unwrap();
        park()
    }));
    said.recv().unwrap();
    let (say, said) = mpsc::channel();
    drop(actor("sleeper", move || {
        rip_lock_wait!(&SAVINGS);
        say.send(()).unwrap();
        loop {
            std::thread::sleep(std::time::Duration::from_secs(3600));
        }
    }));
    said.recv().unwrap();
}

fn park_after_mark() {
    rip_snap!("idle");
    park()
}

/// One thread acquires the lock and another one releases it: it has no holder.
fn handed_over() {
    let (hand, take) = mpsc::channel();
    drop(actor("takes", move || {
        rip_lock_wait!(&SAVINGS);
        rip_lock_acquired!(&SAVINGS);
        hand.send(()).unwrap();
        park()
    }));
    let (say, said) = mpsc::channel();
    drop(actor("releases", move || {
        take.recv().unwrap();
        rip_lock_released!(&SAVINGS);
        say.send(()).unwrap();
        park()
    }));
    said.recv().unwrap();
}

/// A reentrant lock, acquired three times and released three times; then once more.
fn reentrant() {
    drop(
        actor("again and again", || {
            for _ in 0..3 {
                rip_lock_wait!(&SAVINGS, reentrant);
                rip_lock_acquired!(&SAVINGS, reentrant);
            }
            for _ in 0..3 {
                rip_lock_released!(&SAVINGS, reentrant);
            }
            rip_lock_acquired!(&SAVINGS, reentrant);
            rip_lock_released!(&SAVINGS, reentrant);
            park()
        })
        .until_blocked(),
    );
}

fn unlock_without_lock() {
    drop(
        actor("confused", || {
            rip_lock_acquired!(&SAVINGS);
            rip_lock_released!(&SAVINGS);
            rip_lock_released!(&SAVINGS);
            park()
        })
        .until_blocked(),
    );
}

fn locked_twice() {
    drop(
        actor("confused", || {
            rip_lock_acquired!(&SAVINGS);
            rip_lock_acquired!(&SAVINGS);
            park()
        })
        .until_blocked(),
    );
}

/// The pattern of plain marks, without lock marks: one before and one after the acquisition, on one line, and one after
/// the release, on another line. One thread holds the lock, ten threads wait for it.
fn three_snaps() {
    let lock = leaked(std::sync::Mutex::new(0u64));
    #[rustfmt::skip]
    fn locked(lock: &'static std::sync::Mutex<u64>, body: impl FnOnce()) {
        rip_snap!(); let guard = lock.lock().unwrap(); rip_snap!();
        body();
        drop(guard);
        rip_snap!();
    }
    for name in ["learns 1", "learns 2"] {
        actor(name, || locked(lock, || ())).until_ended();
    }
    let (say, said) = mpsc::channel();
    drop(actor("keeper", move || {
        locked(lock, || {
            say.send(()).unwrap();
            park()
        });
    }));
    said.recv().unwrap();
    for index in 0..10 {
        drop(actor(&format!("waiter {index}"), || locked(lock, || ())).until_blocked());
    }
}
