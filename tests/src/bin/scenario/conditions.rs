//! Threads that wait on a condition variable and hold another lock meanwhile: stuck for certain, perhaps, and not.

use librip::raw::Recorded;
use librip::sync::{Condvar, Mutex};

use crate::stage::{Scenario, actor, say};

pub(crate) const ALL: &[Scenario] = &[
    ("cycle-through-a-condition", through_a_condition),
    ("cycle-of-three-through-a-condition", of_three),
    ("cycle-through-a-raw-condition", through_a_raw_condition),
    ("signalled-before-its-wait", signalled_before_its_wait),
    ("signalled-during-its-wait", signalled_during_its_wait),
];

static INNER: Mutex<bool> = Mutex::new(false);
static OUTER: Mutex<i64> = Mutex::new(0);
static THIRD: Mutex<i64> = Mutex::new(0);
static CHANGED: Condvar = Condvar::new();

/// Acquires the outer lock, then waits on the condition with the inner lock.
fn waits() {
    let _outer = OUTER.lock().unwrap();
    let mut inner = INNER.lock().unwrap();
    while !*inner {
        inner = CHANGED.wait(inner).unwrap();
    }
}

/// One thread waits on a condition, and keeps another lock. A second thread has the condition's lock and waits for that
/// other lock. Whoever signals, the first thread cannot return.
fn through_a_condition() {
    drop(actor("waits", waits).until_blocked());
    let needs_both = actor("needs both", || {
        let _inner = INNER.lock().unwrap();
        let _outer = OUTER.lock().unwrap();
    });
    drop(needs_both.until_blocked());
    CHANGED.notify_all();
}

/// The same with a third thread between the two.
fn of_three() {
    drop(actor("waits", waits).until_blocked());
    let between = actor("between", || {
        let _third = THIRD.lock().unwrap();
        let _outer = OUTER.lock().unwrap();
    });
    drop(between.until_blocked());
    let has_inner = actor("has the lock", || {
        let _inner = INNER.lock().unwrap();
        let _third = THIRD.lock().unwrap();
    });
    drop(has_inner.until_blocked());
}

/// The same with the mutexes of another crate, and the condition variable for those.
fn through_a_raw_condition() {
    type Lock<T> = lock_api::Mutex<Recorded<parking_lot::RawMutex>, T>;
    static INNER: Lock<bool> = Lock::new(false);
    static OUTER: Lock<i64> = Lock::new(0);
    static CHANGED: librip::raw::Condvar = librip::raw::Condvar::new();
    let waits = actor("waits", || {
        let _outer = OUTER.lock();
        let mut inner = INNER.lock();
        while !*inner {
            CHANGED.wait(&mut inner);
        }
    });
    drop(waits.until_blocked());
    let needs_both = actor("needs both", || {
        let _inner = INNER.lock();
        let _outer = OUTER.lock();
    });
    drop(needs_both.until_blocked());
}

/// A thread waits for a signal that came before. The main thread waits for its end, so nobody is left to signal again.
fn signalled_before_its_wait() {
    CHANGED.notify_one();
    let waits = actor("waits", waits).until_blocked();
    say("ready");
    waits.until_ended();
}

/// The signal came during the wait. The thread woke up, and waits again.
fn signalled_during_its_wait() {
    let waits = actor("waits", waits).until_blocked();
    CHANGED.notify_all();
    let waits = waits.until_blocked();
    say("ready");
    waits.until_ended();
}
