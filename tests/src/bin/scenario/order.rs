//! Locks acquired in different orders, with no thread stuck: inversions, and what looks like them.

use std::sync::Arc;

use librip::sync::Mutex;

use crate::stage::{Scenario, actor, park};

pub(crate) const ALL: &[Scenario] = &[
    ("inversion", inversion),
    ("inversion-of-three", inversion_of_three),
    ("inversion-under-a-gate", gate),
    ("inversion-in-one-thread", || one_thread("worker 1")),
    ("inversion-in-the-only-thread-of-its-kind", || one_thread("alone")),
    ("inversion-in-one-thread-under-a-gate", one_thread_under_a_gate),
    ("inversion-in-one-thread-by-trying", one_thread_trying),
    ("inversion-by-trying", trying),
    ("address-used-again", address_used_again),
    ("inversion-before-the-threads", before_the_threads),
    ("inversion-one-after-the-other", one_after_the_other),
];

/// Acquires the first lock, then the second, on a new thread that stays alive.
fn in_order(name: &str, locks: &[&'static Mutex<i64>]) {
    let locks = locks.to_vec();
    let taken = actor(name, move || {
        let guards: Vec<_> = locks.iter().map(|lock| lock.lock().unwrap()).collect();
        drop(guards);
        park()
    });
    drop(taken.until_blocked());
}

/// The main thread uses both locks before there is another thread.
fn before_the_threads() {
    drop((CURRENT.lock().unwrap(), SAVINGS.lock().unwrap()));
    in_order("spender", &[&SAVINGS, &CURRENT]);
}

/// One thread has ended before the other one is started.
fn one_after_the_other() {
    actor("saver", || drop((CURRENT.lock().unwrap(), SAVINGS.lock().unwrap()))).until_ended();
    in_order("spender", &[&SAVINGS, &CURRENT]);
}

static SAVINGS: Mutex<i64> = Mutex::new(0);
static CURRENT: Mutex<i64> = Mutex::new(0);
static JOURNAL: Mutex<i64> = Mutex::new(0);

/// The threads run one after the other, so none gets stuck. In another run they might.
fn inversion() {
    in_order("saver", &[&CURRENT, &SAVINGS]);
    in_order("spender", &[&SAVINGS, &CURRENT]);
}

fn inversion_of_three() {
    in_order("one", &[&CURRENT, &SAVINGS]);
    in_order("two", &[&SAVINGS, &JOURNAL]);
    in_order("three", &[&JOURNAL, &CURRENT]);
}

/// Both orders, but always under the lock of the journal: only one thread at a time acquires them.
fn gate() {
    in_order("saver", &[&JOURNAL, &CURRENT, &SAVINGS]);
    in_order("spender", &[&JOURNAL, &SAVINGS, &CURRENT]);
}

/// Both orders in one thread, always under the lock of the journal.
fn one_thread_under_a_gate() {
    drop(
        actor("alone", || {
            for (first, second) in [(&CURRENT, &SAVINGS), (&SAVINGS, &CURRENT)] {
                let journal = JOURNAL.lock().unwrap();
                let first = first.lock().unwrap();
                drop(second.lock().unwrap());
                drop((first, journal));
            }
            park()
        })
        .until_blocked(),
    );
}

/// Both orders in one thread. One of them handles the failure of a try.
fn one_thread_trying() {
    drop(
        actor("alone", || {
            let current = CURRENT.lock().unwrap();
            drop(SAVINGS.lock().unwrap());
            drop(current);
            let savings = SAVINGS.lock().unwrap();
            drop(CURRENT.try_lock().unwrap());
            drop(savings);
            park()
        })
        .until_blocked(),
    );
}

/// Both orders in one thread, which cannot wait for itself this way. Two such threads can: a second worker uses both
/// locks too.
fn one_thread(name: &str) {
    drop(
        actor("worker 2", || {
            drop(CURRENT.lock().unwrap());
            drop(SAVINGS.lock().unwrap());
            park()
        })
        .until_blocked(),
    );
    drop(
        actor(name, || {
            for (first, second) in [(&CURRENT, &SAVINGS), (&SAVINGS, &CURRENT)] {
                let first = first.lock().unwrap();
                drop(second.lock().unwrap());
                drop(first);
            }
            park()
        })
        .until_blocked(),
    );
}

/// The other order uses `try_lock`, and handles its failure.
fn trying() {
    in_order("saver", &[&CURRENT, &SAVINGS]);
    drop(
        actor("spender", || {
            let savings = SAVINGS.lock().unwrap();
            drop(CURRENT.try_lock().unwrap());
            drop(savings);
            park()
        })
        .until_blocked(),
    );
}

/// A lock is dropped, and a new one is at the same address. The order with the old lock is "current, then this", with
/// the new lock "this, then current": two locks, no inversion.
fn address_used_again() {
    struct Place(std::cell::UnsafeCell<Option<Mutex<i64>>>);
    // SAFETY: the threads below take turns: each is started after the one before has let go.
    #[allow(unsafe_code, reason = "a lock is destroyed and another one is made at its address")]
    unsafe impl Sync for Place {}
    let cell = Arc::new(Place(std::cell::UnsafeCell::new(None)));
    #[allow(unsafe_code, reason = "as above")]
    let set = |lock| {
        // SAFETY: no other thread uses the cell now.
        unsafe { *cell.0.get() = lock };
    };
    #[allow(unsafe_code, reason = "as above")]
    let turn = |name: &str, body: fn(&Mutex<i64>)| {
        let cell = Arc::clone(&cell);
        drop(
            actor(name, move || {
                // SAFETY: it is set before the thread is started, and not changed before the thread is parked.
                body(unsafe { (*cell.0.get()).as_ref() }.unwrap());
                park()
            })
            .until_blocked(),
        );
    };
    set(Some(Mutex::new(1)));
    turn("saver", |old| {
        let current = CURRENT.lock().unwrap();
        drop(old.lock().unwrap());
        drop(current);
    });
    set(None);
    set(Some(Mutex::new(2)));
    turn("spender", |new| {
        let new = new.lock().unwrap();
        drop(CURRENT.lock().unwrap());
        drop(new);
    });
}
