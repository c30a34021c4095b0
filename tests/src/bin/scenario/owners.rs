//! Locks of `lock_api`, whose guards can be sent to another thread or not, and raw locks, which have no guard.

use std::sync::{Arc, mpsc};

use librip::raw::Recorded;
use lock_api::RawMutex as _;

use crate::stage::{Meeting, Scenario, actor, leaked, park};

pub(crate) const ALL: &[Scenario] = &[
    ("circle-of-parking-lot", || circle::<parking_lot::RawMutex>()),
    ("circle-of-sendable-guards", || circle::<Sendable>()),
    ("waits-for-its-own-parking-lot", waits_for_its_own),
    ("guard-sent-away", guard_sent_away),
    ("guard-sent-away-and-exited", guard_sent_away_and_exited),
    ("guards-sent-around", guards_sent_around),
    ("raw-circle", raw_circle),
    ("raw-circle-after-a-hand-over", raw_circle_after_a_hand_over),
];

type Mutex<R> = lock_api::Mutex<Recorded<R>, u64>;

/// `parking_lot`'s raw mutex with its feature `send_guard`.
struct Sendable(parking_lot::RawMutex);

#[allow(unsafe_code, reason = "the trait is unsafe")]
// SAFETY: every method does what the inner lock's method does.
unsafe impl lock_api::RawMutex for Sendable {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait has it so")]
    const INIT: Sendable = Sendable(parking_lot::RawMutex::INIT);
    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        self.0.lock();
    }
    fn try_lock(&self) -> bool {
        self.0.try_lock()
    }
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds it.
        unsafe { self.0.unlock() };
    }
}

/// Two threads that wait for each other.
fn circle<R: lock_api::RawMutex + Send + Sync + 'static>() {
    let locks: &'static [Mutex<R>; 2] = leaked([Mutex::new(0), Mutex::new(0)]);
    let halfway = leaked(Meeting::new(2));
    let actors = [("saver", 0, 1), ("spender", 1, 0)].map(|(name, from, to)| {
        actor(name, move || {
            let _from = locks[from].lock();
            halfway.wait();
            let _to = locks[to].lock();
        })
    });
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
}

fn waits_for_its_own() {
    static CACHE: Mutex<parking_lot::RawMutex> = Mutex::new(0);
    drop(
        actor("twice", || {
            let _outer = CACHE.lock();
            let _inner = CACHE.lock();
        })
        .until_blocked(),
    );
}

/// A thread sends the guard of one lock away and waits for another one. The owner of that waits for the first lock. The
/// thread that has the guard could drop it, and all would go on.
fn guard_sent_away() {
    let sent: Arc<Mutex<Sendable>> = Arc::new(Mutex::new(0));
    let other: &'static Mutex<Sendable> = leaked(Mutex::new(0));
    let (say, said) = mpsc::channel();
    let (both, lock) = (leaked(Meeting::new(2)), Arc::clone(&sent));
    let sender = actor("sender", move || {
        say.send(lock.lock_arc()).unwrap();
        both.wait();
        drop(other.lock());
    });
    let waiter = actor("waiter", move || {
        let _other = other.lock();
        both.wait();
        drop(sent.lock());
    });
    drop((sender.until_blocked(), waiter.until_blocked()));
    drop(actor("has the guard", move || {
        let _guard = said.recv().unwrap();
        park()
    }));
}

/// A thread sends its guard away and exits.
fn guard_sent_away_and_exited() {
    let sent: Arc<Mutex<Sendable>> = Arc::new(Mutex::new(0));
    let (say, said) = mpsc::channel();
    let lock = Arc::clone(&sent);
    actor("sender", move || say.send(lock.lock_arc()).unwrap()).until_ended();
    drop(actor("waiter", move || drop(sent.lock())).until_blocked());
    drop(actor("has the guard", move || {
        let _guard = said.recv().unwrap();
        park()
    }));
}

/// Guards that go from thread to thread, and are dropped at the end.
fn guards_sent_around() {
    let locks: &'static [Arc<Mutex<Sendable>>] = Vec::leak((0..4).map(|_| Arc::new(Mutex::new(0))).collect());
    for round in 0..200 {
        let guard = locks[round % locks.len()].lock_arc();
        let (say, said) = mpsc::channel();
        say.send(guard).unwrap();
        actor("drops", move || drop(said.recv().unwrap())).until_ended();
    }
}

/// Two threads in a circle of raw locks.
fn raw_circle() {
    static LOCKS: [Recorded<parking_lot::RawMutex>; 2] =
        [const { Recorded::new(parking_lot::RawMutex::INIT) }; 2];
    raw_circle_of(&LOCKS);
}

fn raw_circle_of(locks: &'static [Recorded<parking_lot::RawMutex>; 2]) {
    let halfway = leaked(Meeting::new(2));
    let actors = [("saver", 0, 1), ("spender", 1, 0)].map(|(name, from, to): (_, usize, usize)| {
        actor(name, move || {
            locks[from].lock();
            halfway.wait();
            locks[to].lock();
        })
    });
    actors.into_iter().for_each(|actor| drop(actor.until_blocked()));
}

/// The same after another thread has released one of the locks. Nothing else says that they have no guards.
fn raw_circle_after_a_hand_over() {
    static LOCKS: [Recorded<parking_lot::RawMutex>; 2] = [Recorded::INIT; 2];
    actor("takes", || LOCKS[0].lock()).until_ended();
    #[allow(unsafe_code, reason = "any thread may unlock this lock")]
    // SAFETY: it is locked, and its owner has ended.
    actor("gives", || unsafe { LOCKS[0].unlock() }).until_ended();
    raw_circle_of(&LOCKS);
}
