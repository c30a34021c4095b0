//! Threads that are started by `librip::thread`, and what they wait for besides locks.

use librip::sync::Mutex;
use librip::thread::{self, Builder};

use crate::stage::{Scenario, actor, park, until_waits};

pub(crate) const ALL: &[Scenario] = &[
    ("recorded-join-under-a-lock", join_under_a_lock),
    ("scope-under-a-lock", scope_under_a_lock),
    ("scope-of-scopes", scope_of_scopes),
    ("recorded-join-of-an-idle-thread", join_of_an_idle_thread),
    ("opposite-orders-around-a-join", opposite_orders_around_a_join),
];

static ACCOUNTS: Mutex<i64> = Mutex::new(0);
static JOURNAL: Mutex<i64> = Mutex::new(0);

fn named(name: &str) -> Builder {
    Builder::new().name(name.to_owned())
}

/// A thread joins another one, which wants a lock that the first one has.
fn join_under_a_lock() {
    let joiner = actor("joiner", || {
        let accounts = ACCOUNTS.lock().unwrap();
        named("closer").spawn(|| drop(ACCOUNTS.lock().unwrap())).unwrap().join().unwrap();
        drop(accounts);
    });
    // The closer has begun, so the joiner sleeps nowhere else but in the join.
    until_waits("closer");
    drop(joiner.until_blocked());
}

/// A thread has a lock at the end of a scope, and one of the scope's threads wants it.
fn scope_under_a_lock() {
    let owner = actor("owner", || {
        let accounts = ACCOUNTS.lock().unwrap();
        thread::scope(|scope| {
            named("closer").spawn_scoped(scope, || drop(ACCOUNTS.lock().unwrap())).unwrap();
            scope.spawn(|| ()).join().unwrap();
        });
        drop(accounts);
    });
    until_waits("closer");
    drop(owner.until_blocked());
}

/// The same, but a thread of the scope has started the one that wants the lock, and has ended.
fn scope_of_scopes() {
    let owner = actor("owner", || {
        let accounts = ACCOUNTS.lock().unwrap();
        thread::scope(|scope| {
            scope.spawn(move || {
                named("closer").spawn_scoped(scope, || drop(ACCOUNTS.lock().unwrap())).unwrap();
            });
        });
        drop(accounts);
    });
    until_waits("closer");
    drop(owner.until_blocked());
}

/// A thread joins one that waits to be woken.
fn join_of_an_idle_thread() {
    let joiner = actor("joiner", || {
        *ACCOUNTS.lock().unwrap() += 1;
        named("idle").spawn(|| thread::park()).unwrap().join().unwrap();
    });
    until_waits("idle");
    drop(joiner.until_blocked());
}

/// A thread takes two locks in one order before it starts two threads, and in that order after it has joined them. They
/// take the locks in the opposite order.
fn opposite_orders_around_a_join() {
    let both = |first: &'static Mutex<i64>, second: &'static Mutex<i64>| {
        let _first = first.lock().unwrap();
        drop(second.lock().unwrap());
    };
    // Not the main thread, of which more is known.
    let owner = actor("owner", move || {
        both(&ACCOUNTS, &JOURNAL);
        named("saver").spawn(move || both(&JOURNAL, &ACCOUNTS)).unwrap().join().unwrap();
        thread::scope(|scope| {
            named("spender").spawn_scoped(scope, || both(&JOURNAL, &ACCOUNTS)).unwrap().join().unwrap();
        });
        both(&ACCOUNTS, &JOURNAL);
        park()
    });
    drop(owner.until_blocked());
}
