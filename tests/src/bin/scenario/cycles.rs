//! Threads that wait for one another in a circle.

use librip::sync::{Mutex, RwLock};

use crate::stage::{Actor, Meeting, Scenario, actor, leaked, park, say};

pub(crate) const ALL: &[Scenario] = &[
    ("cycle-2", || mutexes(2)),
    ("cycle-3", || mutexes(3)),
    ("cycle-50", || mutexes(50)),
    ("cycle-with-queue", with_queue),
    ("cycle-in-a-crowd", in_a_crowd),
    ("cycle-of-mutex-and-rwlock", mutex_and_rwlock),
    ("self-deadlock", self_deadlock),
    ("cycle-with-forty-locks", with_forty_locks),
];

/// Each of `count` threads has a mutex and waits for the next one's.
fn mutexes(count: usize) {
    let locks: &'static [Mutex<usize>] = (0..count).map(Mutex::new).collect::<Vec<_>>().leak();
    for (index, lock) in locks.iter().enumerate() {
        lock.set_name(&format!("fork {index}"));
    }
    let all_have_one = leaked(Meeting::new(count));
    let actors: Vec<Actor> = (0..count)
        .map(|index| {
            actor(&format!("philosopher {index}"), move || {
                let _left = locks[index].lock().unwrap();
                all_have_one.wait();
                let _right = locks[(index + 1) % count].lock().unwrap();
            })
        })
        .collect();
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
}

/// Two threads in a circle, and five threads that wait for their locks and are not part of it.
fn with_queue() {
    static SAVINGS: Mutex<i64> = Mutex::new(0);
    static CURRENT: Mutex<i64> = Mutex::new(0);
    let halfway = leaked(Meeting::new(2));
    let saver = actor("saver", || {
        let _from = CURRENT.lock().unwrap();
        halfway.wait();
        let _to = SAVINGS.lock().unwrap();
    });
    let spender = actor("spender", || {
        let _from = SAVINGS.lock().unwrap();
        halfway.wait();
        let _to = CURRENT.lock().unwrap();
    });
    drop((saver.until_blocked(), spender.until_blocked()));
    for index in 0..5 {
        drop(actor(&format!("queue {index}"), || drop(SAVINGS.lock().unwrap())).until_blocked());
    }
}

/// A circle of two, and as many idle threads as the environment's `CROWD` says.
fn in_a_crowd() {
    let count: usize = std::env::var("CROWD").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let arrived = leaked(std::sync::Barrier::new(count + 1));
    for _ in 0..count {
        let body = || {
            librip::rip_snap!("idle");
            arrived.wait();
            park()
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(body).unwrap();
    }
    arrived.wait();
    mutexes(2);
}

/// Three threads, two mutexes and a lock that a reader holds.
fn mutex_and_rwlock() {
    static ACCOUNTS: Mutex<i64> = Mutex::new(0);
    static JOURNAL: Mutex<i64> = Mutex::new(0);
    static ROUTES: RwLock<i64> = RwLock::new(0);
    let all_have_one = leaked(Meeting::new(3));
    let actors = [
        actor("reader", || {
            let _routes = ROUTES.read().unwrap();
            all_have_one.wait();
            let _accounts = ACCOUNTS.lock().unwrap();
        }),
        actor("bookkeeper", || {
            let _accounts = ACCOUNTS.lock().unwrap();
            all_have_one.wait();
            let _journal = JOURNAL.lock().unwrap();
        }),
        actor("writer", || {
            let _journal = JOURNAL.lock().unwrap();
            all_have_one.wait();
            let _routes = ROUTES.write().unwrap();
        }),
    ];
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
}

/// A thread acquires a mutex that it holds.
fn self_deadlock() {
    static CACHE: Mutex<i64> = Mutex::new(0);
    drop(
        actor("twice", || {
            let _outer = CACHE.lock().unwrap();
            say("has it");
            let _inner = CACHE.lock().unwrap();
        })
        .until_blocked(),
    );
}

/// Two threads, one of which holds more locks than its table has entries.
fn with_forty_locks() {
    static LAST: Mutex<i64> = Mutex::new(0);
    let locks: &'static [Mutex<usize>] = (0..40).map(Mutex::new).collect::<Vec<_>>().leak();
    let both = leaked(Meeting::new(2));
    let actors = [
        actor("has forty", || {
            let _guards: Vec<_> = locks.iter().map(|lock| lock.lock().unwrap()).collect();
            both.wait();
            let _last = LAST.lock().unwrap();
        }),
        actor("has one", || {
            let _last = LAST.lock().unwrap();
            both.wait();
            let _one = locks[3].lock().unwrap();
        }),
    ];
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
}
