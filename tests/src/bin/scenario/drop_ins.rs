//! Threads that are started by `librip::thread`, and what they wait for besides locks.

use librip::sync::{LazyLock, Mutex, Once, OnceLock};
use librip::thread::{self, Builder};

use crate::stage::{Scenario, actor, park, until_left, until_waits};

pub(crate) const ALL: &[Scenario] = &[
    ("recorded-join-under-a-lock", join_under_a_lock),
    ("scope-under-a-lock", scope_under_a_lock),
    ("scope-of-scopes", scope_of_scopes),
    ("recorded-join-of-an-idle-thread", join_of_an_idle_thread),
    ("opposite-orders-around-a-join", opposite_orders_around_a_join),
    ("once-lock-that-needs-itself", once_lock_that_needs_itself),
    ("once-lock-that-joins-its-user", once_lock_that_joins_its_user),
    ("lazy-lock-that-needs-a-lock-of-its-user", lazy_lock_that_needs_a_lock_of_its_user),
    ("initialised-by-many", initialised_by_many),
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
    // The main thread, the owner and the closer.
    until_left(3);
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
    // The main thread, the owner and the closer.
    until_left(3);
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

static CONFIG: OnceLock<u64> = OnceLock::new();

fn config() -> u64 {
    *CONFIG.get_or_init(|| 1 + config())
}

/// The initialiser calls what it initialises.
fn once_lock_that_needs_itself() {
    drop(actor("loader", || assert_eq!(config(), 1)).until_blocked());
}

/// The initialiser joins a thread that wants what it initialises.
fn once_lock_that_joins_its_user() {
    let loader = actor("loader", || {
        CONFIG.get_or_init(|| named("user").spawn(|| *CONFIG.get_or_init(|| 2)).unwrap().join().unwrap());
    });
    until_waits("user");
    drop(loader.until_blocked());
}

static ROUTES: LazyLock<i64> = LazyLock::new(|| {
    ROUTES_BEGUN.call_once(|| ());
    *ACCOUNTS.lock().unwrap()
});
static ROUTES_BEGUN: Once = Once::new();

/// The initialiser wants a lock, and the thread that has the lock wants what it initialises.
fn lazy_lock_that_needs_a_lock_of_its_user() {
    let user = actor("user", || {
        let _accounts = ACCOUNTS.lock().unwrap();
        ROUTES_BEGUN.wait();
        assert_eq!(*ROUTES, 0);
    });
    let loader = actor("loader", || {
        while ACCOUNTS.try_lock().is_ok() {
            thread::yield_now();
        }
        assert_eq!(*ROUTES, 0);
    });
    drop(loader.until_blocked());
    drop(user.until_blocked());
}

/// Threads initialise, and wait for one another's initialisations, and go on.
fn initialised_by_many() {
    let users = [0; 8].map(|_| {
        actor("user", || {
            assert_eq!(*CONFIG.get_or_init(|| 3), 3);
            assert_eq!(*ROUTES, 0);
            assert_eq!(CONFIG.set(4), Err(4));
        })
    });
    users.into_iter().for_each(|user| user.until_ended());
}
