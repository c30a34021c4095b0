//! Readers and writers, stuck and not.

use std::sync::mpsc;

use librip::raw::Recorded;
use librip::sync::{Mutex, RwLock};
use librip::{rip_lock_acquired, rip_lock_wait};

use crate::stage::{Meeting, Scenario, actor, leaked, park, settle};

pub(crate) const ALL: &[Scenario] = &[
    ("readers-after-a-queued-writer", queued_writer),
    ("reader-preferring-lock", reader_preferring),
    ("two-upgrades", two_upgrades),
    ("reads-and-writes-alone", upgrade_alone),
    ("readers-only", readers_only),
    ("upgradable-readers", upgradable_readers),
    ("reads-twice", reads_twice),
    ("reads-twice-beside-a-writer", || beside_a_writer(reads_twice_normally)),
    ("reads-twice-recursively-beside-a-writer", || beside_a_writer(reads_twice_recursively)),
];

/// A reader waits for a mutex. The owner of the mutex wants to read too, but a writer waits before it. Readers of the
/// standard library's lock do not overtake a waiting writer: a circle of three.
fn queued_writer() {
    static ROUTES: RwLock<i64> = RwLock::new(0);
    static STATS: Mutex<i64> = Mutex::new(0);
    let (both, go) = (leaked(Meeting::new(2)), leaked(Meeting::new(2)));
    let first = actor("first reader", || {
        let _routes = ROUTES.read().unwrap();
        both.wait();
        let _stats = STATS.lock().unwrap();
    });
    let second = actor("second reader", || {
        let _stats = STATS.lock().unwrap();
        both.wait();
        go.wait();
        let _routes = ROUTES.read().unwrap();
    });
    drop(first.until_blocked());
    drop(actor("writer", || drop(ROUTES.write().unwrap())).until_blocked());
    go.wait();
    drop(second.until_blocked());
    settle();
}

/// The same with a lock whose readers overtake waiting writers, with marks by hand. The second reader gets the lock.
/// Only the writer waits, for readers that keep the lock for long.
fn reader_preferring() {
    static ROUTES: i64 = 0;
    let waits = actor("writer", || {
        rip_lock_wait!(&ROUTES, readers_first);
        park()
    });
    for name in ["first reader", "second reader"] {
        drop(
            actor(name, || {
                rip_lock_wait!(&ROUTES, shared, readers_first);
                rip_lock_acquired!(&ROUTES, shared, readers_first);
                park()
            })
            .until_blocked(),
        );
    }
    drop(waits.until_blocked());
}

/// Two readers that both want to write. Each waits for the other to stop reading.
fn two_upgrades() {
    static CACHE: RwLock<i64> = RwLock::new(0);
    let both = leaked(Meeting::new(2));
    let upgrade = |name| {
        actor(name, || {
            let _read = CACHE.read().unwrap();
            both.wait();
            let _write = CACHE.write().unwrap();
        })
    };
    let actors = [upgrade("one"), upgrade("other")];
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
}

/// One reader that wants to write, and waits for itself.
fn upgrade_alone() {
    static CACHE: RwLock<i64> = RwLock::new(0);
    drop(
        actor("upgrades", || {
            let _read = CACHE.read().unwrap();
            let _write = CACHE.write().unwrap();
        })
        .until_blocked(),
    );
}

/// Two upgradable readers, each with one lock and waiting for the other's. A lock admits only one upgradable reader.
fn upgradable_readers() {
    type Lock = lock_api::RwLock<Recorded<parking_lot::RawRwLock>, i64>;
    static ROUTES: Lock = Lock::new(0);
    static USERS: Lock = Lock::new(0);
    let both = leaked(Meeting::new(2));
    let actors = [("one", &ROUTES, &USERS), ("other", &USERS, &ROUTES)].map(|(name, first, second)| {
        actor(name, move || {
            let _first = first.upgradable_read();
            both.wait();
            let _second = second.upgradable_read();
        })
    });
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
}

/// Readers take two locks in both orders. No writer ever comes.
fn readers_only() {
    static ROUTES: RwLock<i64> = RwLock::new(0);
    static USERS: RwLock<i64> = RwLock::new(0);
    let both = leaked(Meeting::new(2));
    let readers = [("one", &ROUTES, &USERS), ("other", &USERS, &ROUTES)].map(|(name, first, second)| {
        actor(name, move || {
            let first = first.read().unwrap();
            both.wait();
            drop(second.read().unwrap());
            drop(first);
            park()
        })
    });
    readers.into_iter().for_each(|reader| drop(reader.until_blocked()));
    drop(
        actor("last", || {
            drop(ROUTES.read().unwrap());
            park()
        })
        .until_blocked(),
    );
}

/// A reader acquires a lock that it already reads. No other thread uses the lock.
fn reads_twice() {
    static ROUTES: RwLock<i64> = RwLock::new(0);
    let (say, said) = mpsc::channel();
    drop(actor("reads twice", move || {
        let outer = ROUTES.read().unwrap();
        drop(ROUTES.read().unwrap());
        drop(outer);
        say.send(()).unwrap();
        park()
    }));
    said.recv().unwrap();
}

static TABLE: lock_api::RwLock<Recorded<parking_lot::RawRwLock>, i64> = lock_api::RwLock::new(0);

fn reads_twice_normally() {
    let outer = TABLE.read();
    drop(TABLE.read());
    drop(outer);
}

/// The inner read says that it passes waiting writers.
fn reads_twice_recursively() {
    let outer = TABLE.read();
    drop(TABLE.read_recursive());
    drop(outer);
}

/// A writer, and after it a reader that acquires the lock a second time. In another run the writer comes in between.
fn beside_a_writer(reads: fn()) {
    drop(
        actor("writer", || {
            *TABLE.write() += 1;
            park()
        })
        .until_blocked(),
    );
    drop(
        actor("reader", move || {
            reads();
            park()
        })
        .until_blocked(),
    );
}
